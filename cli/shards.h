// Which share of the inputs a process takes: `--shard i/n`, `--shard auto` (docs/scale.md).
#ifndef HM_CLI_SHARDS_H
#define HM_CLI_SHARDS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { HM_SHARDS_MOST = 99999 };

// Share `index` of `count`, from 1: of inputs j = 1, 2, ... those with (j - 1) mod count = index - 1. count 0: no
// shares, one process takes all.
struct hm_shards {
    size_t index, count;
};

// Reads the value of --shard: "i/n", "auto" or "auto/n". "auto" looks at `environment` ("NAME=value" strings up to a
// NULL, as in environ) for the variables of Slurm, MPI launchers and Kubernetes; /n says how many shares there are
// where the engine does not. HM_USAGE names the variables: none that decides, two engines that disagree, one variable
// of two.
hm_status hm_shards_parse(const char *text, char *const *environment, struct hm_shards *out, struct hm_error *err);

// Does the share take input j, from 0?
bool hm_shards_take(struct hm_shards shards, size_t j);

#endif
