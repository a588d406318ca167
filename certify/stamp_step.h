// What the parts of a step, node or audit record share while it is put together (private to certify/).
#ifndef HM_CERTIFY_STAMP_STEP_H
#define HM_CERTIFY_STAMP_STEP_H

#include "certify/stamp_record.h"

struct hm_stamp_scene {
    struct hm_line *line;
    const struct hm_stamp_config *config;
    enum hm_stamp_kind kind;
    const struct hm_log_step *step;
    struct hm_row *target, *draft;   // draft: NULL when there is none
    struct hm_row_distance distance; // with a draft
    size_t sure;                     // of acceptance nucleus: |A(p)|, once hm_stamp_add_acceptance has counted it
    struct hm_ival e;                // and what accepting them costs, where the walk looks at children
    struct hm_error *err;
};

// Does the record decide about a token?  Steps do, audit rows may.
bool hm_stamp_has_token(const struct hm_stamp_scene *s);

// [id,logit] of the target row.
void hm_stamp_add_entry(struct hm_stamp_scene *s, int32_t token);

// What is known exactly as an enclosure that intervals can prove: they come down to a number from both sides, and only to
// zero by identities (docs/theory.md §8), which stays as it is.
struct hm_ival hm_stamp_provable(struct hm_ival value);

// How the token was accepted: nucleus_excess to spent; then e and ratio.
hm_status hm_stamp_add_acceptance(struct hm_stamp_scene *s);
hm_status hm_stamp_add_law_of_token(struct hm_stamp_scene *s);

// One claim, and what the summary needs of it. m_asked may be HM_M_TREE.
hm_status hm_stamp_add_claim(struct hm_stamp_scene *s, size_t rule, uint32_t m_asked, struct hm_stamp_tally *out);

#endif
