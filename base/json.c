// JSON from outside: see json.h. cJSON does the parsing; what it is lax about (depth, duplicate keys, bytes after the
// value, encoding) is checked here.
#include "base/json.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { DEEPEST = 64 };

static hm_status check_utf8(const char *where, const char *text, size_t size, struct hm_error *err)
{
    for (size_t i = 0; i < size;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(size - i), &point);
        if (n <= 0) return hm_fail(err, HM_FORMAT, "%s: byte %zu: expected UTF-8, found byte 0x%02x", where, i, (unsigned char)text[i]);
        if (point == 0) return hm_fail(err, HM_FORMAT, "%s: byte %zu: expected JSON, found a zero byte", where, i);
        i += (size_t)n;
    }
    return HM_OK;
}

// cJSON recurses, so depth is bounded before it sees the text; it would cut a string at an escaped zero byte.
static hm_status check_depth_and_zeros(const char *where, const char *text, size_t size, struct hm_error *err)
{
    int depth = 0;
    int in_string = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\' && size - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
                return hm_fail(err, HM_FORMAT, "%s: byte %zu: expected a string without \\u0000", where, i);
            if (c == '\\') i++;
            else if (c == '"') in_string = 0;
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '{' || c == '[') {
            if (++depth > DEEPEST)
                return hm_fail(err, HM_FORMAT, "%s: byte %zu: expected at most %d nested values", where, i, DEEPEST);
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return HM_OK;
}

static int by_name(const void *a, const void *b)
{
    const cJSON *const *x = a, *const *y = b;
    return strcmp((*x)->string, (*y)->string);
}

static hm_status check_keys(const char *where, const cJSON *object, struct hm_error *err)
{
    size_t count = 0, i = 0;
    for (const cJSON *c = object->child; c; c = c->next) count++;
    if (count < 2) return HM_OK;
    const cJSON **members = malloc(count * sizeof *members);
    if (!members) return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
    for (const cJSON *c = object->child; c; c = c->next) members[i++] = c;
    qsort(members, count, sizeof *members, by_name);
    hm_status rc = HM_OK;
    for (i = 1; i < count && !rc; i++)
        if (strcmp(members[i - 1]->string, members[i]->string) == 0)
            rc = hm_fail(err, HM_FORMAT, "%s: key \"%s\" appears twice in one object", where, members[i]->string);
    free(members);
    return rc;
}

static hm_status check_tree(const char *where, const cJSON *value, struct hm_error *err)
{
    if (cJSON_IsObject(value)) {
        hm_status rc = check_keys(where, value, err);
        if (rc) return rc;
    }
    for (const cJSON *c = value->child; c; c = c->next)
        if (c->child) {
            hm_status rc = check_tree(where, c, err);
            if (rc) return rc;
        }
    return HM_OK;
}

hm_status hm_json_parse(const char *where, const char *text, size_t size, cJSON **out, struct hm_error *err)
{
    *out = NULL;
    hm_status rc = check_utf8(where, text, size, err);
    if (!rc) rc = check_depth_and_zeros(where, text, size, err);
    if (rc) return rc;
    const char *end = NULL;
    cJSON *value = cJSON_ParseWithLengthOpts(text, size, &end, 0);
    if (!value) {
        size_t at = end && end >= text && end <= text + size ? (size_t)(end - text) : 0;
        return hm_fail(err, HM_FORMAT, "%s: byte %zu: not valid JSON", where, at);
    }
    for (; end < text + size; end++)
        if (!strchr(" \t\r\n", *end)) {
            cJSON_Delete(value);
            return hm_fail(err, HM_FORMAT, "%s: byte %zu: expected the end of the document, found 0x%02x", where,
                           (size_t)(end - text), (unsigned char)*end);
        }
    rc = check_tree(where, value, err);
    if (rc) cJSON_Delete(value);
    else *out = value;
    return rc;
}

hm_status hm_json_read(const char *path, size_t limit, cJSON **out, struct hm_error *err)
{
    char *text;
    size_t size;
    *out = NULL;
    hm_status rc = hm_file_read(path, limit, &text, &size, err);
    if (rc) return rc;
    rc = hm_json_parse(path, text, size, out, err);
    free(text);
    return rc;
}

const char *hm_json_kind(const cJSON *value)
{
    if (!value) return "nothing";
    if (cJSON_IsString(value)) return "a string";
    if (cJSON_IsNumber(value)) return "a number";
    if (cJSON_IsBool(value)) return "a boolean";
    if (cJSON_IsArray(value)) return "an array";
    if (cJSON_IsObject(value)) return "an object";
    return "null";
}

const cJSON *hm_json_find(const cJSON *in, const char *key)
{
    if (!cJSON_IsObject(in)) return NULL;
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsNull(value) ? NULL : value;
}

static hm_status mismatch(const char *where, const char *key, const char *expected, const cJSON *found,
                          struct hm_error *err)
{
    return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected %s, found %s", where, key, expected, hm_json_kind(found));
}

hm_status hm_json_object(const char *where, const cJSON *in, const char *key, const cJSON **out, struct hm_error *err)
{
    *out = hm_json_find(in, key);
    return cJSON_IsObject(*out) ? HM_OK : mismatch(where, key, "an object", *out, err);
}

hm_status hm_json_array(const char *where, const cJSON *in, const char *key, const cJSON **out, struct hm_error *err)
{
    *out = hm_json_find(in, key);
    return cJSON_IsArray(*out) ? HM_OK : mismatch(where, key, "an array", *out, err);
}

hm_status hm_json_string(const char *where, const cJSON *in, const char *key, const char **out, struct hm_error *err)
{
    const cJSON *value = hm_json_find(in, key);
    if (!cJSON_IsString(value)) return mismatch(where, key, "a string", value, err);
    *out = value->valuestring;
    return HM_OK;
}

hm_status hm_json_integer(const char *where, const cJSON *in, const char *key, int64_t least, int64_t most, int64_t *out,
                          struct hm_error *err)
{
    const cJSON *value = hm_json_find(in, key);
    if (!cJSON_IsNumber(value)) return mismatch(where, key, "an integer", value, err);
    double d = value->valuedouble;
    if (!(d >= -0x1p53 && d <= 0x1p53) || d != floor(d))
        return hm_fail(err, HM_FORMAT, "%s: key \"%s\": expected an integer, found %.17g", where, key, d);
    if (d < (double)least || d > (double)most)
        return hm_fail(err, HM_RANGE, "%s: key \"%s\": expected %lld to %lld, found %.0f", where, key, (long long)least,
                       (long long)most, d);
    *out = (int64_t)d;
    return HM_OK;
}

hm_status hm_json_number(const char *where, const cJSON *in, const char *key, double *out, struct hm_error *err)
{
    const cJSON *value = hm_json_find(in, key);
    if (!cJSON_IsNumber(value)) return mismatch(where, key, "a number", value, err);
    if (!isfinite(value->valuedouble)) return mismatch(where, key, "a finite number", value, err);
    *out = value->valuedouble;
    return HM_OK;
}

hm_status hm_json_bool(const char *where, const cJSON *in, const char *key, bool *out, struct hm_error *err)
{
    const cJSON *value = hm_json_find(in, key);
    if (!cJSON_IsBool(value)) return mismatch(where, key, "a boolean", value, err);
    *out = cJSON_IsTrue(value);
    return HM_OK;
}
