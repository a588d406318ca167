// Logits against Hugging Face transformers in float32 on the CPU (tools/make_parity_goldens.py): every architecture,
// weight type, bias, tie and RoPE setting. Rounding differs, so the bound is 1e-4 of the largest logit, and the first
// token of every row must agree. The inputs of the layers (taps) of the last tokens are held to the same bound.
#include "tests/model_support.h"

#include "decode/safetensors.h"

#include <math.h>

static size_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

// All rows of a sequence in one causal pass; inputs [count][layers][hidden].
static void logits_of(struct hm_model *model, const int32_t *token, size_t count, float *logits, float *inputs)
{
    struct hm_error err = {0};
    struct hm_cache *cache = open_cache(model, count);
    int32_t *parent = malloc(count * sizeof *parent);
    uint32_t *every = malloc(count * sizeof *every);
    for (size_t i = 0; i < count; i++) parent[i] = (int32_t)i - 1, every[i] = (uint32_t)i;
    const struct hm_model_info *info = hm_model_info(model);
    struct hm_device *d = hm_model_device(model);
    size_t layer[8], floats = count * info->layers * info->hidden;
    for (size_t i = 0; i < info->layers; i++) layer[i] = i;
    struct hm_taps taps = {layer, info->layers, {.buffer = d->ops->alloc(d, floats)}};
    struct hm_pass pass = {token, parent, count, every, count, &taps};
    expect_ok(hm_model_forward(model, cache, &pass, logits, &err), &err);
    d->ops->download(d, inputs, taps.to, floats);
    d->ops->release(d, taps.to.buffer);
    free(parent);
    free(every);
    hm_cache_close(cache);
}

// want [layers][rows][hidden]: of the last rows of have [count][layers][hidden].
static void inputs_agree(const char *name, const struct hm_tensor *t, const float *have, size_t count)
{
    size_t layers = t->shape[0], rows = t->shape[1], hidden = t->shape[2];
    float *want = malloc(t->bytes);
    double largest = 0, difference = 0;
    memcpy(want, t->data, t->bytes);
    for (size_t i = 0; i < layers * rows * hidden; i++) {
        size_t layer = i / (rows * hidden), row = count - rows + i / hidden % rows;
        double x = (double)want[i], y = (double)have[(row * layers + layer) * hidden + i % hidden];
        largest = fmax(largest, fabs(x));
        difference = fmax(difference, fabs(x - y));
    }
    print_message("%s: inputs of %zu layers: max |difference| %.3g, %.3g of the largest\n", name, layers, difference,
                  difference / largest);
    assert_true(difference <= 1e-4 * largest);
    free(want);
}

static void agrees(const char *name)
{
    struct hm_error err = {0};
    struct hm_safetensors *golden;
    char path[256];
    snprintf(path, sizeof path, "tests/data/parity/%s.safetensors", name);
    expect_ok(hm_safetensors_open(path, &golden, &err), &err);
    const struct hm_tensor *tokens = hm_safetensors_find(golden, "tokens"),
                           *expected = hm_safetensors_find(golden, "logits");
    assert_non_null(tokens);
    assert_non_null(expected);
    size_t count = tokens->shape[0], vocab = expected->shape[1];
    int32_t *token = malloc(tokens->bytes);
    float *want = malloc(expected->bytes), *have = malloc(expected->bytes);
    memcpy(token, tokens->data, tokens->bytes);
    memcpy(want, expected->data, expected->bytes);

    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_model *model = open_model(name, device);
    assert_int_equal(hm_model_info(model)->vocab, vocab);
    const struct hm_model_info *info = hm_model_info(model);
    float *inputs = malloc(count * info->layers * info->hidden * sizeof *inputs);
    logits_of(model, token, count, have, inputs);
    inputs_agree(name, hm_safetensors_find(golden, "inputs"), inputs, count);
    free(inputs);
    double largest = 1, difference = 0;
    for (size_t i = 0; i < count * vocab; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        difference = fmax(difference, fabs((double)want[i] - (double)have[i]));
    }
    print_message("%s: max |difference| %.3g, %.3g of the largest logit\n", name, difference, difference / largest);
    assert_true(difference <= 1e-4 * largest);
    for (size_t r = 0; r < count; r++)
        assert_int_equal(argmax(want + r * vocab, vocab), argmax(have + r * vocab, vocab));
    hm_model_close(model);
    hm_device_close(device);
    hm_safetensors_close(golden);
    free(token);
    free(want);
    free(have);
}

static void test_checkpoints(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECKPOINTS; i++) agrees(checkpoints[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checkpoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
