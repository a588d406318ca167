// config.json: see config.h. The tables of defaults follow transformers' Qwen3Config, Qwen2Config and LlamaConfig.
#include "decode/config_parts.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERS_MOST = 1024, HEADS_MOST = 4096 };

// The architectures and what they do when config.json is silent.
static const struct architecture {
    const char *name;
    size_t max_positions, head_dim; // head_dim 0: hidden / heads
    bool qk_norm;
    bool always_qkv_bias;  // else as "attention_bias" says, which then covers the output projection too
    bool mlp_bias_allowed; // "mlp_bias" has a meaning
    bool windowed;         // "use_sliding_window" has a meaning
    int32_t bos, eos;      // -1: none
} architectures[] = {
    {"Qwen3ForCausalLM", 32768, 128, true, false, false, true, -1, -1},
    {"Qwen2ForCausalLM", 32768, 0, false, true, false, true, -1, -1},
    {"LlamaForCausalLM", 2048, 0, false, false, true, false, 1, 2},
};

hm_status hm_config_size(const char *path, const cJSON *in, const char *key, size_t most, size_t *out,
                         struct hm_error *err)
{
    if (!hm_json_find(in, key)) return HM_OK;
    int64_t value;
    hm_status rc = hm_json_integer(path, in, key, 1, (int64_t)most, &value, err);
    if (!rc) *out = (size_t)value;
    return rc;
}

hm_status hm_config_number(const char *path, const cJSON *in, const char *key, double *out, struct hm_error *err)
{
    return hm_json_find(in, key) ? hm_json_number(path, in, key, out, err) : HM_OK;
}

hm_status hm_config_bool(const char *path, const cJSON *in, const char *key, bool *out, struct hm_error *err)
{
    return hm_json_find(in, key) ? hm_json_bool(path, in, key, out, err) : HM_OK;
}

static hm_status read_architecture(const char *path, const cJSON *in, const struct architecture **out,
                                   struct hm_error *err)
{
    const cJSON *list;
    hm_status rc = hm_json_array(path, in, "architectures", &list, err);
    if (rc) return rc;
    const cJSON *first = list->child;
    if (!cJSON_IsString(first))
        return hm_fail(err, HM_FORMAT, "%s: key \"architectures\": expected a name, found %s", path,
                       hm_json_kind(first));
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(first->valuestring, architectures[i].name) == 0) {
            *out = &architectures[i];
            return HM_OK;
        }
    return hm_fail(
        err, HM_UNSUPPORTED,
        "%s: key \"architectures\": expected Qwen3ForCausalLM, Qwen2ForCausalLM or LlamaForCausalLM, found \"%.64s\"",
        path, first->valuestring);
}

static hm_status read_token(const char *path, const char *key, const cJSON *value, size_t vocab, int32_t *out,
                            struct hm_error *err)
{
    if (!cJSON_IsNumber(value))
        return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected a token id, found %s", path, key, hm_json_kind(value));
    double d = value->valuedouble;
    if (!(d >= 0 && d < (double)vocab) || d != (double)(int32_t)d)
        return hm_fail(err, HM_RANGE, "%s: key \"%s\": expected a token id below %zu, found %.17g", path, key, vocab,
                       d);
    *out = (int32_t)d;
    return HM_OK;
}

hm_status hm_config_tokens(const char *path, const cJSON *in, struct hm_config *config, struct hm_error *err)
{
    static const char EOS[] = "eos_token_id", BOS[] = "bos_token_id";
    const cJSON *eos = hm_json_find(in, EOS), *bos = hm_json_find(in, BOS);
    hm_status rc = HM_OK;
    // An explicit null takes the default of the architecture back.
    if (cJSON_GetObjectItemCaseSensitive(in, EOS)) config->eos_count = 0;
    if (cJSON_GetObjectItemCaseSensitive(in, BOS)) config->bos = -1;
    if (bos) rc = read_token(path, BOS, bos, config->vocab, &config->bos, err);
    if (rc || !eos) return rc;
    if (!cJSON_IsArray(eos)) {
        config->eos_count = 1;
        return read_token(path, EOS, eos, config->vocab, &config->eos[0], err);
    }
    for (const cJSON *item = eos->child; item && !rc; item = item->next) {
        if (config->eos_count == HM_EOS_MOST)
            return hm_fail(err, HM_RANGE, "%s: key \"%s\": expected at most %d token ids, found %d", path, EOS,
                           HM_EOS_MOST, cJSON_GetArraySize(eos));
        rc = read_token(path, EOS, item, config->vocab, &config->eos[config->eos_count++], err);
    }
    return rc;
}

hm_status hm_config_sizes(const char *path, const cJSON *in, struct hm_config *c, struct hm_error *err)
{
    const struct {
        const char *key;
        size_t most;
        size_t *out;
    } needed[] = {
        {"vocab_size", HM_VOCAB_MOST, &c->vocab},
        {"hidden_size", HM_WIDTH_MOST, &c->hidden},
        {"intermediate_size", HM_WIDTH_MOST, &c->intermediate},
        {"num_hidden_layers", LAYERS_MOST, &c->layers},
        {"num_attention_heads", HEADS_MOST, &c->heads},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        int64_t value;
        hm_status rc = hm_json_integer(path, in, needed[i].key, 1, (int64_t)needed[i].most, &value, err);
        if (rc) return rc;
        *needed[i].out = (size_t)value;
    }
    c->kv_heads = c->heads;
    hm_status rc = hm_config_size(path, in, "num_key_value_heads", HEADS_MOST, &c->kv_heads, err);
    if (!rc) rc = hm_config_size(path, in, "max_position_embeddings", HM_POSITIONS_MOST, &c->max_positions, err);
    if (rc) return rc;
    if (c->vocab < 2)
        return hm_fail(err, HM_RANGE, "%s: key \"vocab_size\": expected at least 2, found %zu", path, c->vocab);
    if (c->heads % c->kv_heads != 0)
        return hm_fail(err, HM_SHAPE, "%s: key \"num_key_value_heads\": expected a divisor of %zu heads, found %zu",
                       path, c->heads, c->kv_heads);
    return HM_OK;
}

static hm_status read_head_dim(const char *path, const cJSON *in, const struct architecture *a, struct hm_config *c,
                               struct hm_error *err)
{
    c->head_dim = a->head_dim ? a->head_dim : c->hidden / c->heads;
    hm_status rc = hm_config_size(path, in, "head_dim", HM_HEAD_DIM_MOST, &c->head_dim, err);
    if (rc) return rc;
    if (c->head_dim < 2 || c->head_dim > HM_HEAD_DIM_MOST || c->head_dim % 2 != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: key \"head_dim\": expected an even number up to %d, found %zu", path,
                       HM_HEAD_DIM_MOST, c->head_dim);
    if (!hm_json_find(in, "head_dim") && !a->head_dim && c->hidden % c->heads != 0)
        return hm_fail(err, HM_SHAPE, "%s: key \"hidden_size\": expected a multiple of %zu heads, found %zu", path,
                       c->heads, c->hidden);
    return HM_OK;
}

hm_status hm_config_numbers(const char *path, const cJSON *in, struct hm_config *c, struct hm_error *err)
{
    double epsilon = 1e-6;
    hm_status rc = hm_config_number(path, in, "rms_norm_eps", &epsilon, err);
    if (!rc && !(epsilon > 0 && epsilon < 1))
        rc = hm_fail(err, HM_RANGE, "%s: key \"rms_norm_eps\": expected a number between 0 and 1, found %.17g", path,
                     epsilon);
    c->rms_epsilon = (float)epsilon;
    const char *act = "silu";
    if (!rc && hm_json_find(in, "hidden_act")) rc = hm_json_string(path, in, "hidden_act", &act, err);
    if (!rc && strcmp(act, "silu") != 0)
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: key \"hidden_act\": expected \"silu\", found \"%.64s\"", path, act);
    return rc;
}

static hm_status read_biases(const char *path, const cJSON *in, const struct architecture *a, struct hm_config *c,
                             struct hm_error *err)
{
    bool attention = false, mlp = false;
    hm_status rc = hm_config_bool(path, in, "tie_word_embeddings", &c->tied, err);
    if (!rc) rc = hm_config_bool(path, in, "attention_bias", &attention, err);
    if (!rc) rc = hm_config_bool(path, in, "mlp_bias", &mlp, err);
    c->qkv_bias = attention || a->always_qkv_bias;
    c->out_bias = attention && !a->always_qkv_bias;
    c->mlp_bias = mlp && a->mlp_bias_allowed;
    c->qk_norm = a->qk_norm;
    return rc;
}

static hm_status refuse_windows(const char *path, const cJSON *in, const struct architecture *a, struct hm_error *err)
{
    bool window = false;
    hm_status rc = a->windowed ? hm_config_bool(path, in, "use_sliding_window", &window, err) : HM_OK;
    if (rc) return rc;
    if (window) return hm_fail(err, HM_UNSUPPORTED, "%s: key \"use_sliding_window\": expected false, found true", path);
    if (!hm_json_find(in, "layer_types")) return HM_OK;
    const cJSON *types;
    rc = hm_json_array(path, in, "layer_types", &types, err);
    if (rc) return rc;
    for (const cJSON *t = types->child; t; t = t->next)
        if (!cJSON_IsString(t) || strcmp(t->valuestring, "full_attention") != 0)
            return hm_fail(err, HM_UNSUPPORTED, "%s: key \"layer_types\": expected \"full_attention\", found %s%.64s%s",
                           path, cJSON_IsString(t) ? "\"" : "", cJSON_IsString(t) ? t->valuestring : hm_json_kind(t),
                           cJSON_IsString(t) ? "\"" : "");
    return HM_OK;
}

hm_status hm_config_unquantised(const char *path, const cJSON *in, struct hm_error *err)
{
    static const char *const keys[] = {"quantization_config", "compression_config"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hm_json_find(in, keys[i]))
            return hm_fail(err, HM_UNSUPPORTED, "%s: key \"%s\": expected unquantised weights, found a quantisation",
                           path, keys[i]);
    return HM_OK;
}

static hm_status read_config(const char *path, const cJSON *in, struct hm_config *c, struct hm_error *err)
{
    if (!cJSON_IsObject(in)) return hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", path, hm_json_kind(in));
    const struct architecture *a = NULL;
    hm_status rc = read_architecture(path, in, &a, err);
    if (rc) return rc;
    c->architecture = a->name;
    c->bos = a->bos;
    if (a->eos >= 0) c->eos[c->eos_count++] = a->eos;
    c->max_positions = a->max_positions;
    rc = hm_config_sizes(path, in, c, err);
    if (!rc) rc = read_head_dim(path, in, a, c, err);
    if (!rc) rc = hm_config_numbers(path, in, c, err);
    if (!rc) rc = read_biases(path, in, a, c, err);
    if (!rc) rc = refuse_windows(path, in, a, err);
    if (!rc) rc = hm_config_unquantised(path, in, err);
    if (!rc) rc = hm_config_rope(path, in, c, err);
    if (!rc) rc = hm_config_tokens(path, in, c, err);
    return rc;
}

hm_status hm_config_read(const char *dir, struct hm_config *out, struct hm_error *err)
{
    *out = (struct hm_config){.bos = -1};
    char *path = hm_path_join(dir, "config.json");
    if (!path) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    cJSON *in;
    hm_status rc = hm_json_read(path, HM_CONFIG_FILE_MOST, &in, err);
    if (!rc) rc = read_config(path, in, out, err);
    if (!rc) rc = hm_config_generation(dir, out, err);
    cJSON_Delete(in);
    free(path);
    return rc;
}
