// The target-row study: what every selection and traversal would have gained at the recorded rounds, exactly, from the
// recording alone (docs/study.md). One study has one target, one drafter, one temperature.
#ifndef HM_STUDY_STUDY_H
#define HM_STUDY_STUDY_H

#include "base/error.h"
#include "study/context.h"
#include "study/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_STUDY_BUDGETS = 8, HM_STUDY_GROUPS = 6 };

struct hm_study_options {
    size_t budget[HM_STUDY_BUDGETS]; // each >= 1 [budgets]
    size_t budgets;
    bool group[HM_STUDY_GROUPS + 1]; // which groups of tables, by number; group 4 is tools/cross_fit.py's
    bool greedy;                     // study the likeliest token even where the decode drew
    uint32_t late;                   // a round is late when so many tokens are out already
    size_t resamples;
    uint64_t seed;                   // of the resamples
};

// One figure of a table with its 95 % interval; NaN where no round has one, +inf where it is not reached.
struct hm_study_cell {
    int group;
    char table[80], row[304], column[64];
    double value, low, high;
    int digits;                      // after the point, where it is shown
    size_t prompts;                  // that have a round in it: resamples of few of them give intervals that are too short
};

struct hm_study;

hm_status hm_study_open(const struct hm_study_options *options, struct hm_study **out, struct hm_error *err);
void hm_study_close(struct hm_study *study); // NULL is allowed

// Does a recording belong with what the study already holds (target, drafter, temperatures,
// processors, sizes of vocabulary and pool)?
bool hm_study_takes(const struct hm_study *study, const struct hm_recording_header *header);

// Adds every round of a recording; hm_recording_truncated then says whether the file was cut.
hm_status hm_study_add(struct hm_study *study, struct hm_recording *recording, struct hm_error *err);

struct hm_study_summary {
    const char *target, *drafter, *temperature, *probability_temperature; // of the first recording
    bool greedy;                  // how the target chooses in the tables
    size_t tasks, prompts, rounds;
    double candidates;            // in a pool, mean
};
struct hm_study_summary hm_study_describe(const struct hm_study *study);

// All figures, in the order of the tables. Cells belong to the study.
hm_status hm_study_finish(struct hm_study *study, const struct hm_study_cell **cells, size_t *count, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
