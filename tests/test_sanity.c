// Tests of evidence/sanity.c.
#include "tests/certify_rows.h"

static void nothing_yet(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_yet)};
    return cmocka_run_group_tests_name("sanity", tests, NULL, release_caches);
}
