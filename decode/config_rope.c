// The rotary embedding's part of config.json, in the three spellings that are about: "rope_theta" beside an optional
// "rope_scaling" whose kind is at "type" or at "rope_type", and "rope_parameters", which holds everything.
#include "decode/config_parts.h"

#include <string.h>

// Beyond this neither the frequencies nor their wavelengths leave the range of ordinary doubles.
static const double THETA_MOST = 1e15, FACTOR_MOST = 1e6;

static hm_status number_in(const char *path, const char *object, const cJSON *in, const char *key, double least,
                           double most, double *out, struct hm_error *err)
{
    char place[96];
    size_t n = strlen(object);
    memcpy(place, object, n);
    memcpy(place + n, key, strlen(key) + 1);
    const cJSON *value = hm_json_find(in, key);
    if (!cJSON_IsNumber(value))
        return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected a number, found %s", path, place, hm_json_kind(value));
    if (!(value->valuedouble >= least && value->valuedouble <= most))
        return hm_fail(err, HM_RANGE, "%s: key \"%s\": expected a number from %g to %g, found %.17g", path, place,
                       least, most, value->valuedouble);
    *out = value->valuedouble;
    return HM_OK;
}

static hm_status read_llama3(const char *path, const char *object, const cJSON *in, struct hm_config *c,
                             struct hm_error *err)
{
    struct hm_rope_config *r = &c->rope;
    r->kind = HM_ROPE_LLAMA3;
    r->original_positions = (double)c->max_positions;
    hm_status rc = number_in(path, object, in, "factor", 1, FACTOR_MOST, &r->factor, err);
    if (!rc) rc = number_in(path, object, in, "low_freq_factor", 1e-6, FACTOR_MOST, &r->low_frequency, err);
    if (!rc) rc = number_in(path, object, in, "high_freq_factor", 1e-6, FACTOR_MOST, &r->high_frequency, err);
    if (!rc && hm_json_find(in, "original_max_position_embeddings"))
        rc = number_in(path, object, in, "original_max_position_embeddings", 1, 1e9, &r->original_positions, err);
    if (!rc && !(r->high_frequency > r->low_frequency))
        rc = hm_fail(err, HM_RANGE, "%s: key \"%shigh_freq_factor\": expected more than low_freq_factor %g, found %g",
                     path, object, r->low_frequency, r->high_frequency);
    return rc;
}

static hm_status read_kind(const char *path, const char *object, const cJSON *in, struct hm_config *c,
                           struct hm_error *err)
{
    const cJSON *kind = hm_json_find(in, "rope_type");
    if (!kind) kind = hm_json_find(in, "type");
    if (!kind) {
        // Nested objects are per layer type ("full_attention": {...}); anything else is a plain rotation.
        for (const cJSON *e = in->child; e; e = e->next)
            if (cJSON_IsObject(e))
                return hm_fail(err, HM_UNSUPPORTED,
                               "%s: key \"%s%.64s\": expected one rotation for all layers, found an object", path,
                               object, e->string);
        return HM_OK;
    }
    if (!cJSON_IsString(kind))
        return hm_fail(err, HM_FORMAT, "%s: key \"%s%s\": expected a string, found %s", path, object, kind->string,
                       hm_json_kind(kind));
    if (strcmp(kind->valuestring, "default") == 0) return HM_OK;
    if (strcmp(kind->valuestring, "llama3") == 0) return read_llama3(path, object, in, c, err);
    return hm_fail(err, HM_UNSUPPORTED, "%s: key \"%s%s\": expected \"default\" or \"llama3\", found \"%.64s\"", path,
                   object, kind->string, kind->valuestring);
}

static hm_status refuse_partial(const char *path, const char *object, const cJSON *in, struct hm_error *err)
{
    if (!hm_json_find(in, "partial_rotary_factor")) return HM_OK;
    double factor;
    hm_status rc = number_in(path, object, in, "partial_rotary_factor", 0, 1, &factor, err);
    if (!rc && factor != 1)
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: key \"%spartial_rotary_factor\": expected 1, found %g", path, object,
                     factor);
    return rc;
}

hm_status hm_config_rope(const char *path, const cJSON *in, struct hm_config *c, struct hm_error *err)
{
    static const char *const names[] = {"rope_scaling", "rope_parameters"};
    static const char *const objects[] = {"rope_scaling.", "rope_parameters."};
    const cJSON *params = NULL;
    const char *object = "";
    // As transformers does: a non-empty "rope_scaling" goes before "rope_parameters".
    for (size_t i = 0; i < 2 && !params; i++) {
        const cJSON *value = hm_json_find(in, names[i]);
        if (value && !cJSON_IsObject(value))
            return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected an object, found %s", path, names[i],
                           hm_json_kind(value));
        if (value && value->child) {
            params = value;
            object = objects[i];
        }
    }
    c->rope = (struct hm_rope_config){.kind = HM_ROPE_PLAIN, .theta = 10000};
    hm_status rc = refuse_partial(path, "", in, err);
    if (!rc && params) rc = refuse_partial(path, object, params, err);
    if (!rc && params) rc = read_kind(path, object, params, c, err);
    if (rc) return rc;
    if (params && hm_json_find(params, "rope_theta"))
        return number_in(path, object, params, "rope_theta", 1, THETA_MOST, &c->rope.theta, err);
    if (hm_json_find(in, "rope_theta"))
        return number_in(path, "", in, "rope_theta", 1, THETA_MOST, &c->rope.theta, err);
    return HM_OK;
}
