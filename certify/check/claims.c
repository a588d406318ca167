// What a step or node record claims about its rows: see state.h. docs/log.md "step" and "claims".
#include "certify/check/state.h"

#include <math.h>
#include <string.h>

static const char *const words[CK_VERDICTS] = {"yes", "no", "vacuous", "inapplicable", "undecided"};

void ck_prove(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
              bool rows, double ends[2])
{
    if (!ck_interval(c, record, key, ends) || !rows) return;
    for (int level = 0; level < CK_LEVELS; level++) {
        struct iv own;
        iv_inits(&own, 1, ck_precision(level));
        bool ok = quantity(&c->math, level, ask, &own);
        bool inside = ok && mpfr_cmp_d(own.lo, ends[0]) >= 0 && mpfr_cmp_d(own.hi, ends[1]) <= 0;
        bool apart = ok && (mpfr_cmp_d(own.hi, ends[0]) < 0 || mpfr_cmp_d(own.lo, ends[1]) > 0);
        double near = mpfr_get_d(own.lo, MPFR_RNDN);
        iv_clears(&own, 1);
        if (apart) ck_refute(c, key, "expected an enclosure of %a, found [%a, %a]", near, ends[0], ends[1]);
        if (apart || inside) return;
    }
    ck_open(c, key);
}

// [id, logit] against a position of the order. Returns the id.
static int64_t entry(struct ck *c, const cJSON *v, const char *field, bool rows, size_t position, float *logit)
{
    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2)
        ck_unreadable(c, field, "expected [id, logit], found %s", ck_show(v));
    int64_t id = ck_integer(c, cJSON_GetArrayItem(v, 0), field, 0);
    double x = ck_real(c, cJSON_GetArrayItem(v, 1), field);
    *logit = (float)x;
    if (c->failed) return 0;
    if (id >= (int64_t)c->math.vocab)
        ck_refute(c, field, "expected an id below the vocabulary, found %lld", (long long)id);
    else if ((double)*logit != x)
        ck_refute(c, field, "expected a float32 logit, found %a", x);
    if (c->failed || !rows) return id;
    const struct ck_row *r = &c->math.row[0];
    uint32_t token = r->order[position];
    if (id != token || *logit != r->logit[token])
        ck_refute(c, field, "expected [%u, %a] at place %zu of the order, found [%lld, %a]", token,
                  (double)r->logit[token], position + 1, (long long)id, x);
    return id;
}

static void check_top(struct ck *c, const cJSON *record, struct ck_node *node)
{
    node->top = ck_array(c, record, "top");
    int64_t wanted = c->header.top < (int64_t)c->math.vocab ? c->header.top : (int64_t)c->math.vocab;
    int count = cJSON_GetArraySize(node->top);
    if (!c->failed && count != wanted) ck_refute(c, "top", "expected %lld entries, found %d", (long long)wanted, count);
    size_t position = 0;
    int64_t before = -1;
    float above = INFINITY, logit;
    const cJSON *v;
    cJSON_ArrayForEach(v, node->top)
    {
        if (c->failed) return;
        int64_t id = entry(c, v, "top", node->target, position++, &logit);
        if (logit > above || (logit == above && id <= before))
            ck_refute(c, "top", "expected descending logits, then ids");
        before = id;
        above = logit;
    }
}

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

// Is a token among the first k?  From the row, or from `top` as far as it goes.
static enum answer among(struct ck *c, const struct ck_node *node, int64_t token, int64_t k)
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
    for (int i = 0; i < 2 && !c->failed; i++) {
        const cJSON *v = cJSON_GetArrayItem(edge, i), *listed = cJSON_GetArrayItem(node->top, (int)(k - 1 + i));
        bool exists = i ? k < (int64_t)c->math.vocab : k > 0;
        float logit, other;
        if (exists != !cJSON_IsNull(v)) {
            ck_refute(c, "edge", "expected %s, found %s", exists ? "an entry" : "null", ck_show(v));
            return;
        }
        if (!exists) continue;
        int64_t id = entry(c, v, "edge", node->target, (size_t)(k - 1 + i), &logit);
        if (node->target || !listed || c->failed) continue;
        if (entry(c, listed, "edge", false, 0, &other) != id || other != logit)
            ck_refute(c, "edge", "expected the entry of top");
    }
}

static void check_k(struct ck *c, const struct ck_rule *rule, const struct ck_node *node, int64_t k)
{
    int64_t vocab = (int64_t)c->math.vocab;
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

static void check_tied(struct ck *c, const cJSON *claim, const char *key, const struct ck_node *node,
                       const struct ck_ask *ask)
{
    const cJSON *tied = ck_array(c, claim, key);
    if (tied && cJSON_GetArraySize(tied) != 2) ck_unreadable(c, key, "expected [a, s]");
    int64_t a = ck_integer(c, cJSON_GetArrayItem(tied, 0), key, 0),
            s = ck_integer(c, cJSON_GetArrayItem(tied, 1), key, 0);
    size_t range[4] = {0, ask->k, 0, ask->m};
    if (!c->failed && node->target && ck_tied(&c->math, ask, key[5] == 'r', range) == OPEN) {
        ck_open(c, key);
        return;
    }
    if (c->failed ||
        (a >= (int64_t)range[0] && a <= (int64_t)range[1] && s >= (int64_t)range[2] && s <= (int64_t)range[3]))
        return;
    ck_refute(c, key, "expected %zu to %zu of A and %zu to %zu of S, found [%lld, %lld]", range[0], range[1], range[2],
              range[3], (long long)a, (long long)s);
}

// Levels, thresholds and margin. star: klf, klr, tv as logged.
static void check_thresholds(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                             double star[3][2])
{
    static const char *const names[3] = {"klf", "klr", "tv"};
    static ck_quantity *const exact[3] = {ck_klf, ck_klr, ck_tv}, *const sharp[3] = {ck_margin_klf, ck_margin_klr,
                                                                                     ck_margin_tv};
    double ends[2], constant = ask->k == 0 ? 0 : INFINITY;
    if (ask->k == 0 || ask->k + ask->m > c->math.vocab) {
        for (int i = 0; i < 3; i++) {
            ck_interval(c, claim, names[i], star[i]);
            if (star[i][0] != constant || star[i][1] != constant)
                ck_refute(c, names[i], "expected exactly %a", constant);
        }
        ck_expect_absent(c, claim, "level_f level_r tied_f tied_r margin", "k is 0 or k + m exceeds the vocabulary");
        return;
    }
    ck_prove(c, claim, "level_f", ck_level_f, ask, node->target, ends);
    if (!c->failed && (ends[1] < 0 || ends[0] > 1))
        ck_refute(c, "level_f", "expected a level within [0, 1], found [%a, %a]", ends[0], ends[1]);
    check_tied(c, claim, "tied_f", node, ask);
    ck_prove(c, claim, "level_r", ck_level_r, ask, node->target, ends);
    if (!c->failed && ends[0] > 0)
        ck_refute(c, "level_r", "expected a logarithm <= 0, found [%a, %a]", ends[0], ends[1]);
    check_tied(c, claim, "tied_r", node, ask);
    for (int i = 0; i < 3; i++) {
        ck_prove(c, claim, names[i], exact[i], ask, node->target, star[i]);
        if (!c->failed && star[i][1] < 0) ck_refute(c, names[i], "expected a value >= 0");
    }
    for (int i = 0; i < 2; i++) // Pinsker, with room for this line's own rounding
        if (!c->failed && star[2][0] > 0 && 2 * star[2][0] * star[2][0] * (1 - 0x1p-40) > star[i][1])
            ck_refute(c, names[i], "expected at least 2 tv^2, found [%a, %a]", star[i][0], star[i][1]);
    if (!c->header.margin) ck_expect_absent(c, claim, "margin", "the header says so");
    if (!c->header.margin || c->failed) return;
    const cJSON *margin = ck_object(c, claim, "margin");
    size_t outer = strlen(c->prefix);
    snprintf(c->prefix + outer, sizeof c->prefix - outer, "margin.");
    ck_prove(c, margin, "gap", ck_margin_gap, ask, node->target, ends);
    for (int i = 0; i < 3; i++) {
        ck_prove(c, margin, names[i], sharp[i], ask, node->target, ends);
        if (!c->failed && ends[0] > star[i][1]) ck_refute(c, names[i], "expected at most the exact threshold");
    }
    if (!c->failed) c->prefix[outer] = '\0';
}

static void check_accepts(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                          bool decided)
{
    const char *said = ck_text(c, claim, "accepts");
    enum answer truth = decided ? among(c, node, node->token, (int64_t)ask->k) : OPEN;
    bool yes = strcmp(said, "yes") == 0, no = strcmp(said, "no") == 0;
    if (c->failed) return;
    if (strcmp(said, "undecided") == 0)
        c->said_undecided++;
    else if (!yes && !no)
        ck_unreadable(c, "accepts", "expected yes, no or undecided, found \"%.20s\"", said);
    else if (truth != OPEN && yes != (truth == YES))
        ck_refute(c, "accepts", "expected %s, found %s", yes ? "no" : "yes", said);
    double ends[2];
    if (!ck_has(claim, "radius") || !ck_interval(c, claim, "radius", ends)) return;
    if (ends[1] < 0) {
        ck_refute(c, "radius", "expected a value >= 0, found [%a, %a]", ends[0], ends[1]);
        return;
    }
    if (!node->target || truth == OPEN || (!yes && !no) || ask->rule->kind == CK_ENTROPY) return;
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

// Does a proposed token lie in A(p)?  And are a tree's children the first m of q?
static enum answer proposals(struct ck *c, const struct ck_node *node, const struct ck_ask *ask, bool tree, bool *first)
{
    enum answer covered = NO;
    *first = true;
    if (!tree && !node->draft) return OPEN;
    size_t end = tree ? (size_t)c->tree.count : ask->m < c->math.vocab ? ask->m : c->math.vocab;
    for (size_t i = 0; i < end; i++) {
        int64_t token;
        if (!tree)
            token = c->math.row[1].order[i];
        else if (!ck_child_token(c, node, (int)i, &token))
            continue;
        if (tree && node->draft && c->math.row[1].rank[token] >= ask->m) *first = false;
        enum answer in = among(c, node, token, (int64_t)ask->k);
        if (in == YES || (in == OPEN && covered == NO)) covered = in;
    }
    return covered;
}

// One entry of `certified`. kl: the logged divergence.
static enum ck_verdict check_verdict(struct ck *c, const cJSON *certified, enum ck_divergence which,
                                     const struct ck_node *node, const struct ck_ask *ask, bool tree, bool first,
                                     const double kl[2], const double star[2])
{
    static const char *const names[3] = {"klf", "klr", "tv"};
    const char *field = names[which], *said = ck_text(c, certified, field);
    bool vacuous = ask->k > 0 && ask->k + ask->m > c->math.vocab, ready = node->target && node->draft;
    int word = 0;
    while (word < CK_VERDICTS && strcmp(words[word], said) != 0) word++;
    c->result->claims++;
    if (word == CK_VERDICTS)
        ck_unreadable(c, field, "expected a verdict, found \"%.20s\"", said);
    else if (word == CK_VACUOUS && !vacuous)
        ck_refute(c, field, "expected k + m > vocab of a vacuous claim");
    else if (word == CK_INAPPLICABLE && (!tree || (node->draft && first)))
        ck_refute(c, field, "expected %s, found inapplicable",
                  vacuous ? "vacuous" : "yes or no: m is fixed, or the children are the first m of q");
    else if (word != CK_VACUOUS && word != CK_INAPPLICABLE && (vacuous || !first))
        ck_refute(c, field, "expected %s, found %s", vacuous ? "vacuous" : "inapplicable", said);
    else if (word == CK_UNDECIDED) {
        c->result->undecided++;
        c->said_undecided++;
    }
    if (c->failed || word > CK_NO) return (enum ck_verdict)(word % CK_VERDICTS);
    enum answer truth = kl[0] >= star[1] ? NO : kl[1] < star[0] ? YES : OPEN;
    if (ask->k == 0)
        truth = NO; // coverage always fails
    else if (ready)
        truth = ck_certifies(&c->math, ask, which);
    if (truth == OPEN && ready)
        c->result->undecided++;
    else if (truth != OPEN && (truth == YES) != (word == CK_YES))
        ck_refute(c, field, "expected %s, found %s", words[truth == YES ? CK_YES : CK_NO], said);
    return (enum ck_verdict)word;
}

static void check_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask,
                            bool tree, double kl[3][2], double star[3][2], uint64_t counts[3][CK_VERDICTS])
{
    const cJSON *certified = ck_get(c, claim, "certified");
    bool first;
    if (c->failed) return;
    if (!node->draft_known || (tree && ask->m == 0)) {
        if (!cJSON_IsNull(certified))
            ck_refute(c, "certified", "expected null (no draft row, or no children), found %s", ck_show(certified));
        ck_not_certified(c, claim, node, tree && ask->m == 0);
        return;
    }
    if (!cJSON_IsObject(certified)) {
        ck_refute(c, "certified", "expected verdicts, found %s", ck_show(certified));
        return;
    }
    const char *said = ck_text(c, claim, "covered");
    enum answer covered = proposals(c, node, ask, tree, &first);
    bool yes = strcmp(said, "yes") == 0;
    if (!c->failed && !yes && strcmp(said, "no") != 0)
        ck_unreadable(c, "covered", "expected yes or no, found \"%.20s\"", said);
    if (covered != OPEN && yes != (covered == YES))
        ck_refute(c, "covered", "expected %s, found %s", yes ? "no" : "yes", said);
    size_t outer = strlen(c->prefix);
    snprintf(c->prefix + outer, sizeof c->prefix - outer, "certified.");
    for (int i = 0; i < 3 && !c->failed; i++) {
        enum ck_verdict v = check_verdict(c, certified, (enum ck_divergence)i, node, ask, tree, first, kl[i], star[i]);
        if (!c->failed && node->token >= 0) counts[i][v]++;
        if (!c->failed && v == CK_YES && !yes)
            ck_refute(c, "covered", "expected yes (certified implies covered), found no");
    }
    if (!c->failed) c->prefix[outer] = '\0';
}

static void check_claim(struct ck *c, const cJSON *claim, const struct ck_node *node, int rule, int column,
                        double kl[3][2], int64_t *rule_k, bool *rule_decided)
{
    int64_t m = c->header.m[column];
    bool tree = m == 0;
    double star[3][2];
    const char *text = ck_text(c, claim, "rule"), *from = ck_text(c, claim, "m_from");
    if (tree) m = (int64_t)node->child_count;
    if (!c->failed && strcmp(text, c->header.rules[rule].text) != 0)
        ck_refute(c, "rule", "expected %s, found \"%.40s\"", c->header.rules[rule].text, text);
    if (!c->failed && strcmp(from, tree ? "tree" : "fixed") != 0)
        ck_refute(c, "m_from", "expected %s, found \"%.20s\"", tree ? "tree" : "fixed", from);
    ck_expect_int(c, claim, "m", m);
    int64_t k = ck_int(c, claim, "k", 0);
    struct ck_ask ask = {.k = (size_t)k,
                         .m = (size_t)m,
                         .token = (size_t)(node->token < 0 ? 0 : node->token),
                         .rule = &c->header.rules[rule]};
    if (c->failed) return;
    if (*rule_k < 0) { // once per rule: the same for every m
        uint64_t open = c->open_questions;
        check_k(c, ask.rule, node, k);
        *rule_decided = open == c->open_questions;
        *rule_k = k;
    }
    if (k != *rule_k)
        ck_refute(c, "k", "expected %lld as for the other m, found %lld", (long long)*rule_k, (long long)k);
    if (node->token < 0) ck_expect_absent(c, claim, "accepts radius", "a node emits no token");
    if (m == 0)
        ck_expect_absent(c, claim, "level_f level_r tied_f tied_r klf klr tv margin radius covered",
                         "the claim stops after edge");
    if (!c->failed) check_edge(c, claim, node, k);
    if (!c->failed && node->token >= 0) check_accepts(c, claim, node, &ask, *rule_decided);
    if (!c->failed && m > 0) check_thresholds(c, claim, node, &ask, star);
    if (!c->failed) check_certified(c, claim, node, &ask, tree, kl, star, c->verdicts[rule][column]);
}

void ck_claims(struct ck *c, const cJSON *record, struct ck_node *node)
{
    static const char *const names[3] = {"kl_pq", "kl_qp", "tv"};
    static ck_quantity *const divergences[3] = {ck_kl_pq, ck_kl_qp, ck_tv_pq};
    struct ck_ask ask = {.token = (size_t)(node->token < 0 ? 0 : node->token)};
    double ends[2], kl[3][2] = {{0}};
    check_top(c, record, node);
    ck_prove(c, record, "lse", ck_lse, &ask, node->target, ends);
    ck_prove(c, record, "entropy", ck_entropy, &ask, node->target, ends);
    if (!c->failed && (ends[1] < 0 || ends[0] > log((double)c->math.vocab) * (1 + 0x1p-40)))
        ck_refute(c, "entropy", "expected at most the logarithm of the vocabulary, found [%a, %a]", ends[0], ends[1]);
    for (int i = 0; i < 3; i++) {
        if (node->draft_known)
            ck_prove(c, record, names[i], divergences[i], &ask, node->target && node->draft, kl[i]);
        else
            ck_expect_absent(c, record, names[i], "there is no draft row");
        if (!c->failed && (kl[i][1] < 0 || (i == 2 && kl[i][0] > 1)))
            ck_refute(c, names[i], "expected a divergence, found [%a, %a]", kl[i][0], kl[i][1]);
    }
    if (c->header.match) ck_expect_absent(c, record, "regret", "acceptance is match");
    if (node->token >= 0 && !c->header.match) ck_prove(c, record, "regret", ck_regret, &ask, node->target, ends);
    const cJSON *claims = ck_array(c, record, "claims"), *claim;
    int wanted = c->header.rule_count * c->header.m_count, i = 0;
    if (!c->failed && cJSON_GetArraySize(claims) != wanted)
        ck_refute(c, "claims", "expected %d (rules times m), found %d", wanted, cJSON_GetArraySize(claims));
    int64_t k = -1;
    bool decided = true;
    cJSON_ArrayForEach(claim, claims)
    {
        if (c->failed) return;
        snprintf(c->prefix, sizeof c->prefix, "claims[%d].", i);
        if (i % c->header.m_count == 0) k = -1;
        check_claim(c, claim, node, i / c->header.m_count, i % c->header.m_count, kl, &k, &decided);
        i++;
    }
    c->prefix[0] = '\0';
}
