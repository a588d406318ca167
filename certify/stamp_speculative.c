// What a step says of how its token was accepted (docs/log.md, "step" and "The walk"): the law of the token under rules
// and stochastic acceptance, how likely acceptance was, and what the fidelity budget was charged. See stamp_step.h.
#include "certify/stamp_step.h"

#include "certify/sampling.h"
#include "certify/speculative.h"

static bool stochastic(const struct hm_stamp_scene *s)
{
    return s->config->acceptance == HM_STAMP_STANDARD || s->config->acceptance == HM_STAMP_NUCLEUS;
}

// Does the walk look at the node's children?
static bool looks(const struct hm_stamp_scene *s)
{
    return s->kind == HM_STAMP_STEP && s->step->round >= 0 && s->step->child_count > 0 && !s->step->capped;
}

// Is the relaxation in force: always, unless a budget forbids it.
static bool in_force(const struct hm_stamp_scene *s)
{
    return s->config->acceptance == HM_STAMP_NUCLEUS &&
           (s->config->budget_kind == HM_LOG_NO_BUDGET || s->step->relaxed);
}

static hm_status law_of_children(struct hm_stamp_scene *s, size_t sure, struct hm_law *out)
{
    return hm_law_make(s->target, s->draft, s->config->proposal, s->step->children, s->step->child_count, sure, out,
                       s->err);
}

static hm_status add_accept(struct hm_stamp_scene *s, size_t sure, struct hm_law *out)
{
    hm_status rc = law_of_children(s, in_force(s) ? sure : 0, out);
    if (rc) return rc;
    hm_line_member(s->line, "accept", out->accept);
    if (s->config->acceptance != HM_STAMP_NUCLEUS) return HM_OK;
    struct hm_law plain = *out;
    if (in_force(s) && sure > 0) rc = law_of_children(s, 0, &plain);
    if (!rc) hm_line_member(s->line, "accept_standard", plain.accept);
    return rc;
}

static void add_charge(struct hm_stamp_scene *s)
{
    const struct hm_log_step *step = s->step;
    if (s->config->budget_kind == HM_LOG_NO_BUDGET || s->kind != HM_STAMP_STEP) return;
    if (step->charged) {
        hm_line_format(s->line, ",\"relaxed\":%s", step->relaxed ? "true" : "false");
        hm_line_member(s->line, "charge", step->charge);
    }
    hm_line_key(s->line, "spent");
    hm_line_real(s->line, step->spent);
}

hm_status hm_stamp_add_acceptance(struct hm_stamp_scene *s)
{
    enum hm_verdict decided;
    size_t sure =
        0; // a membership that stays undecided counts as a rejection, so the certain ones are those accepted surely
    hm_status rc = HM_OK;
    struct hm_law law = {{0, 1}, {0, 0}};
    bool nucleus = s->config->acceptance == HM_STAMP_NUCLEUS;
    if (nucleus && (s->draft || looks(s))) rc = hm_rule_count(&s->config->rule, s->target, &sure, &decided, s->err);
    if (!rc && nucleus && s->draft) {
        struct hm_ival excess;
        rc = hm_row_excess(s->target, s->draft, sure, &excess, s->err);
        if (!rc) hm_line_member(s->line, "nucleus_excess", excess);
    }
    if (!rc && stochastic(s) && looks(s)) rc = add_accept(s, sure, &law);
    if (!rc) add_charge(s);
    s->sure = sure;
    s->e = s->step->charged ? s->step->charge : law.e;
    return rc;
}

// Accepted by a deterministic rule, a token was certain; else it was drawn from p.
static hm_status law_under_rule(struct hm_stamp_scene *s, struct hm_ival *e, struct hm_ival *ratio)
{
    const struct hm_log_step *step = s->step;
    if (step->source != HM_SOURCE_ACCEPTED) return HM_OK;
    struct hm_row *row = s->target;
    bool same = mpq_equal(s->config->temperature.value, s->config->certify_temperature.value);
    hm_status rc =
        same ? HM_OK : hm_row_open(step->target_row, s->config->vocab, &s->config->temperature, &row, s->err);
    if (rc) return rc;
    rc = hm_sampling_probability(row, step->support, &step->token, 1, ratio, s->err);
    if (!rc) rc = hm_sampling_complement(row, step->support, step->token, e, s->err);
    if (!same) hm_row_close(row);
    *ratio = hm_stamp_provable(*ratio);
    return rc;
}

static hm_status law_under_nucleus(struct hm_stamp_scene *s, struct hm_ival *e, struct hm_ival *ratio)
{
    const struct hm_log_step *step = s->step;
    if (!looks(s) || !in_force(s)) return HM_OK;
    const struct hm_proposals proposals = {s->config->proposal, step->children, step->child_count, s->sure};
    *e = s->e;
    hm_status rc = hm_speculative_ratio(s->target, s->draft, &proposals, step->token, ratio, s->err);
    if (!rc && (ratio->lo != 1 || ratio->hi != 1)) *ratio = hm_stamp_provable(*ratio);
    return rc;
}

hm_status hm_stamp_add_law_of_token(struct hm_stamp_scene *s)
{
    struct hm_ival e = {0, 0}, ratio = {1, 1};
    if (s->kind != HM_STAMP_STEP || !s->config->has_rule || s->config->greedy) return HM_OK;
    hm_status rc =
        s->config->acceptance == HM_STAMP_NUCLEUS ? law_under_nucleus(s, &e, &ratio) : law_under_rule(s, &e, &ratio);
    if (rc) return rc;
    hm_line_member(s->line, "e", e);
    hm_line_member(s->line, "ratio", ratio);
    return HM_OK;
}
