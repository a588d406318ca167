// Shared by the files that read configurations; not for others.
#ifndef HM_DECODE_CONFIG_PARTS_H
#define HM_DECODE_CONFIG_PARTS_H

#include "base/json.h"
#include "decode/config.h"

// Optional members: *out keeps its value when the key is absent or null.
hm_status hm_config_size(const char *path, const cJSON *in, const char *key, size_t most, size_t *out,
                         struct hm_error *err); // 1 to most
hm_status hm_config_number(const char *path, const cJSON *in, const char *key, double *out, struct hm_error *err);
hm_status hm_config_bool(const char *path, const cJSON *in, const char *key, bool *out, struct hm_error *err);

// "eos_token_id" and "bos_token_id": a token id or (eos) a list of them, in [0, config->vocab).
hm_status hm_config_tokens(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err);

// config_rope.c: "rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor".
hm_status hm_config_rope(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err);

// config_generation.c: generation_config.json of a folder, when there is one.
hm_status hm_config_generation(const char *dir, struct hm_config *config, struct hm_error *err);

#endif
