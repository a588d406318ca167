// The independent checker: reads a certificate log (docs/log.md) and the row shards beside it, and recomputes with MPFR
// everything that page marks proved. It shares no code with the producer: MPFR, GMP, cJSON, libcrypto and libc only.
//
// How one log is judged, in order, at each line: (1) bytes after the last newline are a cut line, and a log that stops
// before its end record is truncated; (2) a complete line that is not JSON of the form expected, or lacks a field the
// checker needs, is UNREADABLE; (3) a chain value that does not match is REFUTED; (4) a field whose value is wrong is
// REFUTED. The first such line ends the run. A log that gets to its end is UNDECIDED when a question stayed open at
// 4096 bits or the log itself says `undecided`, else CONSISTENT when a row was not there to look at, else PROVED.
//
// A missing shard file is an absent row; a shard that is there but malformed is UNREADABLE, and one that is too short
// for a row the log names is REFUTED (rows are written before the lines that name them). A sequence that stops without
// `finish` although the log goes on is REFUTED. Asserted, not proved: what docs/log.md says, and the `radius` of
// `entropy` (theory.md §6 defines it only as some lower bound).
#ifndef HM_CERTIFY_CHECK_CHECK_H
#define HM_CERTIFY_CHECK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_check_kind { HM_CHECK_PROVED, HM_CHECK_CONSISTENT, HM_CHECK_REFUTED, HM_CHECK_UNDECIDED, HM_CHECK_UNREADABLE };

struct hm_check_options {
    bool allow_truncated;   // a truncated log exits 0 when what is there holds
    bool allow_absent_rows; // a log whose rows are absent exits 0 when it is consistent
    void (*progress)(void *user, uint64_t bytes, uint64_t total, uint64_t steps); // after each line, or NULL
    void *user;
};

struct hm_check_result {
    enum hm_check_kind kind;
    int exit_code;      // 0 proved, 1 refuted, 2 unreadable, 3 undecided, truncated or rows absent
    uint64_t claims;    // entries of `certified`, and one per round
    uint64_t undecided; // of these
    uint64_t steps;     // step records read
    uint64_t line;      // where it was refuted or found unreadable; 0 otherwise
    bool truncated;
    char message[1024]; // "PROVED n claims", "REFUTED line L: field: ...": what follows "hallmark: "
};

// Checks one log. Memory does not grow with the length of the log. options may be NULL. Returns result->exit_code.
int hm_check_log(const char *path, const struct hm_check_options *options, struct hm_check_result *result);

#ifdef __cplusplus
}
#endif

#endif
