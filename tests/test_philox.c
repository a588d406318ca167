// Philox 4x32-10 against the known answers of the Random123 distribution.
#include "certify/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void known_answers(void **state)
{
    static const struct answer {
        uint32_t counter[4], key[2], out[4];
    } answers[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint32_t out[4];
        hm_philox4x32(answers[i].counter, answers[i].key, out);
        assert_memory_equal(out, answers[i].out, sizeof out);
    }
}

// The same three blocks through the log's counters: (sequence, t, purpose, child), the key's low word first.
static void bits_come_from_the_first_two_words(void **state)
{
    (void)state;
    assert_int_equal(hm_philox_bits(0, 0, 0, HM_DRAW_TARGET, 0), UINT64_C(0x6627e8d5e169c58d) >> 11);
    assert_int_equal(hm_philox_bits(UINT64_C(0x299f31d0a4093822), 0x243f6a88, 0x85a308d3, (enum hm_purpose)0x13198a2e,
                                    0x03707344), UINT64_C(0xd16cfe0994fdcceb) >> 11);
    assert_true(hm_philox_bits(1, 2, 3, HM_COIN, 4) < UINT64_C(1) << 53);
    assert_int_not_equal(hm_philox_bits(1, 2, 3, HM_DRAW_TARGET, 0), hm_philox_bits(1, 2, 3, HM_DRAW_DRAFT, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(bits_come_from_the_first_two_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
