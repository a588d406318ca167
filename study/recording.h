// Recordings of draft pools: what the target says of every candidate of every round, in a binary file (docs/study.md).
//
// A file is a header and then sequences with their rounds, each in a frame of its own with a length and a checksum, so a
// file that was cut is good up to the cut. Readers trust nothing: sizes, indices, order and ranges are checked, and
// errors name the file, the offset of the frame, what was expected and what was found.
#ifndef HM_STUDY_RECORDING_H
#define HM_STUDY_RECORDING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HM_RECORDING_VERSION = 1,
    HM_RECORDING_TEXT_MOST = 255,         // bytes of a name, an id, a category
    HM_RECORDING_CANDIDATES_MOST = 16384, // of one pool
    HM_RECORDING_VOCAB_MOST = 1 << 24,
    HM_RECORDING_WIDTH_MOST = 64,         // of a pool, and of its depth
};

// Who decoded what, and how. Texts are at most HM_RECORDING_TEXT_MOST bytes.
struct hm_recording_header {
    const char *target, *drafter, *task; // task: what the prompts have in common, e.g. the name of their file
    const char *temperature;             // of decoding, as a fraction: "0", "7/10"
    const char *probability_temperature; // at which probabilities and TV are taken: that of decoding, unless it is 0
    const char *top_p;                   // "" when off
    uint32_t top_k;                      // 0: off
    uint32_t vocab, width, depth, budget; // of the target's rows; of pool and tree
    uint64_t seed;
};

// The sequence that the next rounds belong to.
struct hm_recording_sequence {
    uint32_t sequence, turn;
    const char *id, *category; // of the prompt; "" when there is none
};

// Where a substitute for the root's row comes from (docs/study.md, "Rows at other addresses").
enum hm_address_class {
    HM_ADDRESS_NONE,     // there is no such row
    HM_ADDRESS_SAME,     // the root's own address: interchangeable
    HM_ADDRESS_PREVIOUS, // another address that ends in the root's token, scored in the round before
    HM_ADDRESS_EARLIER,  // likewise, in an earlier round
    HM_ADDRESS_PRECEDING // the root's address without its last token
};
enum { HM_ADDRESS_CLASSES = HM_ADDRESS_PRECEDING + 1 };

// A row at another address beside the root's exact one.
struct hm_substitute {
    enum hm_address_class address;
    uint32_t age;      // rounds since it was computed
    int32_t argmax;
    double tv;         // total variation to the exact row
    const double *p;   // its probabilities of the candidates of level 1, in pool order [first_level]
};

enum hm_matched { HM_MATCHED_ABSENT, HM_MATCHED_EQUAL, HM_MATCHED_DIFFERENT };

// One round. Arrays belong to the reader (good until the next call) or to whoever writes.
struct hm_recording_round {
    uint32_t sequence, round;
    uint32_t t;             // output length so far: index of the first token that the round emits
    uint32_t length;        // tokens of the context, the root last
    int32_t root;           // the root's token
    int32_t accepted;       // draft tokens that the decode accepted, before any cut; -1: unknown
    size_t count, first_level; // candidates; of these, children of the root
    const int32_t *token, *parent; // [count]; parent -1: the root, else a smaller index
    const float *logq;      // log of the draft's probability given the parent, -inf allowed, never NaN or > 0 [count]
    const double *p;        // target's probability given the parent: nearest double to the exact value [count]
    const int32_t *argmax;  // target's likeliest token at the root, then after each candidate [1 + count]
    enum hm_matched matched; // is the root's row, bit for bit, the row that the round before had at this address?
    struct hm_substitute cached, preceding;
};

// ---- writing

struct hm_recording_writer;

// Creates or replaces the file and writes the header.
hm_status hm_recording_create(const char *path, const struct hm_recording_header *header, struct hm_recording_writer **out,
                              struct hm_error *err);
hm_status hm_recording_add_sequence(struct hm_recording_writer *writer, const struct hm_recording_sequence *sequence,
                                    struct hm_error *err);
hm_status hm_recording_add_round(struct hm_recording_writer *writer, const struct hm_recording_round *round,
                                 struct hm_error *err);
// Flushes and closes; HM_IO when the system could not keep all of it. Frees the writer in any case; NULL is allowed.
hm_status hm_recording_finish(struct hm_recording_writer *writer, struct hm_error *err);

// ---- reading

struct hm_recording;

hm_status hm_recording_open(const char *path, struct hm_recording **out, struct hm_error *err);
void hm_recording_close(struct hm_recording *recording); // NULL is allowed

const struct hm_recording_header *hm_recording_head(const struct hm_recording *recording);
const char *hm_recording_path(const struct hm_recording *recording); // as it was opened

// The next round and its sequence: *round is NULL at the end. What is returned is good until the next call.
hm_status hm_recording_next(struct hm_recording *recording, const struct hm_recording_sequence **sequence,
                            const struct hm_recording_round **round, struct hm_error *err);

// After the end: did the file stop inside a frame?
bool hm_recording_truncated(const struct hm_recording *recording);

#ifdef __cplusplus
}
#endif

#endif
