// Logits of a checkpoint for given tokens, as raw float32, for comparison with other programs (tools/parity), and the
// speed of plain decoding beside the ceilings of the machine.
//
//     hallmark_logits CHECKPOINT OUTPUT TOKEN...      rows of all tokens, [tokens][vocab]
//     hallmark_logits CHECKPOINT --speed STEPS TOKEN...
#include "decode/model.h"
#include "kernels/bench.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Writes the rows one causal pass at a time, so that memory stays small.
static hm_status write_rows(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t count,
                            const char *path, struct hm_error *err)
{
    enum { STEP = 32 };
    size_t vocab = hm_model_info(model)->vocab;
    float *logits = malloc(STEP * vocab * sizeof *logits);
    FILE *file = fopen(path, "wb");
    hm_status rc = HM_OK;
    if (!logits || !file) rc = hm_fail(err, HM_IO, "%s: cannot write", path);
    for (size_t done = 0; done < count && !rc; done += STEP) {
        size_t rows = count - done < STEP ? count - done : STEP;
        int32_t parent[STEP];
        uint32_t every[STEP];
        for (size_t r = 0; r < rows; r++) parent[r] = (int32_t)r - 1, every[r] = (uint32_t)r;
        struct hm_pass pass = {token + done, parent, rows, every, rows, NULL};
        rc = hm_model_forward(model, cache, &pass, logits, err);
        if (!rc) rc = hm_cache_commit(cache, every, rows, err);
        if (!rc && fwrite(logits, vocab * sizeof *logits, rows, file) != rows)
            rc = hm_fail(err, HM_IO, "%s: cannot write", path);
    }
    if (file && fclose(file) != 0 && !rc) rc = hm_fail(err, HM_IO, "%s: cannot write", path);
    free(logits);
    return rc;
}

static int32_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return (int32_t)best;
}

static hm_status time_decoding(struct hm_model *model, struct hm_cache *cache, const int32_t *token, size_t count,
                               size_t steps, struct hm_error *err)
{
    const struct hm_model_info *info = hm_model_info(model);
    float *logits = malloc(info->vocab * sizeof *logits);
    if (!logits) return hm_fail(err, HM_MEMORY, "out of memory");
    double start = now();
    hm_status rc = hm_model_prefill(model, cache, token, count, logits, NULL, err);
    double prefill = now() - start, best = 1e9;
    start = now();
    for (size_t i = 0; i < steps && !rc; i++) {
        double step = now();
        int32_t next = argmax(logits, info->vocab), parent = -1;
        uint32_t only = 0;
        struct hm_pass pass = {&next, &parent, 1, &only, 1, NULL};
        rc = hm_model_forward(model, cache, &pass, logits, err);
        if (!rc) rc = hm_cache_commit(cache, &only, 1, err);
        step = now() - step;
        if (step < best) best = step;
    }
    double mean = (now() - start) / (double)steps, bandwidth, flops;
    hm_bench_ceilings(hm_model_device(model), &bandwidth, &flops);
    double bytes = (double)info->weight_bytes;
    printf("%s: prefill %.0f tokens/s, decode %.1f tokens/s (best step %.1f), %.2f GB/s of %.2f measured: %.0f %% "
           "(best %.0f %%)\n",
           info->name, (double)count / prefill, 1 / mean, 1 / best, bytes / mean / 1e9, bandwidth / 1e9,
           100 * bytes / mean / bandwidth, 100 * bytes / best / bandwidth);
    free(logits);
    return rc;
}

int main(int argc, char **argv)
{
    struct hm_error err = {0};
    bool speed = argc > 3 && strcmp(argv[2], "--speed") == 0;
    int first = speed ? 4 : 3;
    if (argc <= first) {
        fprintf(stderr, "usage: hallmark_logits CHECKPOINT (OUTPUT | --speed STEPS) TOKEN...\n");
        return 2;
    }
    size_t count = (size_t)(argc - first), steps = speed ? strtoul(argv[3], NULL, 10) : 0;
    int32_t *token = malloc(count * sizeof *token);
    if (!token) return 1;
    for (size_t i = 0; i < count; i++) token[i] = (int32_t)strtol(argv[first + (int)i], NULL, 10);
    struct hm_device *device = NULL;
    struct hm_model *model = NULL;
    struct hm_cache *cache = NULL;
    hm_status rc = hm_device_open_cpu(0, HM_ISA_BEST, &device, &err);
    if (!rc) rc = hm_model_open(argv[1], device, &model, &err);
    if (!rc) rc = hm_cache_open(model, count + steps, &cache, &err);
    if (!rc && speed)
        rc = time_decoding(model, cache, token, count, steps, &err);
    else if (!rc)
        rc = write_rows(model, cache, token, count, argv[2], &err);
    if (rc) fprintf(stderr, "hallmark_logits: %s\n", err.message);
    hm_cache_close(cache);
    hm_model_close(model);
    hm_device_close(device);
    free(token);
    return rc ? 1 : 0;
}
