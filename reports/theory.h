// What a log says beyond its three verdicts: what a drafter must reach, what the cheaper bounds would have certified,
// reduced vocabularies, other divergences, stochastic acceptance and the fidelity of whole sequences (docs/theory.md
// §2-§5). Gathered by theory.c, written by html_theory.c, markdown_theory.c and json_theory.c.
#ifndef HM_REPORTS_THEORY_H
#define HM_REPORTS_THEORY_H

#include "bounds/sequence.h"
#include "certify/log_reader.h"
#include "base/histogram.h"

#include <stdint.h>

// A sum of enclosures, itself one.
struct hm_sum {
    double lo, hi;
    uint64_t count;
};
void hm_sum_add(struct hm_sum *sum, struct hm_ival value); // outward; an end stays exact where its addition is

// The mean of the lower and of the upper ends, rounded outward, exact where the division is: 0 is 0 and 64 of 64 is 1.
// For count > 0.
double hm_sum_mean_lower(const struct hm_sum *sum);
double hm_sum_mean_upper(const struct hm_sum *sum);

struct hm_claim_theory {
    uint64_t judged;                      // steps with verdicts, levels and m proposed tokens in q's order
    struct hm_failure_sum failure[3];     // of these, for KL(p||q), KL(q||p), TV
    struct hm_histogram klf;              // of these, lower ends of KLf*
    struct hm_sum kl_pq;                  // of these, the draft's
    uint64_t active[3];                   // [enum hm_active], all steps
    uint64_t judged_vacuous;              // of the judged
    uint64_t restricted_vacuous;          // of the restricted
    uint64_t restricted, restricted_yes, no_mass; // steps with a reduced draft vocabulary; certified there; p(D) = 0
    struct hm_sum mass;                           // p(D)
    struct hm_claim_divergence {
        uint64_t verdicts, yes, vacuous;
        double least; // lower end of the least threshold seen; +inf when none
        uint64_t thresholds;
    } divergence[HM_LOG_MOST_DIVERGENCES];
    struct hm_sum accept[HM_LOG_LAWS], e[HM_LOG_LAWS];
};

struct hm_report_theory {
    uint64_t decisions, filter_undecided, filter_logs; // of the logs that say so in `run`
    struct hm_sum standard_accept;
    struct hm_sum divergence[HM_LOG_MOST_DIVERGENCES];
    struct hm_fidelity_sum fidelity; // finished sequences whose steps carry e
    struct hm_sequence_sum open;     // the sequence at hand
    bool open_has_e;
    uint64_t unfinished; // sequences with e that were cut: not in `fidelity`
};

// What failures are bounded by: P(fail) <= P(D* < s) + E[D]/s at the best edge s of the histogram; at most 1.
double hm_theory_markov(const struct hm_claim_theory *t, double *at);

void hm_theory_step(struct hm_report_theory *r, const struct hm_record_step *step);
void hm_theory_claim(struct hm_claim_theory *t, const struct hm_record_step *step, const struct hm_record_claim *claim,
                     const struct hm_record_header *header);
void hm_theory_sequence_end(struct hm_report_theory *r, bool finished);

enum {
    HM_FIDELITY_RISK_PERCENT = 5
}; // that the smaller of the two finite-sample bounds on sequences is wrong: each
   // takes half of it

#endif
