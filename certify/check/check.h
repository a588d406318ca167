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
// `finish` although the log goes on is REFUTED. Asserted, not proved: what docs/log.md says.
#ifndef HM_CERTIFY_CHECK_CHECK_H
#define HM_CERTIFY_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_check_kind { HM_CHECK_PROVED, HM_CHECK_CONSISTENT, HM_CHECK_REFUTED, HM_CHECK_UNDECIDED, HM_CHECK_UNREADABLE };

// Where rows come from when they are computed again instead of read (docs/log.md "Checking", `--replay`). The checker
// calls these in log order from the thread that called hm_check_log. A false return: `reason` says what is wrong, and
// the log is refuted when `refuted` is set, else unreadable.
struct hm_check_replay {
    void *user;
    struct hm_check_replay_error {
        bool refuted;
        char field[64], reason[256];
    } * error;
    // The header's models; hash "" when the log has no draft.
    bool (*header)(void *user, const char *target_sha256, const char *draft_sha256, uint64_t vocab);
    bool (*sequence)(void *user, const int32_t *prompt, size_t prompt_length);
    // The tree of a round, after the root's token was emitted; then `emitted` for each token that follows.
    bool (*round)(void *user, size_t nodes, const int32_t *parent, const int32_t *token);
    bool (*emitted)(void *user, int32_t token, int64_t node); // node: the accepted child's index, -1 for other tokens
    // The row of a node of the current round (-1: the prompt's last row) into out [vocab]; *known false when this
    // model has no such row (the draft at a leaf that it did not expand).
    bool (*row)(void *user, bool draft, int64_t node, float *out, bool *known);
    bool reads_draft; // it cannot compute the draft's rows: they are read from the shards, as without a replay
};

struct hm_check_options {
    unsigned threads;                     // 0: one per core
    const struct hm_check_replay *replay; // NULL: rows are read from the shards
    bool allow_truncated;                 // a truncated log exits 0 when what is there holds
    bool allow_absent_rows;               // a log whose rows are absent exits 0 when it is consistent
    void (*progress)(void *user, uint64_t bytes, uint64_t total, uint64_t steps); // as lines are done, or NULL
    void *user;
};

struct hm_check_result {
    enum hm_check_kind kind;
    int exit_code;      // 0 proved, 1 refuted, 2 unreadable, 3 undecided, truncated or rows absent
    uint64_t claims;    // entries of `certified`, and one per round
    uint64_t undecided; // of these
    uint64_t steps;     // step records checked, or rows of an audit
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
