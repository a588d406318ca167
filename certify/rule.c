// Spelling of acceptance rules: see rule.h. What a rule accepts is in its file of rules/.
#include "certify/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hm_rule_ops *find(const char *name, size_t length)
{
    for (size_t i = 0; i < hm_rules_count; i++)
        if (strlen(hm_rules[i]->name) == length && memcmp(hm_rules[i]->name, name, length) == 0) return hm_rules[i];
    return NULL;
}

// "greedy, additive:EPS, ... or regret:R": the usages without their ranges.
static void list_all(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < hm_rules_count && used < size; i++) {
        const char *usage = hm_rules[i]->usage, *range = strstr(usage, " with ");
        const char *comma = i == 0 ? "" : i + 1 < hm_rules_count ? ", " : " or ";
        int n = snprintf(out + used, size - used, "%s%.*s", comma, (int)(range ? range - usage : (long)strlen(usage)), usage);
        used += n > 0 ? (size_t)n : 0;
    }
}

static bool within(const struct hm_rule_ops *ops, const struct hm_rational *r)
{
    int against_zero = mpq_sgn(r->value), against_one = mpq_cmp_ui(r->value, 1, 1);
    if (ops->zero != HM_END_NONE && (against_zero < 0 || (against_zero == 0 && ops->zero == HM_END_OPEN))) return false;
    return ops->one == HM_END_NONE || against_one < 0 || (against_one == 0 && ops->one == HM_END_CLOSED);
}

static bool parse_count(const char *text, uint32_t *out)
{
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > INT32_MAX) return false;
    }
    *out = (uint32_t)value;
    return value >= 1;
}

// Reads the parameters from text, which is cut at its commas.
static bool parse_parameters(const struct hm_rule_ops *ops, char *text, struct hm_rule *out)
{
    int counts = ops->counted ? 1 : 0, wanted = counts + ops->rationals;
    for (int i = 0; i < wanted; i++) {
        if (!text) return false;
        char *comma = strchr(text, ',');
        if (comma) *comma = 0;
        struct hm_rational *r = i == counts ? &out->a : &out->b;
        if (i < counts) {
            if (!parse_count(text, &out->count)) return false;
        } else if (hm_rational_parse(text, r, NULL) != HM_OK || !within(ops, r)) {
            return false;
        }
        text = comma ? comma + 1 : NULL;
    }
    return text == NULL;
}

hm_status hm_rule_parse(const char *text, struct hm_rule *out, struct hm_error *err)
{
    const char *colon = strchr(text, ':');
    const struct hm_rule_ops *ops = find(text, colon ? (size_t)(colon - text) : strlen(text));
    if (!ops) {
        char all[512];
        list_all(all, sizeof all);
        return hm_fail(err, HM_USAGE, "rule \"%.80s\": expected %s", text, all);
    }
    char *parameters = colon ? strdup(colon + 1) : NULL;
    if (colon && !parameters) return hm_fail(err, HM_MEMORY, "rule \"%.80s\": out of memory", text);
    *out = (struct hm_rule){.kind = ops->kind};
    hm_rational_init(&out->a);
    hm_rational_init(&out->b);
    bool good = parse_parameters(ops, parameters, out);
    free(parameters);
    if (good) return HM_OK;
    hm_rule_clear(out);
    return hm_fail(err, HM_USAGE, "rule \"%.80s\": expected %s", text, ops->usage);
}

void hm_rule_clear(struct hm_rule *rule)
{
    hm_rational_clear(&rule->a);
    hm_rational_clear(&rule->b);
}

char *hm_rule_text(const struct hm_rule *rule)
{
    const struct hm_rule_ops *ops = hm_rule_ops_of(rule->kind);
    if (!ops) return NULL;
    char *a = hm_rational_text(&rule->a), *b = hm_rational_text(&rule->b), *text = NULL;
    size_t size = a && b ? strlen(ops->name) + strlen(a) + strlen(b) + 16 : 0;
    if (size) text = malloc(size);
    if (text) {
        int n = snprintf(text, size, "%s", ops->name);
        if (ops->counted) n += snprintf(text + n, size - (size_t)n, ":%lu", (unsigned long)rule->count);
        if (ops->rationals >= 1) n += snprintf(text + n, size - (size_t)n, "%c%s", ops->counted ? ',' : ':', a);
        if (ops->rationals >= 2) snprintf(text + n, size - (size_t)n, ",%s", b);
    }
    free(a);
    free(b);
    return text;
}

bool hm_rule_looks_swapped(const struct hm_rule *rule)
{
    return rule->kind == HM_RULE_ENTROPY && mpq_cmp(rule->b.value, rule->a.value) < 0;
}
