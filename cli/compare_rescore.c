// Rows of a path from a model: see compare_rescore.h. They are computed in passes of up to PASS tokens; as rows do not
// depend on batching (docs/architecture.md), they are those of plain decoding.
#include "cli/compare_rescore.h"

#include "base/memory.h"
#include "decode/cache.h"
#include "decode/model.h"

#include <stdlib.h>
#include <string.h>

enum { PASS = 16, FIRST_POSITIONS = 256 };

struct hm_rescore {
    struct hm_device *device;
    struct hm_model *model;
    struct hm_cache *cache;
    size_t vocab, most;
    int32_t *path;            // [length]
    size_t room, length, prompt;
    size_t first, count;      // rows [count] of emitted tokens first, first + 1, ...
    float *rows;              // [PASS][vocab]
};

hm_status hm_rescore_open(const char *dir, unsigned threads, struct hm_rescore **out, struct hm_error *err)
{
    size_t floats;
    struct hm_rescore *r = *out = hm_calloc(1, sizeof *r);
    if (!r) return hm_fail(err, HM_MEMORY, "out of memory for a model");
    hm_status rc = hm_device_open_cpu(threads, HM_ISA_BEST, &r->device, err);
    if (!rc) rc = hm_model_open(dir, r->device, &r->model, err);
    if (!rc) {
        r->vocab = hm_model_info(r->model)->vocab;
        r->most = hm_model_info(r->model)->max_positions;
        r->rows = hm_mul_size(r->vocab, PASS, &floats) ? hm_calloc(floats, sizeof *r->rows) : NULL;
        if (!r->rows) rc = hm_fail(err, HM_MEMORY, "%s: out of memory for rows of %zu logits", dir, r->vocab);
    }
    if (!rc) return HM_OK;
    hm_rescore_close(r);
    *out = NULL;
    return rc;
}

void hm_rescore_close(struct hm_rescore *r)
{
    if (!r) return;
    hm_cache_close(r->cache);
    hm_model_close(r->model);
    hm_device_close(r->device);
    free(r->path);
    free(r->rows);
    free(r);
}

size_t hm_rescore_vocab(const struct hm_rescore *r)
{
    return r->vocab;
}

hm_status hm_rescore_begin(struct hm_rescore *r, const int32_t *path, size_t prompt, size_t length, struct hm_error *err)
{
    void *grown = r->path;
    size_t have = r->cache ? hm_cache_positions(r->cache) : 0, want = have ? 2 * have : FIRST_POSITIONS;
    if (length > r->most)
        return hm_fail(err, HM_RANGE, "expected at most %zu tokens, the model's positions, found %zu", r->most, length);
    for (size_t i = 0; i < length; i++)
        if (path[i] < 0 || (size_t)path[i] >= r->vocab)
            return hm_fail(err, HM_RANGE, "expected ids below %zu as the model has them, found %d", r->vocab, path[i]);
    if (!hm_grow(&grown, &r->room, length, sizeof *r->path))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu tokens", length);
    r->path = grown;
    memcpy(r->path, path, length * sizeof *path);
    r->length = length;
    r->prompt = prompt;
    r->first = r->count = 0;
    if (length > have) {
        hm_cache_close(r->cache);
        r->cache = NULL;
        hm_status rc = hm_cache_open(r->model, want > length ? want : length, &r->cache, err);
        if (rc) return rc;
    }
    hm_cache_truncate(r->cache, 0);
    return HM_OK;
}

// The rows from t on: row t follows token prompt + t - 1 of the path.
static hm_status compute(struct hm_rescore *r, size_t t, struct hm_error *err)
{
    int32_t parent[PASS];
    uint32_t every[PASS];
    size_t at = r->prompt + t - 1, known = hm_cache_length(r->cache), left = r->length - 1 - at;
    size_t n = left < PASS ? left : PASS;
    r->count = 0;
    if (n == 0) return hm_fail(err, HM_RANGE, "expected fewer than %zu emitted tokens, found more", r->length - r->prompt);
    hm_status rc = at > known ? hm_model_prefill(r->model, r->cache, r->path + known, at - known, NULL, NULL, err) : HM_OK;
    if (rc) return rc;
    for (size_t i = 0; i < n; i++) {
        parent[i] = (int32_t)i - 1;
        every[i] = (uint32_t)i;
    }
    struct hm_pass pass = {.token = r->path + at, .parent = parent, .rows = n, .logits_for = every, .logits_count = n};
    rc = hm_model_forward(r->model, r->cache, &pass, r->rows, err);
    if (!rc) rc = hm_cache_commit(r->cache, every, n, err);
    if (rc) return rc;
    r->first = t;
    r->count = n;
    return HM_OK;
}

hm_status hm_rescore_row(struct hm_rescore *r, size_t t, const float **row, struct hm_error *err)
{
    *row = NULL;
    hm_status rc = t >= r->first && t - r->first < r->count ? HM_OK : compute(r, t, err);
    if (!rc) *row = r->rows + (t - r->first) * r->vocab;
    return rc;
}
