// Stop strings: whatever the pieces, what is shown is the text before the first stop string to complete.
#include "decode/stop.h"
#include "tests/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Pushes text in random pieces; returns what was shown, and whether a stop string was found.
static bool stream(const char *const *strings, size_t count, const char *text, uint64_t *random, char *shown)
{
    struct hm_stop stop = {.strings = strings, .count = count};
    size_t n = strlen(text), out = 0;
    bool found = false;
    for (size_t i = 0; i < n && !found;) {
        size_t piece = 1 + test_below(random, 4);
        if (piece > n - i) piece = n - i;
        assert_int_equal(hm_stop_push(&stop, text + i, piece, &found, NULL), HM_OK);
        if (stop.show) memcpy(shown + out, stop.held, stop.show);
        out += stop.show;
        i += piece;
    }
    if (!found) {
        hm_stop_flush(&stop);
        if (stop.show) memcpy(shown + out, stop.held, stop.show);
        out += stop.show;
    }
    shown[out] = 0;
    hm_stop_clear(&stop);
    return found;
}

static void pieces_never_matter(void **state)
{
    (void)state;
    static const char *const strings[] = {"aab", "ba", "abba"};
    uint64_t random = test_seed("stop");
    for (size_t round = 0; round < test_count(2000, 20000, 1000000); round++) {
        char text[20], shown[20];
        size_t n = test_below(&random, 18);
        for (size_t i = 0; i < n; i++) text[i] = "abc"[test_below(&random, 3)];
        text[n] = 0;
        // Pieces of one byte: the stop string that completes first.
        size_t end = n + 1, begin = 0;
        for (size_t e = 1; e <= n && end > n; e++)
            for (size_t s = 0; s < 3; s++) {
                size_t length = strlen(strings[s]);
                if (e < length || memcmp(text + e - length, strings[s], length) != 0) continue;
                if (end > n || e - length < begin) begin = e - length;
                end = e;
            }
        bool found = stream(strings, 3, text, &random, shown);
        assert_int_equal(found, end <= n);
        if (!found) {
            assert_string_equal(shown, text);
        } else { // larger pieces may hold a later match that begins earlier; never one that begins later
            assert_true(strlen(shown) <= begin);
            assert_memory_equal(shown, text, strlen(shown));
            bool stops_there = false;
            for (size_t s = 0; s < 3; s++)
                stops_there |= strncmp(text + strlen(shown), strings[s], strlen(strings[s])) == 0;
            assert_true(stops_there);
        }
    }
}

static void held_text_comes_out_when_it_cannot_match(void **state)
{
    (void)state;
    static const char *const strings[] = {"\n\nQ:"};
    struct hm_stop stop = {.strings = strings, .count = 1};
    bool found;
    assert_int_equal(hm_stop_push(&stop, "yes\n", 4, &found, NULL), HM_OK);
    assert_int_equal(stop.show, 3); // the newline may begin the stop string
    assert_int_equal(hm_stop_push(&stop, "no", 2, &found, NULL), HM_OK);
    assert_int_equal(stop.show, 3);
    assert_memory_equal(stop.held, "\nno", 3);
    assert_int_equal(hm_stop_push(&stop, "\n\nQ: more", 9, &found, NULL), HM_OK);
    assert_true(found);
    assert_int_equal(stop.show, 0);
    hm_stop_clear(&stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_never_matter),
        cmocka_unit_test(held_text_comes_out_when_it_cannot_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
