// A study: see study.h. Reads rounds, lets every group add its values, and turns sums into figures with intervals.
#include "study/study.h"

#include "base/memory.h"
#include "study/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MOST = 64 };

hm_status hm_study_open(const struct hm_study_options *options, struct hm_study **out, struct hm_error *err)
{
    *out = hm_calloc(1, sizeof **out);
    if (!*out) return hm_fail(err, HM_MEMORY, "out of memory for a study");
    (*out)->options = *options;
    return HM_OK;
}

void hm_study_close(struct hm_study *s)
{
    if (!s) return;
    hm_sample_clear(&s->sample);
    hm_context_clear(&s->context);
    free(s->target);
    free(s->drafter);
    free(s->temperature);
    free(s->probability_temperature);
    free(s->top_p);
    free(s->scratch);
    free(s->cell);
    free(s->figure);
    free(s->part);
    free(s);
}

bool hm_study_takes(const struct hm_study *s, const struct hm_recording_header *h)
{
    const char *const mine[] = {s->target, s->drafter, s->temperature, s->probability_temperature, s->top_p};
    const char *const theirs[] = {h->target, h->drafter, h->temperature, h->probability_temperature, h->top_p};
    if (!s->target) return true;
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++)
        if (strcmp(mine[i], theirs[i]) != 0) return false;
    return s->top_k == h->top_k && s->vocab == h->vocab && s->width == h->width && s->levels == h->depth;
}

// The first recording says what the study is about; its sizes bound every pool.
static hm_status begin(struct hm_study *s, const struct hm_recording_header *h, struct hm_error *err)
{
    size_t most;
    s->target = strdup(h->target);
    s->drafter = strdup(h->drafter);
    s->temperature = strdup(h->temperature);
    s->probability_temperature = strdup(h->probability_temperature);
    s->top_p = strdup(h->top_p);
    s->top_k = h->top_k;
    s->vocab = h->vocab;
    s->width = h->width;
    s->levels = h->depth;
    s->greedy = s->options.greedy || strcmp(h->temperature, "0") == 0;
    s->depths = h->depth < LEVELS_MOST ? h->depth + 1 : LEVELS_MOST;
    if (!hm_mul_size(h->width, h->width, &most) || !hm_mul_size(most, h->depth, &most) ||
        !hm_add_size(most, h->width, &most) || most > HM_RECORDING_CANDIDATES_MOST)
        most = HM_RECORDING_CANDIDATES_MOST;
    s->curve = most + 1;
    s->scratch = hm_calloc(s->curve, 4 * sizeof *s->scratch);
    if (!s->target || !s->drafter || !s->temperature || !s->probability_temperature || !s->top_p || !s->scratch)
        return hm_fail(err, HM_MEMORY, "out of memory for a study");
    if (s->options.group[1]) hm_traversal_plan(s);
    if (s->options.group[2] || s->options.group[3]) hm_selection_plan(s);
    if (s->options.group[5]) hm_address_plan(s);
    return HM_OK;
}

// E[A] of every rule at every budget, at the context loaded.
static void evaluate(struct hm_study *s)
{
    struct hm_context *c = &s->context;
    double *pearl = s->scratch, *size = pearl + s->curve;
    hm_context_pearl(c, pearl, size, s->curve);
    for (size_t b = 0; b < s->options.budgets; b++) {
        size_t budget = s->options.budget[b], cap = budget < s->curve ? budget : s->curve - 1;
        struct hm_draw_figures draw = hm_context_root_draw(c, budget);
        s->rule[b] = (struct hm_rule_figures){
            .draft = hm_context_expected(c, c->draft, c->draft_count, budget),
            .root = hm_context_expected(c, c->root, c->root_count, budget),
            .oracle = hm_context_expected(c, c->oracle, c->oracle_count, budget),
            .root_draw = draw.expected, .root_draw_size = draw.size,
            .pearl = pearl[cap], .pearl_size = size[cap]};
    }
}

static hm_status add_round(struct hm_study *s, const struct hm_recording *recording,
                           const struct hm_recording_sequence *sequence, const struct hm_recording_round *round,
                           struct hm_error *err)
{
    const struct hm_recording_header *h = hm_recording_head(recording);
    size_t prompt;
    char id[32];
    if (round->count >= s->curve)
        return hm_fail(err, HM_FORMAT, "%s: sequence %u, round %u: expected at most %zu candidates, found %zu",
                       hm_recording_path(recording), round->sequence, round->round, s->curve - 1, round->count);
    snprintf(id, sizeof id, "sequence %u", sequence->sequence); // a prompt without a name of its own
    hm_status rc = hm_context_load(&s->context, round, s->greedy ? HM_CHOICE_GREEDY : HM_CHOICE_DRAWN, err);
    if (!rc) rc = hm_sample_prompt(&s->sample, h->task, sequence->id[0] ? sequence->id : id, &prompt, err);
    if (rc) return rc;
    evaluate(s);
    if (s->options.group[1]) hm_traversal_add(s, prompt, h->budget);
    if (s->options.group[2] || s->options.group[3]) hm_selection_add(s, prompt);
    if (s->options.group[5]) hm_address_add(s, prompt);
    if (s->options.group[6]) hm_parts_add(s, prompt, h->task, sequence->category);
    s->rounds++;
    s->candidates += round->count;
    return s->sample.failed ? hm_fail(err, HM_MEMORY, "out of memory for the figures of a study") : HM_OK;
}

hm_status hm_study_add(struct hm_study *s, struct hm_recording *recording, struct hm_error *err)
{
    const struct hm_recording_sequence *sequence;
    const struct hm_recording_round *round;
    hm_status rc = s->target ? HM_OK : begin(s, hm_recording_head(recording), err);
    while (!rc) {
        rc = hm_recording_next(recording, &sequence, &round, err);
        if (rc || !round) break;
        rc = add_round(s, recording, sequence, round, err);
    }
    return rc;
}

struct hm_study_summary hm_study_describe(const struct hm_study *s)
{
    return (struct hm_study_summary){
        .target = s->target ? s->target : "", .drafter = s->drafter ? s->drafter : "",
        .temperature = s->temperature ? s->temperature : "",
        .probability_temperature = s->probability_temperature ? s->probability_temperature : "",
        .greedy = s->greedy, .tasks = s->sample.tasks, .prompts = s->sample.prompts, .rounds = s->rounds,
        .candidates = s->rounds ? (double)s->candidates / (double)s->rounds : 0};
}

static size_t prompts_behind(const struct hm_sample *sample, size_t series)
{
    size_t prompts = 0;
    for (size_t i = 0; i < sample->prompts; i++)
        prompts += series < sample->prompt[i].room && sample->prompt[i].rounds[series] > 0;
    return prompts;
}

hm_status hm_study_finish(struct hm_study *s, const struct hm_study_cell **cells, size_t *count, struct hm_error *err)
{
    double *means = NULL, *scratch = hm_calloc(s->options.resamples, sizeof *scratch);
    if (s->options.group[6] && s->parts) hm_parts_plan(s);
    hm_status rc = HM_OK;
    if (!scratch || s->sample.failed) rc = hm_fail(err, HM_MEMORY, "out of memory for the figures of a study");
    if (!rc) rc = hm_sample_means(&s->sample, s->options.resamples, s->options.seed, &means, err);
    for (size_t i = 0; i < s->cells && !rc; i++) {
        struct hm_study_cell *c = &s->cell[i];
        hm_figure_interval(&s->figure[i], means, s->options.resamples, s->sample.series, scratch, &c->value, &c->low,
                           &c->high);
        c->prompts = prompts_behind(&s->sample, s->figure[i].a);
    }
    free(means);
    free(scratch);
    *cells = s->cell;
    *count = s->cells;
    return rc;
}
