// Stop strings in a stream of text: see stop.h.
#include "decode/stop.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// Where the first stop string in the held text begins; size when there is none.
static size_t first_match(const struct hm_stop *stop)
{
    size_t best = stop->size;
    for (size_t i = 0; i < stop->count; i++) {
        const char *at = memmem(stop->held, stop->size, stop->strings[i], strlen(stop->strings[i]));
        if (at && (size_t)(at - stop->held) < best) best = (size_t)(at - stop->held);
    }
    return best;
}

// Length of the longest suffix of the held text that is a proper prefix of a stop string.
static size_t pending(const struct hm_stop *stop)
{
    size_t longest = 0;
    for (size_t i = 0; i < stop->count; i++) {
        size_t n = strlen(stop->strings[i]) - 1;
        if (n > stop->size) n = stop->size;
        for (; n > longest; n--)
            if (memcmp(stop->held + stop->size - n, stop->strings[i], n) == 0) longest = n;
    }
    return longest;
}

hm_status hm_stop_push(struct hm_stop *stop, const char *text, size_t size, bool *found, struct hm_error *err)
{
    void *held = stop->held;
    *found = false;
    if (stop->show) memmove(stop->held, stop->held + stop->show, stop->size -= stop->show);
    stop->show = 0;
    if (!hm_grow(&held, &stop->capacity, stop->size + size + 1, 1))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu bytes of text", stop->size + size);
    stop->held = held;
    if (size) memcpy(stop->held + stop->size, text, size);
    stop->size += size;
    size_t match = first_match(stop);
    *found = match < stop->size;
    if (*found) stop->size = match;
    stop->show = *found ? match : stop->size - pending(stop);
    return HM_OK;
}

void hm_stop_flush(struct hm_stop *stop)
{
    if (stop->show) memmove(stop->held, stop->held + stop->show, stop->size -= stop->show);
    stop->show = stop->size;
}

void hm_stop_clear(struct hm_stop *stop)
{
    free(stop->held);
    stop->held = NULL;
    stop->size = stop->capacity = stop->show = 0;
}
