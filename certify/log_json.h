// One line of a log while it is being put together: JSON text that grows at its end.
//
// Errors stick: after the first failure (no memory, a NaN) further additions do nothing and hm_line_check reports it,
// so a caller writes a whole record and tests once. All output is independent of the locale.
#ifndef HM_CERTIFY_LOG_JSON_H
#define HM_CERTIFY_LOG_JSON_H

#include "base/error.h"
#include "bounds/ival.h"

#include <stddef.h>

struct hm_line {
    char *text;            // not terminated; owned
    size_t size, capacity; // bytes
    hm_status status;      // the first failure
};

enum { HM_REAL_TEXT = 32 }; // room for any real number and its terminating zero

// Starts empty ({0} is an empty line too) and ends by hm_line_free, which leaves it empty again.
void hm_line_free(struct hm_line *line);

// HM_MEMORY or HM_RANGE ("... is not a number") when something could not be added; `what` names the line in the error.
hm_status hm_line_check(const struct hm_line *line, const char *what, struct hm_error *err);

// Adds text as it is: punctuation, keys, integers. Only conversions that no locale changes (%d, %zu, %s) belong here.
void hm_line_format(struct hm_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hm_line_bytes(struct hm_line *line, const char *bytes, size_t size);

// Adds a JSON string: quoted, escaped, valid UTF-8 (each byte that belongs to no character becomes U+FFFD).
void hm_line_string(struct hm_line *line, const char *text, size_t size);
void hm_line_text(struct hm_line *line, const char *text); // the same for a terminated string; NULL adds null

// Adds ,"key": and so begins a member that is not the first of its object.
void hm_line_key(struct hm_line *line, const char *key);

// Adds a real number as docs/log.md writes it ("0x1.8p+1", quoted), and an enclosure of two of them.
void hm_line_real(struct hm_line *line, double value);
void hm_line_ival(struct hm_line *line, struct hm_ival value);
void hm_line_member(struct hm_line *line, const char *key, struct hm_ival value); // ,"key":[lower,upper]

// A time in seconds with six decimals, for `run` fields; negative and unknown times are 0.
void hm_line_seconds(struct hm_line *line, double seconds);

// What printf("%a") writes in the C locale, with zero unsigned: "0x1.8p+1", "0x0p+0", "inf", "-inf", "nan".
void hm_real_text(double value, char out[HM_REAL_TEXT]);

#endif
