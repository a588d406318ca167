// Lines, JSON, numbers and the chain, and the two judges of a quantity: `prove` holds it against a logged enclosure,
// `decide` against 0. docs/log.md "Numbers", "Integrity" and "Checking".
#include "interval.h"

static bool like(const char *text, const char *pattern) { // an extended regular expression
    regex_t regex;
    need(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) == 0, "memory");
    bool is = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return is;
}

// What cJSON is lax about: depth, control bytes, a zero inside a string, encoding, leading zeros.
static bool well_formed(const char *text, size_t size) {
    bool string = false;
    int depth = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char b = (unsigned char)text[i];
        size_t more = b < 0x80 ? 0 : b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
        if (b < ' ' || (b >= 0x80 && b < 0xc2) || b >= 0xf5 || more >= size - i) return false;
        for (; more > 0; more--)
            if (((unsigned char)text[++i] & 0xc0) != 0x80) return false;
        if (string && b == '\\' && strncmp(text + ++i, "u0000", 5) == 0) return false;
        if (b == '"') string = !string;
        depth += string ? 0 : (b == '{' || b == '[') - (b == '}' || b == ']');
        size_t start = i > 0 && text[i - 1] == '-' ? i - 1 : i; // of a number that begins here, if one does
        bool first = !string && b == '0' && (start == 0 || strchr("[{,: ", text[start - 1]));
        if (depth > 32 || (first && isdigit((unsigned char)text[i + 1]))) return false;
    }
    return true;
}

#define find cJSON_GetObjectItemCaseSensitive // in exactly these letters, or NULL

static bool keys_differ(const cJSON *value) {
    const cJSON *v;
    int keys = 0;
    cJSON_ArrayForEach (v, value) {
        if (v->string && (++keys > 128 || find(value, v->string) != v)) return false;
        if (v->child && !keys_differ(v)) return false;
    }
    return true;
}

static const cJSON *parse(cJSON **keep, const char *text, size_t size, const char *field) { // text[size] is 0
    const char *end = NULL;
    cJSON_Delete(*keep);
    *keep = NULL;
    need(size > 0 && text[0] == '{' && well_formed(text, size), field);
    *keep = cJSON_ParseWithLengthOpts(text, size + 1, &end, 0);
    need(*keep && end == text + size && keys_differ(*keep), field);
    return *keep;
}

static const cJSON *get(const cJSON *object, const char *key, int type) { // type: the cJSON types that will do
    const cJSON *v = find(object, key);
    need(v != NULL && (v->type & type), key);
    return v;
}

static const char *text_of(const cJSON *object, const char *key) { return get(object, key, cJSON_String)->valuestring; }
static bool is_null(const cJSON *object, const char *key) { return cJSON_IsNull(get(object, key, ANY)); }

static bool flag_of(const cJSON *o, const char *key) { return cJSON_IsTrue(get(o, key, cJSON_True | cJSON_False)); }

static int64_t whole(const cJSON *v, const char *key, int64_t least) {
    double x = cJSON_IsNumber(v) ? v->valuedouble : NAN;
    need(x >= (double)least && x < 0x1p53 && x == floor(x), key);
    return (int64_t)x;
}

static int64_t integer(const cJSON *o, const char *key, int64_t least) { return whole(get(o, key, ANY), key, least); }
static void says(const cJSON *o, const char *key, const char *text) { must(strcmp(text_of(o, key), text) == 0, key); }
static void counts(const cJSON *o, const char *key, int64_t number) { must(integer(o, key, -1) == number, key); }

static const cJSON *array(const cJSON *object, const char *key, int size) {
    const cJSON *v = get(object, key, cJSON_Array);
    must(cJSON_GetArraySize(v) == size, key);
    return v->child;
}

static const cJSON *pair(const cJSON *v, const char *key) { // the first of two
    need(cJSON_IsArray(v) && cJSON_GetArraySize(v) == 2, key);
    return v->child;
}

static void absent(const cJSON *object, const char *keys) { // keys: "a b c"
    char key[32];
    for (int size; *keys; keys += size + (keys[size] == ' ')) {
        size = (int)strcspn(keys, " ");
        snprintf(key, sizeof key, "%.*s", size, keys);
        must(!find(object, key), key);
    }
}

static int among_words(const char *text, const char *key, const char *const *words) { // which of them; NULL ends them
    int i = 0;
    while (words[i] && strcmp(words[i], text) != 0) i++;
    need(words[i] != NULL, key);
    return i;
}

static int word(const cJSON *o, const char *key, const char *const *words) {
    return among_words(text_of(o, key), key, words);
}

static double number(const cJSON *v, const char *key) { // a C99 hexadecimal float that is a double, "inf" or "-inf"
    const char *s = cJSON_IsString(v) ? v->valuestring : "";
    if (strcmp(s, "inf") == 0 || strcmp(s, "-inf") == 0) return *s == '-' ? -INFINITY : INFINITY;
    need(strlen(s) < 32 && like(s, "^-?0x[0-9a-f]+([.][0-9a-f]*)?p[-+]?[0-9]{1,5}$"), key);
    run->precision = LEAST_BITS;
    struct real *exact = r_zero();
    mpfr_strtofr(exact->lo, s, NULL, 0, MPFR_RNDN);
    double x = mpfr_get_d(exact->lo, MPFR_RNDN);
    need(isfinite(x) && mpfr_cmp_d(exact->lo, x) == 0, key);
    return x;
}

enum bounds { NARROW, BOUND, EITHER }; // a narrow enclosure, a lower bound alone ([x, inf]), what there is

static struct ends enclosure(const cJSON *object, const char *key, enum bounds form) {
    const cJSON *v = pair(get(object, key, cJSON_Array), key);
    struct ends e = {number(v, key), number(v->next, key)};
    double width = e.hi - e.lo, larger = fmax(fabs(e.lo), fabs(e.hi));
    bool narrow = e.lo == e.hi || width <= 0x1p-60 || (!isinf(larger) && width <= 0x1p-30 * larger);
    bool least = isfinite(e.lo) && isinf(e.hi);
    must(e.lo <= e.hi && (form == BOUND ? isinf(e.hi) && e.hi > 0 : narrow || (least && form == EITHER)), key);
    return e;
}

static struct ends within(struct ends e, const char *key, double least, double most) { // can it be a value there?
    must(e.hi >= least && e.lo <= most, key);
    return e;
}

static void exactly(const cJSON *object, const char *key, double x) {
    struct ends e = enclosure(object, key, NARROW);
    must(e.lo == x && e.hi == x, key);
}

static void weigh(struct row *r); // row.h

static bool attempt(mpfr_prec_t precision) { // begins one, of rising precision
    run->precision = precision;
    for (int i = 0; i < ROWS && precision <= MOST_BITS; i++) weigh(&run->row[i]);
    return precision <= MOST_BITS;
}

static bool encloses(struct ends e, real x, const char *key) { // refutes an enclosure of something else
    char text[64];
    snprintf(text, sizeof text, "expected an enclosure of %a", mpfr_get_d(x->lo, MPFR_RNDN));
    if (mpfr_cmp_d(x->hi, e.lo) < 0 || mpfr_cmp_d(x->lo, e.hi) > 0) fail(HM_SIMPLE_REFUTED, key, text);
    return mpfr_cmp_d(x->lo, e.lo) >= 0 && mpfr_cmp_d(x->hi, e.hi) <= 0;
}

// Proves a logged enclosure when rows are at hand; without them it only must be one.
static struct ends prove(const cJSON *object, const char *key, quantity *value, const struct ask *ask, bool rows) {
    bool restricted = ask->whole && ask->whole != ask->p, inside = !rows;
    bool either = ask->divergence || (restricted && strcmp(key, "klr") == 0);
    struct ends e = enclosure(object, key, either ? EITHER : NARROW);
    for (mpfr_prec_t bits = LEAST_BITS; !inside && attempt(bits); bits *= 2) {
        size_t used = run->used;
        inside = encloses(e, value(ask), key);
        run->used = used;
    }
    leave_open(!inside, key);
    return e;
}

static enum answer decide(quantity *value, const struct ask *ask) { // is it >= 0?
    enum answer answer = OPEN;
    for (mpfr_prec_t bits = LEAST_BITS; answer == OPEN && attempt(bits); bits *= 2) {
        size_t used = run->used;
        real own = value(ask);
        answer = mpfr_sgn(own->lo) >= 0 ? YES : mpfr_sgn(own->hi) < 0 ? NO : OPEN;
        run->used = used;
    }
    return answer;
}

static enum answer opposite(enum answer x) { return x == OPEN ? OPEN : x == YES ? NO : YES; }

static void settle(enum answer right, const char *field) {
    must(right != NO, field);
    leave_open(right == OPEN, field);
}

static void hash(const void *bytes, size_t size, char hex[65]) { // SHA-256
    unsigned char digest[32];
    SHA256(bytes, size, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

// The line must end in ,"chain":"<64 digits>"}: they hash the previous ones, put before the line, and its other bytes.
static void check_chain(char *text, size_t size, const cJSON *line) {
    const char *said = text_of(line, "chain"), *tail = size > 76 ? text + size - 76 : "";
    size_t before = strlen(run->chain);
    need(like(tail, "^,\"chain\":\".{64}\"}$") && strlen(said) == 64, "chain");
    memcpy(text - before, run->chain, before);
    hash(text - before, before + size - 76, run->chain);
    must(strcmp(run->chain, said) == 0, "chain");
}

static bool read_line(FILE *file, char *text, size_t *size) { // false at the end, or where a line is cut
    int c = EOF;
    for (*size = 0; (c = getc(file)) != EOF && c != '\n'; text[(*size)++] = (char)c) need(*size < LINE_LIMIT, "JSON");
    text[*size] = '\0';
    return c == '\n';
}
