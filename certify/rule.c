// Spelling of acceptance rules: see rule.h. What they accept is in rule_accepts.c.
#include "certify/rule.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum bound { NO_BOUND, OPEN, CLOSED };

// One row per rule: which parameters it takes and where they may lie.
static const struct spelling {
    const char *name;
    enum hm_rule_kind kind;
    bool counted;             // the first parameter is an integer >= 1
    int rationals;            // how many rational parameters follow
    enum bound zero, one;     // is 0 (1) a bound of the rationals, and may it be attained?
    const char *usage;
} rules[] = {
    {"greedy", HM_RULE_GREEDY, false, 0, NO_BOUND, NO_BOUND, "greedy"},
    {"additive", HM_RULE_ADDITIVE, false, 1, CLOSED, OPEN, "additive:EPS with 0 <= EPS < 1"},
    {"multiplicative", HM_RULE_MULTIPLICATIVE, false, 1, OPEN, CLOSED, "multiplicative:ALPHA with 0 < ALPHA <= 1"},
    {"topm", HM_RULE_TOPM, true, 0, NO_BOUND, NO_BOUND, "topm:M with M >= 1"},
    {"entropy", HM_RULE_ENTROPY, false, 2, OPEN, NO_BOUND, "entropy:EPS,DELTA with EPS > 0 and DELTA > 0"},
    {"nucleus", HM_RULE_NUCLEUS, false, 1, OPEN, CLOSED, "nucleus:P with 0 < P <= 1"},
    {"topk-delta", HM_RULE_TOPK_DELTA, true, 1, CLOSED, OPEN, "topk-delta:K,DELTA with K >= 1 and 0 <= DELTA < 1"},
    {"topk-ratio", HM_RULE_TOPK_RATIO, true, 1, OPEN, CLOSED, "topk-ratio:K,R with K >= 1 and 0 < R <= 1"},
    {"absolute", HM_RULE_ABSOLUTE, false, 1, OPEN, CLOSED, "absolute:T with 0 < T <= 1"},
    {"regret", HM_RULE_REGRET, false, 1, CLOSED, NO_BOUND, "regret:R with R >= 0"},
};

static const struct spelling *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].name) == length && memcmp(rules[i].name, name, length) == 0) return &rules[i];
    return NULL;
}

static bool within(const struct spelling *s, const struct hm_rational *r)
{
    int against_zero = mpq_sgn(r->value), against_one = mpq_cmp_ui(r->value, 1, 1);
    if (s->zero != NO_BOUND && (against_zero < 0 || (against_zero == 0 && s->zero == OPEN))) return false;
    return s->one == NO_BOUND || against_one < 0 || (against_one == 0 && s->one == CLOSED);
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
static bool parse_parameters(const struct spelling *s, char *text, struct hm_rule *out)
{
    int wanted = (s->counted ? 1 : 0) + s->rationals;
    for (int i = 0; i < wanted; i++) {
        if (!text) return false;
        char *comma = strchr(text, ',');
        if (comma) *comma = 0;
        struct hm_rational *r = i == (s->counted ? 1 : 0) ? &out->a : &out->b;
        if (s->counted && i == 0) {
            if (!parse_count(text, &out->count)) return false;
        } else if (hm_rational_parse(text, r, NULL) != HM_OK || !within(s, r)) {
            return false;
        }
        text = comma ? comma + 1 : NULL;
    }
    return text == NULL;
}

hm_status hm_rule_parse(const char *text, struct hm_rule *out, struct hm_error *err)
{
    const char *colon = strchr(text, ':');
    const struct spelling *s = find(text, colon ? (size_t)(colon - text) : strlen(text));
    if (!s)
        return hm_fail(err, HM_USAGE, "rule \"%.80s\": expected greedy, additive:EPS, multiplicative:ALPHA, topm:M, "
                       "entropy:EPS,DELTA, nucleus:P, topk-delta:K,DELTA, topk-ratio:K,R, absolute:T or regret:R", text);
    char *parameters = colon ? strdup(colon + 1) : NULL;
    if (colon && !parameters) return hm_fail(err, HM_MEMORY, "rule \"%.80s\": out of memory", text);
    *out = (struct hm_rule){.kind = s->kind};
    hm_rational_init(&out->a);
    hm_rational_init(&out->b);
    bool good = parse_parameters(s, parameters, out);
    free(parameters);
    if (good) return HM_OK;
    hm_rule_clear(out);
    return hm_fail(err, HM_USAGE, "rule \"%.80s\": expected %s", text, s->usage);
}

void hm_rule_clear(struct hm_rule *rule)
{
    hm_rational_clear(&rule->a);
    hm_rational_clear(&rule->b);
}

char *hm_rule_text(const struct hm_rule *rule)
{
    const struct spelling *s = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == rule->kind) s = &rules[i];
    if (!s) return NULL;
    char *a = hm_rational_text(&rule->a), *b = hm_rational_text(&rule->b), *text = NULL;
    size_t size = a && b ? strlen(s->name) + strlen(a) + strlen(b) + 16 : 0;
    if (size) text = malloc(size);
    if (text) {
        int n = snprintf(text, size, "%s", s->name);
        if (s->counted) n += snprintf(text + n, size - (size_t)n, ":%lu", (unsigned long)rule->count);
        if (s->rationals >= 1) n += snprintf(text + n, size - (size_t)n, "%c%s", s->counted ? ',' : ':', a);
        if (s->rationals >= 2) snprintf(text + n, size - (size_t)n, ",%s", b);
    }
    free(a);
    free(b);
    return text;
}
