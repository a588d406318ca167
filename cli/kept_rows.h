// Rows of the target that a decode has computed in earlier rounds of a sequence, to be asked for at other addresses
// (docs/study.md, "Rows at other addresses").
//
// Only the most recent row of each last token can ever be asked for, so only that is kept, up to a limit of memory.
#ifndef HM_CLI_KEPT_ROWS_H
#define HM_CLI_KEPT_ROWS_H

#include "decode/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HM_KEPT_BUDGET = 59 }; // draft-selected candidates of a round whose rows are kept, beside the root's

struct hm_kept_row {
    int32_t token;      // its address ends in this one
    uint32_t round;     // that computed it
    size_t length;      // tokens of the address
    int32_t *path;      // those after that round's root [path_length], owned
    size_t path_length, root_length; // tokens of the address up to that root
    float *row;         // [vocab], owned
};

struct hm_kept_rows {
    size_t vocab, most; // rows
    struct hm_kept_row *kept; // least recently computed first [count]
    size_t count, capacity;
};

void hm_kept_rows_reset(struct hm_kept_rows *rows); // forgets all: another sequence begins
void hm_kept_rows_clear(struct hm_kept_rows *rows);

// Keeps the rows of a round. Of several with the same last token the best in the pool's order stays, the root first.
hm_status hm_kept_rows_add(struct hm_kept_rows *rows, const struct hm_pool_event *event, struct hm_error *err);

// The most recent row whose address ends in the root's token, or NULL; *same: its address is the root's own.
const struct hm_kept_row *hm_kept_rows_find(const struct hm_kept_rows *rows, const struct hm_pool_event *event, bool *same);

#endif
