// Rows and trees of the synthetic decode: see test_stamp_tree.h.
#include "tests/test_stamp_tree.h"

#include "certify/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t fixture_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static double uniform(uint64_t x)
{
    return (double)(fixture_mix(x) >> 11) * 0x1p-53;
}

// Rows of a context. Logits stand on a grid of 1/8, so that ties are frequent; now and then one is -inf or -0.
void fixture_rows(struct run *r, uint64_t context)
{
    double noise = uniform(context * 3 + 1) * 2;
    for (size_t i = 0; i < r->decode->vocab; i++) {
        uint64_t key = fixture_mix(context ^ fixture_mix(i + 1));
        double logit = 6 * uniform(key) * uniform(key + 1) * (uniform(key + 2) < 0.2 ? 2 : 1) - 1;
        r->target[i] = (float)(round(logit * 8) / 8);
        r->draft[i] = (float)(round((logit + noise * (uniform(key + 3) - 0.5)) * 8) / 8);
        if (i > 6 && uniform(key + 4) < 0.05) r->target[i] = -INFINITY;
        if (i > 6 && uniform(key + 5) < 0.03) r->draft[i] = -INFINITY;
    }
}

uint64_t fixture_follow(uint64_t context, int32_t token)
{
    return fixture_mix(context ^ fixture_mix((uint64_t)token + 1000));
}

// Opens the draft's row at a node.
static struct hm_row *draft_at(struct run *r, const struct tree *tree, size_t node,
                               const struct hm_rational *temperature)
{
    struct hm_row *row;
    fixture_rows(r, tree->context[node]);
    if (hm_row_open(r->draft, r->decode->vocab, temperature, &row, NULL)) abort();
    return row;
}

static size_t add(struct tree *tree, size_t node, int32_t token, struct hm_row *row)
{
    struct hm_ival p;
    size_t child = tree->nodes++;
    tree->parent[child] = (int32_t)node;
    tree->token[child] = token;
    tree->depth[child] = tree->depth[node] + 1;
    tree->context[child] = fixture_follow(tree->context[node], token);
    if (hm_row_probability(row, token, &p, NULL)) abort();
    tree->logq[child] = logf((float)p.lo);
    return child;
}

// Every node from `from` on, down to the depth, proposes the first `width` tokens of its draft row, while the budget
// lasts.
static void spread(struct run *r, struct tree *tree, size_t from, const struct hm_rational *temperature)
{
    const struct decode *d = r->decode;
    for (size_t node = from; node < tree->nodes; node++) {
        if (tree->depth[node] == d->depth || tree->nodes + d->width > d->budget + 1) continue;
        struct hm_row *row = draft_at(r, tree, node, temperature);
        for (size_t rank = 0; rank < d->width; rank++) add(tree, node, hm_row_token(row, rank), row);
        hm_row_close(row);
    }
}

// Draws from the draft; the first of a node's children goes on.
static void draw_children(struct run *r, struct tree *tree)
{
    const struct decode *d = r->decode;
    for (size_t node = 0; tree->depth[node] < d->depth && tree->nodes + d->width <= d->budget + 1;) {
        struct hm_row *row = draft_at(r, tree, node, &r->certify_temperature);
        size_t first = tree->nodes;
        for (uint32_t j = 0; j < d->width; j++) {
            int32_t token;
            uint64_t bits = hm_philox_bits(r->seed, r->sequence, r->t + (uint32_t)tree->depth[node], HM_DRAW_DRAFT, j);
            if (hm_row_draw(row, d->vocab, bits, &token, NULL)) abort();
            add(tree, node, token, row);
        }
        hm_row_close(row);
        node = first;
    }
}

static bool has_child(const struct tree *tree, size_t node, int32_t token)
{
    for (size_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == (int32_t)node && tree->token[i] == token) return true;
    return false;
}

// Nodes only scored: the best token that a node lacks, under every second node, scored ones too.
static void score(struct run *r, struct tree *tree, const struct hm_rational *temperature)
{
    for (size_t node = 0; tree->scored < r->decode->scored && node < tree->nodes; node += 2) {
        struct hm_row *row = draft_at(r, tree, node, temperature);
        size_t rank = 0;
        while (has_child(tree, node, hm_row_token(row, rank))) rank++;
        add(tree, node, hm_row_token(row, rank), row);
        tree->scored++;
        hm_row_close(row);
    }
}

void fixture_grow(struct run *r, struct tree *tree)
{
    const char *selection = r->decode->selection ? r->decode->selection : "draft";
    bool drawn = strcmp(selection, "root-draw") == 0 || strcmp(selection, "pearl") == 0 ||
                 (strcmp(selection, "covering") == 0 && r->covered);
    struct hm_rational one;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    *tree = (struct tree){.nodes = 1, .first = -1, .parent = {-1}, .token = {r->last}, .context = {r->context}};
    if (drawn) {
        size_t support;
        fixture_rows(r, r->context);
        tree->first = fixture_draw(r, r->t, &support);
        struct hm_row *row = draft_at(r, tree, 0, &one);
        add(tree, 0, tree->first, row);
        hm_row_close(row);
    }
    if (r->decode->iid)
        draw_children(r, tree);
    else
        spread(r, tree, drawn ? 1 : 0, &one);
    score(r, tree, &one);
    hm_rational_clear(&one);
}

size_t fixture_children(const struct tree *tree, size_t node, int32_t *index, int32_t *token)
{
    size_t count = 0;
    for (size_t i = node + 1; i < tree->nodes - tree->scored; i++)
        if (tree->parent[i] == (int32_t)node) {
            if (index) index[count] = (int32_t)i;
            if (token) token[count] = tree->token[i];
            count++;
        }
    return count;
}
