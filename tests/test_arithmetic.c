// The self-test of double arithmetic notices each way in which a process may have spoilt it.
#include "bounds/arithmetic.h"

#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static void is_ieee_here(void **state)
{
    (void)state;
    assert_true(hm_arithmetic_is_ieee());
}

static void notices_rounding_modes(void **state)
{
    (void)state;
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        fesetround(modes[i]);
        bool good = hm_arithmetic_is_ieee();
        fesetround(FE_TONEAREST);
        assert_false(good);
    }
}

static void notices_flushing(void **state)
{
    (void)state;
#if defined(__SSE2__)
    unsigned saved = _mm_getcsr();
    static const unsigned modes[] = {0x8000, 0x0040, 0x8040}; // results to zero, operands to zero, both
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        _mm_setcsr(saved | modes[i]);
        bool good = hm_arithmetic_is_ieee();
        _mm_setcsr(saved);
        assert_false(good);
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_ieee_here), cmocka_unit_test(notices_rounding_modes),
                                       cmocka_unit_test(notices_flushing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
