// The order of records: a log's producer is checked against docs/log.md as it goes, so that a mistake shows where it is
// made and not in somebody's checker.
#include "certify/stamp_record.h"

#include <inttypes.h>
#include <math.h>

enum { NODES_MOST = 1 << 14 }; // docs/log.md, "round"

static hm_status expect(const char *what, int64_t expected, int64_t found, struct hm_error *err)
{
    if (expected == found) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected %" PRId64 ", found %" PRId64, what, expected, found);
}

static hm_status check_token(const char *what, int32_t token, size_t vocab, struct hm_error *err)
{
    if (token >= 0 && (size_t)token < vocab) return HM_OK;
    return hm_fail(err, HM_RANGE, "%s: expected a token below %zu, found %" PRId32, what, vocab, token);
}

hm_status hm_stamp_order_sequence(struct hm_stamp_order *order, const struct hm_log_sequence *sequence,
                                  const struct hm_stamp_config *config, struct hm_error *err)
{
    hm_status rc = config->audit ? hm_fail(err, HM_USAGE, "sequence: an audit has none")
                                 : expect("sequence: number", order->sequences, sequence->sequence, err);
    if (rc) return rc;
    if (order->open)
        return hm_fail(err, HM_USAGE, "sequence %" PRIu32 ": the one before it has no step that finishes it",
                       sequence->sequence);
    *order = (struct hm_stamp_order){.sequences = order->sequences + 1, .open = true};
    return HM_OK;
}

static hm_status check_current(const struct hm_stamp_order *order, const char *what, uint32_t sequence,
                               struct hm_error *err)
{
    if (order->sequences == 0) return hm_fail(err, HM_USAGE, "%s: no sequence has begun", what);
    return expect(what, (int64_t)order->sequences - 1, sequence, err);
}

// Nodes only scored come last; where the first token was drawn before, node 1 carries it and is the root's only child.
static hm_status check_tree(const struct hm_log_round *round, const struct hm_stamp_config *config,
                            struct hm_error *err)
{
    if (round->scored >= round->nodes || (round->scored && !config->scores))
        return hm_fail(err, HM_USAGE, "round: scored: expected %s of %zu nodes, found %zu",
                       config->scores ? "fewer than all" : "none", round->nodes, round->scored);
    bool must = config->draws_first == HM_STAMP_FIRST_ALWAYS;
    bool may = must || (config->draws_first == HM_STAMP_FIRST_SOMETIMES && round->round > 0);
    if (round->first_drawn ? !may : must)
        return hm_fail(err, HM_USAGE, "round: first: expected %s token drawn before the tree was chosen",
                       must ? "a" : "no");
    size_t verified = round->nodes - round->scored, children = 0;
    if (!round->first_drawn) return HM_OK;
    for (size_t i = 1; i < verified; i++) children += round->parent[i] == 0;
    if (children != 1 || round->token[1] != round->first)
        return hm_fail(err, HM_USAGE, "round: first: expected token %" PRId32 " in node 1, the root's only child",
                       round->first);
    return HM_OK;
}

hm_status hm_stamp_order_round(struct hm_stamp_order *order, const struct hm_log_round *round,
                               const struct hm_stamp_config *config, struct hm_error *err)
{
    hm_status rc = check_current(order, "round: sequence", round->sequence, err);
    if (!rc && !order->open) rc = hm_fail(err, HM_USAGE, "round: its sequence is finished");
    if (!rc) rc = expect("round: number", order->rounds, round->round, err);
    if (!rc) rc = expect("round: t", order->t, round->t, err);
    if (!rc && round->nodes == 0) rc = hm_fail(err, HM_USAGE, "round: expected at least its root, found no node");
    if (!rc && round->nodes > NODES_MOST)
        rc = hm_fail(err, HM_RANGE, "round: expected at most %d nodes, found %zu", NODES_MOST, round->nodes);
    for (size_t i = 0; i < round->nodes && !rc; i++) {
        rc = check_token("round: token", round->token[i], config->vocab, err);
        bool placed = i ? round->parent[i] >= 0 && (size_t)round->parent[i] < i : round->parent[i] == -1;
        if (!rc && !placed)
            rc = hm_fail(err, HM_RANGE, "round: parent of node %zu: expected %s, found %" PRId32, i,
                         i ? "an earlier node" : "-1", round->parent[i]);
        if (!rc && i && (isnan(round->logq[i]) || round->logq[i] == INFINITY))
            rc = hm_fail(err, HM_RANGE, "round: logq of node %zu: expected a number or -inf, found %f", i,
                         (double)round->logq[i]);
    }
    if (!rc) rc = check_tree(round, config, err);
    if (rc) return rc;
    order->rounds++;
    order->nodes = round->nodes;
    order->verified = round->nodes - round->scored;
    return HM_OK;
}

static hm_status check_rows(const struct hm_log_step *step, const struct hm_stamp_config *config, struct hm_error *err)
{
    if (!step->target_row) return hm_fail(err, HM_USAGE, "step: expected a target row");
    if (step->draft_row && !config->has_draft)
        return hm_fail(err, HM_USAGE, "step: a draft row, though the header has no draft model");
    if (!step->draft_row && !step->draft_why)
        return hm_fail(err, HM_USAGE, "step: expected a draft row or why there is none");
    if (step->support < 1 || step->support > config->vocab)
        return hm_fail(err, HM_RANGE, "step: support: expected 1 to %zu, found %zu", config->vocab, step->support);
    for (size_t i = 0; i < step->child_count; i++) {
        hm_status rc = check_token("step: child", step->children[i], config->vocab, err);
        if (rc) return rc;
    }
    return HM_OK;
}

static hm_status check_node(const struct hm_stamp_order *order, const struct hm_log_step *step, struct hm_error *err)
{
    hm_status rc = expect("step: round", order->rounds - 1, step->round, err);
    if (!rc && step->round >= 0 && step->node >= order->nodes)
        rc = hm_fail(err, HM_RANGE, "step: node: expected below %zu, found %zu", order->nodes, step->node);
    return rc;
}

// A fidelity budget only grows, and only by what was charged.
static hm_status check_charge(const struct hm_stamp_order *order, const struct hm_log_step *step,
                              const struct hm_stamp_config *config, struct hm_error *err)
{
    bool looks = step->round >= 0 && step->child_count > 0 && !step->capped;
    if (config->budget_kind == HM_LOG_NO_BUDGET || !step->charged) {
        if (config->budget_kind == HM_LOG_TV_BUDGET && looks)
            return hm_fail(err, HM_USAGE, "step %" PRIu32 ": expected a charge, as there are children to look at",
                           step->t);
        if (!step->charged && !step->relaxed && step->spent == order->spent) return HM_OK;
        return hm_fail(err, HM_USAGE, "step %" PRIu32 ": expected no charge and %a spent, found %a", step->t,
                       order->spent, step->spent);
    }
    if (!looks) return hm_fail(err, HM_USAGE, "step %" PRIu32 ": charge: there is no child to look at", step->t);
    if (!(step->charge.lo >= 0) || !(step->charge.hi >= step->charge.lo))
        return hm_fail(err, HM_RANGE,
                       "step %" PRIu32 ": charge: expected an enclosure of a number >= 0, found [%a, %a]", step->t,
                       step->charge.lo, step->charge.hi);
    double least = step->relaxed ? order->spent + step->charge.hi : order->spent;
    bool right =
        step->relaxed ? step->spent >= least && step->spent <= nextafter(least, INFINITY) : step->spent == least;
    if (right) return HM_OK;
    return hm_fail(err, HM_USAGE, "step %" PRIu32 ": spent: expected %a, found %a", step->t, least, step->spent);
}

hm_status hm_stamp_order_step(struct hm_stamp_order *order, const struct hm_log_step *step,
                              const struct hm_stamp_config *config, struct hm_error *err)
{
    hm_status rc = check_current(order, "step: sequence", step->sequence, err);
    if (!rc) rc = check_node(order, step, err);
    if (!rc) rc = check_rows(step, config, err);
    if (rc) return rc;
    if (step->token < 0) {
        if (config->all_nodes && step->round >= 0) return HM_OK;
        return hm_fail(err, HM_USAGE, "node: a node record, though %s",
                       config->all_nodes ? "no round has begun" : "the header has none");
    }
    if (!order->open) return hm_fail(err, HM_USAGE, "step: its sequence is finished");
    rc = check_token("step: token", step->token, config->vocab, err);
    if (!rc) rc = expect("step: t", order->t, step->t, err);
    bool prefill = step->source == HM_SOURCE_PREFILL;
    if (!rc && (prefill != (step->round < 0) || prefill != (step->t == 0)))
        rc = hm_fail(err, HM_USAGE,
                     "step %" PRIu32 ": only the first step of a sequence comes from the prompt's last row", step->t);
    if (!rc && step->child >= 0 && (size_t)step->child >= order->verified)
        rc = hm_fail(err, HM_RANGE, "step %" PRIu32 ": child: expected below %zu, found %" PRId64, step->t,
                     order->verified, step->child);
    if (!rc && step->round >= 0 && step->node >= order->verified)
        rc = hm_fail(err, HM_RANGE, "step %" PRIu32 ": node: expected below %zu, found %zu", step->t, order->verified,
                     step->node);
    if (!rc) rc = check_charge(order, step, config, err);
    if (rc) return rc;
    order->t++;
    order->spent = step->spent;
    if (step->finish != HM_FINISH_NONE) order->open = false;
    return HM_OK;
}

hm_status hm_stamp_order_row(struct hm_stamp_order *order, const struct hm_log_row *row,
                             const struct hm_stamp_config *config, struct hm_error *err)
{
    if (!config->audit) return hm_fail(err, HM_USAGE, "row: the header is not that of an audit");
    if (row->index < order->next_row)
        return hm_fail(err, HM_USAGE, "row: index: expected at least %" PRIu64 ", found %" PRIu64, order->next_row,
                       row->index);
    if (row->index >= UINT64_C(1) << 53) // what a log can hold
        return hm_fail(err, HM_RANGE, "row: index: expected less than 2^53, found %" PRIu64, row->index);
    if (!row->target_row) return hm_fail(err, HM_USAGE, "row %" PRIu64 ": expected a target row", row->index);
    if (!row->draft_row != !config->has_draft)
        return hm_fail(err, HM_USAGE, "row %" PRIu64 ": expected %s, as the header has %s draft model", row->index,
                       config->has_draft ? "a draft row" : "no draft row", config->has_draft ? "a" : "no");
    hm_status rc = row->token == -1 ? HM_OK : check_token("row: token", row->token, config->vocab, err);
    if (rc) return rc;
    order->next_row = row->index + 1;
    return HM_OK;
}
