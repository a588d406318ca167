// Checked sizes and allocation. Anything a file or a user told us is multiplied and added through these.
#ifndef HM_BASE_MEMORY_H
#define HM_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// *out = a * b, or a + b; false (and *out untouched) when the result does not fit.
bool hm_mul_size(size_t a, size_t b, size_t *out);
bool hm_add_size(size_t a, size_t b, size_t *out);

// count zeroed elements of the given size, or NULL when memory is short or the product overflows. Free with free().
// A count of 0 gives a pointer that may be freed.
void *hm_calloc(size_t count, size_t size);

// Grows *array (capacity *capacity elements of the given size) so that it can hold `need` elements; doubles.
// false when memory is short: the array is then unchanged and still the caller's.
bool hm_grow(void **array, size_t *capacity, size_t need, size_t size);

// Arrays that grow together: gives each room for `room` elements of its size. false when memory is short: each is then
// still the caller's, some larger than before.
struct hm_array {
    void **array;
    size_t size;
};
bool hm_grow_together(const struct hm_array *arrays, size_t count, size_t room);

#ifdef __cplusplus
}
#endif

#endif
