// The claims of a record as JSON (docs/log.md, "claims"): see stamp_step.h.
#include "certify/stamp_step.h"

#include <inttypes.h>
#include <math.h>

// k, the token's membership and the edge alone: what is left of a claim when nothing was proposed.
static hm_status make_childless(struct hm_stamp_scene *s, const struct hm_rule *rule, struct hm_claim *claim)
{
    enum hm_verdict decided;
    *claim = (struct hm_claim){.edge = {-1, -1}};
    hm_status rc = hm_rule_count(rule, s->target, &claim->k, &decided, s->err);
    if (!rc && hm_stamp_has_token(s)) rc = hm_rule_accepts(rule, s->target, s->step->token, &claim->accepts, s->err);
    if (rc) return rc;
    if (claim->k > 0) claim->edge[0] = hm_row_token(s->target, claim->k - 1);
    if (claim->k < s->config->vocab) claim->edge[1] = hm_row_token(s->target, claim->k);
    return HM_OK;
}

static void add_edge(struct hm_stamp_scene *s, const int32_t edge[2])
{
    hm_line_bytes(s->line, ",\"edge\":[", 9);
    for (int i = 0; i < 2; i++) {
        if (i) hm_line_bytes(s->line, ",", 1);
        if (edge[i] >= 0) hm_stamp_add_entry(s, edge[i]);
        else hm_line_bytes(s->line, "null", 4);
    }
    hm_line_bytes(s->line, "]", 1);
}

static void add_tied(struct hm_line *line, const char *key, const uint32_t tied[2])
{
    hm_line_format(line, ",\"%s\":[%" PRIu32 ",%" PRIu32 "]", key, tied[0], tied[1]);
}

// The three values, after their levels unless they are constant (nothing can certify, or nothing needs to).
static void add_level(struct hm_line *line, const struct hm_level *level, bool nothing, bool vacuous)
{
    struct hm_ival value[3] = {level->klf, level->klr, level->tv};
    double constant = nothing ? 0 : INFINITY;
    for (int i = 0; i < 3 && (nothing || vacuous); i++) value[i] = (struct hm_ival){constant, constant};
    if (!nothing && !vacuous) {
        hm_line_member(line, "level_f", level->level_f);
        add_tied(line, "tied_f", level->tied_f);
        hm_line_member(line, "level_r", level->level_r);
        add_tied(line, "tied_r", level->tied_r);
    }
    hm_line_member(line, "klf", value[0]);
    hm_line_member(line, "klr", value[1]);
    hm_line_member(line, "tv", value[2]);
}

// An enclosure that begins an object.
static void add_first(struct hm_line *line, const char *key, const char *first, struct hm_ival value)
{
    hm_line_key(line, key);
    hm_line_format(line, "{\"%s\":", first);
    hm_line_ival(line, value);
}

static void add_bounds(struct hm_stamp_scene *s, const struct hm_claim *claim)
{
    struct hm_line *line = s->line;
    add_level(line, &claim->level, claim->nothing, claim->vacuous);
    if (claim->has_margin) {
        add_first(line, "margin", "gap", claim->margin.gap);
        hm_line_member(line, "klf", claim->margin.klf);
        hm_line_member(line, "klr", claim->margin.klr);
        hm_line_member(line, "tv", claim->margin.tv);
        hm_line_bytes(line, "}", 1);
    }
    if (claim->has_universal) {
        add_first(line, "universal", "klf", claim->universal.klf);
        hm_line_member(line, "klr", claim->universal.klr);
        hm_line_bytes(line, "}", 1);
    }
    if (!hm_stamp_has_token(s)) return;
    if (claim->has_radius) hm_line_member(line, "radius", hm_stamp_provable(claim->radius));
    if (claim->active != HM_ACTIVE_NONE)
        hm_line_format(line, ",\"active\":\"%s\"", claim->active == HM_ACTIVE_EPS ? "eps" : "delta");
}

static const char *why_not_certified(const struct hm_stamp_scene *s, size_t m)
{
    if (s->step->source == HM_SOURCE_PREFILL && s->kind == HM_STAMP_STEP) return "prefill";
    return m == 0 ? "no children" : s->step->draft_why;
}

static void add_verdicts(struct hm_line *line, const enum hm_certified certified[3])
{
    hm_line_format(line, ",\"certified\":{\"klf\":\"%s\",\"klr\":\"%s\",\"tv\":\"%s\"}", hm_certified_names[certified[0]],
                   hm_certified_names[certified[1]], hm_certified_names[certified[2]]);
}

static void add_certified(struct hm_stamp_scene *s, const struct hm_claim *claim, size_t m)
{
    if (m == 0 || !claim->has_draft) {
        hm_line_bytes(s->line, ",\"certified\":null,\"why\":", 24);
        hm_line_text(s->line, why_not_certified(s, m));
        return;
    }
    hm_line_format(s->line, ",\"covered\":\"%s\"", hm_verdict_names[claim->covered]);
    add_verdicts(s->line, claim->certified);
}

static void add_restricted(struct hm_line *line, const struct hm_restricted *r)
{
    struct hm_ival zero = {0, 0};
    hm_line_format(line, ",\"restricted\":{\"k\":%zu", r->k);
    hm_line_member(line, "mass", r->no_mass ? zero : r->mass);
    if (!r->no_mass) hm_line_member(line, "kl", r->kl);
    add_level(line, &r->level, r->no_mass || r->k == 0, r->vacuous);
    add_verdicts(line, r->certified);
    hm_line_bytes(line, "}", 1);
}

// The verdict on one further divergence, with the precedence of hm_claim_make.
static hm_status judge(struct hm_stamp_scene *s, const struct hm_claim *claim, const struct hm_divergence *divergence,
                       enum hm_certified *out)
{
    *out = !claim->applies  ? HM_CERT_INAPPLICABLE
           : !claim->counted ? HM_CERT_UNDECIDED
           : claim->nothing  ? HM_CERT_NO
           : claim->vacuous  ? HM_CERT_VACUOUS
                             : HM_CERT_UNDECIDED;
    if (!claim->applies || !claim->counted || claim->nothing || claim->vacuous) return HM_OK;
    return hm_divergence_certified(divergence, s->target, s->draft, claim->k, claim->m, out, s->err);
}

static hm_status add_divergences(struct hm_stamp_scene *s, const struct hm_claim *claim, unsigned *undecided)
{
    const struct hm_stamp_config *config = s->config;
    *undecided = 0;
    for (size_t i = 0; i < config->divergence_count; i++) {
        const struct hm_divergence *divergence = &config->divergences[i];
        struct hm_ival star;
        enum hm_certified verdict;
        hm_status rc = hm_divergence_level(divergence, s->target, claim->k, claim->m, &star, s->err);
        if (!rc && claim->has_draft) rc = judge(s, claim, divergence, &verdict);
        if (rc) return rc;
        hm_line_format(s->line, "%s\"%s\":{\"star\":", i ? "," : ",\"divergences\":{", config->divergence_text[i]);
        hm_line_ival(s->line, hm_stamp_provable(star));
        if (claim->has_draft) hm_line_format(s->line, ",\"certified\":\"%s\"}", hm_certified_names[verdict]);
        else hm_line_bytes(s->line, ",\"certified\":null}", 18);
        *undecided += claim->has_draft && verdict == HM_CERT_UNDECIDED;
    }
    if (config->divergence_count) hm_line_bytes(s->line, "}", 1);
    return HM_OK;
}

static hm_status add_laws(struct hm_stamp_scene *s, const struct hm_claim_query *query, const struct hm_claim *claim)
{
    static const char *const names[] = {"iid", "topk"};
    static const enum hm_proposal proposal[] = {HM_PROPOSAL_IID, HM_PROPOSAL_TOPK};
    bool begun = false;
    for (int i = 0; i < 2; i++) {
        struct hm_law law;
        if (!s->config->law[proposal[i]]) continue;
        hm_status rc = hm_law_make(s->target, s->draft, proposal[i], query->children, query->m, claim->k, &law, s->err);
        if (rc) return rc;
        hm_line_format(s->line, "%s\"%s\":{\"accept\":", begun ? "," : ",\"laws\":{", names[i]);
        hm_line_ival(s->line, law.accept);
        hm_line_member(s->line, "e", law.e);
        hm_line_bytes(s->line, "}", 1);
        begun = true;
    }
    if (begun) hm_line_bytes(s->line, "}", 1);
    return HM_OK;
}

static unsigned count_undecided(const enum hm_certified certified[3])
{
    unsigned count = 0;
    for (int i = 0; i < 3; i++) count += certified[i] == HM_CERT_UNDECIDED;
    return count;
}

static void tally(const struct hm_stamp_scene *s, const struct hm_claim *claim, size_t m, struct hm_stamp_tally *out)
{
    *out = (struct hm_stamp_tally){.m = m, .has_draft = m > 0 && claim->has_draft};
    if (hm_stamp_has_token(s)) out->undecided += claim->accepts == HM_UNDECIDED;
    if (!out->has_draft) return;
    out->covered = claim->covered == HM_YES;
    out->certified = hm_claim_certified(claim);
    for (int i = 0; i < 3; i++) out->verdict[i] = claim->certified[i];
    out->undecided += claim->covered == HM_UNDECIDED;
    out->undecided += count_undecided(claim->certified);
    if (claim->has_restricted) out->undecided += count_undecided(claim->restricted.certified);
}

hm_status hm_stamp_add_claim(struct hm_stamp_scene *s, size_t rule, uint32_t m_asked, struct hm_stamp_tally *out)
{
    const struct hm_log_step *step = s->step;
    struct hm_line *line = s->line;
    bool from_tree = m_asked == HM_M_TREE;
    unsigned undecided = 0;
    struct hm_claim claim;
    struct hm_claim_query query = {.rule = &s->config->rules[rule],
                                   .target = s->target,
                                   .draft = s->draft,
                                   .distance = s->draft ? &s->distance : NULL,
                                   .token = step->token,
                                   .m = from_tree ? step->child_count : m_asked,
                                   .children = from_tree ? step->children : NULL,
                                   .margin = s->config->margin,
                                   .universal = s->config->universal};
    hm_status rc = query.m > 0 ? hm_claim_make(&query, &claim, s->err) : make_childless(s, query.rule, &claim);
    if (rc) return rc;
    hm_line_bytes(line, "{\"rule\":", 8);
    hm_line_text(line, s->config->rule_text[rule]);
    hm_line_format(line, ",\"m\":%zu,\"m_from\":\"%s\",\"k\":%zu", query.m, from_tree ? "tree" : "fixed", claim.k);
    if (hm_stamp_has_token(s)) hm_line_format(line, ",\"accepts\":\"%s\"", hm_verdict_names[claim.accepts]);
    add_edge(s, claim.edge);
    if (query.m > 0) add_bounds(s, &claim);
    add_certified(s, &claim, query.m);
    if (query.m > 0 && claim.has_restricted) add_restricted(line, &claim.restricted);
    if (query.m > 0) rc = add_divergences(s, &claim, &undecided);
    if (!rc && query.m > 0 && claim.has_draft && claim.counted) rc = add_laws(s, &query, &claim);
    hm_line_bytes(line, "}", 1);
    tally(s, &claim, query.m, out);
    out->undecided += undecided;
    return rc;
}
