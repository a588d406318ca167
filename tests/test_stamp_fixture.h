// A synthetic decode for tests of the log: rows are made up from their context, trees, draws and traversal are real
// (docs/log.md, "The walk"), so that a checker must be able to prove every line.
#ifndef HM_TEST_STAMP_FIXTURE_H
#define HM_TEST_STAMP_FIXTURE_H

#include "certify/stamp.h"

struct decode {
    size_t vocab;         // 8 to FIXTURE_VOCAB
    const char *rules[4]; // claimed, up to the first NULL
    const char *divergences[4]; // up to the first NULL
    uint32_t m[4];        // [m_count]
    size_t m_count;
    const char *acceptance;          // NULL: match; "standard"; a rule
    const char *temperature;         // NULL: "0"
    const char *certify_temperature; // NULL: "1"
    size_t top_k;
    const char *top_p; // NULL: off
    bool margin, universal, laws, all_nodes, no_draft;
    bool iid;                         // children are draws from the draft
    const char *fidelity;             // the limit of a budget: of total variation with a nucleus, else of regret; NULL: none
    const char *selection;            // NULL: "draft"
    bool leaf_stop;
    size_t scored;                    // so many nodes of each round are only scored
    size_t width, depth, budget, cap; // cap 0: exhaustive
    size_t sequences, tokens;         // of each sequence; token 0 ends one early
    uint64_t seed;
    size_t spoil;   // the target row of this step (counted over all sequences from 1) has a NaN; 0: none
    size_t abandon; // stop handing over after so many steps, as an interrupted decode does; 0: never
};

enum { FIXTURE_VOCAB = 64, FIXTURE_NODES = 40 };

// Runs the decode through a stamper and closes it. Returns the first failure.
hm_status decode_run(const struct decode *decode, const struct hm_stamp_options *options,
                     struct hm_stamp_summary *summary, struct hm_error *err);

// Two decodes: a greedy one with the default claims, and one with all there is.
extern const struct decode decode_plain, decode_rich;

// A temporary folder for the tests of a program, and a log in it: log_path is "FOLDER/run.jsonl".
extern char log_folder[], log_path[];
int log_set_up(void **state);
int log_tear_down(void **state);

// decode_run that must succeed.
void log_run(const struct decode *decode, const struct hm_stamp_options *options, struct hm_stamp_summary *summary);

// A log as lines.
struct log_text {
    char *bytes;
    size_t size, lines;
    char **start; // each line, terminated instead of its newline
};
struct log_text log_read(const char *path); // must be readable and end with a newline
void log_free(struct log_text *text);

#endif
