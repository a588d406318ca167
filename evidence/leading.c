// The largest values of a row of evidence: see leading.h.
#include "evidence/leading.h"

#include "bounds/ival_math.h"

#include <math.h>

struct top_two { // of numbers added one by one
    double first, second;
};

static void add_number(struct top_two *t, double x)
{
    if (x > t->first) {
        t->second = t->first;
        t->first = x;
    } else if (x > t->second) t->second = x;
}

static void add_place(struct hm_leading *out, const struct top_two *before, double low, size_t place)
{
    if (out->first == HM_UNSEEN || low > before->first) {
        out->second = out->first;
        out->first = place;
    } else if (out->second == HM_UNSEEN || low > before->second) out->second = place;
}

static void lead_row(const float *logits, size_t vocab, size_t without, struct hm_leading *out)
{
    struct top_two top = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < vocab; i++) {
        if (i == without || isnan(logits[i])) continue;
        add_place(out, &top, logits[i], i);
        add_number(&top, logits[i]);
    }
    out->first_value = hm_ival_point(top.first);
    out->second_value = hm_ival_point(top.second);
}

// What is left for all tokens that are not listed bounds each of them. The sum of all is 1 but for the row's shift, and for
// the rounding of float32 (docs/evidence.md "The engine's own rounding": of numbers down to -24, which make up the mass).
static double bound_by_mass(const struct hm_evidence *row, size_t count)
{
    const double rounding = 4 * HM_ALLOWANCE_DEFAULT;
    struct hm_ival rest = hm_ival_exp(hm_ival_add(hm_ival_point(row->shift), hm_ival_point(rounding)));
    for (size_t i = 0; i < count; i++) rest = hm_ival_sub(rest, hm_ival_exp(hm_ival_point(row->entry[i].value.lo)));
    return rest.hi > 0 ? hm_ival_log(hm_ival_point(rest.hi)).hi : -INFINITY;
}

static double bound_unseen(const struct hm_evidence *row, enum hm_leading_of of)
{
    double bound = INFINITY;
    if (row->vocab > 0 && row->count >= row->vocab) return -INFINITY;
    for (size_t i = 0; i < row->ranked; i++) bound = fmin(bound, row->entry[i].value.hi);
    if (row->unit != HM_UNIT_LOG_PROBABILITY) return bound;
    return fmin(fmin(bound, row->shift), bound_by_mass(row, of == HM_LEADING_RANKED ? row->ranked : row->count));
}

struct hm_leading hm_evidence_leading(const struct hm_evidence *row, enum hm_leading_of of, size_t without)
{
    struct hm_leading out = {.first = HM_UNSEEN, .second = HM_UNSEEN, .unseen = -INFINITY};
    if (row->logits) {
        lead_row(row->logits, row->vocab, without, &out);
        return out;
    }
    struct top_two low = {-INFINITY, -INFINITY}, high = low;
    size_t count = of == HM_LEADING_RANKED ? row->ranked : row->count;
    for (size_t i = 0; i < count; i++) {
        if (i == without) continue;
        add_place(&out, &low, row->entry[i].value.lo, i);
        add_number(&low, row->entry[i].value.lo);
        add_number(&high, row->entry[i].value.hi);
    }
    out.unseen = bound_unseen(row, of);
    add_number(&high, out.unseen); // one of them may be as large; all others are below it or equal
    if (out.unseen > high.second) high.second = out.unseen;
    out.first_value = (struct hm_ival){low.first, high.first};
    out.second_value = (struct hm_ival){low.second, high.second};
    return out;
}
