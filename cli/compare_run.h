// One comparison: what the first walk finds (compare_walk.c), what the level makes of it (compare_judge.c), and how it is
// printed (compare_text.c, compare_json.c, compare_markdown.c).
#ifndef HM_CLI_COMPARE_RUN_H
#define HM_CLI_COMPARE_RUN_H

#include "cli/compare_options.h"
#include "cli/compare_pairs.h"
#include "cli/compare_rescore.h"
#include "cli/compare_spool.h"

enum { HM_GROUPS_MOST = 64, HM_COMPARE_FINDINGS_SHOWN = 12 };

// Prompts of a category, or positions of a width.
struct hm_compare_group {
    bool of_width;
    char name[HM_SPOOL_CATEGORY];
    int32_t width;                 // with of_width
    uint64_t prompts, forks, unexplained;
    uint32_t last;                 // prompt that was counted last, plus one
    struct hm_noise_run noise;
};

struct hm_compare_run {
    const struct hm_compare_options *options;
    struct hm_compare_side side[2];
    struct hm_compare_pairs pairs;
    struct hm_rescore *rescore;    // with --model, instead of side[1]
    const char *model_name;
    enum hm_number_type type;      // of the units
    struct hm_spool spool;
    hm_status status;              // of a finding that could not be kept
    struct hm_error *err;

    // Of the first walk.
    bool given;                    // rows of one path: no fork ends a prompt
    bool by_first;                 // a side without tokens was met: its rows' first ones are compared
    uint64_t prompts, identical, tokens; // tokens: compared, given ones not counted
    uint32_t *prefix;              // tokens shared before a fork or an end [prompts]
    size_t prefix_room;
    uint64_t findings, broken, parted;   // broken: rows that are none; parted: prompts with different contexts, or alone
    uint64_t missing[2][HM_MISSINGS];    // places at which something is missing
    struct hm_noise_run noise;
    struct hm_likelihood likelihood[2];
    char claimed[2][64];           // the temperature each side claims, "" for none, "several"
    struct hm_compare_group *group[HM_GROUPS_MOST];
    size_t groups;

    // Of the judgement.
    uint64_t classes[HM_FORK_CLASSES];
    uint64_t outliers;
    bool foreign;                  // rows of other weights or contexts: nothing is judged by their noise
    bool refuted[2];
    int exit;
};

// The first walk: both sides, or A and the model. Fills the spool and the counts.
hm_status hm_compare_walk(struct hm_compare_run *run, struct hm_error *err);

// One record with its prompt and, of forks and positions, what it is judged by.
struct hm_compare_judged {
    const struct hm_spool_prompt *prompt;
    struct hm_spool_record *record; // a fork has its class
    bool has_level;
    struct hm_ival level;
    bool outlier;                   // a position's noise is more than ten times its level
};
// Calls `see` for each record in order; the level must be known, that is, the walk be over.
hm_status hm_compare_each(struct hm_compare_run *run,
                          hm_status (*see)(void *user, const struct hm_compare_judged *judged, struct hm_error *err), void *user,
                          struct hm_error *err);
// Counts classes and outliers, and decides on refutations and the exit code.
hm_status hm_compare_judge(struct hm_compare_run *run, struct hm_error *err);

struct hm_compare_group *hm_compare_group_of(struct hm_compare_run *run, bool of_width, const char *name, int32_t width,
                                             struct hm_error *err); // NULL: no more room, or memory (err->code)

hm_status hm_compare_print_text(struct hm_compare_run *run, struct hm_error *err);
hm_status hm_compare_print_json(struct hm_compare_run *run, struct hm_error *err);
hm_status hm_compare_print_markdown(struct hm_compare_run *run, struct hm_error *err); // to options->markdown

// What the printers share.
struct hm_noise_quantile {
    const char *name;               // "50", "90", "99", "99.9", "100"
    struct hm_ival nats;
};
enum { HM_NOISE_QUANTILES = 5 };
void hm_compare_quantiles(const struct hm_noise_run *run, struct hm_noise_quantile out[HM_NOISE_QUANTILES]);
uint32_t hm_compare_median(const struct hm_compare_run *run); // shared prefix: the lower middle one

#endif
