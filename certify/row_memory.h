// Memory for rows: blocks of some megabytes that one row gives back and the next one takes, because fresh pages from the
// system cost as much as the arithmetic on them. Any thread may call these.
#ifndef HM_CERTIFY_ROW_MEMORY_H
#define HM_CERTIFY_ROW_MEMORY_H

#include <stddef.h>

// A block of at least `bytes`, its contents unspecified; NULL when memory is short. *held: its size, to be given back with it.
void *hm_row_memory_take(size_t bytes, size_t *held);
void hm_row_memory_give(void *block, size_t held); // NULL is allowed

#endif
