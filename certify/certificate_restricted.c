// Certificates for draft vocabularies smaller than the target's: see certificate_state.h, theory.md §4.
//
// D is the support of q. KL(q||p) = KL(q||p_D) - ln p(D), so the forward and the reverse verdict are those of §2 on two
// rows of their own, p_D and q; only the third, whose bound is no level of p_D, is decided here.
#include "certify/certificate_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

// p_D and q as rows: ids ascend in D, so ties keep their order.
struct restriction {
    struct hm_row *whole;  // p
    int32_t *ids;          // [size], ascending
    float *target, *draft; // [size]
    size_t size, k, m;
    struct hm_row *p, *q;  // NULL for a D of one token
    int32_t *first;        // ids of the first k + m tokens of D in p's order, when there are so many
};

static void restriction_clear(struct restriction *r)
{
    hm_row_close(r->p);
    hm_row_close(r->q);
    free(r->first);
    free(r->ids);
    free(r->target);
    free(r->draft);
}

static hm_status gather(const struct hm_claim_query *query, size_t k, struct restriction *r, bool *mass, struct hm_error *err)
{
    struct hm_row *p = query->target, *q = query->draft;
    *r = (struct restriction){.whole = p, .size = q->support, .m = query->m};
    r->ids = hm_calloc(r->size, sizeof *r->ids);
    r->target = hm_calloc(r->size, sizeof *r->target);
    r->draft = hm_calloc(r->size, sizeof *r->draft);
    if (!r->ids || !r->target || !r->draft)
        return hm_fail(err, HM_MEMORY, "draft vocabulary of %zu ids: out of memory", r->size);
    uint64_t last = k ? hm_row_key(p, (size_t)hm_row_token(p, k - 1)) : 0;
    size_t n = 0;
    for (size_t i = 0; i < q->vocab; i++) {
        if (q->logits[i] == -INFINITY) continue;
        r->ids[n] = (int32_t)i;
        r->target[n] = p->logits[i];
        r->draft[n++] = q->logits[i];
        r->k += k > 0 && hm_row_key(p, i) <= last;
        *mass = *mass || p->logits[i] != -INFINITY;
    }
    return HM_OK;
}

static hm_status open_rows(struct restriction *r, struct hm_error *err)
{
    hm_status status = hm_row_open(r->target, r->size, &r->whole->temperature, &r->p, err);
    if (status == HM_OK) status = hm_row_open(r->draft, r->size, &r->whole->temperature, &r->q, err);
    if (status || r->k == 0 || r->m > r->size - r->k) return status;
    r->first = hm_row_first(r->p, r->k + r->m);
    if (!r->first) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", r->k + r->m);
    for (size_t i = 0; i < r->k + r->m; i++) r->first[i] = r->ids[r->first[i]];
    return HM_OK;
}

// p(D), -ln p(D), and the bound of TV with what is known of it, at one precision.
struct values {
    struct hm_mpi mass, loss, tv;
    struct hm_mpi outside; // weight outside D
    bool least;            // the bound is 1 - p(D), which no TV(p, q) is below
};

static void values_init(struct values *v, mpfr_prec_t precision)
{
    struct hm_mpi *all[] = {&v->mass, &v->loss, &v->tv, &v->outside};
    for (size_t i = 0; i < 4; i++) hm_mpi_init(all[i], precision);
    v->least = false;
}

static void values_clear(struct values *v)
{
    struct hm_mpi *all[] = {&v->mass, &v->loss, &v->tv, &v->outside};
    for (size_t i = 0; i < 4; i++) hm_mpi_clear(all[i]);
}

static void masses(const struct restriction *r, struct values *v)
{
    const struct hm_row *p = r->whole;
    struct hm_weight_sum sums[2]; // outside D, inside
    for (int i = 0; i < 2; i++) hm_weight_sum_init(&sums[i], p->weights);
    for (size_t i = 0, n = 0; i < p->vocab; i++) {
        bool inside = n < r->size && r->ids[n] == (int32_t)i;
        hm_weight_sum_add(&sums[inside], p->weights, i);
        n += inside;
    }
    hm_weight_sum_get(&sums[0], p->weights, &v->outside);
    hm_weight_sum_get(&sums[1], p->weights, &v->mass);
    for (int i = 0; i < 2; i++) hm_weight_sum_clear(&sums[i]);
    if (mpfr_zero_p(v->outside.hi)) { // all of p lies in D
        hm_mpi_set_ui(&v->mass, 1);
        hm_mpi_set_ui(&v->loss, 0);
        return;
    }
    struct hm_mpi log;
    hm_mpi_init(&log, p->weights->precision);
    hm_mpi_div(&v->mass, &v->mass, &p->total);
    hm_mpi_clip_high(&v->mass, 1);
    hm_mpi_log(&v->loss, &v->mass);
    hm_mpi_div(&log, &v->outside, &p->total); // ln(1 - outside) keeps its digits when little lies outside
    hm_mpi_neg(&log, &log);
    hm_mpi_log1p(&log, &log);
    hm_mpi_meet(&v->loss, &log);
    hm_mpi_neg(&v->loss, &v->loss);
    hm_mpi_clip_low(&v->loss, 0);
    hm_mpi_clear(&log);
}

// sum += (a - b)^+ with a = w_i and b = t, or the other way round.
static void add_surplus(struct hm_mpi *sum, const struct hm_mpi *a, const struct hm_mpi *b)
{
    struct hm_mpi term;
    hm_mpi_init(&term, mpfr_get_prec(sum->lo));
    hm_mpi_sub(&term, a, b);
    hm_mpi_clip_low(&term, 0);
    hm_mpi_add(sum, sum, &term);
    hm_mpi_clear(&term);
}

// sum_S (t - w_s)^+ and outside + sum_A (w_a - t)^+ at a point.
static void two_sides(const struct restriction *r, const struct values *v, const struct hm_mpi *t, struct hm_mpi *gained,
                      struct hm_mpi *lost)
{
    struct hm_mpi weight;
    hm_mpi_init(&weight, mpfr_get_prec(t->lo));
    hm_mpi_set_ui(gained, 0);
    hm_mpi_set(lost, &v->outside);
    for (size_t i = 0; i < r->k + r->m; i++) {
        hm_weight(r->whole->weights, (size_t)r->first[i], &weight);
        if (i < r->k) add_surplus(lost, &weight, t);
        else add_surplus(gained, t, &weight);
    }
    hm_mpi_clear(&weight);
}

// A point near the crossing of the two sides: scanned like a level (bounds/level.c), unproved.
static void crossing(const struct restriction *r, const struct values *v, mpfr_ptr t)
{
    const struct hm_weights *w = r->whole->weights;
    size_t n = r->k + r->m, a, s;
    mpfr_t mass, term;
    mpfr_inits2(w->precision, mass, term, (mpfr_ptr)0);
    mpfr_set(mass, v->outside.lo, MPFR_RNDN); // and A's weights above t and S's below it
    for (size_t i = r->k; i < n; i++) mpfr_add(mass, mass, w->low[r->first[i]], MPFR_RNDN);
    for (size_t rank = 0;; rank++) {
        mpfr_srcptr low = w->low[r->first[rank]];
        a = rank < r->k ? rank : r->k;
        s = n - (rank < r->k ? r->k : rank);
        mpfr_mul_ui(term, low, a + s, MPFR_RNDN);
        if (rank + 1 == n || mpfr_greaterequal_p(mass, term)) break;
        if (rank < r->k) mpfr_add(mass, mass, low, MPFR_RNDN);
        else mpfr_sub(mass, mass, low, MPFR_RNDN);
    }
    mpfr_div_ui(t, mass, a + s, MPFR_RNDN);
    mpfr_clears(mass, term, (mpfr_ptr)0);
}

// min_t max(gained, lost). One side rises and the other falls, so at whatever t the smaller is at most the bound and
// the larger at least: t needs no proof.
static void variation(const struct restriction *r, struct values *v)
{
    mpfr_prec_t precision = r->whole->weights->precision;
    struct hm_mpi t, gained, lost;
    struct hm_mpi *work[] = {&t, &gained, &lost};
    for (size_t i = 0; i < 3; i++) hm_mpi_init(work[i], precision);
    hm_weight(r->whole->weights, (size_t)r->first[0], &t);
    two_sides(r, v, &t, &gained, &lost);
    v->least = mpfr_lessequal_p(gained.hi, v->outside.lo);
    crossing(r, v, t.lo);
    mpfr_set(t.hi, t.lo, MPFR_RNDU);
    two_sides(r, v, &t, &gained, &lost);
    mpfr_set(v->tv.lo, mpfr_less_p(gained.lo, lost.lo) ? gained.lo : lost.lo, MPFR_RNDD);
    mpfr_set(v->tv.hi, mpfr_greater_p(gained.hi, lost.hi) ? gained.hi : lost.hi, MPFR_RNDU);
    hm_mpi_div(&v->tv, &v->tv, &r->whole->total);
    hm_mpi_clip_low(&v->tv, 0);
    hm_mpi_clip_high(&v->tv, 1);
    for (size_t i = 0; i < 3; i++) hm_mpi_clear(work[i]);
}

static hm_status values_at(const struct restriction *r, mpfr_prec_t precision, struct values *v, struct hm_error *err)
{
    hm_status status = hm_row_sums(r->whole, precision, err);
    if (status) return status;
    masses(r, v);
    if (r->first) variation(r, v);
    return HM_OK;
}

// The figures of values at the first precision that makes them narrow.
static hm_status measure(const struct restriction *r, struct hm_ival *mass, struct hm_ival *loss, struct hm_ival *tv,
                         struct hm_error *err)
{
    hm_status status = HM_OK;
    bool done = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct values v;
        values_init(&v, precision);
        status = values_at(r, precision, &v, err);
        if (status == HM_OK) {
            *mass = hm_mpi_ival(&v.mass);
            *loss = hm_mpi_ival(&v.loss);
            *tv = hm_mpi_ival(&v.tv);
        }
        done = status || (hm_mpi_narrow(&v.mass) && hm_mpi_narrow(&v.loss) && hm_mpi_narrow(&v.tv));
        values_clear(&v);
    }
    return status;
}

// q uniform on D = (A cap D) and S, with A's tokens above that share and S's below it: q attains the bound. (Two uniform
// laws are equal to it in no other case: with b tokens of p in A cap D, d in D, `out` outside and z empty ones in S, the
// two sides differ by a multiple of (d - b)(z - out), and z <= out makes the bound 1 - p(D).)
static bool attains(const struct restriction *r)
{
    if (!r->q->uniform || r->size != r->k + r->m) return false;
    const struct hm_row *p = r->whole;
    struct hm_mpi last, next;
    hm_mpi_init(&last, p->weights->precision);
    hm_mpi_init(&next, p->weights->precision);
    hm_weight(p->weights, (size_t)r->first[r->k - 1], &last);
    hm_weight(p->weights, (size_t)r->first[r->k], &next);
    hm_mpi_mul_ui(&last, &last, r->size);
    hm_mpi_mul_ui(&next, &next, r->size);
    bool result = mpfr_greaterequal_p(last.lo, p->total.hi) && mpfr_lessequal_p(next.hi, p->total.lo);
    hm_mpi_clear(&last);
    hm_mpi_clear(&next);
    return result;
}

static hm_status variation_below_at(const struct hm_claim_query *query, const struct restriction *r, mpfr_prec_t precision,
                                    enum hm_certified *out, struct hm_error *err)
{
    struct values v;
    struct hm_distance_values distance;
    values_init(&v, precision);
    hm_distance_values_init(&distance, precision);
    hm_status status = values_at(r, precision, &v, err);
    if (status == HM_OK && (v.least || attains(r))) *out = HM_CERT_NO;
    else if (status == HM_OK) {
        status = hm_row_distance_at(query->target, query->draft, precision, &distance, err);
        enum hm_verdict less = status ? HM_UNDECIDED : hm_mpi_less(&distance.tv, &v.tv);
        *out = less == HM_YES ? HM_CERT_YES : less == HM_NO ? HM_CERT_NO : HM_CERT_UNDECIDED;
    }
    values_clear(&v);
    hm_distance_values_clear(&distance);
    return status;
}

static hm_status variation_below(const struct hm_claim_query *query, const struct restriction *r, struct hm_ival bound,
                                 enum hm_certified *out, struct hm_error *err)
{
    struct hm_ival tv = query->distance->tv;
    hm_status status = HM_OK;
    *out = tv.lo >= bound.hi ? HM_CERT_NO : tv.hi < bound.lo ? HM_CERT_YES : HM_CERT_UNDECIDED;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST;
         status == HM_OK && *out == HM_CERT_UNDECIDED && precision <= HM_PRECISION_LAST; precision *= 2)
        status = variation_below_at(query, r, precision, out, err);
    return status;
}

static void all_verdicts(struct hm_restricted *out, enum hm_certified verdict)
{
    for (int i = 0; i < 3; i++) out->certified[i] = verdict;
}

// The three bounds and their verdicts, for 1 <= k and k + m <= |D|.
static hm_status judge(const struct hm_claim_query *query, const struct restriction *r, struct hm_ival loss,
                       struct hm_ival tv, const struct hm_row_distance *d, struct hm_restricted *out, struct hm_error *err)
{
    hm_status status = hm_level_make(r->p, r->k, r->m, &out->level, NULL, err);
    if (status == HM_OK)
        status = hm_claim_below(r->p, r->q, r->k, r->m, HM_FORWARD, d->kl_pq, &out->level, &out->certified[0], err);
    if (status == HM_OK)
        status = hm_claim_below(r->p, r->q, r->k, r->m, HM_REVERSE, d->kl_qp, &out->level, &out->certified[1], err);
    if (status) return status;
    out->level.klr = hm_ival_add(out->level.klr, loss);
    out->level.tv = tv;
    return variation_below(query, r, tv, &out->certified[2], err);
}

static hm_status restrict_to(const struct hm_claim_query *query, struct restriction *r, struct hm_restricted *out,
                             struct hm_error *err)
{
    struct hm_ival loss, tv;
    struct hm_row_distance d = {{0, 0}, {0, 0}, {0, 0}, {1, 1}}; // of a D of one token
    hm_status status = r->size > 1 ? open_rows(r, err) : HM_OK;
    if (status == HM_OK) status = measure(r, &out->mass, &loss, &tv, err);
    if (status == HM_OK && r->p) status = hm_row_distance(r->p, r->q, &d, err);
    if (status) return status;
    out->kl = d.kl_pq;
    out->vacuous = r->k > 0 && r->m > r->size - r->k;
    if (out->vacuous) all_verdicts(out, HM_CERT_VACUOUS);
    if (r->first) return judge(query, r, loss, tv, &d, out, err);
    hm_level_constant(&out->level, out->vacuous ? INFINITY : 0);
    return HM_OK;
}

hm_status hm_claim_restrict(const struct hm_claim_query *query, size_t k, enum hm_certified before,
                            struct hm_restricted *out, struct hm_error *err)
{
    struct restriction r;
    bool mass = false;
    *out = (struct hm_restricted){.k = 0};
    all_verdicts(out, HM_CERT_NO);
    hm_status status = gather(query, k, &r, &mass, err);
    out->k = r.k;
    out->no_mass = !mass;
    if (status == HM_OK && mass) status = restrict_to(query, &r, out, err);
    if (status == HM_OK && before != HM_CERT_YES) all_verdicts(out, before);
    restriction_clear(&r);
    return status;
}
