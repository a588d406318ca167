// Private to the log reader: typed look-ups in one line of a log, whose errors name file, line and field.
#ifndef HM_CERTIFY_LOG_READER_FIELDS_H
#define HM_CERTIFY_LOG_READER_FIELDS_H

#include "base/error.h"
#include "base/json.h"
#include "bounds/ival.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where a look-up happens: the head of every message.
struct hm_place {
    const char *file;
    size_t line;
    char field[160]; // the enclosing field, "claims[2]."; "" on top
    struct hm_error *err;
};

#define HM_MOST_INTEGER ((int64_t)1 << 53)

// "FILE: line L: FIELD: expected E, found F".
hm_status hm_place_fail(const struct hm_place *place, const char *key, hm_status code, const char *expected,
                        const char *found);
hm_status hm_place_mismatch(const struct hm_place *place, const char *key, const char *expected, const cJSON *found);

// The place of what is inside member `key` of `place`, or inside element `index` of that member (index < 0: no index).
struct hm_place hm_place_inside(const struct hm_place *place, const char *key, long index);

// Required members. hm_field_find gives NULL for null and for absent members.
hm_status hm_field_string(const struct hm_place *place, const cJSON *in, const char *key, const char **out);
hm_status hm_field_integer(const struct hm_place *place, const cJSON *in, const char *key, int64_t least, int64_t most,
                           int64_t *out);
hm_status hm_field_bool(const struct hm_place *place, const cJSON *in, const char *key, bool *out);
hm_status hm_field_object(const struct hm_place *place, const cJSON *in, const char *key, const cJSON **out);
hm_status hm_field_array(const struct hm_place *place, const cJSON *in, const char *key, size_t least, size_t most,
                         const cJSON **out, size_t *count);
// One of the names: *out is its place in the list.
hm_status hm_field_choice(const struct hm_place *place, const cJSON *in, const char *key, const char *const *names,
                          size_t count, int *out);
// A rational: the text is kept, and is known to be one.
hm_status hm_field_rational(const struct hm_place *place, const cJSON *in, const char *key, const char **out);
// 64 lower-case hexadecimal digits.
hm_status hm_field_hash(const struct hm_place *place, const cJSON *in, const char *key, const char **out);
// [lower, upper] of hexadecimal floats, lower <= upper.
hm_status hm_field_ival(const struct hm_place *place, const cJSON *in, const char *key, struct hm_ival *out);

const cJSON *hm_field_find(const cJSON *in, const char *key);
const char *hm_field_text(const cJSON *in, const char *key);     // optional: NULL when absent or no string
double hm_field_seconds(const cJSON *in, const char *key);       // optional: -1 when absent or no number >= 0

// One value of an array.
bool hm_value_integer(const cJSON *value, int64_t least, int64_t most, int64_t *out);
bool hm_value_real(const cJSON *value, double *out);

// A C99 hexadecimal float as %a prints it ("-0x1.8p+3"), "inf" or "-inf"; in any locale. False for anything else, for a
// number that is no double, and for overflow.
bool hm_parse_real(const char *text, double *out);

#endif
