// config.json of an EAGLE-3 head, in the forms that are about: EAGLE and SpecForge (flat, sometimes with "eagle_config"
// inside), DeepSpec (flat, "target_layer_ids") and speculators (sizes inside "transformer_layer_config").
#include "decode/eagle3.h"

#include "base/file.h"
#include "decode/config_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { EAGLE3, EAGLE_BEFORE, OTHER };

// The words an architecture's or a speculator's name holds, whatever their case and punctuation.
static enum kind kind_of_name(const char *name)
{
    char plain[64];
    size_t n = 0;
    for (const char *p = name; *p && n + 1 < sizeof plain; p++)
        if (isalnum((unsigned char)*p)) plain[n++] = (char)tolower((unsigned char)*p);
    plain[n] = 0;
    if (strstr(plain, "eagle3")) return EAGLE3;
    return strstr(plain, "eagle") || strstr(plain, "hass") ? EAGLE_BEFORE : OTHER;
}

static hm_status read_architecture(const char *path, const cJSON *in, char name[64], struct hm_error *err)
{
    const cJSON *list;
    hm_status rc = hm_json_array(path, in, "architectures", &list, err);
    if (rc) return rc;
    if (!cJSON_IsString(list->child))
        return hm_fail(err, HM_FORMAT, "%s: key \"architectures\": expected a name, found %s", path,
                       hm_json_kind(list->child));
    snprintf(name, 64, "%s", list->child->valuestring);
    return HM_OK;
}

// What a configuration says of itself; a plain architecture with a draft vocabulary is EAGLE's own form.
static hm_status classify(const char *path, const cJSON *in, char name[64], enum kind *kind, struct hm_error *err)
{
    if (!cJSON_IsObject(in)) return hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", path, hm_json_kind(in));
    hm_status rc = read_architecture(path, in, name, err);
    if (rc) return rc;
    const cJSON *speculator = hm_json_find(in, "speculators_model_type");
    *kind = cJSON_IsString(speculator) ? kind_of_name(speculator->valuestring) : kind_of_name(name);
    bool plain = !speculator && strstr(name, "ForCausalLM");
    if (*kind == OTHER && plain && hm_json_find(in, "draft_vocab_size")) *kind = EAGLE3;
    return HM_OK;
}

static hm_status refuse_before(const char *path, const char *name, struct hm_error *err)
{
    return hm_fail(
        err, HM_UNSUPPORTED,
        "%s: key \"architectures\": expected an EAGLE-3 head, found \"%s\"; EAGLE-1 and EAGLE-2 heads read other "
        "features and are not supported",
        path, name);
}

// ---- taps

// Adds the entries of a list; `shift` 1 where they name outputs of layers: the output of one is the input of the next.
static hm_status read_tap_list(const char *path, const char *key, const cJSON *list, size_t shift, size_t layers,
                               struct hm_eagle3_config *c, struct hm_error *err)
{
    if (!cJSON_IsArray(list))
        return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected a list of layers, found %s", path, key,
                       hm_json_kind(list));
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!cJSON_IsNumber(item))
            return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected numbers of layers, found %s", path, key,
                           hm_json_kind(item));
        double id = item->valuedouble;
        if (!(id >= 0 && id + (double)shift < (double)layers) || id != (double)(size_t)id)
            return hm_fail(err, HM_RANGE, "%s: key \"%s\": expected a layer below %zu of the target's %zu, found %.17g",
                           path, key, layers - shift, layers, id);
        size_t tap = (size_t)id + shift;
        if (c->tap_count == HM_EAGLE3_TAPS_MOST)
            return hm_fail(err, HM_UNSUPPORTED, "%s: key \"%s\": expected at most %d layers, found %d", path, key,
                           HM_EAGLE3_TAPS_MOST, cJSON_GetArraySize(list));
        if (c->tap_count && tap <= c->tap[c->tap_count - 1])
            return hm_fail(err, HM_UNSUPPORTED, "%s: key \"%s\": expected ascending layers, found %zu after %zu", path,
                           key, tap - shift, c->tap[c->tap_count - 1] - shift);
        c->tap[c->tap_count++] = tap;
    }
    return HM_OK;
}

static hm_status read_taps(const char *path, const cJSON *in, const cJSON *inner, size_t layers,
                           struct hm_eagle3_config *c, struct hm_error *err)
{
    const struct {
        const cJSON *in;
        const char *key;
        size_t shift;
    } lists[] = {
        {inner, "eagle_aux_hidden_state_layer_ids", 1}, // EAGLE as SGLang and its trainers read it: outputs
        {in, "target_layer_ids", 1},                    // DeepSpec: outputs
        {in, "eagle_aux_hidden_state_layer_ids", 0},    // speculators as vLLM reads it: inputs
        {in, "aux_hidden_state_layer_ids", 0},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists && c->tap_count == 0; i++) {
        const cJSON *list = hm_json_find(lists[i].in, lists[i].key);
        hm_status rc = list ? read_tap_list(path, lists[i].key, list, lists[i].shift, layers, c, err) : HM_OK;
        if (rc) return rc;
    }
    if (c->tap_count) return HM_OK;
    if (layers < 7)
        return hm_fail(
            err, HM_UNSUPPORTED,
            "%s: expected a list \"eagle_aux_hidden_state_layer_ids\" for a target of %zu layers, found nothing: "
            "the usual layers 2, N/2 and N-3 need seven",
            path, layers);
    c->tap[0] = 2;
    c->tap[1] = layers / 2;
    c->tap[2] = layers - 3;
    c->tap_count = 3;
    return HM_OK;
}

// ---- the rest

static hm_status refuse_biases(const char *path, const cJSON *sizes, struct hm_error *err)
{
    static const char *const keys[] = {"attention_bias", "mlp_bias"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool bias = false;
        hm_status rc = hm_config_bool(path, sizes, keys[i], &bias, err);
        if (rc) return rc;
        if (bias) return hm_fail(err, HM_UNSUPPORTED, "%s: key \"%s\": expected false, found true", path, keys[i]);
    }
    return HM_OK;
}

static hm_status read_variants(const char *path, const cJSON *in, const cJSON *inner, struct hm_eagle3_config *c,
                               struct hm_error *err)
{
    bool aux = true;
    // speculators norms before the residual unless told otherwise, everybody else does not.
    c->norm_before_residual = hm_json_find(in, "speculators_model_type") != NULL;
    hm_status rc = hm_config_bool(path, in, "norm_before_residual", &c->norm_before_residual, err);
    if (!rc) rc = hm_config_bool(path, in, "norm_output", &c->norm_output, err);
    if (!rc) rc = hm_config_bool(path, in, "fc_norm", &c->fc_norm, err);
    if (!rc) rc = hm_config_bool(path, inner, "norm_before_fc", &c->norm_before_fc, err);
    if (!rc) rc = hm_config_bool(path, in, "norm_before_fc", &c->norm_before_fc, err);
    if (!rc) rc = hm_config_bool(path, inner, "use_aux_hidden_state", &aux, err);
    if (!rc && !aux)
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: key \"eagle_config.use_aux_hidden_state\": expected true, found false",
                     path);
    return rc;
}

static hm_status object_at(const char *path, const cJSON *in, const char *key, const cJSON **out, struct hm_error *err)
{
    return hm_json_find(in, key) ? hm_json_object(path, in, key, out, err) : HM_OK;
}

static hm_status read_config(const char *path, const cJSON *in, size_t target_layers, struct hm_eagle3_config *c,
                             struct hm_error *err)
{
    enum kind kind;
    hm_status rc = classify(path, in, c->architecture, &kind, err);
    if (!rc && kind == EAGLE_BEFORE) rc = refuse_before(path, c->architecture, err);
    const cJSON *sizes = in, *inner = NULL;
    if (!rc) rc = object_at(path, in, "transformer_layer_config", &sizes, err);
    if (!rc) rc = object_at(path, in, "eagle_config", &inner, err);
    c->layer.max_positions = 2048; // of Llama configurations; it only matters to a rotation that is rescaled
    if (!rc) rc = hm_config_sizes(path, sizes, &c->layer, err);
    if (rc) return rc;
    if (c->layer.layers != 1)
        return hm_fail(err, HM_UNSUPPORTED, "%s: key \"num_hidden_layers\": expected 1, found %zu", path,
                       c->layer.layers);
    c->draft_vocab = c->layer.vocab;
    rc = hm_config_numbers(path, sizes, &c->layer, err);
    if (!rc) rc = hm_config_rope(path, sizes, &c->layer, err);
    if (!rc) rc = hm_config_unquantised(path, in, err);
    if (!rc) rc = refuse_biases(path, sizes, err);
    if (!rc) rc = hm_config_size(path, in, "draft_vocab_size", c->layer.vocab, &c->draft_vocab, err);
    if (!rc) rc = hm_config_size(path, in, "target_hidden_size", HM_WIDTH_MOST, &c->target_hidden, err);
    if (!rc) rc = read_variants(path, in, inner, c, err);
    if (!rc) rc = read_taps(path, in, inner, target_layers, c, err);
    return rc;
}

static hm_status open_config(const char *dir, char **path, cJSON **in, struct hm_error *err)
{
    *in = NULL;
    *path = hm_path_join(dir, "config.json");
    if (!*path) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    return hm_json_read(*path, HM_CONFIG_FILE_MOST, in, err);
}

hm_status hm_eagle3_config_read(const char *dir, size_t target_layers, struct hm_eagle3_config *out,
                                struct hm_error *err)
{
    *out = (struct hm_eagle3_config){.layer = {.bos = -1}};
    char *path;
    cJSON *in;
    hm_status rc = open_config(dir, &path, &in, err);
    if (!rc) rc = read_config(path, in, target_layers, out, err);
    cJSON_Delete(in);
    free(path);
    return rc;
}

hm_status hm_eagle3_detect(const char *dir, bool *is_eagle3, struct hm_error *err)
{
    *is_eagle3 = false;
    char *path, name[64];
    cJSON *in;
    enum kind kind = OTHER;
    hm_status rc = open_config(dir, &path, &in, err);
    if (!rc) rc = classify(path, in, name, &kind, err);
    if (!rc && kind == EAGLE_BEFORE) rc = refuse_before(path, name, err);
    *is_eagle3 = !rc && kind == EAGLE3;
    cJSON_Delete(in);
    free(path);
    return rc;
}
