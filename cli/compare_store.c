// Sequences kept in memory: see compare_store.h. A token is one block: the structure, its entries and its texts or floats.
#include "cli/compare_store.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct hm_stored_sequence {
    struct hm_side_sequence now; // owned
    struct hm_source_token **token; // [count], each one block
    size_t count, room, next, bytes;
};

static void free_sequence(struct hm_stored_sequence *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->count; i++) free(s->token[i]);
    free(s->token);
    hm_side_sequence_clear(&s->now);
    free(s);
}

static size_t text_bytes(const struct hm_evidence *row)
{
    size_t bytes = 0;
    for (size_t i = 0; i < row->count; i++) bytes += row->entry[i].text ? row->entry[i].text_size : 0;
    return bytes;
}

// Copies text behind *at and moves *at.
static const char *put(char **at, const char *text, size_t size)
{
    char *to = *at;
    if (!text) return NULL;
    memcpy(to, text, size);
    *at += size;
    return to;
}

static struct hm_source_token *copy_token(const struct hm_source_token *from, size_t *bytes)
{
    const struct hm_evidence *row = &from->row;
    bool listed = from->has_row && !row->logits, full = from->has_row && row->logits;
    size_t where = from->where ? strlen(from->where) + 1 : 0;
    size_t entries = listed ? row->count * sizeof *row->entry : 0, floats = full ? row->vocab * sizeof *row->logits : 0;
    *bytes = sizeof *from + entries + floats + (listed ? text_bytes(row) : 0) + (from->text ? from->text_size : 0) + where;
    struct hm_source_token *to = malloc(*bytes); // sizes of things that are in memory already: no overflow
    if (!to) return NULL;
    *to = *from;
    char *at = (char *)(to + 1);
    to->draft_logits = NULL;
    if (full) to->row.logits = memcpy(at, row->logits, floats);
    at += floats;
    struct hm_evidence_entry *entry = (struct hm_evidence_entry *)at;
    at += entries;
    for (size_t i = 0; listed && i < row->count; i++) {
        entry[i] = row->entry[i];
        entry[i].text = put(&at, row->entry[i].text, row->entry[i].text_size);
    }
    if (listed) to->row.entry = entry;
    to->text = put(&at, from->text, from->text_size);
    to->where = put(&at, from->where, where);
    return to;
}

static bool add_token(struct hm_stored_sequence *s, const struct hm_source_token *token)
{
    size_t bytes;
    void *grown = s->token;
    if (!hm_grow(&grown, &s->room, s->count + 1, sizeof *s->token)) return false;
    s->token = grown;
    struct hm_source_token *copy = copy_token(token, &bytes);
    if (!copy) return false;
    s->token[s->count++] = copy;
    s->bytes += bytes;
    return true;
}

hm_status hm_store_add(struct hm_compare_side *side, struct hm_error *err)
{
    const struct hm_source_token *token;
    struct hm_stored_sequence *s = hm_calloc(1, sizeof *s);
    void *grown = side->stored;
    bool kept = s && hm_grow(&grown, &side->stored_room, side->stored_count + 1, sizeof *side->stored);
    hm_status rc = HM_OK;
    side->stored = grown;
    while (!(rc = hm_side_token(side, &token, err)) && token) {
        kept = kept && side->stored_bytes + s->bytes < HM_STORE_BYTES && add_token(s, token);
    }
    if (rc || !kept) {
        free_sequence(s);
        return rc;
    }
    s->now = side->now;
    side->now = (struct hm_side_sequence){.number = s->now.number};
    side->stored_bytes += s->bytes;
    side->stored[side->stored_count++] = s;
    return HM_OK;
}

bool hm_store_take(struct hm_compare_side *side, uint32_t number)
{
    size_t i = 0;
    free_sequence(side->serving);
    side->serving = NULL;
    while (i < side->stored_count && side->stored[i]->now.number != number) i++;
    if (i == side->stored_count) return false;
    struct hm_stored_sequence *s = side->stored[i];
    side->stored[i] = side->stored[--side->stored_count];
    side->stored_bytes -= s->bytes;
    hm_side_sequence_clear(&side->now);
    side->now = s->now;
    s->now = (struct hm_side_sequence){0};
    side->serving = s;
    return true;
}

const struct hm_source_token *hm_store_token(struct hm_compare_side *side)
{
    struct hm_stored_sequence *s = side->serving;
    return s->next < s->count ? s->token[s->next++] : NULL;
}

void hm_store_clear(struct hm_compare_side *side)
{
    free_sequence(side->serving);
    for (size_t i = 0; i < side->stored_count; i++) free_sequence(side->stored[i]);
    free(side->stored);
    side->serving = NULL;
    side->stored = NULL;
    side->stored_count = side->stored_room = side->stored_bytes = 0;
}
