// Drafters: who proposes the pool of candidates of a round.
#ifndef HM_DECODE_DRAFTER_H
#define HM_DECODE_DRAFTER_H

#include "base/error.h"
#include "decode/pool.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_model;

// Every drafter structure begins with this.
struct hm_drafter {
    const struct hm_drafter_ops *ops;
    const char *name;  // "standalone", "ngram"
    size_t vocab;      // width of its rows; 0: it has none
    size_t positions;  // the longest context plus depth it can draft for
};

struct hm_drafter_ops {
    // Fills the pool (reset first) with candidates that continue context[length >= 1], whose last token is the root.
    // From one call to the next of a sequence the context only grows; `restart` forgets it.
    hm_status (*propose)(struct hm_drafter *, const int32_t *context, size_t length, size_t depth, struct hm_pool *pool,
                         struct hm_error *err);
    void (*restart)(struct hm_drafter *);
    void (*close)(struct hm_drafter *);
};

// A complete model with the target's vocabulary (docs/decoders.md, "Standalone drafters"). It keeps a cache of the committed
// tokens, feeds the new ones in one pass, expands the tree level by level in scratch slots and drops them. The model is
// borrowed; only ids below `usable` (the target's vocabulary) are proposed; positions is the longest context it must hold, width and depth bound its scratch slots.
hm_status hm_drafter_open_standalone(struct hm_model *model, size_t usable, size_t positions, size_t width,
                                     size_t depth, struct hm_drafter **out, struct hm_error *err);

// No model: continuations of the longest earlier occurrence of the newest tokens (up to 4) in the context, weighted by
// how often each followed. It has no rows.
hm_status hm_drafter_open_ngram(struct hm_drafter **out, struct hm_error *err);

void hm_drafter_close(struct hm_drafter *drafter); // NULL is allowed

#ifdef __cplusplus
}
#endif

#endif
