// Rotary tables against MPFR: frequencies are correctly rounded, table entries are within the error the header
// promises, and rows do not depend on which call filled them.
#include "tests/model_support.h"

#include "base/sha256.h"
#include "decode/model_rope.h"

#include <math.h>
#include <mpfr.h>

enum { POSITIONS = 1 << 20, HEAD_DIM = 64, PAIRS = HEAD_DIM / 2 };

// |have - f(n * frequency)| for the real product.
static double table_error(float have, size_t n, double frequency, int (*f)(mpfr_t, const mpfr_t, mpfr_rnd_t))
{
    mpfr_t x;
    mpfr_init2(x, 200);
    mpfr_set_d(x, frequency, MPFR_RNDN);
    mpfr_mul_ui(x, x, (unsigned long)n, MPFR_RNDN);
    f(x, x, MPFR_RNDN);
    mpfr_sub_d(x, x, (double)have, MPFR_RNDN);
    double error = fabs(mpfr_get_d(x, MPFR_RNDA));
    mpfr_clear(x);
    return error;
}

static void test_tables(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct hm_rope_config plain = {.kind = HM_ROPE_PLAIN, .theta = 10000};
    double frequency[PAIRS], worst = 0;
    hm_rope_frequencies(&plain, HEAD_DIM, frequency);
    float *cosine = calloc(POSITIONS * PAIRS, sizeof *cosine), *sine = calloc(POSITIONS * PAIRS, sizeof *sine);
    for (size_t trial = 0; trial < 20000; trial++) {
        // Small and large positions alike.
        size_t n = draw(&seed, 1u << (1 + draw(&seed, 20))), i = draw(&seed, PAIRS);
        hm_rope_fill(frequency, PAIRS, n, 1, cosine, sine);
        double c = table_error(cosine[n * PAIRS + i], n, frequency[i], mpfr_cos);
        double s = table_error(sine[n * PAIRS + i], n, frequency[i], mpfr_sin);
        double bound =
            0x1p-25 + (double)n * 0x1p-52 + 0x1p-51; // half an ulp of a float below 1, the angle, the polynomial
        if (fmax(c, s) > bound) fail_msg("position %zu, pair %zu: errors %g and %g beyond %g", n, i, c, s, bound);
        worst = fmax(worst, fmax(c, s));
    }
    print_message("largest error %.3g\n", worst);
    free(cosine);
    free(sine);
}

static void test_rows_do_not_depend_on_calls(void **state)
{
    (void)state;
    struct hm_rope_config plain = {.kind = HM_ROPE_PLAIN, .theta = 1e6};
    double frequency[PAIRS];
    static float whole[2][600 * PAIRS], parts[2][600 * PAIRS];
    hm_rope_frequencies(&plain, HEAD_DIM, frequency);
    hm_rope_fill(frequency, PAIRS, 0, 600, whole[0], whole[1]);
    hm_rope_fill(frequency, PAIRS, 0, 512, parts[0], parts[1]);
    hm_rope_fill(frequency, PAIRS, 512, 88, parts[0], parts[1]);
    assert_memory_equal(whole, parts, sizeof whole);
    for (size_t i = 0; i < PAIRS; i++) assert_true(whole[0][i] == 1 && whole[1][i] == 0);
}

// The same bits everywhere: this hash is the same from gcc and clang, at any level of optimisation. Of the entries, all
// round the real cosine and sine to the nearest float or, where that is nearly a tie, to its neighbour (test_tables).
static void test_bits(void **state)
{
    (void)state;
    enum { ROWS = 40960 };
    struct hm_rope_config plain = {.kind = HM_ROPE_PLAIN, .theta = 1e6};
    double frequency[PAIRS];
    float *table = malloc(2 * ROWS * PAIRS * sizeof *table);
    uint8_t digest[HM_SHA256_BYTES];
    char hex[HM_SHA256_HEX];
    hm_rope_frequencies(&plain, HEAD_DIM, frequency);
    hm_rope_fill(frequency, PAIRS, 0, ROWS, table, table + ROWS * PAIRS);
    assert_int_equal(hm_sha256(table, 2 * ROWS * PAIRS * sizeof *table, digest, NULL), HM_OK);
    hm_sha256_hex(digest, hex);
    assert_string_equal(hex, "4a567c892274d002966a640e93ce1dfd66a4d1357830d692ae859d19da714209");
    free(table);
}

// Llama 3.1's own settings: values of the published formula, computed with 50 digits.
static void test_frequencies(void **state)
{
    (void)state;
    struct hm_rope_config plain = {.kind = HM_ROPE_PLAIN, .theta = 500000};
    struct hm_rope_config llama = {HM_ROPE_LLAMA3, 500000, 8, 1, 4, 8192};
    static const struct {
        size_t i;
        double plain, llama;
    } known[] = {
#include "tests/data/parity/rope_frequencies.inc"
    };
    double a[64], b[64];
    hm_rope_frequencies(&plain, 128, a);
    hm_rope_frequencies(&llama, 128, b);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        assert_true(a[known[k].i] == known[k].plain); // correctly rounded
        assert_true(fabs(b[known[k].i] / known[k].llama - 1) <= 0x1p-48);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_rows_do_not_depend_on_calls),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_frequencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
