// Group 6: the same gains by task and category, and in late rounds against whole outputs (docs/study.md).
#include "study/figure.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { DRAFT, ROOT, ORACLE, ROOT_DRAW, PEARL, OF_PART };

// Some of the rounds, with a name.
struct hm_part {
    char name[304];
    size_t series; // [budgets][OF_PART]
};

static size_t series_of(struct hm_study *s, const char *name)
{
    for (size_t i = 0; i < s->parts; i++)
        if (strcmp(s->part[i].name, name) == 0) return s->part[i].series;
    void *grown = s->part;
    if (!hm_grow(&grown, &s->part_room, s->parts + 1, sizeof *s->part)) {
        s->sample.failed = true;
        return 0;
    }
    s->part = grown;
    struct hm_part *part = &s->part[s->parts++];
    snprintf(part->name, sizeof part->name, "%s", name);
    part->series = hm_sample_series(&s->sample, s->options.budgets * OF_PART);
    return part->series;
}

static void add(struct hm_study *s, size_t prompt, const char *name)
{
    size_t series = series_of(s, name);
    for (size_t b = 0; b < s->options.budgets && !s->sample.failed; b++, series += OF_PART) {
        const struct hm_rule_figures *f = &s->rule[b];
        hm_sample_add(&s->sample, prompt, series + DRAFT, f->draft);
        hm_sample_add(&s->sample, prompt, series + ROOT, f->root);
        hm_sample_add(&s->sample, prompt, series + ORACLE, f->oracle);
        hm_sample_add(&s->sample, prompt, series + ROOT_DRAW, f->root_draw);
        hm_sample_add(&s->sample, prompt, series + PEARL, f->pearl);
    }
}

void hm_parts_add(struct hm_study *s, size_t prompt, const char *task, const char *category)
{
    char name[304];
    add(s, prompt, "whole outputs");
    snprintf(name, sizeof name, "late rounds (%u tokens out)", s->options.late);
    if (s->context.round->t >= s->options.late) add(s, prompt, name);
    snprintf(name, sizeof name, "task %s", task);
    add(s, prompt, name);
    snprintf(name, sizeof name, "category %s", category);
    if (category[0]) add(s, prompt, name);
}

void hm_parts_plan(struct hm_study *s)
{
    for (size_t b = 0; b < s->options.budgets; b++) {
        char table[80];
        snprintf(table, sizeof table, "By part, B = %zu", s->options.budget[b]);
        for (size_t i = 0; i < s->parts; i++) {
            size_t p = s->part[i].series + b * OF_PART;
            const char *name = s->part[i].name;
            hm_study_cell(s, 6, table, name, "draft, E[A]", hm_figure_mean(p + DRAFT));
            hm_study_cell(s, 6, table, name, "root over draft", hm_figure_difference(p + ROOT, p + DRAFT));
            hm_study_cell(s, 6, table, name, "oracle over draft", hm_figure_difference(p + ORACLE, p + DRAFT));
            hm_study_cell(s, 6, table, name, "root-draw over pearl", hm_figure_difference(p + ROOT_DRAW, p + PEARL));
        }
    }
}
