// Shared by the tests of EAGLE-3 heads that draft: a golden file of tests/data/eagle3 with its head and a target for
// it.
#ifndef HM_TESTS_EAGLE3_GOLDEN_H
#define HM_TESTS_EAGLE3_GOLDEN_H

#include "tests/eagle3_support.h"

// A golden file, its head and a target for it.
struct golden {
    struct hm_safetensors *file;
    struct hm_device *device, *peer; // of the target; of the drafter, where it has one of its own
    struct hm_model *target;
    struct hm_drafter *drafter;
    size_t length, tap_width, vocab;
    int32_t token[64];
    float *taps;
};

static inline const struct hm_tensor *tensor(const struct golden *g, const char *name)
{
    const struct hm_tensor *t = hm_safetensors_find(g->file, name);
    if (!t) fail_msg("no tensor %s", name);
    return t;
}

static inline float *floats_of(const struct hm_tensor *t)
{
    float *copy = malloc(t->bytes);
    memcpy(copy, t->data, t->bytes);
    return copy;
}

static inline void tokens_of(const struct golden *g, const char *name, int32_t *token)
{
    const struct hm_tensor *t = tensor(g, name);
    for (size_t i = 0; i < t->shape[0]; i++) {
        int64_t wide;
        memcpy(&wide, t->data + i * sizeof wide, sizeof wide);
        token[i] = (int32_t)wide;
    }
}

static inline struct hm_drafter *open_drafter(struct golden *g, const char *dir, size_t width, size_t depth)
{
    struct hm_error err = {0};
    struct hm_drafter *drafter = NULL;
    struct hm_eagle3_options options = {.positions = 64, .width = width, .depth = depth};
    struct hm_device *device = g->peer ? g->peer : g->device;
    expect_ok(hm_drafter_open_eagle3(dir, g->target, device, &options, &drafter, &err), &err);
    return drafter;
}

enum place { SAME_DEVICE, PEER };

static inline void open_golden(struct golden *g, const char *name, size_t width, size_t depth, enum place place)
{
    char dir[128], path[160];
    bool tiny = strcmp(name, "tiny") == 0;
    struct hm_error err = {0};
    *g = (struct golden){.device = open_device(1, HM_ISA_BEST)};
    if (place == PEER) expect_ok(hm_device_open_peer(g->device, 2, &g->peer, &err), &err);
    snprintf(dir, sizeof dir, tiny ? "models/tiny-eagle3" : "tests/data/eagle3/%s", name);
    snprintf(path, sizeof path, "tests/data/eagle3/%s/golden.safetensors", name);
    g->file = open_tensors(path);
    const struct hm_tensor *taps = tensor(g, "taps"), *table = hm_safetensors_find(g->file, "target.embed_tokens"),
                           *head = hm_safetensors_find(g->file, "target.lm_head");
    g->taps = floats_of(taps);
    g->tap_width = taps->shape[1];
    g->length = tensor(g, "tokens")->shape[0];
    tokens_of(g, "tokens", g->token);
    if (tiny)
        expect_ok(hm_model_open("models/tiny-qwen3", g->device, &g->target, &err), &err);
    else // the head that brings a table of its own is for a wider target
        g->target = zero_target(g->device, 48, table ? table->shape[1] : 40, 36, table ? table->data : NULL,
                                head ? head->data : NULL);
    g->drafter = open_drafter(g, dir, width, depth);
    g->vocab = g->drafter->vocab;
}

static inline void close_golden(struct golden *g)
{
    hm_drafter_close(g->drafter);
    hm_model_close(g->target);
    hm_device_close(g->peer);
    hm_device_close(g->device);
    hm_safetensors_close(g->file);
    free(g->taps);
}

static inline size_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static inline void propose(struct golden *g, const int32_t *context, size_t length, size_t depth, struct hm_pool *pool)
{
    struct hm_error err = {0};
    expect_ok(g->drafter->ops->propose(g->drafter, context, length, depth, pool, &err), &err);
}

static inline void same_row(const float *want, const float *have, size_t vocab, const char *what)
{
    assert_non_null(want);
    assert_non_null(have);
    if (memcmp(want, have, vocab * sizeof *want) != 0) fail_msg("%s: rows differ in %zu", what, argmax(have, vocab));
}

#endif
