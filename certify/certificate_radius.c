// Stability radii (theory.md §6): the formulas that rules give as data (rules/rules.h), solved step by step. Values are
// enclosures in doubles; they come from the filter, or from MPFR where that is too wide.
#include "certify/certificate_state.h"

#include "bounds/ival_math.h"
#include "certify/rules/rules.h"

#include <math.h>

// Narrow enough for a log (docs/log.md "Numbers"), with a factor of 2 to spare.
static bool narrow(struct hm_ival x)
{
    if (x.lo == x.hi) return true;
    double width = x.hi - x.lo;
    return width < INFINITY && (width <= fmax(fabs(x.lo), fabs(x.hi)) * 0x1p-31 || width <= 0x1p-61);
}

// One solution at one precision; 0 bits: in doubles.
struct solver {
    const struct hm_steps *steps;
    mpfr_prec_t precision;
    struct hm_ratio ratio;   // room for a value's formula
    struct hm_masses masses;
    struct hm_error *err;
};

static hm_status value_at(struct solver *s, size_t j, struct hm_ival *out)
{
    hm_ratio_reset(&s->ratio);
    s->steps->value(s->steps, j, &s->ratio);
    if (s->precision == 0) {
        *out = hm_ratio_double(&s->masses, &s->ratio);
        return HM_OK;
    }
    return hm_ratio_exact(s->steps->row, &s->ratio, s->precision, out, s->err);
}

static struct hm_ival border_at(const struct hm_steps *steps, size_t j)
{
    if (j <= steps->first) return hm_ival_point(0);
    if (j > steps->last) return hm_ival_point(INFINITY);
    struct hm_gap gap = steps->border(steps, j);
    struct hm_ival half = hm_ival_sub(hm_ival_point(gap.high), hm_ival_point(gap.low));
    return (struct hm_ival){half.lo / 2, half.hi / 2}; // halves of floats' differences are exact
}

// The first step whose value is surely at most the next border: short jumps first, as most radii need few tokens.
static hm_status find_step(struct solver *s, size_t *step, struct hm_ival *value)
{
    size_t low = s->steps->first, high = s->steps->last, jump = 1;
    bool known = false; // is *value that of `high`?
    while (low < high) {
        size_t probe = jump ? low + jump - 1 : low + (high - low) / 2;
        if (probe >= high) {
            jump = 0;
            continue;
        }
        struct hm_ival at;
        hm_status status = value_at(s, probe, &at);
        if (status) return status;
        if (at.hi <= border_at(s->steps, probe + 1).lo) {
            high = probe;
            *value = at;
            known = true;
            jump = 0;
        } else {
            low = probe + 1;
            jump *= 2;
        }
    }
    *step = high;
    return known ? HM_OK : value_at(s, high, value);
}

static hm_status solve_at(struct solver *s, struct hm_ival *out)
{
    const struct hm_steps *steps = s->steps;
    struct hm_ival value, before;
    size_t j;
    hm_status status = find_step(s, &j, &value);
    if (status) return status;
    struct hm_ival border = border_at(steps, j), next = border_at(steps, j + 1);
    out->hi = fmax(value.hi, border.hi);
    out->lo = fmin(value.lo, next.lo);
    if (j > steps->first && out->lo < border.lo) { // the radius is the border itself, as the step before it says
        status = value_at(s, j - 1, &before);
        if (status) return status;
        out->lo = fmax(out->lo, fmin(before.lo, border.lo));
    }
    out->lo = fmax(out->lo, 0);
    out->hi = fmax(out->hi, 0);
    return HM_OK;
}

hm_status hm_steps_solve(struct hm_steps *steps, struct hm_ival *out, bool *known, struct hm_error *err)
{
    struct solver s = {.steps = steps, .masses = {steps->row, steps->rank, steps->token, NULL, 0}, .err = err};
    hm_status status = HM_OK;
    *known = false;
    hm_ratio_init(&s.ratio);
    if (hm_filter_ready(steps->row)) {
        status = solve_at(&s, out);
        *known = status == HM_OK && narrow(*out);
        hm_masses_clear(&s.masses);
    }
    for (s.precision = HM_PRECISION_FIRST; s.precision <= HM_PRECISION_LAST && !*known && status == HM_OK; s.precision *= 2) {
        status = solve_at(&s, out);
        *known = status == HM_OK && narrow(*out);
    }
    hm_ratio_clear(&s.ratio);
    return status;
}

// A lower bound need not be narrow: doubles suffice, unless they say nothing.
hm_status hm_steps_least(struct hm_steps *steps, double *out, struct hm_error *err)
{
    struct solver s = {.steps = steps, .masses = {steps->row, steps->rank, steps->token, NULL, 0}, .err = err};
    struct hm_ival radius = {0, 0};
    hm_status status = HM_OK;
    bool known = true;
    if (hm_filter_ready(steps->row)) {
        hm_ratio_init(&s.ratio);
        status = solve_at(&s, &radius);
        hm_ratio_clear(&s.ratio);
        hm_masses_clear(&s.masses);
    }
    bool silent = radius.lo == 0 && !(radius.hi == 0 && hm_filter_ready(steps->row));
    if (status == HM_OK && silent) status = hm_steps_solve(steps, &radius, &known, err);
    *out = known ? radius.lo : 0;
    return status;
}

// Among the first `count`, and within the threshold: accepted, the first of the two to turn; rejected, both may have to,
// so the larger one is a lower bound.
static hm_status both(const struct hm_rule_ops *ops, const struct hm_steps *query, struct hm_ival *out, bool *known,
                      struct hm_error *err)
{
    struct hm_steps rank = *query, level = *query;
    struct hm_ival r, l;
    bool known_rank, known_level;
    hm_topm_radius(&rank);
    ops->radius(&level);
    if (query->accepted) {
        hm_status status = hm_steps_solve(&rank, &r, &known_rank, err);
        if (status == HM_OK) status = hm_steps_solve(&level, &l, &known_level, err);
        if (status) return status;
        *known = known_rank && known_level;
        *out = hm_ival_min(r, l);
        return HM_OK;
    }
    enum hm_verdict reaches;
    double least = 0, other = 0;
    hm_status status = hm_rule_reaches(query->rule, query->row, query->token, &reaches, err);
    if (status == HM_OK && query->rank >= query->rule->count) status = hm_steps_least(&rank, &least, err);
    if (status == HM_OK && reaches == HM_NO) status = hm_steps_least(&level, &other, err);
    *known = true;
    *out = (struct hm_ival){fmax(least, other), INFINITY};
    return status;
}

hm_status hm_claim_radius(const struct hm_rule *rule, struct hm_row *row, int32_t token, bool accepted,
                          struct hm_ival *out, bool *known, struct hm_error *err)
{
    const struct hm_rule_ops *ops = hm_rule_ops_of(rule->kind);
    struct hm_steps steps = {.rule = rule, .row = row, .token = (size_t)token, .rank = hm_row_rank(row, token),
                             .accepted = accepted};
    *known = true;
    if (!ops) return hm_fail(err, HM_UNSUPPORTED, "rule of kind %d", (int)rule->kind);
    if (row->logits[token] == -INFINITY && !accepted) { // it has no probability, and does not move
        bool moves = ops->threshold == &hm_additive_threshold; // but it may be reached
        if (!moves) {
            *out = hm_ival_point(INFINITY);
            return HM_OK;
        }
    }
    if (ops->radius_least) {
        out->hi = INFINITY;
        return ops->radius_least(&steps, &out->lo, err);
    }
    if (ops->counted && ops->threshold) return both(ops, &steps, out, known, err);
    ops->radius(&steps);
    return hm_steps_solve(&steps, out, known, err);
}
