// Rows: where they lie (docs/log.md "Row shards"), their order, and their weights (theory.md §1). A row may be
// disturbed: then each logit has a multiple of its noise added.
#include "log.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are read as they lie");

// The file that the pattern names, beside the log. The pattern is data, never a format.
static void open_shard(struct shard *s, const char *pattern, int64_t number, const char *key) {
    const char *slash = strrchr(run->path, '/'), *percent = strchr(pattern, '%');
    int folder = slash ? (int)(slash - run->path) + 1 : 0, before = (int)(percent - pattern);
    size_t room = (size_t)folder + 512, size = 0;
    char *path = allocate(room);
    struct stat status;
    snprintf(path, room, "%.*s%.*s%05lld%s", folder, run->path, before, pattern, (long long)number, percent + 4);
    if (s->file) fclose(s->file);
    *s = (struct shard){.number = number};
    bool missing = stat(path, &status) != 0;
    need(!missing || errno == ENOENT, key);
    if (missing) return; // its rows are absent
    need(S_ISREG(status.st_mode) && (s->file = fopen(path, "rb")) != NULL, key);
    for (int i = 0; i < 8; i++) size |= (size_t)(getc(s->file) & 0xff) << 8 * i;
    need(size >= 2 && size <= 1 << 20, key);
    char *text = allocate(size + 1);
    need(fread(text, 1, size, s->file) == size, key);
    s->data = 8 + size;
    while (text[size - 1] == ' ' && size > 1) size--; // padding
    text[size] = '\0';
    const cJSON *json = parse(&run->shard_json, text, size, key), *tensor = find(json, "logits"), *other;
    cJSON_ArrayForEach (other, json) need(other == tensor || strcmp(other->string, "__metadata__") == 0, key);
    const cJSON *shape = pair(find(tensor, "shape"), key), *at = pair(find(tensor, "data_offsets"), key);
    need(strcmp(text_of(tensor, "dtype"), "F32") == 0, key);
    s->rows = (uint64_t)whole(shape, key, 0);
    uint64_t begin = (uint64_t)whole(at, key, 0), bytes = s->rows * 4 * run->vocab;
    need(whole(shape->next, key, 1) == (int64_t)run->vocab && s->rows < UINT64_C(1) << 31, key);
    need(whole(at->next, key, 0) == (int64_t)(begin + bytes), key);
    s->data += begin;
}

static int by_order(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = run->sorting[i], y = run->sorting[j];
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

// Orders the tokens of a row whose logits are there; with a draft, only those that the draft scores.
static void put_in_order(struct row *r, const struct row *draft) {
    r->count = 0;
    r->precision = 0;
    r->here = true;
    for (size_t i = 0; i < run->vocab; i++) {
        if (draft && isinf(draft->logit[i])) r->logit[i] = -INFINITY;
        else r->order[r->count++] = (uint32_t)i;
        r->rank[i] = (uint32_t)run->vocab;
    }
    run->sorting = r->logit;
    qsort(r->order, r->count, sizeof *r->order, by_order);
    for (size_t j = 0; j < r->count; j++) r->rank[r->order[j]] = (uint32_t)j;
    for (r->finite = r->count; r->finite > 0 && isinf(r->logit[r->order[r->finite - 1]]);) r->finite--;
}

static struct row *copy_of_target(enum which which, const struct row *draft) {
    memcpy(run->row[which].logit, run->row[TARGET].logit, run->vocab * sizeof(float));
    put_in_order(&run->row[which], draft);
    return &run->row[which];
}

// Reads the row that record[key] names; true when it is there. *gone: there is one, but not at hand.
static bool load_row(const cJSON *record, const char *key, enum which which, bool *gone) {
    struct row *r = &run->row[which];
    struct shard *s = &run->shard[which];
    const cJSON *ref = get(record, key, cJSON_Object);
    bool named = find(ref, "shard") != NULL, hashed = find(ref, "sha256") || (run->hashed && named), any = false;
    const char *sha256 = hashed ? text_of(ref, "sha256") : "", *why = named ? "" : text_of(ref, "why");
    char hex[65];
    r->here = false;
    must(!hashed || run->hashed, key);
    need(!hashed || like(sha256, "^[0-9a-f]{64}$"), key);
    *gone = hashed || named || strcmp(why, "not kept") == 0;
    if (!named) return false;
    int64_t shard = integer(ref, "shard", 0), index = integer(ref, "index", 0);
    must(run->pattern[which][0] != '\0', key);
    if (s->number != shard) open_shard(s, run->pattern[which], shard, key);
    if (!s->file) return false;
    size_t size = 4 * run->vocab;
    must((uint64_t)index < s->rows && fseeko(s->file, (off_t)(s->data + (uint64_t)index * size), SEEK_SET) == 0, key);
    must(fread(r->logit, 1, size, s->file) == size, key);
    hash(r->logit, size, hex);
    must(!hashed || strcmp(hex, sha256) == 0, key);
    for (size_t i = 0; i < run->vocab; i++) {
        must(r->logit[i] < INFINITY, key);
        any = any || !isinf(r->logit[i]);
    }
    must(any, key);
    put_in_order(r, NULL);
    *gone = false;
    return true;
}

static real gap(const struct row *r, size_t i, size_t j) { // l_i - l_j, of tokens
    real noise = r_mul(r_number(r->noise), r_number(r->shift[i] - r->shift[j]));
    return r_add(r_sub(r_number(r->logit[i]), r_number(r->logit[j])), noise);
}

// x/T. One rounding at high precision: exact where a binary number is, as a logged one may be.
static real over_t(const struct row *r, real x) {
    return r_div(r_mul(x, r_integer(mpq_numref(r->inverse))), r_integer(mpq_denref(r->inverse)));
}

static real z_of(const struct row *r, size_t i) { return over_t(r, gap(r, i, r->order[0])); }
static real log_p(const struct row *r, size_t i) { return r_sub(z_of(r, i), &r->p[run->vocab]); }

static void place_all(struct real *x, void **limbs) { // a number for each token, and one more; all 0
    size_t room = 2 * mpfr_custom_get_size(run->precision);
    free(*limbs);
    *limbs = malloc((run->vocab + 1) * room);
    need(*limbs != NULL, "memory");
    for (size_t i = 0; i <= run->vocab; i++) place(&x[i], (char *)*limbs + i * room);
}

static void weigh(struct row *r) { // fills p
    size_t vocab = run->vocab, used = run->used;
    if (!r->here || r->precision == run->precision || r->finite == 0) return;
    place_all(r->p, &r->limbs);
    struct real *sum = r_zero();
    size_t inner = run->used;
    for (size_t i = 0; i < vocab; i++, run->used = inner) {
        if (!isinf(r->logit[i])) r_copy(&r->p[i], r_exp(z_of(r, i)));
        r_copy(sum, r_add(sum, &r->p[i]));
    }
    for (size_t i = 0; i < vocab; i++, run->used = inner) r_copy(&r->p[i], r_div(&r->p[i], sum));
    r_copy(&r->p[vocab], r_log(sum));
    r->precision = run->precision;
    run->used = used;
}

static real sum_of(term *value, const struct ask *a, size_t from, size_t to) { // over places of the order of p
    struct real *sum = r_zero();
    size_t used = run->used;
    for (size_t j = from; j < to; j++, run->used = used) r_copy(sum, r_add(sum, value(a, j, a->p->order[j])));
    return sum;
}

TERM(own) { return &a->p->p[i]; }
static real mass(const struct row *p, size_t from, size_t to) { return sum_of(own, &(struct ask){.p = p}, from, to); }

static bool tied(const struct row *r, size_t from, size_t to) { // are the logits at these places the same?
    bool same = true;
    size_t first = r->order[from];
    for (size_t j = r->noise > 0 ? from : to - 1; j < to && same; j++) { // of a row in order the last will do
        size_t i = r->order[j];
        same = r->logit[i] == r->logit[first] && (r->noise == 0 || r->shift[i] == r->shift[first]);
    }
    return same;
}

static bool flat(const struct row *r) { return tied(r, 0, r->finite); } // uniform on its support

static int compare(size_t n, mpq_srcptr q, size_t m, mpq_srcptr r) { // the sign of n q - m r
    mpq_t x[2];
    for (int i = 0; i < 2; i++) mpq_init(x[i]);
    mpq_set_ui(x[0], n, 1);
    mpq_set_ui(x[1], m, 1);
    mpq_mul(x[0], x[0], q);
    mpq_mul(x[1], x[1], r);
    int sign = mpq_cmp(x[0], x[1]);
    for (int i = 0; i < 2; i++) mpq_clear(x[i]);
    return sign;
}
