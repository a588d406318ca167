// Gathers speculative.h's figures, record by record.
#include "reports/speculative.h"

#include "bounds/ival_math.h"

#include <math.h>
#include <string.h>

// R of docs/log.md, "Fidelity budgets", rounded upward: max_tokens ((B + 1) V + B) 2^-53.
static double reserve_of(const struct hm_record_sequence *sequence, const struct hm_record_header *header)
{
    struct hm_ival budget = hm_ival_point((double)header->budget), vocab = hm_ival_point((double)header->target.vocab);
    struct hm_ival draws = hm_ival_mul(hm_ival_add(budget, hm_ival_point(1)), vocab);
    struct hm_ival all = hm_ival_mul(hm_ival_point((double)sequence->max_tokens), hm_ival_add(draws, budget));
    return hm_ival_mul(all, hm_ival_point(0x1p-53)).hi;
}

void hm_speculative_sequence(struct hm_report_speculative *s, const struct hm_record_sequence *sequence,
                             const struct hm_record_header *header)
{
    if (header->budget_kind) s->reserve = fmax(s->reserve, reserve_of(sequence, header));
}

void hm_speculative_sequence_end(struct hm_report_speculative *s)
{
    if (!s->open.has_spent) return;
    s->budgets++;
    s->spent = hm_ival_add(hm_ival_point(s->spent), hm_ival_point(s->open.spent)).hi;
    s->spent_most = fmax(s->spent_most, s->open.spent);
    s->open.has_spent = false;
}

void hm_speculative_round(struct hm_report_speculative *s, const struct hm_record_round *round)
{
    s->first_drawn += round->first >= 0;
    s->scored += round->scored;
    s->with_scored += round->scored > 0;
}

double hm_speculative_spent_mean(const struct hm_report_speculative *s)
{
    return hm_ival_div(hm_ival_point(s->spent), hm_ival_point((double)s->budgets)).hi;
}

static void add_position(struct hm_report_speculative *s, const struct hm_record_step *step,
                         const struct hm_record_header *header, uint64_t children)
{
    bool in_force = step->has_accept_standard && (!header->budget_kind || step->relaxed);
    struct hm_ival gain = hm_ival_sub(step->accept, step->accept_standard);
    s->positions++;
    s->accepted += step->source == HM_SOURCE_ACCEPTED;
    hm_sum_add(&s->accept, step->accept);
    if (!step->has_accept_standard) return;
    if (!in_force) gain = hm_ival_point(0);
    gain.lo = fmax(gain.lo, 0); // no rule accepts less than standard acceptance does
    hm_sum_add(&s->standard, step->accept_standard);
    hm_sum_add(&s->gain, gain);
    if (!in_force) return;
    s->in_force++;
    if (step->has_nucleus_excess) hm_sum_add(&s->excess, step->nucleus_excess);
    if (step->has_e) hm_sum_add(&s->e, step->e);
    bool draws = header->proposal && strcmp(header->proposal, "iid") == 0;
    if (!draws || children != 1 || !step->has_nucleus_excess || !step->has_e) return;
    s->single++;
    hm_sum_add(&s->single_gain, gain);
    hm_sum_add(&s->single_excess, step->nucleus_excess);
    hm_sum_add(&s->single_e, step->e);
}

void hm_speculative_step(struct hm_report_speculative *s, const struct hm_record_step *step,
                         const struct hm_record_header *header, uint64_t children, bool covered)
{
    if (step->has_accept) add_position(s, step, header, children);
    s->charged += step->has_charge;
    s->relaxed += step->has_charge && step->relaxed;
    if (step->has_spent) {
        s->open.has_spent = true;
        s->open.spent = step->spent;
    }
    if (step->source != HM_SOURCE_CONTINUATION) return;
    s->continued++;
    s->covered += covered;
}
