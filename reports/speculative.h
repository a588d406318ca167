// Speculative sampling, fidelity budgets, and trees that are chosen after a draw: what a log says of them (docs/log.md,
// "The walk", "Fidelity budgets"). Gathered by speculative.c, written by html_speculative.c, markdown_speculative.c and
// json_speculative.c.
#ifndef HM_REPORTS_SPECULATIVE_H
#define HM_REPORTS_SPECULATIVE_H

#include "certify/log_reader.h"
#include "reports/theory.h"

#include <stdbool.h>
#include <stdint.h>

struct hm_report_speculative {
    // Positions: steps at which children were looked at.
    uint64_t positions, accepted;   // all; those whose token was accepted
    struct hm_sum accept, standard; // probability that a child is accepted: as it was done, and by standard acceptance
    struct hm_sum gain;             // what the first is above the second
    uint64_t in_force;              // with acceptance nucleus: positions where the relaxation was in force
    struct hm_sum excess, e;        // of these: E_N, and the total variation of the token's law
    uint64_t single;                // of these, with one draw: there gain, E_N and e are one number
    struct hm_sum single_gain, single_excess, single_e;

    // Fidelity budgets.
    uint64_t charged, relaxed; // steps at which the relaxation was asked for, and granted
    uint64_t budgets;          // sequences with a budget
    double spent, spent_most;  // their sum, rounded upward, and the most
    double reserve;            // the largest R of theirs, rounded upward
    struct {
        bool has_spent;
        double spent;
    } open; // the sequence at hand

    // Selection and traversal.
    uint64_t first_drawn;         // rounds whose first token was drawn before the tree was chosen
    uint64_t scored, with_scored; // nodes only scored; rounds with such
    uint64_t continued, covered;  // rounds with a continuation; those whose next context is the address of a node
};

void hm_speculative_sequence(struct hm_report_speculative *s, const struct hm_record_sequence *sequence,
                             const struct hm_record_header *header);
void hm_speculative_sequence_end(struct hm_report_speculative *s);
void hm_speculative_round(struct hm_report_speculative *s, const struct hm_record_round *round);

// children: how many the step's node has; covered: its token is that of one, or of one only scored.
void hm_speculative_step(struct hm_report_speculative *s, const struct hm_record_step *step,
                         const struct hm_record_header *header, uint64_t children, bool covered);

// What sequences with a budget spent on average, rounded upward; there is at least one.
double hm_speculative_spent_mean(const struct hm_report_speculative *s);

#endif
