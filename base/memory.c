// Checked sizes and allocation: see memory.h.
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

bool hm_mul_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool hm_add_size(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

void *hm_calloc(size_t count, size_t size)
{
    return calloc(count ? count : 1, size ? size : 1);
}

bool hm_grow(void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return true;
    size_t want = *capacity ? *capacity : 16;
    while (want < need) {
        if (want > SIZE_MAX / 2) return false;
        want *= 2;
    }
    size_t bytes;
    if (!hm_mul_size(want, size, &bytes)) return false;
    void *grown = realloc(*array, bytes);
    if (!grown) return false;
    *array = grown;
    *capacity = want;
    return true;
}

bool hm_grow_together(const struct hm_array *arrays, size_t count, size_t room)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        void *grown = hm_mul_size(room, arrays[i].size, &bytes) ? realloc(*arrays[i].array, bytes) : NULL;
        if (!grown) return false;
        *arrays[i].array = grown;
    }
    return true;
}
