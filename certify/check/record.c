// Records with rows: step, node and row. See state.h; docs/log.md "step", "node", "row: an audit".
#include "certify/check/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ck_words[CK_VERDICTS] = {"yes", "no", "vacuous", "inapplicable", "undecided"};

void ck_prove_in(struct ck *c, struct ck_math *math, const cJSON *record, const char *key, ck_quantity *quantity,
                 const struct ck_ask *ask, bool rows, double ends[2])
{
    // Some may be infinite to a double though they are not: a lower bound stands for them (docs/log.md "Numbers").
    bool bound = quantity == ck_known_klr || quantity == ck_power_value || quantity == ck_power_star;
    if (!ck_enclosure(c, record, key, bound, ends) || !rows) return;
    for (int level = math->first_level; level < CK_LEVELS; level++) {
        struct iv own;
        iv_inits(&own, 1, ck_precision(level));
        bool ok = quantity(math, level, ask, &own);
        bool inside = ok && mpfr_cmp_d(own.lo, ends[0]) >= 0 && mpfr_cmp_d(own.hi, ends[1]) <= 0;
        bool apart = ok && (mpfr_cmp_d(own.hi, ends[0]) < 0 || mpfr_cmp_d(own.lo, ends[1]) > 0);
        double near = mpfr_get_d(own.lo, MPFR_RNDN);
        iv_clears(&own, 1);
        if (apart) ck_refute(c, key, "expected an enclosure of %a, found [%a, %a]", near, ends[0], ends[1]);
        if (apart || inside) return;
    }
    ck_open(c, key);
}

void ck_prove(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
              bool rows, double ends[2])
{
    ck_prove_in(c, &c->math, record, key, quantity, ask, rows, ends);
}

void ck_prove_share(struct ck *c, const cJSON *record, const char *key, ck_quantity *quantity, const struct ck_ask *ask,
                    bool rows, double ends[2])
{
    ck_prove(c, record, key, quantity, ask, rows, ends);
    if (!c->out.failed && (ends[1] < 0 || ends[0] > 1))
        ck_refute(c, key, "expected a probability, found [%a, %a]", ends[0], ends[1]);
}

// [id, logit] against a position of the order. Returns the id.
int64_t ck_entry(struct ck *c, const cJSON *v, const char *field, bool rows, size_t position, float *logit)
{
    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2)
        ck_unreadable(c, field, "expected [id, logit], found %s", ck_show(v));
    int64_t id = ck_integer(c, cJSON_GetArrayItem(v, 0), field, 0);
    double x = ck_real(c, cJSON_GetArrayItem(v, 1), field);
    *logit = (float)x;
    if (c->out.failed) return 0;
    if (id >= c->header->vocab)
        ck_refute(c, field, "expected an id below the vocabulary, found %lld", (long long)id);
    else if ((double)*logit != x)
        ck_refute(c, field, "expected a float32 logit, found %a", x);
    if (c->out.failed || !rows) return id;
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
    int64_t wanted = c->header->top < c->header->vocab ? c->header->top : c->header->vocab;
    int count = cJSON_GetArraySize(node->top);
    if (!c->out.failed && count != wanted)
        ck_refute(c, "top", "expected %lld entries, found %d", (long long)wanted, count);
    size_t position = 0;
    int64_t before = -1;
    float above = INFINITY, logit;
    const cJSON *v;
    cJSON_ArrayForEach(v, node->top)
    {
        if (c->out.failed) return;
        int64_t id = ck_entry(c, v, "top", node->target, position++, &logit);
        if (logit > above || (logit == above && id <= before))
            ck_refute(c, "top", "expected descending logits, then ids");
        before = id;
        above = logit;
    }
}

// Why a node has no draft row: one of the page's reasons, and only where it can be true, so that no verdict hides
// behind it.
static void check_why(struct ck *c, const struct ck_node *node)
{
    bool drafted = c->header->has_draft, row = node->record == CK_ROW_RECORD, leaf = !row && node->child_count == 0;
    const struct {
        const char *why;
        bool possible;
    } table[] = {
        {"prefill", !row && node->node < 0}, {"no draft model", !drafted}, {"no drafter", !drafted}, {"leaf", leaf},
        {"not expanded", leaf || !drafted},  {"not kept", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(node->why, table[i].why) == 0) {
            if (!table[i].possible) ck_refute(c, "draft_row", "expected another reason than \"%s\" here", node->why);
            return;
        }
    ck_refute(c, "draft_row", "expected a reason that docs/log.md names, found \"%.40s\"", node->why);
}

// Why there are no verdicts: there is nothing to certify, or the reason that draft_row gives (check_why looks
// at that one); "no draft row" says the latter in other words.
void ck_not_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, bool no_children)
{
    ck_expect_absent(c, claim, "covered laws restricted", "there are no verdicts");
    const char *why = ck_text(c, claim, "why");
    bool prefill = node->node < 0 && node->record != CK_ROW_RECORD;
    const char *reason = prefill ? "prefill" : no_children ? "no children" : node->why;
    bool right =
        strcmp(why, reason) == 0 || (no_children ? strcmp(why, "no children") == 0 : strcmp(why, "no draft row") == 0);
    if (!c->out.failed && !right) ck_refute(c, "why", "expected \"%.40s\", found \"%.40s\"", reason, why);
}

static void check_divergences(struct ck *c, const cJSON *record, struct ck_node *node)
{
    int count = c->header->power_count;
    if (!node->draft_known || count == 0) {
        ck_expect_absent(c, record, "divergences", count ? "there is no draft row" : "the header lists none");
        return;
    }
    const cJSON *all = ck_object(c, record, "divergences");
    if (!c->out.failed && cJSON_GetArraySize(all) != count)
        ck_refute(c, "divergences", "expected the header's %d, found %d", count, cJSON_GetArraySize(all));
    size_t outer = ck_enter(c, "divergences.");
    for (int i = 0; i < count && !c->out.failed; i++) {
        const struct ck_power *d = &c->header->powers[i];
        struct ck_ask ask = {.power = d};
        ck_prove(c, all, d->text, ck_power_value, &ask, node->target && node->draft, node->powers[i]);
        if (!c->out.failed && node->powers[i][1] < 0) ck_refute(c, d->text, "expected a value >= 0");
    }
    ck_leave(c, outer);
}

static void check_pair(struct ck *c, const cJSON *record, struct ck_node *node)
{
    static const char *const names[3] = {"kl_pq", "kl_qp", "tv"};
    static ck_quantity *const divergences[3] = {ck_kl_pq, ck_kl_qp, ck_tv_pq};
    const struct ck_ask ask = {0};
    double ends[2];
    for (int i = 0; i < 3; i++) {
        double *kl = node->pair[i];
        if (node->draft_known)
            ck_prove(c, record, names[i], divergences[i], &ask, node->target && node->draft, kl);
        else
            ck_expect_absent(c, record, names[i], "there is no draft row");
        if (!c->out.failed && (kl[1] < 0 || (i == 2 && kl[0] > 1)))
            ck_refute(c, names[i], "expected a divergence, found [%a, %a]", kl[0], kl[1]);
    }
    if (!node->draft_known)
        ck_expect_absent(c, record, "standard_accept", "there is no draft row");
    else if (ck_has(record, "standard_accept"))
        ck_prove_share(c, record, "standard_accept", ck_min_pq, &ask, node->target && node->draft, ends);
    if (!node->draft_known || !c->header->nucleus)
        ck_expect_absent(c, record, "nucleus_excess",
                         c->header->nucleus ? "there is no draft row" : "acceptance is not nucleus");
    else if (ck_has(record, "nucleus_excess") && !c->out.failed) {
        bool known = ck_size_nucleus(c, node) && node->draft;
        const struct ck_ask one = {.k = node->sure, .m = 1};
        ck_prove_share(c, record, "nucleus_excess", ck_iid_e, &one, known, ends);
    }
    check_divergences(c, record, node);
}

static void check_quantities(struct ck *c, const cJSON *record, struct ck_node *node)
{
    struct ck_ask ask = {.token = (size_t)(node->token < 0 ? 0 : node->token)};
    double ends[2];
    check_top(c, record, node);
    ck_prove(c, record, "lse", ck_lse, &ask, node->target, ends);
    ck_prove(c, record, "entropy", ck_entropy, &ask, node->target, ends);
    if (!c->out.failed && (ends[1] < 0 || ends[0] > log((double)c->header->vocab) * (1 + 0x1p-40)))
        ck_refute(c, "entropy", "expected at most the logarithm of the vocabulary, found [%a, %a]", ends[0], ends[1]);
    check_pair(c, record, node);
    bool ruled = !c->header->match && !c->header->standard;
    if (!ruled)
        ck_expect_absent(c, record, "regret", c->header->match ? "acceptance is match" : "acceptance is standard");
    if (node->record == CK_STEP && ruled) ck_prove(c, record, "regret", ck_regret, &ask, node->target, ends);
}

// The rows of a record and what they claim.
static void read_node(struct ck *c, const cJSON *line, struct ck_node *node)
{
    enum ck_reference target = ck_load_row(c, line, "row", CK_TARGET),
                      draft = ck_load_row(c, line, "draft_row", CK_DRAFT);
    node->target = target == CK_ROW;
    node->draft = draft == CK_ROW;
    const cJSON *reference = cJSON_GetObjectItemCaseSensitive(line, "draft_row");
    node->draft_known =
        node->draft || (draft == CK_ABSENT_ROW &&
                        (ck_has(reference, "sha256") || ck_has(reference, "shard") || ck_has(line, "kl_pq")));
    for (int i = 1; node->node >= 0 && i < c->at.tree->walked; i++) {
        if (c->at.tree->parent[i] != node->node) continue;
        node->child[node->child_count] = i;
        node->children[node->child_count++] = (uint32_t)c->at.tree->token[i];
    }
    node->why = draft == CK_ROW || ck_has(reference, "shard") || c->out.failed ? "" : ck_text(c, reference, "why");
    if (*node->why) check_why(c, node);
    if (!c->out.failed && node->draft_known && !c->header->has_draft)
        ck_refute(c, "draft_row", "expected none: the header names no draft model");
    c->out.row_absent = c->out.row_absent || !node->target || draft == CK_ABSENT_ROW;
    if (!c->out.failed) ck_proposals(c, node);
    if (!c->out.failed) check_quantities(c, line, node);
    if (!c->out.failed) ck_claims(c, line, node);
}

static void check_finish(struct ck *c, const cJSON *line, int64_t token)
{
    bool present = ck_has(line, "finish");
    const struct ck_sequence *of = c->at.of;
    const char *expected = NULL, *said = present ? ck_text(c, line, "finish") : "absent";
    for (int i = 0; i < of->eos_count; i++)
        if (of->eos[i] == token) expected = "eos";
    if (!expected && of->has_stop_strings && strcmp(said, "stop") == 0) expected = "stop";
    if (!expected) expected = c->at.t + 1 == of->max_tokens ? "length" : "absent";
    if (!c->out.failed && (strcmp(said, expected) != 0 || (present && strcmp(said, "absent") == 0)))
        ck_refute(c, "finish", "expected %s, found %s%.20s", expected, present ? "the text " : "", said);
}

static void check_step(struct ck *c, const cJSON *line, struct ck_node *node)
{
    int64_t support = 0;
    ck_step_place(c, line, node);
    if (!c->out.failed) read_node(c, line, node);
    node->looked = node->child_count > 0 && (c->header->cap < 0 || c->at.accepted < c->header->cap);
    if (!c->out.failed) ck_support(c, line, node, &support);
    if (!c->out.failed) ck_best(c, node);
    if (!c->out.failed) ck_budget(c, line, node);
    if (!c->out.failed) ck_emitted(c, line, node, support);
    if (!c->out.failed) ck_choices(c, node, support);
    if (!c->out.failed) ck_walk(c, line, node, support);
    if (!c->out.failed) check_finish(c, line, node->token);
}

static void check_node(struct ck *c, const cJSON *line, struct ck_node *node)
{
    int64_t support = 0;
    node->node = c->at.next_record;
    ck_expect_int(c, line, "sequence", c->at.sequence);
    ck_expect_int(c, line, "round", c->at.tree->number);
    ck_expect_int(c, line, "node", node->node);
    ck_expect_int(c, line, "depth", c->at.tree->depth[node->node]);
    ck_expect_absent(c, line,
                     "t token source child regret accept accept_standard relaxed charge spent e ratio finish text",
                     "a node emits no token");
    if (!c->out.failed) read_node(c, line, node);
    if (!c->out.failed) ck_support(c, line, node, &support);
    if (!c->out.failed) ck_best(c, node);
    if (!c->out.failed) ck_choices(c, node, support);
}

static void check_row(struct ck *c, const cJSON *line, struct ck_node *node)
{
    node->node = -1;
    int64_t index = ck_int(c, line, "index", 0);
    if (!c->out.failed && index <= c->at.index)
        ck_refute(c, "index", "expected more than %lld, found %lld", (long long)c->at.index, (long long)index);
    if (ck_has(line, "token")) node->token = ck_int(c, line, "token", 0);
    if (node->token >= c->header->vocab)
        ck_refute(c, "token", "expected an id below the vocabulary, found %lld", (long long)node->token);
    ck_expect_absent(c, line,
                     "sequence t round source node depth child support regret nucleus_excess accept accept_standard "
                     "relaxed charge spent finish text e ratio",
                     "a row is no step");
    if (!c->out.failed) read_node(c, line, node);
}

void ck_check_record(struct ck *c, const cJSON *line, enum ck_record record)
{
    struct ck_node node = {.record = record, .token = -1};
    size_t most = c->at.tree ? (size_t)c->at.tree->count : 1;
    node.children = calloc(most, sizeof *node.children);
    node.child = calloc(most, sizeof *node.child);
    if (!node.children || !node.child)
        ck_unreadable(c, "kind", "out of memory");
    else if (record == CK_STEP)
        check_step(c, line, &node);
    else if (record == CK_NODE)
        check_node(c, line, &node);
    else
        check_row(c, line, &node);
    free(node.children);
    free(node.child);
}
