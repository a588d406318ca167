// The operations of the CPU device (kernels.h): each divides itself among the threads by output.
#include "kernels/cpu/cpu.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    ATTENTION_ROWS = 16,     // query rows that share a reading of the cache
    WORTH_SHARING = 32 << 10 // operations below which waking another thread takes longer than the work
};

static float *at(struct hm_view view)
{
    return view.buffer->data + view.offset;
}

// Runs the units on all threads, or here when there is too little to do.
static void divide(struct hm_cpu_device *device, hm_pool_task *task, void *context, size_t units, size_t operations)
{
    if (operations >= WORTH_SHARING)
        hm_pool_run(device->pool, task, context, units);
    else
        for (size_t unit = 0; unit < units; unit++) task(context, unit, 0);
}

// Memory

static struct hm_buffer *cpu_alloc(struct hm_device *device, size_t floats)
{
    (void)device;
    size_t bytes;
    if (!hm_mul_size(floats ? floats : 1, sizeof(float), &bytes)) return NULL;
    struct hm_buffer *buffer = hm_calloc(1, sizeof *buffer);
    float *data = hm_pages_reserve(bytes);
    if (!buffer || !data) {
        free(buffer);
        hm_pages_release(data, bytes);
        return NULL;
    }
    *buffer = (struct hm_buffer){data, bytes};
    return buffer;
}

static void cpu_release(struct hm_device *device, struct hm_buffer *buffer)
{
    (void)device;
    if (!buffer) return;
    hm_pages_release(buffer->data, buffer->bytes);
    free(buffer);
}

static void cpu_upload(struct hm_device *device, struct hm_view to, const float *from, size_t floats)
{
    (void)device;
    if (floats) memcpy(at(to), from, floats * sizeof *from);
}

static void cpu_download(struct hm_device *device, float *to, struct hm_view from, size_t floats)
{
    (void)device;
    if (floats) memcpy(to, at(from), floats * sizeof *to);
}

// Matrix product

struct matmul {
    const struct hm_cpu_kernels *kernels;
    const struct hm_weight *weight;
    const float *x;
    float *y;
    size_t rows, rows_each, chunks;
    enum hm_store store;
};

// All rows of a panel before the next panel: weights come from memory once, and a thread reads one stream of them.
static void matmul_unit(void *context, size_t unit, unsigned worker)
{
    (void)worker;
    const struct matmul *job = context;
    const struct hm_weight *weight = job->weight;
    size_t first = unit % job->chunks * job->rows_each;
    size_t rows = job->rows - first < job->rows_each ? job->rows - first : job->rows_each;
    job->kernels->matmul_panel(weight, unit / job->chunks, job->x + first * weight->inputs,
                               job->y + first * weight->outputs, rows, job->store);
}

static void matmul(struct hm_device *base, const struct hm_weight *weight, struct hm_view x, struct hm_view y,
                   size_t rows, enum hm_store store)
{
    if (rows == 0) return;
    struct hm_cpu_device *device = hm_cpu_device(base);
    size_t chunks = (rows + HM_ROWS_MOST - 1) / HM_ROWS_MOST, rows_each = (rows + chunks - 1) / chunks;
    struct matmul job = {device->kernels, weight, at(x), at(y), rows, rows_each, chunks, store};
    divide(device, matmul_unit, &job, chunks * weight->panels, rows * weight->outputs * weight->inputs);
}

static void cpu_matmul(struct hm_device *device, const struct hm_weight *weight, struct hm_view x, struct hm_view y,
                       size_t rows)
{
    matmul(device, weight, x, y, rows, HM_STORE_NEW);
}

static void cpu_matmul_add(struct hm_device *device, const struct hm_weight *weight, struct hm_view x, struct hm_view y,
                           size_t rows)
{
    matmul(device, weight, x, y, rows, HM_STORE_ADD);
}

static void cpu_add_bias(struct hm_device *device, struct hm_view bias, struct hm_view y, size_t rows, size_t width)
{
    (void)device;
    const float *from = at(bias);
    for (size_t r = 0; r < rows; r++) {
        float *to = at(y) + r * width;
        for (size_t i = 0; i < width; i++) to[i] = from[i] + to[i];
    }
}

// Row operations

static void cpu_embed(struct hm_device *device, const struct hm_weight *table, const int32_t *token, struct hm_view y,
                      size_t rows)
{
    (void)device;
    for (size_t r = 0; r < rows; r++) hm_weight_row(table, (size_t)token[r], at(y) + r * table->inputs);
}

struct norm {
    const struct hm_cpu_kernels *kernels;
    const float *x, *gain;
    float *y;
    size_t width, stride;
    float eps;
};

static void norm_unit(void *context, size_t row, unsigned worker)
{
    (void)worker;
    const struct norm *job = context;
    job->kernels->rms_norm(job->x + row * job->stride, job->gain, job->y + row * job->stride, job->width, job->eps);
}

static void cpu_rms_norm(struct hm_device *base, struct hm_view x, struct hm_view gain, struct hm_view y, size_t rows,
                         size_t width, size_t stride, float eps)
{
    struct hm_cpu_device *device = hm_cpu_device(base);
    struct norm job = {device->kernels, at(x), at(gain), at(y), width, stride, eps};
    divide(device, norm_unit, &job, rows, rows * width);
}

struct rotation {
    const struct hm_cpu_kernels *kernels;
    const struct hm_rope *rope;
    const uint32_t *position;
    float *x;
    size_t heads, stride;
};

static void rotation_unit(void *context, size_t row, unsigned worker)
{
    (void)worker;
    const struct rotation *job = context;
    size_t half = job->rope->head_dim / 2, angle = job->position[row] * half;
    for (size_t h = 0; h < job->heads; h++)
        job->kernels->rope(job->rope->cosine + angle, job->rope->sine + angle,
                           job->x + row * job->stride + h * job->rope->head_dim, half);
}

static void cpu_rope(struct hm_device *base, const struct hm_rope *rope, const uint32_t *position, struct hm_view x,
                     size_t rows, size_t heads, size_t stride)
{
    struct hm_cpu_device *device = hm_cpu_device(base);
    struct rotation job = {device->kernels, rope, position, at(x), heads, stride};
    divide(device, rotation_unit, &job, rows, rows * heads * rope->head_dim);
}

struct activation {
    const struct hm_cpu_kernels *kernels;
    const float *x;
    float *y;
    size_t width;
};

static void activation_unit(void *context, size_t row, unsigned worker)
{
    (void)worker;
    const struct activation *job = context;
    const float *gate = job->x + row * 2 * job->width;
    job->kernels->silu_mul(gate, gate + job->width, job->y + row * job->width, job->width);
}

static void cpu_silu_mul(struct hm_device *base, struct hm_view x, struct hm_view y, size_t rows, size_t width)
{
    struct hm_cpu_device *device = hm_cpu_device(base);
    struct activation job = {device->kernels, at(x), at(y), width};
    divide(device, activation_unit, &job, rows, 4 * rows * width);
}

static void cpu_gather(struct hm_device *device, struct hm_view x, const uint32_t *index, struct hm_view y, size_t rows,
                       size_t width)
{
    (void)device;
    for (size_t r = 0; r < rows; r++) memcpy(at(y) + r * width, at(x) + index[r] * width, width * sizeof(float));
}

static void cpu_scatter(struct hm_device *device, struct hm_view x, const uint32_t *index, struct hm_view y, size_t rows,
                        size_t width)
{
    (void)device;
    for (size_t r = 0; r < rows; r++) memcpy(at(y) + index[r] * width, at(x) + r * width, width * sizeof(float));
}

// Cache

static void cpu_cache_store(struct hm_device *device, struct hm_view keys, struct hm_view values, size_t stride,
                            struct hm_view key_cache, struct hm_view value_cache, const uint32_t *slot, size_t rows,
                            size_t width)
{
    (void)device;
    for (size_t r = 0; r < rows; r++) {
        memcpy(at(key_cache) + slot[r] * width, at(keys) + r * stride, width * sizeof(float));
        memcpy(at(value_cache) + slot[r] * width, at(values) + r * stride, width * sizeof(float));
    }
}

static void cpu_cache_move(struct hm_device *device, struct hm_view cache, const uint32_t *from, const uint32_t *to,
                           size_t count, size_t width)
{
    (void)device;
    for (size_t j = 0; j < count; j++)
        if (to[j] != from[j]) memcpy(at(cache) + to[j] * width, at(cache) + from[j] * width, width * sizeof(float));
}

// Attention

struct attention {
    struct hm_cpu_device *device;
    struct hm_attention_share share;     // what all units have in common
    size_t rows_each, heads_each, parts; // parts: units of the same rows
};

static void attention_unit(void *context, size_t unit, unsigned worker)
{
    const struct attention *job = context;
    struct hm_attention_share share = job->share;
    size_t rows = share.shape->rows;
    share.first_row = unit / job->parts * job->rows_each;
    share.rows = rows - share.first_row < job->rows_each ? rows - share.first_row : job->rows_each;
    share.first_head = unit % job->parts * job->heads_each;
    share.heads = job->heads_each;
    share.block = job->device->scratch[worker];
    share.scratch = share.block + HM_BLOCK_FLOATS;
    share.scratch_floats = job->device->scratch_floats;
    job->device->kernels->attention(&share);
}

static void cpu_attention(struct hm_device *base, const struct hm_attention_shape *shape,
                          const struct hm_visible *visible, struct hm_view q, size_t q_stride, struct hm_view key_cache,
                          struct hm_view value_cache, struct hm_view out)
{
    struct hm_cpu_device *device = hm_cpu_device(base);
    size_t group = shape->heads / shape->kv_heads, threads = hm_pool_threads(device->pool), longest = 0, positions = 0;
    for (size_t r = 0; r < shape->rows; r++) {
        size_t length = (size_t)visible[r].prefix + visible[r].tail_length;
        longest = length > longest ? length : longest;
        positions += length;
    }
    if (shape->rows == 0) return;

    // As many rows per unit as may share a reading of the cache, as long as there are units for all threads and room
    // for the scores.
    size_t rows_each = shape->rows * shape->kv_heads / (2 * threads);
    size_t room = device->scratch_floats / (group * (longest + HM_POSITIONS + 2));
    if (rows_each > ATTENTION_ROWS) rows_each = ATTENTION_ROWS;
    if (rows_each > room) rows_each = room;
    if (rows_each < 1) rows_each = 1;
    size_t units = (shape->rows + rows_each - 1) / rows_each * shape->kv_heads;
    size_t heads_each = units < 4 * threads && units % threads ? 1 : group;

    struct attention job = {.device = device, .rows_each = rows_each, .heads_each = heads_each};
    job.parts = shape->heads / heads_each;
    job.share = (struct hm_attention_share){.shape = shape,
                                            .visible = visible,
                                            .q = at(q),
                                            .q_stride = q_stride,
                                            .keys = at(key_cache),
                                            .values = at(value_cache),
                                            .out = at(out)};
    divide(device, attention_unit, &job, (shape->rows + rows_each - 1) / rows_each * job.parts,
           2 * positions * shape->heads * shape->head_dim);
}

static void limit(struct hm_device *device, unsigned threads)
{
    hm_pool_limit(hm_cpu_device(device)->pool, threads);
}

const struct hm_device_ops hm_cpu_ops = {
    .alloc = cpu_alloc,
    .release = cpu_release,
    .upload = cpu_upload,
    .download = cpu_download,
    .load = hm_weight_load,
    .load_parts = hm_weight_load_parts,
    .unload = hm_weight_unload,
    .matmul = cpu_matmul,
    .matmul_add = cpu_matmul_add,
    .add_bias = cpu_add_bias,
    .embed = cpu_embed,
    .rms_norm = cpu_rms_norm,
    .rope = cpu_rope,
    .cache_store = cpu_cache_store,
    .cache_move = cpu_cache_move,
    .attention = cpu_attention,
    .silu_mul = cpu_silu_mul,
    .gather = cpu_gather,
    .scatter = cpu_scatter,
    .limit = limit,
    .close = hm_cpu_close,
};
