// See test_check_simple_scene.h.
#include "tests/test_check_simple_scene.h"

#include "certify/philox.h"
#include "tests/seed.h"

#include <math.h>
#include <string.h>

bool lies(struct maker *m, enum lie lie) // is this the occasion?
{
    return m->lie == lie && m->nth-- == 0;
}

num uniform(const struct maker *m, int t, enum hm_purpose purpose, int child)
{
    return (num)hm_philox_bits(m->seed, 0, (uint32_t)t, purpose, (uint32_t)child) * 0x1p-53L;
}

int draw(const num *p, num u) // the least id whose mass with those below is more than the share u
{
    num all = 0, sum = 0;
    for (int i = 0; i < VOCAB; i++) all += p[i];
    for (int i = 0; i < VOCAB; i++)
        if ((sum += p[i]) > u * all) return i;
    return VOCAB - 1;
}

static void weigh(const struct maker *m, const float *row, num *p)
{
    num t = m->scene->sampled ? 1.5L : 1, top = -INFINITY, sum = 0;
    for (int i = 0; i < VOCAB; i++) top = fmaxl(top, row[i]);
    for (int i = 0; i < VOCAB; i++) sum += p[i] = expl((row[i] - top) / t);
    for (int i = 0; i < VOCAB; i++) p[i] /= sum;
}

// Rows with ties, empty tokens and drafts that are the target's row, or that in another order, now and then.
static void make_rows(struct maker *m, float *target, float *draft)
{
    size_t kind = test_below(&m->random, 8);
    for (int i = 0; i < VOCAB; i++) {
        double noise = 1.5 * test_signed(&m->random);
        target[i] = (float)(2 * test_signed(&m->random));
        if (kind < 3) target[i] = roundf(2 * target[i]) / 2;
        if (kind == 1 && i > 0 && test_below(&m->random, 3) == 0) target[i] = -INFINITY;
        draft[i] = kind == 2 ? target[i] : kind < 2 ? (float)(target[i] + round(noise)) : (float)(target[i] + noise);
        if (kind == 4 && i > 0 && test_below(&m->random, 3) == 0) draft[i] = -INFINITY;
    }
    for (int i = 0; i < VOCAB && kind == 2; i++) {
        size_t j = test_below(&m->random, 3) ? (size_t)i : test_below(&m->random, VOCAB);
        float x = draft[i];
        draft[i] = draft[j];
        draft[j] = x;
    }
}

void order_of(const num *p, int *order, int *rank)
{
    for (int i = 0; i < VOCAB; i++) {
        rank[i] = 0;
        for (int j = 0; j < VOCAB; j++) rank[i] += p[j] > p[i] || (p[j] == p[i] && j < i);
        order[rank[i]] = i;
    }
}

int add_node(struct maker *m, int parent, int token)
{
    int i = m->nodes++;
    m->parent[i] = parent;
    m->token[i] = token;
    m->depth[i] = parent < 0 ? 0 : m->depth[parent] + 1;
    float target[VOCAB], draft[VOCAB];
    make_rows(m, target, draft);
    m->row[i] = m->count[0]++;
    memcpy(m->rows[0][m->row[i]], target, sizeof target);
    memcpy(m->rows[1][m->row[i]], draft, sizeof draft); // of a leaf nobody looks
    m->draft[i] = -1;
    weigh(m, target, m->p[i]);
    weigh(m, draft, m->q[i]);
    return i;
}

int children_of(const struct maker *m, int node, int *child)
{
    int n = 0;
    for (int i = 1; i < m->verified; i++)
        if (m->parent[i] == node) child[n++] = i;
    return n;
}

static void grow(struct maker *m, int node, int width)
{
    int order[VOCAB], rank[VOCAB];
    m->draft[node] = m->row[node];
    order_of(m->q[node], order, rank);
    for (int j = 0; j < width && m->nodes <= TREE_BUDGET; j++) {
        int token = m->scene->iid ? draw(m->q[node], uniform(m, m->t + m->depth[node], HM_DRAW_DRAFT, j)) : order[j];
        if (node == 0 && m->scene->iid && lies(m, LIE_PROPOSAL)) {
            token = (token + 1) % VOCAB;
            m->told->line = m->lines + 2; // the root's step
        }
        add_node(m, node, token);
    }
}

static int target_draw(const struct maker *m) // at the root
{
    int order[VOCAB], rank[VOCAB];
    order_of(m->p[0], order, rank);
    return m->scene->sampled ? draw(m->p[0], uniform(m, m->t, HM_DRAW_TARGET, 0)) : order[0];
}

static void draw_first(struct maker *m) // before the tree is chosen
{
    m->first = target_draw(m);
    if (lies(m, LIE_FIRST)) {
        m->first = (m->first + 1) % VOCAB;
        m->told->line = m->lines + 2;
    }
    m->draft[0] = m->row[0];
    add_node(m, 0, m->first);
}

static bool is_first_child(const struct maker *m, int node)
{
    int i = 0;
    while (m->parent[i] != m->parent[node]) i++;
    return i == node;
}

void make_tree(struct maker *m)
{
    bool after = strcmp(m->scene->selection, "draft") != 0;
    m->nodes = 0;
    add_node(m, -1, m->last);
    m->first = -1;
    if (after) draw_first(m);
    for (int i = after; i < m->nodes && m->nodes <= TREE_BUDGET; i++) {
        bool other = !m->scene->iid && test_below(&m->random, 3) == 0;
        if (m->depth[i] < DEPTH && (other || is_first_child(m, i))) grow(m, i, 1 + (int)test_below(&m->random, WIDTH));
    }
    m->verified = m->nodes;
    for (int j = 0; j < m->scene->scored; j++) { // the likeliest that was not verified, and others
        int parent = j == 0 ? 0 : (int)test_below(&m->random, (size_t)m->verified);
        int token = j == 0 ? target_draw(m) : (int)test_below(&m->random, VOCAB);
        for (int i = 1; i < m->nodes; i++)
            if (m->parent[i] == parent && m->token[i] == token) token = -1;
        if (token >= 0) add_node(m, parent, token);
    }
}

// The closed forms of theory.md §5 for children x[0 .. n) tried in order.
struct law law_of(const struct maker *m, int node, const int *x, int n)
{
    const num *p = m->p[node], *q = m->q[node];
    struct law l = {.k = 0};
    num mass = 0, c = 1, before = 0, z = 1, reach = 1, looked = 0;
    order_of(p, l.order, l.rank);
    while (l.k < VOCAB && mass < m->scene->share / 10.0L) mass += p[l.order[l.k++]];
    for (int i = 0; i < VOCAB; i++) l.left[i] = p[i];
    for (int i = 0; i < l.k; i++) l.excess += fmaxl(q[l.order[i]] - p[l.order[i]], 0);
    if (!m->scene->iid) {
        num tried = 0;
        bool sure = false;
        for (int j = 0; j < n && !sure; j++) {
            l.left[m->token[x[j]]] = 0;
            sure = l.rank[m->token[x[j]]] < l.k;
            l.o[m->token[x[j]]] = sure ? 1 - tried : p[m->token[x[j]]];
            tried += p[m->token[x[j]]];
        }
        for (int i = 0; i < VOCAB && !sure; i++) l.o[i] = p[i];
        l.e = 0;
        for (int i = 0; i < VOCAB && sure; i++) l.e += l.left[i];
        l.accept = sure ? 1 : tried;
        for (int j = 0; j < n; j++) l.standard += p[m->token[x[j]]];
        return l;
    }
    for (int j = 0; j < n; j++) {
        num rejected = 0, next = 0;
        for (int i = 0; i < VOCAB; i++) {
            num own = fmaxl(p[i] - before * q[i], 0) / z;
            if (l.rank[i] >= l.k) l.o[i] += reach * fminl(q[i], own);
            if (l.rank[i] >= l.k) rejected += fmaxl(p[i], c * q[i]) - fmaxl(p[i], before * q[i]);
            next += fmaxl(p[i] - c * q[i], 0);
        }
        looked += reach;
        reach *= rejected / z;
        before = c;
        z = next;
        c += z;
        if (z < 1e-12L) break; // p and q are the same: nothing is rejected
    }
    l.standard = 1 - (z < 1e-12L ? 0 : z);
    l.accept = z < 1e-12L ? 1 : 1 - reach;
    for (int i = 0; i < VOCAB; i++) {
        num h = looked * q[i] - p[i];
        l.left[i] = fmaxl(p[i] - before * q[i], 0);
        if (l.rank[i] < l.k) l.o[i] = looked * q[i], l.e += h > 1e-17L ? h : 0;
        if (z >= 1e-12L) l.o[i] += reach * l.left[i] / z;
    }
    return l;
}
