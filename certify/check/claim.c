// What a record claims about its rows: the rule's set, its edge and the decision about the token. See state.h;
// docs/log.md "claims".
#include "certify/check/state.h"

#include <math.h>
#include <string.h>

// The place of a token in `top`, or -1.
static int top_rank(const struct ck_node *node, int64_t token)
{
    int rank = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, node->top)
    {
        const cJSON *id = cJSON_GetArrayItem(v, 0);
        if (id && id->valuedouble == (double)token) return rank;
        rank++;
    }
    return -1;
}

// From the row, or from `top` as far as it goes.
enum answer ck_among(struct ck *c, const struct ck_node *node, int64_t token, int64_t k)
{
    if (node->target) return c->math.row[0].rank[token] < k ? YES : NO;
    int rank = top_rank(node, token);
    if (rank >= 0) return rank < k ? YES : NO;
    return k <= cJSON_GetArraySize(node->top) ? NO : OPEN;
}

static void check_edge(struct ck *c, const cJSON *claim, const struct ck_node *node, int64_t k)
{
    const cJSON *edge = ck_array(c, claim, "edge");
    if (edge && cJSON_GetArraySize(edge) != 2) ck_unreadable(c, "edge", "expected two entries");
    for (int i = 0; i < 2 && !c->out.failed; i++) {
        const cJSON *v = cJSON_GetArrayItem(edge, i), *listed = cJSON_GetArrayItem(node->top, (int)(k - 1 + i));
        bool exists = i ? k < c->header->vocab : k > 0;
        float logit, other;
        if (exists != !cJSON_IsNull(v)) {
            ck_refute(c, "edge", "expected %s, found %s", exists ? "an entry" : "null", ck_show(v));
            return;
        }
        if (!exists) continue;
        int64_t id = ck_entry(c, v, "edge", node->target, (size_t)(k - 1 + i), &logit);
        if (node->target || !listed || c->out.failed) continue;
        if (ck_entry(c, listed, "edge", false, 0, &other) != id || other != logit)
            ck_refute(c, "edge", "expected the entry of top");
    }
}

static void check_k(struct ck *c, const struct ck_rule *rule, const struct ck_node *node, int64_t k)
{
    int64_t vocab = c->header->vocab;
    int64_t fixed = rule->kind == CK_GREEDY        ? 1
                    : rule->kind != CK_TOPM        ? k
                    : (int64_t)rule->count < vocab ? (int64_t)rule->count
                                                   : vocab;
    if (k > vocab || k != fixed) {
        ck_refute(c, "k", "expected the size of A(p), found %lld", (long long)k);
        return;
    }
    if (!node->target) return;
    enum answer last = k > 0 ? ck_member(&c->math, rule, (size_t)k - 1) : YES;
    enum answer next = ck_member(&c->math, rule, (size_t)k);
    if (last == NO || next == YES)
        ck_refute(c, "k", "expected the size of A(p), found %lld (token %lld of the order is %s)", (long long)k,
                  (long long)(last == NO ? k : k + 1), last == NO ? "rejected" : "accepted");
    else if (last == OPEN || next == OPEN)
        ck_open(c, "k");
}

static void check_radius(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                         bool known, bool yes)
{
    double ends[2];
    bool entropy = ask->rule->kind == CK_ENTROPY;
    bool topk = ask->rule->kind == CK_TOPK_DELTA || ask->rule->kind == CK_TOPK_RATIO;
    if (!ck_has(claim, "radius")) return;
    if (entropy || (topk && !yes)) {
        if (!ck_bound(c, claim, "radius", ends) || !node->target || !known) return;
        enum answer bound = ck_radius_at_least(&c->math, ask, ends[0]);
        if (bound == NO)
            ck_refute(c, "radius", "expected a lower bound of the decision's radius, found %a", ends[0]);
        else if (bound == OPEN)
            ck_open(c, "radius");
        return;
    }
    if (!ck_interval(c, claim, "radius", ends)) return;
    if (ends[1] < 0) {
        ck_refute(c, "radius", "expected a value >= 0, found [%a, %a]", ends[0], ends[1]);
        return;
    }
    if (!node->target || !known) return;
    if (ck_radius_is_closed(ask, c->math.row[0].rank[node->token])) {
        ck_prove(c, claim, "radius", ck_radius, ask, true, ends);
        return;
    }
    enum answer enclosed = ck_radius_between(&c->math, ask, ends[0], ends[1]);
    if (enclosed == NO)
        ck_refute(c, "radius", "expected an enclosure of the decision's radius, found [%a, %a]", ends[0], ends[1]);
    else if (enclosed == OPEN)
        ck_open(c, "radius");
}

static void check_active(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_rule *rule)
{
    if (rule->kind != CK_ENTROPY) ck_expect_absent(c, claim, "active", "it belongs to entropy");
    if (!ck_has(claim, "active") || c->out.failed) return;
    const char *said = ck_text(c, claim, "active");
    bool eps = strcmp(said, "eps") == 0;
    if (!c->out.failed && !eps && strcmp(said, "delta") != 0)
        ck_unreadable(c, "active", "expected eps or delta, found \"%.20s\"", said);
    if (!node->target || c->out.failed) return;
    enum answer truth = ck_eps_in_force(&c->math, rule);
    if (truth == OPEN)
        ck_open(c, "active");
    else if (eps != (truth == YES))
        ck_refute(c, "active", "expected %s, found %s", eps ? "delta" : "eps", said);
}

static void check_accepts(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                          bool decided)
{
    const char *said = ck_text(c, claim, "accepts");
    enum answer truth = decided ? ck_among(c, node, node->token, (int64_t)ask->k) : OPEN;
    bool yes = strcmp(said, "yes") == 0, no = strcmp(said, "no") == 0;
    if (c->out.failed) return;
    if (strcmp(said, "undecided") == 0)
        c->out.said_undecided++;
    else if (!yes && !no)
        ck_unreadable(c, "accepts", "expected yes, no or undecided, found \"%.20s\"", said);
    else if (truth != OPEN && yes != (truth == YES))
        ck_refute(c, "accepts", "expected %s, found %s", yes ? "no" : "yes", said);
    if (!c->out.failed) check_radius(c, claim, node, ask, truth != OPEN && (yes || no), yes);
}

// k once per rule: it is the same for every m.
struct sized {
    int64_t k; // -1: not known yet
    bool decided;
};

static void check_claim(struct ck *c, const cJSON *claim, const struct ck_node *node, int rule, int column,
                        struct sized *size)
{
    int64_t m = c->header->m[column];
    bool tree = m == 0;
    double star[3][2];
    const char *text = ck_text(c, claim, "rule"), *from = ck_text(c, claim, "m_from");
    if (tree) m = (int64_t)node->child_count;
    if (!c->out.failed && strcmp(text, c->header->rules[rule].text) != 0)
        ck_refute(c, "rule", "expected %s, found \"%.40s\"", c->header->rules[rule].text, text);
    if (!c->out.failed && strcmp(from, tree ? "tree" : "fixed") != 0)
        ck_refute(c, "m_from", "expected %s, found \"%.20s\"", tree ? "tree" : "fixed", from);
    ck_expect_int(c, claim, "m", m);
    int64_t k = ck_int(c, claim, "k", 0);
    struct ck_ask ask = {.k = (size_t)k,
                         .m = (size_t)m,
                         .token = (size_t)(node->token < 0 ? 0 : node->token),
                         .rule = &c->header->rules[rule],
                         .children = tree ? node->children : NULL};
    if (c->out.failed) return;
    if (size->k < 0) {
        uint64_t open = c->out.open_questions;
        check_k(c, ask.rule, node, k);
        size->decided = open == c->out.open_questions;
        size->k = k;
    }
    if (k != size->k)
        ck_refute(c, "k", "expected %lld as for the other m, found %lld", (long long)size->k, (long long)k);
    if (node->token < 0)
        ck_expect_absent(c, claim, "accepts radius", node->record == CK_NODE ? "a node emits no token" : "no token");
    if (node->record == CK_NODE) ck_expect_absent(c, claim, "active", "a node emits no token");
    if (m == 0)
        ck_expect_absent(c, claim,
                         "level_f level_r tied_f tied_r klf klr tv margin radius covered universal active restricted "
                         "divergences laws",
                         "the claim stops after edge");
    if (!c->out.failed) check_edge(c, claim, node, k);
    if (!c->out.failed && node->token >= 0) check_accepts(c, claim, node, &ask, size->decided);
    if (!c->out.failed) check_active(c, claim, node, ask.rule);
    if (!c->out.failed && m > 0) ck_thresholds(c, claim, node, &ask, star);
    if (!c->out.failed)
        ck_certified(c, claim, node, &ask, tree, size->decided, star, c->verdicts[rule * c->header->m_count + column]);
}

void ck_claims(struct ck *c, const cJSON *record, const struct ck_node *node)
{
    const cJSON *claims = ck_array(c, record, "claims"), *claim;
    int columns = c->header->m_count, wanted = c->header->rule_count * columns, i = 0;
    if (!c->out.failed && cJSON_GetArraySize(claims) != wanted)
        ck_refute(c, "claims", "expected %d (rules times m), found %d", wanted, cJSON_GetArraySize(claims));
    struct sized size = {-1, true};
    cJSON_ArrayForEach(claim, claims)
    {
        if (c->out.failed) return;
        snprintf(c->prefix, sizeof c->prefix, "claims[%d].", i);
        if (i % columns == 0) size = (struct sized){-1, true};
        check_claim(c, claim, node, i / columns, i % columns, &size);
        i++;
    }
    if (!c->out.failed) c->prefix[0] = '\0';
}
