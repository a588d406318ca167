// `hallmark bench decode`: speed as a share of the machine's ceilings, both measured in the same run.
//
// A pass over M rows reads every weight once and does 2 M flops for each, so a plain token is limited by memory bandwidth
// and a wide tree pass by the rate of multiply-adds. Absolute figures move with the neighbours on a shared machine; the
// shares are what to compare.
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/timing.h"
#include "base/clock.h"
#include "decode/model.h"
#include "kernels/bench.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "hallmark bench decode --model models/tiny-qwen3\n\n"
    "Measures plain decoding and tree passes of several widths beside the two\n"
    "ceilings of the machine: read bandwidth and multiply-add rate. Medians of\n"
    "interleaved runs; a share is taken in each run, beside that run's ceilings.\n\n"
    "  -m, --model DIR      checkpoint folder\n"
    "      --rows N[,N...]  rows of a pass, default 1,4,8,16,32,60\n"
    "      --prefix N       committed tokens before the pass, default 128\n"
    "      --repeat N       interleaved repetitions, default 9\n"
    "  -t, --threads N      default: one per core\n"
    "      --json           one object\n";

enum { MOST_WIDTHS = 16, MOST_REPEATS = HM_MOST_SAMPLES };

struct bench {
    const char *model_dir;
    size_t width[MOST_WIDTHS], widths;
    size_t prefix, repeats, threads;
    bool json;
    struct hm_device *device;
    struct hm_model *model;
    struct hm_cache *cache;
    float *logits;
    int32_t *token, *parent;
    uint32_t *index;
    double seconds[MOST_WIDTHS][MOST_REPEATS], bandwidth[MOST_REPEATS], flops[MOST_REPEATS];
};

static double least(const double *values, size_t count)
{
    double best = values[0];
    for (size_t i = 1; i < count; i++) best = fmin(best, values[i]);
    return best;
}

static double most(const double *values, size_t count)
{
    double best = values[0];
    for (size_t i = 1; i < count; i++) best = fmax(best, values[i]);
    return best;
}

// ---- flags

static hm_status parse_widths(const char *text, struct bench *b, struct hm_error *err)
{
    char copy[256], *rest = copy;
    b->widths = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strsep(&rest, ","));) {
        if (b->widths == MOST_WIDTHS) return hm_fail(err, HM_USAGE, "--rows: expected at most %d numbers", MOST_WIDTHS);
        hm_status rc = hm_flag_size("rows", word, 1, 1024, &b->width[b->widths++], err);
        if (rc) return rc;
    }
    return HM_OK;
}

static hm_status parse(int argc, char **argv, struct bench *b, bool *wants_help, struct hm_error *err)
{
    static const struct option flags[] = {
        {"model", required_argument, NULL, 'm'},  {"rows", required_argument, NULL, 'r'},
        {"prefix", required_argument, NULL, 'p'}, {"repeat", required_argument, NULL, 'n'},
        {"threads", required_argument, NULL, 't'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int flag;
    hm_status rc = HM_OK;
    opterr = 0;
    optind = 1;
    while (!rc && (flag = getopt_long(argc, argv, ":m:t:h", flags, NULL)) != -1) {
        switch (flag) {
        case 'm': b->model_dir = optarg; break;
        case 'r': rc = parse_widths(optarg, b, err); break;
        case 'p': rc = hm_flag_size("prefix", optarg, 1, 1000000, &b->prefix, err); break;
        case 'n': rc = hm_flag_size("repeat", optarg, 1, MOST_REPEATS, &b->repeats, err); break;
        case 't': rc = hm_flag_size("threads", optarg, 1, 1024, &b->threads, err); break;
        case 'j': b->json = true; break;
        case 'h': *wants_help = true; return HM_OK;
        case ':': return hm_fail(err, HM_USAGE, "%s: expected a value after it", argv[optind - 1]);
        default: return hm_fail(err, HM_USAGE, "unknown flag \"%s\" (hallmark bench --help)", argv[optind - 1]);
        }
    }
    if (rc) return rc;
    if (optind != argc) return hm_fail(err, HM_USAGE, "expected flags only, found \"%s\"", argv[optind]);
    if (!b->model_dir) return hm_fail(err, HM_USAGE, "--model: expected the folder of a checkpoint, found none");
    return HM_OK;
}

// ---- measuring

static size_t widest(const struct bench *b)
{
    size_t most = 1;
    for (size_t i = 0; i < b->widths; i++)
        if (b->width[i] > most) most = b->width[i];
    return most;
}

static hm_status prepare(struct bench *b, struct hm_error *err)
{
    size_t rows = widest(b);
    hm_status rc = hm_device_open_cpu((unsigned)b->threads, HM_ISA_BEST, &b->device, err);
    if (!rc) rc = hm_model_open(b->model_dir, b->device, &b->model, err);
    if (!rc) rc = hm_cache_open(b->model, b->prefix + rows + 1, &b->cache, err);
    if (rc) return rc;
    size_t vocab = hm_model_info(b->model)->vocab, n = rows > b->prefix ? rows : b->prefix;
    b->logits = calloc(rows * vocab, sizeof *b->logits);
    b->token = calloc(n, sizeof *b->token);
    b->parent = calloc(rows, sizeof *b->parent);
    b->index = calloc(rows, sizeof *b->index);
    if (!b->logits || !b->token || !b->parent || !b->index) return hm_fail(err, HM_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) b->token[i] = (int32_t)(i * 7919 % vocab);
    // A tree of four children a node, like the ones decoding makes.
    for (size_t i = 0; i < rows; i++) {
        b->parent[i] = i == 0 ? -1 : (int32_t)((i - 1) / 4);
        b->index[i] = (uint32_t)i;
    }
    return hm_model_prefill(b->model, b->cache, b->token, b->prefix, NULL, NULL, err);
}

static hm_status time_pass(struct bench *b, size_t rows, double *seconds, struct hm_error *err)
{
    struct hm_pass pass = {.token = b->token, .parent = b->parent, .rows = rows, .logits_for = b->index, .logits_count = rows};
    double start = hm_now();
    hm_status rc = hm_model_forward(b->model, b->cache, &pass, b->logits, err);
    *seconds = hm_now() - start;
    hm_cache_drop_scratch(b->cache);
    return rc;
}

static hm_status measure(struct bench *b, struct hm_error *err)
{
    double warm;
    hm_status rc = HM_OK;
    for (size_t i = 0; i < b->widths && !rc; i++) rc = time_pass(b, b->width[i], &warm, err);
    for (size_t r = 0; r < b->repeats && !rc; r++) {
        hm_bench_ceilings(b->device, &b->bandwidth[r], &b->flops[r]);
        for (size_t i = 0; i < b->widths && !rc; i++) rc = time_pass(b, b->width[i], &b->seconds[i][r], err);
    }
    return rc;
}

// ---- printing

struct figures {
    double seconds, bytes_per_second, flops_per_second, bandwidth_share, flops_share;
};

static struct figures figures_of(const struct bench *b, size_t i)
{
    const struct hm_model_info *info = hm_model_info(b->model);
    double bytes = (double)info->weight_bytes, weights = bytes / (double)hm_dtype_bytes(info->dtype);
    double seconds = hm_median(b->seconds[i], b->repeats), rows = (double)b->width[i];
    struct figures f = {.seconds = seconds, .bytes_per_second = bytes / seconds, .flops_per_second = 2 * rows * weights / seconds};
    double bandwidth_share[MOST_REPEATS], flops_share[MOST_REPEATS];
    for (size_t r = 0; r < b->repeats; r++) { // pair by pair, so that a drifting machine cancels
        bandwidth_share[r] = bytes / b->seconds[i][r] / b->bandwidth[r];
        flops_share[r] = 2 * rows * weights / b->seconds[i][r] / b->flops[r];
    }
    f.bandwidth_share = hm_median(bandwidth_share, b->repeats);
    f.flops_share = hm_median(flops_share, b->repeats);
    return f;
}

static void print_table(const struct bench *b)
{
    const struct hm_model_info *info = hm_model_info(b->model);
    printf("%s: %.1f MB of %s weights a pass; bits of %s, run by %s\n", info->name, 1e-6 * (double)info->weight_bytes,
           hm_dtype_name(info->dtype), b->device->backend, b->device->detail);
    printf("ceilings: read %.1f GB/s (%.1f to %.1f), multiply-add %.0f GFLOP/s (%.0f to %.0f)\n",
           1e-9 * hm_median(b->bandwidth, b->repeats), 1e-9 * least(b->bandwidth, b->repeats),
           1e-9 * most(b->bandwidth, b->repeats), 1e-9 * hm_median(b->flops, b->repeats), 1e-9 * least(b->flops, b->repeats),
           1e-9 * most(b->flops, b->repeats));
    printf("%zu committed tokens, medians of %zu runs\n\n", b->prefix, b->repeats);
    printf("rows     ms   rows/s    GB/s  of read   GFLOP/s  of fma\n");
    for (size_t i = 0; i < b->widths; i++) {
        struct figures f = figures_of(b, i);
        printf("%4zu %6.2f %8.1f %7.1f %7.0f%% %9.1f %6.0f%%\n", b->width[i], 1e3 * f.seconds, (double)b->width[i] / f.seconds,
               1e-9 * f.bytes_per_second, 100 * f.bandwidth_share, 1e-9 * f.flops_per_second, 100 * f.flops_share);
    }
}

static hm_status print_json(const struct bench *b, struct hm_error *err)
{
    cJSON *object = cJSON_CreateObject();
    const struct hm_model_info *info = hm_model_info(b->model);
    cJSON_AddStringToObject(object, "model", info->name);
    cJSON_AddStringToObject(object, "backend", b->device->backend);
    cJSON_AddStringToObject(object, "device", b->device->detail);
    cJSON_AddNumberToObject(object, "weight_bytes", (double)info->weight_bytes);
    cJSON_AddNumberToObject(object, "read_bytes_per_second", hm_median(b->bandwidth, b->repeats));
    cJSON_AddNumberToObject(object, "fma_flops_per_second", hm_median(b->flops, b->repeats));
    cJSON *passes = cJSON_AddArrayToObject(object, "passes");
    for (size_t i = 0; i < b->widths; i++) {
        struct figures f = figures_of(b, i);
        cJSON *pass = cJSON_CreateObject();
        cJSON_AddNumberToObject(pass, "rows", (double)b->width[i]);
        cJSON_AddNumberToObject(pass, "seconds", f.seconds);
        cJSON_AddNumberToObject(pass, "share_of_read", f.bandwidth_share);
        cJSON_AddNumberToObject(pass, "share_of_fma", f.flops_share);
        cJSON_AddItemToArray(passes, pass);
    }
    return hm_cli_print_json(object, err);
}

static void close_bench(struct bench *b)
{
    hm_cache_close(b->cache);
    hm_model_close(b->model);
    hm_device_close(b->device);
    free(b->logits);
    free(b->token);
    free(b->parent);
    free(b->index);
    free(b);
}

int hm_bench_decode(int argc, char **argv)
{
    struct hm_error err;
    bool wants_help = false;
    int code = HM_EXIT_OK;
    struct bench *b = calloc(1, sizeof *b);
    if (!b) {
        hm_fail(&err, HM_MEMORY, "out of memory");
        return hm_cli_fail(&err);
    }
    b->prefix = 128;
    b->repeats = 9;
    hm_status rc = parse_widths("1,4,8,16,32,60", b, &err);
    if (!rc) rc = parse(argc, argv, b, &wants_help, &err);
    if (wants_help) {
        fputs(help, stdout);
    } else {
        if (!rc) rc = prepare(b, &err);
        if (!rc) rc = measure(b, &err);
        if (!rc && b->json) rc = print_json(b, &err);
        else if (!rc) print_table(b);
        if (rc) code = hm_cli_fail(&err);
    }
    close_bench(b);
    return code;
}
