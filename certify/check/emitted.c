// The law of an emitted token and what it costs: fidelity budgets, `e`, `ratio`, `accept`. See state.h; docs/log.md
// "step", "The walk", "Fidelity budgets"; theory.md §5.
#include "certify/check/state.h"

#include <math.h>
#include <string.h>

bool ck_size_nucleus(struct ck *c, struct ck_node *node)
{
    if (node->sized != 0 || !node->target) return node->sized > 0;
    size_t low = 0, high = c->math.vocab; // positions below low are in, those from high on are not
    node->sized = 1;
    while (low < high && node->sized > 0) {
        size_t middle = low + (high - low) / 2;
        enum answer in = ck_member(&c->math, &c->header->acceptance, middle);
        if (in == OPEN) node->sized = -1;
        if (in == YES)
            low = middle + 1;
        else
            high = middle;
    }
    if (node->sized < 0) ck_open(c, "acceptance");
    node->sure = low;
    return node->sized > 0;
}

// Are the rows at hand that the law of the proposals at a node needs?
static bool rows_ready(const struct ck *c, const struct ck_node *node)
{
    return node->target && (node->draft || !c->header->iid);
}

static struct ck_ask proposals(const struct ck_node *node, size_t sure)
{
    return (struct ck_ask){.k = sure, .m = node->child_count, .token = (size_t)node->token, .children = node->children};
}

// The smallest double that is not below the sum of two.
static double add_up(double a, double b)
{
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    return error > 0 ? nextafter(sum, INFINITY) : sum; // an infinite sum has no error
}

// s + R <= limit, exactly. R is the room that uniforms of 53 bits need.
static bool is_affordable(const struct ck *c, double s)
{
    const struct ck_header *h = c->header;
    if (!isfinite(s)) return false;
    mpq_t sum, room;
    mpq_inits(sum, room, NULL);
    mpq_set_d(sum, s);
    if (h->budget_kind == CK_TV_BUDGET) {
        mpz_t n;
        mpz_init_set_ui(n, (unsigned long)h->budget);
        mpz_add_ui(n, n, 1);
        mpz_mul_ui(n, n, (unsigned long)h->vocab);
        mpz_add_ui(n, n, (unsigned long)h->budget);
        mpz_mul_ui(n, n, (unsigned long)c->at.of->max_tokens);
        mpq_set_z(room, n);
        mpq_div_2exp(room, room, 53);
        mpq_add(sum, sum, room);
        mpz_clear(n);
    }
    bool affordable = mpq_cmp(sum, h->limit) <= 0;
    mpq_clears(sum, room, NULL);
    return affordable;
}

// Is there something to charge?  Without rows, what the record says decides.
static bool is_due(const struct ck *c, const cJSON *line, const struct ck_node *node)
{
    if (!node->looked || c->header->budget_kind == CK_TV_BUDGET) return node->looked;
    if (node->best != -2) return node->best >= 0;
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(line, "source");
    return ck_has(line, "charge") || (cJSON_IsString(source) && strcmp(source->valuestring, "accepted") == 0);
}

static void check_charge(struct ck *c, const cJSON *line, struct ck_node *node)
{
    bool tv = c->header->budget_kind == CK_TV_BUDGET;
    const struct ck_tree *tree = c->at.tree;
    if (tv) {
        bool known = ck_size_nucleus(c, node) && rows_ready(c, node);
        struct ck_ask ask = proposals(node, node->sure);
        ck_prove_share(c, line, "charge", c->header->iid ? ck_iid_e : ck_topk_e, &ask, known, node->charge);
    } else {
        struct ck_ask ask = {.token = node->best >= 0 ? (size_t)tree->token[node->best] : 0};
        ck_prove(c, line, "charge", ck_regret, &ask, node->best >= 0, node->charge);
        if (!c->out.failed && node->charge[1] < 0)
            ck_refute(c, "charge", "expected a value >= 0, found [%a, %a]", node->charge[0], node->charge[1]);
    }
    node->charged = true;
}

void ck_budget(struct ck *c, const cJSON *line, struct ck_node *node)
{
    node->relaxed = true;
    if (c->header->budget_kind == CK_NO_BUDGET) {
        ck_expect_absent(c, line, "relaxed charge spent", "the header has no budget");
        return;
    }
    double expected = c->at.spent;
    if (is_due(c, line, node)) {
        check_charge(c, line, node);
        double sum = add_up(c->at.spent, node->charge[1]);
        bool affordable = is_affordable(c, sum);
        node->relaxed = ck_bool(c, line, "relaxed");
        if (!c->out.failed && node->relaxed != affordable)
            ck_refute(c, "relaxed", "expected %s with %a spent, found %s", affordable ? "true" : "false", sum,
                      affordable ? "false" : "true");
        if (affordable) expected = sum;
    } else {
        ck_expect_absent(c, line, "charge relaxed", "the relaxation is not asked for");
    }
    double spent = ck_real(c, ck_get(c, line, "spent"), "spent");
    if (!c->out.failed && spent != expected) ck_refute(c, "spent", "expected %a, found %a", expected, spent);
}

static void check_accept(struct ck *c, const cJSON *line, struct ck_node *node)
{
    static const char *const names[2] = {"accept", "accept_standard"};
    double ends[2];
    if (!c->header->stochastic) {
        ck_expect_absent(c, line, "accept accept_standard", "acceptance is deterministic");
        return;
    }
    if (!node->looked) ck_expect_absent(c, line, "accept accept_standard", "the walk looks at no child");
    if (c->header->standard) ck_expect_absent(c, line, "accept_standard", "acceptance is standard");
    for (int i = 0; i < 2 && !c->out.failed; i++) {
        if (!ck_has(line, names[i])) continue;
        bool sure = i == 0 && c->header->nucleus && node->relaxed;
        bool known = (!sure || ck_size_nucleus(c, node)) && rows_ready(c, node);
        struct ck_ask ask = proposals(node, sure ? node->sure : 0);
        ck_prove_share(c, line, names[i], c->header->iid ? ck_iid_accept : ck_topk_accept, &ask, known, ends);
    }
}

static void expect_point(struct ck *c, const char *name, const double ends[2], int value)
{
    if (!c->out.failed && (ends[0] != value || ends[1] != value))
        ck_refute(c, name, "expected exactly %d of a token of the target's law, found [%a, %a]", value, ends[0],
                  ends[1]);
}

// Under a rule an accepted token was certain, every other one was drawn from p.
static void check_deterministic(struct ck *c, const cJSON *line, const struct ck_node *node, int64_t support)
{
    struct ck_ask ask = {.token = (size_t)node->token, .k = (size_t)support};
    double ends[2];
    bool accepted = strcmp(ck_text(c, line, "source"), "accepted") == 0;
    if (ck_has(line, "e") && accepted)
        ck_prove_share(c, line, "e", ck_not_chosen, &ask, node->target, ends);
    else if (ck_has(line, "e") && ck_interval(c, line, "e", ends))
        expect_point(c, "e", ends, 0);
    if (ck_has(line, "ratio") && accepted)
        ck_prove(c, line, "ratio", ck_chosen, &ask, node->target, ends);
    else if (ck_has(line, "ratio") && ck_interval(c, line, "ratio", ends))
        expect_point(c, "ratio", ends, 1);
}

static void check_stochastic(struct ck *c, const cJSON *line, struct ck_node *node)
{
    bool iid = c->header->iid, relaxed = c->header->nucleus && node->looked && node->relaxed;
    bool known = relaxed && ck_size_nucleus(c, node) && rows_ready(c, node);
    struct ck_ask ask = proposals(node, node->sure);
    double ends[2];
    if (ck_has(line, "e") || c->header->budget_kind == CK_TV_BUDGET) {
        ck_prove_share(c, line, "e", iid ? ck_iid_e : ck_topk_e, &ask, known, ends);
        if (!relaxed) expect_point(c, "e", ends, 0);
        if (!c->out.failed && relaxed && node->charged && (ends[0] != node->charge[0] || ends[1] != node->charge[1]))
            ck_refute(c, "e", "expected the charge [%a, %a], found [%a, %a]", node->charge[0], node->charge[1], ends[0],
                      ends[1]);
    }
    if (!ck_has(line, "ratio")) return;
    ck_prove(c, line, "ratio", iid ? ck_iid_ratio : ck_topk_ratio, &ask, known, ends);
    if (!relaxed) expect_point(c, "ratio", ends, 1);
    if (!c->out.failed && ends[1] < 0) ck_refute(c, "ratio", "expected a value >= 0, found [%a, %a]", ends[0], ends[1]);
}

void ck_emitted(struct ck *c, const cJSON *line, struct ck_node *node, int64_t support)
{
    check_accept(c, line, node);
    if (c->header->match || c->header->greedy)
        ck_expect_absent(c, line, "e ratio", c->header->match ? "acceptance is match" : "the temperature is 0");
    else if (c->header->stochastic)
        check_stochastic(c, line, node);
    else
        check_deterministic(c, line, node, support);
}
