// Which combinations of acceptance, selection, traversal and budget make a decoder: see session.h and docs/decoders.md,
// "Legal combinations".
#include "decode/session.h"

static const char *const selection_name[] = {"draft", "root", "root-draw", "pearl"};

// Every acceptance but match goes with the plainest tree only.
static hm_status check_others(const struct hm_session_options *o, struct hm_error *err)
{
    if (o->covering)
        return hm_fail(err, HM_USAGE, "--decoder covering: expected --accept match, since a round that starts from its "
                                      "first token's own draw leaves nothing to relax");
    if (o->selection == HM_SELECT_ROOT)
        return hm_fail(err, HM_USAGE, "--select root: expected --accept match, since every other acceptance is defined for "
                                      "the draft's own choice of candidates");
    if (o->selection != HM_SELECT_DRAFT)
        return hm_fail(err, HM_USAGE, "--select %s: expected --accept match, since the first token is the target's own draw "
                                      "and leaves nothing to relax", selection_name[o->selection]);
    if (o->leaf_stop)
        return hm_fail(err, HM_USAGE, "--traverse leaf-stop: expected --accept match, since the token it stops at is emitted "
                                      "as the target's own draw");
    if (o->score_top || o->score_frontier)
        return hm_fail(err, HM_USAGE, "%s: expected --accept match, since the row it keeps serves no other decoder",
                       o->score_top ? "--score-top" : "--score-frontier");
    return HM_OK;
}

static hm_status check_tree(const struct hm_session_options *o, struct hm_error *err)
{
    if (o->cap && (o->leaf_stop || o->covering))
        return hm_fail(err, HM_USAGE, "--traverse cap:%zu: expected one traversal, found leaf-stop as well%s", o->cap,
                       o->covering ? ", which --decoder covering implies" : "");
    if (o->covering && o->selection != HM_SELECT_DRAFT && o->selection != HM_SELECT_ROOT_DRAW)
        return hm_fail(err, HM_USAGE, "--decoder covering: expected no --select %s, since it selects by draft, and by "
                                      "root-draw after a covered round", selection_name[o->selection]);
    if (o->score_top && o->score_frontier)
        return hm_fail(err, HM_USAGE, "--score-top, --score-frontier: expected one of the two, found both");
    if (o->score_top && o->score_top <= o->budget)
        return hm_fail(err, HM_USAGE, "--score-top %zu: expected more than the tree's budget, %zu, since those are verified "
                                      "anyway", o->score_top, o->budget);
    if (o->budget == 0 && (o->covering || o->selection == HM_SELECT_ROOT_DRAW || o->selection == HM_SELECT_PEARL))
        return hm_fail(err, HM_USAGE, "--tree-budget 0: expected at least 1 with %s, since the drawn token is verified",
                       o->covering ? "--decoder covering" : selection_name[o->selection]);
    return HM_OK;
}

hm_status hm_session_legal(const struct hm_session_options *o, struct hm_error *err)
{
    struct hm_budget budget = {.kind = o->fidelity};
    if (o->fidelity && !o->fidelity_limit) return hm_fail(err, HM_USAGE, "a fidelity budget: expected a limit, found none");
    if (o->fidelity) budget.limit = *o->fidelity_limit; // borrowed for this check
    hm_status rc = hm_acceptance_check(&o->acceptance, o->fidelity ? &budget : NULL, err);
    if (!rc && o->acceptance.kind != HM_ACCEPT_MATCH) rc = check_others(o, err);
    if (!rc) rc = check_tree(o, err);
    bool draws = o->acceptance.kind >= HM_ACCEPT_STANDARD && o->acceptance.proposal == HM_PROPOSAL_IID;
    if (!rc && draws && o->drafter && !o->drafter->vocab)
        rc = hm_fail(err, HM_USAGE, "--proposal iid: expected a drafter with rows to draw from, found %s", o->drafter->name);
    return rc;
}
