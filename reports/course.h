// What relaxation costs whole sequences: by sequence, by group, and as it accumulates (docs/theory.md §5, "Sequence
// level"). Sums are never clipped before they are averaged. Gathered by course.c.
#ifndef HM_REPORTS_COURSE_H
#define HM_REPORTS_COURSE_H

#include "bounds/sequence.h"
#include "certify/log_reader.h"
#include "reports/theory.h"

#include <stdbool.h>
#include <stdint.h>

enum { HM_COURSE_BINS = 256 };

// One sequence.
struct hm_course {
    bool has_e, has_regret;
    struct hm_ival s, w;      // sum of e; product of the ratios p/o
    struct hm_ival shortfall; // (1 - w)^+
    struct hm_ival regret;    // sum, in nats
};

// Finished sequences of a category, or of a log.
struct hm_course_group {
    struct hm_fidelity_sum fidelity; // those with e
    struct hm_sum regret;            // of sums of whole sequences
    double regret_most;              // the largest upper end
};

// Sums over finished sequences of what each had reached after a number of tokens, a sequence that ended keeping its last
// value: divided by the sequences, the mean course. Bin b ends after token (b + 1) * width; differences are kept, so that
// a course is their prefix sum.
struct hm_course_curve {
    uint64_t width;
    size_t used;
    struct hm_ival e[HM_COURSE_BINS], shortfall[HM_COURSE_BINS], regret[HM_COURSE_BINS];
};

struct hm_report_course {
    struct hm_course_curve curve;
    uint64_t with_e, with_regret;     // finished sequences
    struct hm_course_group all;
    struct hm_course_curve open;             // the sequence at hand; its shortfalls are values, not differences
    struct hm_sequence_sum open_sum;
    struct hm_sum open_regret;
    bool open_has_e;
};

void hm_course_step(struct hm_report_course *c, const struct hm_record_step *step);

// Ends the sequence at hand: what it cost. A finished one enters the means and the groups (each may be NULL).
struct hm_course hm_course_end(struct hm_report_course *c, bool finished, struct hm_course_group *category,
                               struct hm_course_group *log);

// The mean course at the end of a bin: upper ends of the mean sum of e, of the mean (1 - w)^+ and of the mean regret.
// out[HM_COURSE_BINS]; returns how many bins there are.
struct hm_course_point {
    uint64_t tokens;
    double e, shortfall, regret;
};
size_t hm_course_points(const struct hm_report_course *c, struct hm_course_point *out);

#endif
