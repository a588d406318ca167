// Means over recorded rounds and their uncertainty: sums by prompt, and a bootstrap that resamples prompts.
//
// A series is one figure of a round, e.g. E[A] of the draft tree at B = 59. Its mean over one task is the sum over the
// task's rounds divided by their number; tasks have equal weight. Rounds of one prompt depend on each other, so a
// resample draws whole prompts with replacement, as many as there are, within each task.
#ifndef HM_STUDY_SAMPLE_H
#define HM_STUDY_SAMPLE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_prompt_sums {
    char *id;
    size_t task;
    double *sum, *rounds; // by series [room]; a series that a round did not feed has no round there
    size_t room;
};

struct hm_sample {
    char **task;          // [tasks]
    size_t tasks, task_room;
    struct hm_prompt_sums *prompt; // [prompts]
    size_t prompts, prompt_room;
    size_t series;        // how many have been asked for
    bool failed;          // memory ran out while something was added: nothing here is worth reading
};

void hm_sample_clear(struct hm_sample *sample);

// The first of `count` new series.
size_t hm_sample_series(struct hm_sample *sample, size_t count);

// The index of a prompt of a task, new or known.
hm_status hm_sample_prompt(struct hm_sample *sample, const char *task, const char *id, size_t *out, struct hm_error *err);

// One round's value of a series. Sets sample->failed when memory is short.
void hm_sample_add(struct hm_sample *sample, size_t prompt, size_t series, double value);

// Means of every series: row 0 over the sample itself, rows 1 to `resamples` over resamples, the same for the same seed.
// [1 + resamples][sample->series] in fresh memory; NaN where a series has no round.
hm_status hm_sample_means(const struct hm_sample *sample, size_t resamples, uint64_t seed, double **out,
                          struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
