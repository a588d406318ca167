// Tokens in common of two rows of evidence: see match.h.
//
// Lists may be as long as the vocabulary, so they are sorted and merged: by id, then by text where one of the two entries
// lacks an id.
#include "evidence/match.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool hm_text_names_token(const char *text, size_t size)
{
    if (!text || size == 0) return false;
    for (size_t i = 0; i + 2 < size; i++)
        if (memcmp(text + i, "\xef\xbf\xbd", 3) == 0) return false;
    return true;
}

static int compare_text(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

size_t hm_evidence_find(const struct hm_evidence *row, const struct hm_token_name *token, bool *sure)
{
    size_t found = HM_UNSEEN, times = 0;
    bool all = token->id >= 0, named = hm_text_names_token(token->text, token->text_size);
    for (size_t i = 0; i < row->count; i++) {
        const struct hm_evidence_entry *e = &row->entry[i];
        bool ids = e->id >= 0 && token->id >= 0;
        all &= ids;
        if (ids ? e->id != token->id
                : !named || !e->text || compare_text(e->text, e->text_size, token->text, token->text_size) != 0)
            continue;
        found = i;
        times++;
    }
    *sure = times == 1 || (times == 0 && all);
    return times == 1 ? found : HM_UNSEEN;
}

// ---- two lists

typedef const struct hm_evidence_entry *entry_pointer;

static int by_id(const void *x, const void *y)
{
    const struct hm_evidence_entry *a = *(const entry_pointer *)x, *b = *(const entry_pointer *)y;
    return (a->id > b->id) - (a->id < b->id);
}

static int by_text(const void *x, const void *y)
{
    const struct hm_evidence_entry *a = *(const entry_pointer *)x, *b = *(const entry_pointer *)y;
    return compare_text(a->text, a->text_size, b->text, b->text_size);
}

static bool has_id(const struct hm_evidence_entry *e)
{
    return e->id >= 0;
}

static bool has_name(const struct hm_evidence_entry *e)
{
    return hm_text_names_token(e->text, e->text_size);
}

struct merge {
    const struct hm_evidence *rows[2];
    entry_pointer *a, *b; // [a_count], [b_count], sorted
    size_t a_count, b_count;
    int (*order)(const void *, const void *);
    void (*visit)(void *user, const struct hm_shared_token *token);
    void *user;
};

static size_t choose(const struct hm_evidence *row, bool (*wanted)(const struct hm_evidence_entry *),
                     int (*order)(const void *, const void *), entry_pointer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < row->count; i++)
        if (wanted(&row->entry[i])) out[n++] = &row->entry[i];
    qsort(out, n, sizeof *out, order);
    return n;
}

// How many entries from `at` on have one key.
static size_t run_length(const entry_pointer *list, size_t at, size_t count, int (*order)(const void *, const void *))
{
    size_t end = at + 1;
    while (end < count && order(&list[at], &list[end]) == 0) end++;
    return end - at;
}

// A key that is there twice on one side names no one token.
static void merge(const struct merge *m, bool texts)
{
    for (size_t i = 0, j = 0; i < m->a_count && j < m->b_count;) {
        int order = m->order(&m->a[i], &m->b[j]);
        size_t left = run_length(m->a, i, m->a_count, m->order), right = run_length(m->b, j, m->b_count, m->order);
        const struct hm_evidence_entry *a = m->a[i], *b = m->b[j];
        bool by_their_ids = a->id >= 0 && b->id >= 0; // texts of tokens with ids were matched by them
        if (order == 0 && left == 1 && right == 1 && (!texts || !by_their_ids)) {
            struct hm_shared_token token = {a->value, b->value, a->id >= 0 ? a->id : b->id,
                                            (size_t)(a - m->rows[0]->entry), (size_t)(b - m->rows[1]->entry)};
            m->visit(m->user, &token);
        }
        if (order <= 0) i += left;
        if (order >= 0) j += right;
    }
}

enum { FEW = 64 };

static hm_status match_lists(const struct hm_evidence *a, const struct hm_evidence *b,
                             void (*visit)(void *user, const struct hm_shared_token *token), void *user,
                             struct hm_error *err)
{
    entry_pointer few[2][FEW];
    entry_pointer *many_a = a->count > FEW ? hm_calloc(a->count, sizeof *many_a) : few[0];
    entry_pointer *many_b = b->count > FEW ? hm_calloc(b->count, sizeof *many_b) : few[1];
    hm_status rc = HM_OK;
    if (!many_a || !many_b) rc = hm_fail(err, HM_MEMORY, "out of memory for lists of %zu and %zu tokens", a->count, b->count);
    for (int texts = 0; texts < 2 && !rc; texts++) {
        struct merge m = {{a, b}, many_a, many_b, 0, 0, texts ? by_text : by_id, visit, user};
        m.a_count = choose(a, texts ? has_name : has_id, m.order, m.a);
        m.b_count = choose(b, texts ? has_name : has_id, m.order, m.b);
        merge(&m, texts);
    }
    if (many_a != few[0]) free(many_a);
    if (many_b != few[1]) free(many_b);
    return rc;
}

// ---- full rows

static struct hm_ival point(float x)
{
    return (struct hm_ival){x, x};
}

hm_status hm_evidence_match(const struct hm_evidence *a, const struct hm_evidence *b,
                            void (*visit)(void *user, const struct hm_shared_token *token), void *user,
                            struct hm_error *err)
{
    if (!a->logits && !b->logits) return match_lists(a, b, visit, user, err);
    const struct hm_evidence *full = a->logits ? a : b, *list = a->logits ? b : a;
    for (size_t i = 0; i < list->count; i++) {
        const struct hm_evidence_entry *e = &list->entry[i];
        if (e->id < 0 || (size_t)e->id >= full->vocab) continue;
        struct hm_ival value = point(full->logits[e->id]);
        size_t id = (size_t)e->id;
        visit(user, &(struct hm_shared_token){a->logits ? value : e->value, a->logits ? e->value : value, e->id,
                                              a->logits ? id : i, a->logits ? i : id});
    }
    return HM_OK;
}
