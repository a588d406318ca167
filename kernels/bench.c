// Measures the ceilings of a CPU device: see bench.h.
#include "kernels/bench.h"
#include "base/clock.h"

#include "kernels/cpu/cpu.h"


enum {
    RUNS = 9,
    READ_BYTES = 256 << 20, // 8 times a 32 MiB third-level cache
    READ_UNIT = 1 << 20,
    BURST_REPEATS = 400000,
    BURST_UNITS = 4 // per thread
};

struct reading {
    const struct hm_cpu_kernels *kernels;
    const float *from;
    float result[HM_POOL_MOST];
};

static void read_unit(void *context, size_t unit, unsigned worker)
{
    struct reading *job = context;
    job->result[worker] +=
        job->kernels->read(job->from + unit * (READ_UNIT / sizeof(float)), READ_UNIT / sizeof(float));
}

struct bursting {
    const struct hm_cpu_kernels *kernels;
    size_t repeats;
    float result[HM_POOL_MOST];
};

static void burst_unit(void *context, size_t unit, unsigned worker)
{
    (void)unit;
    struct bursting *job = context;
    double flops;
    job->result[worker] += job->kernels->burst(job->repeats, &flops);
}

// Shortest time of RUNS runs of the loop, after one to warm up.
static double best_time(struct hm_pool *pool, hm_pool_task *task, void *context, size_t units)
{
    double best = 0;
    hm_pool_run(pool, task, context, units);
    for (int run = 0; run < RUNS; run++) {
        double start = hm_now();
        hm_pool_run(pool, task, context, units);
        double time = hm_now() - start;
        if (run == 0 || time < best) best = time;
    }
    return best;
}

void hm_bench_ceilings(struct hm_device *cpu, double *read_bytes_per_second, double *flops_per_second)
{
    struct hm_cpu_device *device = hm_cpu_device(cpu);
    struct reading reading = {.kernels = device->kernels};
    float *buffer = hm_pages_reserve(READ_BYTES);
    *read_bytes_per_second = 0;
    if (buffer) {
        for (size_t i = 0; i < READ_BYTES / sizeof(float); i++) buffer[i] = (float)(i & 1023); // backs the pages
        reading.from = buffer;
        *read_bytes_per_second = READ_BYTES / best_time(device->pool, read_unit, &reading, READ_BYTES / READ_UNIT);
        hm_pages_release(buffer, READ_BYTES);
    }

    struct bursting bursting = {.kernels = device->kernels, .repeats = BURST_REPEATS};
    if (device->kernels == &hm_cpu_portable) bursting.repeats /= 100;
    size_t units = (size_t)BURST_UNITS * hm_pool_threads(device->pool);
    double flops; // of one unit
    bursting.result[0] += device->kernels->burst(1, &flops);
    *flops_per_second =
        flops * (double)bursting.repeats * (double)units / best_time(device->pool, burst_unit, &bursting, units);
}
