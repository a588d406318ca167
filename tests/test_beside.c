// The thread beside: tasks run one at a time, in order, in another thread, and what either side wrote is seen by the other.
#include "decode/beside.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct sum {
    size_t given, total; // plain: start and wait order them
    pthread_t self;
    bool elsewhere;
};

static void add(void *context)
{
    struct sum *s = context;
    s->total += s->given;
    s->elsewhere = !pthread_equal(s->self, pthread_self());
}

static void tasks_run_in_order(void **state)
{
    (void)state;
    struct hm_beside *beside;
    struct sum s = {.self = pthread_self()};
    assert_int_equal(hm_beside_open(&beside, NULL), HM_OK);
    for (size_t i = 1; i <= 2000; i++) {
        s.given = i;
        hm_beside_start(beside, add, &s);
        hm_beside_wait(beside);
        assert_int_equal(s.total, i * (i + 1) / 2);
        assert_true(s.elsewhere);
    }
    hm_beside_wait(beside); // nothing to wait for
    hm_beside_close(beside);
    assert_int_equal(hm_beside_open(&beside, NULL), HM_OK);
    hm_beside_close(beside); // without a task
    hm_beside_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
