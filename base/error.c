// Error reporting: see error.h.
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Drops a UTF-8 sequence that the end of the buffer cut in two.
static void trim_partial_character(char *text)
{
    size_t n = strlen(text), back = 0;
    while (back < n && back < 3 && ((unsigned char)text[n - 1 - back] & 0xC0) == 0x80) back++;
    if (back == n) return;
    unsigned char lead = (unsigned char)text[n - 1 - back];
    size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (back < need) text[n - 1 - back] = 0;
}

hm_status hm_fail(struct hm_error *err, hm_status code, const char *format, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->code = code;
    if (n < 0) err->message[0] = 0;
    else if ((size_t)n >= sizeof err->message) trim_partial_character(err->message);
    for (char *c = err->message; *c; c++) // a message may quote a file, and stays one line all the same
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return code;
}

hm_status hm_fail_prefix(struct hm_error *err, const char *prefix)
{
    if (!err) return HM_FORMAT;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    return hm_fail(err, err->code, "%s: %s", prefix, old);
}
