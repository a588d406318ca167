// Which target token each column of a draft row stands for, when the draft's vocabulary is a part of the target's.
#ifndef HM_CLI_DRAFT_VOCABULARY_H
#define HM_CLI_DRAFT_VOCABULARY_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// Reads the ids of `columns` columns, each below `vocab` and none twice, into fresh memory (the caller frees *ids). The
// file is a JSON array of ids, a .npy array of ids (one dimension), or a .safetensors file whose tensor `d2t` holds
// offsets, as EAGLE-3 checkpoints do: the id of column i is i + d2t[i]. Errors name file and place.
hm_status hm_draft_vocabulary_read(const char *path, size_t columns, size_t vocab, int32_t **ids, struct hm_error *err);

#endif
