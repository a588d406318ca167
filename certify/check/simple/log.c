// Lines, JSON and its limits, numbers, the chain, errors, and the two judges of a quantity: sc_prove holds it against a
// logged enclosure, sc_decide against 0. docs/log.md "Numbers", "Integrity" and "Checking". The first error ends the
// run: sc_need says that a line cannot be read, sc_must that it is wrong.
#include "parts.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <regex.h>

enum { LINE_LIMIT = 1 << 24, DEPTH_LIMIT = 32, KEY_LIMIT = 128, LEAST_BITS = 128, MOST_BITS = 4096 };

static void fail(enum hm_simple_kind kind, const char *field, const char *expected) {
    struct hm_simple_result *r = run->result;
    const char *word = kind == HM_SIMPLE_REFUTED ? "REFUTED" : "UNREADABLE";
    r->kind = kind;
    r->line = run->line;
    snprintf(r->message, sizeof r->message, "%s line %llu: %s%s: expected %s", word, (unsigned long long)run->line,
             run->prefix, field, expected);
    for (char *p = r->message; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?'; // what a log says must not move a terminal
    longjmp(run->failed, 1);
}

void sc_need(bool holds, const char *field, const char *expected) {
    if (!holds) fail(HM_SIMPLE_UNREADABLE, field, expected);
}

void sc_must(bool holds, const char *field, const char *expected) {
    if (!holds) fail(HM_SIMPLE_REFUTED, field, expected);
}

void sc_open(bool open, const char *field) { // a question that stays open at the highest precision
    unsigned long long line = run->line;
    if (open && run->open++ == 0)
        snprintf(run->reason, sizeof run->reason, "line %llu: %s%s", line, run->prefix, field);
}

bool sc_like(const char *text, const char *pattern) { // an extended regular expression, of the whole text
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) sc_need(false, "memory", "more of it");
    bool like = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return like;
}

// What cJSON is lax about: depth (it recurses), control bytes, a zero inside a string, encoding, leading zeros.
static bool well_formed(const char *text, size_t size) {
    int depth = 0;
    bool string = false;
    for (size_t i = 0; i < size; i++) {
        unsigned char b = (unsigned char)text[i];
        size_t more = b < 0x80 ? 0 : b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
        if (b < ' ' || (b >= 0x80 && b < 0xc2) || b >= 0xf5 || more >= size - i) return false;
        for (; more > 0; more--)
            if (((unsigned char)text[++i] & 0xc0) != 0x80) return false;
        if (string && b == '\\' && strncmp(text + ++i, "u0000", 5) == 0) return false;
        if (b == '"') string = !string;
        if (string) continue;
        depth += (b == '{' || b == '[') - (b == '}' || b == ']');
        if (depth > DEPTH_LIMIT) return false;
        if (b == '0' && i > 0 && strchr("[{,:- ", text[i - 1]) && isdigit((unsigned char)text[i + 1])) return false;
    }
    return true;
}

static bool keys_differ(const cJSON *value) {
    int keys = 0;
    const cJSON *a, *b;
    cJSON_ArrayForEach (a, value) {
        if ((a->string && ++keys > KEY_LIMIT) || (a->child && !keys_differ(a))) return false;
        for (b = a->string ? a->next : NULL; b; b = b->next)
            if (strcmp(a->string, b->string) == 0) return false;
    }
    return true;
}

const cJSON *sc_parse(cJSON **keep, const char *text, size_t size, const char *field) { // text[size] is 0
    const char *end = NULL;
    cJSON_Delete(*keep);
    *keep = NULL;
    sc_need(size > 0 && text[0] == '{' && well_formed(text, size), field, "one JSON object a line, within the limits");
    *keep = cJSON_ParseWithLengthOpts(text, size + 1, &end, 0);
    sc_need(*keep && end == text + size, field, "one JSON object a line");
    sc_need(keys_differ(*keep), field, "no key twice in one object, and not too many");
    return *keep;
}

const cJSON *sc_find(const cJSON *object, const char *key) { // in exactly these letters, or NULL
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const cJSON *sc_get(const cJSON *object, const char *key, int type) { // type: the cJSON types that will do
    const cJSON *v = sc_find(object, key);
    sc_need(v != NULL && (v->type & type), key, v ? "a value of another type" : "a value, found nothing");
    return v;
}

const char *sc_text(const cJSON *object, const char *key) { return sc_get(object, key, cJSON_String)->valuestring; }

int64_t sc_integer(const cJSON *v, const char *key, int64_t least) {
    double x = cJSON_IsNumber(v) ? v->valuedouble : NAN;
    sc_need(x >= (double)least && x < 0x1p53 && x == floor(x), key, "an integer of that size");
    return (int64_t)x;
}

int64_t sc_int(const cJSON *object, const char *key, int64_t least) {
    return sc_integer(sc_get(object, key, ANY), key, least);
}

void sc_is_int(const cJSON *object, const char *key, int64_t expected) {
    char text[64];
    snprintf(text, sizeof text, "%lld", (long long)expected);
    sc_must(sc_int(object, key, -1) == expected, key, text);
}

void sc_is_text(const cJSON *object, const char *key, const char *expected) {
    sc_must(strcmp(sc_text(object, key), expected) == 0, key, expected);
}

void sc_absent(const cJSON *object, const char *keys, const char *because) { // keys: "a b c"
    char key[32];
    for (int size; *keys; keys += size + (keys[size] == ' ')) {
        size = (int)strcspn(keys, " ");
        snprintf(key, sizeof key, "%.*s", size, keys);
        sc_must(!sc_find(object, key), key, because);
    }
}

int sc_word(const cJSON *object, const char *key, const char *const *words) { // which of the words, ended by NULL
    const char *text = sc_text(object, key);
    int i = 0;
    while (words[i] && strcmp(words[i], text) != 0) i++;
    sc_need(words[i] != NULL, key, "a word that docs/log.md has here");
    return i;
}

double sc_real(const cJSON *v, const char *key) { // a C99 hexadecimal float that is a double, "inf" or "-inf"
    const char *s = cJSON_IsString(v) ? v->valuestring : "";
    if (strcmp(s, "inf") == 0 || strcmp(s, "-inf") == 0) return *s == '-' ? -INFINITY : INFINITY;
    bool like = strlen(s) < 32 && sc_like(s, "^-?0x[0-9a-f]+([.][0-9a-f]*)?p[-+]?[0-9]{1,5}$");
    sc_need(like, key, "a hexadecimal float in a string");
    mpfr_t exact;
    mpfr_init2(exact, 128);
    mpfr_strtofr(exact, s, NULL, 0, MPFR_RNDN);
    double x = mpfr_get_d(exact, MPFR_RNDN);
    bool same = isfinite(x) && mpfr_cmp_d(exact, x) == 0;
    mpfr_clear(exact);
    sc_need(same, key, "a float of double precision");
    return x;
}

struct ends sc_enclosure(const cJSON *object, const char *key, bool bound) { // bound: a lower one, below inf
    const cJSON *v = sc_get(object, key, cJSON_Array);
    sc_need(cJSON_GetArraySize(v) == 2, key, "[lower, upper]");
    struct ends e = {sc_real(v->child, key), sc_real(v->child->next, key)};
    double width = e.hi - e.lo, larger = fmax(fabs(e.lo), fabs(e.hi));
    bool narrow = e.lo == e.hi || width <= 0x1p-60 || (!isinf(larger) && width <= 0x1p-30 * larger);
    sc_must(e.lo <= e.hi, key, "lower <= upper");
    sc_must(bound ? isinf(e.hi) && e.hi > 0 : narrow, key, bound ? "inf above a lower bound" : "a narrower enclosure");
    return e;
}

static bool attempt(mpfr_prec_t precision) { // begins one, of rising precision
    run->precision = precision;
    for (int i = 0; i < ROWS && precision <= MOST_BITS; i++) sc_weigh(&run->row[i]);
    return precision <= MOST_BITS;
}

bool sc_encloses(struct ends e, real x, const char *key) { // refutes an enclosure of something else
    char text[64];
    snprintf(text, sizeof text, "an enclosure of %a", mpfr_get_d(x->lo, MPFR_RNDN));
    sc_must(!(mpfr_cmp_d(x->hi, e.lo) < 0 || mpfr_cmp_d(x->lo, e.hi) > 0), key, text);
    return mpfr_cmp_d(x->lo, e.lo) >= 0 && mpfr_cmp_d(x->hi, e.hi) <= 0;
}

// Proves a logged enclosure when rows are at hand; without them it only must be one.
struct ends sc_prove(const cJSON *object, const char *key, quantity *value, const struct ask *ask, bool rows) {
    struct ends e = sc_enclosure(object, key, false);
    bool inside = false;
    for (mpfr_prec_t bits = LEAST_BITS; rows && !inside && attempt(bits); bits *= 2) {
        struct mark mark = r_mark();
        inside = sc_encloses(e, value(ask), key);
        r_release(mark);
    }
    sc_open(rows && !inside, key);
    return e;
}

enum answer sc_decide(quantity *value, const struct ask *ask) { // is it >= 0?
    enum answer answer = OPEN;
    for (mpfr_prec_t bits = LEAST_BITS; answer == OPEN && attempt(bits); bits *= 2) {
        struct mark mark = r_mark();
        real own = value(ask);
        answer = mpfr_sgn(own->lo) >= 0 ? YES : mpfr_sgn(own->hi) < 0 ? NO : OPEN;
        r_release(mark);
    }
    return answer;
}

void sc_hash(const char *before, const void *bytes, size_t size, char hex[65]) { // SHA-256 of both
    unsigned char hash[32];
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    bool ok = sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) && EVP_DigestUpdate(sha, before, strlen(before));
    ok = ok && EVP_DigestUpdate(sha, bytes, size) && EVP_DigestFinal_ex(sha, hash, NULL);
    EVP_MD_CTX_free(sha);
    sc_need(ok, "memory", "more of it");
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", hash[i]);
}

// The line must end in ,"chain":"<64 digits>"}: they hash the previous ones and the bytes before.
void sc_chain(const char *text, size_t size, const cJSON *line) {
    const char *said = sc_text(line, "chain"), *tail = size > CHAIN_TAIL ? text + size - CHAIN_TAIL : "";
    sc_need(sc_like(tail, "^,\"chain\":\".{64}\"}$") && strlen(said) == 64, "chain", "the line to end in its chain");
    sc_hash(run->chain, text, size - CHAIN_TAIL, run->chain);
    sc_must(strcmp(run->chain, said) == 0, "chain", run->chain);
}

bool sc_read_line(FILE *file, char *text, size_t *size) { // false at the end, or where a line is cut
    int c = EOF;
    for (*size = 0; (c = getc(file)) != EOF && c != '\n'; text[(*size)++] = (char)c)
        sc_need(*size < LINE_LIMIT, "JSON", "a line of at most 16 MiB");
    text[*size] = '\0';
    return c == '\n';
}
