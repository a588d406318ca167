// Classes of forks on constructed rows, and what holds for all rows.
#include "evidence/compare.h"
#include "evidence/leading.h"

#include "tests/hard_rows.h"
#include "tests/seed.h"

// A token of a full row.
static struct hm_source_token at_row(int32_t token, const float *row, size_t vocab)
{
    return (struct hm_source_token){.t = 5, .token = token, .has_row = true,
                                    .row = {.unit = HM_UNIT_LOGIT, .logits = row, .vocab = vocab, .emitted = (size_t)token}};
}

// A token of a ranked list of log-probabilities.
static struct hm_source_token at_list(size_t emitted, const struct hm_evidence_entry *entry, size_t count)
{
    return (struct hm_source_token){
        .t = 5, .token = entry[emitted].id, .text = entry[emitted].text, .text_size = entry[emitted].text_size, .has_row = true,
        .row = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = entry, .count = count, .ranked = count, .emitted = emitted}};
}

static struct hm_fork judged(const struct hm_source_token *a, const struct hm_source_token *b, double level)
{
    struct hm_fork fork;
    hm_fork_look(a, b, &fork);
    fork.has_level = level >= 0;
    if (fork.has_level) fork.level = (struct hm_ival){level, level};
    hm_fork_judge(&fork, false);
    return fork;
}

static void expect(const struct hm_fork *fork, enum hm_fork_class kind, const char *why)
{
    if (fork->kind != kind || strcmp(fork->why, why) != 0)
        fail_msg("expected %s (%s), found %s (%s)", hm_fork_class_name(kind), why, hm_fork_class_name(fork->kind), fork->why);
}

static const char usual[] = "rounding of this size was seen elsewhere in the run";
static const char much[] = "it needs more noise than is usual in this run";

static void full_rows(void **state)
{
    (void)state;
    static const float p[4] = {3, 2.75f, 1, -INFINITY}, q[4] = {2.875f, 3, 1, 0};
    struct hm_source_token a = at_row(0, p, 4), b = at_row(1, q, 4);
    struct hm_fork fork = judged(&a, &b, 0.1875); // (0.25 + 0.125) / 2
    expect(&fork, HM_FORK_EXPLAINED, usual);
    assert_true(fork.needs.lo == 0.1875 && fork.needs.hi == 0.1875);
    assert_true(fork.a.gap.lo == 0.25 && fork.a.radius.lo == 0.125 && fork.a.radius.hi == 0.125 && fork.a.behind.hi == 0);
    assert_true(fork.a.first == 0 && fork.a.second == 1 && fork.b.first == 1 && fork.b.second == 0);
    assert_true(fork.t == 5 && fork.b.lead.lo == 0.125);
    fork = judged(&a, &b, nextafter(0.1875, 0));
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    fork = judged(&a, &b, -1);
    expect(&fork, HM_FORK_UNDECIDED, "fewer than 200 other positions tell what noise is usual");
    hm_fork_look(&a, &b, &fork);
    fork.has_level = true;
    fork.level = (struct hm_ival){0.18, 0.19};
    hm_fork_judge(&fork, false);
    expect(&fork, HM_FORK_UNDECIDED, "the level lies within what was rounded in printing or counting");
    hm_fork_look(&a, &b, &fork);
    hm_fork_judge(&fork, true);
    expect(&fork, HM_FORK_UNDECIDED, "the rows differ everywhere by more than rounding makes");
    struct hm_source_token wrong = at_row(2, q, 4);
    fork = judged(&a, &wrong, 100);
    expect(&fork, HM_FORK_UNEXPLAINED, "B emitted a token that is not first in its own row (a sampler? --claim-temperature)");
    fork = judged(&wrong, &a, 100);
    expect(&fork, HM_FORK_UNEXPLAINED, "A emitted a token that is not first in its own row (a sampler? --claim-temperature)");
}

static void ties(void **state)
{
    (void)state;
    static const float p[3] = {2, 2, 1}, q[3] = {5, 5, -INFINITY}, r[3] = {5, 0x1.3ffffep2f, 0}; // one unit below 5
    struct hm_source_token a = at_row(0, p, 3), b = at_row(1, q, 3), c = at_row(1, p, 3), d = at_row(0, r, 3);
    static const char order[] = "both tokens are equal in both rows: the order of ties decided";
    struct hm_fork fork = judged(&a, &b, -1);
    expect(&fork, HM_FORK_TIE, order); // whatever the level
    fork = judged(&d, &c, 0); // equal in one row only
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    fork = judged(&d, &c, 1e-6);
    expect(&fork, HM_FORK_EXPLAINED, usual);
    static const struct hm_evidence_entry equal[2] = {
        {.id = 0, .value = {-0.6931, -0.6931}}, {.id = 1, .value = {-0.6931, -0.6931}}};
    struct hm_source_token e = at_list(0, equal, 2), f = at_list(1, equal, 2);
    fork = judged(&e, &f, 1e-6); // equal log-probabilities may come from unequal logits
    expect(&fork, HM_FORK_EXPLAINED, usual);
}

static void masked_tokens(void **state)
{
    (void)state;
    static const float p[3] = {2, -INFINITY, 1}, q[3] = {1, 2, 0};
    struct hm_source_token a = at_row(0, p, 3), b = at_row(1, q, 3), c = at_row(1, p, 3);
    struct hm_fork fork = judged(&a, &b, 1e300);
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    assert_true(fork.needs.lo == INFINITY && fork.needs.hi == INFINITY);
    static const struct hm_evidence_entry far = {.id = 1, .value = {-0.5, -0.5}};
    struct hm_source_token list = at_list(0, &far, 1); // what it says of the other token does not matter
    list.row.unit = HM_UNIT_LOGIT;
    list.row.ranked = 0;
    fork = judged(&a, &list, 1e300);
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    fork = judged(&b, &c, 1e300);
    expect(&fork, HM_FORK_UNEXPLAINED, "B emitted a token that is not first in its own row (a sampler? --claim-temperature)");
}

static void lists(void **state)
{
    (void)state;
    static const struct hm_evidence_entry p[3] = {{.id = 4, .text = " a", .text_size = 2, .value = {-0.5, -0.4}},
                                                  {.id = 9, .text = "b", .text_size = 1, .value = {-1.3, -1.2}},
                                                  {.id = 2, .text = "c", .text_size = 1, .value = {-4, -3.9}}};
    static const struct hm_evidence_entry q[2] = {{.id = 9, .text = "b", .text_size = 1, .value = {-0.9, -0.8}},
                                                  {.id = 4, .text = " a", .text_size = 2, .value = {-1.1, -1.0}}};
    struct hm_source_token a = at_list(0, p, 3), b = at_list(0, q, 2);
    struct hm_fork fork = judged(&a, &b, 0.65);
    expect(&fork, HM_FORK_EXPLAINED, usual); // leads [0.7, 0.9] and [0.1, 0.3]
    assert_true(fork.needs.lo <= 0.4 && fork.needs.lo > 0.3999 && fork.needs.hi >= 0.6 && fork.needs.hi < 0.6001);
    assert_true(fork.a.radius.lo <= 0.35 && fork.a.radius.lo > 0.3499 && fork.a.radius.hi >= 0.45 && fork.a.radius.hi < 0.4501);
    assert_string_equal(fork.a.token_text, " a");
    assert_string_equal(fork.a.second_text, "b");
    assert_int_equal(fork.b.second, 4);
    fork = judged(&a, &b, 0.5);
    expect(&fork, HM_FORK_UNDECIDED, "the level lies within what was rounded in printing or counting");
    fork = judged(&a, &b, 0.39);
    expect(&fork, HM_FORK_UNEXPLAINED, much);

    struct hm_source_token text = b; // B tells texts only
    struct hm_evidence_entry named[2] = {q[0], q[1]};
    named[0].id = named[1].id = text.token = -1;
    text.row.entry = named;
    fork = judged(&a, &text, 0.65);
    expect(&fork, HM_FORK_EXPLAINED, usual);
}

// Tokens beyond the list: bounded by its last entry, from one side only.
static void unlisted(void **state)
{
    (void)state;
    static const struct hm_evidence_entry p[2] = {{.id = 4, .value = {-0.5, -0.5}}, {.id = 5, .value = {-2, -2}}};
    static const struct hm_evidence_entry q[2] = {{.id = 9, .value = {-0.6, -0.6}}, {.id = 4, .value = {-1.2, -1.2}}};
    struct hm_source_token a = at_list(0, p, 2), b = at_list(0, q, 2);
    struct hm_fork fork = judged(&a, &b, 1.0);
    expect(&fork, HM_FORK_UNEXPLAINED, much); // 1.5 and more in A, 0.6 in B
    assert_true(fork.needs.hi == INFINITY && fork.needs.lo > 1.0499 && fork.needs.lo <= 1.05);
    assert_true(fork.a.lacks && fork.a.missing == HM_MISSING_MORE_TOP && !fork.b.lacks);
    fork = judged(&a, &b, 2.0);
    expect(&fork, HM_FORK_UNDECIDED, "A's list does not hold both tokens");
    struct hm_source_token one = at_list(0, p, 1); // a list of one: what is left for all others bounds each
    fork = judged(&one, &b, 0.3);
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    double rest = log(exp(4 * HM_ALLOWANCE_DEFAULT) - exp(-0.5)); // -0.93: A's lead is at least 0.43
    assert_true(fabs(fork.a.lead.lo - (-0.5 - rest)) < 1e-9);
    // An inexact sum may print a mass above 1: then what is not listed is not impossible.
    static const struct hm_evidence_entry heavy[2] = {{.id = 4, .value = {-0.5, -0.5}}, {.id = 5, .value = {-0.932, -0.932}}};
    struct hm_source_token above = at_list(0, heavy, 2);
    assert_true(exp(-0.5) + exp(-0.932) > 1.0002);
    above.row.shift = 0x1p-9;
    fork = judged(&above, &b, 30.0);
    assert_int_equal(fork.kind, HM_FORK_UNDECIDED);
    assert_true(fork.needs.lo < 10);
}

// A whole row knows tokens by id alone.
static void texts_against_rows(void **state)
{
    (void)state;
    static const float p[3] = {2, 1, 0};
    static const struct hm_evidence_entry q[2] = {{.id = -1, .text = "x", .text_size = 1, .value = {-0.1, -0.1}},
                                                  {.id = -1, .text = "y", .text_size = 1, .value = {-3, -3}}};
    struct hm_source_token a = at_row(0, p, 3), b = at_list(0, q, 2);
    struct hm_fork fork = judged(&a, &b, 1.0);
    expect(&fork, HM_FORK_UNDECIDED, "B does not tell its token's id");
    assert_true(fork.b.lacks && fork.b.missing == HM_MISSING_IDS && !fork.a.lacks);
}

// Of the tokens that are not listed, two may be the largest.
static void leading_of_little(void **state)
{
    (void)state;
    static const struct hm_evidence_entry own = {.id = 3, .value = {-5, -5}};
    struct hm_evidence row = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = &own, .count = 1, .emitted = 0};
    struct hm_leading all = hm_evidence_leading(&row, HM_LEADING_ALL, HM_UNSEEN);
    assert_true(all.first == 0 && all.second == HM_UNSEEN && all.unseen < -0.006 && all.unseen > -0.007);
    assert_true(all.first_value.hi == all.unseen && all.second_value.hi == all.unseen && all.first_value.lo == -5);
    row.vocab = 1;
    assert_true(hm_evidence_leading(&row, HM_LEADING_ALL, HM_UNSEEN).unseen == -INFINITY);
    assert_true(hm_evidence_leading(&row, HM_LEADING_RANKED, HM_UNSEEN).first == HM_UNSEEN);
}

static void missing_rows(void **state)
{
    (void)state;
    static const float p[3] = {2, 1, 0};
    struct hm_source_token a = at_row(0, p, 3), none = {.token = 1, .missing = HM_MISSING_LOGPROBS};
    struct hm_fork fork = judged(&a, &none, 1.0);
    expect(&fork, HM_FORK_UNDECIDED, "B has no row here");
    assert_true(fork.b.lacks && fork.b.missing == HM_MISSING_LOGPROBS && !fork.has_noise);
    fork = judged(&a, &none, 0.49); // A's radius alone
    expect(&fork, HM_FORK_UNEXPLAINED, much);
    fork = judged(&none, &a, 1.0);
    expect(&fork, HM_FORK_UNDECIDED, "A has no row here");
    fork = judged(&none, &none, 1.0);
    expect(&fork, HM_FORK_UNDECIDED, "neither side has a row here");
    struct hm_evidence_entry own = {.id = 1, .value = {-1, -1}}; // only the emitted token's own
    struct hm_source_token alone = at_list(0, &own, 1);
    alone.row.ranked = 0;
    fork = judged(&a, &alone, 1.0);
    expect(&fork, HM_FORK_UNDECIDED, "B's list does not hold both tokens");
    assert_int_equal(fork.b.missing, HM_MISSING_TOP);
    assert_int_equal(fork.b.first, 1);
    static const struct hm_evidence_entry top[2] = {{.id = 4, .value = {-0.5, -0.5}}, {.id = 5, .value = {-2, -2}}};
    struct hm_source_token absent = at_list(0, top, 2); // not among the listed ones: surely not first
    absent.token = 77;
    absent.row.emitted = HM_UNSEEN;
    fork = judged(&a, &absent, 1.0);
    expect(&fork, HM_FORK_UNEXPLAINED, "B emitted a token that is not first in its own row (a sampler? --claim-temperature)");
}

static void drawn(void **state)
{
    (void)state;
    static const float p[3] = {2, 1, 0}, q[3] = {2, 1, 0}, r[3] = {2, 1, 0.125f};
    struct hm_source_token a = at_row(0, p, 3), b = at_row(2, q, 3), c = at_row(2, r, 3);
    struct hm_fork fork;
    hm_fork_look(&a, &b, &fork);
    hm_fork_judge_drawn(&a, &b, true, &fork);
    expect(&fork, HM_FORK_UNEXPLAINED, "equal rows and equal random numbers gave different tokens");
    hm_fork_judge_drawn(&a, &b, false, &fork);
    expect(&fork, HM_FORK_UNDECIDED, "tokens were drawn, and not known to be by the same random numbers");
    hm_fork_judge_drawn(&a, &c, true, &fork);
    expect(&fork, HM_FORK_UNDECIDED, "tokens were drawn from rows that are not known to be equal");
}

// Of two rows whose first tokens differ: the noise between them is at least what the fork needs, and that at least either
// radius; so a fork is never unexplained at the noise that was measured there.
static void noise_covers_needs(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("noise_covers_needs")};
    enum { MOST = 40 };
    static float p[MOST], q[MOST];
    size_t forks = 0;
    for (size_t run = 0; run < test_count(2000, 20000, 1000000); run++) {
        size_t n = 2 + below(&r, MOST - 1);
        static const enum hard_kind kinds[] = {HARD_PLAIN, HARD_TIES, HARD_NEAR_TIES, HARD_FLAT, HARD_BF16};
        hard_row(&r, kinds[below(&r, 5)], p, n);
        for (size_t i = 0; i < n; i++) q[i] = p[i] + (float)(0.3 * gauss(&r)) * (float)below(&r, 2);
        size_t a = 0, b = 0;
        for (size_t i = 1; i < n; i++) {
            if (p[i] > p[a]) a = i;
            if (q[i] > q[b]) b = i;
        }
        if (a == b) continue;
        forks++;
        struct hm_source_token x = at_row((int32_t)a, p, n), y = at_row((int32_t)b, q, n);
        struct hm_noise noise;
        struct hm_error err;
        assert_int_equal(hm_noise_measure(&x.row, &y.row, HM_TYPE_F32, &noise, &err), HM_OK);
        struct hm_fork fork = judged(&x, &y, noise.nats.hi);
        assert_true(fork.kind == HM_FORK_EXPLAINED || fork.kind == HM_FORK_TIE);
        assert_true(fork.needs.hi <= noise.nats.hi && fork.needs.lo >= fork.a.radius.lo + fork.b.radius.lo - 1e-12);
        assert_true(fork.a.behind.hi == 0 && fork.b.behind.hi == 0 && fork.a.gap.lo >= 2 * fork.a.radius.lo - 1e-12);
        struct hm_fork back = judged(&y, &x, noise.nats.hi);
        assert_true(back.needs.lo == fork.needs.lo && back.needs.hi == fork.needs.hi && back.kind == fork.kind);
        if (fork.kind == HM_FORK_TIE) continue;
        fork = judged(&x, &y, nextafter(fork.needs.lo, 0));
        assert_int_equal(fork.kind, fork.needs.lo > 0 ? HM_FORK_UNEXPLAINED : HM_FORK_EXPLAINED);
    }
    print_message("%zu forks\n", forks);
    assert_true(forks > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_rows),    cmocka_unit_test(ties),  cmocka_unit_test(masked_tokens), cmocka_unit_test(lists),
        cmocka_unit_test(unlisted),     cmocka_unit_test(drawn), cmocka_unit_test(missing_rows), cmocka_unit_test(leading_of_little),
        cmocka_unit_test(texts_against_rows),
        cmocka_unit_test(noise_covers_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
