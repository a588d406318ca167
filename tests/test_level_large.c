// Levels and margins of rows as long as a large vocabulary: three arithmetics enclose one number.
#include "tests/hard_rows.h"
#include "tests/level_support.h"
#include "tests/seed.h"

static void large_rows(void **state)
{
    (void)state;
    enum { VOCAB = 151936 };
    struct random r = seeded("large");
    float *l = malloc(VOCAB * sizeof *l);
    assert_non_null(l);
    size_t asked = 0, answered = 0;
    for (size_t n = 0; n < test_count(1, 20, 200); n++) {
        enum hard_kind kind = (enum hard_kind)(n % HARD_KINDS);
        hard_row(&r, kind, l, VOCAB);
        for (size_t i = 0; i < VOCAB && n % 5 != 0; i++) l[i] = as_bf16(l[i]); // few values, which MPFR computes once
        struct case_of_row c = {.row = open_row(l, VOCAB, "1"), .kind = hard_names[kind]};
        static const size_t ks[] = {1, 1, 3, 40, 900}, ms[] = {1, 4, 2, 8, 60};
        for (size_t i = 0; i < 5; i++, asked++) {
            c.k = ks[i];
            c.m = ms[i];
            answered += compare(&c, true);
        }
        hm_row_close(c.row);
    }
    print_message("%zu of %zu answered in doubles\n", answered, asked);
    assert_true(2 * answered > asked);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_rows)};
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
