// Typed look-ups in a line of a log: see log_reader_fields.h.
#include "certify/log_reader_fields.h"

#include "base/rational.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

hm_status hm_place_fail(const struct hm_place *place, const char *key, hm_status code, const char *expected,
                        const char *found)
{
    return hm_fail(place->err, code, "%s: line %zu: %s%s: expected %s, found %s", place->file, place->line, place->field,
                   key, expected, found);
}

hm_status hm_place_mismatch(const struct hm_place *place, const char *key, const char *expected, const cJSON *found)
{
    char text[96];
    if (cJSON_IsString(found)) snprintf(text, sizeof text, "\"%.60s\"", found->valuestring);
    else if (cJSON_IsNumber(found)) snprintf(text, sizeof text, "%.17g", found->valuedouble);
    else snprintf(text, sizeof text, "%s", hm_json_kind(found));
    return hm_place_fail(place, key, HM_FORMAT, expected, text);
}

struct hm_place hm_place_inside(const struct hm_place *place, const char *key, long index)
{
    struct hm_place inner = *place;
    if (index < 0) snprintf(inner.field, sizeof inner.field, "%.100s%.40s.", place->field, key);
    else snprintf(inner.field, sizeof inner.field, "%.90s%.40s[%ld].", place->field, key, index);
    return inner;
}

const cJSON *hm_field_find(const cJSON *in, const char *key)
{
    return hm_json_find(in, key);
}

const char *hm_field_text(const cJSON *in, const char *key)
{
    const cJSON *value = hm_json_find(in, key);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

double hm_field_seconds(const cJSON *in, const char *key)
{
    const cJSON *value = hm_json_find(in, key);
    return cJSON_IsNumber(value) && value->valuedouble >= 0 && isfinite(value->valuedouble) ? value->valuedouble : -1;
}

hm_status hm_field_string(const struct hm_place *place, const cJSON *in, const char *key, const char **out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    if (!cJSON_IsString(value)) return hm_place_mismatch(place, key, "a string", value);
    *out = value->valuestring;
    return HM_OK;
}

bool hm_value_integer(const cJSON *value, int64_t least, int64_t most, int64_t *out)
{
    if (!cJSON_IsNumber(value)) return false;
    double d = value->valuedouble;
    if (!(d >= -0x1p53 && d <= 0x1p53) || d != floor(d)) return false;
    if (d < (double)least || d > (double)most) return false;
    *out = (int64_t)d;
    return true;
}

hm_status hm_field_integer(const struct hm_place *place, const cJSON *in, const char *key, int64_t least, int64_t most,
                           int64_t *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    if (hm_value_integer(value, least, most, out)) return HM_OK;
    char expected[80];
    if (most == HM_MOST_INTEGER)
        snprintf(expected, sizeof expected, "an integer of at least %lld", (long long)least);
    else if (least == most)
        snprintf(expected, sizeof expected, "%lld", (long long)least);
    else
        snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)least, (long long)most);
    return hm_place_mismatch(place, key, expected, value);
}

hm_status hm_field_bool(const struct hm_place *place, const cJSON *in, const char *key, bool *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    if (!cJSON_IsBool(value)) return hm_place_mismatch(place, key, "true or false", value);
    *out = cJSON_IsTrue(value);
    return HM_OK;
}

hm_status hm_field_object(const struct hm_place *place, const cJSON *in, const char *key, const cJSON **out)
{
    *out = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsObject(*out) ? HM_OK : hm_place_mismatch(place, key, "an object", *out);
}

hm_status hm_field_array(const struct hm_place *place, const cJSON *in, const char *key, size_t least, size_t most,
                         const cJSON **out, size_t *count)
{
    *out = cJSON_GetObjectItemCaseSensitive(in, key);
    if (!cJSON_IsArray(*out)) return hm_place_mismatch(place, key, "an array", *out);
    *count = 0;
    for (const cJSON *c = (*out)->child; c; c = c->next) ++*count;
    if (*count >= least && *count <= most) return HM_OK;
    char expected[80], found[40];
    if (least == most) snprintf(expected, sizeof expected, "%zu entries", least);
    else snprintf(expected, sizeof expected, "%zu to %zu entries", least, most);
    snprintf(found, sizeof found, "%zu", *count);
    return hm_place_fail(place, key, HM_FORMAT, expected, found);
}

hm_status hm_field_choice(const struct hm_place *place, const cJSON *in, const char *key, const char *const *names,
                          size_t count, int *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    char expected[160] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (cJSON_IsString(value) && strcmp(value->valuestring, names[i]) == 0) {
            *out = (int)i;
            return HM_OK;
        }
        if (used < sizeof expected)
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s\"%s\"", i ? " or " : "", names[i]);
    }
    return hm_place_mismatch(place, key, expected, value);
}

hm_status hm_field_rational(const struct hm_place *place, const cJSON *in, const char *key, const char **out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    bool good = false;
    if (cJSON_IsString(value)) {
        struct hm_rational r;
        hm_rational_init(&r);
        good = hm_rational_parse(value->valuestring, &r, NULL) == HM_OK && hm_rational_sign(&r) >= 0;
        hm_rational_clear(&r);
    }
    if (!good) return hm_place_mismatch(place, key, "a rational such as \"3/10\", not negative", value);
    *out = value->valuestring;
    return HM_OK;
}

hm_status hm_field_hash(const struct hm_place *place, const cJSON *in, const char *key, const char **out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    if (cJSON_IsString(value) && strlen(value->valuestring) == 64 &&
        strspn(value->valuestring, "0123456789abcdef") == 64) {
        *out = value->valuestring;
        return HM_OK;
    }
    return hm_place_mismatch(place, key, "64 lower-case hexadecimal digits", value);
}

hm_status hm_field_ival(const struct hm_place *place, const cJSON *in, const char *key, struct hm_ival *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(in, key);
    const char *expected = "[lower, upper] of hexadecimal floats";
    if (!cJSON_IsArray(value)) return hm_place_mismatch(place, key, expected, value);
    const cJSON *lo = value->child, *hi = lo ? lo->next : NULL;
    if (!hi || hi->next) return hm_place_fail(place, key, HM_FORMAT, expected, "an array of another length");
    if (!hm_value_real(lo, &out->lo)) return hm_place_mismatch(place, key, expected, lo);
    if (!hm_value_real(hi, &out->hi)) return hm_place_mismatch(place, key, expected, hi);
    if (out->lo <= out->hi) return HM_OK;
    char found[200];
    snprintf(found, sizeof found, "[\"%.60s\", \"%.60s\"]", lo->valuestring, hi->valuestring);
    return hm_place_fail(place, key, HM_FORMAT, "lower <= upper", found);
}

bool hm_value_real(const cJSON *value, double *out)
{
    return cJSON_IsString(value) && hm_parse_real(value->valuestring, out);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// Digits around the point as mantissa * 2^-shift. A mantissa of 53 bits with its trailing zeros fits 60 bits with room
// to see that it does not fit a double.
static bool scan_mantissa(const char **s, uint64_t *mantissa, int *shift)
{
    size_t digits = 0;
    bool seen_point = false;
    *mantissa = 0;
    *shift = 0;
    for (;; ++*s) {
        if (**s == '.' && !seen_point) {
            seen_point = true;
            continue;
        }
        int digit = hex_digit(**s);
        if (digit < 0) return digits > 0;
        if (*mantissa >> 56) return false;
        *mantissa = *mantissa << 4 | (unsigned)digit;
        if (seen_point) *shift += 4;
        if (++digits > 64) return false;
    }
}

bool hm_parse_real(const char *text, double *out)
{
    const char *s = text;
    bool negative = *s == '-';
    if (negative) s++;
    if (strcmp(s, "inf") == 0) {
        *out = negative ? -INFINITY : INFINITY;
        return true;
    }
    uint64_t mantissa;
    int shift, power = 0;
    if (s[0] != '0' || s[1] != 'x') return false;
    s += 2;
    if (!scan_mantissa(&s, &mantissa, &shift) || *s++ != 'p') return false;
    bool down = *s == '-';
    if (*s == '-' || *s == '+') s++;
    if (*s < '0' || *s > '9') return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        power = power * 10 + (*s - '0');
        if (power > 10000) return false;
    }
    if (*s) return false;
    power = (down ? -power : power) - shift;
    double value = (double)mantissa;
    if ((uint64_t)value != mantissa) return false; // more than 53 bits
    double scaled = ldexp(value, power);
    if (!isfinite(scaled) || ldexp(scaled, -power) != value) return false; // overflow, or bits lost below 2^-1074
    *out = negative ? -scaled : scaled;
    return true;
}
