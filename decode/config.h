// What a checkpoint folder says about its model: config.json and, when there, generation_config.json.
//
// Every key that changes the arithmetic is read or refused; absent keys take the defaults of the Hugging Face
// configuration classes of the same architecture (docs/models.md lists them). All sizes are bounded here, so that
// products of two of them fit in 64 bits.
#ifndef HM_DECODE_CONFIG_H
#define HM_DECODE_CONFIG_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_EOS_MOST = 16 };

enum hm_rope_kind { HM_ROPE_PLAIN, HM_ROPE_LLAMA3 };

// Rotary embedding: frequency i of head_dim/2 is theta^(-2i/head_dim), rescaled for Llama 3.1 checkpoints.
struct hm_rope_config {
    enum hm_rope_kind kind;
    double theta;
    double factor, low_frequency, high_frequency, original_positions; // HM_ROPE_LLAMA3 only
};

// What generation_config.json recommends. Exposed, never applied by itself.
struct hm_generation_defaults {
    bool has_do_sample, has_temperature, has_top_p, has_top_k, has_repetition_penalty;
    bool do_sample;
    double temperature, top_p, repetition_penalty;
    int64_t top_k;
};

struct hm_config {
    const char *architecture; // static text, e.g. "Qwen3ForCausalLM"
    size_t vocab, layers, hidden, intermediate, heads, kv_heads, head_dim, max_positions;
    float rms_epsilon;
    bool tied; // the output head is the embedding table
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm; // RMS norm of each query and key head before the rotation
    struct hm_rope_config rope;
    int32_t eos[HM_EOS_MOST]; // of generation_config.json where it names any, else of config.json
    size_t eos_count;
    int32_t bos; // -1: none
    bool has_generation;
    struct hm_generation_defaults generation;
};

// HM_UNSUPPORTED for what is recognised but not computed here (other architectures, RoPE scalings, sliding windows,
// quantised weights), HM_FORMAT, HM_RANGE and HM_SHAPE for the rest; the message names the file and the key.
hm_status hm_config_read(const char *dir, struct hm_config *out, struct hm_error *err);

#ifdef __cplusplus
}
#endif

#endif
