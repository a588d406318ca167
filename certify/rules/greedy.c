// greedy: the first of the order.
#include "certify/rules/rules.h"

static hm_status prefix(const struct hm_rule *rule, struct hm_row *row, struct hm_crossing *k, struct hm_error *err)
{
    (void)rule, (void)row, (void)err;
    *k = (struct hm_crossing){1, 1};
    return HM_OK;
}

// The first against the second, or against the token that would be first.
static void turn(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    if (s->accepted) hm_ratio_gap(out, s->row->top, hm_steps_logit(s, 1));
    else hm_ratio_gap(out, s->row->top, hm_steps_logit(s, s->rank));
}

static void radius(struct hm_steps *s)
{
    s->value = turn;
}

const struct hm_rule_ops hm_rule_greedy = {
    .kind = HM_RULE_GREEDY,
    .name = "greedy",
    .usage = "greedy",
    .prefix = prefix,
    .radius = radius,
};
