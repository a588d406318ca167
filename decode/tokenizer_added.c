// Added tokens: see tokenizer_added.h. The tokens are kept sorted; a match narrows a range of them byte by byte.
#include "decode/tokenizer_added.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void hm_added_clear(struct hm_added *added)
{
    for (size_t i = 0; i < added->count; i++) free(added->tokens[i].text);
    free(added->tokens);
    *added = (struct hm_added){0};
}

bool hm_added_append(struct hm_added *added, const struct hm_added_token *token)
{
    void *grown = added->tokens;
    if (!hm_grow(&grown, &added->capacity, added->count + 1, sizeof *added->tokens)) return false;
    added->tokens = grown;
    uint8_t *copy = malloc(token->size);
    if (!copy) return false;
    memcpy(copy, token->text, token->size);
    added->first[copy[0]] = true;
    added->tokens[added->count] = *token;
    added->tokens[added->count++].text = copy;
    return true;
}

static int compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int by_text(const void *a, const void *b)
{
    const struct hm_added_token *x = a, *y = b;
    return compare(x->text, x->size, y->text, y->size);
}

const struct hm_added_token *hm_added_sort(struct hm_added *added)
{
    if (added->count) qsort(added->tokens, added->count, sizeof *added->tokens, by_text);
    for (size_t i = 1; i < added->count; i++)
        if (by_text(&added->tokens[i - 1], &added->tokens[i]) == 0) return &added->tokens[i];
    return NULL;
}

const struct hm_added_token *hm_added_find(const struct hm_added *added, const uint8_t *text, size_t size)
{
    size_t low = 0, high = added->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hm_added_token *token = &added->tokens[middle];
        int order = compare(text, size, token->text, token->size);
        if (order == 0) return token;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

// The first token in [low, high) whose byte at `depth` is at least `byte`; all of them share `depth` bytes.
static size_t lower_bound(const struct hm_added *added, size_t low, size_t high, size_t depth, int byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hm_added_token *token = &added->tokens[middle];
        if (token->size <= depth || token->text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct hm_added_token *longest_at(const struct hm_added *added, const uint8_t *text, size_t size)
{
    const struct hm_added_token *longest = NULL;
    size_t low = 0, high = added->count;
    for (size_t depth = 0; depth < size; depth++) {
        size_t next_low = lower_bound(added, low, high, depth, text[depth]);
        high = lower_bound(added, next_low, high, depth, text[depth] + 1);
        low = next_low;
        if (low == high) break;
        // The shortest of the range sorts first: it is the token that ends here, if there is one.
        if (added->tokens[low].size == depth + 1) longest = &added->tokens[low];
    }
    return longest;
}

// White space is scanned once: not before `taken`, nor again where the match before has stripped it already. So a text
// of nothing but spaces takes linear time, even when a space is itself a token that strips.
static void strip(const struct hm_added_token *token, const uint8_t *text, size_t size, size_t taken,
                  struct hm_added_match *match)
{
    if (token->left_strip && match->start > taken)
        match->start -= hm_text_trailing_space(text + taken, match->start - taken);
    else if (token->left_strip)
        match->start = taken;
    if (token->right_strip && match->end < taken)
        match->end = taken;
    else if (token->right_strip)
        match->end += hm_text_leading_space(text + match->end, size - match->end);
}

bool hm_added_next(const struct hm_added *added, const uint8_t *text, size_t size, size_t from, size_t taken,
                   struct hm_added_match *match)
{
    for (size_t at = from; at < size; at++) {
        if (!added->first[text[at]]) continue;
        const struct hm_added_token *token = longest_at(added, text + at, size - at);
        if (!token) continue;
        size_t end = at + token->size;
        *match = (struct hm_added_match){.start = at, .end = end, .next = end, .id = token->id};
        strip(token, text, size, taken, match);
        return true;
    }
    return false;
}
