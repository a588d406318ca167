// Batch invariance, by memcmp: a row of logits is the same however it is computed. The reference is plain decoding,
// token by token, one thread, portable code; against it stand chunked passes of many sizes, prefills, random trees
// after random prefixes (in one pass or grown level by level), and decoding on after a committed tree path, for every
// instruction set this machine has and 1 to 4 threads.
#include "tests/model_support.h"

enum { TOKENS_MOST = 176, TREE_MOST = 130, AFTER = 3 };

// A model on the reference device and the same on the device under test.
struct pair {
    const char *name;
    struct hm_model *plain, *tested;
    struct hm_cache *plain_cache, *tested_cache;
    size_t vocab, length; // tokens that fit the model, at most TOKENS_MOST
    int32_t token[TOKENS_MOST];
    float *reference; // [length][vocab] rows of plain decoding
};

static void equal_rows(const float *want, const float *have, size_t vocab, const char *what, size_t place)
{
    for (size_t i = 0; i < vocab; i++)
        if (memcmp(&want[i], &have[i], sizeof *want) != 0)
            fail_msg("%s, row %zu: logit %zu: expected %a, found %a", what, place, i, (double)want[i], (double)have[i]);
}

// One token after the committed ones, committed.
static void plain_step(struct hm_model *model, struct hm_cache *cache, int32_t token, float *logits)
{
    struct hm_error err = {0};
    int32_t parent = -1;
    uint32_t only = 0;
    struct hm_pass pass = {&token, &parent, 1, &only, 1, NULL};
    expect_ok(hm_model_forward(model, cache, &pass, logits, &err), &err);
    expect_ok(hm_cache_commit(cache, &only, 1, &err), &err);
}

static void set_up(struct pair *p, const char *name, struct hm_device *plain, struct hm_device *tested, uint64_t *seed)
{
    *p = (struct pair){.name = name, .plain = open_model(name, plain), .tested = open_model(name, tested)};
    const struct hm_model_info *info = hm_model_info(p->plain);
    p->vocab = info->vocab;
    p->length = info->max_positions < TOKENS_MOST ? info->max_positions : TOKENS_MOST;
    for (size_t i = 0; i < p->length; i++) p->token[i] = (int32_t)draw(seed, (uint32_t)p->vocab);
    p->reference = malloc(p->length * p->vocab * sizeof(float));
    p->plain_cache = open_cache(p->plain, p->length);
    p->tested_cache = open_cache(p->tested, p->length + TREE_MOST);
    for (size_t i = 0; i < p->length; i++)
        plain_step(p->plain, p->plain_cache, p->token[i], p->reference + i * p->vocab);
}

static void tear_down(struct pair *p)
{
    hm_cache_close(p->plain_cache);
    hm_cache_close(p->tested_cache);
    hm_model_close(p->plain);
    hm_model_close(p->tested);
    free(p->reference);
}

// The whole sequence in causal passes of `step` rows, every row compared.
static void chunked(struct pair *p, size_t step)
{
    struct hm_error err = {0};
    int32_t parent[TOKENS_MOST];
    uint32_t every[TOKENS_MOST];
    float *logits = malloc(TOKENS_MOST * p->vocab * sizeof *logits);
    for (size_t r = 0; r < TOKENS_MOST; r++) parent[r] = (int32_t)r - 1, every[r] = (uint32_t)r;
    hm_cache_truncate(p->tested_cache, 0);
    for (size_t done = 0; done < p->length; done += step) {
        size_t rows = p->length - done < step ? p->length - done : step;
        struct hm_pass pass = {p->token + done, parent, rows, every, rows, NULL};
        expect_ok(hm_model_forward(p->tested, p->tested_cache, &pass, logits, &err), &err);
        expect_ok(hm_cache_commit(p->tested_cache, every, rows, &err), &err);
        for (size_t r = 0; r < rows; r++)
            equal_rows(p->reference + (done + r) * p->vocab, logits + r * p->vocab, p->vocab, p->name, done + r);
    }
    free(logits);
}

static void prefilled(struct pair *p, size_t count)
{
    struct hm_error err = {0};
    float *logits = malloc(p->vocab * sizeof *logits);
    hm_cache_truncate(p->tested_cache, 0);
    expect_ok(hm_model_prefill(p->tested, p->tested_cache, p->token, count, logits, NULL, &err), &err);
    equal_rows(p->reference + (count - 1) * p->vocab, logits, p->vocab, "prefill", count - 1);
    free(logits);
}

// A random tree of `nodes` rows; shapes from bushes to chains, some with several first rows.
struct tree {
    size_t nodes;
    int32_t token[TREE_MOST], parent[TREE_MOST];
    uint32_t depth[TREE_MOST];
};

static void random_tree(struct tree *t, size_t nodes, size_t depth_most, size_t vocab, uint64_t *seed)
{
    uint32_t reach = 1 + draw(seed, 12); // 1 gives a chain
    t->nodes = nodes;
    for (size_t r = 0; r < nodes; r++) {
        t->token[r] = (int32_t)draw(seed, (uint32_t)vocab);
        uint32_t back = 1 + draw(seed, reach);
        t->parent[r] = back > r ? -1 : (int32_t)(r - back);
        if (t->parent[r] >= 0 && t->depth[t->parent[r]] + 1 >= depth_most) t->parent[r] = -1;
        t->depth[r] = t->parent[r] < 0 ? 0 : t->depth[t->parent[r]] + 1;
    }
}

// The path to a node, first row first; returns its length.
static size_t path_to(const struct tree *t, size_t node, uint32_t path[TREE_MOST])
{
    size_t n = t->depth[node] + 1, at = n;
    for (int32_t r = (int32_t)node; r >= 0; r = t->parent[r]) path[--at] = (uint32_t)r;
    return n;
}

// Runs the tree in passes of at most `step` rows on the device under test; logits in scrambled order, one row twice.
static void run_tree(struct pair *p, const struct tree *t, size_t step, float *logits, uint64_t *seed)
{
    struct hm_error err = {0};
    float *scrambled = malloc((TREE_MOST + 1) * p->vocab * sizeof *scrambled);
    for (size_t first = 0; first < t->nodes; first += step) {
        size_t rows = t->nodes - first < step ? t->nodes - first : step;
        uint32_t order[TREE_MOST + 1];
        for (size_t j = 0; j < rows; j++) {
            size_t other = draw(seed, (uint32_t)j + 1);
            order[j] = order[other];
            order[other] = (uint32_t)j;
        }
        order[rows] = order[0];
        struct hm_pass pass = {t->token + first, t->parent + first, rows, order, rows + 1, NULL};
        expect_ok(hm_model_forward(p->tested, p->tested_cache, &pass, scrambled, &err), &err);
        equal_rows(scrambled, scrambled + rows * p->vocab, p->vocab, "asked for twice", order[0]);
        for (size_t j = 0; j < rows; j++)
            memcpy(logits + (first + order[j]) * p->vocab, scrambled + j * p->vocab, p->vocab * sizeof *logits);
    }
    free(scrambled);
}

// Every node of a random tree against plain decoding of its own path; then one path is committed and decoding goes on.
static void tree_after_prefix(struct pair *p, size_t prefix, size_t nodes, size_t step, uint64_t *seed)
{
    struct hm_error err = {0};
    struct tree t;
    uint32_t path[TREE_MOST];
    float *logits = malloc(TREE_MOST * p->vocab * sizeof *logits), *row = malloc(2 * p->vocab * sizeof *row);
    random_tree(&t, nodes, p->length - prefix - AFTER, p->vocab, seed);
    hm_cache_truncate(p->tested_cache, 0);
    hm_cache_truncate(p->plain_cache, 0);
    if (prefix) {
        expect_ok(hm_model_prefill(p->tested, p->tested_cache, p->token, prefix, NULL, NULL, &err), &err);
        expect_ok(hm_model_prefill(p->plain, p->plain_cache, p->token, prefix, NULL, NULL, &err), &err);
    }
    run_tree(p, &t, step, logits, seed);
    assert_int_equal(hm_cache_scratch(p->tested_cache), nodes);
    // Rows are checked along the paths to the last nodes, one node in four and the deepest: plain decoding is slow.
    size_t deepest = 0, n;
    for (size_t r = 0; r < nodes; r++)
        if (t.depth[r] >= t.depth[deepest]) deepest = r;
    for (size_t r = 0; r < nodes; r++) {
        if (r != deepest && r + 1 != nodes && draw(seed, 4)) continue;
        n = path_to(&t, r, path);
        hm_cache_truncate(p->plain_cache, prefix);
        for (size_t i = 0; i < n; i++) {
            plain_step(p->plain, p->plain_cache, t.token[path[i]], row);
            equal_rows(row, logits + path[i] * p->vocab, p->vocab, p->name, path[i]);
        }
    }
    n = path_to(&t, draw(seed, 2) ? deepest : draw(seed, (uint32_t)nodes), path);
    n = draw(seed, (uint32_t)n + 1); // part of the path, or nothing
    expect_ok(hm_cache_commit(p->tested_cache, path, n, &err), &err);
    assert_int_equal(hm_cache_length(p->tested_cache), prefix + n);
    assert_int_equal(hm_cache_scratch(p->tested_cache), 0);
    hm_cache_truncate(p->plain_cache, prefix);
    for (size_t i = 0; i < n; i++) plain_step(p->plain, p->plain_cache, t.token[path[i]], row);
    for (size_t i = 0; i < AFTER; i++) {
        int32_t next = (int32_t)draw(seed, (uint32_t)p->vocab);
        plain_step(p->plain, p->plain_cache, next, row);
        plain_step(p->tested, p->tested_cache, next, row + p->vocab);
        equal_rows(row, row + p->vocab, p->vocab, "after commit", i);
    }
    free(logits);
    free(row);
}

static void check_device(enum hm_isa isa, unsigned threads, uint64_t *seed)
{
    struct hm_device *tested = open_device(threads, isa), *plain = open_device(1, HM_ISA_PORTABLE);
    for (size_t i = 0; i < CHECKPOINTS && tested; i++) {
        static const size_t steps[] = {2, 3, 7, 16, 33, 64, 95, 96, 97, TOKENS_MOST};
        struct pair p;
        set_up(&p, checkpoints[i], plain, tested, seed);
        for (size_t s = (threads + i) % 4; s < sizeof steps / sizeof *steps; s += 4) chunked(&p, steps[s]);
        prefilled(&p, 1 + draw(seed, (uint32_t)p.length));
        for (size_t trial = 0; trial < 4; trial++) {
            if ((trial + threads + i) % 2) continue; // every kind with half of the thread counts
            size_t prefix = trial ? draw(seed, (uint32_t)(p.length - AFTER - 8)) : 0;
            size_t nodes = trial == 3 ? TREE_MOST : 1 + draw(seed, 64);
            tree_after_prefix(&p, prefix, nodes, trial == 2 ? 1 + draw(seed, 9) : nodes, seed);
        }
        tear_down(&p);
    }
    if (tested) print_message("%s\n", tested->detail);
    hm_device_close(tested);
    hm_device_close(plain);
}

static void test_every_way_gives_the_same_bits(void **state)
{
    (void)state;
    static const enum hm_isa list[] = {HM_ISA_PORTABLE, HM_ISA_AVX2, HM_ISA_AVX512};
    uint64_t seed = test_seed();
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (unsigned threads = 1; threads <= 4; threads++) check_device(list[i], threads, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_way_gives_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
