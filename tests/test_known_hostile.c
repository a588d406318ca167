// Evidence that nobody made with care: any enclosures, any counts, any texts. It is refused, or every answer is an enclosure
// without NaN that agrees with the others. And rows after top-k, whose support is known.
#include "tests/known_support.h"

static double any_end(struct random *r)
{
    static const double odd[] = {0, -0.0, -INFINITY, INFINITY, NAN, 1e308, -1e308, 0x1p-1074, -0x1p-1074, -1e-300, -9999, -745, 1e-17, -1e17};
    size_t i = below(r, 40);
    return i < sizeof odd / sizeof *odd ? odd[i] : -10 * uniform(r);
}

static void any_evidence(struct random *r, struct hm_evidence_entry *entry, size_t most, struct hm_evidence *out)
{
    static const char *const texts[] = {"a", "b", "", "\xef\xbf\xbd", "ab"};
    size_t count = below(r, most + 1);
    bool wild = below(r, 2); // else a row that may fit a distribution
    for (size_t i = 0; i < count; i++) {
        double lo = any_end(r), hi = any_end(r);
        if (!wild || below(r, 4)) lo = -0.5 - (double)i - uniform(r), hi = lo + uniform(r) * pow(10, -(double)below(r, 8));
        if (!wild && below(r, 6) == 0) lo = -INFINITY;
        size_t text = below(r, 6);
        entry[i] = (struct hm_evidence_entry){.id = below(r, 3) ? (int32_t)(i * 3) : (int32_t)below(r, 40) - 2, .value = {lo, hi}};
        if (text < 5) entry[i].text = texts[text], entry[i].text_size = strlen(texts[text]);
    }
    *out = (struct hm_evidence){.unit = below(r, 2) ? HM_UNIT_LOGIT : HM_UNIT_LOG_PROBABILITY, .entry = entry, .count = count,
                                .ranked = below(r, 5) ? count : below(r, count + 2), .emitted = below(r, count + 2),
                                .vocab = below(r, 2) ? count + below(r, 50) : below(r, 3) ? 0 : below(r, 60),
                                .support = below(r, 4) ? 0 : below(r, 40), .processed = below(r, 2)};
    if (below(r, 20) == 0) out->vocab = SIZE_MAX - below(r, 3);
    if (below(r, 20) == 0) out->support = SIZE_MAX;
}

static void is_enclosure(const char *what, struct hm_ival x, double least, double most)
{
    if (!(x.lo <= x.hi) || !(x.lo >= least) || !(x.hi <= most)) fail_msg("%s: [%g, %g]", what, x.lo, x.hi);
}

static void ask_everything(const struct hm_known *known, const struct hm_evidence *e)
{
    is_enclosure("seen", hm_known_seen(known), 0, 1);
    is_enclosure("unseen", hm_known_unseen(known), 0, 1);
    is_enclosure("entropy", hm_known_entropy(known), 0, INFINITY);
    double most = hm_known_unseen_most(known);
    assert_true(most >= 0 && most <= 1);
    for (size_t i = 0; i <= e->count + 1; i++) {
        size_t entry = i == e->count ? HM_UNSEEN : i; // the last one is no entry
        is_enclosure("probability", hm_known_probability(known, entry), 0, 1);
        is_enclosure("surprise", hm_known_surprise(known, entry), 0, INFINITY);
        is_enclosure("regret", hm_known_regret(known, entry), 0, INFINITY);
    }
    for (size_t j = 0; j < KNOWN_RULES; j++) {
        struct hm_rule rule = parse_rule(known_rules[j]);
        struct hm_count_range k = hm_known_count(known, &rule);
        size_t yes = 0, no = 0;
        for (size_t i = 0; i <= e->count + 1; i++) {
            size_t entry = i == e->count ? HM_UNSEEN : i;
            enum hm_verdict in = hm_known_accepts(known, &rule, entry);
            yes += i < e->count && in == HM_YES;
            no += i < e->count && in == HM_NO;
            is_enclosure("radius", hm_known_radius(known, &rule, entry), 0, INFINITY);
        }
        if (k.least > k.most || yes > k.most) fail_msg("%s: %zu in [%zu, %zu]", known_rules[j], yes, k.least, k.most);
        if (e->vocab > 0) assert_true(no <= e->vocab && (k.least <= e->vocab - no || e->vocab < e->count));
        struct hm_known_level level = hm_known_level(known, &rule, 1 + j % 5);
        is_enclosure("klf", level.klf, 0, INFINITY);
        is_enclosure("klr", level.klr, 0, INFINITY);
        is_enclosure("tv", level.tv, 0, INFINITY);
        hm_rule_clear(&rule);
    }
}

static void answers_anything(void **state)
{
    (void)state;
    struct random r = seeded("answers_anything");
    struct hm_evidence_entry entry[2][12];
    size_t rounds_now = test_count(300, 1500, 200000), opened = 0;
    for (size_t i = 0; i < rounds_now; i++) {
        struct hm_evidence e[2];
        struct hm_known *known[2];
        bool usable[2];
        struct hm_rational t;
        hm_rational_init(&t);
        for (size_t side = 0; side < 2; side++) {
            struct hm_finding found[HM_SANITY_MOST];
            any_evidence(&r, entry[side], 12, &e[side]);
            assert_true(hm_sanity_check(&e[side], found, &usable[side]) <= HM_SANITY_MOST);
            assert_int_equal(hm_rational_parse(hard_temperatures[below(&r, HARD_TEMPERATURES)], &t, NULL), HM_OK);
            struct hm_error err;
            hm_status status = hm_known_open(&e[side], &t, &known[side], &err);
            if (status && usable[side]) fail_msg("usable, but: %s", err.message);
            assert_true(status == HM_OK || (status == HM_RANGE && known[side] == NULL && *err.message));
            if (known[side]) ask_everything(known[side], &e[side]);
            opened += known[side] != NULL;
        }
        if (known[0] && known[1]) {
            struct hm_known_distance d = hm_known_distance(known[0], known[1]);
            is_enclosure("KL(p||q)", d.kl_pq, 0, INFINITY);
            is_enclosure("KL(q||p)", d.kl_qp, 0, INFINITY);
            if (usable[0] && usable[1]) is_enclosure("TV", d.tv, 0, 1);
        }
        hm_known_close(known[0]);
        hm_known_close(known[1]);
        hm_rational_clear(&t);
    }
    print_message("%zu of %zu rows open\n", opened, 2 * rounds_now);
    assert_true(opened > rounds_now / 5);
}

// After top-k: so many tokens may have a probability, whatever the vocabulary. With all of them listed, nothing is unseen.
static void support_bounds_the_unseen(void **state)
{
    (void)state;
    struct random r = seeded("support_bounds_the_unseen");
    float l[100];
    for (size_t i = 0; i < test_count(50, 500, 20000); i++) {
        size_t vocab = 20 + below(&r, 80), kept = 1 + below(&r, 12), k = 1 + below(&r, kept);
        for (size_t j = 0; j < vocab; j++) l[j] = j < kept ? (float)(2 * gauss(&r)) : -INFINITY;
        struct scene s;
        scene_open(&s, l, vocab, hard_temperatures[below(&r, 5)]);
        scene_list(&s, below(&r, 2) ? SCENE_PRINTED : SCENE_PRINTED_UNKNOWN_VOCAB, k, 5, -1);
        hm_known_close(s.known);
        s.evidence.support = kept;
        s.evidence.processed = true;
        s.known = open_known(&s.evidence, s.temperature);
        struct hm_ival h;
        assert_int_equal(hm_row_entropy(s.row, &h, NULL), HM_OK);
        assert_meets("entropy", hm_known_entropy(s.known), h);
        assert_true(hm_known_entropy(s.known).hi <= log((double)kept) + 1e-9);
        if (k == kept) assert_true(hm_known_unseen(s.known).hi == 0 && hm_known_entropy(s.known).hi - h.lo < 1e-3);
        for (size_t j = 0; j < KNOWN_RULES; j++) {
            struct hm_rule rule = parse_rule(known_rules[j]);
            struct hm_claim claim;
            struct hm_claim_query query = {.rule = &rule, .target = s.row, .token = s.entry[k - 1].id, .m = 2};
            assert_int_equal(hm_claim_make(&query, &claim, NULL), HM_OK);
            enum hm_verdict in = hm_known_accepts(s.known, &rule, k - 1);
            if (in != HM_UNDECIDED && claim.accepts != HM_UNDECIDED) assert_int_equal(in, claim.accepts);
            struct hm_count_range n = hm_known_count(s.known, &rule);
            if (claim.counted && (claim.k < n.least || claim.k > n.most))
                fail_msg("%s: %zu not in [%zu, %zu]", known_rules[j], claim.k, n.least, n.most);
            struct hm_known_level level = hm_known_level(s.known, &rule, 2);
            if (claim.counted) {
                assert_meets(known_rules[j], level.klf, claim.level.klf);
                assert_meets(known_rules[j], level.klr, claim.level.klr);
                assert_meets(known_rules[j], level.tv, claim.level.tv);
            }
            hm_rule_clear(&rule);
        }
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_anything),
        cmocka_unit_test(support_bounds_the_unseen),
    };
    return cmocka_run_group_tests_name("known_hostile", tests, NULL, release_caches);
}
