// Values of command-line flags, as every command reads them. Errors are HM_USAGE (HM_FORMAT for a rule or a number that
// is none) and begin with the flag: "--seed: expected a whole number from 0 to 9, found "x"". `flag` comes without dashes.
#ifndef HM_CLI_FLAGS_H
#define HM_CLI_FLAGS_H

#include "base/error.h"
#include "base/rational.h"
#include "certify/divergence.h"
#include "certify/rule.h"
#include "evidence/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What --help says of the rules, at most 79 columns wide.
#define HM_FLAG_RULES_HELP \
    "Rules: a token of probability p is accepted when (p1 is the largest\n" \
    "probability, H the entropy in nats; \"first\" by descending probability)\n" \
    "  greedy               it is the first\n" \
    "  additive:E           p >= p1 - E\n" \
    "  multiplicative:A     p >= A p1\n" \
    "  topm:M               it is among the first M\n" \
    "  entropy:E,D          p >= E or p >= D exp(-H)\n" \
    "  nucleus:P            it is among the first whose sum reaches P\n" \
    "  topk-delta:K,D       it is among the first K and p >= p1 - D\n" \
    "  topk-ratio:K,R       it is among the first K and p >= R p1\n" \
    "  absolute:T           p >= T\n" \
    "  regret:R             -ln p <= R, so regret:0 accepts only certainty\n"

enum { HM_MOST_RULES = 16, HM_MOST_M = 16, HM_MOST_DIVERGENCES = 16 };

hm_status hm_flag_count(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *out,
                        struct hm_error *err);
hm_status hm_flag_size(const char *flag, const char *text, uint64_t least, uint64_t most, size_t *out,
                       struct hm_error *err);

// A rational in [0, most], or with `positive` in (0, most], of at most 40 digits above and below the bar, as the log's
// readers take it.
hm_status hm_flag_rational(const char *flag, const char *text, bool positive, long most, struct hm_rational *out,
                           struct hm_error *err);

// A temperature: 0 unless `positive`, else from 1/100000, below which probabilities leave every range of numbers, to 100.
hm_status hm_flag_temperature(const char *flag, const char *text, bool positive, struct hm_rational *out,
                              struct hm_error *err);

hm_status hm_flag_one_of(const char *flag, const char *text, const char *const *words, struct hm_error *err);

// A rule; the caller clears it when this succeeded.
hm_status hm_flag_rule(const char *flag, const char *text, struct hm_rule *out, struct hm_error *err);

// Warns on standard error of a rule, as it was typed, whose parameters look swapped: legal, but hardly ever meant.
void hm_flag_warn_of_swapped(const char *flag, const char *text, const struct hm_rule *rule);

// Lists that a repeated flag fills: the value must be new and there must be room.
hm_status hm_flag_add_rule(const char *flag, const char *text, struct hm_rule rule[HM_MOST_RULES], size_t *count,
                           struct hm_error *err);
hm_status hm_flag_add_m(const char *text, bool tree, uint32_t m[HM_MOST_M], size_t *count, struct hm_error *err);

hm_status hm_flag_add_divergence(const char *text, struct hm_divergence divergence[HM_MOST_DIVERGENCES], size_t *count,
                                 struct hm_error *err);

// What getopt_long found at argv[optind - 1] when it returned ':' or '?', as HM_USAGE; HM_OK for everything else.
hm_status hm_flag_refuse(int found, char *const *argv, const char *command, struct hm_error *err);

// How logs of other engines are read: --format (the name of one), --printing.
hm_status hm_flag_format(const char *flag, const char *text, const char **out, struct hm_error *err);
hm_status hm_flag_printing(const char *text, enum hm_printing *out, struct hm_error *err);

// --law iid or topk: sets the one that is named.
hm_status hm_flag_law(const char *text, bool *iid, bool *topk, struct hm_error *err);

#endif
