// What `hallmark decode` was asked to do.
#ifndef HM_CLI_DECODE_OPTIONS_H
#define HM_CLI_DECODE_OPTIONS_H

#include "cli/flags.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HM_MOST_STOPS = 64 };

struct hm_decode_options {
    const char *model, *draft, *drafter;           // drafter: "standalone", "ngram" or "none"
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
    bool match;                                    // else acceptance
    struct hm_rule acceptance;
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

extern const char hm_decode_help[];

enum hm_parsed { HM_PARSED_RUN, HM_PARSED_HELP };

// Reads the command line into *out, which hm_decode_options_clear releases whatever this returns. HM_USAGE names the flag.
hm_status hm_decode_options_parse(int argc, char **argv, struct hm_decode_options *out, enum hm_parsed *what,
                                  struct hm_error *err);
void hm_decode_options_clear(struct hm_decode_options *options);

#endif
