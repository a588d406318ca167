// Distances of two rows from what was logged of each, against certify/'s of the whole rows; and what a row costs.
#include "tests/known_support.h"

#include <time.h>

static void perturb(struct random *r, const float *from, float *to, size_t vocab, double scale)
{
    for (size_t i = 0; i < vocab; i++) to[i] = from[i] == -INFINITY ? -INFINITY : (float)(from[i] + scale * gauss(r));
}

// Texts in the place of ids: of one side, or of both.
static void name_tokens(struct scene *s, char (*text)[8], bool keep_ids)
{
    for (size_t i = 0; i < s->evidence.count; i++) {
        snprintf(text[i], sizeof text[i], "t%d", (int)s->entry[i].id);
        s->entry[i].text = text[i];
        s->entry[i].text_size = strlen(text[i]);
        if (!keep_ids) s->entry[i].id = -1;
    }
}

static void check_distance(const struct scene *p, const struct scene *q, const struct hm_row_distance *truth)
{
    struct hm_known_distance d = hm_known_distance(p->known, q->known), back = hm_known_distance(q->known, p->known);
    assert_meets("KL(p||q)", d.kl_pq, truth->kl_pq);
    assert_meets("KL(q||p)", d.kl_qp, truth->kl_qp);
    assert_meets("TV", d.tv, truth->tv);
    assert_meets("KL(p||q) back", back.kl_qp, truth->kl_pq);
    assert_meets("TV back", back.tv, truth->tv);
}

static void contains_the_distance(void **state)
{
    (void)state;
    struct random r = seeded("contains_the_distance");
    size_t rounds_now = test_count(40, 600, 30000);
    float a[200], b[200];
    static char text[2][201][8];
    for (size_t i = 0; i < rounds_now; i++) {
        size_t vocab = 2 + below(&r, 199);
        const char *temperature = hard_temperatures[below(&r, 6)];
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), a, vocab);
        if (below(&r, 3)) perturb(&r, a, b, vocab, pow(10, -3 * uniform(&r)));
        else hard_row(&r, HARD_PLAIN, b, vocab);
        struct scene p, q;
        struct hm_row_distance truth;
        scene_open(&p, a, vocab, temperature);
        scene_open(&q, b, vocab, temperature);
        assert_int_equal(hm_row_distance(p.row, q.row, &truth, NULL), HM_OK);
        scene_list(&p, (enum scene_unit)below(&r, SCENE_UNITS), 1 + below(&r, vocab), 1 + (int)below(&r, 6), -1);
        scene_list(&q, (enum scene_unit)below(&r, SCENE_UNITS), 1 + below(&r, vocab), 1 + (int)below(&r, 6), (int32_t)below(&r, vocab));
        size_t how = below(&r, 4); // ids on both sides, or texts on one side at least
        if (how > 0) name_tokens(&p, text[0], how == 1);
        if (how > 0) name_tokens(&q, text[1], how == 2);
        check_distance(&p, &q, &truth);
        scene_close(&p);
        scene_close(&q);
    }
}

// Whole rows against a list, and against each other.
static void full_rows_have_distances(void **state)
{
    (void)state;
    struct random r = seeded("full_rows_have_distances");
    float a[200], b[200];
    for (size_t i = 0; i < test_count(20, 200, 10000); i++) {
        size_t vocab = 2 + below(&r, 199);
        hard_row(&r, HARD_PLAIN, a, vocab);
        perturb(&r, a, b, vocab, 0.1);
        struct scene p, q;
        struct hm_row_distance truth;
        scene_open(&p, a, vocab, "7/10");
        scene_open(&q, b, vocab, "7/10");
        assert_int_equal(hm_row_distance(p.row, q.row, &truth, NULL), HM_OK);
        p.evidence = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .logits = a, .vocab = vocab, .emitted = HM_UNSEEN};
        p.known = open_known(&p.evidence, "7/10");
        scene_list(&q, SCENE_PRINTED, 1 + below(&r, vocab), 4, -1);
        check_distance(&p, &q, &truth);
        scene_unlist(&q);
        scene_list(&q, SCENE_LOGITS, vocab, 4, -1); // all of it, as a list: both ends are known
        struct hm_known_distance d = hm_known_distance(p.known, q.known);
        assert_true(is_narrow(d.tv) && d.kl_pq.hi - d.kl_pq.lo <= 1e-12 && d.kl_qp.hi - d.kl_qp.lo <= 1e-12);
        check_distance(&p, &q, &truth);
        scene_unlist(&q);
        q.evidence = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .logits = b, .vocab = vocab, .emitted = HM_UNSEEN};
        q.known = open_known(&q.evidence, "7/10");
        d = hm_known_distance(p.known, q.known);
        assert_memory_equal(&d.tv, &truth.tv, sizeof d.tv);
        scene_close(&p);
        scene_close(&q);
    }
}

// Twenty entries of each are enough for a useful total variation.
static void lists_bound_the_variation(void **state)
{
    (void)state;
    struct random r = seeded("lists_bound_the_variation");
    float a[1000], b[1000];
    double wide = 0, sum = 0;
    size_t rounds_now = test_count(10, 100, 1000);
    for (size_t i = 0; i < rounds_now; i++) {
        hard_row(&r, HARD_PLAIN, a, 1000);
        for (size_t j = 0; j < 8; j++) a[below(&r, 1000)] += (float)(8 + 4 * uniform(&r));
        perturb(&r, a, b, 1000, 0.3);
        struct scene p, q;
        scene_open(&p, a, 1000, "1");
        scene_open(&q, b, 1000, "1");
        scene_list(&p, SCENE_PRINTED, 20, 5, -1);
        scene_list(&q, SCENE_PRINTED, 20, 5, -1);
        struct hm_known_distance d = hm_known_distance(p.known, q.known);
        struct hm_row_distance truth;
        assert_int_equal(hm_row_distance(p.row, q.row, &truth, NULL), HM_OK);
        wide += d.tv.hi - d.tv.lo;
        sum += truth.tv.lo;
        // What is unseen on one side bounds the width: TV in lists and the rest.
        assert_true(d.tv.hi - d.tv.lo <= hm_known_unseen(p.known).hi + hm_known_unseen(q.known).hi + 0.01);
        assert_true(d.kl_pq.hi == INFINITY && d.kl_pq.lo > 0 && d.kl_pq.lo <= truth.kl_pq.hi);
        scene_close(&p);
        scene_close(&q);
    }
    print_message("TV %.4f on average, enclosures %.4f wide\n", sum / (double)rounds_now, wide / (double)rounds_now);
}

// ---- Cost

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rows_are_cheap(void **state)
{
    (void)state;
    struct random r = seeded("rows_are_cheap");
    enum { VOCAB = 151936, TIMES = 200 };
    float *l = malloc(VOCAB * sizeof *l);
    hard_row(&r, HARD_PLAIN, l, VOCAB);
    for (size_t j = 0; j < 8; j++) l[below(&r, VOCAB)] += (float)(12 + 4 * uniform(&r));
    struct scene s;
    scene_open(&s, l, VOCAB, "1");
    scene_list(&s, SCENE_PRINTED, 20, 4, -1);
    for (size_t i = 0; i < KNOWN_RULES; i++) {
        struct hm_rule rule = parse_rule(known_rules[i]);
        double start = seconds();
        for (size_t j = 0; j < TIMES; j++) hm_known_accepts(s.known, &rule, j % 20);
        double accepts = seconds();
        for (size_t j = 0; j < TIMES; j++) hm_known_count(s.known, &rule);
        double count = seconds();
        for (size_t j = 0; j < TIMES; j++) hm_known_level(s.known, &rule, 4);
        double level = seconds();
        for (size_t j = 0; j < TIMES; j++) hm_known_radius(s.known, &rule, j % 20);
        print_message("20 entries, %s: accepts %.2f, count %.2f, level %.2f, radius %.2f us\n", known_rules[i],
                      1e6 * (accepts - start) / TIMES, 1e6 * (count - accepts) / TIMES, 1e6 * (level - count) / TIMES,
                      1e6 * (seconds() - level) / TIMES);
        hm_rule_clear(&rule);
    }
    scene_unlist(&s);
    // A whole row with its own steps of rounding, as llama.cpp's base files hold it, in the order of the ids.
    struct hm_evidence_entry *entry = calloc(VOCAB, sizeof *entry);
    mpfr_t lse;
    mpfr_init2(lse, 160);
    exact_lse(l, VOCAB, lse);
    double shift = mpfr_get_d(lse, MPFR_RNDN);
    mpfr_clear(lse);
    for (int32_t i = 0; i < VOCAB; i++)
        entry[i] = (struct hm_evidence_entry){.id = i, .value = {l[i] - shift - 1.3e-4, l[i] - shift + 1.3e-4}};
    s.entry = entry;
    s.evidence = (struct hm_evidence){.entry = entry, .count = VOCAB, .ranked = VOCAB, .vocab = VOCAB};
    double start = seconds();
    s.known = open_known(&s.evidence, "1");
    print_message("%d entries: opened in %.1f ms\n", VOCAB, 1e3 * (seconds() - start));
    for (size_t i = 0; i < KNOWN_RULES; i++) {
        struct hm_rule rule = parse_rule(known_rules[i]);
        start = seconds();
        hm_known_accepts(s.known, &rule, 0);
        double accepts = seconds();
        struct hm_count_range k = hm_known_count(s.known, &rule);
        double count = seconds();
        hm_known_level(s.known, &rule, 4);
        double level = seconds();
        print_message("%d entries, %s: accepts %.2f, count %.2f [%zu, %zu], level %.2f ms\n", VOCAB, known_rules[i],
                      1e3 * (accepts - start), 1e3 * (count - accepts), k.least, k.most, 1e3 * (level - count));
        hm_rule_clear(&rule);
    }
    scene_close(&s);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contains_the_distance),
        cmocka_unit_test(full_rows_have_distances),
        cmocka_unit_test(lists_bound_the_variation),
        cmocka_unit_test(rows_are_cheap),
    };
    return cmocka_run_group_tests_name("known_distance", tests, NULL, release_caches);
}
