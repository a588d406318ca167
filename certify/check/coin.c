// Random numbers, and what they decide: draws, the coins of proposals, residual draws. See math.h; docs/log.md "Random
// numbers" and "The walk". Equalities are found before arithmetic (theory.md §8): no precision would tell them.
#include "certify/check/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t ONE = (uint64_t)1 << 53;

uint64_t ck_random(uint64_t seed, const uint32_t counter[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, x[4];
    memcpy(x, counter, sizeof x);
    for (int i = 0; i < 10; i++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1],
                         (uint32_t)a};
        memcpy(x, y, sizeof x);
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return ((uint64_t)x[0] << 32 | x[1]) >> 11;
}

// x times bits / 2^53.
static void take_share(struct iv *x, uint64_t bits)
{
    iv_scale(x, x, bits);
    mpfr_div_2ui(x->lo, x->lo, 53, MPFR_RNDD);
    mpfr_div_2ui(x->hi, x->hi, 53, MPFR_RNDU);
}

// Is share < through, and before <= share?  The first is what makes a token the draw or a later one, the second what
// keeps the earlier ones from being it.
static enum answer between(enum answer passes, enum answer earlier)
{
    return passes == NO || earlier == YES ? NO : passes == YES && earlier == NO ? YES : OPEN;
}

static bool in_part(const struct ck_row *r, const struct ck_part *part, size_t token)
{
    size_t end = part->support < r->finite ? part->support : r->finite;
    bool in = r->rank[token] < end;
    for (size_t j = 0; in && j < part->count; j++) in = part->without[j] != token;
    return in;
}

// Do the tokens below an id hold just the share bits / 2^53 of every class in the part?  Then their sum is that
// share of the whole, exactly.
static bool is_share(const struct ck_row *r, size_t ids, const struct ck_part *part, uint64_t bits)
{
    size_t end = part->support < r->finite ? part->support : r->finite;
    uint64_t *count[2] = {calloc(r->classes, sizeof **count), calloc(r->classes, sizeof **count)}; // below; all
    bool same = count[0] && count[1];
    for (size_t i = 0; same && i < end; i++) {
        size_t class = r->class_of[r->order[i]];
        count[1][class]++;
        count[0][class] += r->order[i] < ids;
    }
    for (size_t j = 0; same && j < part->count; j++) {
        size_t token = part->without[j], class = r->class_of[token];
        if (r->rank[token] >= end) continue;
        count[1][class]--;
        count[0][class] -= token < ids;
    }
    for (size_t c = 0; same && c < r->classes; c++) // counts are below 2^21
        same = (ck_u128)count[0][c] << 53 == (ck_u128)count[1][c] * bits;
    free(count[0]);
    free(count[1]);
    return same;
}

enum answer ck_is_draw(struct ck_math *m, enum ck_which which, size_t token, const struct ck_part *part, uint64_t bits)
{
    const struct ck_row *r = &m->row[which == CK_DRAFT];
    const struct ck_part all = {part->support, NULL, 0};
    enum answer answer = OPEN;
    if (!in_part(r, part, token)) return NO;
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv sum[3]; // below the token, through it, all
        iv_inits(sum, 3, ck_precision(level));
        const struct ck_dist *d = ck_dist(m, which, level);
        ck_sum_ids(d, token, part, &sum[0]);
        ck_weight(d, token, &sum[1]);
        iv_add(&sum[1], &sum[1], &sum[0]);
        if (part->count > 0)
            ck_sum_ids(d, m->vocab, part, &sum[2]);
        else
            ck_sum_order(d, 0, all.support, &sum[2]);
        take_share(&sum[2], bits);
        enum answer passes = iv_less(&sum[2], &sum[1]), earlier = iv_less(&sum[2], &sum[0]);
        if (passes == OPEN && is_share(r, token + 1, part, bits)) passes = NO;
        if (earlier == OPEN && is_share(r, token, part, bits)) earlier = NO;
        answer = between(passes, earlier);
        iv_clears(sum, 3);
    }
    return answer;
}

// u R < p_x, R what is not tried yet. Equal only where all of that is in the class of x and u its share, or below
// it by a tail that may be too small for any precision.
enum answer ck_coin_point(struct ck_math *m, const uint32_t *tried, size_t j, size_t token, uint64_t bits)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_part rest = {m->vocab, tried, j};
    if (!in_part(r, &rest, token)) return NO; // u R < 0
    if (bits == 0) return YES;
    size_t class = r->class_of[token], equal = r->first[class + 1] - r->first[class], others = r->finite - equal;
    for (size_t i = 0; i < j; i++) {
        if (r->rank[tried[i]] >= r->finite) continue;
        equal -= r->class_of[tried[i]] == class;
        others -= r->class_of[tried[i]] != class;
    }
    ck_u128 share = (ck_u128)equal * bits;
    if (share >= ONE) return NO; // whatever the others have
    if (others == 0) return YES;
    enum answer answer = OPEN;
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv t[2];
        iv_inits(t, 2, ck_precision(level));
        const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
        ck_sum_ids(d, m->vocab, &rest, &t[0]);
        take_share(&t[0], bits);
        ck_weight(d, token, &t[1]);
        answer = iv_less(&t[0], &t[1]);
        iv_clears(t, 2);
    }
    return answer;
}

// (u z + c) q_x against p_x for two uniform rows that both have x: exact.
static bool flat_coin(struct ck_math *m, size_t j, uint64_t bits, enum answer *answer)
{
    mpq_t c, z, u;
    mpq_inits(c, z, u, NULL);
    bool known = ck_flat_rung(m, j, c, z);
    if (known) {
        mpz_set_ui(mpq_numref(u), bits);
        mpz_set_ui(mpq_denref(u), ONE);
        mpq_canonicalize(u);
        mpq_mul(z, z, u);
        mpq_add(c, c, z);
        mpq_set_ui(z, m->row[0].finite, m->row[1].finite); // q's tokens are to p's as this
        mpq_canonicalize(z);
        mpq_mul(c, c, z);
        *answer = mpq_cmp_ui(c, 1, 1) < 0 ? YES : NO;
    }
    mpq_clears(c, z, u, NULL);
    return known;
}

// u q_x = p_x for the first proposal: the exponentials of both sides pair up, class by class, u to one.
static bool first_coin_ties(const struct ck_math *m, size_t token, uint64_t bits)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    bool same = p->classes == q->classes;
    mpfr_t apart, d;
    mpfr_inits2(CK_EXACT, apart, d, (mpfr_ptr)0);
    mpfr_set_flt(apart, p->logit[token], MPFR_RNDN);
    mpfr_sub_d(apart, apart, q->logit[token], MPFR_RNDN);
    for (size_t c = 0; same && c < p->classes; c++) {
        ck_u128 of_p = p->first[c + 1] - p->first[c], of_q = q->first[c + 1] - q->first[c];
        mpfr_set_flt(d, p->logit[p->order[p->first[c]]], MPFR_RNDN);
        mpfr_sub_d(d, d, q->logit[q->order[q->first[c]]], MPFR_RNDN);
        same = mpfr_equal_p(apart, d) && of_p * bits == of_q << 53;
    }
    mpfr_clears(apart, d, (mpfr_ptr)0);
    return same;
}

static void shares_of(struct ck_math *m, int level, size_t token, struct iv out[2])
{
    for (int i = 0; i < 2; i++) {
        const struct ck_dist *d = ck_dist(m, i ? CK_DRAFT : CK_TARGET, level);
        ck_weight(d, token, &out[i]);
        iv_div(&out[i], &out[i], &d->total);
    }
}

// u q_x < (p_x - c q_x)^+ / z, that is, (u z + c) q_x < p_x.
enum answer ck_coin_draw(struct ck_math *m, size_t count, size_t j, size_t token, uint64_t bits)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    enum answer answer = OPEN;
    if (p->rank[token] >= p->finite) return NO;
    if (q->rank[token] >= q->finite) return YES;
    if (j == 0 && (bits == 0 || ck_same_law(m))) return YES; // u < 1
    if (flat_coin(m, j, bits, &answer)) return answer;
    if (j == 0 && first_coin_ties(m, token, bits)) return NO;
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) {
        struct iv t[3];
        iv_inits(t, 3, ck_precision(level));
        const struct ck_ladder *l = j > 0 ? ck_any_ladder(m, level, count) : NULL;
        if (j == 0 || l) {
            shares_of(m, level, token, t);
            iv_point(&t[2], 1);
            if (l) iv_set(&t[2], &l->rung[j].z);
            take_share(&t[2], bits);
            if (l) iv_add(&t[2], &t[2], &l->rung[j].c);
            iv_mul(&t[1], &t[1], &t[2]);
            answer = iv_less(&t[1], &t[0]);
        }
        iv_clears(t, 3);
    }
    return answer;
}

// The sum of (p - c q)^+ over the ids below one. Level 0 takes the weights of all where p is the larger at once.
static bool sum_below(struct ck_math *m, int level, size_t ids, const struct iv *c, struct iv *out)
{
    const struct ck_dist *d[2] = {ck_dist(m, CK_TARGET, level), ck_dist(m, CK_DRAFT, level)};
    const struct ck_row *p = d[0]->row, *q = d[1]->row;
    struct ck_cut cut;
    struct iv t[3];
    bool ok = true;
    iv_inits(t, 3, ck_precision(level));
    iv_point(out, 0);
    if (level == 0) {
        ck_u128 sum[3] = {0}; // p and q where p is surely the larger, p where that is in doubt
        size_t count[2] = {0};
        mpfr_init2(cut.width, 64);
        iv_log(&t[0], c);
        ok = mpfr_sgn(c->lo) > 0 && ck_find_cut(m, &t[0], &cut);
        for (size_t i = 0; ok && i < ids; i++) {
            size_t a = p->class_of[i], b = q->class_of[i];
            if (a >= p->classes) continue;
            ck_i128 gap = (ck_i128)q->depth[b] - (ck_i128)p->depth[a];
            bool sure = b >= q->classes || gap > cut.over;
            if (!sure && gap < cut.under) continue;
            sum[sure ? 0 : 2] += d[0]->weight[a];
            if (sure) sum[1] += d[1]->weight[b];
            count[!sure]++;
        }
        ck_between(sum[0], count[0], out);
        iv_div(out, out, &d[0]->total);
        ck_between(sum[1], count[0], &t[1]);
        iv_div(&t[1], &t[1], &d[1]->total);
        iv_mul(&t[1], &t[1], c);
        iv_sub(out, out, &t[1]);
        iv_positive(out);
        ck_between(sum[2], count[1], &t[1]);
        iv_div(&t[1], &t[1], &d[0]->total);
        mpfr_mul(t[1].hi, t[1].hi, cut.width, MPFR_RNDU);
        mpfr_add(out->hi, out->hi, t[1].hi, MPFR_RNDU);
        mpfr_clear(cut.width);
    }
    for (size_t i = 0; level > 0 && i < ids; i++) {
        if (p->class_of[i] >= p->classes) continue;
        shares_of(m, level, i, t);
        iv_mul(&t[1], &t[1], c);
        iv_sub(&t[0], &t[0], &t[1]);
        iv_positive(&t[0]);
        iv_add(out, out, &t[0]);
    }
    iv_clears(t, 3);
    return ok;
}

// Two uniform rows: the sum over the ids below one, exactly.
static void flat_below(const struct ck_math *m, size_t ids, mpq_srcptr c, mpq_t out)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    unsigned long alone = 0, both = 0;
    mpq_t t;
    for (size_t i = 0; i < ids; i++) {
        bool in_q = q->rank[i] < q->finite;
        if (p->rank[i] >= p->finite) continue;
        alone += !in_q;
        both += in_q;
    }
    mpq_init(t);
    mpq_set_ui(t, p->finite, q->finite); // in units of 1/finite: 1 - c p/q each
    mpq_canonicalize(t);
    mpq_mul(t, t, c);
    mpq_set_ui(out, 1, 1);
    mpq_sub(t, out, t);
    if (mpq_sgn(t) < 0) mpq_set_ui(t, 0, 1);
    mpq_set_ui(out, both, 1);
    mpq_mul(t, t, out);
    mpq_set_ui(out, alone, 1);
    mpq_add(out, out, t);
    mpq_clear(t);
}

static bool flat_residual(struct ck_math *m, size_t count, size_t token, uint64_t bits, enum answer *answer)
{
    mpq_t c, z, u, sum[2];
    mpq_inits(c, z, u, sum[0], sum[1], NULL);
    bool known = ck_flat_rung(m, count, c, z);
    if (known) {
        flat_below(m, token, c, sum[0]);
        flat_below(m, token + 1, c, sum[1]);
        mpz_set_ui(mpq_numref(u), bits);
        mpz_set_ui(mpq_denref(u), ONE);
        mpq_canonicalize(u);
        mpq_mul(u, u, z);
        mpq_set_ui(z, m->row[0].finite, 1);
        mpq_mul(u, u, z);
        *answer = mpq_cmp(u, sum[1]) < 0 && mpq_cmp(u, sum[0]) >= 0 ? YES : NO;
    }
    mpq_clears(c, z, u, sum[0], sum[1], NULL);
    return known;
}

enum answer ck_is_residual(struct ck_math *m, size_t count, size_t token, uint64_t bits)
{
    enum answer answer = OPEN;
    if (m->row[0].rank[token] >= m->row[0].finite) return NO;
    if (flat_residual(m, count, token, bits, &answer)) return answer;
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) {
        const struct ck_ladder *l = ck_any_ladder(m, level, count);
        struct iv sum[3], t[2]; // below the token, through it, all
        iv_inits(sum, 3, ck_precision(level));
        iv_inits(t, 2, ck_precision(level));
        if (l && sum_below(m, level, token, &l->rung[count].c, &sum[0])) {
            shares_of(m, level, token, t);
            iv_mul(&t[1], &t[1], &l->rung[count].c);
            iv_sub(&t[0], &t[0], &t[1]);
            iv_positive(&t[0]);
            iv_add(&sum[1], &sum[0], &t[0]);
            iv_set(&sum[2], &l->rung[count].z);
            take_share(&sum[2], bits);
            answer = mpfr_zero_p(t[0].hi) ? NO : between(iv_less(&sum[2], &sum[1]), iv_less(&sum[2], &sum[0]));
        }
        iv_clears(sum, 3);
        iv_clears(t, 2);
    }
    return answer;
}
