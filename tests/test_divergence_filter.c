// Divergences on request at two precisions and in double: the enclosures hold one number.
#include "tests/divergence_support.h"

#include <mpfr.h>

enum { LARGEST = 8 };

static void two_precisions_overlap(void **state)
{
    (void)state;
    struct random r = seeded("precisions");
    for (size_t n = 0; n < rounds(60); n++) {
        float l[LARGEST], o[LARGEST];
        size_t vocab = 3 + below(&r, LARGEST - 3), k = 1 + below(&r, vocab - 1), m = 1 + below(&r, vocab - k);
        double spread = n % 3 ? 2 : 300;
        for (size_t i = 0; i < vocab; i++) l[i] = (float)(gauss(&r) * spread);
        for (size_t i = 0; i < vocab; i++) o[i] = (float)(gauss(&r) * spread);
        struct hm_row *rows[2][2];
        for (int i = 0; i < 2; i++) rows[i][0] = open_row(l, vocab, "7/10"), rows[i][1] = open_row(o, vocab, "7/10");
        for (size_t kind = 0; kind < KINDS; kind++) {
            struct hm_divergence d = parse(kinds[kind]);
            struct hm_error err;
            struct hm_mpi v[2], s[2];
            for (int i = 0; i < 2; i++) {
                bool good;
                hm_mpi_init(&v[i], i ? 512 : 128);
                hm_mpi_init(&s[i], i ? 512 : 128);
                assert_int_equal(hm_divergence_between_at(&d, rows[i][0], rows[i][1], i ? 512 : 128, &v[i], &err), HM_OK);
                assert_int_equal(hm_divergence_level_at(&d, rows[i][0], k, m, i ? 512 : 128, &s[i], NULL, &good, &err), HM_OK);
                assert_true(good);
            }
            assert_true(mpfr_lessequal_p(v[0].lo, v[1].hi) && mpfr_lessequal_p(v[1].lo, v[0].hi));
            assert_true(mpfr_lessequal_p(s[0].lo, s[1].hi) && mpfr_lessequal_p(s[1].lo, s[0].hi));
            for (int i = 0; i < 2; i++) {
                hm_mpi_clear(&v[i]);
                hm_mpi_clear(&s[i]);
            }
            hm_divergence_clear(&d);
        }
        for (int i = 0; i < 4; i++) hm_row_close(rows[i / 2][i % 2]);
    }
}

// The filter's enclosures hold what MPFR's hold, and answer most of the time.
static void the_filter_agrees(void **state)
{
    (void)state;
    struct random r = seeded("filter");
    size_t asked = 0, answered[2] = {0, 0};
    for (size_t n = 0; n < rounds(150); n++) {
        enum { WIDE = 700 };
        float l[WIDE], d[WIDE];
        size_t vocab = n % 3 ? 2 + below(&r, 20) : 500 + below(&r, 200), k = 1 + below(&r, vocab < 9 ? vocab - 1 : 8), m = 1;
        double spread = n % 4 ? 2 : n % 8 ? 40 : 300, noise = n % 5 ? 0.5 : 1e-3;
        for (size_t i = 0; i < vocab; i++) {
            l[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)(spread * gauss(&r));
            d[i] = i && below(&r, 30) == 0 ? -INFINITY : l[i] == -INFINITY ? (float)gauss(&r) : l[i] + (float)(noise * gauss(&r));
            if (n % 2 && l[i] == -INFINITY) d[i] = l[i];
        }
        if (n % 7 == 0) l[1] = l[0];
        if (k < vocab) m = 1 + below(&r, vocab - k < 8 ? vocab - k : 8);
        struct hm_row *p = open_row(l, vocab, "7/10"), *q = open_row(d, vocab, "7/10");
        for (size_t i = 0; i < KINDS; i++) {
            struct hm_divergence divergence = parse(kinds[i]);
            struct hm_ival found;
            struct hm_error err;
            struct hm_mpi exact;
            bool good;
            hm_mpi_init(&exact, 256);
            asked++;
            if (hm_divergence_between_filter(&divergence, p, q, &found)) {
                assert_int_equal(hm_divergence_between_at(&divergence, p, q, 256, &exact, &err), HM_OK);
                assert_true(mpfr_cmp_d(exact.hi, found.lo) >= 0 && mpfr_cmp_d(exact.lo, found.hi) <= 0);
                answered[0] += is_narrow(found);
            }
            if (hm_divergence_level_filter(&divergence, p, k, m, &found)) {
                assert_int_equal(hm_divergence_level_at(&divergence, p, k, m, 256, &exact, NULL, &good, &err), HM_OK);
                assert_true(good && mpfr_cmp_d(exact.hi, found.lo) >= 0 && mpfr_cmp_d(exact.lo, found.hi) <= 0);
                answered[1] += is_narrow(found);
            }
            hm_mpi_clear(&exact);
            hm_divergence_clear(&divergence);
        }
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("answered %zu and %zu of %zu\n", answered[0], answered[1], asked);
    assert_true(2 * answered[0] > asked && 2 * answered[1] > asked);
}

static int release_caches(void **state)
{
    (void)state;
    mpfr_free_cache();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_precisions_overlap),
        cmocka_unit_test(the_filter_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
