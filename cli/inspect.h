// Private to cli/inspect*.c: `hallmark inspect`, what a log, a checkpoint or a file of rows holds, for people to read.
#ifndef HM_CLI_INSPECT_H
#define HM_CLI_INSPECT_H

#include "base/error.h"
#include "certify/log_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hm_inspect_range { // records first .. last of a sequence; of an audit: rows, and sequence is -1
    int64_t sequence, first, last;
};

struct hm_inspect_options {
    const char *path, *tensor; // tensor NULL: "logits"
    struct hm_inspect_range *range;
    size_t ranges;
    bool rows; // the ranges are of rows
    bool json, hashes;
};

// What a log is: its header in words, its sequences, whether it is complete.
hm_status hm_inspect_log(const struct hm_inspect_options *options, struct hm_error *err);

// The steps or rows that were asked for. Reads no further than the last of them and its round.
hm_status hm_inspect_find(const struct hm_inspect_options *options, struct hm_error *err);

// A checkpoint's folder, a file of rows.
hm_status hm_inspect_checkpoint(const struct hm_inspect_options *options, struct hm_error *err);
hm_status hm_inspect_rows(const struct hm_inspect_options *options, struct hm_error *err);

// ---- one record

void hm_inspect_step(const struct hm_record_header *header, const struct hm_record *record);
void hm_inspect_claim(const struct hm_record_header *header, const struct hm_record_step *step,
                      const struct hm_record_claim *claim);

// A round's tree. Of the nodes, accepted[i] says whether a token was accepted there, and text[i], which may be NULL,
// which.
struct hm_inspect_tree {
    int64_t sequence, round;
    size_t line, nodes, scored, room; // room: of the arrays
    int64_t t, pool, first;
    int64_t *parent, *token, *depth;
    double *logq;
    bool *accepted;
    char **text;
    bool has_expected;
    struct hm_ival expected;
};
hm_status hm_inspect_tree_take(struct hm_inspect_tree *tree, const struct hm_record *record, struct hm_error *err);
void hm_inspect_tree_mark(struct hm_inspect_tree *tree, const struct hm_record_step *step);
hm_status hm_inspect_tree_print(const struct hm_inspect_tree *tree, struct hm_error *err);
void hm_inspect_tree_clear(struct hm_inspect_tree *tree);

// ---- print: lines of at most 80 columns

struct hm_inspect_text {
    char text[160];
};

// "  label      ", 13 columns wide; a longer label has a line of its own.
void hm_inspect_label(const char *label);

// "  label      text", continued below itself where it is longer than a line.
void hm_inspect_field(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A line that begins at the left, folded likewise.
void hm_inspect_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

// "[0.123456, 0.123457]", rounded outward; one number where it is exactly that. At most 26 columns but for the ends of
// the range of doubles.
struct hm_inspect_text hm_inspect_ival(struct hm_ival value);

// A logit: nine digits, which are exact for a 32-bit float.
struct hm_inspect_text hm_inspect_logit(double logit);

// Text in quotes with control characters and quotes escaped, cut after `columns` characters.
struct hm_inspect_text hm_inspect_quote(const char *text, size_t columns);

#endif
