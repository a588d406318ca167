// Opening a tokenizer, encoding, looking things up: see tokenizer.h. Reading the file is in tokenizer_load.c.
#include "decode/tokenizer.h"

#include "base/file.h"
#include "base/memory.h"
#include "decode/tokenizer_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 128 << 20, TEXT_MOST = 1 << 30 };

hm_status hm_tokenizer_parse(const char *where, const char *json, size_t size, struct hm_tokenizer **out,
                             struct hm_error *err)
{
    *out = NULL;
    struct hm_tokenizer *t = hm_calloc(1, sizeof *t);
    if (!t) return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
    hm_status rc = hm_tokenizer_load(where, json, size, t, err);
    if (rc)
        hm_tokenizer_close(t);
    else
        *out = t;
    return rc;
}

hm_status hm_tokenizer_open(const char *dir_or_file, struct hm_tokenizer **out, struct hm_error *err)
{
    struct stat st;
    char *json = NULL, *inside = NULL;
    const char *path = dir_or_file;
    size_t size;
    *out = NULL;
    if (stat(dir_or_file, &st) == 0 && S_ISDIR(st.st_mode)) {
        path = inside = hm_path_join(dir_or_file, "tokenizer.json");
        if (!inside) return hm_fail(err, HM_MEMORY, "%s: out of memory", dir_or_file);
    }
    hm_status rc = hm_file_read(path, FILE_MOST, &json, &size, err);
    if (!rc) rc = hm_tokenizer_parse(path, json, size, out, err);
    free(json);
    free(inside);
    return rc;
}

void hm_tokenizer_close(struct hm_tokenizer *t)
{
    if (!t) return;
    hm_bpe_clear(&t->bpe);
    hm_vocabulary_clear(&t->vocabulary);
    hm_added_clear(&t->added);
    hm_added_clear(&t->raw);
    hm_added_clear(&t->normalized);
    hm_pretokenizer_free(t->pretokenizer);
    free(t->prefix.data);
    free(t);
}

// ---- encoding

struct encoding {
    const struct hm_tokenizer *t;
    enum hm_special specials;
    struct hm_bpe_work *bpe_work;
    struct hm_pretokenizer_work *cut_work;
    struct hm_bytes composed;
    struct hm_ids ids;
    struct hm_error *err;
};

static hm_status add_id(struct encoding *e, int32_t id)
{
    return hm_ids_add(&e->ids, id) ? HM_OK : hm_fail(e->err, HM_MEMORY, "out of memory for token ids");
}

static hm_status take_word(void *context, const uint8_t *word, size_t size, struct hm_error *err)
{
    struct encoding *e = context;
    return hm_bpe_word(&e->t->bpe, e->bpe_work, word, size, &e->ids, err);
}

static hm_status encode_plain(struct encoding *e, const uint8_t *text, size_t size)
{
    return hm_pretokenizer_run(e->t->pretokenizer, e->cut_work, text, size, take_word, e, e->err);
}

static hm_status encode_normalized(struct encoding *e, const uint8_t *text, size_t size);

typedef hm_status encode_part(struct encoding *e, const uint8_t *text, size_t size);

// Cuts the added tokens out of the text and hands what lies between them to `between`.
static hm_status encode_around(struct encoding *e, const struct hm_added *added, const uint8_t *text, size_t size,
                               encode_part *between)
{
    size_t done = 0, from = 0;
    hm_status rc = HM_OK;
    struct hm_added_match match;
    while (!rc && e->specials == HM_SPECIAL_PARSE && hm_added_next(added, text, size, from, done, &match)) {
        from = match.next;
        if (match.start >= match.end) continue;
        if (match.start > done) rc = between(e, text + done, match.start - done);
        if (!rc) rc = add_id(e, match.id);
        done = match.end;
    }
    if (!rc && done < size) rc = between(e, text + done, size - done);
    return rc;
}

static hm_status encode_normalized(struct encoding *e, const uint8_t *text, size_t size)
{
    if (e->t->nfc) {
        hm_status rc = hm_text_nfc(text, size, &e->composed, e->err);
        if (rc) return rc;
        text = e->composed.data;
        size = e->composed.count;
    }
    return encode_around(e, &e->t->normalized, text, size, encode_plain);
}

static hm_status encode_all(struct encoding *e, const uint8_t *text, size_t size)
{
    hm_status rc = HM_OK;
    for (size_t at = 0; at < size && !rc;) {
        size_t valid = hm_text_valid(text + at, size - at);
        if (valid > 0) {
            rc = encode_around(e, &e->t->raw, text + at, valid, encode_normalized);
            at += valid;
        } else {
            int32_t id = e->t->vocabulary.byte_ids[text[at]];
            rc = id >= 0 ? add_id(e, id)
                         : hm_fail(e->err, HM_RANGE, "the vocabulary has no token for byte 0x%02x", text[at]);
            at++;
        }
    }
    return rc;
}

hm_status hm_tokenizer_encode(const struct hm_tokenizer *t, const char *text, size_t size, enum hm_special specials,
                              int32_t **ids, size_t *count, struct hm_error *err)
{
    *ids = NULL;
    *count = 0;
    if (size > TEXT_MOST) return hm_fail(err, HM_RANGE, "a text of %zu bytes: expected at most %d", size, TEXT_MOST);
    struct encoding e = {.t = t, .specials = specials, .err = err};
    hm_status rc = HM_OK;
    e.bpe_work = hm_bpe_work_open();
    e.cut_work = hm_pretokenizer_work_open(size);
    e.ids.data = hm_calloc(16, sizeof *e.ids.data);
    e.ids.capacity = 16;
    if (!e.bpe_work || !e.cut_work || !e.ids.data) rc = hm_fail(err, HM_MEMORY, "out of memory encoding a text");
    if (!rc) rc = encode_all(&e, (const uint8_t *)text, size);
    hm_bpe_work_close(e.bpe_work);
    hm_pretokenizer_work_close(e.cut_work);
    free(e.composed.data);
    if (rc) {
        free(e.ids.data);
        return rc;
    }
    *ids = e.ids.data;
    *count = e.ids.count;
    return HM_OK;
}

// ---- looking things up

const int32_t *hm_tokenizer_prefix(const struct hm_tokenizer *t, size_t *count)
{
    *count = t->prefix.count;
    return t->prefix.count ? t->prefix.data : NULL;
}

const uint8_t *hm_tokenizer_bytes(const struct hm_tokenizer *t, int32_t id, size_t *size)
{
    *size = 0;
    if (!hm_vocabulary_flags(&t->vocabulary, id)) return NULL;
    const struct hm_token *token = &t->vocabulary.tokens[id];
    *size = token->size;
    return t->vocabulary.bytes.data + token->offset;
}

int32_t hm_tokenizer_find(const struct hm_tokenizer *t, const char *token)
{
    size_t size = strlen(token), unspelled;
    const struct hm_added_token *added = hm_added_find(&t->added, (const uint8_t *)token, size);
    if (added) return added->id;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) return -1;
    int32_t id = hm_text_unspell(token, size, bytes, &unspelled)
                     ? hm_vocabulary_find(&t->vocabulary, bytes, unspelled, HM_TOKEN_SPELLED)
                     : hm_vocabulary_find(&t->vocabulary, (const uint8_t *)token, size, 0);
    free(bytes);
    return id;
}

bool hm_tokenizer_is_special(const struct hm_tokenizer *t, int32_t id)
{
    return hm_vocabulary_flags(&t->vocabulary, id) & HM_TOKEN_SPECIAL;
}

int32_t hm_tokenizer_size(const struct hm_tokenizer *t)
{
    return t->vocabulary.count;
}

const uint8_t *hm_tokenizer_sha256(const struct hm_tokenizer *t)
{
    return t->sha256;
}

// ---- two tokenizers

static hm_status check_rows(const char *side, const struct hm_tokenizer *t, int32_t rows, struct hm_error *err)
{
    if (t->vocabulary.count <= rows) return HM_OK;
    return hm_fail(err, HM_SHAPE,
                   "%s: its tokenizer has ids up to %d: expected at most %d, as many as the model has rows", side,
                   t->vocabulary.count - 1, rows - 1);
}

hm_status hm_tokenizer_same_text(const struct hm_tokenizer *target, int32_t target_rows,
                                 const struct hm_tokenizer *draft, int32_t draft_rows, struct hm_error *err)
{
    hm_status rc = check_rows("target", target, target_rows, err);
    if (!rc) rc = check_rows("draft", draft, draft_rows, err);
    if (rc) return rc;
    int32_t shared =
        target->vocabulary.count < draft->vocabulary.count ? target->vocabulary.count : draft->vocabulary.count;
    for (int32_t id = 0; id < shared; id++) {
        size_t a_size, b_size;
        const uint8_t *a = hm_tokenizer_bytes(target, id, &a_size), *b = hm_tokenizer_bytes(draft, id, &b_size);
        if (a_size == b_size && !a == !b && (!a || memcmp(a, b, a_size) == 0)) continue;
        char shown_a[HM_TEXT_SHOWN] = "no text", shown_b[HM_TEXT_SHOWN] = "no text";
        if (a) hm_text_show(a, a_size, shown_a);
        if (b) hm_text_show(b, b_size, shown_b);
        return hm_fail(err, HM_SHAPE, "the draft's vocabulary differs from the target's: id %d: expected %s, found %s",
                       id, shown_a, shown_b);
    }
    return HM_OK;
}
