// The tokens of a tokenizer: see tokenizer_vocabulary.h.
#include "decode/tokenizer_vocabulary.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool hm_vocabulary_init(struct hm_vocabulary *v, int32_t count, size_t entries)
{
    size_t slots = 16;
    while (slots < 2 * entries) slots *= 2;
    v->tokens = hm_calloc((size_t)count, sizeof *v->tokens);
    v->table = hm_calloc(slots, sizeof *v->table);
    if (!v->tokens || !v->table) return false;
    v->count = count;
    memset(v->table, 0xff, slots * sizeof *v->table);
    v->table_mask = slots - 1;
    for (int i = 0; i < 256; i++) v->byte_ids[i] = -1;
    return true;
}

void hm_vocabulary_clear(struct hm_vocabulary *v)
{
    free(v->tokens);
    free(v->bytes.data);
    free(v->table);
    *v = (struct hm_vocabulary){0};
}

// The slot that holds these bytes, or the free slot where they would go.
static size_t find_slot(const struct hm_vocabulary *v, const uint8_t *bytes, size_t size, uint8_t spelled)
{
    size_t slot = (size_t)hm_text_hash(bytes, size) & v->table_mask;
    for (;; slot = (slot + 1) & v->table_mask) {
        int32_t id = v->table[slot];
        if (id < 0) return slot;
        const struct hm_token *token = &v->tokens[id];
        if (token->size == size && (token->flags & HM_TOKEN_SPELLED) == spelled &&
            memcmp(v->bytes.data + token->offset, bytes, size) == 0)
            return slot;
    }
}

bool hm_vocabulary_set(struct hm_vocabulary *v, int32_t id, const uint8_t *bytes, size_t size, uint8_t flags)
{
    if (size > UINT32_MAX / 2 || v->bytes.count > UINT32_MAX / 2 || id >= v->count) return false;
    size_t offset = v->bytes.count;
    if (!hm_bytes_add(&v->bytes, bytes, size)) return false;
    v->tokens[id] = (struct hm_token){
        .offset = (uint32_t)offset, .size = (uint32_t)size, .flags = (uint8_t)(flags | HM_TOKEN_PRESENT)};
    if (flags & HM_TOKEN_MODEL) v->table[find_slot(v, bytes, size, flags & HM_TOKEN_SPELLED)] = id;
    if ((flags & HM_TOKEN_SPELLED) && size == 1) v->byte_ids[bytes[0]] = id;
    return true;
}

uint8_t hm_vocabulary_flags(const struct hm_vocabulary *v, int32_t id)
{
    return id >= 0 && id < v->count ? v->tokens[id].flags : 0;
}

int32_t hm_vocabulary_find(const struct hm_vocabulary *v, const uint8_t *bytes, size_t size, uint8_t spelled)
{
    return v->table[find_slot(v, bytes, size, spelled)];
}
