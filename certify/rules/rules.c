// The rules there are: see rules.h.
#include "certify/rules/rules.h"

const struct hm_rule_ops *const hm_rules[] = {
    &hm_rule_greedy,
    &hm_rule_additive,
    &hm_rule_multiplicative,
    &hm_rule_topm,
    &hm_rule_entropy,
    &hm_rule_nucleus,
    &hm_rule_topk_delta,
    &hm_rule_topk_ratio,
    &hm_rule_absolute,
    &hm_rule_regret,
};
const size_t hm_rules_count = sizeof hm_rules / sizeof *hm_rules;

const struct hm_rule_ops *hm_rule_ops_of(enum hm_rule_kind kind)
{
    for (size_t i = 0; i < hm_rules_count; i++)
        if (hm_rules[i]->kind == kind) return hm_rules[i];
    return NULL;
}
