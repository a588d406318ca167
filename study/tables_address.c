// Group 5: what rows at other addresses are worth as the first factor, and whether the row of one address is the same
// when it is computed twice (docs/study.md).
#include "study/figure.h"

#include <stdio.h>

enum { EXACT, CACHE, SAME_TOKEN, PRECEDING, SOURCES };
enum { AVAILABLE, TV, AGREES, OF_SOURCE };
enum { WITH, WITH_THERE, DRAFT_THERE, EXACT_THERE, GAINS };

static const char *const sources[SOURCES] = {"exact", "cache", "same token", "preceding"};

void hm_address_plan(struct hm_study *s)
{
    static const char rows[] = "Rows at other addresses", twice[] = "Rows of one address, computed twice";
    s->address = hm_sample_series(&s->sample, SOURCES * OF_SOURCE);
    s->matched = hm_sample_series(&s->sample, 2);
    for (size_t i = CACHE; i < SOURCES; i++) {
        size_t a = s->address + i * OF_SOURCE;
        hm_study_cell(s, 5, rows, sources[i], "available", hm_figure_mean(a + AVAILABLE));
        hm_study_cell(s, 5, rows, sources[i], "mean TV", hm_figure_mean(a + TV));
        hm_study_cell(s, 5, rows, sources[i], "same argmax", hm_figure_mean(a + AGREES));
    }
    for (size_t b = 0; b < s->options.budgets; b++) {
        char table[80];
        s->gain[b] = hm_sample_series(&s->sample, SOURCES * GAINS + 1);
        size_t draft = s->gain[b] + SOURCES * GAINS;
        snprintf(table, sizeof table, "The first factor from a row at another address, B = %zu", s->options.budget[b]);
        for (size_t i = 0; i < SOURCES; i++) {
            size_t g = s->gain[b] + i * GAINS;
            hm_study_cell(s, 5, table, sources[i], "over draft", hm_figure_difference(g + WITH, draft));
            hm_study_cell(s, 5, table, sources[i], "where available",
                          hm_figure_difference(g + WITH_THERE, g + DRAFT_THERE));
            hm_study_cell(s, 5, table, sources[i], "the exact row there",
                          hm_figure_difference(g + EXACT_THERE, g + DRAFT_THERE));
        }
    }
    hm_study_cell(s, 5, twice, "kept in the round before", "available", hm_figure_mean(s->matched));
    hm_study_cell(s, 5, twice, "kept in the round before", "bit-equal", hm_figure_mean(s->matched + 1));
}

static void add_row(struct hm_study *s, size_t prompt, size_t source, const struct hm_substitute *row)
{
    size_t a = s->address + source * OF_SOURCE;
    hm_sample_add(&s->sample, prompt, a + AVAILABLE, row != NULL);
    if (!row) return;
    hm_sample_add(&s->sample, prompt, a + TV, row->tv);
    hm_sample_add(&s->sample, prompt, a + AGREES, row->argmax == s->context.round->argmax[0]);
}

// A round without such a row falls back to draft selection.
static void add_gain(struct hm_study *s, size_t prompt, size_t source, const size_t *order, size_t count)
{
    const struct hm_context *c = &s->context;
    for (size_t b = 0; b < s->options.budgets; b++) {
        size_t g = s->gain[b] + source * GAINS;
        const struct hm_rule_figures *f = &s->rule[b];
        double with = order ? hm_context_expected(c, order, count, s->options.budget[b]) : f->draft;
        hm_sample_add(&s->sample, prompt, g + WITH, with);
        if (!order) continue;
        hm_sample_add(&s->sample, prompt, g + WITH_THERE, with);
        hm_sample_add(&s->sample, prompt, g + DRAFT_THERE, f->draft);
        hm_sample_add(&s->sample, prompt, g + EXACT_THERE, f->root);
    }
}

void hm_address_add(struct hm_study *s, size_t prompt)
{
    struct hm_context *c = &s->context;
    const struct hm_recording_round *r = c->round;
    const struct hm_substitute *rows[SOURCES] = {NULL, &r->cached, &r->cached, &r->preceding};
    for (size_t b = 0; b < s->options.budgets; b++)
        hm_sample_add(&s->sample, prompt, s->gain[b] + SOURCES * GAINS, s->rule[b].draft);
    add_gain(s, prompt, EXACT, c->root, c->root_count);
    for (size_t i = CACHE; i < SOURCES; i++) {
        const struct hm_substitute *row = rows[i];
        if (row->address == HM_ADDRESS_NONE || (i == SAME_TOKEN && row->age != 1)) row = NULL;
        const double *first = row ? hm_context_first_factors(c, row) : NULL;
        size_t count = first ? hm_context_order_first(c, first, c->order) : 0;
        add_row(s, prompt, i, row);
        add_gain(s, prompt, i, first ? c->order : NULL, count);
    }
    hm_sample_add(&s->sample, prompt, s->matched, r->matched != HM_MATCHED_ABSENT);
    if (r->matched != HM_MATCHED_ABSENT) hm_sample_add(&s->sample, prompt, s->matched + 1, r->matched == HM_MATCHED_EQUAL);
}
