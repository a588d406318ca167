// nucleus:P: the shortest prefix of the order whose mass is at least P; P = 1 is the support.
#include "certify/rules/rules.h"

#include <math.h>

static bool whole(const struct hm_rule *rule)
{
    return mpq_cmp_ui(rule->a.value, 1, 1) >= 0;
}

// A tail of e^-5000 would defeat any precision: at P = 1 the support decides.
static hm_status prefix(const struct hm_rule *rule, struct hm_row *row, struct hm_crossing *k, struct hm_error *err)
{
    k->least = k->most = row->support;
    return whole(rule) ? HM_OK : hm_row_prefix(row, row->support, rule->a.value, k, err);
}

// x in, j other tokens as likely as x once it sinks and they rise: their mass reaches P when e^(2 eta/T) is
// P (x and the rest) / ((1 - P) they).
static void turn_inside(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    if (j == 0) {
        out->kind = HM_RATIO_NEVER;
        return;
    }
    struct hm_term *rest = hm_ratio_above(out, s->rank, s->rank + 1), *they = hm_ratio_below(out, 0, s->rank);
    hm_term_also(rest, j + 1, s->row->vocab);
    hm_term_also(they, s->rank + 1, j + 1);
    mpq_set(rest->times, s->rule->a.value);
    mpq_sub(they->times, they->times, s->rule->a.value);
}

static struct hm_gap border_inside(const struct hm_steps *s, size_t j)
{
    return (struct hm_gap){hm_steps_logit(s, s->rank), hm_steps_logit(s, j)};
}

// x out, j of the more likely tokens caught up with: the mass of the others before it falls below P when e^(2 eta/T) is
// (1 - P) they / (P (x and all that was not before it, and j times x)).
static void turn_outside(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    size_t before = s->larger;
    if (j >= before) {
        out->kind = HM_RATIO_AT_ONCE;
        return;
    }
    struct hm_term *they = hm_ratio_above(out, 0, before - j), *rest = hm_ratio_below(out, before, s->row->vocab);
    mpq_sub(they->times, they->times, s->rule->a.value);
    mpq_set(rest->times, s->rule->a.value);
    if (j == 0) return;
    struct hm_term *caught = hm_ratio_below(out, s->rank, s->rank + 1);
    mpq_set_ui(caught->times, j, 1);
    mpq_mul(caught->times, caught->times, s->rule->a.value);
}

static struct hm_gap border_outside(const struct hm_steps *s, size_t j)
{
    return (struct hm_gap){hm_steps_logit(s, s->larger - j), hm_steps_logit(s, s->rank)};
}

// How many logits are larger than that of x. Its rank is not far above that in a head; elsewhere a pass beats a sort.
static size_t count_larger(const struct hm_steps *s)
{
    float l = s->row->logits[s->token];
    size_t count = s->rank;
    if (count <= HM_ROW_HEAD) {
        while (count > 0 && hm_steps_logit(s, count - 1) == l) count--;
        return count;
    }
    count = 0;
    for (size_t i = 0; i < s->row->vocab; i++) count += s->row->logits[i] > l;
    return count;
}

static void radius(struct hm_steps *s)
{
    bool finite = s->rank < s->row->support;
    if (whole(s->rule) || !finite || (s->accepted && s->row->support == 1)) {
        s->value = hm_steps_never;
    } else if (s->accepted) {
        s->value = turn_inside;
        s->border = border_inside;
        s->first = s->rank;
        s->last = s->row->support - 1;
    } else {
        s->larger = count_larger(s);
        s->value = turn_outside;
        s->border = border_outside;
        s->last = s->larger;
    }
}

const struct hm_rule_ops hm_rule_nucleus = {
    .kind = HM_RULE_NUCLEUS,
    .name = "nucleus",
    .usage = "nucleus:P with 0 < P <= 1",
    .rationals = 1,
    .zero = HM_END_OPEN,
    .one = HM_END_CLOSED,
    .prefix = prefix,
    .radius = radius,
};
