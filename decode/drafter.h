// Drafters: who proposes the pool of candidates of a round.
#ifndef HM_DECODE_DRAFTER_H
#define HM_DECODE_DRAFTER_H

#include "base/error.h"
#include "decode/pool.h"
#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_model;

// Every drafter structure begins with this.
struct hm_drafter {
    const struct hm_drafter_ops *ops;
    const char *name;         // "standalone", "eagle3", "ngram"
    size_t vocab;             // width of its rows; 0: it has none
    const int32_t *ids;       // the target's id of each entry of a row, ascending [vocab]; NULL: the entry's index
    size_t usable;            // entries below this may be proposed (the target has the rest not); at most vocab
    size_t positions;         // the longest context plus depth it can draft for
    const size_t *tap;        // layers of the target whose inputs it wants [tap_count] (model.h, hm_taps)
    size_t tap_count;         // 0: none, and ops->observe is NULL
    struct hm_device *device; // that it computes on, so that its threads can be limited; NULL: none
};

struct hm_drafter_ops {
    // Fills the pool (reset first) with candidates that continue context[length >= 1], whose last token is the root.
    // From one call to the next of a sequence the context only grows; `restart` forgets it. May run in another thread
    // than a pass of the target, at the same time, when its device is not the target's (a peer of it is fine).
    hm_status (*propose)(struct hm_drafter *, const int32_t *context, size_t length, size_t depth, struct hm_pool *pool,
                         struct hm_error *err);
    // Takes the taps of the next `count` committed tokens, in the order of the context: rows row[0 .. count) of `taps`
    // (row r at taps.offset + r * tap_count * hidden), which may be overwritten afterwards. Called by the thread of the
    // session, never during a `propose`: after each chunk of a prefill, after a separate pass for the root's row, and after
    // each round's commit. At a `propose` the taps of all tokens before the root have been seen; the root's own as well where
    // the round before was covered (its row was kept), else they come after it, so they wait for the token that follows. No longer once the context has
    // `positions` tokens.
    hm_status (*observe)(struct hm_drafter *, struct hm_view taps, const uint32_t *row, size_t count, struct hm_error *err);
    void (*restart)(struct hm_drafter *);
    void (*close)(struct hm_drafter *);
};

// A complete model with the target's vocabulary (docs/decoders.md, "Standalone drafters"). It keeps a cache of the committed
// tokens, feeds the new ones in one pass, expands the tree level by level in scratch slots and drops them. The model is
// borrowed; only ids below `usable` (the target's vocabulary) are proposed; positions is the longest context it must hold,
// width and depth bound its scratch slots and the pools it fills.
hm_status hm_drafter_open_standalone(struct hm_model *model, size_t usable, size_t positions, size_t width,
                                     size_t depth, struct hm_drafter **out, struct hm_error *err);

// No model: continuations of the longest earlier occurrence of the newest tokens (up to 4) in the context, weighted by
// how often each followed. It has no rows.
hm_status hm_drafter_open_ngram(struct hm_drafter **out, struct hm_error *err);

// An EAGLE-3 head (docs/decoders.md; docs/models.md, "EAGLE-3 heads"): one layer that reads the target's own hidden states.
// It shares the target's embedding table and tokens; only its draft vocabulary is proposed. The target is borrowed; device:
// the target's, or a peer of it. A context of one token gives an empty pool: the first token has no features before it.
// Errors name file, tensor, expected, found.
struct hm_eagle3_options {
    double rope_theta;              // 0: as the config says
    size_t positions, width, depth; // as for standalone
};
hm_status hm_drafter_open_eagle3(const char *dir, struct hm_model *target, struct hm_device *device,
                                 const struct hm_eagle3_options *options, struct hm_drafter **out, struct hm_error *err);

// Is the checkpoint in `dir` an EAGLE-3 head?  Decided by its config.json's architectures and draft_vocab_size; the error
// names what cannot be told.
hm_status hm_eagle3_detect(const char *dir, bool *is_eagle3, struct hm_error *err);

// What an EAGLE-3 drafter was loaded from, for logs and for people.
struct hm_eagle3_info {
    char sha256[65];       // of the weight files, as hm_model_info has it
    const char *name, *architecture;
    size_t draft_vocab, hidden, taps, weight_bytes;
    double rope_theta;
};
const struct hm_eagle3_info *hm_drafter_eagle3_info(const struct hm_drafter *drafter); // NULL: it is another kind

void hm_drafter_close(struct hm_drafter *drafter); // NULL is allowed

#ifdef __cplusplus
}
#endif

#endif
