// A checkpoint's folder, or a file of rows: see inspect.h.
#include "cli/inspect.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/command.h"
#include "decode/checkpoint.h"
#include "decode/config.h"
#include "decode/row_file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MOST = 16, SHARDS_SHOWN = 8 };

// ---- a checkpoint

struct weights {
    uint64_t parameters, bytes, tensors;
    size_t files, types;
    struct weight_type {
        const char *name;
        uint64_t parameters;
    } type[TYPES_MOST];
};

static void count_tensor(struct weights *w, const struct hm_tensor *t)
{
    uint64_t parameters = 1;
    size_t i = 0;
    for (size_t j = 0; j < t->rank; j++) parameters *= t->shape[j]; // times its type it fits the file
    while (i < w->types && strcmp(w->type[i].name, t->type) != 0) i++;
    if (i == w->types && i < TYPES_MOST) w->type[w->types++].name = t->type;
    if (i < TYPES_MOST) w->type[i].parameters += parameters;
    w->parameters += parameters;
    w->bytes += t->bytes;
    w->tensors++;
}

static void count_weights(const struct hm_checkpoint *c, struct weights *w)
{
    *w = (struct weights){.files = hm_checkpoint_files(c)};
    for (size_t i = 0; i < w->files; i++) {
        const struct hm_safetensors *file = hm_checkpoint_file(c, i);
        for (size_t j = 0; j < hm_safetensors_count(file); j++) count_tensor(w, hm_safetensors_at(file, j));
    }
}

static void print_config(const struct hm_config *c)
{
    static const char *const yes_no[] = {"no", "yes"};
    hm_inspect_field("model", "%s: %zu layers, hidden size %zu, intermediate size %zu", c->architecture, c->layers,
                     c->hidden, c->intermediate);
    hm_inspect_field("attention", "%zu heads of %zu, %zu of keys and values; norms of queries and keys: %s", c->heads,
                     c->head_dim, c->kv_heads, yes_no[c->qk_norm]);
    hm_inspect_field("positions", "%zu, rotary base %g%s", c->max_positions, c->rope.theta,
                     c->rope.kind == HM_ROPE_LLAMA3 ? ", rescaled as in Llama 3.1" : "");
    hm_inspect_field("vocabulary", "%zu; the head is the embedding: %s", c->vocab, yes_no[c->tied]);
}

static void print_weights(const struct hm_checkpoint *c, const struct weights *w)
{
    hm_inspect_field("weights", "%" PRIu64 " parameters in %" PRIu64 " tensors, %" PRIu64 " bytes", w->parameters,
                     w->tensors, w->bytes);
    for (size_t i = 0; i < w->types; i++)
        hm_inspect_field("", "%s: %" PRIu64 " parameters", w->type[i].name, w->type[i].parameters);
    for (size_t i = 0; i < w->files && i < SHARDS_SHOWN; i++) {
        size_t size;
        const struct hm_safetensors *file = hm_checkpoint_file(c, i);
        const char *path = hm_safetensors_path(file), *slash = strrchr(path, '/');
        hm_safetensors_bytes(file, &size);
        hm_inspect_field(i ? "" : "files", "%s: %zu tensors, %zu bytes", slash ? slash + 1 : path,
                         hm_safetensors_count(file), size);
    }
    if (w->files > SHARDS_SHOWN) hm_inspect_field("", "and %zu more", w->files - SHARDS_SHOWN);
}

static cJSON *checkpoint_json(const char *path, const struct hm_config *config, const struct weights *w,
                              const char *sha256)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kind", "checkpoint");
    cJSON_AddStringToObject(o, "path", path);
    if (config) {
        cJSON_AddStringToObject(o, "architecture", config->architecture);
        const struct {
            const char *key;
            size_t value;
        } all[] = {{"layers", config->layers},
                   {"hidden", config->hidden},
                   {"intermediate", config->intermediate},
                   {"heads", config->heads},
                   {"kv_heads", config->kv_heads},
                   {"head_dim", config->head_dim},
                   {"vocab", config->vocab},
                   {"max_positions", config->max_positions}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            cJSON_AddNumberToObject(o, all[i].key, (double)all[i].value);
        cJSON_AddBoolToObject(o, "tied", config->tied);
    }
    cJSON_AddNumberToObject(o, "parameters", (double)w->parameters);
    cJSON_AddNumberToObject(o, "tensors", (double)w->tensors);
    cJSON_AddNumberToObject(o, "bytes", (double)w->bytes);
    cJSON *types = cJSON_AddObjectToObject(o, "types");
    for (size_t i = 0; i < w->types; i++)
        cJSON_AddNumberToObject(types, w->type[i].name, (double)w->type[i].parameters);
    cJSON_AddNumberToObject(o, "files", (double)w->files);
    if (sha256[0]) cJSON_AddStringToObject(o, "sha256", sha256);
    return o;
}

hm_status hm_inspect_checkpoint(const struct hm_inspect_options *o, struct hm_error *err)
{
    struct hm_checkpoint *checkpoint;
    struct hm_config config;
    struct hm_error unknown; // a head of EAGLE-3, an architecture that is not computed here
    struct weights weights;
    char sha256[HM_SHA256_HEX] = "";
    hm_status rc = hm_checkpoint_open(o->path, &checkpoint, err);
    if (rc) return rc;
    bool known = hm_config_read(o->path, &config, &unknown) == HM_OK;
    count_weights(checkpoint, &weights);
    if (o->hashes) rc = hm_checkpoint_hash(checkpoint, sha256, err);
    if (!rc && o->json) {
        rc = hm_cli_print_json(checkpoint_json(o->path, known ? &config : NULL, &weights, sha256), err);
    } else if (!rc) {
        hm_inspect_heading("%s: checkpoint", o->path);
        if (known)
            print_config(&config);
        else
            hm_inspect_field("model", "none that decodes by itself: %s", unknown.message);
        print_weights(checkpoint, &weights);
        if (sha256[0]) hm_inspect_field("sha256", "%s", sha256);
    }
    hm_checkpoint_close(checkpoint);
    return rc;
}

// ---- a file of rows

struct sanity {                    // of the first row
    size_t nan, infinite, missing; // NaN, +inf, -inf
    size_t least, largest;         // places of finite values; n: there is none
    double mass;                   // sum of exp, near 1 for log-probabilities; for display only
};

static struct sanity look(const float *row, size_t n)
{
    struct sanity s = {.least = n, .largest = n};
    for (size_t i = 0; i < n; i++) {
        s.nan += isnan(row[i]) != 0;
        s.infinite += row[i] > FLT_MAX;
        s.missing += row[i] < -FLT_MAX;
        if (!(row[i] >= -FLT_MAX && row[i] <= FLT_MAX)) continue;
        if (s.least == n || row[i] < row[s.least]) s.least = i;
        if (s.largest == n || row[i] > row[s.largest]) s.largest = i;
        s.mass += exp((double)row[i]);
    }
    return s;
}

static void print_sanity(const float *row, size_t n)
{
    struct sanity s = look(row, n);
    if (s.largest < n)
        hm_inspect_field("row 0", "from %s (column %zu) to %s (column %zu)",
                         hm_inspect_logit((double)row[s.least]).text, s.least,
                         hm_inspect_logit((double)row[s.largest]).text, s.largest);
    else
        hm_inspect_field("row 0", "no finite value");
    hm_inspect_field("", "%zu NaN, %zu +inf, %zu -inf%s", s.nan, s.infinite, s.missing,
                     s.nan + s.infinite || s.largest == n ? ": no row of logits" : "");
    if (s.nan + s.infinite == 0 && s.largest < n && fabs(s.mass - 1) < 1e-3)
        hm_inspect_field("", "the exponentials sum to about 1: log-probabilities rather than logits?");
}

static cJSON *rows_json(const char *path, struct hm_row_file_info info, const struct sanity *s, const char *sha256)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kind", "rows");
    cJSON_AddStringToObject(o, "path", path);
    cJSON_AddStringToObject(o, "type", info.type);
    cJSON_AddNumberToObject(o, "rows", (double)info.rows);
    cJSON_AddNumberToObject(o, "vocab", (double)info.vocab);
    if (info.rows > 0) {
        cJSON *first = cJSON_AddObjectToObject(o, "first_row");
        cJSON_AddNumberToObject(first, "nan", (double)s->nan);
        cJSON_AddNumberToObject(first, "plus_infinity", (double)s->infinite);
        cJSON_AddNumberToObject(first, "minus_infinity", (double)s->missing);
        if (s->largest < info.vocab) cJSON_AddNumberToObject(first, "largest_at", (double)s->largest);
    }
    if (sha256[0]) cJSON_AddStringToObject(o, "sha256", sha256);
    return o;
}

hm_status hm_inspect_rows(const struct hm_inspect_options *o, struct hm_error *err)
{
    struct hm_row_file *file;
    char sha256[HM_SHA256_HEX] = "";
    hm_status rc = hm_row_file_open(o->path, o->tensor, &file, err);
    if (rc) return rc;
    struct hm_row_file_info info = hm_row_file_info(file);
    float *row = hm_calloc(info.vocab, sizeof *row);
    if (!row) rc = hm_fail(err, HM_MEMORY, "%s: out of memory for a row of %zu values", o->path, info.vocab);
    if (!rc && info.rows > 0) hm_row_file_read(file, 0, row);
    if (!rc && o->hashes) rc = hm_row_file_hash(file, sha256, err);
    if (!rc && o->json) {
        struct sanity s = look(row, info.vocab);
        rc = hm_cli_print_json(rows_json(o->path, info, &s, sha256), err);
    } else if (!rc) {
        hm_inspect_heading("%s: %zu rows of %zu logits, %s", o->path, info.rows, info.vocab, info.type);
        if (info.rows > 0) print_sanity(row, info.vocab);
        if (sha256[0]) hm_inspect_field("sha256", "%s", sha256);
    }
    free(row);
    hm_row_file_close(file);
    return rc;
}
