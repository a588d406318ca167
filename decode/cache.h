// Key/value cache of one sequence: committed slots first, then the scratch slots of passes not yet decided on.
//
// Slot i < length holds the key and value of committed token i. Passes (model.h) append scratch rows behind them, row s
// in slot length + s, each with a parent: an earlier scratch row, or the last committed token. hm_cache_commit keeps
// one path of them and drops the rest. One thread at a time may use a cache; a model may have several.
#ifndef HM_DECODE_CACHE_H
#define HM_DECODE_CACHE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_cache;
struct hm_model;

// Opens an empty cache of `positions` slots, committed and scratch together. The memory (2 * layers * kv_heads *
// head_dim floats a slot) is reserved and becomes real as slots are used. positions may exceed the model's
// max_positions, to leave room for scratch rows; no token is ever placed at a position beyond it. The cache must be
// closed before its model. HM_RANGE when positions is 0 or beyond 2^31 - 1, HM_MEMORY.
hm_status hm_cache_open(struct hm_model *model, size_t positions, struct hm_cache **out, struct hm_error *err);
void hm_cache_close(struct hm_cache *cache); // NULL is allowed

size_t hm_cache_length(const struct hm_cache *cache);    // committed tokens
size_t hm_cache_scratch(const struct hm_cache *cache);   // scratch rows since the last commit, truncate or drop
size_t hm_cache_positions(const struct hm_cache *cache); // slots in all

// Commits scratch rows path[0 .. n): path[0] follows the last committed token, each later one is a child of the one
// before it. Their slots are moved up behind the committed ones and every other scratch row is dropped. n = 0 drops
// all. HM_USAGE when path is not such a chain; the cache is then unchanged.
hm_status hm_cache_commit(struct hm_cache *cache, const uint32_t *path, size_t n, struct hm_error *err);

// Keeps the first `length` committed tokens (all of them when length is larger) and no scratch rows.
void hm_cache_truncate(struct hm_cache *cache, size_t length);
void hm_cache_drop_scratch(struct hm_cache *cache);

#ifdef __cplusplus
}
#endif

#endif
