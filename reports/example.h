// A certificate on a vocabulary of two or three tokens, for teaching: made by the same calls that stamp a log.
#ifndef HM_REPORTS_EXAMPLE_H
#define HM_REPORTS_EXAMPLE_H

#include "base/error.h"
#include "certify/certificate.h"

enum { HM_EXAMPLE_TOKENS = 3 };

struct hm_example {
    size_t vocab;
    struct hm_ival p[HM_EXAMPLE_TOKENS], q[HM_EXAMPLE_TOKENS];
    struct hm_ival distance[3], level[3]; // KLf, KLr, TV of q; KLf*, KLr*, TV*
    struct hm_ival water[2];              // c, ln g
    enum hm_certified certified[3];
    enum hm_verdict covered;
};

// The rule greedy with m = 1 on two rows of `vocab` logits (2 or 3) at temperature 1, p's in descending order.
hm_status hm_example_make(const float *p, const float *q, size_t vocab, struct hm_example *out, struct hm_error *err);

// The examples of every report: on two tokens, and on three.
hm_status hm_examples_make(struct hm_example out[2], struct hm_error *err);

#endif
