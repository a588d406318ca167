// Opening a CPU device and its pool of threads: what is refused and with which words, and that a loop is done once and
// completely however many threads share it.
#include "test_kernels.h"

#include "kernels/bench.h"

#include <fenv.h>
#include <stdatomic.h>

static void opens_what_it_is_asked_for(void **state)
{
    (void)state;
    struct hm_device *device;
    unsetenv("HALLMARK_ISA");
    assert_int_equal(hm_device_open_cpu(3, HM_ISA_PORTABLE, &device, NULL), HM_OK);
    assert_string_equal(device->detail, "portable, 3 threads");
    assert_string_equal(device->backend, "cpu-fma256");
    hm_device_close(device);
    assert_int_equal(hm_device_open_cpu(0, HM_ISA_BEST, &device, NULL), HM_OK);
    hm_device_close(device);
    setenv("HALLMARK_ISA", "portable", 1);
    assert_int_equal(hm_device_open_cpu(1, HM_ISA_BEST, &device, NULL), HM_OK);
    assert_string_equal(device->detail, "portable, 1 thread");
    hm_device_close(device);
    unsetenv("HALLMARK_ISA");
    hm_device_close(NULL);
}

static void refusals_say_what_was_expected(void **state)
{
    (void)state;
    struct hm_device *device;
    struct hm_error err;
    setenv("HALLMARK_ISA", "sse9", 1);
    assert_int_equal(hm_device_open_cpu(1, HM_ISA_BEST, &device, &err), HM_USAGE);
    assert_string_equal(err.message, "HALLMARK_ISA: expected portable, avx2 or avx512, found \"sse9\"");
    assert_null(device);
    unsetenv("HALLMARK_ISA");
    assert_int_equal(hm_device_open_cpu(257, HM_ISA_BEST, &device, &err), HM_USAGE);
    assert_string_equal(err.message, "threads: expected 1 to 256, found 257");
    assert_null(device);
}

// A process whose arithmetic has been tampered with would give other bits.
static void unusual_arithmetic_is_refused(void **state)
{
    (void)state;
    struct hm_device *device;
    struct hm_error err;
    fesetround(FE_UPWARD);
    hm_status status = hm_device_open_cpu(1, HM_ISA_BEST, &device, &err);
    fesetround(FE_TONEAREST);
    assert_int_equal(status, HM_UNSUPPORTED);
    assert_non_null(strstr(err.message, "expected rounding to nearest"));
#if defined(__x86_64__)
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8000);
    status = hm_device_open_cpu(1, HM_ISA_BEST, &device, &err);
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(status, HM_UNSUPPORTED);
    assert_non_null(strstr(err.message, "(FTZ)"));
    __builtin_ia32_ldmxcsr(before | 0x0040);
    status = hm_device_open_cpu(1, HM_ISA_BEST, &device, &err);
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(status, HM_UNSUPPORTED);
    assert_non_null(strstr(err.message, "(DAZ)"));
#endif
}

struct count {
    atomic_uint *times;
    atomic_bool *busy; // per worker
    atomic_bool clash;
};

static void count_unit(void *context, size_t unit, unsigned worker)
{
    struct count *count = context;
    if (atomic_exchange(&count->busy[worker], true)) atomic_store(&count->clash, true);
    atomic_fetch_add(&count->times[unit], 1);
    for (volatile size_t i = 0; i < unit % 7 * 20; i++) continue; // units take different times
    atomic_store(&count->busy[worker], false);
}

// Each unit once, no worker index twice at a time, also with many more threads than cores and loops of one unit.
static void every_unit_is_done_once(void **state)
{
    (void)state;
    seed_from_environment("every_unit_is_done_once");
    enum { UNITS = 300 };
    static atomic_uint times[UNITS];
    static atomic_bool busy[HM_POOL_MOST];
    for (unsigned threads = 1; threads <= 40; threads = threads * 2 + 1) {
        struct hm_pool *pool;
        assert_int_equal(hm_pool_open(threads, &pool, NULL), HM_OK);
        assert_int_equal(hm_pool_threads(pool), threads);
        for (int loop = 0; loop < 400; loop++) {
            struct count count = {.times = times, .busy = busy};
            size_t units = random_below(loop % 3 ? 12 : UNITS);
            for (size_t i = 0; i < UNITS; i++) atomic_store(&times[i], 0);
            hm_pool_run(pool, count_unit, &count, units);
            for (size_t i = 0; i < UNITS; i++) assert_int_equal(atomic_load(&times[i]), i < units);
            assert_false(atomic_load(&count.clash));
            // Now and then let the workers fall asleep.
            if (loop % 50 == 0) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        }
        hm_pool_close(pool);
    }
    hm_pool_close(NULL);
}

struct blocked {
    atomic_size_t done;
    size_t units;
    atomic_bool gave_up;
};

// Unit 0 ends only when all others have ended.
static void blocked_unit(void *context, size_t unit, unsigned worker)
{
    (void)worker;
    struct blocked *blocked = context;
    if (unit == 0) {
        time_t end = time(NULL) + 60;
        while (atomic_load(&blocked->done) + 1 < blocked->units && !atomic_load(&blocked->gave_up)) {
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            if (time(NULL) > end) atomic_store(&blocked->gave_up, true);
        }
    }
    atomic_fetch_add(&blocked->done, 1);
}

// A thread that is held up keeps one unit; the others do the rest of its range.
static void idle_threads_help(void **state)
{
    (void)state;
    for (unsigned threads = 2; threads <= 5; threads++) {
        struct hm_pool *pool;
        assert_int_equal(hm_pool_open(threads, &pool, NULL), HM_OK);
        struct blocked blocked = {.units = 40};
        hm_pool_run(pool, blocked_unit, &blocked, blocked.units);
        assert_false(atomic_load(&blocked.gave_up));
        hm_pool_close(pool);
    }
}

static void ceilings_are_plausible(void **state)
{
    (void)state;
    struct hm_device *device;
    assert_int_equal(hm_device_open_cpu(2, HM_ISA_BEST, &device, NULL), HM_OK);
    double bytes, flops;
    hm_bench_ceilings(device, &bytes, &flops);
    print_message("%s: %.1f GB/s, %.1f GFLOP/s\n", device->detail, bytes * 1e-9, flops * 1e-9);
    assert_true(bytes > 1e6 && bytes < 1e14);
    assert_true(flops > 1e6 && flops < 1e15);
    hm_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_what_it_is_asked_for),
        cmocka_unit_test(refusals_say_what_was_expected),
        cmocka_unit_test(unusual_arithmetic_is_refused),
        cmocka_unit_test(every_unit_is_done_once),
        cmocka_unit_test(idle_threads_help),
        cmocka_unit_test(ceilings_are_plausible),
    };
    return cmocka_run_group_tests_name("kernels_device", tests, NULL, NULL);
}
