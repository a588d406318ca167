// Weights and matrix products: every instruction set, row count and thread count gives the bits of the reference, and
// the reference is as accurate as its order of summation promises.
#include "test_kernels.h"

static const enum hm_dtype dtypes[] = {HM_F32, HM_F16, HM_BF16};

// A finite value of the dtype: any bits for the 16-bit types, subnormals included, moderate ones for ORDINARY.
static void *random_weights(enum hm_dtype dtype, size_t count, enum values kind)
{
    unsigned char *weights = calloc(count + 1, 4);
    assert_non_null(weights);
    for (size_t i = 0; i < count; i++) {
        float value = random_value(kind);
        uint16_t half = (uint16_t)(hm_float_bits(value) >> 16);
        if (dtype == HM_F16) {
            half = (uint16_t)random_bits();
            if ((half >> 10 & 31) == 31) half &= 0x83FF;                       // no infinities: subnormals instead
            if (kind == ORDINARY) half = (uint16_t)((half & 0x87FF) | 0x3000); // 1/8 .. 1/2
            if (kind == SPARSE && random_below(3)) half &= 0x8000;
        }
        if (dtype == HM_F32)
            memcpy(weights + 4 * i, &value, 4);
        else
            memcpy(weights + 2 * i, &half, 2);
    }
    return weights;
}

struct product {
    enum hm_dtype dtype;
    size_t outputs, inputs, rows;
    void *weights;
    float *x, *before, *expected;
};

static struct product product_new(enum hm_dtype dtype, size_t outputs, size_t inputs, size_t rows, enum values kind)
{
    struct product p = {dtype, outputs, inputs, rows, NULL, NULL, NULL, NULL};
    p.weights = random_weights(dtype, outputs * inputs, kind);
    p.x = random_floats(rows * inputs, kind);
    p.before = random_floats(rows * outputs, kind);
    p.expected = calloc(rows * outputs, sizeof(float));
    assert_non_null(p.expected);
    return p;
}

static void product_free(struct product *p)
{
    free(p->weights);
    free(p->x);
    free(p->before);
    free(p->expected);
}

static void compare_on(struct hm_device *device, struct product *p)
{
    // One byte off alignment, as in a file mapping.
    size_t bytes = p->outputs * p->inputs * hm_dtype_bytes(p->dtype);
    unsigned char *mapping = malloc(bytes + 1);
    assert_non_null(mapping);
    memcpy(mapping + 1, p->weights, bytes);
    struct hm_weight *weight = device->ops->load(device, mapping + 1, p->dtype, p->outputs, p->inputs);
    assert_non_null(weight);
    free(mapping);

    struct guarded x = guarded_new(device, p->x, p->rows * p->inputs);
    struct guarded y = guarded_new(device, p->before, p->rows * p->outputs);
    hm_reference_matmul(p->weights, p->dtype, p->outputs, p->inputs, p->x, p->expected, p->rows);
    device->ops->matmul(device, weight, x.view, y.view, p->rows);
    guarded_end(&y, p->expected, "matmul");

    y = guarded_new(device, p->before, p->rows * p->outputs);
    memcpy(p->expected, p->before, p->rows * p->outputs * sizeof(float));
    hm_reference_matmul_add(p->weights, p->dtype, p->outputs, p->inputs, p->x, p->expected, p->rows);
    device->ops->matmul_add(device, weight, x.view, y.view, p->rows);
    guarded_end(&y, p->expected, "matmul_add");
    guarded_end(&x, p->x, "activations");
    device->ops->unload(device, weight);
}

// Random shapes: sizes around the panel (64), the block (256), the tile (6) and the rows of a unit (96).
static void same_bits_everywhere(void **state)
{
    (void)state;
    seed_from_environment("same_bits_everywhere");
    static const size_t around[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 130, 255, 256, 257, 511, 512, 513, 576};
    enum { COUNT = sizeof around / sizeof *around };
    struct devices devices;
    open_devices(&devices);
    for (int trial = 0; trial < 60; trial++) {
        enum hm_dtype dtype = dtypes[trial % 3];
        size_t outputs = around[random_below(COUNT - 4)], inputs = around[random_below(COUNT)];
        size_t rows = trial < 14 ? (size_t)trial + 1 : 1 + random_below(trial % 8 ? 20 : 130);
        struct product p = product_new(dtype, outputs, inputs, rows, (enum values)(trial / 3 % VALUE_KINDS));
        for (size_t d = 0; d < devices.count; d++) compare_on(devices.at[d], &p);
        product_free(&p);
    }
    close_devices(&devices);
}

// Infinite activations and weights neither crash nor leak into other outputs.
static void infinities_stay_where_they_belong(void **state)
{
    (void)state;
    seed_from_environment("infinities_stay_where_they_belong");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct product p = product_new(HM_BF16, 70, 300, 9, ORDINARY);
        for (size_t i = 0; i < 300; i++) p.x[i] = fabsf(p.x[i]) + 0.5f;
        p.x[4 * 300 + 3] = INFINITY;                    // row 4
        ((uint16_t *)p.weights)[65 * 300 + 7] = 0x7F80; // output 65
        struct hm_weight *weight = devices.at[d]->ops->load(devices.at[d], p.weights, HM_BF16, 70, 300);
        struct guarded x = guarded_new(devices.at[d], p.x, 9 * 300), y = guarded_new(devices.at[d], NULL, 9 * 70);
        devices.at[d]->ops->matmul(devices.at[d], weight, x.view, y.view, 9);
        float found[9 * 70];
        devices.at[d]->ops->download(devices.at[d], found, y.view, 9 * 70);
        for (size_t r = 0; r < 9; r++)
            for (size_t o = 0; o < 70; o++) assert_true(isfinite(found[r * 70 + o]) == (r != 4 && o != 65));
        guarded_end(&x, NULL, "");
        guarded_end(&y, NULL, "");
        devices.at[d]->ops->unload(devices.at[d], weight);
        product_free(&p);
    }
    close_devices(&devices);
}

// Row r of a product of many rows has the bits of row r computed alone, whatever the number of rows.
static void rows_do_not_see_each_other(void **state)
{
    (void)state;
    seed_from_environment("rows_do_not_see_each_other");
    enum { OUTPUTS = 70, INPUTS = 520, MOST = 130 };
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct hm_device *device = devices.at[d];
        if (hm_cpu_device(device)->kernels == &hm_cpu_portable) continue; // compared above; too slow for this many
        struct product p = product_new(dtypes[d % 3], OUTPUTS, INPUTS, MOST, ORDINARY);
        struct hm_weight *weight = device->ops->load(device, p.weights, p.dtype, OUTPUTS, INPUTS);
        struct guarded x = guarded_new(device, p.x, MOST * INPUTS);
        for (size_t r = 0; r < MOST; r++) {
            struct guarded y = guarded_new(device, NULL, OUTPUTS);
            struct hm_view row = {x.view.buffer, x.view.offset + r * INPUTS};
            device->ops->matmul(device, weight, row, y.view, 1);
            device->ops->download(device, p.expected + r * OUTPUTS, y.view, OUTPUTS);
            guarded_end(&y, NULL, "");
        }
        for (size_t rows = 1; rows <= MOST; rows++) {
            struct guarded y = guarded_new(device, NULL, rows * OUTPUTS);
            device->ops->matmul(device, weight, x.view, y.view, rows);
            guarded_end(&y, p.expected, "rows alone and together");
        }
        guarded_end(&x, NULL, "");
        device->ops->unload(device, weight);
        product_free(&p);
    }
    close_devices(&devices);
}

// Against double: 256 + inputs / 256 roundings along the longest path to a result.
static void error_is_within_the_bound(void **state)
{
    (void)state;
    seed_from_environment("error_is_within_the_bound");
    static const size_t inputs_of[] = {1, 100, 256, 1000, 3072, 12288};
    double worst = 0;
    for (size_t s = 0; s < sizeof inputs_of / sizeof *inputs_of; s++)
        for (int kind = 0; kind < VALUE_KINDS; kind++) {
            size_t inputs = inputs_of[s], blocks = (inputs + 255) / 256;
            struct product p = product_new(dtypes[s % 3], 8, inputs, 2, (enum values)kind);
            hm_reference_matmul(p.weights, p.dtype, 8, inputs, p.x, p.expected, 2);
            for (size_t r = 0; r < 2; r++)
                for (size_t o = 0; o < 8; o++) {
                    long double exact = 0, size = 0;
                    for (size_t i = 0; i < inputs; i++) {
                        long double term =
                            (long double)p.x[r * inputs + i] * hm_widen(p.dtype, p.weights, o * inputs + i);
                        exact += term;
                        size += fabsl(term);
                    }
                    double bound = gamma_of((double)(inputs < 256 ? inputs : 256) + (double)blocks) * (double)size +
                                   (double)inputs * 0x1p-149;
                    double error = (double)fabsl(p.expected[r * 8 + o] - exact);
                    if (error > bound) fail_msg("%zu inputs: error %g, bound %g", inputs, error, bound);
                    if (size > 0 && kind == ORDINARY && error / (double)size > worst) worst = error / (double)size;
                }
            product_free(&p);
        }
    print_message("largest error: %.3g of sum |x w|, bound for 12,288 inputs %.3g\n", worst, gamma_of(256 + 48));
}

// Every 16-bit pattern widens to the value its definition gives.
static void widening_is_exact(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023), sign = bits & 0x8000 ? -1 : 1;
        float f16 = hm_widen_f16(half), bf16 = hm_widen_bf16(half);
        if (exponent == 31)
            assert_true(fraction ? isnan(f16) : f16 == (float)sign * INFINITY);
        else
            assert_true(f16 == (float)sign * ldexpf((float)(exponent ? 1024 + fraction : fraction),
                                                    (exponent ? exponent : 1) - 25));
        assert_int_equal(!!signbit(f16), sign < 0);
        assert_int_equal(hm_float_bits(bf16), bits << 16);
    }
}

// Stacked matrices are the matrices one after the other, and embed gives back every row as loaded.
static void stacking_and_embedding(void **state)
{
    (void)state;
    seed_from_environment("stacking_and_embedding");
    static const size_t outputs[] = {65, 3, 128, 1};
    enum { PARTS = 4, INPUTS = 77, TOTAL = 65 + 3 + 128 + 1 };
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct hm_device *device = devices.at[d];
        enum hm_dtype dtype = dtypes[d % 3];
        size_t size = hm_dtype_bytes(dtype) * INPUTS, done = 0;
        unsigned char *all = random_weights(dtype, TOTAL * INPUTS, WIDE);
        const void *parts[PARTS];
        for (int part = 0; part < PARTS; part++) {
            parts[part] = all + done * size;
            done += outputs[part];
        }
        struct hm_weight *weight = device->ops->load_parts(device, parts, outputs, PARTS, dtype, INPUTS);
        assert_non_null(weight);
        int32_t token[TOTAL + 1];
        float *expected = calloc((TOTAL + 1) * INPUTS, sizeof *expected);
        assert_non_null(expected);
        for (size_t r = 0; r <= TOTAL; r++) {
            token[r] = (int32_t)(r * 89 % TOTAL);
            for (size_t i = 0; i < INPUTS; i++)
                expected[r * INPUTS + i] = hm_widen(dtype, all, (size_t)token[r] * INPUTS + i);
        }
        struct guarded y = guarded_new(device, NULL, (TOTAL + 1) * INPUTS);
        device->ops->embed(device, weight, token, y.view, TOTAL + 1);
        guarded_end(&y, expected, "embed");

        struct guarded x = guarded_new(device, expected, 2 * INPUTS);
        y = guarded_new(device, NULL, 2 * TOTAL);
        float product[2 * TOTAL];
        hm_reference_matmul(all, dtype, TOTAL, INPUTS, expected, product, 2);
        device->ops->matmul(device, weight, x.view, y.view, 2);
        guarded_end(&y, product, "stacked matmul");
        guarded_end(&x, NULL, "");
        device->ops->unload(device, weight);
        free(expected);
        free(all);
    }
    close_devices(&devices);
}

// Sizes that overflow or cannot be had are refused, not attempted.
static void impossible_sizes_give_null(void **state)
{
    (void)state;
    struct hm_device *device;
    assert_int_equal(hm_device_open_cpu(1, HM_ISA_BEST, &device, NULL), HM_OK);
    uint16_t weight = 0;
    const void *parts[] = {&weight, &weight};
    const size_t outputs[] = {SIZE_MAX - 10, 11};
    assert_null(device->ops->load(device, &weight, HM_BF16, SIZE_MAX / 2, 8));
    assert_null(device->ops->load(device, &weight, HM_BF16, SIZE_MAX, 1));
    assert_null(device->ops->load_parts(device, parts, outputs, 2, HM_BF16, 1));
    assert_null(device->ops->load(device, &weight, HM_BF16, 1, 0));
    assert_null(device->ops->alloc(device, SIZE_MAX / 2));
    device->ops->unload(device, NULL);
    device->ops->release(device, NULL);
    hm_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_everywhere),       cmocka_unit_test(infinities_stay_where_they_belong),
        cmocka_unit_test(rows_do_not_see_each_other), cmocka_unit_test(error_is_within_the_bound),
        cmocka_unit_test(widening_is_exact),          cmocka_unit_test(stacking_and_embedding),
        cmocka_unit_test(impossible_sizes_give_null),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
