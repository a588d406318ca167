// Certificates for draft vocabularies smaller than the target's: see certificate_state.h, theory.md §4.
//
// D is the support of q. KL(q||p) = KL(q||p_D) - ln p(D), so the forward and the reverse verdict are those of §2 on two
// rows of their own, p_D and q; only the third, whose bound is no level of p_D, is decided here.
#include "certify/restricted.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

static void restriction_clear(struct hm_restriction *r)
{
    hm_row_close(r->p);
    hm_row_close(r->q);
    free(r->first);
    free(r->ids);
    free(r->target);
    free(r->draft);
}

static hm_status gather(const struct hm_claim_query *query, size_t k, struct hm_restriction *r, bool *mass, struct hm_error *err)
{
    struct hm_row *p = query->target, *q = query->draft;
    *r = (struct hm_restriction){.whole = p, .size = q->support, .m = query->m};
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

static hm_status open_rows(struct hm_restriction *r, struct hm_error *err)
{
    hm_status status = hm_row_open(r->target, r->size, &r->whole->temperature, &r->p, err);
    if (status == HM_OK) status = hm_row_open(r->draft, r->size, &r->whole->temperature, &r->q, err);
    if (status || r->k == 0 || r->m > r->size - r->k) return status;
    r->first = hm_row_first(r->p, r->k + r->m);
    if (!r->first) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", r->k + r->m);
    for (size_t i = 0; i < r->k + r->m; i++) r->first[i] = r->ids[r->first[i]];
    return HM_OK;
}

// The figures: the filter's where they are narrow, else at the first precision that makes them so.
static hm_status measure(const struct hm_restriction *r, struct hm_restricted_figures *out, struct hm_error *err)
{
    hm_status status = HM_OK;
    bool done = hm_restricted_filter(r, out) &&
                hm_filter_count(r->whole, hm_ival_narrow(out->mass) && hm_ival_narrow(out->loss) && hm_ival_narrow(out->tv));
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_restricted_values v;
        hm_restricted_values_init(&v, precision);
        status = hm_restricted_values_at(r, precision, &v, err);
        if (status == HM_OK)
            *out = (struct hm_restricted_figures){hm_mpi_ival(&v.mass), hm_mpi_ival(&v.loss), hm_mpi_ival(&v.tv), v.least};
        done = status || (hm_mpi_narrow(&v.mass) && hm_mpi_narrow(&v.loss) && hm_mpi_narrow(&v.tv));
        hm_restricted_values_clear(&v);
    }
    return status;
}

// q uniform on D = (A cap D) and S, with A's tokens above that share and S's below it: q attains the bound. (Two uniform
// laws are equal to it in no other case: with b tokens of p in A cap D, d in D, `out` outside and z empty ones in S, the
// two sides differ by a multiple of (d - b)(z - out), and z <= out makes the bound 1 - p(D).)
static bool attains(const struct hm_restriction *r)
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

static hm_status variation_below_at(const struct hm_claim_query *query, const struct hm_restriction *r, mpfr_prec_t precision,
                                    enum hm_certified *out, struct hm_error *err)
{
    struct hm_restricted_values v;
    struct hm_distance_values distance;
    hm_restricted_values_init(&v, precision);
    hm_distance_values_init(&distance, precision);
    hm_status status = hm_restricted_values_at(r, precision, &v, err);
    if (status == HM_OK && (v.least || attains(r))) *out = HM_CERT_NO;
    else if (status == HM_OK) {
        status = hm_row_distance_at(query->target, query->draft, precision, &distance, err);
        enum hm_verdict less = status ? HM_UNDECIDED : hm_mpi_less(&distance.tv, &v.tv);
        *out = less == HM_YES ? HM_CERT_YES : less == HM_NO ? HM_CERT_NO : HM_CERT_UNDECIDED;
    }
    hm_restricted_values_clear(&v);
    hm_distance_values_clear(&distance);
    return status;
}

static hm_status variation_below(const struct hm_claim_query *query, const struct hm_restriction *r,
                                 const struct hm_restricted_figures *f, enum hm_certified *out, struct hm_error *err)
{
    struct hm_ival tv = query->distance->tv;
    hm_status status = HM_OK;
    *out = f->least || tv.lo >= f->tv.hi ? HM_CERT_NO : tv.hi < f->tv.lo ? HM_CERT_YES : HM_CERT_UNDECIDED;
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
static hm_status judge(const struct hm_claim_query *query, const struct hm_restriction *r,
                       const struct hm_restricted_figures *f, const struct hm_row_distance *d, struct hm_restricted *out,
                       struct hm_error *err)
{
    hm_status status = hm_level_make(r->p, r->k, r->m, &out->level, NULL, err);
    if (status == HM_OK)
        status = hm_claim_below(r->p, r->q, r->k, r->m, HM_FORWARD, d->kl_pq, &out->level, &out->certified[0], err);
    if (status == HM_OK)
        status = hm_claim_below(r->p, r->q, r->k, r->m, HM_REVERSE, d->kl_qp, &out->level, &out->certified[1], err);
    if (status) return status;
    out->level.klr = hm_ival_add(out->level.klr, f->loss);
    out->level.tv = f->tv;
    return variation_below(query, r, f, &out->certified[2], err);
}

static hm_status restrict_to(const struct hm_claim_query *query, struct hm_restriction *r, struct hm_restricted *out,
                             struct hm_error *err)
{
    struct hm_restricted_figures figures;
    struct hm_row_distance d = {{0, 0}, {0, 0}, {0, 0}, {1, 1}}; // of a D of one token
    hm_status status = r->size > 1 ? open_rows(r, err) : HM_OK;
    if (status == HM_OK) status = measure(r, &figures, err);
    if (status == HM_OK && r->p) status = hm_row_distance(r->p, r->q, &d, err);
    if (status) return status;
    out->mass = figures.mass;
    out->kl = d.kl_pq;
    out->vacuous = r->k > 0 && r->m > r->size - r->k;
    if (out->vacuous) all_verdicts(out, HM_CERT_VACUOUS);
    if (r->first) return judge(query, r, &figures, &d, out, err);
    hm_level_constant(&out->level, out->vacuous ? INFINITY : 0);
    return HM_OK;
}

hm_status hm_claim_restrict(const struct hm_claim_query *query, size_t k, enum hm_certified before,
                            struct hm_restricted *out, struct hm_error *err)
{
    struct hm_restriction r;
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
