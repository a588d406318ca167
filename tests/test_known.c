// Tests of evidence/known.c.
#include "tests/certify_rows.h"

static void nothing_yet(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_yet)};
    return cmocka_run_group_tests_name("known", tests, NULL, release_caches);
}
