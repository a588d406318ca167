// Lines, JSON with limits, numbers, and errors: see state.h. docs/log.md "Numbers".
#include "certify/check/state.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LIMIT = 1 << 24, DEPTH_LIMIT = 32, KEY_LIMIT = 128 };
static const int64_t INTEGER_LIMIT = ((int64_t)1 << 53) - 1;

static void fail(struct ck *c, enum hm_check_kind kind, const char *field, const char *format, va_list list)
{
    struct ck_outcome *o = &c->out;
    if (o->failed) return;
    o->failed = true;
    o->kind = kind;
    o->line = c->line;
    int n =
        snprintf(o->message, sizeof o->message,
                 "%s line %lu: %s%s: ", kind == HM_CHECK_REFUTED ? "REFUTED" : "UNREADABLE", c->line, c->prefix, field);
    if (n > 0 && (size_t)n < sizeof o->message) vsnprintf(o->message + n, sizeof o->message - (size_t)n, format, list);
    for (char *p = o->message; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~') *p = '?'; // what a log says must not move a terminal
}

void ck_refute(struct ck *c, const char *field, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(c, HM_CHECK_REFUTED, field, format, list);
    va_end(list);
}

void ck_unreadable(struct ck *c, const char *field, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(c, HM_CHECK_UNREADABLE, field, format, list);
    va_end(list);
}

void ck_open(struct ck *c, const char *field)
{
    if (c->out.open_questions++ == 0)
        snprintf(c->out.open_reason, sizeof c->out.open_reason, "line %lu: %s%s", c->line, c->prefix, field);
}

size_t ck_enter(struct ck *c, const char *format, ...)
{
    size_t before = strlen(c->prefix);
    va_list list;
    va_start(list, format);
    vsnprintf(c->prefix + before, sizeof c->prefix - before, format, list);
    va_end(list);
    return before;
}

void ck_leave(struct ck *c, size_t before)
{
    if (!c->out.failed) c->prefix[before] = '\0';
}

bool ck_read_line(FILE *file, char **line, size_t *size, size_t *capacity, bool *complete)
{
    int c;
    *size = 0;
    *complete = false;
    while ((c = getc_unlocked(file)) != EOF) {
        if (*size == LINE_LIMIT && c != '\n') return false;
        if (*size + 2 > *capacity) {
            size_t larger = *capacity ? 2 * *capacity : 4096;
            char *grown = realloc(*line, larger);
            if (!grown) return false;
            *line = grown;
            *capacity = larger;
        }
        if (c == '\n') {
            *complete = true;
            break;
        }
        (*line)[(*size)++] = (char)c;
    }
    if (*line) (*line)[*size] = '\0';
    return *complete || *size > 0;
}

// What cJSON is lax about: depth (it recurses), control bytes, a zero inside a string, encoding, leading zeros.
static const char *scan(const char *text, size_t size)
{
    int depth = 0;
    bool string = false;
    for (size_t i = 0; i < size; i++) {
        unsigned char b = (unsigned char)text[i];
        if (b < ' ') return "a control byte";
        if (b >= 0x80) {
            int more = b >= 0xf0 && b < 0xf5 ? 3 : b >= 0xe0 ? 2 : b >= 0xc2 ? 1 : 0;
            if (more == 0 || b >= 0xf5 || (size_t)more >= size - i) return "bytes that are not UTF-8";
            while (more-- > 0)
                if (((unsigned char)text[++i] & 0xc0) != 0x80) return "bytes that are not UTF-8";
        } else if (string) {
            if (b == '\\' && strncmp(text + i + 1, "u0000", 5) == 0) return "a zero character";
            if (b == '\\')
                i++;
            else if (b == '"')
                string = false;
        } else if (b == '"') {
            string = true;
        } else if (b == '{' || b == '[') {
            if (++depth > DEPTH_LIMIT) return "values nested too deeply";
        } else if (b == '}' || b == ']') {
            depth--;
        } else if (b == '-' || isdigit(b)) { // a number, whose exponent may begin with zeros
            const char *first = &text[i + (b == '-')];
            if (first[0] == '0' && isdigit((unsigned char)first[1])) return "a number with a leading zero";
            i += strspn(text + i, "0123456789+-.eE") - 1;
        }
    }
    return NULL;
}

static const char *duplicate_key(const cJSON *value)
{
    int keys = 0;
    const cJSON *a, *b;
    cJSON_ArrayForEach(a, value)
    {
        if (a->string) {
            if (++keys > KEY_LIMIT) return "an object of too many keys";
            for (b = a->next; b; b = b->next)
                if (strcmp(a->string, b->string) == 0) return "a key twice in one object";
        }
        const char *inside = a->child ? duplicate_key(a) : NULL;
        if (inside) return inside;
    }
    return NULL;
}

cJSON *ck_parse(struct ck *c, const char *text, size_t size)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; // cJSON notes in a global where an error was
    const char *wrong = size == 0 || text[0] != '{' ? "no object" : scan(text, size), *end = NULL;
    cJSON *value = NULL;
    pthread_mutex_lock(&one_at_a_time);
    if (!wrong) value = cJSON_ParseWithLengthOpts(text, size + 1, &end, 0);
    pthread_mutex_unlock(&one_at_a_time);
    if (!wrong && (!value || end != text + size || !cJSON_IsObject(value))) wrong = "something else";
    if (!wrong) wrong = duplicate_key(value);
    if (!wrong) return value;
    cJSON_Delete(value);
    ck_unreadable(c, "JSON", "expected one object a line, found %s", wrong);
    return NULL;
}

const char *ck_show(const cJSON *v)
{
    static _Thread_local char text[96];
    if (!v) return "nothing";
    if (cJSON_IsString(v))
        snprintf(text, sizeof text, "\"%.80s\"", v->valuestring);
    else if (cJSON_IsNumber(v))
        snprintf(text, sizeof text, "%.17g", v->valuedouble);
    else if (cJSON_IsBool(v))
        return cJSON_IsTrue(v) ? "true" : "false";
    else
        return cJSON_IsNull(v) ? "null" : cJSON_IsArray(v) ? "an array" : "an object";
    return text;
}

const cJSON *ck_get(struct ck *c, const cJSON *object, const char *key)
{
    const cJSON *v = object ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
    if (!v) ck_unreadable(c, key, "expected a value, found nothing");
    return v;
}

bool ck_has(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key) != NULL;
}

void ck_expect_absent(struct ck *c, const cJSON *object, const char *keys, const char *because)
{
    char key[32];
    for (size_t size; *keys && !c->out.failed; keys += size + (keys[size] == ' ')) {
        size = strcspn(keys, " ");
        snprintf(key, sizeof key, "%.*s", (int)size, keys);
        if (ck_has(object, key)) ck_refute(c, key, "expected nothing: %s", because);
    }
}

const cJSON *ck_array(struct ck *c, const cJSON *object, const char *key)
{
    const cJSON *v = ck_get(c, object, key);
    if (v && !cJSON_IsArray(v)) ck_unreadable(c, key, "expected an array, found %s", ck_show(v));
    return cJSON_IsArray(v) ? v : NULL;
}

const cJSON *ck_object(struct ck *c, const cJSON *object, const char *key)
{
    const cJSON *v = ck_get(c, object, key);
    if (v && !cJSON_IsObject(v)) ck_unreadable(c, key, "expected an object, found %s", ck_show(v));
    return cJSON_IsObject(v) ? v : NULL;
}

const char *ck_text(struct ck *c, const cJSON *object, const char *key)
{
    const cJSON *v = ck_get(c, object, key);
    if (cJSON_IsString(v)) return v->valuestring;
    ck_unreadable(c, key, "expected a string, found %s", ck_show(v));
    return "";
}

bool ck_bool(struct ck *c, const cJSON *object, const char *key)
{
    const cJSON *v = ck_get(c, object, key);
    if (!cJSON_IsBool(v)) ck_unreadable(c, key, "expected true or false, found %s", ck_show(v));
    return cJSON_IsTrue(v);
}

int64_t ck_integer(struct ck *c, const cJSON *v, const char *field, int64_t least)
{
    double x = cJSON_IsNumber(v) ? v->valuedouble : NAN;
    if (x >= (double)least && x <= (double)INTEGER_LIMIT && x == floor(x)) return (int64_t)x;
    ck_unreadable(c, field, "expected an integer from %lld, found %s", (long long)least, ck_show(v));
    return 0;
}

int64_t ck_int(struct ck *c, const cJSON *object, const char *key, int64_t least)
{
    return ck_integer(c, ck_get(c, object, key), key, least);
}

int64_t ck_peek(const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    bool whole = cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= (double)INTEGER_LIMIT &&
                 v->valuedouble == floor(v->valuedouble);
    return whole ? (int64_t)v->valuedouble : -1;
}

void ck_expect_int(struct ck *c, const cJSON *object, const char *key, int64_t expected)
{
    int64_t found = ck_int(c, object, key, -1);
    if (found != expected) ck_refute(c, key, "expected %lld, found %lld", (long long)expected, (long long)found);
}

// A C99 hexadecimal float that is a double, "inf" or "-inf"; nothing else.
static bool hex_float(const char *s, double *out)
{
    uint64_t mantissa = 0;
    int digits = 0, shift = 0, exponent = 0, length = 0;
    bool negative = *s == '-', minus = false, point = false;
    s += negative;
    *out = negative ? -INFINITY : INFINITY;
    if (strcmp(s, "inf") == 0) return true;
    if (strncmp(s, "0x", 2) != 0) return false;
    for (s += 2; isxdigit((unsigned char)*s) || (*s == '.' && digits && !point); s++) {
        if (*s == '.')
            point = true;
        else {
            if (isupper((unsigned char)*s) || ++digits > 16) return false;
            mantissa = mantissa * 16 + (uint64_t)(isdigit((unsigned char)*s) ? *s - '0' : *s - 'a' + 10);
            if (point) shift -= 4;
        }
    }
    if (!digits || *s++ != 'p') return false;
    if (*s == '-' || *s == '+') minus = *s++ == '-';
    for (; isdigit((unsigned char)*s) && ++length <= 5; s++) exponent = exponent * 10 + (*s - '0');
    if (*s || !length) return false;
    double value = ldexp((double)mantissa, shift + (minus ? -exponent : exponent));
    if ((double)mantissa >= 0x1p64 || (uint64_t)(double)mantissa != mantissa || isinf(value)) return false;
    if (ldexp(value, -shift - (minus ? -exponent : exponent)) != (double)mantissa) return false;
    *out = negative ? -value : value;
    return true;
}

double ck_real(struct ck *c, const cJSON *v, const char *field)
{
    double x = 0;
    if (!cJSON_IsString(v) || !hex_float(v->valuestring, &x)) {
        ck_unreadable(c, field, "expected a hexadecimal float in a string, found %s", ck_show(v));
        return 0;
    }
    return x;
}

double ck_peek_real(const cJSON *object, const char *key)
{
    double x;
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) && hex_float(v->valuestring, &x) ? x : 0;
}

static bool ends_of(struct ck *c, const cJSON *object, const char *key, double ends[2])
{
    const cJSON *v = ck_array(c, object, key);
    ends[0] = ends[1] = 0;
    if (v && cJSON_GetArraySize(v) != 2) ck_unreadable(c, key, "expected [lower, upper], found another length");
    if (c->out.failed) return false;
    for (int i = 0; i < 2; i++) ends[i] = ck_real(c, cJSON_GetArrayItem(v, i), key);
    return !c->out.failed;
}

bool ck_bound(struct ck *c, const cJSON *object, const char *key, double ends[2])
{
    if (!ends_of(c, object, key, ends)) return false;
    if (!(ends[0] >= 0) || !(isinf(ends[1]) && ends[1] > 0))
        ck_refute(c, key, "expected a lower bound >= 0 and inf, found [%a, %a]", ends[0], ends[1]);
    return !c->out.failed;
}

bool ck_enclosure(struct ck *c, const cJSON *object, const char *key, bool bound, double ends[2])
{
    if (!ends_of(c, object, key, ends)) return false;
    if (bound && isfinite(ends[0]) && isinf(ends[1]) && ends[1] > 0) return true;
    double width = ends[1] - ends[0], larger = fmax(fabs(ends[0]), fabs(ends[1]));
    if (!(ends[0] <= ends[1]))
        ck_refute(c, key, "expected lower <= upper, found [%a, %a]", ends[0], ends[1]);
    else if (ends[0] < ends[1] && !(width <= 0x1p-30 * larger && !isinf(larger)) && !(width <= 0x1p-60))
        ck_refute(c, key, "expected an enclosure within 2^-30 of its size, found [%a, %a]", ends[0], ends[1]);
    return !c->out.failed;
}

bool ck_interval(struct ck *c, const cJSON *object, const char *key, double ends[2])
{
    return ck_enclosure(c, object, key, false, ends);
}
