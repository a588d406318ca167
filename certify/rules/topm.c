// topm:M: the first M of the order.
#include "certify/rules/rules.h"

static hm_status prefix(const struct hm_rule *rule, struct hm_row *row, struct hm_crossing *k, struct hm_error *err)
{
    (void)err;
    size_t size = rule->count < row->vocab ? rule->count : row->vocab;
    *k = (struct hm_crossing){size, size};
    return HM_OK;
}

// Against the first token outside, or the last one inside.
static void turn(const struct hm_steps *s, size_t j, struct hm_ratio *out)
{
    (void)j;
    size_t m = s->rule->count;
    if (!s->accepted) hm_ratio_gap(out, hm_steps_logit(s, m - 1), hm_steps_logit(s, s->rank));
    else if (m >= s->row->vocab) out->kind = HM_RATIO_NEVER;
    else hm_ratio_gap(out, hm_steps_logit(s, s->rank), hm_steps_logit(s, m));
}

void hm_topm_radius(struct hm_steps *s)
{
    s->value = turn;
}

const struct hm_rule_ops hm_rule_topm = {
    .kind = HM_RULE_TOPM,
    .name = "topm",
    .usage = "topm:M with 1 <= M < 2^31",
    .counted = true,
    .prefix = prefix,
    .radius = hm_topm_radius,
};
