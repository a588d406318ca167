// Attention: the bits of the reference on every instruction set, whatever rows are grouped and wherever slots lie, and
// an error against double within the bound derived below.
#include "test_kernels.h"

// A random call: a cache, queries, and rows of which each sees a prefix and a tail of scattered slots.
struct call {
    struct hm_attention_shape shape;
    size_t slots, width, q_stride;
    float *keys, *values, *q, *expected;
    struct hm_visible *visible;
    uint32_t *tails;
};

static size_t length_of(const struct hm_visible *visible)
{
    return (size_t)visible->prefix + visible->tail_length;
}

enum form { CAUSAL, TREE, MIXED, FORMS };

// prefix: of the tree, or of the first causal row.
static struct call call_new(enum form form, size_t rows, size_t kv_heads, size_t group, size_t head_dim, size_t prefix,
                            enum values kind)
{
    enum { TAIL = 70 };
    struct call c = {.slots = prefix + rows + 2 * TAIL + 1, .width = kv_heads * head_dim};
    c.shape = (struct hm_attention_shape){rows, kv_heads * group, kv_heads, head_dim, 1.0f / sqrtf((float)head_dim)};
    c.q_stride = c.shape.heads * head_dim + 5;
    c.keys = random_floats(c.slots * c.width, kind);
    c.values = random_floats(c.slots * c.width, kind);
    c.q = random_floats(rows * c.q_stride, kind);
    for (size_t i = 0; kind == ORDINARY && i < rows * c.q_stride; i++) c.q[i] *= 4;
    c.expected = calloc(rows * c.shape.heads * head_dim, sizeof(float));
    c.visible = calloc(rows, sizeof *c.visible);
    c.tails = calloc(rows * TAIL, sizeof *c.tails);
    assert_true(c.expected && c.visible && c.tails);
    for (size_t r = 0; r < rows; r++) {
        uint32_t *tail = c.tails + r * TAIL;
        struct hm_visible *visible = &c.visible[r];
        visible->tail = tail;
        visible->prefix = (uint32_t)(form == TREE     ? prefix
                                     : form == CAUSAL ? prefix + r + 1
                                                      : 1 + random_below(prefix + 1));
        if (form != CAUSAL) visible->tail_length = (uint32_t)random_below(form == TREE ? 10 : TAIL);
        if (length_of(visible) == 0) visible->tail_length = 1; // a node sees itself
        for (size_t i = 0; i < TAIL; i++) tail[i] = (uint32_t)(prefix + random_below(c.slots - prefix));
    }
    return c;
}

static void call_free(struct call *c)
{
    free(c->keys);
    free(c->values);
    free(c->q);
    free(c->expected);
    free(c->visible);
    free(c->tails);
}

static void find_expected(struct call *c)
{
    size_t out_width = c->shape.heads * c->shape.head_dim;
    for (size_t r = 0; r < c->shape.rows; r++) {
        float *score = calloc(length_of(&c->visible[r]), sizeof *score);
        assert_non_null(score);
        hm_reference_attention(&c->shape, &c->visible[r], c->q + r * c->q_stride, c->keys, c->values,
                               c->expected + r * out_width, score);
        free(score);
    }
}

static void compare_on(struct hm_device *device, const struct call *c, const char *what)
{
    size_t out = c->shape.rows * c->shape.heads * c->shape.head_dim;
    struct guarded keys = guarded_new(device, c->keys, c->slots * c->width);
    struct guarded values = guarded_new(device, c->values, c->slots * c->width);
    struct guarded q = guarded_new(device, c->q, c->shape.rows * c->q_stride), y = guarded_new(device, NULL, out);
    device->ops->attention(device, &c->shape, c->visible, q.view, c->q_stride, keys.view, values.view, y.view);
    guarded_end(&y, c->expected, what);
    guarded_end(&q, c->q, "queries");
    guarded_end(&keys, c->keys, "keys");
    guarded_end(&values, c->values, "values");
}

static size_t random_head_dim(void)
{
    static const size_t dims[] = {1, 8, 16, 24, 32, 48, 64, 72, 80, 96, 128, 256};
    return dims[random_below(sizeof dims / sizeof *dims)];
}

static void same_bits_everywhere(void **state)
{
    (void)state;
    seed_from_environment("attention: same_bits_everywhere");
    struct devices devices;
    open_devices(&devices);
    for (int trial = 0; trial < 90; trial++) {
        size_t prefix = trial % 4 ? random_below(200) : 62 + random_below(5); // around the block of 64
        struct call c =
            call_new((enum form)(trial % FORMS), 1 + random_below(trial % 7 ? 6 : 45), 1 + random_below(3),
                     1 + random_below(6), random_head_dim(), prefix, (enum values)(trial / FORMS % VALUE_KINDS));
        find_expected(&c);
        for (size_t d = 0; d < devices.count; d++) compare_on(devices.at[d], &c, "attention");
        call_free(&c);
    }
    close_devices(&devices);
}

// Scores that find no room in the scratch are computed twice; nothing else changes.
static void little_scratch_gives_the_same_bits(void **state)
{
    (void)state;
    seed_from_environment("little_scratch_gives_the_same_bits");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct call c = call_new((enum form)(d % FORMS), 5, 2, 3, 64, 300, ORDINARY);
        find_expected(&c);
        struct hm_cpu_device *device = hm_cpu_device(devices.at[d]);
        size_t all = device->scratch_floats;
        // From two floats per query, which keep no score, to room for some blocks of one row.
        for (size_t floats = 6; floats < 3000; floats = floats * 3 + 1) {
            device->scratch_floats = floats;
            compare_on(devices.at[d], &c, "attention with little scratch");
        }
        device->scratch_floats = all;

        // The device then takes one row at a time; the kernel itself can take them all.
        enum { HEADS = 6, DIM = 64, OUT = 5 * HEADS * DIM };
        float out[OUT], scratch[15 * (2 + 64)], block[64 * DIM];
        for (size_t head = 0; head < HEADS; head += 3) {
            struct hm_attention_share share = {.shape = &c.shape,
                                               .visible = c.visible,
                                               .q = c.q,
                                               .q_stride = c.q_stride,
                                               .keys = c.keys,
                                               .values = c.values,
                                               .out = out,
                                               .rows = 5,
                                               .first_head = head,
                                               .heads = 3,
                                               .block = block,
                                               .scratch = scratch,
                                               .scratch_floats = d % 2 ? 30 : sizeof scratch / sizeof *scratch};
            device->kernels->attention(&share);
        }
        assert_memory_equal(out, c.expected, sizeof out);
        call_free(&c);
    }
    close_devices(&devices);
}

// A tree row with scattered ancestors has the bits of the same sequence stored contiguously, and of any split of the
// sequence into prefix and tail.
static void slots_do_not_show(void **state)
{
    (void)state;
    seed_from_environment("slots_do_not_show");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++)
        for (size_t length = 60; length < 135; length += 1 + random_below(9)) {
            struct hm_device *device = devices.at[d];
            enum { HEADS = 4, KV_HEADS = 2, DIM = 32, WIDTH = KV_HEADS * DIM, SLOTS = 500, OUT = HEADS * DIM };
            float *keys = random_floats(length * WIDTH, ORDINARY), *values = random_floats(length * WIDTH, ORDINARY);
            float *q = random_floats(OUT, ORDINARY);
            struct guarded k = guarded_new(device, NULL, SLOTS * WIDTH), v = guarded_new(device, NULL, SLOTS * WIDTH);
            struct guarded new_k = guarded_new(device, keys, length * WIDTH);
            struct guarded new_v = guarded_new(device, values, length * WIDTH), query = guarded_new(device, q, OUT);
            struct hm_attention_shape shape = {1, HEADS, KV_HEADS, DIM, 0.25f};
            float first[OUT];
            for (int split = 0; split < 4; split++) {
                size_t prefix = split == 0 ? length : length - 1 - random_below(length < 64 ? 50 : 64);
                uint32_t slot[SLOTS];
                for (size_t i = 0; i < length; i++)
                    slot[i] = (uint32_t)(i < prefix ? i : SLOTS - 1 - (i - prefix) * 3); // descending, with gaps
                device->ops->cache_store(device, new_k.view, new_v.view, WIDTH, k.view, v.view, slot, length, WIDTH);
                struct hm_visible visible = {(uint32_t)prefix, (uint32_t)(length - prefix), slot + prefix};
                struct guarded y = guarded_new(device, NULL, OUT);
                device->ops->attention(device, &shape, &visible, query.view, OUT, k.view, v.view, y.view);
                if (split == 0) device->ops->download(device, first, y.view, OUT);
                guarded_end(&y, first, "the same sequence in other slots");
            }
            guarded_end(&new_k, keys, "keys");
            guarded_end(&new_v, values, "values");
            guarded_end(&k, NULL, "");
            guarded_end(&v, NULL, "");
            guarded_end(&query, q, "query");
            free(keys);
            free(values);
            free(q);
        }
    close_devices(&devices);
}

// Any subset of the rows, in any order, gives each row the bits it has alone.
static void rows_do_not_see_each_other(void **state)
{
    (void)state;
    seed_from_environment("attention: rows_do_not_see_each_other");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct call c = call_new(MIXED, 60, 2, 3, 64, 150, ORDINARY);
        find_expected(&c);
        size_t out = c.shape.heads * c.shape.head_dim;
        for (int trial = 0; trial < 6; trial++) {
            struct call some = c;
            some.shape.rows = 1 + random_below(60);
            some.q = calloc(some.shape.rows * c.q_stride, sizeof(float));
            some.expected = calloc(some.shape.rows * out, sizeof(float));
            some.visible = calloc(some.shape.rows, sizeof *some.visible);
            assert_true(some.q && some.expected && some.visible);
            for (size_t r = 0; r < some.shape.rows; r++) {
                size_t from = random_below(60);
                memcpy(some.q + r * c.q_stride, c.q + from * c.q_stride, c.q_stride * sizeof(float));
                memcpy(some.expected + r * out, c.expected + from * out, out * sizeof(float));
                some.visible[r] = c.visible[from];
            }
            compare_on(devices.at[d], &some, "rows grouped arbitrarily");
            free(some.q);
            free(some.expected);
            free(some.visible);
        }
        call_free(&c);
    }
    close_devices(&devices);
}

// One output in long double, and the bound on the error of the float one.
//
// A score is off by at most g A, with A the largest scale * sum |q k| and g for head_dim/16 fma, 4 folds and the scale.
// Subtracting the maximum rounds once, by at most u times twice the largest score. So each weight is off by a factor of
// at most 1 + e = exp(g A + 2 u A) (1 + 2^-22), the last for exp itself. Weighted sum and sum of weights add
// gamma of 64 + blocks, and both share the maximum, whose error cancels in the quotient.
static long double exact_output(const struct call *c, size_t row, size_t head, size_t i, double *bound)
{
    const struct hm_visible *visible = &c->visible[row];
    size_t length = length_of(visible), d = c->shape.head_dim;
    size_t column = head / (c->shape.heads / c->shape.kv_heads) * d;
    const float *q = c->q + row * c->q_stride + head * d;
    long double *score = calloc(length, sizeof *score), most = -INFINITY, sum = 0, total = 0, largest = 0, size = 0;
    assert_non_null(score);
    for (size_t j = 0; j < length; j++) {
        size_t slot = j < visible->prefix ? j : visible->tail[j - visible->prefix];
        long double terms = 0;
        for (size_t k = 0; k < d; k++) {
            score[j] += (long double)q[k] * c->keys[slot * c->width + column + k];
            terms += fabsl((long double)q[k] * c->keys[slot * c->width + column + k]);
        }
        score[j] *= c->shape.scale;
        if (score[j] > most) most = score[j];
        if (terms * c->shape.scale > size) size = terms * c->shape.scale;
    }
    for (size_t j = 0; j < length; j++) {
        size_t slot = j < visible->prefix ? j : visible->tail[j - visible->prefix];
        long double weight = expl(score[j] - most), value = c->values[slot * c->width + column + i];
        sum += weight;
        total += weight * value;
        if (fabsl(value) > largest) largest = fabsl(value);
    }
    free(score);
    double g = gamma_of((double)(d + 15) / 16 + 6);
    double e = exp((g + 2 * UNIT_ROUNDOFF) * (double)size) * (1 + 0x1p-22) - 1;
    e = (1 + e) * (1 + gamma_of(64 + (double)length / 64 + 1)) - 1;
    *bound = (double)largest * (2 * e / (1 - e) + UNIT_ROUNDOFF) + 0x1p-140;
    return total / sum;
}

static void error_is_within_the_bound(void **state)
{
    (void)state;
    seed_from_environment("attention: error_is_within_the_bound");
    double worst = 0;
    for (int trial = 0; trial < 25; trial++) {
        struct call c = call_new((enum form)(trial % FORMS), 2, 1, 2, random_head_dim(),
                                 random_below(trial % 5 ? 200 : 3000), trial % 2 ? ORDINARY : SPARSE);
        find_expected(&c);
        for (size_t n = 0; n < c.shape.rows * c.shape.heads * c.shape.head_dim; n++) {
            size_t row = n / (c.shape.heads * c.shape.head_dim), head = n / c.shape.head_dim % c.shape.heads;
            if (n > 64 && random_below(8)) continue;
            double bound,
                error = (double)fabsl(c.expected[n] - exact_output(&c, row, head, n % c.shape.head_dim, &bound));
            if (error > bound) fail_msg("row %zu head %zu: error %g, bound %g", row, head, error, bound);
            if (error / bound > worst) worst = error / bound;
        }
        call_free(&c);
    }
    print_message("largest error: %.3g of its bound\n", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_everywhere),      cmocka_unit_test(little_scratch_gives_the_same_bits),
        cmocka_unit_test(slots_do_not_show),         cmocka_unit_test(rows_do_not_see_each_other),
        cmocka_unit_test(error_is_within_the_bound),
    };
    return cmocka_run_group_tests_name("kernels_attention", tests, NULL, NULL);
}
