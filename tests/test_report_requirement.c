// What a drafter must reach and what knowing less certifies (reports/requirement.h): counts against brute force over
// the records of small logs and over numbers made here.
#include "tests/report_support.h"
#include "tests/seed.h"

#include <glob.h>
#include <math.h>

// The values of one claim of a log, read by a loop of its own.
struct values {
    double *level[3], *draft[3];
    size_t levels, drafts;
    uint64_t yes[HM_KNOWN_FROM][HM_KNOWN_BY], with[HM_KNOWN_FROM];
};

static void add_known(struct values *v, const struct hm_record_step *s, const struct hm_record_claim *c)
{
    const double distance[3] = {s->kl_pq.hi, s->kl_qp.hi, s->tv.hi};
    const double gap[3] = {c->margin.klf.lo, c->margin.klr.lo, c->margin.tv.lo};
    const double rule[3] = {c->universal.klf.lo, c->universal.klr.lo, -1};
    int any[3] = {0, 0, 0};
    v->with[HM_FROM_ROW]++;
    v->with[HM_FROM_GAP] += c->has_margin;
    v->with[HM_FROM_RULE] += c->has_universal;
    for (int by = 0; by < 3; by++) {
        int yes[3] = {c->certified[by] == HM_CERT_YES, c->has_margin && distance[by] < gap[by],
                      c->has_universal && distance[by] < rule[by]};
        for (int from = 0; from < 3; from++) {
            v->yes[from][by] += (uint64_t)yes[from];
            any[from] |= yes[from];
        }
    }
    for (int from = 0; from < 3; from++) v->yes[from][HM_BY_ANY] += (uint64_t)any[from];
}

static void add_values(struct values *v, const struct hm_record_step *s, const struct hm_record_claim *c)
{
    if (c->has_distances) {
        const double level[3] = {c->level.klf.lo, c->level.klr.lo, c->level.tv.lo};
        for (int i = 0; i < 3; i++) v->level[i][v->levels] = level[i];
        v->levels++;
    }
    if (c->has_distances && c->has_verdicts && s->has_draft) {
        const double draft[3] = {s->kl_pq.hi, s->kl_qp.hi, s->tv.hi};
        for (int i = 0; i < 3; i++) v->draft[i][v->drafts] = draft[i];
        v->drafts++;
    }
    if (c->has_verdicts && c->has_level && s->has_draft && c->certified[0] != HM_CERT_INAPPLICABLE) add_known(v, s, c);
}

static void read_values(const char *path, size_t claim, struct values *v)
{
    struct hm_log_reader *reader;
    struct hm_record record;
    struct hm_error err;
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    for (;;) {
        if (hm_log_reader_next(reader, &record, &err)) fail_msg("%s", err.message);
        if (record.kind == HM_RECORD_NONE) break;
        if (record.kind == HM_RECORD_STEP || record.kind == HM_RECORD_ROW)
            add_values(v, record.step, &record.step->claims[claim]);
    }
    hm_log_reader_close(reader);
}

static uint64_t at_least(const double *values, size_t n, double x)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += values[i] >= x;
    return count;
}

// At every point of every curve of every claim of every golden log.
static void curves_are_the_brute_force_counts(void **state)
{
    (void)state;
    enum { MOST = 4096 };
    glob_t found;
    size_t points = 0;
    struct values v;
    for (int i = 0; i < 3; i++) {
        v.level[i] = malloc(MOST * sizeof(double));
        v.draft[i] = malloc(MOST * sizeof(double));
    }
    assert_int_equal(glob("tests/data/logs/good/*.jsonl", 0, NULL, &found), 0);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        struct hm_report *report = report_on(found.gl_pathv[f], NULL);
        assert_true(report->steps < MOST);
        for (size_t c = 0; c < report->claim_count; c++) {
            const struct hm_claim_figures *g = &report->claims[c];
            const struct hm_histogram *level[3] = {&g->klf, &g->klr, &g->tv},
                                      *draft[3] = {&g->draft, &g->draft_klr, &g->draft_tv};
            v.levels = v.drafts = 0;
            memset(v.yes, 0, sizeof v.yes);
            memset(v.with, 0, sizeof v.with);
            read_values(found.gl_pathv[f], c, &v);
            assert_memory_equal(v.yes, g->known.yes, sizeof v.yes);
            assert_memory_equal(v.with, g->known.with, sizeof v.with);
            for (int d = 0; d < 3; d++) {
                assert_int_equal(level[d]->count, v.levels);
                assert_int_equal(draft[d]->count, v.drafts);
                struct hm_curve curve = hm_curve_over(level[d], draft[d]);
                for (size_t bin = curve.first, n = 0;; bin = hm_curve_next(&curve, bin), points++) {
                    assert_int_equal(hm_histogram_at_least(level[d], bin),
                                     at_least(v.level[d], v.levels, hm_histogram_edge(bin)));
                    assert_int_equal(hm_histogram_at_least(draft[d], bin),
                                     at_least(v.draft[d], v.drafts, hm_histogram_edge(bin)));
                    assert_true(++n <= HM_CURVE_POINTS);
                    if (bin == curve.last) break;
                }
            }
        }
        hm_report_close(report);
    }
    assert_true(points > 1000);
    for (int i = 0; i < 3; i++) {
        free(v.level[i]);
        free(v.draft[i]);
    }
    globfree(&found);
}

// x at a share: at least that many values are x or more, and no larger edge has as many.
static void the_share_is_kept_and_x_is_the_largest(void **state)
{
    (void)state;
    static const unsigned percents[] = {50, 90, 99, 100};
    uint64_t seed = test_seed("the_share_is_kept_and_x_is_the_largest");
    for (int round = 0; round < 300; round++) {
        static struct hm_histogram h;
        double values[200];
        size_t n = 1 + (size_t)round % 200;
        h = (struct hm_histogram){0};
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = test_random(&seed);
            values[i] = bits % 19 == 0   ? 0
                        : bits % 17 == 0 ? INFINITY
                                         : ldexp((double)(bits >> 11), -53 - (int)(bits % 23));
            hm_histogram_add(&h, values[i]);
        }
        for (size_t p = 0; p < 4; p++) {
            double x = hm_requirement_at(&h, percents[p]);
            assert_true(at_least(values, n, x) * 100 >= percents[p] * (uint64_t)n);
            for (size_t bin = 0; bin <= HM_HISTOGRAM_BINS; bin += 3)
                if (hm_histogram_edge(bin) > x)
                    assert_true(at_least(values, n, hm_histogram_edge(bin)) * 100 < percents[p] * (uint64_t)n);
        }
    }
}

static void curves_have_few_points_and_cover_their_range(void **state)
{
    (void)state;
    for (int from = -12; from < 4; from++)
        for (int to = from; to < 5; to++) {
            struct hm_curve c = hm_curve_between(pow(10, from), pow(10, to));
            size_t n = 1;
            for (size_t bin = c.first; bin < c.last; bin = hm_curve_next(&c, bin)) n++;
            assert_true(n <= HM_CURVE_POINTS);
            assert_true(hm_histogram_edge(c.first) >= pow(10, from) &&
                        (c.last == c.first || hm_histogram_edge(c.last) <= pow(10, to)));
            assert_true(c.last == HM_HISTOGRAM_BINS || hm_histogram_edge(c.last + 1) > pow(10, to));
        }
    static struct hm_histogram wide, none;
    hm_histogram_add(&wide, 0x1p-47);
    hm_histogram_add(&wide, 0x1p15);
    struct hm_curve c = hm_curve_over(&wide, &none);
    size_t n = 1;
    for (size_t bin = c.first; bin < c.last; bin = hm_curve_next(&c, bin)) n++;
    assert_true(n <= HM_CURVE_POINTS && hm_histogram_at_least(&wide, c.first) == 2 &&
                hm_histogram_at_least(&wide, c.last) == 0);
    c = hm_curve_over(&none, &none);
    assert_true(c.first == c.last);
}

static struct hm_ival around(double x)
{
    return (struct hm_ival){nextafter(x, -INFINITY), nextafter(x, INFINITY)};
}

// One step certified by its gap, one only by its row, one whose log has no such bounds; equality certifies nothing.
static void less_is_counted_by_hand(void **state)
{
    (void)state;
    struct hm_known k = {0};
    struct hm_record_step step = {.has_draft = true, .kl_pq = around(0.25), .kl_qp = around(1), .tv = around(0.5)};
    struct hm_record_claim claim = {.has_verdicts = true, .certified = {HM_CERT_YES, HM_CERT_NO, HM_CERT_YES}};
    claim.has_margin = true;
    claim.margin = (struct hm_margin){.klf = around(0.375), .klr = around(0.25), .tv = around(0.5)};
    claim.has_universal = true;
    claim.universal = (struct hm_universal){.klf = around(0.125), .klr = around(2)};
    hm_known_add(&k, &step, &claim);
    claim.margin.klf = (struct hm_ival){step.kl_pq.hi, 1};
    hm_known_add(&k, &step, &claim);
    claim = (struct hm_record_claim){.has_verdicts = true, .certified = {HM_CERT_NO, HM_CERT_UNDECIDED, HM_CERT_NO}};
    hm_known_add(&k, &step, &claim);
    static const uint64_t yes[HM_KNOWN_FROM][HM_KNOWN_BY] = {{2, 0, 2, 2}, {1, 0, 0, 1}, {0, 2, 0, 2}},
                          with[HM_KNOWN_FROM] = {3, 2, 2};
    assert_memory_equal(k.yes, yes, sizeof yes);
    assert_memory_equal(k.with, with, sizeof with);
    assert_int_equal(k.steps, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves_are_the_brute_force_counts), cmocka_unit_test(the_share_is_kept_and_x_is_the_largest),
        cmocka_unit_test(curves_have_few_points_and_cover_their_range), cmocka_unit_test(less_is_counted_by_hand)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
