// Tokens beside rows in a .safetensors file: see rows_tokens.h.
#include "evidence/rows_tokens.h"

#include "base/memory.h"
#include "decode/safetensors.h"

#include <stdlib.h>
#include <string.h>

struct reading {
    const char *path;
    const struct hm_safetensors *file;
    struct hm_error *err;
};

// A tensor of whole numbers in one dimension; NULL without an error when the file has none of the name.
static const struct hm_tensor *find(const struct reading *r, const char *name, hm_status *rc)
{
    const struct hm_tensor *t = *rc ? NULL : hm_safetensors_find(r->file, name);
    if (!t) return NULL;
    if (t->rank == 1 && (strcmp(t->type, "I64") == 0 || strcmp(t->type, "I32") == 0)) return t;
    char shape[HM_TENSOR_SHAPE_TEXT];
    hm_shape_text(t->rank, t->shape, shape);
    *rc = hm_fail(r->err, HM_SHAPE, "%s: tensor \"%s\": expected I64 or I32 in one dimension, found %s %s", r->path, name,
                  t->type, shape);
    return NULL;
}

static int64_t number_at(const struct hm_tensor *t, size_t i)
{
    if (strcmp(t->type, "I32") == 0) {
        int32_t value;
        memcpy(&value, t->data + 4 * i, 4);
        return value;
    }
    int64_t value;
    memcpy(&value, t->data + 8 * i, 8);
    return value;
}

// Ids, each below `vocab`.
static hm_status read_ids(const struct reading *r, const struct hm_tensor *t, size_t vocab, int32_t **out)
{
    int32_t *ids = hm_calloc(t->shape[0] ? t->shape[0] : 1, sizeof *ids);
    if (!ids) return hm_fail(r->err, HM_MEMORY, "%s: out of memory", r->path);
    *out = ids;
    for (size_t i = 0; i < t->shape[0]; i++) {
        int64_t id = number_at(t, i);
        if (id < 0 || (uint64_t)id >= vocab)
            return hm_fail(r->err, HM_RANGE, "%s: tensor \"%s\": [%zu]: expected an id below %zu, found %lld", r->path, t->name,
                           i, vocab, (long long)id);
        ids[i] = (int32_t)id;
    }
    return HM_OK;
}

// Where each of several parts of `total` begins: from 0, ascending (for sequences of rows strictly), and the end behind them.
// Without a tensor there is one part.
static hm_status read_starts(const struct reading *r, const struct hm_tensor *t, size_t total, bool strictly, size_t **out,
                             size_t *parts)
{
    *parts = t ? t->shape[0] : 1;
    if (*parts == 0)
        return hm_fail(r->err, HM_SHAPE, "%s: tensor \"%s\": expected at least one sequence, found none", r->path, t->name);
    size_t *start = hm_calloc(*parts + 1, sizeof *start);
    if (!start) return hm_fail(r->err, HM_MEMORY, "%s: out of memory", r->path);
    *out = start;
    for (size_t i = 0; i < *parts; i++) {
        int64_t value = t ? number_at(t, i) : 0;
        int64_t least = i == 0 ? 0 : (int64_t)start[i - 1] + strictly, most = i == 0 ? 0 : (int64_t)total - strictly;
        if (value < least || value > most)
            return hm_fail(r->err, HM_RANGE, "%s: tensor \"%s\": [%zu]: expected %lld to %lld, found %lld", r->path, t->name, i,
                           (long long)least, (long long)most, (long long)value);
        start[i] = (size_t)value;
    }
    start[*parts] = total;
    return HM_OK;
}

static hm_status read_all(const struct reading *r, size_t rows, size_t vocab, struct hm_rows_tokens *out)
{
    hm_status rc = HM_OK;
    const struct hm_tensor *tokens = find(r, "tokens", &rc);
    if (!tokens) return rc;
    if (tokens->shape[0] != rows)
        return hm_fail(r->err, HM_SHAPE, "%s: tensor \"tokens\": expected %zu, one for each row, found %zu", r->path, rows,
                       tokens->shape[0]);
    const struct hm_tensor *first = find(r, "first", &rc), *prompt = find(r, "prompt", &rc);
    const struct hm_tensor *prompt_first = find(r, "prompt_first", &rc);
    if (!rc) rc = read_starts(r, first, rows, true, &out->first, &out->sequences);
    if (!rc) rc = read_ids(r, tokens, vocab, &out->token);
    if (rc || !prompt) return rc;
    size_t prompts = 0;
    rc = read_starts(r, prompt_first, prompt->shape[0], false, &out->prompt_first, &prompts);
    if (!rc && prompts != out->sequences)
        rc = hm_fail(r->err, HM_SHAPE, "%s: expected as many prompts as sequences (%zu; tensors \"first\" and \"prompt_first\"), "
                     "found %zu", r->path, out->sequences, prompts);
    return rc ? rc : read_ids(r, prompt, vocab, &out->prompt);
}

hm_status hm_rows_tokens_read(const char *path, const struct hm_map *map, size_t rows, size_t vocab,
                              struct hm_rows_tokens *out, struct hm_error *err)
{
    memset(out, 0, sizeof *out);
    if (map->size < 9 || map->data[8] != '{' || rows == 0) return HM_OK; // what decode/row_file.h takes for .npy, or no row
    struct hm_safetensors *file;
    hm_status rc = hm_safetensors_open(path, &file, err);
    if (rc) return rc;
    struct reading r = {.path = path, .file = file, .err = err};
    rc = read_all(&r, rows, vocab, out);
    hm_safetensors_close(file);
    if (rc) hm_rows_tokens_free(out);
    return rc;
}

void hm_rows_tokens_free(struct hm_rows_tokens *tokens)
{
    free(tokens->token);
    free(tokens->first);
    free(tokens->prompt);
    free(tokens->prompt_first);
    memset(tokens, 0, sizeof *tokens);
}
