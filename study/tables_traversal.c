// Group 1: how far each traversal of the draft tree goes, and how often the round is covered (docs/study.md).
#include "study/figure.h"

#include <stdio.h>
#include <string.h>

static const size_t tops[] = {100, 200, 710}, frontiers[] = {10, 20, 40, 80, 160, SIZE_MAX};

enum { TOPS = sizeof tops / sizeof *tops, FRONTIERS = sizeof frontiers / sizeof *frontiers };
enum { EXPECTED, ONE, TWO, LEAF, TRAVERSE };

static void plan_scored(struct hm_study *s, size_t b)
{
    char table[80], row[64];
    snprintf(table, sizeof table, "Coverage of exhaustive traversal, B = %zu", s->options.budget[b]);
    for (size_t i = 0; i < TOPS + FRONTIERS; i++) {
        if (i < TOPS) snprintf(row, sizeof row, "scored top %zu", tops[i]);
        else if (frontiers[i - TOPS] == SIZE_MAX) snprintf(row, sizeof row, "scored frontier, all");
        else snprintf(row, sizeof row, "scored frontier %zu", frontiers[i - TOPS]);
        hm_study_cell(s, 1, table, row, "Pr(C)", hm_figure_mean(s->scored[b] + i));
    }
}

static void plan_traverse(struct hm_study *s, size_t b)
{
    char table[80];
    size_t t = s->traverse[b];
    snprintf(table, sizeof table, "Traversal of the draft tree, B = %zu", s->options.budget[b]);
    hm_study_cell(s, 1, table, "exhaustive", "E[A]", hm_figure_mean(t + EXPECTED));
    hm_study_cell(s, 1, table, "cap:1", "E[A]", hm_figure_mean(t + ONE));
    hm_study_cell(s, 1, table, "cap:1", "Pr(C)", hm_figure_mean(t + TWO));
    hm_study_cell(s, 1, table, "cap:1", "E[L_T - A]", hm_figure_difference(t + EXPECTED, t + ONE));
    hm_study_cell(s, 1, table, "leaf-stop", "E[A]", hm_figure_difference(t + EXPECTED, t + LEAF));
    hm_study_cell(s, 1, table, "leaf-stop", "Pr(C)", hm_figure_mean(t + LEAF));
    hm_study_cell(s, 1, table, "leaf-stop", "E[L_T - A]", hm_figure_mean(t + LEAF));
}

void hm_traversal_plan(struct hm_study *s)
{
    static const char realised[] = "The decode that was recorded, at its own B", row[] = "accepted in a round";
    s->realised = hm_sample_series(&s->sample, 2);
    for (size_t b = 0; b < s->options.budgets; b++) {
        s->traverse[b] = hm_sample_series(&s->sample, TRAVERSE);
        s->scored[b] = hm_sample_series(&s->sample, TOPS + FRONTIERS);
        plan_traverse(s, b);
        plan_scored(s, b);
    }
    hm_study_cell(s, 1, realised, row, "realised", hm_figure_mean(s->realised));
    hm_study_cell(s, 1, realised, row, "E[A]", hm_figure_mean(s->realised + 1));
    hm_study_cell(s, 1, realised, row, "difference", hm_figure_difference(s->realised, s->realised + 1));
}

// What the decode accepted beside what its tree promised, where both chose in the same way.
static void add_realised(struct hm_study *s, size_t prompt, uint32_t decode_budget)
{
    const struct hm_context *c = &s->context;
    bool decoded_greedily = strcmp(s->temperature, "0") == 0;
    if (c->round->accepted < 0 || s->greedy != decoded_greedily) return;
    hm_sample_add(&s->sample, prompt, s->realised, c->round->accepted);
    hm_sample_add(&s->sample, prompt, s->realised + 1, hm_context_expected(c, c->draft, c->draft_count, decode_budget));
}

void hm_traversal_add(struct hm_study *s, size_t prompt, uint32_t decode_budget)
{
    add_realised(s, prompt, decode_budget);
    for (size_t b = 0; b < s->options.budgets; b++) {
        size_t budget = s->options.budget[b], t = s->traverse[b], scored = s->scored[b];
        struct hm_traversal_figures f = hm_context_traverse(&s->context, budget);
        hm_sample_add(&s->sample, prompt, t + EXPECTED, f.expected);
        hm_sample_add(&s->sample, prompt, t + ONE, f.one);
        hm_sample_add(&s->sample, prompt, t + TWO, f.two);
        hm_sample_add(&s->sample, prompt, t + LEAF, f.leaf);
        for (size_t i = 0; i < TOPS; i++)
            hm_sample_add(&s->sample, prompt, scored + i, hm_context_covered(&s->context, budget, tops[i], 0));
        for (size_t i = 0; i < FRONTIERS; i++)
            hm_sample_add(&s->sample, prompt, scored + TOPS + i, hm_context_covered(&s->context, budget, 0, frontiers[i]));
    }
}
