// Private to the log reader: what its files share.
#ifndef HM_CERTIFY_LOG_READER_PRIVATE_H
#define HM_CERTIFY_LOG_READER_PRIVATE_H

#include "certify/log_reader.h"
#include "certify/log_reader_fields.h"

#include <stdio.h>

// Leaves the function with the status of a look-up that failed.
#define TRY(call)               \
    do {                        \
        hm_status rc_ = (call); \
        if (rc_) return rc_;    \
    } while (0)

// An array that keeps its memory from line to line.
struct hm_reused {
    void *data;
    size_t capacity;
};

struct hm_log_reader {
    char *path;
    FILE *file;
    char chunk[1 << 16];         // bytes read ahead: chunk_at .. chunk_size are still to come
    size_t chunk_at, chunk_size;
    struct hm_reused line;       // the bytes of the current line
    size_t line_size;
    size_t line_number;
    bool line_whole;             // it ends with a newline

    // Lines that are passed over (log_reader_skip.c).
    int64_t until_sequence, until_t; // the first step that is not; 0, 0: none is
    struct hm_reused held;       // the bytes of the last round passed over; while it is delivered, of the line after it
    size_t held_size, held_line; // size 0: nothing is held
    bool delivering;             // the current record is the held round: the next one is in `held`
    cJSON *header_json, *json;   // of line 1, and of the current line
    struct hm_record_header header;
    enum hm_log_state state;
    char chain[HM_SHA256_HEX];
    struct hm_error failure;     // kept: a reader that failed stays failed

    // Where in the log we are; -1: before the first one.
    int64_t sequence, t, round, nodes; // last sequence, step and round; nodes of the round
    int64_t round_t;             // the round's `t`: its steps start there
    int64_t sequences, rounds, steps, node_records, rows; // records so far
    int64_t index;               // of an audit's last row; -1 before the first
    bool finished;               // the sequence's last step had `finish`

    // The current record and its arrays.
    struct hm_record_sequence sequence_record;
    struct hm_record_round round_record;
    struct hm_record_step step_record;
    struct hm_record_end end_record;
    char number[24];             // an integer `id` as text
    struct hm_reused prompt, parent, token, depth, logq, top, claims;
};

// Each parses the reader's current line into its record, and checks it against the records before.
hm_status hm_log_parse_header(struct hm_log_reader *r, const struct hm_place *place);
hm_status hm_log_parse_sequence(struct hm_log_reader *r, const struct hm_place *place);
hm_status hm_log_parse_round(struct hm_log_reader *r, const struct hm_place *place);
hm_status hm_log_parse_step(struct hm_log_reader *r, const struct hm_place *place, enum hm_record_kind kind);
hm_status hm_log_parse_row(struct hm_log_reader *r, const struct hm_place *place);
hm_status hm_log_parse_end(struct hm_log_reader *r, const struct hm_place *place);

// Is the current line one to pass over?  Then its place is taken note of, and a round's bytes are held.
bool hm_log_pass_over(struct hm_log_reader *r);
// Makes the held round the current line, and back.
void hm_log_swap_held(struct hm_log_reader *r);
hm_status hm_log_parse_held(struct hm_log_reader *r, const struct hm_place *place);

// Parts of a step. has_token: the claims decide about a token.
hm_status hm_log_parse_logit(const struct hm_place *place, const char *key, const cJSON *pair, int64_t vocab,
                             struct hm_record_logit *out);
hm_status hm_log_parse_claims(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step,
                              bool has_token);

// `count` elements of the given size in memory that is kept for the next line.
hm_status hm_log_reuse(const struct hm_place *place, struct hm_reused *array, size_t count, size_t size, void *out);

#endif
