// generation_config.json: the end tokens, and sampling defaults that are shown to the caller but not applied.
#include "decode/config_parts.h"

#include "base/file.h"

#include <stdlib.h>
#include <unistd.h>

static const size_t FILE_MOST = 4u << 20;

static hm_status read_defaults(const char *path, const cJSON *in, struct hm_generation_defaults *g,
                               struct hm_error *err)
{
    g->has_do_sample = hm_json_find(in, "do_sample") != NULL;
    g->has_temperature = hm_json_find(in, "temperature") != NULL;
    g->has_top_p = hm_json_find(in, "top_p") != NULL;
    g->has_top_k = hm_json_find(in, "top_k") != NULL;
    g->has_repetition_penalty = hm_json_find(in, "repetition_penalty") != NULL;
    hm_status rc = hm_config_bool(path, in, "do_sample", &g->do_sample, err);
    if (!rc) rc = hm_config_number(path, in, "temperature", &g->temperature, err);
    if (!rc) rc = hm_config_number(path, in, "top_p", &g->top_p, err);
    if (!rc) rc = hm_config_number(path, in, "repetition_penalty", &g->repetition_penalty, err);
    if (!rc && g->has_top_k) rc = hm_json_integer(path, in, "top_k", -1, INT32_MAX, &g->top_k, err);
    return rc;
}

hm_status hm_config_generation(const char *dir, struct hm_config *config, struct hm_error *err)
{
    cJSON *in = NULL;
    hm_status rc = HM_OK;
    char *path = hm_path_join(dir, "generation_config.json");
    if (!path) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir);
    if (access(path, F_OK) != 0) goto cleanup;
    rc = hm_json_read(path, FILE_MOST, &in, err);
    if (!rc && !cJSON_IsObject(in))
        rc = hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", path, hm_json_kind(in));
    if (rc) goto cleanup;
    config->has_generation = true;
    // Null or absent ids leave those of config.json in place.
    struct hm_config named = {.vocab = config->vocab, .bos = -1};
    rc = hm_config_tokens(path, in, &named, err);
    if (!rc && named.eos_count) {
        for (size_t i = 0; i < named.eos_count; i++) config->eos[i] = named.eos[i];
        config->eos_count = named.eos_count;
    }
    if (!rc && named.bos >= 0) config->bos = named.bos;
    if (!rc) rc = read_defaults(path, in, &config->generation, err);
cleanup:
    cJSON_Delete(in);
    free(path);
    return rc;
}
