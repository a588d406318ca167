// Row shards: the rows a log speaks of, in safetensors files beside it (docs/log.md, "Row shards").
//
// LOG.target-00000.safetensors holds the first rows of the target, and so on; a shard is created when its first row
// arrives. While it is being filled its header declares the full capacity and the file is sparse, so every row that was
// appended can be read, even after the process has died; a finished shard is shortened to what it holds.
#ifndef HM_CERTIFY_SHARD_H
#define HM_CERTIFY_SHARD_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { HM_SHARD_HEADER = 4096 }; // bytes before the first row: the length, the header, spaces

struct hm_shard_writer;

// The shards of one side ("target" or "draft") of a log. A shard holds as many rows of `vocab` floats as fit into
// `limit` bytes, at least one. Creates no file yet. HM_USAGE when the log's name cannot be part of a pattern: it holds
// a '%' or is not UTF-8.
hm_status hm_shard_open(const char *log_path, const char *side, size_t vocab, uint64_t limit,
                        struct hm_shard_writer **out, struct hm_error *err);

// "LOG.target-%05d.safetensors", without folder; owned by the writer.
const char *hm_shard_pattern(const struct hm_shard_writer *writer);

// Rows per shard: row n of the side (from 0) is row n % capacity of shard n / capacity.
uint64_t hm_shard_capacity(const struct hm_shard_writer *writer);

// Writes the next row [vocab]. HM_IO names the shard.
hm_status hm_shard_append(struct hm_shard_writer *writer, const float *row, struct hm_error *err);

// Finishes the last shard and frees the writer (NULL is allowed).
hm_status hm_shard_close(struct hm_shard_writer *writer, struct hm_error *err);

// Removes the shards an earlier log of this name left: 00000, 00001, ... of the side up to the first that is missing.
// Later ones (someone removed one in between) stay until they are overwritten; no line of the new log names them.
hm_status hm_shard_remove(const char *log_path, const char *side, struct hm_error *err);

#endif
