// What the kernel tests share: seeded numbers, the devices to compare, and output arrays between canaries.
#ifndef HM_TESTS_TEST_KERNELS_H
#define HM_TESTS_TEST_KERNELS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/reference.h"
#include "kernels/cpu/widen.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define UNIT_ROUNDOFF 0x1p-24

static uint64_t random_state;

// HM_SEED, or the time; printed so that a failure can be repeated.
static inline void seed_from_environment(const char *test)
{
    const char *text = getenv("HM_SEED");
    random_state = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    print_message("%s: HM_SEED=%llu\n", test, (unsigned long long)random_state);
}

static inline uint32_t random_bits(void) // splitmix64
{
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static inline size_t random_below(size_t n)
{
    return random_bits() % n;
}

static inline float random_unit(void) // [-1, 1)
{
    return (float)(random_bits() >> 8) * 0x1p-23f - 1.0f;
}

enum values { ORDINARY, WIDE, TINY, SPARSE, VALUE_KINDS }; // WIDE: all exponents; TINY: around the subnormals

static inline float random_value(enum values kind)
{
    switch (kind) {
    case WIDE: return ldexpf(random_unit(), (int)random_below(120) - 60);
    case TINY: return ldexpf(random_unit(), -(int)random_below(80) - 70);
    case SPARSE: return random_below(3) ? 0.0f * random_unit() : random_unit();
    default: return random_unit();
    }
}

static inline float *random_floats(size_t count, enum values kind)
{
    float *values = calloc(count + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) values[i] = random_value(kind);
    return values;
}

// gamma_n = n u / (1 - n u): the relative error of n roundings.
static inline double gamma_of(double n)
{
    return n * UNIT_ROUNDOFF / (1 - n * UNIT_ROUNDOFF);
}

// Each instruction set the machine has, with some number of threads.
enum { DEVICES_MOST = 9 };

struct devices {
    struct hm_device *at[DEVICES_MOST];
    size_t count;
};

static inline void open_devices(struct devices *devices)
{
    devices->count = 0;
    for (int isa = HM_ISA_PORTABLE; isa < HM_ISA_BEST; isa++)
        for (unsigned threads = 1; threads <= 4; threads++) {
            if (isa == HM_ISA_PORTABLE && threads != 1 && threads != 3) continue; // it is slow
            if (isa == HM_ISA_AVX2 && threads == 2) continue;
            struct hm_device *device;
            if (hm_device_open_cpu(threads, (enum hm_isa)isa, &device, NULL)) continue;
            devices->at[devices->count++] = device;
        }
    assert_true(devices->count >= 2);
}

static inline void close_devices(struct devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) hm_device_close(devices->at[i]);
}

// A device array between canaries, at an address that is no multiple of anything.
enum { CANARY = 77 };

struct guarded {
    struct hm_device *device;
    struct hm_view view;
    size_t floats;
};

static inline struct guarded guarded_new(struct hm_device *device, const float *from, size_t floats)
{
    struct guarded array = {device, {device->ops->alloc(device, floats + 2 * CANARY), CANARY}, floats};
    assert_non_null(array.view.buffer);
    float mark[CANARY];
    for (size_t i = 0; i < CANARY; i++) mark[i] = (float)i - 0.125f;
    device->ops->upload(device, (struct hm_view){array.view.buffer, 0}, mark, CANARY);
    device->ops->upload(device, (struct hm_view){array.view.buffer, CANARY + floats}, mark, CANARY);
    if (from) device->ops->upload(device, array.view, from, floats);
    return array;
}

static inline void guarded_check(const struct guarded *array)
{
    float *all = calloc(array->floats + 2 * CANARY, sizeof *all);
    assert_non_null(all);
    array->device->ops->download(array->device, all, (struct hm_view){array->view.buffer, 0},
                                 array->floats + 2 * CANARY);
    for (size_t i = 0; i < CANARY; i++) {
        assert_true(all[i] == (float)i - 0.125f);
        assert_true(all[CANARY + array->floats + i] == (float)i - 0.125f);
    }
    free(all);
}

// Checks the canaries and the bits (expected may be NULL), then releases the array.
static inline void guarded_end(struct guarded *array, const float *expected, const char *what)
{
    guarded_check(array);
    float *found = calloc(array->floats + 1, sizeof *found);
    assert_non_null(found);
    array->device->ops->download(array->device, found, array->view, array->floats);
    for (size_t i = 0; expected && i < array->floats; i++)
        if (hm_float_bits(found[i]) != hm_float_bits(expected[i]))
            fail_msg("%s on %s: element %zu of %zu: expected %a, found %a", what, array->device->detail, i,
                     array->floats, (double)expected[i], (double)found[i]);
    free(found);
    array->device->ops->release(array->device, array->view.buffer);
}

#endif
