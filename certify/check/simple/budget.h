// Fidelity budgets: what a relaxation costs, whether a sequence can still bear it, exactly. docs/log.md.
#include "round.h"

static void read_budget(const cJSON *line) { // of the header, whose acceptance and temperature were read
    static const char *const names[] = {"tv", "regret", NULL};
    const cJSON *budget = find(line, "budget");
    if (!budget || cJSON_IsNull(budget)) return;
    need(cJSON_IsObject(budget), "budget");
    run->limited = word(budget, "kind", names) ? LIMIT_REGRET : LIMIT_TV;
    run->limit = rational(text_of(budget, "limit"), "limit");
    bool rule = !run->match && !run->standard && !run->nucleus;
    must(run->limited == LIMIT_TV ? run->nucleus : rule && run->greedy, "budget");
}

static void begin_budget(int64_t max_tokens) { // of a sequence
    mpz_ptr r = mpq_numref(run->reserve);      // R = max_tokens ((B + 1) V + B) 2^-53
    run->spent = 0;
    mpq_set_ui(run->reserve, (unsigned long)run->budget + 1, 1);
    mpz_mul_ui(r, r, run->vocab);
    mpz_add_ui(r, r, (unsigned long)run->budget);
    mpz_mul_ui(r, r, (unsigned long)max_tokens);
    if (run->limited == LIMIT_TV) mpq_div_2exp(run->reserve, run->reserve, 53);
    else mpq_set_ui(run->reserve, 0, 1);
}

static double sum_upward(double x, double y) {
    mpfr_t sum;
    mpfr_init2(sum, 53);
    mpfr_set_d(sum, x, MPFR_RNDU);
    mpfr_add_d(sum, sum, y, MPFR_RNDU);
    double s = mpfr_get_d(sum, MPFR_RNDU);
    mpfr_clear(sum);
    return s;
}

static bool bearable(double s) { // s + R <= limit?
    if (isinf(s)) return false;
    mpq_set_d(run->sum, s);
    mpq_add(run->sum, run->sum, run->reserve);
    return mpq_cmp(run->sum, run->limit) <= 0;
}

// A step's `charge`, which must stand there if that is known, encloses a cost. Returns whether the relaxation is in
// force.
static bool check_charge(const cJSON *line, enum answer stands, quantity *cost, const struct ask *a, bool rows) {
    if (stands != YES && !find(line, "charge")) {
        absent(line, "relaxed");
        return false;
    }
    must(stands != NO, "charge");
    struct ends charge = within(prove(line, "charge", cost, a, rows), "charge", 0, INFINITY);
    double s = sum_upward(run->spent, charge.hi);
    bool in_force = bearable(s);
    must(flag_of(line, "relaxed") == in_force, "relaxed");
    if (in_force) run->spent = s;
    return in_force;
}

// What a budget of total variation has to say at a step: sets whether the relaxation is in force there.
static void check_tv_budget(const cJSON *line) {
    struct node *n = run->node;
    struct ask a = at_node();
    n->relaxed = run->nucleus && n->looks;
    if (run->limited != LIMIT_TV) return;
    a.k = n->k;
    n->relaxed = check_charge(line, n->looks ? YES : NO, q_e, &a, at_hand());
}

// One of regret: is the child that the rule would take (-1: none, -2: not known) accepted?
static bool check_regret_budget(const cJSON *line, int child) {
    struct node *n = run->node;
    bool none = !n->looks || child == -1;
    struct ask a = at_node();
    int own = child < 0 ? n->carrier : child; // without rows, the one that was taken
    if (own >= 0) a.token = (size_t)run->tree->token[own];
    return check_charge(line, none ? NO : child < 0 ? OPEN : YES, q_regret, &a, n->target);
}
