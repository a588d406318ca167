// Every figure from truncated evidence contains the truth of the row it was made from, and every decision is its decision
// (docs/evidence.md): hard and ordinary rows, listed and rounded in many ways, at several temperatures.
#include "tests/known_support.h"

// How often each rule's question about a listed token was decided, where the row itself decides it.
static size_t asked[KNOWN_RULES], decided[KNOWN_RULES];

static void forget_shares(void)
{
    memset(asked, 0, sizeof asked);
    memset(decided, 0, sizeof decided);
}

static double share_decided(const char *rule)
{
    for (size_t i = 0; i < KNOWN_RULES; i++)
        if (strcmp(known_rules[i], rule) == 0) return asked[i] ? (double)decided[i] / (double)asked[i] : 1;
    fail_msg("%s is not asked about", rule);
    return 0;
}

static void print_shares(const char *what)
{
    print_message("%s:", what);
    for (size_t i = 0; i < KNOWN_RULES; i++)
        print_message(" %s %.4f", known_rules[i], asked[i] ? (double)decided[i] / (double)asked[i] : 1.0);
    print_message("\n");
}

// ---- One row against its evidence

static size_t entry_of(const struct scene *s, int32_t token)
{
    for (size_t i = 0; i < s->evidence.count; i++)
        if (s->entry[i].id == token) return i;
    return HM_UNSEEN;
}

static void check_token(const struct scene *s, int32_t token)
{
    struct hm_ival p, regret, surprise;
    size_t entry = entry_of(s, token);
    assert_int_equal(hm_row_probability(s->row, token, &p, NULL), HM_OK);
    assert_int_equal(hm_row_regret(s->row, token, &regret, NULL), HM_OK);
    assert_meets("probability", hm_known_probability(s->known, entry), p);
    assert_meets("regret", hm_known_regret(s->known, entry), regret);
    surprise = hm_known_surprise(s->known, entry);
    struct hm_ival log_p = {0, 0};
    mpfr_t x;
    mpfr_init2(x, 53);
    mpfr_set_d(x, p.hi, MPFR_RNDU);
    mpfr_log(x, x, MPFR_RNDU);
    log_p.lo = p.hi > 0 ? fmax(-mpfr_get_d(x, MPFR_RNDU), 0) : INFINITY;
    mpfr_set_d(x, p.lo, MPFR_RNDD);
    mpfr_log(x, x, MPFR_RNDD);
    log_p.hi = p.lo > 0 ? fmax(-mpfr_get_d(x, MPFR_RNDD), 0) : INFINITY;
    mpfr_clear(x);
    assert_meets("surprise", surprise, log_p);
    if (entry == HM_UNSEEN) assert_true(hm_known_unseen_most(s->known) >= p.lo);
}

static void check_sums(const struct scene *s)
{
    struct hm_ival h, seen = {0, 0}, p;
    assert_int_equal(hm_row_entropy(s->row, &h, NULL), HM_OK);
    assert_meets("entropy", hm_known_entropy(s->known), h);
    for (size_t i = 0; i < s->evidence.count; i++) {
        assert_int_equal(hm_row_probability(s->row, s->entry[i].id, &p, NULL), HM_OK);
        seen.lo += p.lo * (1 - 1e-12);
        seen.hi += p.hi * (1 + 1e-12) + 1e-300;
    }
    assert_meets("seen", hm_known_seen(s->known), seen);
    struct hm_ival unseen = {1 - seen.hi - 1e-15, 1 - seen.lo + 1e-15};
    assert_meets("unseen", hm_known_unseen(s->known), unseen);
}

static void check_rule(const struct scene *s, size_t which, const int32_t *tokens, size_t count)
{
    struct hm_rule rule = parse_rule(known_rules[which]);
    struct hm_claim claim;
    for (size_t i = 0; i < count; i++) {
        size_t entry = entry_of(s, tokens[i]);
        struct hm_claim_query query = {.rule = &rule, .target = s->row, .token = tokens[i], .m = 1};
        assert_int_equal(hm_claim_make(&query, &claim, NULL), HM_OK);
        enum hm_verdict found = hm_known_accepts(s->known, &rule, entry);
        if (claim.accepts != HM_UNDECIDED && entry != HM_UNSEEN) {
            asked[which]++;
            decided[which] += found != HM_UNDECIDED;
        }
        if (found != HM_UNDECIDED && claim.accepts != HM_UNDECIDED && found != claim.accepts)
            fail_msg("%s: rank %zu of %zu, entry %zd of %zu, T = %s: %d instead of %d", known_rules[which],
                     hm_row_rank(s->row, tokens[i]), s->vocab, (ssize_t)entry, s->evidence.count, s->temperature, (int)found,
                     (int)claim.accepts);
        struct hm_ival radius = hm_known_radius(s->known, &rule, entry);
        if (found == HM_UNDECIDED) assert_true(radius.lo == 0 && radius.hi == INFINITY);
        if (claim.has_radius) assert_meets(known_rules[which], radius, claim.radius);
    }
    for (size_t m = 1; m <= 4; m += 3) {
        struct hm_claim_query query = {.rule = &rule, .target = s->row, .token = -1, .m = m};
        assert_int_equal(hm_claim_make(&query, &claim, NULL), HM_OK);
        struct hm_count_range k = hm_known_count(s->known, &rule);
        if (!claim.counted) continue;
        if (claim.k < k.least || claim.k > k.most)
            fail_msg("%s: %zu not in [%zu, %zu]", known_rules[which], claim.k, k.least, k.most);
        struct hm_known_level level = hm_known_level(s->known, &rule, m);
        assert_meets(known_rules[which], level.klf, claim.level.klf);
        assert_meets(known_rules[which], level.klr, claim.level.klr);
        assert_meets(known_rules[which], level.tv, claim.level.tv);
    }
    hm_rule_clear(&rule);
}

static void check_scene(const struct scene *s, struct random *r)
{
    int32_t tokens[6];
    for (size_t i = 0; i < 3; i++) tokens[i] = s->entry[i < s->evidence.count ? i : 0].id;
    tokens[3] = s->entry[s->evidence.count - 1].id;
    tokens[4] = s->entry[below(r, s->evidence.count)].id;
    tokens[5] = (int32_t)below(r, s->vocab);
    check_sums(s);
    for (size_t i = 0; i < 6; i++) check_token(s, tokens[i]);
    for (size_t i = 0; i < KNOWN_RULES; i++) check_rule(s, i, tokens, 6);
}

static size_t some_size(struct random *r, size_t most)
{
    size_t small = below(r, 2);
    return 2 + below(r, small ? 10 : most - 1);
}

// ---- Properties

static void contains_the_truth(void **state)
{
    (void)state;
    struct random r = seeded("contains_the_truth");
    size_t rounds_now = test_count(60, 400, 40000);
    float *l = malloc(400 * sizeof *l);
    forget_shares();
    for (size_t i = 0; i < rounds_now; i++) {
        size_t vocab = some_size(&r, 399), k = 1 + below(&r, below(&r, 3) ? vocab : vocab < 20 ? vocab : 20);
        enum hard_kind kind = (enum hard_kind)below(&r, HARD_KINDS);
        const char *temperature = hard_temperatures[below(&r, HARD_TEMPERATURES)];
        enum scene_unit unit = (enum scene_unit)below(&r, SCENE_UNITS);
        int digits = 1 + (int)below(&r, 6);
        hard_row(&r, kind, l, vocab);
        struct scene s;
        scene_open(&s, l, vocab, temperature);
        scene_list(&s, unit, k, digits, below(&r, 2) ? (int32_t)below(&r, vocab) : -1);
        check_scene(&s, &r);
        scene_close(&s);
    }
    free(l);
    print_shares("all kinds of rows, 1 to 6 decimals");
}

// What engines print nowadays: 20 ranked tokens of a peaked row over a large vocabulary. Most questions must be decided.
static void decides_ordinary_rows(void **state)
{
    (void)state;
    struct random r = seeded("decides_ordinary_rows");
    static const struct { int digits; double greedy, additive, multiplicative, nucleus, entropy, absolute; } floors[] = {
        {6, 0.999, 0.99, 0.999, 0.85, 0.93, 0.999}, {4, 0.99, 0.99, 0.99, 0.85, 0.93, 0.99}, {2, 0.9, 0.95, 0.97, 0.85, 0.93, 0.95}};
    size_t vocab = 2000, rounds_now = test_count(5, 40, 3000);
    float *l = malloc(vocab * sizeof *l);
    for (size_t f = 0; f < sizeof floors / sizeof *floors; f++) {
        forget_shares();
        for (size_t i = 0; i < rounds_now; i++) {
            hard_row(&r, HARD_PLAIN, l, vocab);
            for (size_t j = 0; j < 8; j++) l[below(&r, vocab)] += (float)(6 + 4 * uniform(&r)); // a few that stand out
            struct scene s;
            scene_open(&s, l, vocab, "1");
            scene_list(&s, SCENE_PRINTED, 20, floors[f].digits, -1);
            check_scene(&s, &r);
            scene_close(&s);
        }
        char what[40];
        snprintf(what, sizeof what, "ordinary rows, %d decimals", floors[f].digits);
        print_shares(what);
        if (rounds_now < 40) continue;
        assert_true(share_decided("greedy") >= floors[f].greedy);
        assert_true(share_decided("additive:1/10") >= floors[f].additive);
        assert_true(share_decided("multiplicative:3/10") >= floors[f].multiplicative);
        assert_true(share_decided("nucleus:9/10") >= floors[f].nucleus);
        assert_true(share_decided("entropy:9/100,3/10") >= floors[f].entropy);
        assert_true(share_decided("absolute:1/20") >= floors[f].absolute);
    }
    free(l);
}

// Vocabularies as large as those in use, where sums have many terms.
static void contains_the_truth_of_large_rows(void **state)
{
    (void)state;
    struct random r = seeded("contains_the_truth_of_large_rows");
    static const char *const temperatures[] = {"1", "7/10", "3"};
    size_t rounds_now = test_count(1, 3, 60), vocab = 50000;
    float *l = malloc(vocab * sizeof *l);
    for (size_t i = 0; i < rounds_now; i++) {
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), l, vocab);
        struct scene s;
        scene_open(&s, l, vocab, temperatures[i % 3]);
        scene_list(&s, SCENE_PRINTED, 1 + below(&r, 100), 1 + (int)below(&r, 6), (int32_t)below(&r, vocab));
        check_scene(&s, &r);
        scene_close(&s);
    }
    free(l);
}

// ---- Different rows behind one list

// The same head and the same unseen mass, spread evenly or packed on as few tokens as the least listed one allows: the two
// extremes of what is unseen. Both must be contained, and the entropy's enclosure must hardly be wider than the two.
static void two_rows_behind_one_list(void **state)
{
    (void)state;
    struct random r = seeded("two_rows_behind_one_list");
    static const char *const temperatures[] = {"1", "1/2", "2"};
    size_t rounds_now = test_count(20, 300, 20000), used = 0;
    float even[400], packed[400];
    for (size_t i = 0; i < rounds_now; i++) {
        size_t k = 1 + below(&r, 20), n = 1 + below(&r, 300), vocab = k + n;
        double c = INFINITY;
        for (size_t j = 0; j < k; j++) {
            even[j] = packed[j] = (float)(3 * uniform(&r));
            c = fmin(c, even[j]);
        }
        double rest = exp(c) * (double)n * pow(uniform(&r), 3) * 0.999, left = rest;
        for (size_t j = k; j < vocab; j++) {
            double one = fmin(left, exp(c));
            even[j] = (float)log(rest / (double)n);
            packed[j] = one > 0 ? (float)log(one) : -INFINITY;
            if (packed[j] > (float)c) packed[j] = (float)c;
            left -= one;
        }
        struct scene a, b;
        const char *temperature = temperatures[below(&r, 3)];
        int digits = 1 + (int)below(&r, 4);
        scene_open(&a, even, vocab, temperature);
        scene_open(&b, packed, vocab, temperature);
        scene_list(&a, SCENE_PRINTED, k, digits, -1);
        scene_list(&b, SCENE_PRINTED, k, digits, -1);
        bool same = true; // the same tokens, and the same digits
        for (size_t j = 0; j < k; j++)
            same = same && a.entry[j].id == b.entry[j].id && a.entry[j].value.lo == b.entry[j].value.lo &&
                   a.entry[j].id < (int32_t)k;
        if (same) {
            check_scene(&a, &r);
            check_scene(&b, &r);
            struct hm_ival most, least, h = hm_known_entropy(a.known);
            assert_int_equal(hm_row_entropy(a.row, &most, NULL), HM_OK);
            assert_int_equal(hm_row_entropy(b.row, &least, NULL), HM_OK);
            double slack = digits < 4 ? INFINITY : 0.003 * (1 + most.hi);
            bool ordinary = strcmp(temperature, "1") == 0;
            if (ordinary && (h.hi > most.hi + slack || h.lo < least.lo - slack))
                fail_msg("entropy [%.9g, %.9g] around [%.9g, %.9g]", h.lo, h.hi, least.lo, most.hi);
            used++;
        }
        scene_close(&a);
        scene_close(&b);
    }
    print_message("%zu of %zu pairs print alike\n", used, rounds_now);
    assert_true(used > rounds_now / 3);
}

// A coarsely printed probability is 1 less the others, which are known better.
static void coarse_numbers_are_narrowed(void **state)
{
    (void)state;
    struct hm_evidence_entry entry[] = {{1, NULL, 0, {-0.05, 0.05}}, {2, NULL, 0, {-3.55, -3.45}}, {3, NULL, 0, {-4.65, -4.55}}};
    struct hm_evidence evidence = {.entry = entry, .count = 3, .ranked = 3, .vocab = 3};
    struct hm_known *known = open_known(&evidence, "1");
    struct hm_ival p = hm_known_probability(known, 0);
    assert_true(p.lo > 0.957 && p.hi < 0.962); // e^-0.05 = 0.951
    hm_known_close(known);
}

// ---- Nothing unseen

static double width(struct hm_ival x)
{
    return x.lo == x.hi ? 0 : (x.hi - x.lo) / fmax(1, fabs(x.hi));
}

// A whole row of exact logits, and one of log-probabilities with 30 decimals: figures collapse to rounding, and nothing is
// undecided but ties of probabilities, which these rows do not have.
static void full_knowledge_leaves_nothing_open(void **state)
{
    (void)state;
    struct random r = seeded("full_knowledge_leaves_nothing_open");
    static const char *const temperatures[] = {"1", "7/10", "3"};
    size_t rounds_now = test_count(10, 200, 20000);
    float l[300];
    for (size_t i = 0; i < rounds_now; i++) {
        size_t vocab = 2 + below(&r, 299);
        enum scene_unit unit = below(&r, 2) ? SCENE_LOGITS : SCENE_PRINTED;
        hard_row(&r, below(&r, 2) ? HARD_PLAIN : HARD_BF16, l, vocab);
        if (unit == SCENE_PRINTED) hard_row(&r, HARD_PLAIN, l, vocab);
        struct scene s;
        scene_open(&s, l, vocab, temperatures[below(&r, 3)]);
        scene_list(&s, unit, vocab, 30, -1);
        check_scene(&s, &r);
        assert_true(width(hm_known_entropy(s.known)) < 1e-11);
        assert_true(hm_known_unseen_most(s.known) == 0 && hm_known_unseen(s.known).hi == 0);
        for (size_t j = 0; j < KNOWN_RULES; j++) {
            struct hm_rule rule = parse_rule(known_rules[j]);
            struct hm_count_range k = hm_known_count(s.known, &rule);
            bool sum = rule.kind == HM_RULE_NUCLEUS || rule.kind == HM_RULE_ENTROPY; // ties of sums of bf16 logits
            bool tied = unit == SCENE_PRINTED && vocab > 1 && l[s.entry[0].id] == l[s.entry[1].id];
            if (k.least != k.most && !tied) fail_msg("%s: [%zu, %zu] of %zu", known_rules[j], k.least, k.most, vocab);
            for (size_t x = 0; x < vocab && !tied && !sum; x++)
                if (unit == SCENE_LOGITS || x == 0) assert_int_not_equal(hm_known_accepts(s.known, &rule, x), HM_UNDECIDED);
            struct hm_known_level level = hm_known_level(s.known, &rule, 2);
            if (k.least == k.most) assert_true(width(level.klf) < 1e-11 && width(level.klr) < 1e-11 && width(level.tv) < 1e-11);
            hm_rule_clear(&rule);
        }
        for (size_t x = 0; x < vocab; x++) {
            assert_true(width(hm_known_probability(s.known, x)) < 1e-12);
            assert_true(width(hm_known_surprise(s.known, x)) < 1e-12);
            assert_true(width(hm_known_regret(s.known, x)) < 1e-12);
        }
        scene_close(&s);
    }
}

// A full row of floats goes to certify/: the same answers, ties included.
static void full_rows_are_exact(void **state)
{
    (void)state;
    struct random r = seeded("full_rows_are_exact");
    size_t rounds_now = test_count(5, 60, 5000);
    float l[100];
    for (size_t i = 0; i < rounds_now; i++) {
        struct scene s;
        size_t vocab = 2 + below(&r, 99);
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), l, vocab);
        scene_open(&s, l, vocab, hard_temperatures[below(&r, HARD_TEMPERATURES)]);
        s.evidence = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .logits = l, .vocab = vocab, .emitted = 0};
        s.known = open_known(&s.evidence, s.temperature);
        for (size_t j = 0; j < KNOWN_RULES; j++) {
            struct hm_rule rule = parse_rule(known_rules[j]);
            size_t token = below(&r, vocab), m = 1 + below(&r, 3);
            struct hm_claim claim;
            struct hm_claim_query query = {.rule = &rule, .target = s.row, .token = (int32_t)token, .m = m};
            assert_int_equal(hm_claim_make(&query, &claim, NULL), HM_OK);
            assert_int_equal(hm_known_accepts(s.known, &rule, token), claim.accepts);
            if (claim.counted) assert_int_equal(hm_known_count(s.known, &rule).least, claim.k);
            struct hm_known_level level = hm_known_level(s.known, &rule, m);
            assert_memory_equal(&level.klf, &claim.level.klf, sizeof level.klf);
            assert_memory_equal(&level.klr, &claim.level.klr, sizeof level.klr);
            struct hm_ival radius = hm_known_radius(s.known, &rule, token);
            if (claim.has_radius) assert_memory_equal(&radius, &claim.radius, sizeof radius);
            assert_int_equal(hm_known_accepts(s.known, &rule, HM_UNSEEN), HM_UNDECIDED);
            hm_rule_clear(&rule);
        }
        struct hm_ival p;
        size_t token = below(&r, vocab);
        assert_int_equal(hm_row_probability(s.row, (int32_t)token, &p, NULL), HM_OK);
        assert_meets("probability", hm_known_probability(s.known, token), p);
        assert_true(hm_known_surprise(s.known, token).lo >= 0);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contains_the_truth),
        cmocka_unit_test(decides_ordinary_rows),
        cmocka_unit_test(contains_the_truth_of_large_rows),
        cmocka_unit_test(two_rows_behind_one_list),
        cmocka_unit_test(coarse_numbers_are_narrowed),
        cmocka_unit_test(full_knowledge_leaves_nothing_open),
        cmocka_unit_test(full_rows_are_exact),
    };
    return cmocka_run_group_tests_name("known", tests, NULL, release_caches);
}
