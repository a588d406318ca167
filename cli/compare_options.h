// The flags of `hallmark compare`.
#ifndef HM_CLI_COMPARE_OPTIONS_H
#define HM_CLI_COMPARE_OPTIONS_H

#include "base/error.h"
#include "base/rational.h"
#include "evidence/compare.h"
#include "evidence/source.h"

#include <stdbool.h>
#include <stddef.h>

struct hm_compare_options {
    const char *file[2], *format[2]; // of A and B; file[1] NULL: a model takes its place
    const char *model;               // folder, or NULL
    const char *tensor, *markdown;   // NULL when not given
    enum hm_printing printing;
    enum hm_number_type type;
    bool has_type, claims;           // --type, --claim-temperature
    struct hm_rational claimed, alpha;
    bool same_path;                  // rows without tokens are of one path
    bool positions, json, quiet;
    size_t threads;                  // 0: one per core
};

extern const char hm_compare_help[];

// HM_USAGE with the flag that is wrong. hm_compare_options_clear in any case.
hm_status hm_compare_options_parse(int argc, char **argv, struct hm_compare_options *out, bool *help, struct hm_error *err);
void hm_compare_options_clear(struct hm_compare_options *options);

#endif
