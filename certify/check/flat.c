// Two uniform rows: what m independent proposals leave, in rationals. theory.md §5, §8; see math.h and ladder.c.
#include "certify/check/math.h"

enum { LONGEST = 1 << 14 }; // bits: a rational that intervals cannot prove has few

struct flat {
    size_t p[2], q[2], both[2]; // how many tokens outside A, and in A, have p alone, q alone, both
    mpq_t per_p, per_q;         // what a token has
    mpq_t c, z, y, left, looked, t[2];
};

static bool flat_open(struct flat *f, const struct ck_math *m, size_t k)
{
    const struct ck_row *p = &m->row[0], *q = &m->row[1];
    if (!ck_uniform(p) || !ck_uniform(q)) return false;
    *f = (struct flat){0};
    for (size_t j = 0; j < m->vocab; j++) {
        bool in_p = j < p->finite, in_q = q->class_of[p->order[j]] < q->classes;
        (in_p && in_q ? f->both : in_p ? f->p : f->q)[j < k] += in_p || in_q;
    }
    mpq_inits(f->per_p, f->per_q, f->c, f->z, f->y, f->left, f->looked, f->t[0], f->t[1], NULL);
    mpq_set_ui(f->per_p, 1, p->finite);
    mpq_set_ui(f->per_q, 1, q->finite);
    mpq_set_ui(f->z, 1, 1);
    mpq_set_ui(f->left, 1, 1);
    return true;
}

static void flat_close(struct flat *f)
{
    mpq_clears(f->per_p, f->per_q, f->c, f->z, f->y, f->left, f->looked, f->t[0], f->t[1], NULL);
}

// The sum over a set of (p - c q)^+, or of (c q - p)^+, is added to out.
static void add_excess(struct flat *f, int which, mpq_srcptr c, bool of_p, mpq_t out)
{
    mpq_mul(f->t[0], c, f->per_q);
    mpq_set_ui(f->t[1], of_p ? f->p[which] : f->q[which], 1);
    mpq_mul(f->t[1], f->t[1], of_p ? f->per_p : f->t[0]);
    mpq_add(out, out, f->t[1]);
    mpq_sub(f->t[0], of_p ? f->per_p : f->t[0], of_p ? f->t[0] : f->per_p);
    if (mpq_sgn(f->t[0]) <= 0) return;
    mpq_set_ui(f->t[1], f->both[which], 1);
    mpq_mul(f->t[0], f->t[0], f->t[1]);
    mpq_add(out, out, f->t[0]);
}

// One more rejection. False when a rational grows too long.
static bool flat_step(struct flat *f)
{
    mpq_add(f->looked, f->looked, f->left);
    mpq_add(f->c, f->c, f->z);
    if (mpq_sgn(f->z) > 0)
        mpq_div(f->left, f->left, f->z);
    else
        mpq_set_ui(f->left, 0, 1); // P <= Z
    mpq_set_ui(f->z, 0, 1);
    for (int which = 0; which < 2; which++) add_excess(f, which, f->c, true, f->z);
    mpq_neg(f->y, f->y); // the one before
    add_excess(f, 0, f->c, false, f->y);
    mpq_mul(f->left, f->left, f->y);
    mpq_set_ui(f->y, 0, 1);
    add_excess(f, 0, f->c, false, f->y);
    return mpz_sizeinbase(mpq_denref(f->left), 2) <= LONGEST && mpz_sizeinbase(mpq_denref(f->c), 2) <= LONGEST;
}

bool ck_flat_rung(struct ck_math *m, size_t j, mpq_t c, mpq_t z)
{
    struct flat f;
    bool known = flat_open(&f, m, 0);
    if (!known) return false;
    for (size_t i = 0; known && i < j; i++) known = flat_step(&f);
    mpq_set(c, f.c);
    mpq_set(z, f.z);
    flat_close(&f);
    return known;
}

bool ck_flat_ladder(struct ck_math *m, struct ck_ladder *l, bool within)
{
    struct flat f;
    bool known = flat_open(&f, m, l->k);
    if (!known) return false;
    for (size_t j = 0; known; j++) {
        iv_set_q(&l->rung[j].c, f.c);
        iv_set_q(&l->rung[j].z, f.z);
        iv_set_q(&l->rung[j].left, f.left);
        iv_set_q(&l->rung[j].looked, f.looked);
        if (j == l->m) break;
        known = flat_step(&f);
        if (within) mpq_set_ui(f.left, 0, 1);
    }
    mpq_set_ui(f.y, 0, 1);
    add_excess(&f, 1, f.looked, false, f.y);
    iv_set_q(&l->e, f.y);
    flat_close(&f);
    return known;
}
