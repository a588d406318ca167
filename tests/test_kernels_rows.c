// Norm, rotation, activation, bias and the copying operations: the bits of the reference everywhere, and errors against
// double within the bounds derived beside them.
#include "test_kernels.h"

static void norm_same_bits_everywhere(void **state)
{
    (void)state;
    seed_from_environment("norm_same_bits_everywhere");
    struct devices devices;
    open_devices(&devices);
    for (int trial = 0; trial < 40; trial++) {
        size_t width = trial < 20 ? (size_t)trial + 1 : 1 + random_below(700), stride = width + random_below(5);
        size_t rows = 1 + random_below(trial % 5 ? 5 : 200);
        float *x = random_floats(rows * stride, (enum values)(trial % VALUE_KINDS));
        float *gain = random_floats(width, ORDINARY), *expected = random_floats(rows * stride, ORDINARY);
        float *before = calloc(rows * stride, sizeof *before);
        assert_non_null(before);
        memcpy(before, expected, rows * stride * sizeof *before);
        for (size_t r = 0; r < rows; r++)
            hm_reference_rms_norm(x + r * stride, gain, expected + r * stride, width, 1e-6f);
        for (size_t d = 0; d < devices.count; d++) {
            struct hm_device *device = devices.at[d];
            struct guarded from = guarded_new(device, x, rows * stride), g = guarded_new(device, gain, width);
            struct guarded y = guarded_new(device, before, rows * stride); // what lies between rows must stay
            device->ops->rms_norm(device, from.view, g.view, y.view, rows, width, stride, 1e-6f);
            guarded_end(&y, expected, "rms_norm");
            device->ops->rms_norm(device, from.view, g.view, from.view, rows, width, stride, 1e-6f);
            float *in_place = calloc(rows * stride, sizeof *in_place);
            assert_non_null(in_place);
            memcpy(in_place, x, rows * stride * sizeof *x);
            for (size_t r = 0; r < rows; r++) memcpy(in_place + r * stride, expected + r * stride, width * sizeof *x);
            guarded_end(&from, in_place, "rms_norm in place");
            guarded_end(&g, gain, "gain");
            free(in_place);
        }
        free(x);
        free(gain);
        free(expected);
        free(before);
    }
    close_devices(&devices);
}

// The mean has width/16 fma, 4 folds and a division behind it and counts half under the root; root, quotient and two
// products round once each.
static void norm_error_is_within_the_bound(void **state)
{
    (void)state;
    seed_from_environment("norm_error_is_within_the_bound");
    for (int trial = 0; trial < 200; trial++) {
        size_t width = 1 + random_below(5000);
        float *x = random_floats(width, ORDINARY), *gain = random_floats(width, ORDINARY),
              *y = random_floats(width, ORDINARY);
        hm_reference_rms_norm(x, gain, y, width, 1e-5f);
        double squares = 0, bound = gamma_of((double)width / 16 + 8) / 2 + gamma_of(5);
        for (size_t i = 0; i < width; i++) squares += (double)x[i] * x[i];
        double root = sqrt(squares / (double)width + (double)1e-5f);
        for (size_t i = 0; i < width; i++) {
            double exact = x[i] / root * gain[i];
            assert_true(fabs(y[i] - exact) <= bound * fabs(exact));
        }
        free(x);
        free(gain);
        free(y);
    }
}

static void rope_same_bits_and_within_the_bound(void **state)
{
    (void)state;
    seed_from_environment("rope_same_bits_and_within_the_bound");
    static const size_t dims[] = {2, 8, 16, 30, 32, 64, 72, 128, 256};
    struct devices devices;
    open_devices(&devices);
    for (int trial = 0; trial < 40; trial++) {
        enum { POSITIONS = 50 };
        size_t dim = dims[random_below(sizeof dims / sizeof *dims)], half = dim / 2, heads = 1 + random_below(9);
        size_t stride = heads * dim + random_below(7), rows = 1 + random_below(trial % 5 ? 4 : 100);
        float *cosine = random_floats(POSITIONS * half, ORDINARY), *sine = random_floats(POSITIONS * half, ORDINARY);
        float *x = random_floats(rows * stride, (enum values)(trial % VALUE_KINDS));
        float *expected = calloc(rows * stride, sizeof *expected);
        uint32_t *position = calloc(rows, sizeof *position);
        assert_true(expected && position);
        memcpy(expected, x, rows * stride * sizeof *x);
        for (size_t r = 0; r < rows; r++) {
            position[r] = (uint32_t)random_below(POSITIONS);
            const float *c = cosine + position[r] * half, *s = sine + position[r] * half;
            for (size_t h = 0; h < heads; h++) {
                float *head = expected + r * stride + h * dim;
                const float *from = x + r * stride + h * dim;
                hm_reference_rope(c, s, head, half);
                for (size_t i = 0; i < half; i++) {
                    double a = from[i], b = from[half + i], slack = 2 * UNIT_ROUNDOFF, least = 0x1p-148;
                    assert_true(fabs(head[i] - (a * c[i] - b * s[i])) <=
                                slack * (fabs(a * c[i]) + fabs(b * s[i])) + least);
                    assert_true(fabs(head[half + i] - (b * c[i] + a * s[i])) <=
                                slack * (fabs(b * c[i]) + fabs(a * s[i])) + least);
                }
            }
        }
        struct hm_rope rope = {cosine, sine, POSITIONS, dim};
        for (size_t d = 0; d < devices.count; d++) {
            struct guarded y = guarded_new(devices.at[d], x, rows * stride);
            devices.at[d]->ops->rope(devices.at[d], &rope, position, y.view, rows, heads, stride);
            guarded_end(&y, expected, "rope");
        }
        free(cosine);
        free(sine);
        free(x);
        free(expected);
        free(position);
    }
    close_devices(&devices);
}

// exp is off by 2 ulp at most, then sum, quotient and product round once each. Below -88.7 the true value is under
// 1e-36 and ours is zero.
static void silu_same_bits_and_within_the_bound(void **state)
{
    (void)state;
    seed_from_environment("silu_same_bits_and_within_the_bound");
    struct devices devices;
    open_devices(&devices);
    for (int trial = 0; trial < 40; trial++) {
        size_t width = trial < 20 ? (size_t)trial + 1 : 1 + random_below(3000), rows = 1 + random_below(9);
        float *x = random_floats(rows * 2 * width, (enum values)(trial % VALUE_KINDS));
        float *expected = calloc(rows * width, sizeof *expected);
        assert_non_null(expected);
        for (size_t i = 0; trial % VALUE_KINDS == ORDINARY && i < rows * 2 * width; i++) x[i] *= 100;
        for (size_t r = 0; r < rows; r++) {
            const float *gate = x + r * 2 * width, *up = gate + width;
            hm_reference_silu_mul(gate, up, expected + r * width, width);
            for (size_t i = 0; i < width; i++) {
                double exact = gate[i] / (1 + exp(-(double)gate[i])) * up[i];
                double bound = gamma_of(8) * fabs(exact) + 1e-36 * fabs((double)up[i]) + 0x1p-148;
                if (!(fabs(expected[r * width + i] - exact) <= bound))
                    fail_msg("silu(%a) * %a: expected %a, found %a", (double)gate[i], (double)up[i], exact,
                             (double)expected[r * width + i]);
            }
        }
        for (size_t d = 0; d < devices.count; d++) {
            struct guarded from = guarded_new(devices.at[d], x, rows * 2 * width);
            struct guarded y = guarded_new(devices.at[d], NULL, rows * width);
            devices.at[d]->ops->silu_mul(devices.at[d], from.view, y.view, rows, width);
            guarded_end(&y, expected, "silu_mul");
            guarded_end(&from, x, "gate and up");
        }
        free(x);
        free(expected);
    }
    close_devices(&devices);
}

static void bias_gather_and_scatter(void **state)
{
    (void)state;
    seed_from_environment("bias_gather_and_scatter");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct hm_device *device = devices.at[d];
        enum { ROWS = 9, WIDTH = 35, PICKED = 12 };
        float *x = random_floats(ROWS * WIDTH, WIDE), *bias = random_floats(WIDTH, WIDE);
        float sums[ROWS * WIDTH], picked[PICKED * WIDTH];
        uint32_t index[PICKED];
        for (size_t i = 0; i < ROWS * WIDTH; i++) sums[i] = bias[i % WIDTH] + x[i];
        for (size_t r = 0; r < PICKED; r++) {
            index[r] = (uint32_t)random_below(ROWS);
            memcpy(picked + r * WIDTH, sums + index[r] * WIDTH, WIDTH * sizeof(float));
        }
        struct guarded y = guarded_new(device, x, ROWS * WIDTH), b = guarded_new(device, bias, WIDTH);
        struct guarded some = guarded_new(device, NULL, PICKED * WIDTH);
        device->ops->add_bias(device, b.view, y.view, ROWS, WIDTH);
        device->ops->gather(device, y.view, index, some.view, PICKED, WIDTH);
        guarded_end(&some, picked, "gather");
        // Every other row of a larger array, from the last one up; the rows between stay.
        enum { WIDER = 2 * ROWS };
        float *around = random_floats(WIDER * WIDTH, WIDE);
        struct guarded wide = guarded_new(device, around, WIDER * WIDTH);
        for (size_t r = 0; r < ROWS; r++) {
            index[r] = (uint32_t)(WIDER - 1 - 2 * r);
            memcpy(around + index[r] * WIDTH, sums + r * WIDTH, WIDTH * sizeof(float));
        }
        device->ops->scatter(device, y.view, index, wide.view, ROWS, WIDTH);
        guarded_end(&wide, around, "scatter");
        free(around);
        guarded_end(&y, sums, "add_bias");
        guarded_end(&b, bias, "bias");
        free(x);
        free(bias);
    }
    close_devices(&devices);
}

// Rows stored in scattered slots, then moved down in order, lie where plain copies would put them.
static void cache_store_and_move(void **state)
{
    (void)state;
    seed_from_environment("cache_store_and_move");
    struct devices devices;
    open_devices(&devices);
    for (size_t d = 0; d < devices.count; d++) {
        struct hm_device *device = devices.at[d];
        enum { SLOTS = 40, ROWS = 7, WIDTH = 24, STRIDE = 60, MOVES = 4 };
        float *rows = random_floats(ROWS * STRIDE, WIDE);
        float *key = random_floats(SLOTS * WIDTH, ORDINARY), *value = random_floats(SLOTS * WIDTH, ORDINARY);
        struct guarded from = guarded_new(device, rows, ROWS * STRIDE);
        struct guarded keys = guarded_new(device, key, SLOTS * WIDTH),
                       values = guarded_new(device, value, SLOTS * WIDTH);
        uint32_t slot[ROWS];
        for (size_t r = 0; r < ROWS; r++) {
            slot[r] = (uint32_t)(10 + r * 3 + random_below(3));
            memcpy(key + slot[r] * WIDTH, rows + r * STRIDE, WIDTH * sizeof(float));
            memcpy(value + slot[r] * WIDTH, rows + r * STRIDE + WIDTH, WIDTH * sizeof(float));
        }
        struct hm_view behind = {from.view.buffer, from.view.offset + WIDTH};
        device->ops->cache_store(device, from.view, behind, STRIDE, keys.view, values.view, slot, ROWS, WIDTH);
        // 12 to 10, then 13 to 11 and 14 to 12: later moves may overwrite what earlier ones have read.
        const uint32_t source[MOVES] = {12, 13, 14, 14}, target[MOVES] = {10, 11, 12, 14};
        for (size_t j = 0; j < MOVES; j++)
            memmove(key + target[j] * WIDTH, key + source[j] * WIDTH, WIDTH * sizeof(float));
        device->ops->cache_move(device, keys.view, source, target, MOVES, WIDTH);
        guarded_end(&keys, key, "keys");
        guarded_end(&values, value, "values");
        guarded_end(&from, rows, "rows");
        free(rows);
        free(key);
        free(value);
    }
    close_devices(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_same_bits_everywhere),
        cmocka_unit_test(norm_error_is_within_the_bound),
        cmocka_unit_test(rope_same_bits_and_within_the_bound),
        cmocka_unit_test(silu_same_bits_and_within_the_bound),
        cmocka_unit_test(bias_gather_and_scatter),
        cmocka_unit_test(cache_store_and_move),
    };
    return cmocka_run_group_tests_name("kernels_rows", tests, NULL, NULL);
}
