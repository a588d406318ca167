// Byte pair encoding of one word: see bpe.h. A word is a linked list of symbols; a heap holds the merges that may
// apply, best first; an entry whose symbols have changed since is recognised when it comes up and dropped.
#include "decode/bpe.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    CACHE_SLOTS = 1 << 14,
    CACHE_WORD = 64,          // longer words are rare, and rarely repeated
    WORD_MOST = INT32_MAX / 4 // bytes: positions are 32-bit
};

static const uint32_t NO_MERGE = UINT32_MAX;

struct symbol {
    int32_t id;             // -1 once merged into the one on its left
    int32_t previous, next; // positions, -1 at the ends
};

// The ids of an earlier word, in the output. The word itself is spelled by the bytes of those ids.
struct cached {
    uint32_t hash, count; // count 0: empty
    size_t start;
};

struct hm_bpe_work {
    struct symbol *symbols;
    size_t symbols_capacity;
    uint64_t *heap; // rank << 32 | position of the left symbol: the least comes first
    size_t heap_count, heap_capacity;
    struct cached cache[CACHE_SLOTS];
};

struct hm_bpe_work *hm_bpe_work_open(void)
{
    return hm_calloc(1, sizeof(struct hm_bpe_work));
}

void hm_bpe_work_close(struct hm_bpe_work *work)
{
    if (!work) return;
    free(work->symbols);
    free(work->heap);
    free(work);
}

// ---- merges

bool hm_bpe_init(struct hm_bpe *bpe, const struct hm_vocabulary *vocabulary, size_t merges)
{
    size_t slots = 16;
    while (slots < 2 * merges) slots *= 2;
    bpe->vocabulary = vocabulary;
    bpe->table = hm_calloc(slots, sizeof *bpe->table);
    bpe->results = hm_calloc(merges, sizeof *bpe->results);
    bpe->table_mask = slots - 1;
    return bpe->table && bpe->results;
}

void hm_bpe_clear(struct hm_bpe *bpe)
{
    free(bpe->table);
    free(bpe->results);
    *bpe = (struct hm_bpe){0};
}

static struct hm_bpe_slot *find_slot(const struct hm_bpe *bpe, int32_t left, int32_t right)
{
    uint64_t pair = ((uint64_t)left << 24 | (uint64_t)right) + 1;
    uint64_t hash = pair * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 24) & bpe->table_mask;
    while (bpe->table[at].pair && bpe->table[at].pair != pair) at = (at + 1) & bpe->table_mask;
    return &bpe->table[at];
}

bool hm_bpe_add(struct hm_bpe *bpe, int32_t left, int32_t right, int32_t result)
{
    struct hm_bpe_slot *slot = find_slot(bpe, left, right);
    if (slot->pair) return false;
    slot->pair = ((uint64_t)left << 24 | (uint64_t)right) + 1;
    slot->rank = (uint32_t)bpe->merges;
    bpe->results[bpe->merges++] = result;
    return true;
}

static uint32_t rank_of(const struct hm_bpe *bpe, int32_t left, int32_t right)
{
    const struct hm_bpe_slot *slot = find_slot(bpe, left, right);
    return slot->pair ? slot->rank : NO_MERGE;
}

// ---- the heap

static void heap_push(struct hm_bpe_work *work, uint64_t entry)
{
    size_t at = work->heap_count++;
    for (size_t parent; at > 0 && work->heap[parent = (at - 1) / 2] > entry; at = parent)
        work->heap[at] = work->heap[parent];
    work->heap[at] = entry;
}

static uint64_t heap_pop(struct hm_bpe_work *work)
{
    uint64_t top = work->heap[0], last = work->heap[--work->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < work->heap_count; at = child) {
        if (child + 1 < work->heap_count && work->heap[child + 1] < work->heap[child]) child++;
        if (work->heap[child] >= last) break;
        work->heap[at] = work->heap[child];
    }
    work->heap[at] = last;
    return top;
}

static void offer(const struct hm_bpe *bpe, struct hm_bpe_work *work, int32_t position)
{
    const struct symbol *left = &work->symbols[position];
    if (left->next < 0) return;
    uint32_t rank = rank_of(bpe, left->id, work->symbols[left->next].id);
    if (rank != NO_MERGE) heap_push(work, (uint64_t)rank << 32 | (uint32_t)position);
}

// ---- words

static hm_status reserve(struct hm_bpe_work *work, size_t size, struct hm_error *err)
{
    if (size > (size_t)WORD_MOST)
        return hm_fail(err, HM_RANGE, "a word of %zu bytes: expected at most %d", size, WORD_MOST);
    void *symbols = work->symbols, *heap = work->heap;
    bool ok = hm_grow(&symbols, &work->symbols_capacity, size, sizeof *work->symbols);
    work->symbols = symbols;
    // Each pair at the start, and at most two more for each of the size - 1 merges.
    ok = ok && hm_grow(&heap, &work->heap_capacity, 3 * size, sizeof *work->heap);
    work->heap = heap;
    return ok ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory encoding a word of %zu bytes", size);
}

static void merge_all(const struct hm_bpe *bpe, struct hm_bpe_work *work)
{
    while (work->heap_count > 0) {
        uint64_t entry = heap_pop(work);
        int32_t position = (int32_t)(entry & 0xffffffffu), result = bpe->results[entry >> 32];
        struct symbol *left = &work->symbols[position];
        if (left->id < 0 || left->next < 0) continue;
        struct symbol *right = &work->symbols[left->next];
        uint32_t rank = rank_of(bpe, left->id, right->id);
        // Two pairs may make the same token; the reference then lets the older entry stand for the newer pair.
        if (rank == NO_MERGE || bpe->results[rank] != result) continue;
        left->id = result;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) work->symbols[left->next].previous = position;
        if (left->previous >= 0) offer(bpe, work, left->previous);
        offer(bpe, work, position);
    }
}

static hm_status merge_word(const struct hm_bpe *bpe, struct hm_bpe_work *work, const uint8_t *word, size_t size,
                            struct hm_ids *out, struct hm_error *err)
{
    hm_status rc = reserve(work, size, err);
    if (rc) return rc;
    for (size_t i = 0; i < size; i++) {
        int32_t id = bpe->vocabulary->byte_ids[word[i]];
        if (id < 0) return hm_fail(err, HM_RANGE, "the vocabulary has no token for byte 0x%02x", word[i]);
        work->symbols[i] =
            (struct symbol){.id = id, .previous = (int32_t)i - 1, .next = i + 1 < size ? (int32_t)i + 1 : -1};
    }
    work->heap_count = 0;
    for (size_t i = 0; i + 1 < size; i++) offer(bpe, work, (int32_t)i);
    merge_all(bpe, work);
    for (int32_t i = 0; i >= 0; i = work->symbols[i].next)
        if (!hm_ids_add(out, work->symbols[i].id)) return hm_fail(err, HM_MEMORY, "out of memory for token ids");
    return HM_OK;
}

// Do the bytes of these ids spell the word?
static bool spells(const struct hm_vocabulary *v, const int32_t *ids, size_t count, const uint8_t *word, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hm_token *token = &v->tokens[ids[i]];
        if (token->size > size - at || memcmp(v->bytes.data + token->offset, word + at, token->size) != 0) return false;
        at += token->size;
    }
    return at == size;
}

hm_status hm_bpe_word(const struct hm_bpe *bpe, struct hm_bpe_work *work, const uint8_t *word, size_t size,
                      struct hm_ids *out, struct hm_error *err)
{
    if (size == 0) return HM_OK;
    if (bpe->ignore_merges) {
        int32_t whole = hm_vocabulary_find(bpe->vocabulary, word, size, HM_TOKEN_SPELLED);
        // A control token is only ever made on purpose, never because its text stands alone.
        if (whole >= 0 && !(bpe->vocabulary->tokens[whole].flags & HM_TOKEN_SPECIAL))
            return hm_ids_add(out, whole) ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for token ids");
    }
    if (size > CACHE_WORD) return merge_word(bpe, work, word, size, out, err);
    uint32_t hash = (uint32_t)hm_text_hash(word, size);
    struct cached *cached = &work->cache[hash % CACHE_SLOTS];
    if (cached->count && cached->hash == hash &&
        spells(bpe->vocabulary, out->data + cached->start, cached->count, word, size)) {
        for (uint32_t i = 0; i < cached->count; i++)
            if (!hm_ids_add(out, out->data[cached->start + i]))
                return hm_fail(err, HM_MEMORY, "out of memory for token ids");
        return HM_OK;
    }
    size_t start = out->count;
    hm_status rc = merge_word(bpe, work, word, size, out, err);
    if (!rc) *cached = (struct cached){.hash = hash, .count = (uint32_t)(out->count - start), .start = start};
    return rc;
}
