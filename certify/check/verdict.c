// Verdicts: whether a claim is certified, and by what. See state.h. docs/log.md "claims"; theory.md §2, §4, §8.
#include "certify/check/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Are a tree's children, as a set, the first m of q?  Draws may repeat, and then there are fewer than m.
static bool are_first(const struct ck *c, const struct ck_node *node, size_t m)
{
    bool *seen = calloc(m + 1, sizeof *seen), first = true;
    if (!seen) abort(); // as MPFR does without memory
    for (size_t i = 0; first && i < node->child_count; i++) {
        size_t rank = c->math.row[1].rank[node->children[i]];
        first = rank < m && !seen[rank];
        if (first) seen[rank] = true;
    }
    free(seen);
    return first;
}

// Does a proposed token lie in A(p)?  And are a tree's children the first m of q?
static enum answer proposals(struct ck *c, const struct ck_node *node, const struct ck_ask *ask, bool tree, bool *first)
{
    enum answer covered = NO;
    *first = !tree || !node->draft || are_first(c, node, ask->m);
    if (!tree && !node->draft) return OPEN;
    size_t end = tree ? node->child_count : ask->m < c->math.vocab ? ask->m : c->math.vocab;
    for (size_t i = 0; i < end; i++) {
        int64_t token = tree ? node->children[i] : c->math.row[1].order[i];
        enum answer in = ck_among(c, node, token, (int64_t)ask->k);
        if (in == YES || (in == OPEN && covered == NO)) covered = in;
    }
    return covered;
}

enum ck_verdict ck_verdict(struct ck *c, const cJSON *certified, const char *field, const struct ck_case *of,
                           const double value[2], const double star[2], ck_decide *decide, const void *user)
{
    const char *said = ck_text(c, certified, field);
    bool vacuous = of->vacuous, tree = of->tree, first = of->first, ready = of->node->target && of->node->draft;
    int word = 0;
    while (word < CK_VERDICTS && strcmp(ck_words[word], said) != 0) word++;
    c->out.claims++;
    if (word == CK_VERDICTS)
        ck_unreadable(c, field, "expected a verdict, found \"%.20s\"", said);
    else if (word == CK_VACUOUS && !vacuous)
        ck_refute(c, field, "expected k + m > vocab of a vacuous claim");
    else if (word == CK_INAPPLICABLE && (!tree || (of->node->draft && first)))
        ck_refute(c, field, "expected %s, found inapplicable",
                  vacuous ? "vacuous" : "yes or no: m is fixed, or the children are the first m of q");
    else if (word != CK_VACUOUS && word != CK_INAPPLICABLE && (vacuous || !first))
        ck_refute(c, field, "expected %s, found %s", vacuous ? "vacuous" : "inapplicable", said);
    else if (word == CK_UNDECIDED) {
        c->out.undecided++;
        c->out.said_undecided++;
    }
    if (c->out.failed || word > CK_NO) return (enum ck_verdict)(word % CK_VERDICTS);
    enum answer truth = value[0] >= star[1] ? NO : value[1] < star[0] ? YES : OPEN;
    if (of->never)
        truth = NO; // coverage always fails
    else if (ready)
        truth = decide(c, of->ask, user);
    if (truth == OPEN && ready)
        c->out.undecided++;
    else if (truth != OPEN && (truth == YES) != (word == CK_YES))
        ck_refute(c, field, "expected %s, found %s", ck_words[truth == YES ? CK_YES : CK_NO], said);
    return (enum ck_verdict)word;
}

static enum answer decide_divergence(struct ck *c, const struct ck_ask *ask, const void *which)
{
    return ck_certifies(&c->math, ask, *(const enum ck_divergence *)which);
}

static enum answer decide_power(struct ck *c, const struct ck_ask *ask, const void *power)
{
    struct ck_ask of = *ask;
    of.power = power;
    return ck_power_certifies(&c->math, &of);
}

// The further divergences of a claim: the smallest values that let coverage fail, and verdicts where there are some.
static void check_powers(struct ck *c, const cJSON *claim, const struct ck_case *of, bool judged)
{
    const struct ck_node *node = of->node;
    int count = c->header->power_count;
    if (count == 0) {
        ck_expect_absent(c, claim, "divergences", "the header lists none");
        return;
    }
    const cJSON *all = ck_object(c, claim, "divergences");
    if (!c->out.failed && cJSON_GetArraySize(all) != count)
        ck_refute(c, "divergences", "expected the header's %d, found %d", count, cJSON_GetArraySize(all));
    size_t outer = ck_enter(c, "divergences.");
    for (int i = 0; i < count && !c->out.failed; i++) {
        const struct ck_power *d = &c->header->powers[i];
        struct ck_ask ask = *of->ask;
        double star[2], constant = of->never ? 0 : INFINITY;
        ask.power = d;
        const cJSON *entry = ck_object(c, all, d->text), *certified = ck_get(c, entry, "certified");
        size_t inner = ck_enter(c, "%s.", d->text);
        if (!of->never && !of->vacuous)
            ck_prove(c, entry, "star", ck_power_star, &ask, node->target, star);
        else if (ck_interval(c, entry, "star", star) && (star[0] != constant || star[1] != constant))
            ck_refute(c, "star", "expected exactly %a", constant);
        if (!c->out.failed && star[1] < 0) ck_refute(c, "star", "expected a value >= 0");
        if (!c->out.failed && judged)
            ck_verdict(c, entry, "certified", of, node->powers[i], star, decide_power, d);
        else if (!c->out.failed && !cJSON_IsNull(certified))
            ck_refute(c, "certified", "expected null (there are no verdicts), found %s", ck_show(certified));
        ck_leave(c, inner);
    }
    ck_leave(c, outer);
}

static void check_laws(struct ck *c, const cJSON *claim, const struct ck_case *of, bool decided)
{
    static const char *const names[2] = {"iid", "topk"}, *const fields[2] = {"accept", "e"};
    static ck_quantity *const quantities[2][2] = {{ck_iid_accept, ck_iid_e}, {ck_topk_accept, ck_topk_e}};
    if (!c->header->laws[0] && !c->header->laws[1]) {
        ck_expect_absent(c, claim, "laws", "the header lists none");
        return;
    }
    if (!decided && !ck_has(claim, "laws")) return; // k is open
    const cJSON *laws = ck_object(c, claim, "laws");
    size_t outer = ck_enter(c, "laws.");
    for (int i = 0; i < 2 && !c->out.failed; i++) {
        double ends[2];
        if (!c->header->laws[i]) {
            ck_expect_absent(c, laws, names[i], "the header does not list it");
            continue;
        }
        const cJSON *law = ck_object(c, laws, names[i]);
        size_t inner = ck_enter(c, "%s.", names[i]);
        for (int j = 0; j < 2 && !c->out.failed; j++) {
            ck_prove(c, law, fields[j], quantities[i][j], of->ask, of->node->target && of->node->draft, ends);
            if (!c->out.failed && (ends[1] < 0 || ends[0] > 1))
                ck_refute(c, fields[j], "expected a probability, found [%a, %a]", ends[0], ends[1]);
        }
        ck_leave(c, inner);
    }
    ck_leave(c, outer);
}

// `covered` and the three verdicts.
static void check_verdicts(struct ck *c, const cJSON *claim, const cJSON *certified, const struct ck_case *of,
                           enum answer covered, double star[3][2], unsigned char counts[3])
{
    static const char *const names[3] = {"klf", "klr", "tv"};
    static const enum ck_divergence kinds[3] = {CK_KLF, CK_KLR, CK_TV};
    const char *said = ck_text(c, claim, "covered");
    bool yes = strcmp(said, "yes") == 0, open = strcmp(said, "undecided") == 0;
    if (!c->out.failed && !yes && !open && strcmp(said, "no") != 0)
        ck_unreadable(c, "covered", "expected yes, no or undecided, found \"%.20s\"", said);
    if (!open && covered != OPEN && yes != (covered == YES))
        ck_refute(c, "covered", "expected %s, found %s", yes ? "no" : "yes", said);
    c->out.said_undecided += open;
    size_t outer = ck_enter(c, "certified.");
    for (int i = 0; i < 3 && !c->out.failed; i++) {
        enum ck_verdict v =
            ck_verdict(c, certified, names[i], of, of->node->pair[i], star[i], decide_divergence, &kinds[i]);
        if (!c->out.failed) counts[i] = (unsigned char)v;
        if (!c->out.failed && v == CK_YES && !yes)
            ck_refute(c, "covered", "expected yes (certified implies covered), found %s", said);
    }
    ck_leave(c, outer);
}

void ck_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, const struct ck_ask *ask, bool tree,
                  bool decided, double star[3][2], unsigned char counts[3])
{
    const cJSON *certified = ck_get(c, claim, "certified");
    struct ck_case of = {.node = node, .ask = ask, .tree = tree, .first = true, .never = ask->k == 0};
    of.vacuous = !of.never && ask->k + ask->m > (size_t)c->header->vocab;
    if (c->out.failed) return;
    bool judged = node->draft_known && !(tree && ask->m == 0);
    if (!judged) {
        if (!cJSON_IsNull(certified))
            ck_refute(c, "certified", "expected null (no draft row, or no children), found %s", ck_show(certified));
        ck_not_certified(c, claim, node, tree && ask->m == 0);
    } else if (!cJSON_IsObject(certified)) {
        ck_refute(c, "certified", "expected verdicts, found %s", ck_show(certified));
    } else {
        enum answer covered = proposals(c, node, ask, tree, &of.first);
        check_verdicts(c, claim, certified, &of, covered, star, counts);
        if (!c->out.failed) ck_restricted(c, claim, &of);
    }
    if (!c->out.failed && ask->m > 0) check_powers(c, claim, &of, judged);
    if (!c->out.failed && judged) check_laws(c, claim, &of, decided);
}
