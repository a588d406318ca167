// Stability radii (theory.md §6): within the radius no perturbation of the logits turns a decision, just past it the
// extremal one does. Perturbed rows have real logits, so a naive MPFR oracle of the rules decides them here.
#include "certify/certificate_state.h"
#include "certify/rules/rules.h"
#include "tests/certify_rows.h"
#include "tests/rule_oracle.h"
#include "tests/seed.h"

// ---- perturbations of a row by at most eta, of which these turn every rule that can be turned

enum shape { X_UP, X_DOWN, REACH_TOP, RIVAL, CROWD, CATCH_UP, VERTEX, ANY, SHAPES };

static void move(struct reals *out, size_t i, float l, double by)
{
    mpfr_set_flt(out->l[i], l, MPFR_RNDN);
    if (l != -INFINITY) mpfr_add_d(out->l[i], out->l[i], by, MPFR_RNDN); // -inf does not move
}

// A token as near to `level` as eta lets it come, from below.
static double toward(float l, double level, double eta)
{
    double by = level - l;
    return by > eta ? eta : by < -eta ? -eta : by;
}

static void perturb(struct reals *out, const float *l, size_t vocab, size_t x, double eta, enum shape shape, uint64_t bits,
                    uint64_t *random)
{
    size_t top = 0, rival = x == 0 ? 1 : 0;
    for (size_t i = 0; i < vocab; i++) {
        if (l[i] > l[top]) top = i;
        if (i != x && l[i] > l[rival]) rival = i;
    }
    double hair = 5e-13; // far above the rounding of logits below 64, below what check_case adds to a radius
    out->vocab = vocab;
    for (size_t i = 0; i < vocab; i++) {
        double by = 0;
        bool mine = i == x;
        switch (shape) {
        case X_UP: by = mine ? eta : -eta; break;
        case X_DOWN: by = mine ? -eta : eta; break;
        case REACH_TOP: by = mine ? eta : i == top ? -eta : toward(l[i], (double)l[top] - eta - hair, eta); break;
        case RIVAL: by = i == rival ? eta : -eta; break;
        case CROWD: by = !mine && l[i] + eta >= l[x] - eta ? eta : -eta; break;
        case CATCH_UP: by = mine ? eta : l[i] - eta > l[x] + eta ? -eta : toward(l[i], (double)l[x] + eta - hair, eta); break;
        case VERTEX: by = bits >> (i % 64) & 1 ? eta : -eta; break;
        default: by = eta * test_signed(random); break;
        }
        move(out, i, l[i], by);
    }
}

// ---- cases

static void random_rule(uint64_t *random, char *text, size_t size)
{
    unsigned share = 1 + (unsigned)test_below(random, 999), count = 1 + (unsigned)test_below(random, 5);
    switch (test_below(random, 13)) {
    case 0: snprintf(text, size, "greedy"); break;
    case 1: snprintf(text, size, "topm:%u", count); break;
    case 2: snprintf(text, size, "additive:%u/1000", share); break;
    case 3: snprintf(text, size, "additive:%u/4000", share % 100); break;
    case 4: snprintf(text, size, "multiplicative:%u/1000", share); break;
    case 5: snprintf(text, size, "nucleus:%u/1000", share); break;
    case 6: snprintf(text, size, "nucleus:1"); break;
    case 7: snprintf(text, size, "topk-delta:%u,%u/1000", count, share); break;
    case 8: snprintf(text, size, "topk-ratio:%u,%u/1000", count, share); break;
    case 9: snprintf(text, size, "absolute:%u/1000", share); break;
    case 10: snprintf(text, size, "regret:%u/200", share); break;
    case 11: snprintf(text, size, "entropy:%u/2000,%u/700", share, share + 1); break;
    default: snprintf(text, size, "entropy:%u/500,%u/1000", 500 + share, share); break; // only delta can accept
    }
}

// Rows of ties, neighbours, -inf, one giant, and plain ones.
static void random_row(uint64_t *random, float *l, size_t vocab)
{
    size_t style = test_below(random, 6);
    for (size_t i = 0; i < vocab; i++) {
        l[i] = (float)(3 * test_signed(random));
        if (style == 1) l[i] = (float)(int)(2 * l[i]) / 2;
        if (style == 2) l[i] = 1 + (float)test_below(random, 4) * 0x1p-23f;
        if (style == 3 && test_below(random, 3) == 0) l[i] = -INFINITY;
        if (style == 4) l[i] *= 20;
    }
    if (style == 5) l[test_below(random, vocab)] = 9;
    if (l[0] == -INFINITY) l[0] = 0;
}

static bool is_bound(const struct hm_rule *rule, bool accepted)
{
    bool counted = rule->kind == HM_RULE_TOPK_DELTA || rule->kind == HM_RULE_TOPK_RATIO;
    return rule->kind == HM_RULE_ENTROPY || (counted && !accepted);
}

static bool narrow(struct hm_ival v)
{
    return v.lo == v.hi || (v.hi < INFINITY && (v.hi - v.lo <= 0x1p-30 * v.hi || v.hi - v.lo <= 0x1p-60));
}

struct tally {
    size_t cases, infinite, zero, turned;
};

// Inside the radius nothing turns the decision, whatever is tried; past it one of the shapes does.
static void check_case(struct reals *work, struct hm_row *row, const char *text, size_t x, size_t tries, uint64_t *random,
                       struct tally *tally)
{
    const float *l = hm_row_logits(row);
    size_t vocab = hm_row_vocab(row);
    struct hm_rule rule = parse_rule(text);
    struct hm_error err = {.message = ""};
    enum hm_verdict in;
    struct hm_ival radius;
    bool known;
    if (hm_rule_accepts(&rule, row, (int32_t)x, &in, &err)) fail_msg("%s", err.message);
    assert_int_not_equal(in, HM_UNDECIDED);
    bool accepted = in == HM_YES, bound = is_bound(&rule, accepted);
    if (hm_claim_radius(&rule, row, (int32_t)x, accepted, &radius, &known, &err)) fail_msg("%s", err.message);
    if (!known || !(radius.lo >= 0) || !(radius.hi >= radius.lo)) fail_msg("%s: no radius", text);
    if (bound ? radius.hi != INFINITY : !narrow(radius)) fail_msg("%s: [%a, %a] is wide", text, radius.lo, radius.hi);
    tally->cases++;
    tally->infinite += radius.lo == INFINITY;
    tally->zero += radius.lo == 0;
    double inside = radius.lo == INFINITY ? 30 : radius.lo * (1 - 1e-9);
    for (size_t n = 0; n < SHAPES + tries && inside > 0; n++) {
        enum shape shape = n < SHAPES ? (enum shape)n : test_below(random, 2) ? VERTEX : ANY;
        perturb(work, l, vocab, x, inside, shape, test_random(random), random);
        if (accepts(work, &rule, row->temperature.value, x) != accepted)
            fail_msg("%s, token %zu %s: turned within %a by shape %d", text, x, accepted ? "in" : "out", inside, (int)shape);
    }
    if (!bound && radius.hi < INFINITY) {
        bool turned = false;
        double outside = radius.hi * (1 + 1e-9) + 1e-12;
        for (int shape = 0; shape < VERTEX && !turned; shape++) {
            perturb(work, l, vocab, x, outside, (enum shape)shape, 0, random);
            turned = accepts(work, &rule, row->temperature.value, x) != accepted;
        }
        if (!turned) fail_msg("%s, token %zu %s: not turned at %a", text, x, accepted ? "in" : "out", outside);
        tally->turned++;
    }
    hm_rule_clear(&rule);
}

static void run_cases(const char *name, size_t rows, size_t least, size_t most, size_t tries)
{
    static const char *const temperatures[] = {"1", "7/10", "1/3", "5/2"};
    uint64_t random = test_seed(name);
    struct reals *work = malloc(sizeof *work);
    struct tally tally = {0};
    assert_non_null(work);
    reals_init(work);
    for (size_t n = 0; n < rows; n++) {
        float l[MOST];
        char text[64];
        size_t vocab = least + test_below(&random, most - least + 1);
        random_row(&random, l, vocab);
        struct hm_row *row = open_row(l, vocab, temperatures[test_below(&random, 4)]);
        for (int i = 0; i < 8; i++) {
            size_t rank = test_below(&random, 3) ? test_below(&random, vocab < 6 ? vocab : 6) : test_below(&random, vocab);
            random_rule(&random, text, sizeof text);
            check_case(work, row, text, (size_t)hm_row_token(row, rank), tries, &random, &tally);
        }
        hm_row_close(row);
    }
    print_message("%zu decisions, %zu turned just outside, %zu radii infinite, %zu zero\n", tally.cases, tally.turned,
                  tally.infinite, tally.zero);
    assert_true(tally.turned > tally.cases / 4);
    reals_clear(work);
    free(work);
}

static void decisions_turn_at_their_radius(void **state)
{
    (void)state;
    run_cases("small", test_count(60, 500, 40000), 2, 8, 24);
}

static void and_in_rows_beyond_the_head(void **state)
{
    (void)state;
    run_cases("large", test_count(3, 16, 1500), 70, MOST, 6);
}

// The two arithmetics enclose the same number, and both narrowly.
static void doubles_and_mpfr_agree(void **state)
{
    (void)state;
    uint64_t random = test_seed("paths");
    size_t compared = 0, rows = test_count(200, 2000, 150000);
    struct hm_error err = {.message = ""};
    for (size_t n = 0; n < rows; n++) {
        float l[MOST];
        char text[64];
        size_t vocab = test_below(&random, 20) ? 2 + test_below(&random, 9) : 65 + test_below(&random, MOST - 65);
        random_row(&random, l, vocab);
        struct hm_row *row = open_row(l, vocab, n % 3 ? "1" : "3/10"), *exact = open_row(l, vocab, n % 3 ? "1" : "3/10");
        exact->filter.state = HM_FILTER_OFF;
        for (int i = 0; i < 6; i++) {
            int32_t x = hm_row_token(row, test_below(&random, vocab));
            enum hm_verdict in;
            struct hm_ival a, b;
            bool known_a, known_b;
            random_rule(&random, text, sizeof text);
            struct hm_rule rule = parse_rule(text);
            if (rule.kind != HM_RULE_ENTROPY) {
                assert_int_equal(hm_rule_accepts(&rule, exact, x, &in, &err), HM_OK);
                assert_int_equal(hm_claim_radius(&rule, row, x, in == HM_YES, &a, &known_a, &err), HM_OK);
                assert_int_equal(hm_claim_radius(&rule, exact, x, in == HM_YES, &b, &known_b, &err), HM_OK);
                if (!known_a || !known_b || a.lo > b.hi || b.lo > a.hi)
                    fail_msg("%s: [%a, %a] and [%a, %a]", text, a.lo, a.hi, b.lo, b.hi);
                compared++;
            }
            hm_rule_clear(&rule);
        }
        hm_row_close(row);
        hm_row_close(exact);
    }
    print_message("%zu radii compared\n", compared);
}

// The bound for entropy comes close to what the vertices of the box show.
static void the_entropy_bound_is_sharp(void **state)
{
    static const char *const rules[] = {"entropy:9/100,3/10", "entropy:1/2,1/5", "entropy:1/5,4/5"};
    (void)state;
    uint64_t random = test_seed("sharpness");
    struct reals *work = malloc(sizeof *work);
    double least = 1;
    assert_non_null(work);
    reals_init(work);
    for (size_t n = 0; n < test_count(20, 120, 4000); n++) {
        float l[5];
        for (size_t i = 0; i < 5; i++) l[i] = (float)(3 * test_signed(&random));
        struct hm_row *row = open_row(l, 5, "1");
        struct hm_rule rule = parse_rule(rules[n % 3]);
        size_t x = test_below(&random, 5);
        enum hm_verdict in;
        struct hm_ival radius;
        bool known, turned = false;
        assert_int_equal(hm_rule_accepts(&rule, row, (int32_t)x, &in, NULL), HM_OK);
        assert_int_equal(hm_claim_radius(&rule, row, (int32_t)x, in == HM_YES, &radius, &known, NULL), HM_OK);
        double low = 0, high = 40;
        for (int step = 0; step < 20; step++, turned = false) {
            double eta = (low + high) / 2;
            for (uint64_t bits = 0; bits < 32 && !turned; bits++) {
                perturb(work, l, 5, x, eta, VERTEX, bits, &random);
                turned = accepts(work, &rule, row->temperature.value, x) != (in == HM_YES);
            }
            if (turned) high = eta;
            else low = eta;
        }
        if (high < 39 && radius.lo / high < least) least = radius.lo / high;
        hm_rule_clear(&rule);
        hm_row_close(row);
    }
    reals_clear(work);
    free(work);
    print_message("at least %.3f of the nearest vertex that turns\n", least);
    assert_true(least > 0.8);
}

// Sums over ranges of ranks, on both sides of the head's end and across it.
static void masses_enclose_sums(void **state)
{
    (void)state;
    uint64_t random = test_seed("masses");
    for (size_t n = 0; n < test_count(20, 200, 20000); n++) {
        float l[4 * MOST];
        size_t vocab = 2 + test_below(&random, 4 * MOST - 1);
        random_row(&random, l, vocab);
        struct hm_row *row = open_row(l, vocab, "1");
        struct hm_masses masses = {.row = row, .rank = vocab};
        assert_true(hm_filter_ready(row));
        for (int i = 0; i < 40; i++) {
            size_t from = test_below(&random, vocab), to = from + test_below(&random, vocab - from + 1);
            if (i % 4 == 0) from = 0;
            if (i % 4 == 1) to = vocab;
            long double sum = 0;
            for (size_t r = from; r < to && r < row->support; r++) sum += (long double)row->filter.weights[hm_row_token(row, r)];
            struct hm_ival mass = hm_mass(&masses, from, to), all = row->filter.total;
            bool ends = from <= HM_ROW_HEAD || to == vocab; // sharp however small
            if (!(mass.lo <= sum && sum <= mass.hi) || mass.hi - mass.lo > 0x1p-36 * (ends ? mass.hi : all.hi) + 0x1p-80)
                fail_msg("[%zu, %zu) of %zu: [%a, %a] for %La", from, to, vocab, mass.lo, mass.hi, sum);
        }
        hm_masses_clear(&masses);
        hm_row_close(row);
    }
}

// Radii that are known exactly, and the ones that never turn.
static void special_radii(void **state)
{
    (void)state;
    const float none = -INFINITY;
    const struct {
        const char *rule;
        float logits[4];
        int32_t token;
        double radius;
    } cases[] = {
        {"greedy", {3, 1, 0, none}, 0, 1},
        {"greedy", {3, 1, 0, none}, 2, 1.5},
        {"greedy", {3, 1, 0, none}, 3, INFINITY},
        {"greedy", {3, 3, 0, none}, 1, 0},
        {"topm:2", {3, 1, 0, none}, 0, 1.5},
        {"topm:3", {3, 1, 0, none}, 2, INFINITY},
        {"topm:4", {3, 1, 0, none}, 3, INFINITY},
        {"topm:1", {3, 1, 0, none}, 3, INFINITY},
        {"multiplicative:1", {3, 1, 0, none}, 0, 1},
        {"multiplicative:1", {3, 1, 0, none}, 1, 1},
        {"multiplicative:1/2", {3, none, none, none}, 0, INFINITY},
        {"additive:0", {3, 1, 0, none}, 1, 1},
        {"additive:0", {3, 1, 0, none}, 3, INFINITY},
        {"additive:1/4", {3, 3, 0, none}, 3, INFINITY},  // three tokens of a third each
        {"additive:1/3", {3, 3, 0, none}, 3, 1.5},       // reached when all three are equal
        {"nucleus:1", {3, 3, 0, none}, 2, INFINITY},
        {"nucleus:1", {3, 3, 0, none}, 3, INFINITY},
        {"nucleus:1/2", {3, 3, none, none}, 1, 0},       // the first alone is a half
        {"nucleus:2/3", {3, 3, none, none}, 1, 0.34657359027997264}, // ln 2 / 2
        {"nucleus:1/2", {3, none, none, none}, 0, INFINITY},
        {"absolute:1", {3, 1, 0, none}, 0, INFINITY},
        {"absolute:1", {3, none, none, none}, 0, INFINITY},
        {"absolute:1/2", {3, 3, none, none}, 0, 0},
        {"absolute:1/3", {3, 3, none, none}, 0, 0.34657359027997264},
        {"regret:0", {3, none, none, none}, 0, INFINITY},
        {"regret:0", {3, -5000, none, none}, 0, INFINITY},
        {"topk-delta:2,0", {3, 3, 0, none}, 1, 0},
        {"topk-ratio:2,1", {3, 3, 0, none}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int off = 0; off < 2; off++) {
            struct hm_row *row = open_row(cases[i].logits, 4, "1");
            struct hm_rule rule = parse_rule(cases[i].rule);
            struct hm_error err = {.message = ""};
            enum hm_verdict in;
            struct hm_ival r;
            bool known;
            if (off) row->filter.state = HM_FILTER_OFF;
            assert_int_equal(hm_rule_accepts(&rule, row, cases[i].token, &in, &err), HM_OK);
            assert_int_equal(hm_claim_radius(&rule, row, cases[i].token, in == HM_YES, &r, &known, &err), HM_OK);
            double hair = cases[i].radius == 0 || cases[i].radius == INFINITY ? 0 : cases[i].radius * 0x1p-30;
            if (!known || !(r.lo <= cases[i].radius + hair && r.hi >= cases[i].radius - hair) || !narrow(r))
                fail_msg("case %zu, %s: [%a, %a], expected %a", i, cases[i].rule, r.lo, r.hi, cases[i].radius);
            hm_rule_clear(&rule);
            hm_row_close(row);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_radii),
        cmocka_unit_test(decisions_turn_at_their_radius),
        cmocka_unit_test(and_in_rows_beyond_the_head),
        cmocka_unit_test(doubles_and_mpfr_agree),
        cmocka_unit_test(the_entropy_bound_is_sharp),
        cmocka_unit_test(masses_enclose_sums),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
