// Shared by the tests of models: opening with a message on failure, and a small generator with a printed seed.
#ifndef HM_TESTS_MODEL_SUPPORT_H
#define HM_TESTS_MODEL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const checkpoints[] = {"qwen3-bf16", "qwen3-bias-f32", "qwen2-f16", "llama3-f32",
                                          "llama-sharded-bf16"};
enum { CHECKPOINTS = sizeof checkpoints / sizeof *checkpoints };

static inline void expect_ok(hm_status rc, const struct hm_error *err)
{
    if (rc) fail_msg("status %d: %s", (int)rc, err->message);
}

static inline struct hm_device *open_device(unsigned threads, enum hm_isa isa)
{
    struct hm_error err = {0};
    struct hm_device *device = NULL;
    hm_status rc = hm_device_open_cpu(threads, isa, &device, &err);
    if (rc == HM_UNSUPPORTED) return NULL; // this machine cannot
    expect_ok(rc, &err);
    return device;
}

static inline struct hm_model *open_model(const char *name, struct hm_device *device)
{
    struct hm_error err = {0};
    struct hm_model *model = NULL;
    char dir[256];
    snprintf(dir, sizeof dir, "tests/data/checkpoints/%s", name);
    expect_ok(hm_model_open(dir, device, &model, &err), &err);
    return model;
}

static inline struct hm_cache *open_cache(struct hm_model *model, size_t positions)
{
    struct hm_error err = {0};
    struct hm_cache *cache = NULL;
    expect_ok(hm_cache_open(model, positions, &cache, &err), &err);
    return cache;
}

// Seed of a test: HM_SEED, or a fixed one; printed so that a failure can be repeated.
static inline uint64_t test_seed(void)
{
    const char *text = getenv("HM_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261129;
    print_message("HM_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

// splitmix64, reduced to [0, below).
static inline uint32_t draw(uint64_t *state, uint32_t below)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) % below);
}

#endif
