// Acceptance regions (reports/region.h) and teaching examples (reports/example.h): the nearest steps against brute
// force over golden logs, the margin bound against the log's own, distances and reaches against long doubles, and
// closed forms.
#include "tests/report_support.h"
#include "tests/seed.h"

#include "bounds/ival_math.h"

#include <glob.h>
#include <math.h>

static bool overlap(struct hm_ival a, struct hm_ival b)
{
    return a.lo <= b.hi && b.lo <= a.hi;
}

// Nearness of every step of the log that a claim decides by KLf, in the order of the log.
struct near {
    double value[2][4096];
    size_t count[2];
};

static void add_near(struct near *n, const struct hm_record_step *s, const struct hm_record_claim *c)
{
    if (!c->has_verdicts || !c->has_level || !s->has_draft) return;
    if (c->certified[0] != HM_CERT_YES && c->certified[0] != HM_CERT_NO) return;
    if (!(c->level.klf.lo > 0) || isinf(c->level.klf.lo)) return;
    int side = c->certified[0] == HM_CERT_YES;
    n->value[side][n->count[side]++] =
        s->kl_pq.hi > 0 && s->kl_pq.hi < INFINITY ? fabs(log(s->kl_pq.hi) - log(c->level.klf.lo)) : INFINITY;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void read_near(const char *path, size_t claim, struct near *n)
{
    struct hm_log_reader *reader;
    struct hm_record record;
    struct hm_error err;
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    for (;;) {
        if (hm_log_reader_next(reader, &record, &err)) fail_msg("%s", err.message);
        if (record.kind == HM_RECORD_NONE) break;
        if (record.kind != HM_RECORD_STEP && record.kind != HM_RECORD_ROW) continue;
        const struct hm_record_claim *c = &record.step->claims[claim];
        add_near(n, record.step, c);
        if (c->has_margin && !overlap(hm_region_margin(c->k, c->m, c->margin.gap), c->margin.klf))
            fail_msg("%s:%zu: the bound from the gap is not the logged one", path, record.line);
    }
    hm_log_reader_close(reader);
}

static void check_region(const struct hm_region *g, const char *path)
{
    assert_true(g->level[0].lo > 0 && g->k >= 1 && g->m >= 1);
    assert_true(g->edge[0].lo >= 0 && g->edge[0].hi <= 1 && g->gap.lo >= 0 && g->gap.hi <= 1);
    if (!overlap(g->gap, hm_ival_sub(g->edge[0], g->edge[1])))
        fail_msg("%s:%zu: gap and edges disagree", path, g->line);
    if (hm_region_margin(g->k, g->m, g->gap).lo > g->level[0].hi)
        fail_msg("%s:%zu: the gap certifies more than the row", path, g->line);
    if (g->certified)
        assert_true(g->distance[0].hi < g->level[0].hi);
    else
        assert_true(g->distance[0].hi >= g->level[0].lo);
}

static void the_nearest_steps_are_kept(void **state)
{
    (void)state;
    glob_t found;
    size_t regions = 0;
    static struct near n;
    assert_int_equal(glob("tests/data/logs/good/*.jsonl", 0, NULL, &found), 0);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        struct hm_report *report = report_on(found.gl_pathv[f], NULL);
        for (size_t c = 0; c < report->claim_count; c++) {
            const struct hm_regions *r = &report->claims[c].regions;
            n.count[0] = n.count[1] = 0;
            read_near(found.gl_pathv[f], c, &n);
            for (int side = 0; side < 2; side++) {
                qsort(n.value[side], n.count[side], sizeof(double), by_size);
                assert_int_equal(r->count[side], n.count[side] < HM_REGION_STEPS ? n.count[side] : HM_REGION_STEPS);
                for (size_t i = 0; i < r->count[side]; i++, regions++) {
                    assert_true(r->near[side][i].nearness == n.value[side][i] &&
                                r->near[side][i].certified == (side == 1));
                    check_region(&r->near[side][i], found.gl_pathv[f]);
                }
            }
        }
        hm_report_close(report);
    }
    assert_true(regions > 200);
    globfree(&found);
}

static double uniform(uint64_t *seed)
{
    return ((double)(test_random(seed) >> 11) + 0.5) * 0x1p-53;
}

// k and m tokens each, as docs/theory.md §3 writes the bound.
static void the_margin_bound_encloses_its_formula(void **state)
{
    (void)state;
    uint64_t seed = test_seed("the_margin_bound_encloses_its_formula");
    for (size_t i = 0; i < test_count(2000, 20000, 200000); i++) {
        int64_t k = 1 + (int64_t)(test_random(&seed) % 9), m = 1 + (int64_t)(test_random(&seed) % 9);
        double y = i % 50 == 0 ? 1.0 / (double)k : uniform(&seed) / (double)k;
        long double up = 1 + (long double)m * y, down = 1 - (long double)k * y;
        long double exact = (k * up * logl(up) + m * (down > 0 ? down * logl(down) : 0)) / (long double)(k + m);
        struct hm_ival got = hm_region_margin(k, m, hm_ival_point(y));
        if (!(got.lo <= exact + 1e-17L && exact - 1e-17L <= got.hi && got.hi - got.lo < 1e-11))
            fail_msg("k %d, m %d, y %a: %a .. %a, %.17Lg", (int)k, (int)m, y, got.lo, got.hi, exact);
    }
}

static long double distance_of(const double p[3], const double q[3], int kind)
{
    long double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += kind == 2   ? fabsl((long double)p[i] - q[i]) / 2
               : kind == 0 ? p[i] * logl((long double)p[i] / q[i])
                           : q[i] * logl((long double)q[i] / p[i]);
    return sum;
}

// Distances enclose the truth. A reach inside keeps the distance at most the level, one outside has it there or at the
// border, and the two meet.
static void distances_and_reaches(void **state)
{
    (void)state;
    uint64_t seed = test_seed("distances_and_reaches");
    for (size_t i = 0; i < test_count(500, 4000, 40000); i++) {
        double p1 = uniform(&seed), p2 = (1 - p1) * uniform(&seed), q1 = uniform(&seed), q2 = (1 - q1) * uniform(&seed);
        const double p[3] = {p1, p2, 1 - p1 - p2}, q[3] = {q1, q2, 1 - q1 - q2}, from[2] = {p1, p2};
        struct hm_three three = hm_three_of(hm_ival_point(p1), hm_ival_point(p2));
        if (p[2] < 1e-9 || q[2] < 1e-9) continue;
        for (int kind = 0; kind < 3; kind++) {
            struct hm_ival d = hm_three_distance(&three, q1, q2, kind);
            long double exact = distance_of(p, q, kind);
            if (!(d.lo <= exact + 1e-15L && exact - 1e-15L <= d.hi && d.hi - d.lo < 1e-6))
                fail_msg("kind %d: %a .. %a, %.17Lg", kind, d.lo, d.hi, exact);
            double angle = 6.28318 * uniform(&seed), d1 = cos(angle), d2 = sin(angle);
            struct hm_ival level = hm_ival_point(uniform(&seed) * 0.5);
            double in = hm_three_reach(&three, from, d1, d2, kind, level, HM_INSIDE),
                   out = hm_three_reach(&three, from, d1, d2, kind, level, HM_OUTSIDE);
            assert_true(in >= 0 && in <= out);
            if (in > 0)
                assert_true(
                    hm_three_distance(&three, fmax(from[0] + in * d1, 0), fmax(from[1] + in * d2, 0), kind).hi <=
                    level.lo);
            assert_true(out - in < 1e-5);
        }
    }
}

// Half of a picture that is exact: the set that KLf* certifies stays on the covered side and reaches it at the witness.
static void the_certified_set_touches_the_failing_one(void **state)
{
    (void)state;
    uint64_t seed = test_seed("the_certified_set_touches_the_failing_one");
    for (size_t i = 0; i < test_count(5, 40, 400); i++) {
        float p[3] = {(float)(3 * uniform(&seed)), 0, 0}, q[3] = {1, 0.5f, 0};
        p[1] = p[0] * (float)uniform(&seed);
        p[2] = p[1] - 3 * (float)uniform(&seed);
        struct hm_example e;
        struct hm_error err;
        if (hm_example_make(p, q, 3, &e, &err)) fail_msg("%s", err.message);
        struct hm_three three = {{e.p[0], e.p[1], e.p[2]}};
        const double from[2] = {e.p[0].lo, e.p[1].lo};
        for (int kind = 0; kind < 3; kind++) {
            double nearest = -1;
            for (int ray = 0; ray < 360; ray++) {
                double d1 = cos(ray * M_PI / 180), d2 = sin(ray * M_PI / 180);
                double t = hm_three_reach(&three, from, d1, d2, kind, e.level[kind], HM_INSIDE);
                nearest =
                    fmax(nearest, (from[1] + t * d2) - (from[0] + t * d1)); // q2 - q1: below 0 where it is covered
            }
            if (!(nearest <= 0 && nearest > -0.01)) fail_msg("kind %d: nearest %g", kind, nearest);
        }
        double c = e.water[0].lo + (e.water[0].hi - e.water[0].lo) / 2;
        assert_true(
            overlap(hm_ival_add(hm_three_distance(&three, c, c, 0), (struct hm_ival){-1e-12, 1e-12}), e.level[0]));
    }
}

// The special cases of docs/theory.md §2 for greedy and m = 1.
static void examples_are_the_closed_forms(void **state)
{
    (void)state;
    struct hm_example e[2];
    struct hm_error err;
    assert_int_equal(hm_examples_make(e, &err), HM_OK);
    for (int i = 0; i < 2; i++) {
        double p1 = e[i].p[0].lo, p2 = e[i].p[1].lo, s = p1 + p2;
        const double levels[3] = {p1 * log(2 * p1 / s) + p2 * log(2 * p2 / s), -log(1 - pow(sqrt(p1) - sqrt(p2), 2)),
                                  (p1 - p2) / 2};
        for (int d = 0; d < 3; d++) {
            assert_true(fabs(levels[d] - e[i].level[d].lo) < 1e-12 && e[i].level[d].lo <= e[i].level[d].hi);
            assert_int_equal(e[i].certified[d], HM_CERT_YES); // what the page says of them
            assert_true(e[i].distance[d].hi < e[i].level[d].lo);
        }
        for (int d = 0; d < 3; d++) { // of q, from its own probabilities
            struct hm_three p = {{e[i].p[0], e[i].p[1], e[i].p[2]}};
            struct hm_ival from_q = hm_three_distance(&p, e[i].q[0].lo, e[i].q[1].lo, d);
            assert_true(fabs(from_q.lo - e[i].distance[d].lo) < 1e-12);
        }
        assert_int_equal(e[i].covered, HM_YES);
        assert_int_equal(e[i].vocab, 2 + i);
        assert_true(fabs(s / 2 - e[i].water[0].lo) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_steps_are_kept), cmocka_unit_test(the_margin_bound_encloses_its_formula),
        cmocka_unit_test(distances_and_reaches), cmocka_unit_test(the_certified_set_touches_the_failing_one),
        cmocka_unit_test(examples_are_the_closed_forms)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
