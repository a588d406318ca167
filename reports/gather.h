// Private to reports/: the steps of gathering figures from a log, shared by aggregate.c, figures.c and keep.c.
#ifndef HM_REPORTS_GATHER_H
#define HM_REPORTS_GATHER_H

#include "reports/figures.h"
#include "reports/report.h"

// A log being added: where its open round and sequence stand.
struct hm_gather {
    struct hm_report *report;
    size_t log;                         // index into report->logs
    struct hm_log_reader *reader;
    struct hm_error *err;
    bool in_round;
    struct hm_record_round round;       // its figures; the arrays are gone
    int64_t *tree;                      // its nodes' parents, their tokens, and how many children each has [3 * round.nodes]
    size_t tree_capacity;
    uint64_t tree_depth, accepted, emitted; // of the open round
    uint64_t at_depth[HM_REPORT_DEPTHS]; // its verified nodes
    bool round_ended;                   // its continuation or the end of the sequence was seen
    struct hm_report_group *category;   // of the open sequence
    struct hm_kept_sequence *kept;      // of the open sequence; NULL beyond the limit
    uint64_t undecided;                 // answers `undecided` seen in the log's steps and nodes
    bool finished;                      // the open sequence has its finish (true before the first one)
    uint8_t *status;                    // enum hm_token_status of each claim of the current step [claim_count]
};

// Copies at most `limit` bytes, cut at a character border, "..." marking a cut; NULL when out of memory.
char *hm_clip(const char *text, size_t limit);

// The group of that name, made if there is room, else the last one ("other"); NULL when out of memory.
struct hm_report_group *hm_report_category(struct hm_report *report, const char *name);

// Starts the log's entry from its header: copies it, and makes or compares the report's claims.
hm_status hm_report_begin_log(struct hm_gather *g, const char *path);
void hm_report_log_clear(struct hm_report_log *log);

// Keeps what is shown one by one, while there is room.
hm_status hm_keep_sequence(struct hm_gather *g, const struct hm_record_sequence *sequence);
hm_status hm_keep_step(struct hm_gather *g, const struct hm_record_step *step, size_t line);
void hm_block_clear(struct hm_kept_block *block); // gives up its tokens

// Steps worth a look (closest.c). The noise in logits that could turn one: false where the log does not tell.
bool hm_turning_noise(const struct hm_record_step *step, size_t lead, double *out, bool *by_radius);
void hm_keep_closest(struct hm_gather *g, const struct hm_record_step *step, size_t line);
hm_status hm_keep_missed(struct hm_gather *g, const struct hm_record_step *step, size_t line); // steps and rows

#endif
