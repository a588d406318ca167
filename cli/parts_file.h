// Private to cli/parts*.c: the file of one part, written and read (docs/scale.md "The file").
//
// A part is JSON Lines: a header, for each input of the share its text in pieces and then its result, and an end line
// that closes with the SHA-256 of all bytes before it. Text and names are bytes: in JSON each character, U+0001 to
// U+00FF, stands for one.
#ifndef HM_CLI_PARTS_FILE_H
#define HM_CLI_PARTS_FILE_H

#include "base/error.h"
#include "base/sha256.h"
#include "cli/shards.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    HM_PART_VERSION = 1,
    HM_PART_PIECE = 32 << 10,       // bytes of text in a record
    HM_PART_RESULT_MOST = 1 << 20,  // bytes of a result
    HM_PART_LONGEST_LINE = 16 << 20 // more than any command line
};

// Line 1.
struct hm_part_header {
    const char *version, *command; // of the program that wrote it
    char *const *arguments;        // [argument_count]
    size_t argument_count;
    struct hm_shards shards;
    size_t inputs; // of all shards together
    char inputs_sha256[HM_SHA256_HEX];
};

// SHA-256 of the names of all inputs, a zero byte after each.
hm_status hm_part_hash_names(char *const *names, size_t count, char hex[HM_SHA256_HEX], struct hm_error *err);

// Inputs of a share.
size_t hm_part_share(struct hm_shards shards, size_t inputs);

// ---- writing: under a temporary name until it is complete

struct hm_part_writer;

// Makes the folder if it is not there. HM_USAGE when the part's name is taken by another kind of file.
hm_status hm_part_create(const char *folder, const struct hm_part_header *header, struct hm_part_writer **out,
                         struct hm_error *err);
void hm_part_discard(struct hm_part_writer *writer);           // removes what was not finished; NULL is allowed
const char *hm_part_path(const struct hm_part_writer *writer); // the name it will have
FILE *hm_part_text(struct hm_part_writer *writer);             // for the text of the next input
hm_status hm_part_result(struct hm_part_writer *writer, size_t input, const char *name, cJSON *result,
                         struct hm_error *err); // input: from 0; takes result
hm_status hm_part_finish(struct hm_part_writer *writer, int exit_code, struct hm_error *err);

// ---- reading: nothing in the file is trusted

struct hm_part;

struct hm_part_record {
    enum hm_part_kind { HM_PART_TEXT, HM_PART_RESULT, HM_PART_END } kind;
    size_t line;
    const char *text; // TEXT: bytes, and their number; RESULT: the input's name
    size_t size;
    const cJSON *result; // RESULT
};

hm_status hm_part_open(const char *path, struct hm_part **out, struct hm_error *err);
void hm_part_close(struct hm_part *part); // NULL is allowed
const struct hm_part_header *hm_part_header(const struct hm_part *part);
const char *hm_part_name(const struct hm_part *part); // the path

// The next record, in the order of the share's inputs; what it holds lasts until the next call. After END nothing may
// follow in the file. Errors: "FILE: line 7: expected ..., found ...".
hm_status hm_part_next(struct hm_part *part, struct hm_part_record *out, struct hm_error *err);

// Closes the file and lets go of the record until the next call of hm_part_next, so that many parts can be read in
// turn.
void hm_part_pause(struct hm_part *part);

#endif
