// Levels, thresholds, and what is reported beside them: see state.h. docs/log.md "claims".
#include "certify/check/state.h"

#include <math.h>
#include <string.h>

static void check_tied(struct ck *c, struct ck_math *math, const cJSON *claim, const char *key,
                       const struct ck_ask *ask, bool rows)
{
    const cJSON *tied = ck_array(c, claim, key);
    if (tied && cJSON_GetArraySize(tied) != 2) ck_unreadable(c, key, "expected [a, s]");
    int64_t a = ck_integer(c, cJSON_GetArrayItem(tied, 0), key, 0),
            s = ck_integer(c, cJSON_GetArrayItem(tied, 1), key, 0);
    size_t range[4] = {0, ask->k, 0, ask->m};
    if (!c->out.failed && rows && ck_tied(math, ask, key[5] == 'r', range) == OPEN) {
        ck_open(c, key);
        return;
    }
    if (c->out.failed ||
        (a >= (int64_t)range[0] && a <= (int64_t)range[1] && s >= (int64_t)range[2] && s <= (int64_t)range[3]))
        return;
    ck_refute(c, key, "expected %zu to %zu of A and %zu to %zu of S, found [%lld, %lld]", range[0], range[1], range[2],
              range[3], (long long)a, (long long)s);
}

static const char *const names[3] = {"klf", "klr", "tv"};

// Where there is no level: all three are 0 or all are infinite.
static void check_constant(struct ck *c, const cJSON *claim, double constant, double star[3][2])
{
    for (int i = 0; i < 3; i++) {
        ck_interval(c, claim, names[i], star[i]);
        if (star[i][0] != constant || star[i][1] != constant) ck_refute(c, names[i], "expected exactly %a", constant);
    }
    ck_expect_absent(c, claim, "level_f level_r tied_f tied_r margin universal",
                     "k is 0 or k + m exceeds the vocabulary");
}

// Levels, tied sets and the three thresholds, by the quantities given; shift: what klr has above the value that tv
// bounds.
static void check_levels(struct ck *c, struct ck_math *math, const cJSON *claim, const struct ck_ask *ask, bool rows,
                         ck_quantity *const exact[3], double star[3][2])
{
    double ends[2];
    ck_prove_in(c, math, claim, "level_f", ck_level_f, ask, rows, ends);
    if (!c->out.failed && (ends[1] < 0 || ends[0] > 1))
        ck_refute(c, "level_f", "expected a level within [0, 1], found [%a, %a]", ends[0], ends[1]);
    check_tied(c, math, claim, "tied_f", ask, rows);
    ck_prove_in(c, math, claim, "level_r", ck_level_r, ask, rows, ends);
    if (!c->out.failed && ends[0] > 0)
        ck_refute(c, "level_r", "expected a logarithm <= 0, found [%a, %a]", ends[0], ends[1]);
    check_tied(c, math, claim, "tied_r", ask, rows);
    for (int i = 0; i < 3; i++) {
        ck_prove_in(c, math, claim, names[i], exact[i], ask, rows, star[i]);
        if (!c->out.failed && star[i][1] < 0) ck_refute(c, names[i], "expected a value >= 0");
    }
}

void ck_levels(struct ck *c, struct ck_math *math, const cJSON *claim, const struct ck_ask *ask, bool rows,
               double constant, ck_quantity *const exact[3], double star[3][2])
{
    if (isnan(constant))
        check_levels(c, math, claim, ask, rows, exact, star);
    else
        check_constant(c, claim, constant, star);
}

static void check_margin(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                         double star[3][2])
{
    static ck_quantity *const sharp[3] = {ck_margin_klf, ck_margin_klr, ck_margin_tv};
    double ends[2];
    if (!c->header->margin) ck_expect_absent(c, claim, "margin", "the header says so");
    if (!c->header->margin || c->out.failed) return;
    const cJSON *margin = ck_object(c, claim, "margin");
    size_t outer = ck_enter(c, "margin.");
    ck_prove(c, margin, "gap", ck_margin_gap, ask, node->target, ends);
    for (int i = 0; i < 3; i++) {
        ck_prove(c, margin, names[i], sharp[i], ask, node->target, ends);
        if (!c->out.failed && ends[0] > star[i][1]) ck_refute(c, names[i], "expected at most the exact threshold");
    }
    ck_leave(c, outer);
}

static void check_universal(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                            double star[3][2])
{
    static ck_quantity *const bound[2] = {ck_universal_klf, ck_universal_klr};
    double ends[2];
    if (!c->header->universal) ck_expect_absent(c, claim, "universal", "the header says so");
    if (!c->header->universal || c->out.failed) return;
    enum ck_rule_kind kind = ask->rule->kind;
    bool always = kind == CK_ADDITIVE || kind == CK_MULTIPLICATIVE;
    bool perhaps = kind == CK_ENTROPY || kind == CK_ABSOLUTE || kind == CK_REGRET;
    enum answer has = always ? YES : !perhaps ? NO : node->target ? ck_has_universal(&c->math, ask->rule) : OPEN;
    if (has == NO)
        ck_expect_absent(c, claim, "universal",
                         perhaps ? "the first token is no likelier than the threshold" : "the rule has none");
    if (has == OPEN && !ck_has(claim, "universal")) return;
    if (has == OPEN && node->target) ck_open(c, "universal");
    if (has == NO || c->out.failed) return;
    const cJSON *universal = ck_object(c, claim, "universal");
    size_t outer = ck_enter(c, "universal.");
    for (int i = 0; i < 2; i++) {
        ck_prove(c, universal, names[i], bound[i], ask, node->target, ends);
        if (!c->out.failed && ends[0] > star[i][1]) ck_refute(c, names[i], "expected at most the exact threshold");
    }
    ck_leave(c, outer);
}

void ck_thresholds(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                   double star[3][2])
{
    static ck_quantity *const exact[3] = {ck_klf, ck_klr, ck_tv};
    bool vacuous = ask->k + ask->m > (size_t)c->header->vocab;
    double constant = ask->k == 0 ? 0 : vacuous ? INFINITY : NAN;
    ck_levels(c, &c->math, claim, ask, node->target, constant, exact, star);
    if (!isnan(constant)) return;
    for (int i = 0; i < 2; i++) // Pinsker, with room for this line's own rounding
        if (!c->out.failed && star[2][0] > 0 && 2 * star[2][0] * star[2][0] * (1 - 0x1p-40) > star[i][1])
            ck_refute(c, names[i], "expected at least 2 tv^2, found [%a, %a]", star[i][0], star[i][1]);
    check_margin(c, claim, node, ask, star);
    check_universal(c, claim, node, ask, star);
}
