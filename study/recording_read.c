// Reading recordings: see recording.h. Every field is checked before it is used; what passes is a pool as pool.h
// describes one.
#include "study/recording.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "study/frame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order { // a candidate, to find siblings that share a token
    int32_t parent, token;
    double p;
};

struct hm_recording {
    FILE *file;
    char *path;
    uint64_t offset, next_offset; // of the frame at hand, of the one after it
    bool truncated, has_sequence, has_round;
    uint8_t *bytes;               // kind, length and payload of the frame at hand
    size_t capacity;
    char text[6][HM_RECORDING_TEXT_MOST + 1], id[HM_RECORDING_TEXT_MOST + 1], category[HM_RECORDING_TEXT_MOST + 1];
    struct hm_recording_header header;
    struct hm_recording_sequence sequence;
    struct hm_recording_round round;
    int32_t *token, *parent, *argmax;
    float *logq;
    double *p, *substitute[2];
    struct order *order;
    size_t room;                  // candidates that the arrays hold
};

// ---- frames

static hm_status broken(const struct hm_recording *r, const char *what, const char *expected, double found,
                        struct hm_error *err)
{
    return hm_fail(err, HM_FORMAT, "%s: frame at offset %llu: %s: expected %s, found %.17g", r->path,
                   (unsigned long long)r->offset, what, expected, found);
}

// Reads `size` bytes; fewer only at the end of the file.
static hm_status take(struct hm_recording *r, void *bytes, size_t size, size_t *got, struct hm_error *err)
{
    *got = fread(bytes, 1, size, r->file);
    if (*got == size || !ferror(r->file)) return HM_OK;
    return hm_fail(err, HM_IO, "%s: cannot read the recording: %s", r->path, strerror(errno));
}

static bool at_end(FILE *file)
{
    int c = getc(file);
    if (c != EOF) ungetc(c, file);
    return c == EOF;
}

// The next whole frame. *kind is 0 at the end; a frame that was cut, or the last one with another checksum, is the end too.
static hm_status next_frame(struct hm_recording *r, uint32_t *kind, struct hm_frame_in *payload, struct hm_error *err)
{
    uint8_t head[HM_FRAME_HEAD], digest[HM_SHA256_BYTES];
    size_t got;
    *kind = 0;
    r->offset = r->next_offset;
    hm_status rc = take(r, head, sizeof head, &got, err);
    if (rc || got == 0) return rc;
    r->truncated = got < sizeof head;
    if (r->truncated) return HM_OK;
    struct hm_frame_in in = {.bytes = head, .size = sizeof head};
    uint32_t found = hm_frame_u32(&in), size = hm_frame_u32(&in);
    if (found < HM_FRAME_HEADER || found > HM_FRAME_ROUND) return broken(r, "kind", "1, 2 or 3", found, err);
    if (size > HM_FRAME_LARGEST) return broken(r, "length", "at most 16777216 bytes", size, err);
    void *grown = r->bytes;
    if (!hm_grow(&grown, &r->capacity, (size_t)size + 8, 1)) return hm_fail(err, HM_MEMORY, "%s: out of memory", r->path);
    r->bytes = grown;
    memcpy(r->bytes, head, 8);
    rc = take(r, r->bytes + 8, size, &got, err);
    if (rc) return rc;
    r->truncated = got < size;
    if (r->truncated) return HM_OK;
    rc = hm_sha256(r->bytes, (size_t)size + 8, digest, err);
    if (rc) return rc;
    if (memcmp(digest, head + 8, HM_FRAME_CHECKSUM) != 0) {
        r->truncated = at_end(r->file);
        if (r->truncated) return HM_OK;
        return hm_fail(err, HM_FORMAT, "%s: frame at offset %llu: expected the bytes that its checksum names, found others",
                       r->path, (unsigned long long)r->offset);
    }
    r->next_offset = r->offset + sizeof head + size;
    *kind = found;
    *payload = (struct hm_frame_in){.bytes = r->bytes + 8, .size = size};
    return HM_OK;
}

static hm_status check_whole(const struct hm_recording *r, const struct hm_frame_in *in, struct hm_error *err)
{
    if (in->over) return broken(r, "length", "more bytes for its fields", (double)in->size, err);
    if (in->at != in->size) return broken(r, "bytes after the last field", "none", (double)(in->size - in->at), err);
    return HM_OK;
}

static hm_status read_text(struct hm_recording *r, struct hm_frame_in *in, char text[HM_RECORDING_TEXT_MOST + 1],
                           struct hm_error *err)
{
    size_t size = hm_frame_u8(in);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)hm_frame_u8(in);
        if (text[i] == 0 && !in->over) return broken(r, "text", "no zero byte", (double)i, err);
    }
    text[size] = 0;
    return HM_OK;
}

// ---- header and sequences

static hm_status read_header(struct hm_recording *r, struct hm_error *err)
{
    struct hm_recording_header *h = &r->header;
    struct hm_frame_in in;
    uint32_t kind;
    hm_status rc = next_frame(r, &kind, &in, err);
    if (rc) return rc;
    if (kind != HM_FRAME_HEADER)
        return hm_fail(err, HM_FORMAT, "%s: expected a whole header after the first %d bytes, found %s", r->path,
                       HM_FRAME_MAGIC_BYTES, kind ? "another frame" : "the end of the file");
    uint32_t version = hm_frame_u32(&in);
    if (version != HM_RECORDING_VERSION) return broken(r, "version", "1", version, err);
    const char **texts[] = {&h->target, &h->drafter, &h->task, &h->temperature, &h->probability_temperature, &h->top_p};
    for (size_t i = 0; i < 6 && !rc; i++) {
        rc = read_text(r, &in, r->text[i], err);
        *texts[i] = r->text[i];
    }
    if (rc) return rc;
    h->top_k = hm_frame_u32(&in);
    h->vocab = hm_frame_u32(&in);
    h->width = hm_frame_u32(&in);
    h->depth = hm_frame_u32(&in);
    h->budget = hm_frame_u32(&in);
    h->seed = hm_frame_u64(&in);
    rc = check_whole(r, &in, err);
    if (!rc && (h->vocab < 2 || h->vocab > HM_RECORDING_VOCAB_MOST))
        rc = broken(r, "vocabulary", "2 to 16777216", h->vocab, err);
    if (!rc && (h->width < 1 || h->width > HM_RECORDING_WIDTH_MOST)) rc = broken(r, "width", "1 to 64", h->width, err);
    if (!rc && h->depth > HM_RECORDING_WIDTH_MOST) rc = broken(r, "depth", "0 to 64", h->depth, err);
    return rc;
}

static hm_status read_sequence(struct hm_recording *r, struct hm_frame_in *in, struct hm_error *err)
{
    r->sequence.sequence = hm_frame_u32(in);
    r->sequence.turn = hm_frame_u32(in);
    hm_status rc = read_text(r, in, r->id, err);
    if (!rc) rc = read_text(r, in, r->category, err);
    r->sequence.id = r->id;
    r->sequence.category = r->category;
    r->has_sequence = true;
    r->has_round = false;
    return rc ? rc : check_whole(r, in, err);
}

// ---- rounds

static hm_status make_room(struct hm_recording *r, size_t count, struct hm_error *err)
{
    if (count < r->room) return HM_OK;
    size_t room = count + 1;
    const struct hm_array arrays[] = {{(void **)&r->token, sizeof *r->token}, {(void **)&r->parent, sizeof *r->parent},
                  {(void **)&r->argmax, sizeof *r->argmax}, {(void **)&r->logq, sizeof *r->logq},
                  {(void **)&r->p, sizeof *r->p}, {(void **)&r->order, sizeof *r->order},
                  {(void **)&r->substitute[0], sizeof **r->substitute},
                  {(void **)&r->substitute[1], sizeof **r->substitute}};
    if (!hm_grow_together(arrays, sizeof arrays / sizeof *arrays, room))
        return hm_fail(err, HM_MEMORY, "%s: out of memory for a pool of %zu candidates", r->path, count);
    r->room = room;
    return HM_OK;
}

static int by_parent_and_token(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

// Siblings carry distinct tokens, and their probabilities are parts of one.
static hm_status check_siblings(struct hm_recording *r, struct hm_error *err)
{
    size_t n = r->round.count;
    double sum = 0;
    for (size_t i = 0; i < n; i++) r->order[i] = (struct order){r->parent[i], r->token[i], r->p[i]};
    qsort(r->order, n, sizeof *r->order, by_parent_and_token);
    for (size_t i = 0; i < n; i++) {
        bool sibling = i > 0 && r->order[i].parent == r->order[i - 1].parent;
        if (sibling && r->order[i].token == r->order[i - 1].token)
            return broken(r, "tokens of siblings", "each once, twice", r->order[i].token, err);
        sum = (sibling ? sum : 0) + r->order[i].p;
        if (sum > 1 + 0x1p-30) return broken(r, "probabilities of siblings", "a sum of at most 1", sum, err);
    }
    return HM_OK;
}

static hm_status check_candidates(struct hm_recording *r, struct hm_error *err)
{
    struct hm_recording_round *round = &r->round;
    double vocab = r->header.vocab;
    round->first_level = 0;
    for (size_t i = 0; i < round->count; i++) {
        if (r->token[i] < 0 || r->token[i] >= vocab) return broken(r, "token", "one of the vocabulary", r->token[i], err);
        if (r->parent[i] < -1 || r->parent[i] >= (int64_t)i)
            return broken(r, "parent", "an earlier candidate", r->parent[i], err);
        if (!(r->logq[i] <= 0)) return broken(r, "log q", "at most 0", (double)r->logq[i], err);
        if (!(r->p[i] >= 0 && r->p[i] <= 1)) return broken(r, "p", "0 to 1", r->p[i], err);
        round->first_level += r->parent[i] < 0;
    }
    for (size_t i = 0; i <= round->count; i++)
        if (r->argmax[i] < 0 || r->argmax[i] >= vocab)
            return broken(r, "argmax", "one of the vocabulary", r->argmax[i], err);
    return check_siblings(r, err);
}

static hm_status read_substitute(struct hm_recording *r, struct hm_frame_in *in, double *p, struct hm_substitute *out,
                                 struct hm_error *err)
{
    unsigned address = hm_frame_u8(in);
    *out = (struct hm_substitute){.address = HM_ADDRESS_NONE, .p = p};
    if (address >= HM_ADDRESS_CLASSES) return broken(r, "address class", "0 to 4", address, err);
    if (address == HM_ADDRESS_NONE) return HM_OK;
    out->address = (enum hm_address_class)address;
    out->age = hm_frame_u32(in);
    out->argmax = (int32_t)hm_frame_u32(in);
    out->tv = hm_frame_double(in);
    for (size_t i = 0; i < r->round.first_level; i++) {
        p[i] = hm_frame_double(in);
        if (!(p[i] >= 0 && p[i] <= 1)) return broken(r, "p of another row", "0 to 1", p[i], err);
    }
    if (out->argmax < 0 || (uint32_t)out->argmax >= r->header.vocab)
        return broken(r, "argmax of another row", "one of the vocabulary", out->argmax, err);
    if (!(out->tv >= 0 && out->tv <= 1)) return broken(r, "total variation", "0 to 1", out->tv, err);
    return HM_OK;
}

static hm_status check_place(struct hm_recording *r, const struct hm_recording_round *last, struct hm_error *err)
{
    const struct hm_recording_round *round = &r->round;
    if (!r->has_sequence) return hm_fail(err, HM_FORMAT, "%s: frame at offset %llu: expected a sequence before its first "
                                         "round, found a round", r->path, (unsigned long long)r->offset);
    if (round->sequence != r->sequence.sequence) return broken(r, "sequence", "the one announced", round->sequence, err);
    if (r->has_round && (round->round <= last->round || round->t <= last->t))
        return broken(r, "round", "one after the last, with more output", round->round, err);
    if (round->root < 0 || (uint32_t)round->root >= r->header.vocab)
        return broken(r, "root", "one of the vocabulary", round->root, err);
    if (round->accepted < -1) return broken(r, "accepted", "-1 or more", round->accepted, err);
    return HM_OK;
}

static hm_status read_round(struct hm_recording *r, struct hm_frame_in *in, struct hm_error *err)
{
    struct hm_recording_round *round = &r->round, last = r->round;
    round->sequence = hm_frame_u32(in);
    round->round = hm_frame_u32(in);
    round->t = hm_frame_u32(in);
    round->length = hm_frame_u32(in);
    round->root = (int32_t)hm_frame_u32(in);
    round->accepted = (int32_t)hm_frame_u32(in);
    uint32_t count = hm_frame_u32(in);
    if (count > HM_RECORDING_CANDIDATES_MOST) return broken(r, "candidates", "at most 16384", count, err);
    hm_status rc = check_place(r, &last, err);
    if (!rc) rc = make_room(r, count, err);
    if (rc) return rc;
    round->count = count;
    for (size_t i = 0; i < count; i++) r->token[i] = (int32_t)hm_frame_u32(in);
    for (size_t i = 0; i < count; i++) r->parent[i] = (int32_t)hm_frame_u32(in);
    for (size_t i = 0; i < count; i++) r->logq[i] = hm_frame_float(in);
    for (size_t i = 0; i < count; i++) r->p[i] = hm_frame_double(in);
    for (size_t i = 0; i <= count; i++) r->argmax[i] = (int32_t)hm_frame_u32(in);
    unsigned matched = hm_frame_u8(in);
    if (in->over) return check_whole(r, in, err);
    if (matched > HM_MATCHED_DIFFERENT) return broken(r, "matched", "0, 1 or 2", matched, err);
    round->matched = (enum hm_matched)matched;
    rc = check_candidates(r, err);
    if (!rc) rc = read_substitute(r, in, r->substitute[0], &round->cached, err);
    if (!rc) rc = read_substitute(r, in, r->substitute[1], &round->preceding, err);
    if (!rc) rc = check_whole(r, in, err);
    round->token = r->token;
    round->parent = r->parent;
    round->logq = r->logq;
    round->p = r->p;
    round->argmax = r->argmax;
    r->has_round = true;
    return rc;
}

// ---- public

hm_status hm_recording_open(const char *path, struct hm_recording **out, struct hm_error *err)
{
    struct hm_recording *r = hm_calloc(1, sizeof *r);
    char magic[HM_FRAME_MAGIC_BYTES];
    size_t got = 0;
    *out = NULL;
    if (!r || !(r->path = strdup(path))) {
        free(r);
        return hm_fail(err, HM_MEMORY, "out of memory for a recording");
    }
    hm_status rc = HM_OK;
    r->file = fopen(path, "rb");
    if (!r->file) rc = hm_fail(err, HM_IO, "%s: cannot open the recording: %s", path, strerror(errno));
    if (!rc) rc = take(r, magic, sizeof magic, &got, err);
    if (!rc && (got < sizeof magic || memcmp(magic, hm_frame_magic, sizeof magic) != 0))
        rc = hm_fail(err, HM_FORMAT, "%s: expected a recording of pools, whose first %zu bytes say so, found something else",
                     path, sizeof magic);
    r->next_offset = sizeof magic;
    if (!rc) rc = read_header(r, err);
    if (rc) hm_recording_close(r);
    else *out = r;
    return rc;
}

void hm_recording_close(struct hm_recording *r)
{
    if (!r) return;
    if (r->file) fclose(r->file);
    free(r->path);
    free(r->bytes);
    free(r->token);
    free(r->parent);
    free(r->argmax);
    free(r->logq);
    free(r->p);
    free(r->substitute[0]);
    free(r->substitute[1]);
    free(r->order);
    free(r);
}

const struct hm_recording_header *hm_recording_head(const struct hm_recording *r)
{
    return &r->header;
}

const char *hm_recording_path(const struct hm_recording *r)
{
    return r->path;
}

bool hm_recording_truncated(const struct hm_recording *r)
{
    return r->truncated;
}

hm_status hm_recording_next(struct hm_recording *r, const struct hm_recording_sequence **sequence,
                            const struct hm_recording_round **round, struct hm_error *err)
{
    struct hm_frame_in in;
    uint32_t kind;
    *round = NULL;
    *sequence = &r->sequence;
    for (;;) {
        hm_status rc = next_frame(r, &kind, &in, err);
        if (rc || !kind) return rc;
        if (kind == HM_FRAME_HEADER) return broken(r, "kind", "2 or 3 after the header", kind, err);
        rc = kind == HM_FRAME_SEQUENCE ? read_sequence(r, &in, err) : read_round(r, &in, err);
        if (rc) return rc;
        if (kind == HM_FRAME_ROUND) break;
    }
    *round = &r->round;
    return HM_OK;
}
