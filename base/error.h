// How every function of hallmark reports failure: a status to test, a message to show.
//
// A function that can fail returns hm_status and, when it fails, fills the caller's hm_error (which may be NULL when
// the caller does not want the text). Messages name the file, the thing in it, what was expected and what was found.
#ifndef HM_BASE_ERROR_H
#define HM_BASE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hm_status {
    HM_OK = 0,
    HM_USAGE,       // the caller asked for something that is not possible (a flag, a combination)
    HM_IO,          // the operating system refused: missing file, full disk, short read
    HM_FORMAT,      // malformed input: JSON, safetensors, log line
    HM_SHAPE,       // well-formed input whose sizes do not fit together
    HM_RANGE,       // a value outside its domain (NaN logit, token id beyond the vocabulary)
    HM_UNSUPPORTED, // recognised, but not something hallmark does
    HM_MEMORY       // out of memory
} hm_status;

struct hm_error {
    hm_status code;
    char message[1024]; // one line (control characters become '?'), always terminated
};

// Fills err (if not NULL) with code and the formatted message, and returns code, so that a failing function can say
// `return hm_fail(err, HM_SHAPE, "...")`. A message longer than the buffer is cut at a character border.
hm_status hm_fail(struct hm_error *err, hm_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Puts "prefix: " before the message already in err; returns err->code. For callers that know the file name.
hm_status hm_fail_prefix(struct hm_error *err, const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
