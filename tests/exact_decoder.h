// Whole decodes in exact rational arithmetic: a language model on a small alphabet, rounds with draft trees, and the law of
// the sequences they emit. See exact_law.h.
#ifndef HM_TESTS_EXACT_DECODER_H
#define HM_TESTS_EXACT_DECODER_H

#include "tests/certify_rows.h"
#include "tests/exact_law.h"

enum { MOST_LENGTH = 3, MOST_PREFIXES = 1 + 5 + 25 + 125, MOST_SEQUENCES = 125, MOST_LEVELS = 3, MOST_CHILDREN = 3 };

// p and q after each prefix of fewer than `length` tokens, and what a topk tree holds there. A prefix is its place in
// order of length, then of tokens as digits.
struct exact_model {
    size_t vocab, length;
    struct exact_position at[MOST_PREFIXES];
    size_t child_count[MOST_PREFIXES];
    int32_t children[MOST_PREFIXES][MOST_TOKENS];
};

struct prefix {
    size_t length, code; // code: tokens as digits
};

static inline struct prefix prefix_and(const struct exact_model *m, struct prefix a, int32_t token)
{
    return (struct prefix){a.length + 1, a.code * m->vocab + (size_t)token};
}

static inline size_t prefix_place(const struct exact_model *m, struct prefix a)
{
    size_t first = 0, count = 1;
    for (size_t i = 0; i < a.length; i++, count *= m->vocab) first += count;
    return first + a.code;
}

static inline size_t sequence_count(const struct exact_model *m)
{
    size_t count = 1;
    for (size_t i = 0; i < m->length; i++) count *= m->vocab;
    return count;
}

// Counts below 6, zeros among them.
static inline void random_law(struct random *r, struct exact_law *x)
{
    unsigned counts[MOST_TOKENS] = {0}, sum = 0;
    while (sum == 0)
        for (size_t i = 0; i < x->vocab; i++) sum += counts[i] = below(r, 3) ? (unsigned)below(r, 6) : 0;
    law_set(x, counts);
}

// The first k of p's order: any k, as rules other than nucleus have it.
static inline void keep_first_tokens(struct exact_position *x, size_t k)
{
    memset(x->kept, 0, sizeof x->kept);
    for (size_t n = 0; n < k; n++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < x->p.vocab; i++)
            if (!x->kept[i] && (best == SIZE_MAX || mpq_cmp(x->p.at[i], x->p.at[best]) > 0)) best = i;
        x->kept[best] = true;
    }
}

static inline void random_children(struct random *r, struct exact_model *m, size_t place)
{
    size_t count = below(r, m->vocab + 1);
    for (size_t i = 0; i < m->vocab; i++) m->children[place][i] = (int32_t)i;
    for (size_t i = 0; i < count; i++) {
        size_t j = i + below(r, m->vocab - i);
        int32_t other = m->children[place][j];
        m->children[place][j] = m->children[place][i];
        m->children[place][i] = other;
    }
    m->child_count[place] = count;
}

static inline void model_init(struct exact_model *m, struct random *r, size_t vocab, size_t length)
{
    m->vocab = vocab;
    m->length = length;
    size_t places = prefix_place(m, (struct prefix){length, 0});
    for (size_t i = 0; i < places; i++) {
        position_init(&m->at[i], vocab);
        random_law(r, &m->at[i].p);
        random_law(r, &m->at[i].q);
        if (below(r, 6) == 0) law_copy(&m->at[i].q, &m->at[i].p);
        keep_first_tokens(&m->at[i], below(r, vocab + 1));
        random_children(r, m, i);
    }
}

static inline void model_clear(struct exact_model *m)
{
    size_t places = prefix_place(m, (struct prefix){m->length, 0});
    for (size_t i = 0; i < places; i++) position_clear(&m->at[i]);
}

// How a decode goes.
enum exact_acceptance { EXACT_MATCH, EXACT_STANDARD, EXACT_NUCLEUS };
struct exact_decoder {
    const struct exact_model *model;
    enum exact_acceptance how;
    enum hm_proposal kind;
    size_t levels, siblings; // depth of a tree; iid: children at each of its nodes that has any
    // NULL: every draw of a tree is fresh. Else child j of a node that decides position t carries the draw of the number
    // numbers[t][j] / NUMBERS, in this round and in every later one (docs/log.md, "The walk").
    const unsigned (*numbers)[MOST_CHILDREN];
    mpq_t law[MOST_SEQUENCES];
};
enum { NUMBERS = 4 }; // q's probabilities are multiples of 1/NUMBERS then

static inline void decoder_init(struct exact_decoder *d)
{
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_init(d->law[i]);
}

static inline void decoder_clear(struct exact_decoder *d)
{
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_clear(d->law[i]);
}

// One round's draws: those of level i hang under the first draw of each level before.
struct exact_tree {
    size_t levels;
    int32_t draws[MOST_LEVELS][MOST_CHILDREN];
};

// A walk that has come to `at`, `level` levels below its root.
struct exact_walk {
    struct exact_decoder *decoder;
    const struct exact_tree *tree; // iid
    struct prefix at;
    size_t level;
};

static inline void run_round(struct exact_decoder *d, struct prefix at, mpq_srcptr chance);
static inline void walk(const struct exact_walk *w, mpq_srcptr chance);

// The draw at a node where no child is looked at; the round ends.
static inline void continue_from(struct exact_decoder *d, struct prefix at, mpq_srcptr chance)
{
    const struct exact_position *x = &d->model->at[prefix_place(d->model, at)];
    mpq_t both;
    mpq_init(both);
    for (size_t i = 0; i < d->model->vocab; i++) {
        mpq_mul(both, chance, x->p.at[i]);
        if (mpq_sgn(both) > 0) run_round(d, prefix_and(d->model, at, (int32_t)i), both);
    }
    mpq_clear(both);
}

static inline void step(void *user, const struct exact_event *event, mpq_srcptr chance)
{
    const struct exact_walk *w = user;
    struct exact_walk next = *w;
    next.at = prefix_and(w->decoder->model, w->at, event->token);
    next.level++;
    if (event->child < 0) run_round(w->decoder, next.at, chance);
    else if (next.at.length == w->decoder->model->length) run_round(w->decoder, next.at, chance);
    else if (w->decoder->kind == HM_PROPOSAL_IID && event->child > 0) continue_from(w->decoder, next.at, chance); // a leaf
    else walk(&next, chance);
}

static inline void match_children(const struct exact_walk *w, const int32_t *children, size_t count, mpq_srcptr chance)
{
    const struct exact_position *x = &w->decoder->model->at[prefix_place(w->decoder->model, w->at)];
    for (size_t i = 0; i < w->decoder->model->vocab; i++) {
        int child = -1;
        for (size_t j = 0; j < count; j++)
            if (children[j] == (int32_t)i) child = (int)j;
        report(step, (void *)w, (int32_t)i, child, false, chance, x->p.at[i]);
    }
}

static inline void walk(const struct exact_walk *w, mpq_srcptr chance)
{
    struct exact_decoder *d = w->decoder;
    size_t place = prefix_place(d->model, w->at), count = d->model->child_count[place];
    const int32_t *children = d->model->children[place];
    size_t levels = d->kind == HM_PROPOSAL_IID ? w->tree->levels : d->levels;
    if (d->kind == HM_PROPOSAL_IID && w->level < levels) {
        children = w->tree->draws[w->level];
        count = d->siblings;
    }
    if (w->level == levels || count == 0) continue_from(d, w->at, chance);
    else if (d->how == EXACT_MATCH) match_children(w, children, count, chance);
    else try_proposals(&d->model->at[place], d->kind, children, count, d->how == EXACT_NUCLEUS, chance, step, (void *)w);
}

// The least token at which the running sum passes number / NUMBERS.
static inline int32_t drawn_by(const struct exact_law *q, unsigned number)
{
    mpq_t sum, u;
    size_t i = 0;
    mpq_inits(sum, u, NULL);
    mpq_set_ui(u, number, NUMBERS);
    mpq_canonicalize(u);
    for (; i < q->vocab; i++) {
        mpq_add(sum, sum, q->at[i]);
        if (mpq_cmp(sum, u) > 0) break;
    }
    mpq_clears(sum, u, NULL);
    return (int32_t)i;
}

// Draws the rest of the tree from a level on, all of it before any walk, then walks.
static inline void grow(struct exact_decoder *d, struct exact_tree *tree, struct prefix root, struct prefix node, size_t level,
                        mpq_srcptr chance)
{
    if (level == tree->levels || level == MOST_LEVELS) {
        struct exact_walk w = {d, tree, root, 0};
        walk(&w, chance);
        return;
    }
    const struct exact_law *q = &d->model->at[prefix_place(d->model, node)].q;
    if (d->numbers) {
        for (size_t j = 0; j < d->siblings; j++) tree->draws[level][j] = drawn_by(q, d->numbers[node.length][j]);
        grow(d, tree, root, prefix_and(d->model, node, tree->draws[level][0]), level + 1, chance);
        return;
    }
    size_t all = 1;
    mpq_t both;
    mpq_init(both);
    for (size_t j = 0; j < d->siblings; j++) all *= d->model->vocab;
    for (size_t code = 0; code < all; code++) {
        size_t rest = code;
        mpq_set(both, chance);
        for (size_t j = 0; j < d->siblings; j++, rest /= d->model->vocab) {
            tree->draws[level][j] = (int32_t)(rest % d->model->vocab);
            mpq_mul(both, both, q->at[tree->draws[level][j]]);
        }
        if (mpq_sgn(both) > 0) grow(d, tree, root, prefix_and(d->model, node, tree->draws[level][0]), level + 1, both);
    }
    mpq_clear(both);
}

static inline void run_round(struct exact_decoder *d, struct prefix at, mpq_srcptr chance)
{
    if (at.length == d->model->length) {
        mpq_add(d->law[at.code], d->law[at.code], chance);
        return;
    }
    struct exact_tree tree = {.levels = d->model->length - at.length < d->levels ? d->model->length - at.length : d->levels};
    struct exact_walk w = {d, NULL, at, 0};
    if (d->kind == HM_PROPOSAL_IID) grow(d, &tree, at, at, 0, chance);
    else walk(&w, chance);
}

// The law of the sequences, from the empty prefix. Over every table of numbers when they are not fresh.
static inline void decode(struct exact_decoder *d, bool fresh)
{
    unsigned numbers[MOST_LENGTH][MOST_CHILDREN];
    size_t tables = 1, count = d->siblings * d->model->length;
    mpq_t chance;
    mpq_init(chance);
    for (size_t i = 0; i < count && !fresh; i++) tables *= NUMBERS;
    mpq_set_ui(chance, 1, tables);
    d->numbers = fresh ? NULL : (const unsigned (*)[MOST_CHILDREN])numbers;
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_set_ui(d->law[i], 0, 1);
    for (size_t table = 0; table < tables; table++) {
        size_t rest = table;
        for (size_t i = 0; i < count && !fresh; i++, rest /= NUMBERS) numbers[i / d->siblings][i % d->siblings] = rest % NUMBERS;
        run_round(d, (struct prefix){0, 0}, chance);
    }
    mpq_clear(chance);
}

// The target's probability of a sequence.
static inline void target_probability(const struct exact_model *m, size_t code, mpq_t out)
{
    size_t digits[MOST_LENGTH], rest = code;
    struct prefix at = {0, 0};
    for (size_t i = m->length; i-- > 0; rest /= m->vocab) digits[i] = rest % m->vocab;
    mpq_set_ui(out, 1, 1);
    for (size_t i = 0; i < m->length; i++) {
        mpq_mul(out, out, m->at[prefix_place(m, at)].p.at[digits[i]]);
        at = prefix_and(m, at, (int32_t)digits[i]);
    }
}

#endif
