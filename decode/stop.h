// Stop strings in a stream of text: shows only what can no longer be the beginning of one.
#ifndef HM_DECODE_STOP_H
#define HM_DECODE_STOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Starts as {.strings = ..., .count = ...}; cleared with hm_stop_clear.
struct hm_stop {
    const char *const *strings; // borrowed [count], none empty
    size_t count;
    char *held;                 // text not shown yet [size]
    size_t size, capacity;
    size_t show;                // leading bytes of held that the last push released
};

// Adds text. Afterwards held[0 .. show) may be shown; *found says that a stop string has completed, and then the text
// before its first occurrence is released and the rest is dropped.
hm_status hm_stop_push(struct hm_stop *stop, const char *text, size_t size, bool *found, struct hm_error *err);

// Releases everything that is held: the stream has ended without a stop string.
void hm_stop_flush(struct hm_stop *stop);
void hm_stop_clear(struct hm_stop *stop);

#ifdef __cplusplus
}
#endif

#endif
