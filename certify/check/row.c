// Rows: order, classes of equal logits, exact distances. See math.h. theory.md §1.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

mpfr_prec_t ck_precision(int level)
{
    return level == 0 ? 128 : 128L << (level - 1);
}

static bool row_init(struct ck_row *r, size_t vocab)
{
    r->logit = calloc(vocab, sizeof *r->logit);
    r->order = calloc(vocab, sizeof *r->order);
    r->rank = calloc(vocab, sizeof *r->rank);
    r->class_of = calloc(vocab, sizeof *r->class_of);
    r->first = calloc(vocab + 1, sizeof *r->first);
    r->depth = calloc(vocab + 1, sizeof *r->depth);
    r->depths = calloc(vocab + 1, sizeof *r->depths);
    r->regular = true;
    return r->logit && r->order && r->rank && r->class_of && r->first && r->depth && r->depths;
}

bool ck_math_init(struct ck_math *m, size_t vocab)
{
    m->vocab = m->room = vocab;
    mpq_inits(m->inverse_claim, m->inverse_draw, NULL);
    m->scratch = calloc(4 * vocab, sizeof *m->scratch);
    return row_init(&m->row[0], vocab) && row_init(&m->row[1], vocab) && m->scratch;
}

static void forget(struct ck_dist *d)
{
    if (d->made) {
        iv_clears(d->e, d->made);
        free(d->e);
    }
    if (d->room) {
        iv_clears(&d->total, 1);
        iv_clears(&d->log_sum, 1);
    }
    free(d->weight);
    free(d->sum);
    free(d->product);
    memset(d, 0, sizeof *d);
}

static void forget_pair(struct ck_pair *p)
{
    if (p->ready) iv_clears(p->v, CK_PAIRS);
    p->ready = false;
}

void ck_math_clear(struct ck_math *m)
{
    if (!m->room) return;
    for (int i = 0; i < CK_LEVELS; i++) {
        for (int w = 0; w < 3; w++) forget(&m->dist[w][i]);
        forget_pair(&m->pair[i]);
    }
    ck_ladder_clear(&m->ladder);
    for (int i = 0; i < 2; i++) {
        struct ck_row *r = &m->row[i];
        free(r->logit);
        free(r->order);
        free(r->rank);
        free(r->class_of);
        free(r->first);
        free(r->depth);
        free(r->depths);
    }
    free(m->scratch);
    mpq_clears(m->inverse_claim, m->inverse_draw, NULL);
    memset(m, 0, sizeof *m);
}

// Larger logits have smaller keys; the two zeros are equal.
static uint32_t order_key(float logit)
{
    uint32_t bits;
    logit += 0.0f;
    memcpy(&bits, &logit, 4);
    return ~(bits & 0x80000000 ? ~bits : bits | 0x80000000);
}

// Three stable passes of eleven bits over (key, token), tokens ascending at first.
static void sort_row(struct ck_row *r, size_t vocab, uint32_t *scratch)
{
    uint32_t *key[2] = {scratch, scratch + vocab}, *token[2] = {scratch + 2 * vocab, scratch + 3 * vocab};
    for (size_t i = 0; i < vocab; i++) {
        key[0][i] = order_key(r->logit[i]);
        token[0][i] = (uint32_t)i;
    }
    for (int pass = 0; pass < 3; pass++) {
        uint32_t at[2049] = {0}, *from = key[pass & 1], *to = key[!(pass & 1)];
        uint32_t *ids = token[pass & 1], *out = pass == 2 ? r->order : token[!(pass & 1)];
        for (size_t i = 0; i < vocab; i++) at[(from[i] >> 11 * pass & 2047) + 1]++;
        for (int i = 0; i < 2048; i++) at[i + 1] += at[i];
        for (size_t i = 0; i < vocab; i++) {
            uint32_t place = at[from[i] >> 11 * pass & 2047]++;
            to[place] = from[i];
            out[place] = ids[i];
        }
    }
}

static void find_classes(struct ck_row *r, size_t vocab)
{
    float before = 0, top = r->logit[r->order[0]];
    size_t position = 0;
    r->classes = 0;
    r->regular = true;
    r->depths[0] = 0;
    for (; position < vocab; position++) {
        float logit = r->logit[r->order[position]];
        if (isinf(logit)) break;
        if (position == 0 || logit != before) {
            size_t c = r->classes++;
            r->regular = r->regular && ck_is_regular(logit);
            r->first[c] = (uint32_t)position;
            if (r->regular) r->depth[c] = (ck_u128)(ck_exact(top) - ck_exact(logit));
            if (r->regular && c > 0) r->depths[c] = r->depths[c - 1] + r->depth[c - 1] * (position - r->first[c - 1]);
        }
        r->class_of[r->order[position]] = (uint32_t)(r->classes - 1);
        before = logit;
    }
    r->finite = position;
    r->first[r->classes] = (uint32_t)position;
    size_t last = r->classes - 1;
    if (r->regular) r->depths[r->classes] = r->depths[last] + r->depth[last] * (position - r->first[last]);
    r->depth[r->classes] = 0;
    for (; position < vocab; position++) r->class_of[r->order[position]] = (uint32_t)r->classes;
}

void ck_math_new_row(struct ck_math *m, enum ck_which which)
{
    struct ck_row *r = &m->row[which];
    sort_row(r, m->vocab, m->scratch);
    for (size_t i = 0; i < m->vocab; i++) r->rank[r->order[i]] = (uint32_t)i;
    find_classes(r, m->vocab);
    m->first_level = m->row[0].regular && m->row[1].regular ? 0 : 1;
    m->same_known = m->ladder.ready = m->ladder.sorted = m->ladder.split = false;
    for (int i = 0; i < CK_LEVELS; i++) {
        for (int w = 0; w < 3; w++) {
            if ((w == CK_DRAFT) != (which == CK_DRAFT)) continue;
            m->dist[w][i].ready = false;
            if (i > 0) forget(&m->dist[w][i]); // rare, and large
        }
        forget_pair(&m->pair[i]);
    }
}

bool ck_next_run(const struct ck_row *r, size_t to, struct ck_run *run)
{
    run->from += run->count;
    if (run->from >= to) return false;
    run->class = r->class_of[r->order[run->from]];
    size_t end = run->class < r->classes ? r->first[run->class + 1] : to;
    run->count = (end < to ? end : to) - run->from;
    return true;
}

bool ck_uniform(const struct ck_row *r)
{
    return r->classes == 1;
}

int ck_compare_product(size_t n, mpq_srcptr q, unsigned long with)
{
    mpq_t t;
    mpq_init(t);
    mpq_set_ui(t, n, 1);
    mpq_mul(t, t, q);
    int sign = mpq_cmp_ui(t, with, 1);
    mpq_clear(t);
    return sign;
}

void ck_logit_gap(const struct ck_row *r, size_t upper, size_t lower, struct iv *out)
{
    double below = r->logit[r->order[lower]];
    iv_point(out, r->logit[r->order[upper]]);
    mpfr_sub_d(out->lo, out->lo, below, MPFR_RNDD);
    mpfr_sub_d(out->hi, out->hi, below, MPFR_RNDU);
}
