// Rows: where they lie (docs/log.md "Row shards"), their order and weights, and what two of them are to each other
// (theory.md §1, §2 "Other divergences"). Every number in a shard is checked against the file before it is used.
#include "parts.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_LIMIT = 1 << 20, EXACT = 512 }; // EXACT: bits that hold any difference of float logits

static void read_shard_header(struct shard *s, const char *key) {
    unsigned char prefix[8] = {0};
    uint64_t size = 0;
    sc_need(fread(prefix, 1, 8, s->file) == 8, key, "a shard with a safetensors header");
    for (int i = 7; i >= 0; i--) size = size << 8 | prefix[i];
    sc_need(size >= 2 && size <= HEADER_LIMIT, key, "a shard with a safetensors header of a sensible size");
    char *text = sc_alloc(size + 1);
    sc_need(fread(text, 1, size, s->file) == size, key, "a shard with a whole safetensors header");
    s->data = 8 + size;
    while (text[size - 1] == ' ' && size > 1) size--; // padding
    text[size] = '\0';
    const cJSON *json = sc_parse(&run->shard_json, text, size, key), *tensor = sc_find(json, "logits"), *entry;
    const cJSON *type = sc_find(tensor, "dtype"), *shape = sc_find(tensor, "shape"),
                *at = sc_find(tensor, "data_offsets");
    cJSON_ArrayForEach (entry, json)
        sc_need(entry == tensor || strcmp(entry->string, "__metadata__") == 0, key, "a shard with logits only");
    sc_need(cJSON_IsString(type) && strcmp(type->valuestring, "F32") == 0, key, "a shard with logits of dtype F32");
    sc_need(cJSON_GetArraySize(shape) == 2 && cJSON_GetArraySize(at) == 2, key, "a shard with [rows, vocab]");
    uint64_t rows = (uint64_t)sc_integer(shape->child, key, 0),
             vocab = (uint64_t)sc_integer(shape->child->next, key, 0);
    uint64_t begin = (uint64_t)sc_integer(at->child, key, 0), end = (uint64_t)sc_integer(at->child->next, key, 0);
    bool spans = vocab == run->vocab && rows <= (UINT64_C(1) << 53) / (4 * vocab) && end == begin + rows * 4 * vocab;
    sc_need(spans, key, "a shard with rows of the vocabulary, whose data_offsets span the shape");
    s->rows = rows;
    s->data += begin;
}

// The file that the pattern names, beside the log. The pattern is data, never a format.
static void open_shard(struct shard *s, const char *pattern, int64_t number, const char *key) {
    const char *slash = strrchr(run->path, '/'), *percent = strchr(pattern, '%');
    int folder = slash ? (int)(slash - run->path) + 1 : 0, before = (int)(percent - pattern);
    size_t size = (size_t)folder + strlen(pattern) + 24;
    char *path = sc_alloc(size);
    struct stat status = {0};
    long long n = number;
    snprintf(path, size, "%.*s%.*s%05lld%s", folder, run->path, before, pattern, n, percent + 4);
    if (s->file) fclose(s->file);
    *s = (struct shard){.number = number};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a pipe in its place must not make us wait
    sc_need(file >= 0 || errno == ENOENT, key, "a shard that can be opened");
    if (file < 0) return; // its rows are absent
    s->file = fdopen(file, "rb");
    sc_need(s->file && fstat(file, &status) == 0 && S_ISREG(status.st_mode), key, "a regular file for a shard");
    read_shard_header(s, key);
}

static int by_order(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = run->sorting[i], y = run->sorting[j];
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

// Orders the tokens of a row whose logits are there; with a draft, only those that the draft scores.
void sc_order(struct row *r, const struct row *draft) {
    r->count = 0;
    r->precision = 0;
    r->here = true;
    for (size_t i = 0; i < run->vocab; i++) {
        if (draft && isinf(draft->logit[i])) r->logit[i] = -INFINITY;
        if (!draft || !isinf(draft->logit[i])) r->order[r->count++] = (uint32_t)i;
        r->rank[i] = (uint32_t)run->vocab;
    }
    run->sorting = r->logit;
    qsort(r->order, r->count, sizeof *r->order, by_order);
    for (size_t j = 0; j < r->count; j++) r->rank[r->order[j]] = (uint32_t)j;
    for (r->finite = r->count; r->finite > 0 && isinf(r->logit[r->order[r->finite - 1]]);) r->finite--;
}

// Reads the row that record[key] names; true when it is there. *absent: there is one, but not at hand.
bool sc_load(const cJSON *record, const char *key, enum which which, bool *absent) {
    struct row *r = &run->row[which];
    struct shard *s = &run->shard[which];
    const cJSON *ref = sc_get(record, key, cJSON_Object);
    bool named = sc_find(ref, "shard") != NULL, hashed = sc_find(ref, "sha256") || (run->hashed && named), any = false;
    const char *sha256 = hashed ? sc_text(ref, "sha256") : "";
    r->here = false;
    sc_must(!hashed || run->hashed, key, "no sha256: the header says that rows are not hashed");
    sc_need(!hashed || sc_like(sha256, "^[0-9a-f]{64}$"), key, "64 hexadecimal digits");
    const char *why = named ? "" : sc_text(ref, "why");
    *absent = hashed || named || strcmp(why, "not kept") == 0;
    if (!named) return false;
    int64_t number = sc_int(ref, "shard", 0), index = sc_int(ref, "index", 0);
    sc_must(run->pattern[which][0] != '\0', key, "no shard: the header names none");
    if (s->number != number) open_shard(s, run->pattern[which], number, key);
    if (!s->file) return false;
    size_t size = 4 * run->vocab;
    bool whole = (uint64_t)index < s->rows && fseeko(s->file, (off_t)(s->data + (uint64_t)index * size), SEEK_SET) == 0;
    sc_must(whole && fread(r->logit, 1, size, s->file) == size, key, "a shard that holds the row");
    char hex[65];
    sc_hash("", r->logit, size, hex);
    sc_must(!hashed || strcmp(hex, sha256) == 0, key, "the row's bytes to have this hash");
    for (size_t i = 0; i < run->vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &r->logit[i], 4);
        bits = le32toh(bits);
        memcpy(&r->logit[i], &bits, 4);
        sc_must(r->logit[i] < INFINITY, key, "finite logits or -inf");
        any = any || !isinf(r->logit[i]);
    }
    sc_must(any, key, "a finite logit");
    sc_order(r, NULL);
    *absent = false;
    return true;
}

real sc_z(const struct row *r, size_t token) { // (l - l_first)/T
    return r_mul(r_sub(r_number(r->logit[token]), r_number(r->logit[r->order[0]])), r_rational(r->inverse));
}

void sc_weigh(struct row *r) { // fills p and log_sum
    if (!r->here || r->precision == run->precision || r->finite == 0) return;
    struct mark start = r_mark();
    struct real *sum = r_zero();
    struct mark mark = r_mark();
    for (size_t i = 0; i < run->vocab; i++, r_release(mark)) {
        mpfr_set_prec(r->p[i].lo, run->precision);
        mpfr_set_prec(r->p[i].hi, run->precision);
        r_copy(&r->p[i], isinf(r->logit[i]) ? r_number(0) : r_exp(sc_z(r, i)));
        r_into(sum, &r->p[i]);
    }
    for (size_t i = 0; i < run->vocab; i++, r_release(mark)) r_copy(&r->p[i], r_div(&r->p[i], sum));
    mpfr_set_prec(r->log_sum.lo, run->precision);
    mpfr_set_prec(r->log_sum.hi, run->precision);
    r_copy(&r->log_sum, r_log(sum));
    r->precision = run->precision;
    r_release(start);
}

real sc_log_p(const struct row *r, size_t token) { return r_sub(sc_z(r, token), &r->log_sum); }

real sc_sum(term *value, const struct ask *a, size_t from, size_t to) { // over places of the order of p
    struct real *sum = r_zero();
    struct mark mark = r_mark();
    for (size_t j = from; j < to; j++, r_release(mark)) r_into(sum, value(a, j, a->p->order[j]));
    return sum;
}

TERM(own) { return &a->p->p[i]; }
real sc_mass(const struct row *p, size_t from, size_t to) { return sc_sum(own, &(struct ask){.p = p}, from, to); }

bool sc_level(const struct row *r, size_t from, size_t to) { // equal logits at these places?
    return r->logit[r->order[from]] == r->logit[r->order[to - 1]];
}

bool sc_same_law(const struct row *p, const struct row *q) { // do the logits differ by a constant?
    bool same = true;
    mpfr_t d, first;
    mpfr_inits2(EXACT, d, first, (mpfr_ptr)0);
    for (size_t i = 0; i < run->vocab && same; i++) {
        same = isinf(p->logit[i]) == isinf(q->logit[i]);
        if (!same || isinf(p->logit[i])) continue;
        mpfr_set_flt(d, p->logit[i], MPFR_RNDN);
        mpfr_sub_d(d, d, q->logit[i], MPFR_RNDN);
        if (mpfr_nan_p(first)) mpfr_set(first, d, MPFR_RNDN);
        same = mpfr_equal_p(d, first);
    }
    mpfr_clears(d, first, (mpfr_ptr)0);
    return same;
}
