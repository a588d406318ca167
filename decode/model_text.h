// Messages that quote a file stay one line: names in JSON may hold any character.
#ifndef HM_DECODE_MODEL_TEXT_H
#define HM_DECODE_MODEL_TEXT_H

#include "base/error.h"

// Replaces control characters in the message of a failure; returns its status.
static inline hm_status hm_one_line(hm_status rc, struct hm_error *err)
{
    if (rc && err)
        for (char *c = err->message; *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return rc;
}

#endif
