// Noise between two rows and the level of a run, against rational arithmetic and against sorting.
#include "evidence/compare.h"

#include "tests/hard_rows.h"
#include "tests/seed.h"

#include <gmp.h>

enum { MOST = 300 };

// ---- the exact noise of two rows of floats

struct exact {
    size_t shared;
    mpq_t noise;
};

static void exact_noise(const float *a, const float *b, size_t n, struct exact *out)
{
    mpq_t x, y, most, least;
    mpq_inits(x, y, most, least, NULL);
    out->shared = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i])) continue;
        mpq_set_d(x, a[i]);
        mpq_set_d(y, b[i]);
        mpq_sub(x, x, y);
        if (out->shared == 0 || mpq_cmp(x, most) > 0) mpq_set(most, x);
        if (out->shared == 0 || mpq_cmp(x, least) < 0) mpq_set(least, x);
        out->shared++;
    }
    mpq_sub(out->noise, most, least);
    mpq_div_2exp(out->noise, out->noise, 1);
    mpq_clears(x, y, most, least, NULL);
}

static bool contains(struct hm_ival x, mpq_srcptr value)
{
    mpq_t end;
    mpq_init(end);
    mpq_set_d(end, x.lo);
    bool good = mpq_cmp(end, value) <= 0;
    mpq_set_d(end, x.hi);
    good = good && mpq_cmp(end, value) >= 0;
    mpq_clear(end);
    return good;
}

static struct hm_evidence full(const float *row, size_t n)
{
    return (struct hm_evidence){.unit = HM_UNIT_LOGIT, .logits = row, .vocab = n, .emitted = 0};
}

static struct hm_noise measure(const struct hm_evidence *a, const struct hm_evidence *b, enum hm_number_type type)
{
    struct hm_noise out;
    struct hm_error err;
    if (hm_noise_measure(a, b, type, &out, &err)) fail_msg("%s", err.message);
    return out;
}

static struct hm_noise rows_noise(const float *a, const float *b, size_t n)
{
    struct hm_evidence p = full(a, n), q = full(b, n);
    return measure(&p, &q, HM_TYPE_F32);
}

static void rows_contain_exact(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("rows_contain_exact")};
    struct exact exact;
    static float a[MOST], b[MOST];
    size_t points = 0, count = test_count(300, 3000, 100000);
    mpq_init(exact.noise);
    for (size_t run = 0; run < count; run++) {
        size_t n = 1 + below(&r, MOST);
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), a, n);
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), b, n);
        for (size_t i = 0; i < n && below(&r, 2); i++) b[i] = a[i] + (float)(1e-5 * gauss(&r));
        if (below(&r, 8) == 0) a[below(&r, n)] = NAN;
        if (below(&r, 8) == 0) b[below(&r, n)] = INFINITY;
        exact_noise(a, b, n, &exact);
        struct hm_noise got = rows_noise(a, b, n), back = rows_noise(b, a, n);
        assert_int_equal(got.shared, exact.shared);
        if (exact.shared < 2) {
            assert_true(got.nats.hi == 0 && got.most == -1);
            continue;
        }
        if (!contains(got.nats, exact.noise)) fail_msg("run %zu: [%a, %a]", run, got.nats.lo, got.nats.hi);
        assert_true(got.nats.hi - got.nats.lo <= 0x1p-50 * (0x1p24 * got.unit.lo)); // 2^24 units exceed every value
        points += got.nats.lo == got.nats.hi;
        assert_true(got.nats.lo == back.nats.lo && got.nats.hi == back.nats.hi); // symmetric
        assert_true(got.unit.lo == back.unit.lo && got.ulps.hi == back.ulps.hi);
        assert_true(got.ulps.lo <= got.nats.hi / got.unit.lo && got.ulps.hi >= got.nats.lo / got.unit.hi);
        double d = (double)a[got.most] - b[got.most], e = (double)a[got.least] - b[got.least];
        assert_true((d - e) / 2 <= got.nats.hi * (1 + 0x1p-51) && (d - e) / 2 >= got.nats.lo * (1 - 0x1p-51));
    }
    print_message("%zu of %zu are points\n", points, count);
    assert_true(points > count / 3);
    mpq_clear(exact.noise);
}

// Logits on a grid that leaves room: adding a constant is exact, and changes nothing.
static void shifts_change_nothing(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("shifts_change_nothing")};
    static float a[MOST], b[MOST], c[MOST];
    for (size_t run = 0; run < test_count(100, 1000, 20000); run++) {
        size_t n = 2 + below(&r, MOST - 1);
        float shift = (float)((double)below(&r, 4096) / 256 - 8);
        for (size_t i = 0; i < n; i++) {
            a[i] = (float)((double)below(&r, 1 << 16) / 2048);
            b[i] = a[i] + (float)((double)below(&r, 16) / 65536);
            c[i] = b[i] + shift;
        }
        struct hm_noise x = rows_noise(a, b, n), y = rows_noise(a, c, n), same = rows_noise(b, c, n);
        assert_true(x.nats.lo == y.nats.lo && x.nats.hi == y.nats.hi && x.nats.lo == x.nats.hi);
        assert_true(same.nats.lo == 0 && same.nats.hi == 0); // a shift alone is no noise
    }
}

static void units(void **state)
{
    (void)state;
    static const float a[2] = {20, 1}, b[2] = {20.125f, 1}, zero[2] = {0, 0};
    struct hm_evidence p = full(a, 2), q = full(b, 2), o = full(zero, 2);
    struct hm_noise f32 = measure(&p, &q, HM_TYPE_F32), bf16 = measure(&p, &q, HM_TYPE_BF16), f16 = measure(&p, &q, HM_TYPE_F16);
    assert_true(f32.nats.lo == 0.0625 && f32.nats.hi == 0.0625);
    assert_true(f32.unit.lo == 0x1p-19 && bf16.unit.lo == 0.125 && f16.unit.lo == 0x1p-6); // 20.125 lies in [16, 32)
    assert_true(bf16.ulps.lo == 0.5 && bf16.ulps.hi == 0.5);
    assert_true(measure(&o, &o, HM_TYPE_F32).unit.lo == 0x1p-149);
    assert_string_equal(hm_number_type_name(HM_TYPE_BF16), "bf16");
}

// ---- lists

// Entries of a row as a printer with `digits` decimals after the point would show its log-probabilities.
static void print_list(struct random *r, const float *row, size_t n, size_t listed, const char *texts,
                       struct hm_evidence_entry *entry, struct hm_evidence *out)
{
    double sum = 0;
    static size_t order[MOST];
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        sum += exp(row[i]);
    }
    for (size_t i = 0; i < listed; i++) {
        size_t j = i + below(r, n - i), id = order[j];
        order[j] = order[i];
        double l = row[id] - log(sum), printed = rint(l * 1e4) / 1e4;
        entry[i] = (struct hm_evidence_entry){.id = texts ? -1 : (int32_t)id, .text = texts ? texts + 4 * id : NULL,
                                              .text_size = texts ? 4 : 0, .value = {printed - 5.1e-5, printed + 5.1e-5}};
    }
    *out = (struct hm_evidence){.unit = HM_UNIT_LOG_PROBABILITY, .entry = entry, .count = listed, .ranked = 0, .emitted = 0};
}

static void lists_contain_exact(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("lists_contain_exact")};
    static float a[MOST], b[MOST], masked[MOST];
    static char texts[MOST][5];
    static struct hm_evidence_entry entries[2][MOST];
    struct hm_evidence p, q;
    struct exact exact;
    mpq_init(exact.noise);
    for (int i = 0; i < MOST; i++) snprintf(texts[i], 5, "%04d", i);
    char *flat = malloc(4 * MOST);
    for (int i = 0; i < MOST; i++) memcpy(flat + 4 * i, texts[i], 4);
    for (size_t run = 0; run < test_count(100, 1000, 20000); run++) {
        size_t n = 2 + below(&r, MOST - 1), left = 1 + below(&r, n), right = 1 + below(&r, n);
        const char *names = below(&r, 2) ? flat : NULL;
        for (size_t i = 0; i < n; i++) {
            a[i] = (float)(3 * gauss(&r));
            b[i] = a[i] + (float)(1e-3 * gauss(&r));
        }
        print_list(&r, a, n, left, names, entries[0], &p);
        print_list(&r, b, n, right, names, entries[1], &q);
        for (size_t i = 0; i < n; i++) masked[i] = NAN;
        for (size_t i = 0; i < left; i++) {
            size_t id = names ? (size_t)((entries[0][i].text - flat) / 4) : (size_t)entries[0][i].id;
            masked[id] = a[id];
        }
        for (size_t i = 0; i < n; i++) {
            bool there = false;
            for (size_t j = 0; j < right; j++)
                there |= i == (names ? (size_t)((entries[1][j].text - flat) / 4) : (size_t)entries[1][j].id);
            if (!there) masked[i] = NAN;
        }
        exact_noise(masked, b, n, &exact);
        struct hm_noise got = measure(&p, &q, HM_TYPE_F32), back = measure(&q, &p, HM_TYPE_F32);
        assert_int_equal(got.shared, exact.shared);
        assert_true(got.nats.lo == back.nats.lo && got.nats.hi == back.nats.hi);
        if (exact.shared < 2) continue;
        if (!contains(got.nats, exact.noise)) fail_msg("run %zu: [%a, %a]", run, got.nats.lo, got.nats.hi);
        assert_true(got.nats.hi - got.nats.lo <= 2.1e-4);
        if (names) continue;
        struct hm_evidence row = full(b, n); // a list against the whole row
        for (size_t i = 0; i < n; i++) masked[i] = NAN;
        for (size_t i = 0; i < left; i++) masked[entries[0][i].id] = a[entries[0][i].id];
        exact_noise(masked, b, n, &exact);
        got = measure(&p, &row, HM_TYPE_F32);
        assert_int_equal(got.shared, exact.shared);
        if (exact.shared >= 2) assert_true(contains(got.nats, exact.noise));
    }
    free(flat);
    mpq_clear(exact.noise);
}

static struct hm_evidence_entry entry(int32_t id, const char *text, double lo, double hi)
{
    return (struct hm_evidence_entry){.id = id, .text = text, .text_size = text ? strlen(text) : 0, .value = {lo, hi}};
}

// A text that stands for several tokens matches nothing; ids go before texts; what may be -inf is left out.
static void texts_that_name_nothing(void **state)
{
    (void)state;
    struct hm_evidence_entry a[] = {entry(-1, "x", -1, -1), entry(-1, "\xef\xbf\xbd", -2, -2), entry(-1, "y", -3, -3),
                                    entry(-1, "y", -9, -9), entry(7, "z", -4, -4), entry(8, NULL, -INFINITY, -5)};
    struct hm_evidence_entry b[] = {entry(1, "x", -1.5, -1.5), entry(-1, "\xef\xbf\xbd", -2, -2), entry(-1, "y", -3, -3),
                                    entry(6, "z", -40, -40), entry(7, "w", -4, -4), entry(8, NULL, -5, -5)};
    struct hm_evidence p = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = a, .count = 6, .emitted = 0};
    struct hm_evidence q = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = b, .count = 6, .emitted = 0};
    struct hm_noise got = measure(&p, &q, HM_TYPE_F32);
    assert_int_equal(got.shared, 2); // x by its text, 7 by its id
    assert_true(got.nats.lo == 0.25 && got.nats.hi == 0.25);
    assert_int_equal(got.most, 1);
    assert_int_equal(got.least, 7);
    q.processed = true;
    assert_int_equal(measure(&p, &q, HM_TYPE_F32).shared, 0);
}

// ---- the level

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double brute_level(const double *value, size_t n, size_t without, double *scratch)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (i != without) scratch[m++] = value[i];
    qsort(scratch, m, sizeof *scratch, by_size);
    return fmin(scratch[(m * 999 + 999) / 1000 - 1], 10 * scratch[(m * 990 + 999) / 1000 - 1]);
}

static double random_noise(struct random *r, int kind)
{
    switch (kind) {
    case 0: return below(r, 4) ? 0 : 1e-6;
    case 1: return exp(4 * gauss(r) - 12);
    case 2: return below(r, 1000) ? 1e-5 * uniform(r) : 1e30;
    case 3: return 1e-5;
    case 4: return below(r, 500) ? 1e-20 : 1e9;
    default: return 1e-6 * (double)(1 + below(r, 40));
    }
}

static void level_equals_sorting(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("level_equals_sorting")};
    static double low[4000], high[4000], scratch[4000];
    for (size_t run = 0; run < test_count(12, 120, 3000); run++) {
        static const struct hm_noise_run empty;
        static struct hm_noise_run all;
        size_t n = below(&r, 3) ? 195 + below(&r, 12) : 990 + below(&r, 3000);
        int kind = (int)below(&r, 6);
        all = empty;
        for (size_t i = 0; i < n; i++) {
            low[i] = random_noise(&r, kind);
            high[i] = below(&r, 2) ? low[i] : low[i] * (1 + uniform(&r));
            hm_noise_run_add(&all, (struct hm_ival){low[i], high[i]});
        }
        for (int i = 0; i < 20; i++) {
            size_t at = below(&r, n);
            struct hm_ival noise = {low[at], high[at]}, level;
            bool known = hm_noise_run_level(&all, &noise, &level);
            assert_int_equal(known, n > HM_LEVEL_LEAST_POSITIONS);
            if (!known) continue;
            double lo = brute_level(low, n, at, scratch), hi = brute_level(high, n, at, scratch);
            if (!(level.lo <= lo && level.lo >= fmin(lo / (1 + 1.0 / 32), 65536) - 0x1p-44))
                fail_msg("kind %d, n %zu: lower %a for %a", kind, n, level.lo, lo);
            if (!(level.hi >= hi && (level.hi <= hi * (1 + 1.0 / 32) + 0x1p-44 || hi >= 65536)))
                fail_msg("kind %d, n %zu: upper %a for %a", kind, n, level.hi, hi);
        }
    }
}

// Three faults among 400 positions do not make a level for each other.
static void faults_do_not_hide_each_other(void **state)
{
    (void)state;
    static struct hm_noise_run run;
    struct hm_noise fault = {.shared = 10, .nats = {0.5, 0.5}, .unit = {1e-6, 1e-6}};
    struct hm_ival level;
    for (int i = 0; i < 400; i++) hm_noise_run_add(&run, (struct hm_ival){1e-5, 1e-5});
    for (int i = 0; i < 3; i++) hm_noise_run_add(&run, fault.nats);
    assert_true(hm_noise_level(&run, &fault, &level));
    assert_false(hm_noise_is_foreign(&run));
    for (int i = 0; i < 402; i++) hm_noise_run_add(&run, (struct hm_ival){3, 3.5});
    assert_false(hm_noise_is_foreign(&run)); // half of 805 positions is not more than half of them
    for (int i = 0; i < 2; i++) hm_noise_run_add(&run, (struct hm_ival){3, 3.5});
    assert_true(hm_noise_is_foreign(&run));
    assert_true(level.hi < 1.1e-4 && hm_noise_outlier(fault.nats, level) == HM_YES);
}

static void floors_and_outliers(void **state)
{
    (void)state;
    static struct hm_noise_run run;
    struct hm_noise here = {.shared = 10, .nats = {1e-5, 1e-5}, .unit = {1e-6, 1e-6}};
    struct hm_ival level;
    hm_noise_run_add(&run, here.nats);
    assert_false(hm_noise_level(&run, &here, &level));
    for (int i = 0; i < HM_LEVEL_LEAST_POSITIONS; i++) hm_noise_run_add(&run, (struct hm_ival){0, 0});
    assert_true(hm_noise_level(&run, &here, &level)); // all others are equal: the type's own rounding is the level
    assert_true(level.lo == 1e-6 && level.hi == 1e-6);
    here.shared = 0; // not measured: nothing to take out
    assert_true(hm_noise_level(&run, &here, &level) && level.lo == 0 && level.hi <= 0x1p-44);
    assert_int_equal(hm_noise_outlier((struct hm_ival){1.01e-4, 1.01e-4}, (struct hm_ival){1e-5, 1e-5}), HM_YES);
    assert_int_equal(hm_noise_outlier((struct hm_ival){0.99e-4, 0.99e-4}, (struct hm_ival){1e-5, 1e-5}), HM_NO);
    assert_int_equal(hm_noise_outlier((struct hm_ival){1.01e-4, 1.01e-4}, (struct hm_ival){1e-5, 1.1e-5}), HM_UNDECIDED);
    assert_int_equal(hm_noise_outlier((struct hm_ival){0, 0}, (struct hm_ival){0, 0}), HM_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_contain_exact), cmocka_unit_test(shifts_change_nothing), cmocka_unit_test(units),
        cmocka_unit_test(lists_contain_exact), cmocka_unit_test(texts_that_name_nothing), cmocka_unit_test(level_equals_sorting),
        cmocka_unit_test(faults_do_not_hide_each_other), cmocka_unit_test(floors_and_outliers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
