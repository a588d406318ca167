// What a header must have, and which of its choices go together (docs/log.md, "Header"): see stamp_record.h.
#include "certify/stamp_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIVERGENCES = 16, MOST_PROPOSALS = 1024 };

static hm_status check_model(const char *which, const struct hm_log_model *model, struct hm_error *err)
{
    if (model->vocab < 2 || model->vocab > INT32_MAX)
        return hm_fail(err, HM_USAGE, "log header: %s vocabulary: expected 2 to %d, found %zu", which, INT32_MAX,
                       model->vocab);
    return HM_OK;
}

// There is no decode in an audit, so nothing may be said of one.
static hm_status check_audit(const struct hm_log_header *header, struct hm_error *err)
{
    if (hm_stamp_acceptance(header) != HM_STAMP_MATCH || hm_rational_sign(header->temperature) != 0 ||
        header->all_nodes)
        return hm_fail(err, HM_USAGE, "log header: audit: expected acceptance match, temperature 0 and nodes path");
    if (header->budget_kind != HM_LOG_NO_BUDGET || header->proposal_iid)
        return hm_fail(err, HM_USAGE, "log header: audit: expected no budget, and no proposals that are draws");
    for (size_t i = 0; i < header->m_count; i++)
        if (header->m[i] == HM_M_TREE)
            return hm_fail(err, HM_USAGE, "log header: audit: m: expected fixed numbers, found \"tree\"");
    return HM_OK;
}

enum hm_stamp_acceptance hm_stamp_acceptance(const struct hm_log_header *header)
{
    if (header->standard) return HM_STAMP_STANDARD;
    if (!header->acceptance) return HM_STAMP_MATCH;
    return header->acceptance->kind == HM_RULE_NUCLEUS ? HM_STAMP_NUCLEUS : HM_STAMP_RULE;
}

// Is text "PREFIX" and then digits of a number of at least 1?
static bool counts(const char *text, const char *prefix, size_t *out)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0 || text[length] < '1' || text[length] > '9') return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text + length, &end, 10);
    if (*end || errno || value > SIZE_MAX) return false;
    *out = (size_t)value;
    return true;
}

hm_status hm_stamp_traversal(const char *text, size_t *cap, bool *leaf_stop, struct hm_error *err)
{
    *cap = 0;
    *leaf_stop = text && strcmp(text, "leaf-stop") == 0;
    if (!text || *leaf_stop || strcmp(text, "exhaustive") == 0 || counts(text, "cap:", cap)) return HM_OK;
    return hm_fail(err, HM_USAGE, "log header: traversal: expected exhaustive, cap:N or leaf-stop, found %.100s", text);
}

static hm_status check_words(const struct hm_log_header *header, struct hm_error *err)
{
    static const char *const selections[] = {"draft", "root", "root-draw", "pearl", "covering"};
    static const char *const proposals[] = {"topk", "iid", "none"};
    const char *selection = header->selection ? header->selection : "draft";
    const char *proposal = header->proposal ? header->proposal : "none", *score = header->score;
    size_t ignored;
    bool known = false, proposed = false;
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        known = known || strcmp(selection, selections[i]) == 0;
    for (size_t i = 0; i < sizeof proposals / sizeof *proposals; i++)
        proposed = proposed || strcmp(proposal, proposals[i]) == 0;
    if (!known)
        return hm_fail(err, HM_USAGE,
                       "log header: selection: expected draft, root, root-draw, pearl or covering, found %.100s",
                       selection);
    if (!proposed || header->proposal_iid != (strcmp(proposal, "iid") == 0))
        return hm_fail(err, HM_USAGE, "log header: proposal: expected %s, found %.100s",
                       header->proposal_iid ? "iid" : "topk or none", proposal);
    if (score && !counts(score, "top:", &ignored) && !counts(score, "frontier:", &ignored) &&
        strcmp(score, "frontier:all") != 0)
        return hm_fail(err, HM_USAGE, "log header: score: expected top:M, frontier:E or frontier:all, found %.100s",
                       score);
    return HM_OK;
}

// Stochastic acceptance has one p, and proposals that are draws need what they are drawn from.
static hm_status check_acceptance(const struct hm_log_header *header, struct hm_error *err)
{
    enum hm_stamp_acceptance acceptance = hm_stamp_acceptance(header);
    bool stochastic = acceptance == HM_STAMP_STANDARD || acceptance == HM_STAMP_NUCLEUS, leaf_stop;
    size_t cap;
    if (header->standard && header->acceptance)
        return hm_fail(err, HM_USAGE, "log header: acceptance: expected a rule or standard, found both");
    if (stochastic && (hm_rational_sign(header->temperature) == 0 ||
                       !mpq_equal(header->temperature->value, header->certify_temperature->value)))
        return hm_fail(err, HM_USAGE, "log header: standard and nucleus: expected one temperature above 0");
    if (stochastic && (header->top_k != 0 || (header->top_p && mpq_cmp_ui(header->top_p->value, 1, 1) < 0)))
        return hm_fail(err, HM_USAGE, "log header: standard and nucleus: expected neither top-k nor top-p");
    if (header->proposal_iid && (!stochastic || !header->draft))
        return hm_fail(err, HM_USAGE,
                       "log header: proposal iid: expected a draft model and acceptance standard or nucleus");
    hm_status rc = check_words(header, err);
    if (!rc) rc = hm_stamp_traversal(header->traversal, &cap, &leaf_stop, err);
    if (rc) return rc;
    bool plain = (!header->selection || strcmp(header->selection, "draft") == 0) && !header->score && !leaf_stop;
    if (acceptance != HM_STAMP_MATCH && !plain)
        return hm_fail(
            err, HM_USAGE,
            "log header: expected selection draft, no score, and exhaustive or cap:N where acceptance is not match");
    if (header->selection && strcmp(header->selection, "covering") == 0 && !leaf_stop)
        return hm_fail(err, HM_USAGE, "log header: selection covering: expected leaf-stop, found %.100s",
                       header->traversal ? header->traversal : "exhaustive");
    return HM_OK;
}

static hm_status check_budget(const struct hm_log_header *header, struct hm_error *err)
{
    enum hm_stamp_acceptance acceptance = hm_stamp_acceptance(header);
    if (header->budget_kind == HM_LOG_NO_BUDGET) return HM_OK;
    if (!header->budget_limit || hm_rational_sign(header->budget_limit) < 0)
        return hm_fail(err, HM_USAGE, "log header: budget: expected a limit >= 0");
    if (header->budget_kind == HM_LOG_TV_BUDGET && acceptance != HM_STAMP_NUCLEUS)
        return hm_fail(err, HM_USAGE, "log header: budget of total variation: expected acceptance nucleus");
    if (header->budget_kind == HM_LOG_REGRET_BUDGET &&
        (acceptance != HM_STAMP_RULE || hm_rational_sign(header->temperature) != 0))
        return hm_fail(err, HM_USAGE, "log header: budget of regret: expected a deterministic rule at temperature 0");
    return HM_OK;
}

static hm_status check_models(const struct hm_log_header *header, struct hm_error *err)
{
    if (!header->target) return hm_fail(err, HM_USAGE, "log header: expected a target model");
    hm_status rc = check_model("target", header->target, err);
    if (!rc && header->draft) rc = check_model("draft", header->draft, err);
    if (rc || !header->draft || header->draft->vocab == header->target->vocab) return rc;
    return hm_fail(err, HM_UNSUPPORTED,
                   "log header: draft vocabulary: expected %zu tokens like the target's, found %zu",
                   header->target->vocab, header->draft->vocab);
}

hm_status hm_stamp_header_check(const struct hm_log_header *header, struct hm_error *err)
{
    if (header->rule_count == 0 || header->m_count == 0)
        return hm_fail(err, HM_USAGE, "log header: expected at least one rule and one m, found %zu and %zu",
                       header->rule_count, header->m_count);
    if (!header->temperature || hm_rational_sign(header->temperature) < 0)
        return hm_fail(err, HM_USAGE, "log header: temperature: expected a number >= 0");
    if (!header->certify_temperature || hm_rational_sign(header->certify_temperature) <= 0)
        return hm_fail(err, HM_USAGE, "log header: certify temperature: expected a number > 0");
    if (header->divergence_count > MOST_DIVERGENCES)
        return hm_fail(err, HM_USAGE, "log header: expected at most %d divergences, found %zu", MOST_DIVERGENCES,
                       header->divergence_count);
    for (size_t i = 0; i < header->m_count && (header->law_iid || header->law_topk); i++)
        if (header->m[i] > MOST_PROPOSALS)
            return hm_fail(err, HM_USAGE, "log header: m: expected at most %d where there are laws, found %lu",
                           MOST_PROPOSALS, (unsigned long)header->m[i]);
    hm_status rc = header->audit ? check_audit(header, err) : HM_OK;
    if (!rc) rc = check_models(header, err);
    if (!rc) rc = check_acceptance(header, err);
    if (!rc) rc = check_budget(header, err);
    return rc;
}
