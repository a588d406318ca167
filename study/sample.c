// Means by task and the bootstrap over prompts: see sample.h.
#include "study/sample.h"

#include "base/memory.h"
#include "certify/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void hm_sample_clear(struct hm_sample *s)
{
    for (size_t i = 0; i < s->tasks; i++) free(s->task[i]);
    for (size_t i = 0; i < s->prompts; i++) {
        free(s->prompt[i].id);
        free(s->prompt[i].sum);
        free(s->prompt[i].rounds);
    }
    free(s->task);
    free(s->prompt);
    *s = (struct hm_sample){0};
}

size_t hm_sample_series(struct hm_sample *s, size_t count)
{
    size_t first = s->series;
    s->series += count;
    return first;
}

static hm_status no_memory(struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "out of memory for the figures of a study");
}

static hm_status find_task(struct hm_sample *s, const char *task, size_t *out, struct hm_error *err)
{
    for (size_t i = s->tasks; i-- > 0;) { // the newest is the likeliest
        *out = i;
        if (strcmp(s->task[i], task) == 0) return HM_OK;
    }
    void *grown = s->task;
    if (!hm_grow(&grown, &s->task_room, s->tasks + 1, sizeof *s->task)) return no_memory(err);
    s->task = grown;
    s->task[s->tasks] = strdup(task);
    if (!s->task[s->tasks]) return no_memory(err);
    *out = s->tasks++;
    return HM_OK;
}

hm_status hm_sample_prompt(struct hm_sample *s, const char *task, const char *id, size_t *out, struct hm_error *err)
{
    size_t t = 0;
    hm_status rc = find_task(s, task, &t, err);
    if (rc) return rc;
    for (size_t i = s->prompts; i-- > 0;) {
        *out = i;
        if (s->prompt[i].task == t && strcmp(s->prompt[i].id, id) == 0) return HM_OK;
    }
    void *grown = s->prompt;
    if (!hm_grow(&grown, &s->prompt_room, s->prompts + 1, sizeof *s->prompt)) return no_memory(err);
    s->prompt = grown;
    s->prompt[s->prompts] = (struct hm_prompt_sums){.id = strdup(id), .task = t};
    if (!s->prompt[s->prompts].id) return no_memory(err);
    *out = s->prompts++;
    return HM_OK;
}

static bool make_room(struct hm_prompt_sums *p, size_t series)
{
    double *sum = realloc(p->sum, series * sizeof *sum);
    if (sum) p->sum = sum;
    double *rounds = realloc(p->rounds, series * sizeof *rounds);
    if (rounds) p->rounds = rounds;
    if (!sum || !rounds) return false;
    for (size_t i = p->room; i < series; i++) sum[i] = rounds[i] = 0;
    p->room = series;
    return true;
}

void hm_sample_add(struct hm_sample *s, size_t prompt, size_t series, double value)
{
    struct hm_prompt_sums *p = &s->prompt[prompt];
    if (series >= p->room && !make_room(p, s->series)) {
        s->failed = true;
        return;
    }
    p->sum[series] += value;
    p->rounds[series] += 1;
}

// Adds one task's means under the given weights to mean[], and counts the tasks that have any in present[].
static void add_task(const struct hm_sample *s, size_t task, const double *weight, double *sum, double *rounds,
                     double *mean, double *present)
{
    for (size_t j = 0; j < s->series; j++) sum[j] = rounds[j] = 0;
    for (size_t i = 0; i < s->prompts; i++) {
        const struct hm_prompt_sums *p = &s->prompt[i];
        if (p->task != task || weight[i] == 0) continue;
        for (size_t j = 0; j < p->room; j++) {
            sum[j] += weight[i] * p->sum[j];
            rounds[j] += weight[i] * p->rounds[j];
        }
    }
    for (size_t j = 0; j < s->series; j++) {
        if (rounds[j] == 0) continue;
        mean[j] += sum[j] / rounds[j];
        present[j] += 1;
    }
}

// How often each prompt is in resample r: draws indexed by (r, number of the draw), so the seed alone decides.
static void draw_weights(const struct hm_sample *s, uint32_t r, uint64_t seed, double *weight)
{
    uint32_t draws = 0;
    for (size_t i = 0; i < s->prompts; i++) weight[i] = 0;
    for (size_t task = 0; task < s->tasks; task++) {
        size_t members = 0;
        for (size_t i = 0; i < s->prompts; i++) members += s->prompt[i].task == task;
        for (size_t k = 0; k < members; k++) {
            uint64_t bits = hm_philox_bits(seed, r, draws++, HM_DRAW_TARGET, 0); // 53 bits: no bias worth the name
            size_t pick = (size_t)(bits % members);
            for (size_t i = 0; i < s->prompts; i++)
                if (s->prompt[i].task == task && pick-- == 0) {
                    weight[i] += 1;
                    break;
                }
        }
    }
}

hm_status hm_sample_means(const struct hm_sample *s, size_t resamples, uint64_t seed, double **out, struct hm_error *err)
{
    size_t cells, rows = resamples + 1;
    *out = NULL;
    if (!hm_mul_size(rows, s->series, &cells)) return no_memory(err);
    double *mean = hm_calloc(cells, sizeof *mean), *scratch = hm_calloc(s->series, 3 * sizeof *scratch);
    double *weight = hm_calloc(s->prompts, sizeof *weight);
    hm_status rc = mean && scratch && weight ? HM_OK : no_memory(err);
    for (size_t r = 0; r < rows && !rc; r++) {
        double *row = mean + r * s->series, *present = scratch + 2 * s->series;
        for (size_t j = 0; j < s->series; j++) present[j] = 0;
        if (r) draw_weights(s, (uint32_t)r, seed, weight);
        for (size_t i = 0; i < s->prompts && !r; i++) weight[i] = 1;
        for (size_t task = 0; task < s->tasks; task++)
            add_task(s, task, weight, scratch, scratch + s->series, row, present);
        for (size_t j = 0; j < s->series; j++) row[j] = present[j] > 0 ? row[j] / present[j] : NAN;
    }
    free(scratch);
    free(weight);
    if (rc) free(mean);
    else *out = mean;
    return rc;
}
