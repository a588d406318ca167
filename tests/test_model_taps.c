// Taps (model.h, hm_taps): the residual stream at the inputs of layers. Equal to PyTorch's within the tolerance of
// logits; the same bits in chunks, prefills and trees; in their places and nowhere else; without any trace in the
// logits.
#include "tests/model_support.h"

#include "decode/safetensors.h"

#include <math.h>

enum { PREFIX = 120, NODES = 110 }; // both more than one chunk

static void download(struct hm_device *d, struct hm_buffer *buffer, float *to, size_t floats)
{
    d->ops->download(d, to, (struct hm_view){.buffer = buffer}, floats);
}

static void same(const float *want, const float *have, size_t n, const char *what, size_t place)
{
    if (memcmp(want, have, n * sizeof *want) != 0) fail_msg("%s: taps of token %zu differ", what, place);
}

// A golden file of EAGLE-3 holds the taps of a trained target, computed by PyTorch.
static void test_against_pytorch(void **state)
{
    (void)state;
    struct hm_error err = {0};
    struct hm_safetensors *golden;
    struct hm_device *device = open_device(1, HM_ISA_BEST);
    struct hm_model *model;
    expect_ok(hm_safetensors_open("tests/data/eagle3/tiny/golden.safetensors", &golden, &err), &err);
    expect_ok(hm_model_open("models/tiny-qwen3", device, &model, &err), &err);
    const struct hm_tensor *tokens = hm_safetensors_find(golden, "tokens"), *taps = hm_safetensors_find(golden, "taps");
    size_t count = taps->shape[0], width = taps->shape[1], layers = hm_model_info(model)->layers;
    const size_t layer[] = {2, layers / 2, layers - 3};
    struct hm_buffer *buffer = device->ops->alloc(device, count * width);
    struct hm_taps wanted = {layer, 3, {.buffer = buffer}};
    struct hm_cache *cache = open_cache(model, count);
    int32_t token[64];
    float *want = malloc(taps->bytes), *have = malloc(taps->bytes);
    for (size_t i = 0; i < count; i++) {
        int64_t wide;
        memcpy(&wide, tokens->data + i * sizeof wide, sizeof wide);
        token[i] = (int32_t)wide;
    }
    memcpy(want, taps->data, taps->bytes);
    struct hm_prefill_watch watch = {.taps = &wanted};
    expect_ok(hm_model_prefill(model, cache, token, count, NULL, &watch, &err), &err);
    download(device, buffer, have, count * width);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < count * width; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        difference = fmax(difference, fabs((double)want[i] - (double)have[i]));
    }
    print_message("max |difference| %.3g, %.3g of the largest value\n", difference, difference / largest);
    assert_true(difference <= 1e-4 * largest);
    free(want);
    free(have);
    device->ops->release(device, buffer);
    hm_cache_close(cache);
    hm_model_close(model);
    hm_device_close(device);
    hm_safetensors_close(golden);
}

// What a prefill hands over, chunk by chunk.
struct collected {
    struct hm_device *device;
    struct hm_buffer *buffer;
    float *taps;
    size_t width, rows, calls, fail_at;
};

static hm_status collect(void *user, size_t rows, struct hm_error *err)
{
    struct collected *c = user;
    if (++c->calls == c->fail_at) return hm_fail(err, HM_USAGE, "enough");
    download(c->device, c->buffer, c->taps + c->rows * c->width, rows * c->width);
    c->rows += rows;
    return HM_OK;
}

struct setting {
    struct hm_device *device;
    struct hm_model *model;
    struct hm_cache *cache;
    struct hm_buffer *buffer;
    struct hm_taps taps;
    size_t layer[8], hidden, width; // width of all taps of a token
};

static void open_setting(struct setting *s, const char *name, unsigned threads, uint64_t *seed)
{
    *s = (struct setting){.device = open_device(threads, HM_ISA_BEST)};
    s->model = open_model(name, s->device);
    s->cache = open_cache(s->model, PREFIX + 2 * NODES);
    s->hidden = hm_model_info(s->model)->hidden;
    size_t layers = hm_model_info(s->model)->layers, count = 0;
    for (size_t i = 0; i < layers && count < 8; i++)
        if (draw(seed, 3)) s->layer[count++] = i;
    if (!count) s->layer[count++] = layers - 1;
    s->width = count * s->hidden;
    s->buffer = s->device->ops->alloc(s->device, (PREFIX + NODES) * s->width);
    s->taps = (struct hm_taps){s->layer, count, {.buffer = s->buffer}};
}

static void close_setting(struct setting *s)
{
    s->device->ops->release(s->device, s->buffer);
    hm_cache_close(s->cache);
    hm_model_close(s->model);
    hm_device_close(s->device);
}

// Taps of the whole sequence, one token a pass.
static void plain_taps(struct setting *s, const int32_t *token, size_t count, float *taps)
{
    struct hm_error err = {0};
    int32_t parent = -1;
    uint32_t only = 0;
    hm_cache_truncate(s->cache, 0);
    for (size_t i = 0; i < count; i++) {
        struct hm_pass pass = {token + i, &parent, 1, NULL, 0, &s->taps};
        expect_ok(hm_model_forward(s->model, s->cache, &pass, NULL, &err), &err);
        expect_ok(hm_cache_commit(s->cache, &only, 1, &err), &err);
        download(s->device, s->buffer, taps + i * s->width, s->width);
    }
}

// A tree of random shape behind a prefix: each node's taps are those of its path as a plain sequence.
static void tree_taps(struct setting *s, struct setting *other, const int32_t *token, size_t prefix, uint64_t *seed)
{
    struct hm_error err = {0};
    int32_t node[NODES], parent[NODES], path[PREFIX + NODES];
    uint32_t depth[NODES];
    float *have = malloc(NODES * s->width * sizeof *have), *want = malloc((PREFIX + NODES) * s->width * sizeof *want);
    hm_cache_truncate(s->cache, prefix);
    for (size_t r = 0; r < NODES; r++) {
        uint32_t back = 1 + draw(seed, 6);
        node[r] = (int32_t)draw(seed, (uint32_t)hm_model_info(s->model)->vocab);
        parent[r] = back > r ? -1 : (int32_t)(r - back);
        if (parent[r] >= 0 && depth[parent[r]] == 9) parent[r] = -1;
        depth[r] = parent[r] < 0 ? 0 : depth[parent[r]] + 1;
    }
    struct hm_taps at = s->taps;
    at.to.offset = s->width * 3; // anywhere
    struct hm_pass pass = {node, parent, NODES, NULL, 0, &at};
    expect_ok(hm_model_forward(s->model, s->cache, &pass, NULL, &err), &err);
    s->device->ops->download(s->device, have, at.to, NODES * s->width);
    hm_cache_drop_scratch(s->cache);
    memcpy(path, token, prefix * sizeof *path);
    for (size_t r = NODES - 8; r < NODES; r++) {
        size_t length = prefix + depth[r] + 1, end = length;
        for (int32_t i = (int32_t)r; i >= 0; i = parent[i]) path[--end] = node[i];
        plain_taps(other, path, length, want);
        same(want + (length - 1) * s->width, have + r * s->width, s->width, "tree", r);
    }
    free(have);
    free(want);
}

static void bits_of(const char *name, uint64_t *seed)
{
    struct setting plain, tested;
    uint64_t layers = *seed;
    open_setting(&plain, name, 1, seed);
    open_setting(&tested, name, 2, &layers); // the same layers
    size_t width = plain.width, vocab = hm_model_info(plain.model)->vocab;
    int32_t token[PREFIX];
    float *want = malloc(PREFIX * width * sizeof *want);
    struct collected c = {tested.device, tested.buffer, malloc(PREFIX * width * sizeof *want), width, 0, 0, 0};
    for (size_t i = 0; i < PREFIX; i++) token[i] = (int32_t)draw(seed, (uint32_t)vocab);
    plain_taps(&plain, token, PREFIX, want);

    struct hm_error err = {0};
    struct hm_prefill_watch watch = {.taps = &tested.taps, .tapped = collect, .user = &c};
    float *with = malloc(vocab * sizeof *with), *without = malloc(vocab * sizeof *without);
    expect_ok(hm_model_prefill(tested.model, tested.cache, token, PREFIX, with, &watch, &err), &err);
    assert_int_equal(c.rows, PREFIX);
    assert_int_equal(c.calls, (PREFIX + HM_PREFILL_ROWS - 1) / HM_PREFILL_ROWS);
    for (size_t i = 0; i < PREFIX; i++) same(want + i * width, c.taps + i * width, width, "prefill", i);
    hm_cache_truncate(tested.cache, 0);
    expect_ok(hm_model_prefill(tested.model, tested.cache, token, PREFIX, without, NULL, &err), &err);
    assert_memory_equal(with, without, vocab * sizeof *with);

    tree_taps(&tested, &plain, token, 1 + draw(seed, PREFIX), seed);
    free(want);
    free(c.taps);
    free(with);
    free(without);
    close_setting(&plain);
    close_setting(&tested);
}

static void test_bits(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    bits_of("qwen2-f16", &seed);
    bits_of("qwen3-bf16", &seed);
}

static void test_refusals(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct setting s;
    struct hm_error err = {0};
    open_setting(&s, "llama-sharded-bf16", 1, &seed);
    int32_t token[PREFIX] = {0}, parent = -1;
    size_t layers = hm_model_info(s.model)->layers, twice[] = {1, 1}, beyond[] = {0, layers};
    const size_t *const bad[] = {twice, beyond};
    for (size_t i = 0; i < 2; i++) {
        char message[128];
        struct hm_taps taps = {bad[i], 2, s.taps.to};
        struct hm_pass pass = {token, &parent, 1, NULL, 0, &taps};
        assert_int_equal(hm_model_forward(s.model, s.cache, &pass, NULL, &err), HM_USAGE);
        snprintf(message, sizeof message, "tap 1: expected ascending layers below %zu, found %zu", layers, bad[i][1]);
        assert_string_equal(err.message, message);
        assert_int_equal(hm_cache_scratch(s.cache), 0);
    }
    // A watcher that fails ends the prefill and takes its tokens back.
    struct collected c = {s.device, s.buffer, malloc(PREFIX * s.width * sizeof(float)), s.width, 0, 0, 2};
    struct hm_prefill_watch watch = {.taps = &s.taps, .tapped = collect, .user = &c};
    expect_ok(hm_model_prefill(s.model, s.cache, token, 5, NULL, NULL, &err), &err);
    assert_int_equal(hm_model_prefill(s.model, s.cache, token, PREFIX, NULL, &watch, &err), HM_USAGE);
    assert_string_equal(err.message, "enough");
    assert_int_equal(hm_cache_length(s.cache), 5);
    free(c.taps);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_pytorch), cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
