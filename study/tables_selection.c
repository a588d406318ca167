// Groups 2 and 3: what each selection gains, and at which budgets they meet (docs/study.md).
#include "study/figure.h"

#include <stdio.h>

enum { DRAFT, ROOT, ORACLE, ROOT_DRAW, ROOT_DRAW_SIZE, PEARL, PEARL_SIZE, RULES };
enum { SPLIT = 3 }; // draft, root, oracle
static const size_t pools[] = {50, 100, 200, 400};
enum { POOLS = sizeof pools / sizeof *pools };

static void plan_rules(struct hm_study *s, size_t b)
{
    char table[80];
    size_t r = s->rules[b];
    static const char value[] = "E[A]", gain[] = "over draft", size[] = "verified nodes";
    struct hm_figure cap = {.kind = HM_FIGURE_CAP, .a = s->size_curve, .b = r + ROOT_DRAW_SIZE, .length = s->curve};
    struct hm_figure equal = {.kind = HM_FIGURE_AT_CAP, .a = s->size_curve, .b = r + ROOT_DRAW_SIZE, .c = s->pearl_curve,
                              .length = s->curve};
    struct hm_figure beyond = equal;
    beyond.kind = HM_FIGURE_BEYOND_CAP;
    beyond.d = r + ROOT_DRAW;
    snprintf(table, sizeof table, "Selection, B = %zu", s->options.budget[b]);
    hm_study_cell(s, 2, table, "draft", value, hm_figure_mean(r + DRAFT));
    hm_study_cell(s, 2, table, "root", value, hm_figure_mean(r + ROOT));
    hm_study_cell(s, 2, table, "root", gain, hm_figure_difference(r + ROOT, r + DRAFT));
    hm_study_cell(s, 2, table, "oracle", value, hm_figure_mean(r + ORACLE));
    hm_study_cell(s, 2, table, "oracle", gain, hm_figure_difference(r + ORACLE, r + DRAFT));
    hm_study_cell(s, 2, table, "root-draw", value, hm_figure_mean(r + ROOT_DRAW));
    hm_study_cell(s, 2, table, "root-draw", gain, hm_figure_difference(r + ROOT_DRAW, r + DRAFT));
    hm_study_cell(s, 2, table, "root-draw", size, hm_figure_mean(r + ROOT_DRAW_SIZE));
    hm_study_cell(s, 2, table, "pearl", value, hm_figure_mean(r + PEARL));
    hm_study_cell(s, 2, table, "pearl", gain, hm_figure_difference(r + PEARL, r + DRAFT));
    hm_study_cell(s, 2, table, "pearl", size, hm_figure_mean(r + PEARL_SIZE));
    hm_study_cell(s, 2, table, "pearl-equal", value, equal);
    hm_study_cell(s, 2, table, "pearl-equal", size, hm_figure_mean(r + ROOT_DRAW_SIZE));
    hm_study_cell(s, 2, table, "pearl-equal", "cap", cap);
    snprintf(table, sizeof table, "Root-draw over pearl, B = %zu", s->options.budget[b]);
    hm_study_cell(s, 2, table, "same cap", "gain", hm_figure_difference(r + ROOT_DRAW, r + PEARL));
    hm_study_cell(s, 2, table, "same mean size", "gain", beyond);
}

static void plan_depths(struct hm_study *s, size_t b)
{
    char table[80], row[64];
    size_t d = s->depth[b], r = s->rules[b];
    snprintf(table, sizeof table, "Exact factors, B = %zu", s->options.budget[b]);
    for (uint32_t depth = 1; depth <= s->depths; depth++) {
        snprintf(row, sizeof row, "depth:%u", depth);
        hm_study_cell(s, 2, table, row, "over draft", hm_figure_difference(d + depth, r + DRAFT));
        hm_study_cell(s, 2, table, row, "share of oracle's", hm_figure_share(d + depth, r + DRAFT, r + ORACLE));
    }
}

static void plan_split(struct hm_study *s, size_t b)
{
    char table[80];
    static const char *const rows[] = {"all rounds", "the draft's first token is the target's", "it is not"};
    snprintf(table, sizeof table, "Share of the oracle's advantage that root recovers, B = %zu", s->options.budget[b]);
    for (size_t i = 0; i < 3; i++) {
        size_t r = i == 0 ? s->rules[b] : s->split[b] + SPLIT * (i - 1);
        hm_study_cell(s, 2, table, rows[i], "oracle over draft", hm_figure_difference(r + ORACLE, r + DRAFT));
        hm_study_cell(s, 2, table, rows[i], "root over draft", hm_figure_difference(r + ROOT, r + DRAFT));
        hm_study_cell(s, 2, table, rows[i], "share", hm_figure_share(r + ROOT, r + DRAFT, r + ORACLE));
    }
}

static void plan_budgets(struct hm_study *s, size_t b)
{
    char table[80], row[64];
    size_t r = s->rules[b];
    static const char least[] = "least budget";
    snprintf(table, sizeof table, "Budgets that match, B = %zu", s->options.budget[b]);
    hm_study_cell(s, 3, table, "draft reaches root", least, (struct hm_figure){
        .kind = HM_FIGURE_REACH, .a = s->draft_curve, .b = r + ROOT, .length = s->curve});
    hm_study_cell(s, 3, table, "root reaches draft", least, (struct hm_figure){
        .kind = HM_FIGURE_REACH, .a = s->root_curve, .b = r + DRAFT, .length = s->curve});
    snprintf(table, sizeof table, "The oracle with a smaller pool, B = %zu", s->options.budget[b]);
    for (size_t i = 0; i < POOLS; i++) {
        if (pools[i] < s->options.budget[b]) continue;
        snprintf(row, sizeof row, "the %zu best", pools[i]);
        hm_study_cell(s, 3, table, row, "oracle over draft", hm_figure_difference(s->limited[b] + i, r + DRAFT));
    }
    hm_study_cell(s, 3, table, "the whole pool", "oracle over draft", hm_figure_difference(r + ORACLE, r + DRAFT));
}

void hm_selection_plan(struct hm_study *s)
{
    s->draft_curve = hm_sample_series(&s->sample, s->curve);
    s->root_curve = hm_sample_series(&s->sample, s->curve);
    s->pearl_curve = hm_sample_series(&s->sample, s->curve);
    s->size_curve = hm_sample_series(&s->sample, s->curve);
    for (size_t b = 0; b < s->options.budgets; b++) {
        s->rules[b] = hm_sample_series(&s->sample, RULES);
        s->depth[b] = hm_sample_series(&s->sample, s->depths + 1);
        s->limited[b] = hm_sample_series(&s->sample, POOLS);
        s->split[b] = hm_sample_series(&s->sample, 2 * SPLIT);
        if (s->options.group[2]) {
            plan_rules(s, b);
            plan_depths(s, b);
            plan_split(s, b);
        }
        if (s->options.group[3]) plan_budgets(s, b);
    }
}

// ---- values

static void add_rules(struct hm_study *s, size_t prompt, size_t b)
{
    const struct hm_rule_figures *f = &s->rule[b];
    size_t r = s->rules[b];
    hm_sample_add(&s->sample, prompt, r + DRAFT, f->draft);
    hm_sample_add(&s->sample, prompt, r + ROOT, f->root);
    hm_sample_add(&s->sample, prompt, r + ORACLE, f->oracle);
    hm_sample_add(&s->sample, prompt, r + ROOT_DRAW, f->root_draw);
    hm_sample_add(&s->sample, prompt, r + ROOT_DRAW_SIZE, f->root_draw_size);
    hm_sample_add(&s->sample, prompt, r + PEARL, f->pearl);
    hm_sample_add(&s->sample, prompt, r + PEARL_SIZE, f->pearl_size);
    const struct hm_context *c = &s->context;
    if (c->draft_count == 0) return; // the drafter has no first token
    size_t split = s->split[b] + (c->round->token[c->draft[0]] == c->round->argmax[0] ? 0 : SPLIT);
    hm_sample_add(&s->sample, prompt, split + DRAFT, f->draft);
    hm_sample_add(&s->sample, prompt, split + ROOT, f->root);
    hm_sample_add(&s->sample, prompt, split + ORACLE, f->oracle);
}

static void add_depths(struct hm_study *s, size_t prompt)
{
    struct hm_context *c = &s->context;
    for (uint32_t depth = 0; depth <= s->depths; depth++) {
        size_t count = hm_context_order(c, depth, c->order);
        for (size_t b = 0; b < s->options.budgets; b++)
            hm_sample_add(&s->sample, prompt, s->depth[b] + depth,
                          hm_context_expected(c, c->order, count, s->options.budget[b]));
    }
}

// The oracle restricted to the M best candidates of the draft order.
static void add_limited(struct hm_study *s, size_t prompt)
{
    struct hm_context *c = &s->context;
    for (size_t i = 0; i < c->count; i++) c->children[i] = UINT32_MAX; // here: ranks in the draft order
    for (size_t i = 0; i < c->draft_count; i++) c->children[c->draft[i]] = (uint32_t)i;
    for (size_t m = 0; m < POOLS; m++) {
        size_t count = 0;
        for (size_t i = 0; i < c->oracle_count; i++)
            if (c->children[c->oracle[i]] < pools[m]) c->order[count++] = c->oracle[i];
        for (size_t b = 0; b < s->options.budgets; b++)
            hm_sample_add(&s->sample, prompt, s->limited[b] + m,
                          hm_context_expected(c, c->order, count, s->options.budget[b]));
    }
}

static void add_curves(struct hm_study *s, size_t prompt)
{
    const struct hm_context *c = &s->context;
    size_t n = s->curve;
    double *draft = s->scratch, *root = draft + n, *pearl = root + n, *size = pearl + n;
    hm_context_curve(c, c->draft, c->draft_count, draft, n);
    hm_context_curve(c, c->root, c->root_count, root, n);
    hm_context_pearl(c, pearl, size, n);
    for (size_t i = 0; i < n; i++) {
        hm_sample_add(&s->sample, prompt, s->draft_curve + i, draft[i]);
        hm_sample_add(&s->sample, prompt, s->root_curve + i, root[i]);
        hm_sample_add(&s->sample, prompt, s->pearl_curve + i, pearl[i]);
        hm_sample_add(&s->sample, prompt, s->size_curve + i, size[i]);
    }
}

void hm_selection_add(struct hm_study *s, size_t prompt)
{
    for (size_t b = 0; b < s->options.budgets; b++) add_rules(s, prompt, b);
    add_depths(s, prompt);
    add_limited(s, prompt);
    add_curves(s, prompt);
}
