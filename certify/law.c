// The law of the emitted token: see law.h; theory.md §5, "Several proposals". Doubles first (law_filter.c), then MPFR
// (law_ladder.c). Point masses, which need one sum only, are here.
#include "certify/law.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "certify/law_filter.h"
#include "certify/row_pair.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST = 1000000 }; // docs/log.md, "Header"

// One proposal: what is gained over standard acceptance is what is lost of the law.
static hm_status law_once(struct hm_row *p, struct hm_row *q, size_t k, struct hm_law *out, struct hm_error *err)
{
    struct hm_row_distance distance;
    hm_status status = hm_row_distance(p, q, &distance, err);
    if (status == HM_OK) status = hm_row_excess(p, q, k, &out->e, err);
    if (status == HM_OK) out->accept = hm_ival_min(hm_ival_add(distance.standard_accept, out->e), hm_ival_point(1));
    return status;
}

// Point masses: those before the first in A are emitted exactly as often as p would emit them, that one takes all the
// rest; without one in A the law is p's.
struct points {
    bool *tried; // [vocab]: the children up to and with the first in A
    bool sure;   // there is one
};

static hm_status try_children(struct hm_row *p, struct hm_row *q, const int32_t *children, size_t m, size_t k,
                              struct points *out, struct hm_error *err)
{
    out->sure = false;
    out->tried = hm_calloc(p->vocab, sizeof *out->tried);
    if (!out->tried) return hm_fail(err, HM_MEMORY, "children among %zu tokens: out of memory", p->vocab);
    uint64_t last = k ? hm_row_key(p, (size_t)hm_row_token(p, k - 1)) : 0;
    for (size_t i = 0; i < m && !out->sure; i++) {
        int32_t token = children ? children[i] : hm_row_token(q, i);
        if (token < 0 || (size_t)token >= p->vocab)
            return hm_fail(err, HM_RANGE, "child %zu: expected an id from 0 to %zu, found %ld", i, p->vocab - 1, (long)token);
        out->tried[token] = true;
        out->sure = k > 0 && hm_row_key(p, (size_t)token) <= last;
    }
    return HM_OK;
}

static void share_of(const struct hm_row *p, const bool *tried, bool which, struct hm_mpi *out)
{
    struct hm_weight_sum sum;
    bool whole = true; // all of the support: the share is 1
    hm_weight_sum_init(&sum, p->weights);
    for (size_t i = 0; i < p->vocab; i++) {
        if (tried[i] == which) hm_weight_sum_add(&sum, p->weights, i);
        else whole = whole && p->logits[i] == -INFINITY;
    }
    hm_weight_sum_get(&sum, p->weights, out);
    hm_weight_sum_clear(&sum);
    hm_mpi_div(out, out, &p->total);
    hm_mpi_clip_high(out, 1);
    if (whole) hm_mpi_set_ui(out, 1);
}

// The same in double. What nothing or everything belongs to is exact, as there.
static bool share_of_filter(struct hm_row *p, const bool *tried, bool which, struct hm_ival *out)
{
    double sum = 0, chosen[HM_FILTER_BLOCK];
    bool none = true, whole = true;
    if (!hm_filter_ready(p)) return false;
    for (size_t start = 0; start < p->vocab; start += HM_FILTER_BLOCK) {
        size_t n = p->vocab - start < HM_FILTER_BLOCK ? p->vocab - start : HM_FILTER_BLOCK;
        for (size_t i = 0; i < n; i++) {
            bool in = tried[start + i] == which, empty = p->logits[start + i] == -INFINITY;
            chosen[i] = in ? p->filter.weights[start + i] : 0;
            none = none && (!in || empty);
            whole = whole && (in || empty);
        }
        sum += hm_filter_block(chosen, n);
    }
    *out = hm_ival_min(hm_ival_div(hm_filter_enclose(sum, p->vocab), p->filter.total), hm_ival_point(1));
    if (none || whole) *out = hm_ival_point(whole);
    return hm_filter_count(p, hm_ival_narrow(*out));
}

static struct hm_law of_points(const struct points *points, struct hm_ival share)
{
    return points->sure ? (struct hm_law){{1, 1}, share} : (struct hm_law){share, {0, 0}};
}

static hm_status law_topk(struct hm_row *p, struct hm_row *q, const int32_t *children, size_t m, size_t k,
                          struct hm_law *out, struct hm_error *err)
{
    struct points points;
    hm_status status = try_children(p, q, children, !children && m > p->vocab ? p->vocab : m, k, &points, err);
    struct hm_ival value;
    bool done = status != HM_OK || share_of_filter(p, points.tried, !points.sure, &value);
    if (status == HM_OK && done) *out = of_points(&points, value);
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        status = hm_row_sums(p, precision, err);
        if (status) break;
        struct hm_mpi share;
        hm_mpi_init(&share, precision);
        share_of(p, points.tried, !points.sure, &share);
        *out = of_points(&points, hm_mpi_ival(&share));
        done = hm_mpi_narrow(&share);
        hm_mpi_clear(&share);
    }
    free(points.tried);
    return status;
}

hm_status hm_law_make(struct hm_row *p, struct hm_row *q, enum hm_proposal proposal, const int32_t *children, size_t m,
                      size_t k, struct hm_law *out, struct hm_error *err)
{
    *out = (struct hm_law){{0, 1}, {0, 1}};
    if (m < 1 || m > LONGEST) return hm_fail(err, HM_USAGE, "law: expected m from 1 to %d, found %zu", LONGEST, m);
    if (k > p->vocab) return hm_fail(err, HM_RANGE, "accepted tokens: expected at most %zu, found %zu", p->vocab, k);
    if (!q && (proposal == HM_PROPOSAL_IID || !children))
        return hm_fail(err, HM_USAGE, "law: expected the draft's row, found none");
    hm_status status = q ? hm_row_pair_check(p, q, err) : HM_OK;
    if (status) return status;
    if (proposal == HM_PROPOSAL_TOPK) return law_topk(p, q, children, m, k, out, err);
    if (hm_row_same(p, q)) {
        *out = (struct hm_law){{1, 1}, {0, 0}};
        return HM_OK;
    }
    if (m == 1) return law_once(p, q, k, out, err);
    return hm_filter_law(p, q, m, k, out) ? HM_OK : hm_exact_law(p, q, m, k, out, err);
}
