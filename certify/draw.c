// Sampling from a row, decided exactly: the support left by top-k and top-p, and the token a random number draws
// (docs/log.md, "Random numbers"; theory.md §8). Equalities are settled on the logits before any arithmetic: a sum of
// exponentials of distinct rationals with rational coefficients vanishes only if every coefficient does. The filter is
// asked first; what follows it in each function is the whole truth.
#include "certify/row_state.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

// ceil(share * n) for 0 < share <= 1.
static size_t ceiling(mpq_srcptr share, size_t n)
{
    mpz_t product;
    mpz_init(product);
    mpz_mul_ui(product, mpq_numref(share), n);
    mpz_cdiv_q(product, product, mpq_denref(share));
    size_t result = mpz_get_ui(product);
    mpz_clear(product);
    return result;
}

// The target share * (mass of the first n tokens) at one precision, and where the first `listed` of them reach it.
static hm_status prefix_at(struct hm_row *row, const int32_t *tokens, size_t listed, size_t n, mpq_srcptr share,
                           mpfr_prec_t precision, struct hm_crossing *out, struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    struct hm_mpi target;
    hm_mpi_init(&target, row->weights->precision);
    if (n == row->support) {
        hm_mpi_set(&target, &row->total);
    } else {
        struct hm_weight_sum sum;
        hm_weight_sum_init(&sum, row->weights);
        for (size_t r = 0; r < n; r++) hm_weight_sum_add(&sum, row->weights, (size_t)tokens[r]);
        hm_weight_sum_get(&sum, row->weights, &target);
        hm_weight_sum_clear(&sum);
    }
    hm_mpi_mul_q(&target, &target, share);
    *out = hm_weights_cross(row->weights, tokens, listed, &target, HM_REACHES);
    hm_mpi_clear(&target);
    return HM_OK;
}

// A tail that no precision tells from nothing still counts: where the first tokens are tied with the top and are exactly the
// share of all that are, the tail's part of the target is what they lack.
static void settle_by_tail(struct hm_row *row, size_t n, mpq_srcptr share, struct hm_crossing *out)
{
    size_t ones = 0;
    while (ones < n && row->logits[hm_row_token(row, ones)] == row->top) ones++;
    if (out->most != out->least + 1 || out->least > ones || ones == n) return;
    mpz_t exact, reached;
    mpz_init(exact);
    mpz_init(reached);
    mpz_mul_ui(exact, mpq_numref(share), ones);
    mpz_mul_ui(reached, mpq_denref(share), out->least);
    if (mpz_cmp(exact, reached) == 0) out->least = out->most;
    mpz_clear(exact);
    mpz_clear(reached);
}

hm_status hm_row_prefix(struct hm_row *row, size_t limit, mpq_srcptr share, struct hm_crossing *out, struct hm_error *err)
{
    size_t n = limit < row->support ? limit : row->support; // -inf tokens add nothing
    bool tied = n == row->support ? row->uniform : row->logits[hm_row_token(row, n - 1)] == row->top;
    if (tied) {
        out->least = out->most = ceiling(share, n);
        return HM_OK;
    }
    if (hm_filter_prefix(row, n, share, &out->least)) {
        out->most = out->least;
        return HM_OK;
    }
    // Most prefixes are short: look at the head first when the mass of the whole support is known without a list.
    size_t listed = n == row->support && n > HM_ROW_HEAD ? HM_ROW_HEAD : n;
    int32_t *tokens = hm_row_first(row, listed);
    hm_status status = HM_OK;
    mpfr_prec_t precision = HM_PRECISION_FIRST;
    while (tokens && status == HM_OK && precision <= HM_PRECISION_LAST) {
        status = prefix_at(row, tokens, listed, n, share, precision, out, err);
        if (status || out->least == out->most) {
            if (status || out->most <= listed || listed == n) break;
        }
        if (out->most > listed && listed < n) { // not within the head: list everything, at the same precision
            free(tokens);
            tokens = hm_row_first(row, listed = n);
            continue;
        }
        precision *= 2;
    }
    if (!tokens) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", n);
    free(tokens);
    if (out->most > n) out->most = n; // the whole support always reaches the share
    if (out->least > n) out->least = n;
    if (status == HM_OK) settle_by_tail(row, n, share, out);
    return status;
}

hm_status hm_row_support(struct hm_row *row, size_t top_k, const struct hm_rational *top_p, size_t *support,
                         struct hm_error *err)
{
    size_t limit = top_k == 0 || top_k > row->vocab ? row->vocab : top_k;
    *support = limit;
    if (!top_p || mpq_cmp_ui(top_p->value, 1, 1) >= 0) return HM_OK;
    if (hm_rational_sign(top_p) <= 0)
        return hm_fail(err, HM_RANGE, "top-p: expected more than 0, found %g", hm_rational_double(top_p));
    struct hm_crossing at;
    hm_status status = hm_row_prefix(row, limit, top_p->value, &at, err);
    if (status) return status;
    if (at.least != at.most)
        return hm_fail(err, HM_RANGE, "top-p support: between %zu and %zu tokens, undecided at %d bits", at.least, at.most,
                       HM_PRECISION_LAST);
    *support = at.least;
    return HM_OK;
}

// The support in id order, without -inf tokens (they are never drawn).
static int32_t *support_by_id(struct hm_row *row, size_t support, size_t *count)
{
    uint64_t last = hm_row_key(row, (size_t)hm_row_token(row, support - 1));
    int32_t *ids = hm_calloc(support, sizeof *ids);
    *count = 0;
    for (size_t i = 0; ids && i < row->vocab; i++)
        if (row->logits[i] != -INFINITY && hm_row_key(row, i) <= last) ids[(*count)++] = (int32_t)i;
    return ids;
}

// Is the sum over ids <= id exactly u times the sum over the support? Only if every group of equal logits is divided
// in that proportion (Lindemann-Weierstrass).
static bool divides_exactly(struct hm_row *row, size_t finite, int32_t id, uint64_t bits)
{
    for (size_t r = 0; r < finite;) {
        float l = row->logits[hm_row_token(row, r)];
        uint64_t all = 0, below = 0;
        for (; r < finite && row->logits[hm_row_token(row, r)] == l; r++) {
            all++;
            below += hm_row_token(row, r) <= id;
        }
        // below / all = bits / 2^53; all < 2^31, so neither product can be taken in 64 bits: compare through mpz
        mpz_t left, right;
        mpz_init_set_ui(left, below);
        mpz_init_set_ui(right, all);
        mpz_mul_2exp(left, left, 53);
        mpz_mul_ui(right, right, bits);
        int order = mpz_cmp(left, right);
        mpz_clear(left);
        mpz_clear(right);
        if (order != 0) return false;
    }
    return true;
}

static void draw_target(const struct hm_row *row, const int32_t *ids, size_t count, uint64_t bits, struct hm_mpi *target)
{
    struct hm_weight_sum sum;
    hm_weight_sum_init(&sum, row->weights);
    for (size_t i = 0; i < count; i++) hm_weight_sum_add(&sum, row->weights, (size_t)ids[i]);
    hm_weight_sum_get(&sum, row->weights, target);
    hm_weight_sum_clear(&sum);
    hm_mpi_mul_ui(target, target, bits);
    mpfr_mul_2si(target->lo, target->lo, -53, MPFR_RNDD);
    mpfr_mul_2si(target->hi, target->hi, -53, MPFR_RNDU);
}

// The position in ids [count] at which the running sum passes u times the whole, at rising precision.
static hm_status find_position(struct hm_row *row, const int32_t *ids, size_t count, uint64_t bits, size_t *position,
                               struct hm_error *err)
{
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST; precision *= 2) {
        const struct hm_weights *w;
        hm_status status = hm_row_weights(row, precision, &w, err);
        if (status) return status;
        struct hm_mpi target;
        hm_mpi_init(&target, w->precision);
        draw_target(row, ids, count, bits, &target);
        struct hm_crossing at = hm_weights_cross(w, ids, count, &target, HM_PASSES);
        hm_mpi_clear(&target);
        if (at.least == at.most && at.most <= count) {
            *position = at.least - 1;
            return HM_OK;
        }
        if (at.least <= count && divides_exactly(row, count, ids[at.least - 1], bits)) {
            *position = at.least; // the sum reaches the target here without passing it: the next token passes
            return *position < count ? HM_OK : hm_fail(err, HM_RANGE, "draw: expected u < 1");
        }
    }
    return hm_fail(err, HM_RANGE, "draw: undecided at %d bits", HM_PRECISION_LAST);
}

hm_status hm_row_draw(struct hm_row *row, size_t support, uint64_t bits, int32_t *token, struct hm_error *err)
{
    if (support == 0 || support > row->vocab)
        return hm_fail(err, HM_RANGE, "draw: expected a support from 1 to %zu, found %zu", row->vocab, support);
    if (bits >> 53) return hm_fail(err, HM_RANGE, "draw: expected 53 bits, found 0x%llx", (unsigned long long)bits);
    if (bits > 0 && row->support > 1 && support > 1 && hm_filter_draw(row, support, bits, token)) return HM_OK;
    size_t count, position = 0;
    int32_t *ids = support_by_id(row, support, &count);
    if (!ids) return hm_fail(err, HM_MEMORY, "support of %zu tokens: out of memory", support);
    hm_status status = HM_OK;
    // u = 0 draws the first token that has any weight, however small; a single token needs no arithmetic either.
    if (bits > 0 && count > 1) status = find_position(row, ids, count, bits, &position, err);
    if (status == HM_OK) *token = ids[position];
    free(ids);
    return status;
}
