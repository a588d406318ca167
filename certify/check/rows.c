// Row shards: safetensors files with one tensor `logits`. docs/log.md "Row shards". Every number in a shard is checked
// against the file before it is used; a file may be shorter than it declares (a log being written) or longer.
#include "certify/check/state.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_LIMIT = 1 << 20 };

bool ck_pattern_ok(const char *pattern)
{
    const char *percent = strchr(pattern, '%');
    return percent && strncmp(percent, "%05d", 4) == 0 && !strchr(percent + 1, '%') && !strchr(pattern, '/') &&
           !strchr(pattern, '\\') && pattern[0] != '.';
}

// "rows-%05d.safetensors" and the folder of the log make a path. The pattern is data, never a format.
static char *shard_path(const struct ck *c, const char *pattern, int64_t number)
{
    const char *slash = strrchr(c->log_path, '/'), *percent = strchr(pattern, '%');
    int folder = slash ? (int)(slash - c->log_path) + 1 : 0;
    char *path = NULL;
    if (asprintf(&path, "%.*s%.*s%05lld%s", folder, c->log_path, (int)(percent - pattern), pattern, (long long)number,
                 percent + 4) < 0)
        return NULL;
    return path;
}

// Reads the header of an open shard; a message when it is not what it should be.
static const char *read_header(struct ck *c, struct ck_shard *s, const char *text, uint64_t length)
{
    struct ck quiet = {0}; // its errors are replaced by ours
    cJSON *json = ck_parse(&quiet, text, length);
    const cJSON *tensor, *offsets, *entry, *shape, *wanted = cJSON_GetObjectItemCaseSensitive(json, "logits");
    const char *wrong = NULL;
    cJSON_ArrayForEach(entry, json) if (entry != wanted && strcmp(entry->string, "__metadata__") != 0) wrong =
        "expected no tensor but logits";
    tensor = wanted;
    if (strcmp(ck_text(&quiet, tensor, "dtype"), "F32") != 0) wrong = "expected one tensor logits of dtype F32";
    shape = ck_array(&quiet, tensor, "shape");
    offsets = ck_array(&quiet, tensor, "data_offsets");
    int64_t rows = ck_integer(&quiet, cJSON_GetArrayItem(shape, 0), "rows", 0);
    int64_t vocab = ck_integer(&quiet, cJSON_GetArrayItem(shape, 1), "vocab", 0);
    int64_t begin = ck_integer(&quiet, cJSON_GetArrayItem(offsets, 0), "begin", 0);
    int64_t end = ck_integer(&quiet, cJSON_GetArrayItem(offsets, 1), "end", 0);
    if (!wrong && (quiet.out.failed || cJSON_GetArraySize(shape) != 2 || cJSON_GetArraySize(offsets) != 2))
        wrong = "expected a tensor logits with shape [rows, vocab] and data_offsets";
    if (!wrong && (uint64_t)vocab != c->math.vocab) wrong = "expected rows of the vocabulary's size";
    uint64_t width = 4 * (uint64_t)c->math.vocab;
    if (!wrong && (begin > end || (uint64_t)rows > (UINT64_C(1) << 53) / width ||
                   (uint64_t)(end - begin) != width * (uint64_t)rows))
        wrong = "expected data_offsets that span the shape";
    s->rows = (uint64_t)rows;
    s->data = 8 + length + (uint64_t)begin;
    cJSON_Delete(json);
    return wrong;
}

static const char *open_shard(struct ck *c, struct ck_shard *s, const char *path)
{
    unsigned char prefix[8];
    uint64_t length = 0;
    struct stat status;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a pipe in its place must not make us wait
    if (file < 0) {
        s->absent = errno == ENOENT;
        return s->absent ? NULL : "cannot open it";
    }
    bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    s->file = regular ? fdopen(file, "rb") : NULL;
    if (!s->file) {
        close(file);
        return regular ? "cannot read it" : "expected a regular file";
    }
    if (fread(prefix, 1, 8, s->file) != 8) return "expected a safetensors header";
    for (int i = 7; i >= 0; i--) length = length << 8 | prefix[i];
    if (length < 2 || length > HEADER_LIMIT) return "expected a safetensors header of a sensible size";
    char *text = malloc(length + 1);
    if (!text) return "out of memory";
    const char *wrong = "expected a safetensors header, found the end of the file";
    if (fread(text, 1, length, s->file) == length) {
        size_t used = length;
        while (used && text[used - 1] == ' ') used--; // padding
        text[used] = '\0';
        wrong = read_header(c, s, text, used);
        s->data += length - used;
    }
    free(text);
    return wrong;
}

static void close_shard(struct ck_shard *s)
{
    if (s->file) fclose(s->file);
    *s = (struct ck_shard){.number = -1};
}

void ck_close_shards(struct ck *c)
{
    close_shard(&c->shard[0]);
    close_shard(&c->shard[1]);
}

static bool hash_matches(const void *bytes, size_t size, const char *hex)
{
    unsigned char hash[32];
    char text[65];
    if (!EVP_Digest(bytes, size, hash, NULL, EVP_sha256(), NULL)) return false;
    for (int i = 0; i < 32; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
    return strcmp(text, hex) == 0;
}

// Takes the little-endian bytes of a row as logits; they were read into the row itself.
static enum ck_reference take_row(struct ck *c, const char *key, enum ck_which which)
{
    struct ck_row *row = &c->math.row[which];
    const unsigned char *b = (const unsigned char *)row->logit;
    bool any = false;
    for (size_t i = 0; i < c->math.vocab; i++, b += 4) {
        uint32_t bits = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(&row->logit[i], &bits, 4);
        float x = row->logit[i];
        if (isnan(x) || (isinf(x) && x > 0)) {
            ck_refute(c, key, "expected finite logits or -inf, found %f at index %zu", (double)x, i);
            return CK_NO_ROW;
        }
        any = any || !isinf(x);
    }
    if (!any) ck_refute(c, key, "expected a finite logit, found a row of -inf");
    if (c->out.failed) return CK_NO_ROW;
    ck_math_new_row(&c->math, which);
    return CK_ROW;
}

// A row from a replay, where the log names one.
static enum ck_reference take_replayed(struct ck *c, const char *key, enum ck_which which, const char *sha256)
{
    const struct ck_replayed *r = &c->replayed[which];
    char field[32];
    snprintf(field, sizeof field, "%s.sha256", key);
    if (r->failed) {
        if (r->refuted)
            ck_refute(c, *r->field ? r->field : key, "%s", r->reason);
        else
            ck_unreadable(c, *r->field ? r->field : key, "%s", r->reason);
    } else if (!r->known) {
        if (sha256) ck_refute(c, field, "expected none: the models have no row here, found %.64s", sha256);
    } else if (sha256 && !hash_matches(r->logit, 4 * c->math.vocab, sha256)) {
        ck_refute(c, field, "expected the hash of the row that the models give here, found %.64s", sha256);
    } else {
        memcpy(c->math.row[which].logit, r->logit, 4 * c->math.vocab);
        return take_row(c, key, which);
    }
    return CK_NO_ROW;
}

static enum ck_reference load(struct ck *c, const char *key, enum ck_which which, int64_t number, int64_t index,
                              const char *sha256)
{
    struct ck_shard *s = &c->shard[which];
    struct ck_row *row = &c->math.row[which];
    size_t size = 4 * c->math.vocab;
    if (s->number != number) {
        close_shard(s);
        char *path = shard_path(c, c->header->pattern[which], number);
        const char *wrong = path ? open_shard(c, s, path) : "out of memory";
        if (wrong) ck_unreadable(c, key, "shard %s: %s", path, wrong);
        free(path);
        if (wrong) return CK_NO_ROW;
        s->number = number;
    }
    if (s->absent) return CK_ABSENT_ROW;
    uint64_t at = s->data + (uint64_t)index * size;
    if ((uint64_t)index >= s->rows || fseeko(s->file, (off_t)at, SEEK_SET) != 0 ||
        fread(row->logit, 1, size, s->file) != size)
        ck_refute(c, key, "expected row %lld in shard %lld, found %llu rows or a shorter file", (long long)index,
                  (long long)number, (unsigned long long)s->rows);
    else if (sha256 && !hash_matches(row->logit, size, sha256))
        ck_refute(c, key, "expected the row's bytes to hash to sha256 %.64s, found another hash", sha256);
    return c->out.failed ? CK_NO_ROW : take_row(c, key, which);
}

bool ck_names_row(const cJSON *reference)
{
    const cJSON *why = cJSON_GetObjectItemCaseSensitive(reference, "why");
    return ck_has(reference, "shard") || ck_has(reference, "sha256") ||
           (cJSON_IsString(why) && strcmp(why->valuestring, "not kept") == 0);
}

enum ck_reference ck_load_row(struct ck *c, const cJSON *record, const char *key, enum ck_which which)
{
    const cJSON *ref = ck_object(c, record, key), *hash = cJSON_GetObjectItemCaseSensitive(ref, "sha256");
    bool computed = c->replayed && !(which == CK_DRAFT && c->reads_draft);
    const char *sha256 = hash || (c->header->hashed && ck_has(ref, "shard")) ? ck_text(c, ref, "sha256") : NULL;
    if (c->out.failed) return CK_NO_ROW;
    if (sha256 && !c->header->hashed) ck_refute(c, key, "expected no sha256: the header says that rows are not hashed");
    if (sha256 && (strlen(sha256) != 64 || strspn(sha256, "0123456789abcdef") != 64))
        ck_unreadable(c, key, "expected a sha256 of 64 hexadecimal digits, found %s", ck_show(hash));
    if (cJSON_GetObjectItemCaseSensitive(ref, "shard")) {
        int64_t number = ck_int(c, ref, "shard", 0), index = ck_int(c, ref, "index", 0);
        if (!c->out.failed && !c->header->pattern[which][0])
            ck_refute(c, key, "expected no shard (the header names none)");
        if (c->out.failed) return CK_NO_ROW;
        if (!computed) return load(c, key, which, number, index, sha256);
    }
    const char *why = ck_has(ref, "shard") ? "" : ck_text(c, ref, "why");
    if (computed && c->replayed[which].asked && !c->out.failed) return take_replayed(c, key, which, sha256);
    return sha256 || strcmp(why, "not kept") == 0 ? CK_ABSENT_ROW : CK_NO_ROW;
}
