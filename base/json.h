// JSON from outside, read through cJSON with limits, and typed look-ups whose errors name the file and the key.
//
// A document is refused when it nests deeper than 64, is not UTF-8, repeats a key inside one object, or has bytes
// after its value. Numbers arrive as doubles: integers are accepted up to 2^53.
#ifndef HM_BASE_JSON_H
#define HM_BASE_JSON_H

#include "base/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Parses size bytes. The caller frees *out with cJSON_Delete. `where` names the document in errors (a path, "line 7").
hm_status hm_json_parse(const char *where, const char *text, size_t size, cJSON **out, struct hm_error *err);

// Reads and parses a file of at most `limit` bytes.
hm_status hm_json_read(const char *path, size_t limit, cJSON **out, struct hm_error *err);

// Required members of an object: HM_FORMAT "where: expected ... at key "...", found ..." when absent or of another
// type. Strings stay owned by the document.
hm_status hm_json_object(const char *where, const cJSON *in, const char *key, const cJSON **out, struct hm_error *err);
hm_status hm_json_array(const char *where, const cJSON *in, const char *key, const cJSON **out, struct hm_error *err);
hm_status hm_json_string(const char *where, const cJSON *in, const char *key, const char **out, struct hm_error *err);
hm_status hm_json_integer(const char *where, const cJSON *in, const char *key, int64_t least, int64_t most, int64_t *out,
                          struct hm_error *err);
hm_status hm_json_number(const char *where, const cJSON *in, const char *key, double *out, struct hm_error *err);
hm_status hm_json_bool(const char *where, const cJSON *in, const char *key, bool *out, struct hm_error *err);

// The member, or NULL when it is absent or null: for optional keys, before one of the above.
const cJSON *hm_json_find(const cJSON *in, const char *key);

// What a value is, for messages: "a string", "a number", "null", "nothing", ...
const char *hm_json_kind(const cJSON *value);

#ifdef __cplusplus
}
#endif

#endif
