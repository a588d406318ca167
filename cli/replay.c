// Rows of a log from its models: see replay.h.
//
// Each model has a cache of the context. A round's tree is one pass into scratch rows; when the next round begins, the path
// that was accepted is committed. A model that was not asked in a round (a draft whose rows no step names) has no pass to
// commit and reads what it missed when it is asked again.
//
// An EAGLE-3 head reads the target's hidden states, and what it drafts depends on its own pool: its rows are not computed
// again but read from the shards. Its hash is compared.
#include "cli/replay.h"

#include "base/memory.h"
#include "decode/drafter.h"
#include "decode/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_POSITIONS = 256 };

struct side { // one of the two models
    const char *name; // "target" or "draft"
    struct hm_model *model; // NULL: none, or a head
    char sha256[65];        // of its weights; "" without any
    size_t vocab, most; // of the model: logits of a row, positions
    struct hm_cache *cache;
    bool passed;        // the round's tree is in the cache's scratch rows and its logits in rows
    float *rows;        // [nodes of the tree][vocab]
    size_t row_capacity;
    int32_t *feed;      // tokens as the model knows them
    size_t feed_capacity;
};

struct hm_replay {
    struct hm_check_replay source;
    struct hm_check_replay_error error;
    struct hm_device *device;
    struct side target, draft;
    int32_t *context;          // prompt and emitted tokens [length]
    size_t length, context_capacity;
    size_t root;               // place of the round's root in the context
    float *prompt_row;         // the target's row after the prompt [target vocab]
    int32_t *parent, *token;   // the tree of the round [nodes]
    size_t nodes, parent_capacity, token_capacity;
    uint32_t *every;           // 0, 1, 2, ...
    size_t every_capacity;
    uint32_t *path;            // nodes whose tokens were emitted, the root first [path_length]
    size_t path_length, path_capacity;
};

// ---- what is wrong

static bool wrong(struct hm_replay *r, bool refuted, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool wrong(struct hm_replay *r, bool refuted, const char *field, const char *format, ...)
{
    va_list arguments;
    r->error.refuted = refuted;
    snprintf(r->error.field, sizeof r->error.field, "%s", field);
    va_start(arguments, format);
    vsnprintf(r->error.reason, sizeof r->error.reason, format, arguments);
    va_end(arguments);
    return false;
}

// A failure of a model: what the log says cannot be fed to it, or the machine is short of something.
static bool failed(struct hm_replay *r, const char *field, hm_status status, const struct hm_error *err)
{
    bool refuted = status == HM_RANGE || status == HM_USAGE;
    return wrong(r, refuted, field, "%.*s", (int)sizeof r->error.reason - 1, err->message);
}

static bool no_memory(struct hm_replay *r, const char *field)
{
    return wrong(r, false, field, "out of memory to replay it");
}

// ---- one model

// Room for `need` slots. A cache cannot grow: a larger one is opened and will read its context again.
static hm_status make_room(struct side *s, size_t need, struct hm_error *err)
{
    size_t have = s->cache ? hm_cache_positions(s->cache) : 0, want = have ? 2 * have : FIRST_POSITIONS;
    if (need <= have) return HM_OK;
    hm_cache_close(s->cache);
    s->cache = NULL;
    return hm_cache_open(s->model, want > need ? want : need, &s->cache, err);
}

// Tokens as the model knows them: an id that the draft does not have is fed as 0, as its drafter does.
static hm_status translate(struct side *s, const int32_t *token, size_t n, struct hm_error *err)
{
    void *feed = s->feed;
    if (!hm_grow(&feed, &s->feed_capacity, n, sizeof *s->feed))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu tokens", n);
    s->feed = feed;
    for (size_t i = 0; i < n; i++) s->feed[i] = (size_t)token[i] < s->vocab ? token[i] : 0;
    return HM_OK;
}

// Reads the context up to `length` tokens, of which the cache may hold some; logits of the last, or NULL.
static hm_status read_context(struct hm_replay *r, struct side *s, size_t length, float *logits, struct hm_error *err)
{
    size_t known = hm_cache_length(s->cache);
    if (known >= length) return HM_OK;
    hm_status rc = translate(s, r->context + known, length - known, err);
    return rc ? rc : hm_model_prefill(s->model, s->cache, s->feed, length - known, logits, NULL, err);
}

// The tree of the round as one pass.
static hm_status run_pass(struct hm_replay *r, struct side *s, struct hm_error *err)
{
    size_t floats;
    void *rows = s->rows;
    if (!hm_mul_size(r->nodes, s->vocab, &floats) || !hm_grow(&rows, &s->row_capacity, floats, sizeof *s->rows))
        return hm_fail(err, HM_MEMORY, "out of memory for %zu rows", r->nodes);
    s->rows = rows;
    hm_status rc = make_room(s, r->root + r->nodes, err);
    if (!rc) rc = read_context(r, s, r->root, NULL, err);
    if (!rc) rc = translate(s, r->token, r->nodes, err);
    if (rc) return rc;
    struct hm_pass pass = {
        .token = s->feed, .parent = r->parent, .rows = r->nodes, .logits_for = r->every, .logits_count = r->nodes};
    rc = hm_model_forward(s->model, s->cache, &pass, s->rows, err);
    s->passed = !rc;
    return rc;
}

static hm_status commit_path(struct hm_replay *r, struct side *s, struct hm_error *err)
{
    if (!s->passed) return HM_OK;
    s->passed = false;
    return hm_cache_commit(s->cache, r->path, r->path_length, err);
}

// ---- what the checker calls

static bool same_hash(struct hm_replay *r, const struct side *s, const char *logged)
{
    char field[32];
    snprintf(field, sizeof field, "%s.sha256", s->name);
    if (strcmp(s->sha256, logged) == 0) return true;
    return wrong(r, true, field, "expected %.64s as the model has it, found %.64s", s->sha256, logged);
}

static bool on_header(void *user, const char *target_sha256, const char *draft_sha256, uint64_t vocab)
{
    struct hm_replay *r = user;
    bool has_draft = draft_sha256 && *draft_sha256;
    if (!same_hash(r, &r->target, target_sha256)) return false;
    if (vocab != r->target.vocab)
        return wrong(r, true, "target.vocab", "expected %zu, found %llu", r->target.vocab, (unsigned long long)vocab);
    if (has_draft && !*r->draft.sha256) return wrong(r, false, "draft", "expected --draft DIR for a log with a draft model");
    if (!has_draft && *r->draft.sha256) return wrong(r, false, "draft", "expected no --draft for a log without a draft model");
    return !has_draft || same_hash(r, &r->draft, draft_sha256);
}

static bool append(struct hm_replay *r, int32_t token)
{
    void *grown = r->context;
    if (!hm_grow(&grown, &r->context_capacity, r->length + 1, sizeof *r->context)) return no_memory(r, "token");
    r->context = grown;
    r->context[r->length++] = token;
    return true;
}

static bool on_sequence(void *user, const int32_t *prompt, size_t length)
{
    struct hm_replay *r = user;
    struct hm_error err;
    if (length == 0) return wrong(r, true, "prompt", "expected at least one token, found none");
    if (length > r->target.most)
        return wrong(r, true, "prompt", "expected at most %zu tokens, the model's positions, found %zu", r->target.most,
                     length);
    r->length = r->nodes = r->path_length = 0;
    for (size_t i = 0; i < length; i++) {
        if (prompt[i] < 0 || (size_t)prompt[i] >= r->target.vocab)
            return wrong(r, true, "prompt", "expected ids below %zu, found %d at place %zu", r->target.vocab, prompt[i], i);
        if (!append(r, prompt[i])) return false;
    }
    r->target.passed = r->draft.passed = false;
    if (r->draft.cache) hm_cache_truncate(r->draft.cache, 0);
    hm_status rc = make_room(&r->target, length, &err);
    if (rc) return failed(r, "prompt", rc, &err);
    hm_cache_truncate(r->target.cache, 0);
    rc = read_context(r, &r->target, length, r->prompt_row, &err);
    return rc ? failed(r, "prompt", rc, &err) : true;
}

// Copies the tree, as the lines it came from are gone when a draft row is asked for.
static bool copy_tree(struct hm_replay *r, size_t nodes, const int32_t *parent, const int32_t *token)
{
    void *parents = r->parent, *tokens = r->token, *every = r->every, *path = r->path;
    bool good = hm_grow(&parents, &r->parent_capacity, nodes, sizeof *r->parent);
    if (good) r->parent = parents;
    good = good && hm_grow(&tokens, &r->token_capacity, nodes, sizeof *r->token);
    if (good) r->token = tokens;
    good = good && hm_grow(&every, &r->every_capacity, nodes, sizeof *r->every);
    if (good) r->every = every;
    good = good && hm_grow(&path, &r->path_capacity, nodes, sizeof *r->path);
    if (!good) return no_memory(r, "round");
    r->path = path;
    r->nodes = nodes;
    r->root = r->length - 1; // the newest token
    memcpy(r->parent, parent, nodes * sizeof *parent);
    memcpy(r->token, token, nodes * sizeof *token);
    for (size_t i = 0; i < nodes; i++) r->every[i] = (uint32_t)i;
    r->path[0] = 0;
    r->path_length = 1;
    return true;
}

static bool on_round(void *user, size_t nodes, const int32_t *parent, const int32_t *token)
{
    struct hm_replay *r = user;
    struct hm_error err;
    if (nodes == 0 || r->length == 0) return wrong(r, true, "round", "expected a root that was emitted before");
    hm_status rc = commit_path(r, &r->target, &err);
    if (!rc) rc = commit_path(r, &r->draft, &err);
    if (rc) return failed(r, "round", rc, &err);
    for (size_t i = 0; i < nodes; i++)
        if (token[i] < 0 || (size_t)token[i] >= r->target.vocab)
            return wrong(r, true, "token", "expected ids below %zu, found %d at node %zu", r->target.vocab, token[i], i);
    if (!copy_tree(r, nodes, parent, token)) return false;
    rc = run_pass(r, &r->target, &err);
    return rc ? failed(r, "round", rc, &err) : true;
}

static bool on_emitted(void *user, int32_t token, int64_t node)
{
    struct hm_replay *r = user;
    if (!append(r, token)) return false;
    if (node <= 0) return true;
    if ((uint64_t)node >= r->nodes || r->path_length >= r->nodes)
        return wrong(r, true, "child", "expected a node below %zu, found %lld", r->nodes, (long long)node);
    r->path[r->path_length++] = (uint32_t)node;
    return true;
}

// The draft's row on the target's ids: ids that the draft does not have are never proposed, ids that the target does
// not have are left out.
static void fit(const struct side *s, const float *row, size_t vocab, float *out)
{
    for (size_t i = 0; i < vocab; i++) out[i] = i < s->vocab ? row[i] : -INFINITY;
}

static bool on_row(void *user, bool draft, int64_t node, float *out, bool *known)
{
    struct hm_replay *r = user;
    struct hm_error err;
    struct side *s = draft ? &r->draft : &r->target;
    *known = false;
    if (node >= 0 && (uint64_t)node >= r->nodes)
        return wrong(r, true, "node", "expected a node below %zu, found %lld", r->nodes, (long long)node);
    if (draft && (node < 0 || !s->model)) return true; // a draft begins after the first token
    *known = true;
    if (node < 0) {
        memcpy(out, r->prompt_row, s->vocab * sizeof *out);
        return true;
    }
    hm_status rc = s->passed ? HM_OK : run_pass(r, s, &err);
    if (rc) return failed(r, draft ? "draft_row" : "row", rc, &err);
    fit(s, s->rows + (size_t)node * s->vocab, r->target.vocab, out);
    return true;
}

// ---- opening

static hm_status open_side(struct side *s, const char *name, const char *dir, struct hm_device *device, struct hm_error *err)
{
    s->name = name;
    hm_status rc = hm_model_open(dir, device, &s->model, err);
    if (rc) return rc;
    s->vocab = hm_model_info(s->model)->vocab;
    s->most = hm_model_info(s->model)->max_positions;
    memcpy(s->sha256, hm_model_info(s->model)->sha256, sizeof s->sha256);
    return HM_OK;
}

// A head is loaded for its hash alone.
static hm_status open_head(struct hm_replay *r, const char *dir, struct hm_error *err)
{
    static const struct hm_eagle3_options least = {.positions = 1, .width = 1, .depth = 1};
    struct hm_drafter *head;
    r->draft.name = "draft";
    hm_status rc = hm_drafter_open_eagle3(dir, r->target.model, r->device, &least, &head, err);
    if (rc) return rc;
    memcpy(r->draft.sha256, hm_drafter_eagle3_info(head)->sha256, sizeof r->draft.sha256);
    hm_drafter_close(head);
    r->source.reads_draft = true;
    return HM_OK;
}

static hm_status open_draft(struct hm_replay *r, const char *dir, struct hm_error *err)
{
    bool head;
    hm_status rc = hm_eagle3_detect(dir, &head, err);
    if (rc) return rc;
    return head ? open_head(r, dir, err) : open_side(&r->draft, "draft", dir, r->device, err);
}

hm_status hm_replay_open(const char *target, const char *draft, unsigned threads, struct hm_replay **out,
                         struct hm_error *err)
{
    struct hm_replay *r = *out = hm_calloc(1, sizeof *r);
    if (!r) return hm_fail(err, HM_MEMORY, "out of memory for a replay");
    r->source = (struct hm_check_replay){.user = r, .error = &r->error, .header = on_header, .sequence = on_sequence,
                                         .round = on_round, .emitted = on_emitted, .row = on_row};
    hm_status rc = hm_device_open_cpu(threads, HM_ISA_BEST, &r->device, err);
    if (!rc) rc = open_side(&r->target, "target", target, r->device, err);
    if (!rc && draft) rc = open_draft(r, draft, err);
    if (!rc && !(r->prompt_row = hm_calloc(r->target.vocab, sizeof *r->prompt_row)))
        rc = hm_fail(err, HM_MEMORY, "out of memory for a row of %zu logits", r->target.vocab);
    if (!rc) return HM_OK;
    hm_replay_close(r);
    *out = NULL;
    return rc;
}

static void close_side(struct side *s)
{
    hm_cache_close(s->cache);
    hm_model_close(s->model);
    free(s->rows);
    free(s->feed);
}

void hm_replay_close(struct hm_replay *r)
{
    if (!r) return;
    close_side(&r->target);
    close_side(&r->draft);
    hm_device_close(r->device);
    free(r->context);
    free(r->prompt_row);
    free(r->parent);
    free(r->token);
    free(r->every);
    free(r->path);
    free(r);
}

const struct hm_check_replay *hm_replay_source(const struct hm_replay *r)
{
    return &r->source;
}
