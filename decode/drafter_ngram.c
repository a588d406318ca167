// The n-gram drafter: see drafter.h. A candidate's probability is the share of the earlier occurrences of its longest
// matching suffix (4 tokens down to 1) that it followed; among equals the more recent follower comes first.
#include "decode/drafter.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SUFFIX = 4, MOST_FOLLOWERS = 256 };

struct follower {
    int32_t token;
    size_t count, last; // occurrences, and where the newest one stands
};

struct ngram_drafter {
    struct hm_drafter base;
    int32_t *path;      // context and the path of one candidate
    size_t path_capacity;
    int32_t *token;     // children of one parent [width]
    float *logq;
    size_t child_capacity;
    struct follower follower[MOST_FOLLOWERS];
};

// Counts what followed the `n` newest tokens of path[length] earlier in context[known]; returns the number of distinct
// followers. Positions are scanned from the newest back, so a full table keeps the most recent followers.
static size_t count_followers(struct ngram_drafter *d, const int32_t *path, size_t length, size_t known, size_t n,
                              size_t *total)
{
    size_t found = 0;
    const int32_t *suffix = path + length - n;
    *total = 0;
    for (size_t end = known - 1; end >= n; end--) { // the follower stands at `end`, the match before it
        if (path[end - 1] != suffix[n - 1] || memcmp(path + end - n, suffix, n * sizeof *suffix) != 0) continue;
        size_t i = 0;
        while (i < found && d->follower[i].token != path[end]) i++;
        if (i == found) {
            if (found == MOST_FOLLOWERS) continue;
            d->follower[found++] = (struct follower){.token = path[end], .last = end};
        }
        d->follower[i].count++;
        ++*total;
    }
    return found;
}

static int by_weight(const void *a, const void *b)
{
    const struct follower *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->last > y->last ? -1 : x->last < y->last;
}

// Adds the children of one parent: followers of the longest suffix that has any.
static hm_status add_children(struct ngram_drafter *d, size_t known, size_t length, int32_t parent, struct hm_pool *pool,
                              struct hm_error *err)
{
    size_t longest = length < LONGEST_SUFFIX ? length : LONGEST_SUFFIX;
    for (size_t n = longest; n >= 1; n--) {
        size_t total, found = count_followers(d, d->path, length, known, n, &total);
        if (found == 0) continue;
        qsort(d->follower, found, sizeof *d->follower, by_weight);
        if (found > pool->width) found = pool->width;
        for (size_t i = 0; i < found; i++) {
            d->token[i] = d->follower[i].token;
            d->logq[i] = (float)log((double)d->follower[i].count / (double)total);
        }
        return hm_pool_add(pool, parent, d->token, d->logq, found, err);
    }
    return HM_OK;
}

// Writes the tokens of the candidate's path after the context; returns the whole length.
static size_t write_path(struct ngram_drafter *d, size_t known, const struct hm_pool *pool, size_t candidate)
{
    size_t length = known + pool->candidate[candidate].depth;
    for (int32_t c = (int32_t)candidate; c >= 0; c = pool->candidate[c].parent)
        d->path[known + pool->candidate[c].depth - 1] = pool->candidate[c].token;
    return length;
}

static hm_status propose(struct hm_drafter *base, const int32_t *context, size_t length, size_t depth,
                         struct hm_pool *pool, struct hm_error *err)
{
    struct ngram_drafter *d = (struct ngram_drafter *)base;
    void *path = d->path, *token = d->token, *logq = d->logq;
    size_t tokens = d->child_capacity, floats = d->child_capacity;
    bool room = hm_grow(&path, &d->path_capacity, length + depth + 1, sizeof *d->path);
    d->path = path;
    room = room && hm_grow(&token, &tokens, pool->width, sizeof *d->token);
    d->token = token;
    room = room && hm_grow(&logq, &floats, pool->width, sizeof *d->logq);
    d->logq = logq;
    if (!room) return hm_fail(err, HM_MEMORY, "out of memory for an n-gram draft over %zu tokens", length);
    d->child_capacity = floats;

    hm_pool_reset(pool);
    memcpy(d->path, context, length * sizeof *context);
    hm_status rc = add_children(d, length, length, -1, pool, err);
    for (size_t level = 0; level < depth && !rc; level++) {
        hm_pool_advance(pool);
        if (pool->beam_count == 0) break;
        for (size_t i = 0; i < pool->beam_count && !rc; i++) {
            size_t whole = write_path(d, length, pool, pool->beam[i]);
            rc = add_children(d, length, whole, (int32_t)pool->beam[i], pool, err);
        }
    }
    return rc;
}

static void restart(struct hm_drafter *base)
{
    (void)base; // the context arrives whole with every call
}

static void close_ngram(struct hm_drafter *base)
{
    struct ngram_drafter *d = (struct ngram_drafter *)base;
    free(d->path);
    free(d->token);
    free(d->logq);
    free(d);
}

hm_status hm_drafter_open_ngram(struct hm_drafter **out, struct hm_error *err)
{
    static const struct hm_drafter_ops ops = {.propose = propose, .restart = restart, .close = close_ngram};
    struct ngram_drafter *d = hm_calloc(1, sizeof *d);
    *out = NULL;
    if (!d) return hm_fail(err, HM_MEMORY, "out of memory for a drafter");
    d->base = (struct hm_drafter){.ops = &ops, .name = "ngram", .positions = SIZE_MAX};
    *out = &d->base;
    return HM_OK;
}

void hm_drafter_close(struct hm_drafter *drafter)
{
    if (drafter) drafter->ops->close(drafter);
}
