// Outputs that would destroy what is read: asked before anything is done.
#ifndef HM_CLI_OUTPUTS_H
#define HM_CLI_OUTPUTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

// Are two paths one file, links of either kind included?  "-" is none.
bool hm_same_file(const char *a, const char *b);

// HM_USAGE "OUT: this would replace WHAT" when the output is one of the inputs [count], whatever names they go by, or an
// existing file of rows (the shards of a log are such files). `out` need not exist.
hm_status hm_output_check(const char *out, const char *const *inputs, size_t count, const char *what, struct hm_error *err);

#endif
