// What `hallmark decode` was asked to do.
#ifndef HM_CLI_DECODE_OPTIONS_H
#define HM_CLI_DECODE_OPTIONS_H

#include "cli/flags.h"
#include "decode/accept.h"
#include "decode/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HM_MOST_STOPS = 64 };

struct hm_decode_options {
    const char *model, *draft, *drafter;           // drafter: "standalone", "eagle3", "ngram" or "none"
    double draft_rope_theta;                       // eagle3; 0: as its config says
    const char *prompt, *prompt_file, *prompts;    // exactly one is set
    size_t limit;                                  // of --prompts; 0: all
    size_t max_tokens, context;                    // context 0: the model's own, at most 40,960
    struct hm_rational temperature, top_p, certify_temperature;
    bool has_top_p;
    size_t top_k;
    uint64_t seed;
    const char *stop[HM_MOST_STOPS];
    size_t stop_count;
    size_t width, depth, budget, cap;
    enum hm_selection selection;
    bool leaf_stop, traverse_given, covering, serial;
    size_t score_top, score_frontier;              // 0: off; SIZE_MAX: all
    size_t draft_threads;                          // 0: half
    enum hm_acceptance_kind accept;
    struct hm_rule acceptance;                     // of RULE and NUCLEUS
    enum hm_proposal proposal;
    enum hm_budget_kind fidelity;
    struct hm_rational fidelity_limit;
    const char *record_pool;                       // NULL: nothing is recorded
    struct hm_rule certify[HM_MOST_RULES];
    size_t certify_count;
    struct hm_divergence divergence[HM_MOST_DIVERGENCES];
    size_t divergence_count;
    uint32_t m[HM_MOST_M];
    size_t m_count;
    bool certified;                                // certificates are wanted: --log or one of the flags about them
    bool margin;                                   // margin-only and rule-universal bounds
    bool law_iid, law_topk, all_nodes, keep_rows, hash_rows;
    size_t certify_threads;
    const char *log;
    size_t threads;                                // 0: one per core
    bool chat, check, json, quiet, ignore_eos;
    const char *system;                            // system message for --chat, or NULL
};

extern const char *const hm_decode_help[]; // pieces, then NULL

// The names that flags and logs use: of the selection or the covering decoder, of the traversal (into `text`), of what is
// scored besides (into `text`; NULL: nothing).
const char *hm_decode_selection_name(const struct hm_decode_options *options);
const char *hm_decode_traversal_name(const struct hm_decode_options *options, char text[32]);
const char *hm_decode_score_name(const struct hm_decode_options *options, char text[32]);

// The rule of the acceptance, NULL for match and standard.
const struct hm_rule *hm_decode_rule(const struct hm_decode_options *options);

enum hm_parsed { HM_PARSED_RUN, HM_PARSED_HELP };

// Reads the command line into *out, which hm_decode_options_clear releases whatever this returns. HM_USAGE names the flag.
hm_status hm_decode_options_parse(int argc, char **argv, struct hm_decode_options *out, enum hm_parsed *what,
                                  struct hm_error *err);
// decode_settle.c: what the flags mean together, once all are read: combinations, and the defaults that depend on others.
hm_status hm_decode_options_settle(struct hm_decode_options *options, struct hm_error *err);
void hm_decode_options_clear(struct hm_decode_options *options);

#endif
