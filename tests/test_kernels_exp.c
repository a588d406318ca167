// exp of float32: the same bits on every instruction set, and its error, over all of its inputs. The default looks at
// every 401st float32; HM_LONG=1 looks at all of them (a minute or two).
#include "test_kernels.h"

enum { BATCH = 1 << 16 };

// exp.h promises this for every input.
static const double promised_ulp = 1.01;

static const struct hm_cpu_kernels *tables[HM_ISA_BEST];
static size_t table_count;

static void find_tables(void)
{
    table_count = 0;
    for (int isa = 0; isa < HM_ISA_BEST; isa++) {
        struct hm_device *device;
        if (hm_device_open_cpu(1, (enum hm_isa)isa, &device, NULL)) continue;
        tables[table_count++] = hm_cpu_device(device)->kernels;
        hm_device_close(device);
    }
}

// Error in units of the last place of the float32 nearest to the exact value; libm's double exp is exact to 2^-28 of
// it.
static double error_in_ulp(float x, float y)
{
    double exact = exp((double)x);
    int exponent;
    frexp(exact, &exponent);
    double ulp = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
    return fabs(y - exact) / ulp;
}

static void check_batch(const float *x, size_t count, double *worst, float *worst_at)
{
    static float expected[BATCH], found[BATCH];
    for (size_t i = 0; i < count; i++) {
        expected[i] = hm_reference_exp(x[i]);
        if (expected[i] > 0x1.fffffep127f) continue;
        double error = error_in_ulp(x[i], expected[i]);
        if (error <= *worst) continue;
        *worst = error;
        *worst_at = x[i];
    }
    for (size_t t = 0; t < table_count; t++) {
        tables[t]->exp(x, found, count);
        for (size_t i = 0; i < count; i++)
            if (hm_float_bits(found[i]) != hm_float_bits(expected[i]))
                fail_msg("exp(%a) on %s: expected %a, found %a", (double)x[i], tables[t]->name, (double)expected[i],
                         (double)found[i]);
    }
}

// Both signs, from zero to beyond the point where the result is constant.
static void every_input(void **state)
{
    (void)state;
    const char *wish = getenv("HM_LONG");
    bool all = wish && *wish == '1';
    find_tables();
    if (all && table_count > 1) { // the plain C one is too slow to see them all
        memmove(tables, tables + 1, (table_count - 1) * sizeof *tables);
        table_count--;
    }
    static float x[BATCH];
    uint32_t step = all ? 1 : 401, most = hm_float_bits(106.0f);
    double worst = 0;
    float worst_at = 0;
    for (int sign = 0; sign < 2; sign++)
        for (uint64_t bits = 0; bits <= most;) {
            size_t count = 0;
            for (; count < BATCH && bits <= most; bits += step)
                x[count++] = hm_float_from_bits((uint32_t)bits | (sign ? 0x80000000u : 0));
            check_batch(x, count, &worst, &worst_at);
        }
    print_message("largest error: %.4f ulp at %a\n", worst, (double)worst_at);
    assert_true(worst <= promised_ulp);
}

static void special_values(void **state)
{
    (void)state;
    find_tables();
    const float x[] = {0,  -0.0f,     INFINITY,  -INFINITY, -104,  -103.97f,
                       89, 88.72283f, 88.72284f, -1e30f,    1e30f, 0x1p-149f};
    const float y[] = {1, 1, INFINITY, 0, 0, 0x1p-149f, INFINITY, 0x1.ffff08p127f, INFINITY, 0, INFINITY, 1};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (hm_float_bits(hm_reference_exp(x[i])) != hm_float_bits(y[i]))
            fail_msg("exp(%a): expected %a, found %a", (double)x[i], (double)y[i], (double)hm_reference_exp(x[i]));
    for (size_t t = 0; t < table_count; t++)
        for (size_t count = 1; count <= sizeof x / sizeof *x; count++) {
            float found[16] = {0};
            tables[t]->exp(x, found, count);
            assert_memory_equal(found, y, count * sizeof *y);
            assert_true(found[count] == 0); // nothing behind the end
            float nan = NAN;
            tables[t]->exp(&nan, &nan, 1);
            assert_true(isnan(nan));
        }
    assert_true(isnan(hm_reference_exp(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_input), cmocka_unit_test(special_values)};
    return cmocka_run_group_tests_name("kernels_exp", tests, NULL, NULL);
}
