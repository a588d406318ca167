// A transformer with its weights on a device: opened from a checkpoint folder, then immutable.
//
// Architectures: Qwen3ForCausalLM, Qwen2ForCausalLM, LlamaForCausalLM (docs/models.md says what is read and refused).
// A logits row is a function of its own context alone, bit for bit: the same computed by itself, in a prefill of any
// chunking or as one node of a tree, for any number of threads (docs/architecture.md). The device must outlive the
// model; a device, its models and their caches are used by one thread at a time.
#ifndef HM_DECODE_MODEL_H
#define HM_DECODE_MODEL_H

#include "base/error.h"
#include "decode/cache.h"
#include "decode/config.h"
#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_model_info {
    const char *name;         // last component of the folder's path
    const char *architecture; // as in config.json, e.g. "Qwen3ForCausalLM"
    char sha256[65];          // of the weight files, one after the other in the order of their names
    size_t vocab, layers, hidden, intermediate, heads, kv_heads, head_dim;
    size_t max_positions;     // no token is placed at a position >= this
    enum hm_dtype dtype;      // of the embedding table
    size_t weight_bytes;      // that one pass reads: all matrices, without the embedding table unless it is the head
    int32_t eos[HM_EOS_MOST]; // of generation_config.json where it names any, else of config.json; may be empty
    size_t eos_count;
    int32_t bos;                              // -1: none
    bool has_generation_defaults;             // a generation_config.json was there
    struct hm_generation_defaults generation; // config.h
};

struct hm_model;

// Reads and checks config.json, generation_config.json (optional) and the safetensors files of `dir`, loads the weights
// on the device and lets go of the files. Errors name the file, the key or tensor, what was expected and found.
hm_status hm_model_open(const char *dir, struct hm_device *device, struct hm_model **out, struct hm_error *err);
void hm_model_close(struct hm_model *model); // NULL is allowed
const struct hm_model_info *hm_model_info(const struct hm_model *model);
struct hm_device *hm_model_device(const struct hm_model *model);

// Hidden states to keep of a pass: the residual stream (attention and MLP added, no final norm) at the input of some
// layers (EAGLE-3 calls it a feature; docs/decoders.md). Layer 0's input is the embedding. They are there when the pass
// returns, for peers of the device as well.
struct hm_taps {
    const size_t *layer; // [count], ascending, each below the model's layers
    size_t count;
    struct hm_view to;   // on the model's device: row r of the pass at to.offset + r * count * hidden, layers in order
};

// One pass over `rows` new tokens. Row r becomes scratch row hm_cache_scratch() + r of the cache, as counted before the
// pass. parent[r]: -1 to follow the last committed token, otherwise the index of an earlier scratch row, counted since
// the last commit, across passes: in the first pass after a commit that is a row of this pass, and a causal chunk has
// parent[r] = r - 1; in a later one (a tree grown level by level) it may be a row of an earlier pass.
struct hm_pass {
    const int32_t *token;  // [rows], each in [0, vocab)
    const int32_t *parent; // [rows]
    size_t rows;
    const uint32_t *logits_for; // [logits_count] rows of this pass, in any order
    size_t logits_count;        // 0: keys and values only
    const struct hm_taps *taps; // NULL: none kept
};

// Runs the pass; logits [logits_count][vocab] in host memory, row j for pass row logits_for[j] (NULL when the count is
// 0). The rows stay scratch until committed or dropped. HM_RANGE for a token, parent or row outside its range and when
// the cache or max_positions is exceeded; on any failure the cache is unchanged. A pass may be of any length.
hm_status hm_model_forward(struct hm_model *model, struct hm_cache *cache, const struct hm_pass *pass, float *logits,
                           struct hm_error *err);

// What a prefill tells while it goes on. Everything may be NULL.
struct hm_prefill_watch {
    void (*progress)(void *user, size_t done, size_t total); // after each chunk
    const struct hm_taps *taps; // room for HM_PREFILL_ROWS rows
    hm_status (*tapped)(void *user, size_t rows, struct hm_error *err); // after each chunk: its taps lie at taps->to
    void *user;
};
enum { HM_PREFILL_ROWS = 96 }; // most rows of a chunk

// Appends `count` tokens and commits them, in chunks; scratch rows are dropped first. logits [vocab] of the last token,
// or NULL; watch may be NULL. On failure the cache holds its former tokens only.
hm_status hm_model_prefill(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t count,
                           float *logits, const struct hm_prefill_watch *watch, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
