// Shared by the files that read configurations; not for others.
#ifndef HM_DECODE_CONFIG_PARTS_H
#define HM_DECODE_CONFIG_PARTS_H

#include "base/json.h"
#include "decode/config.h"

enum {
    HM_CONFIG_FILE_MOST = 4 << 20, // bytes of a config.json
    HM_VOCAB_MOST = 1 << 22,
    HM_WIDTH_MOST = 1 << 20,
    HM_HEAD_DIM_MOST = 256,
    HM_POSITIONS_MOST = 1 << 24 // positions stay exact in float and in the rotation's argument reduction
};

// Optional members: *out keeps its value when the key is absent or null.
hm_status hm_config_size(const char *path, const cJSON *in, const char *key, size_t most, size_t *out,
                         struct hm_error *err); // 1 to most
hm_status hm_config_number(const char *path, const cJSON *in, const char *key, double *out, struct hm_error *err);
hm_status hm_config_bool(const char *path, const cJSON *in, const char *key, bool *out, struct hm_error *err);

// The sizes any transformer has: vocabulary, widths, layers and heads are required; key/value heads default to the heads;
// max_positions keeps its value when the key is absent.
hm_status hm_config_sizes(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err);
hm_status hm_config_numbers(const char *path, const cJSON *in, struct hm_config *config,
                            struct hm_error *err); // "rms_norm_eps"; "hidden_act" must be silu
hm_status hm_config_unquantised(const char *path, const cJSON *in, struct hm_error *err);

// "eos_token_id" and "bos_token_id": a token id or (eos) a list of them, in [0, config->vocab).
hm_status hm_config_tokens(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err);

// config_rope.c: "rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor".
hm_status hm_config_rope(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err);

// config_generation.c: generation_config.json of a folder, when there is one.
hm_status hm_config_generation(const char *dir, struct hm_config *config, struct hm_error *err);

#endif
