// Two rows of one alphabet side by side: see row_pair.h.
#include "certify/row_pair.h"

hm_status hm_row_pair_check(const struct hm_row *p, const struct hm_row *q, struct hm_error *err)
{
    if (p->vocab != q->vocab)
        return hm_fail(err, HM_SHAPE, "draft row: expected %zu logits like the target's, found %zu", p->vocab, q->vocab);
    if (!mpq_equal(p->temperature.value, q->temperature.value))
        return hm_fail(err, HM_USAGE, "draft row: expected the target row's temperature, found another");
    return HM_OK;
}

hm_status hm_row_pair_sums(struct hm_row *p, struct hm_row *q, mpfr_prec_t precision, struct hm_error *err)
{
    hm_status status = hm_row_sums(p, precision, err);
    return status ? status : hm_row_sums(q, precision, err);
}

void hm_row_share(const struct hm_row *row, const struct hm_mpi *inverse, size_t token, struct hm_mpi *out)
{
    hm_weight(row->weights, token, out);
    mpfr_mul(out->lo, out->lo, inverse->lo, MPFR_RNDD);
    mpfr_mul(out->hi, out->hi, inverse->hi, MPFR_RNDU);
}

// Knuth's sum of two doubles and its error; floats neither overflow nor lose bits in it.
struct hm_exact hm_exact_difference(float d, float l)
{
    double a = d, b = -(double)l, sum = a + b, part = sum - a;
    return (struct hm_exact){sum, (a - (sum - part)) + (b - part)};
}

int hm_exact_compare(struct hm_exact a, struct hm_exact b)
{
    if (a.high != b.high) return a.high < b.high ? -1 : 1;
    return a.low < b.low ? -1 : a.low > b.low;
}
