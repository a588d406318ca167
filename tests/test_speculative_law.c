// The law of the emitted token: the one that the code's own thresholds make, which must be the closed form's; and the ratio.
#include "tests/speculative_support.h"

#include <gmp.h>

// ---- the law that the code makes, from its thresholds

struct made {
    size_t vocab;
    mpq_t law[MOST], draws[MOST];
};

static void add_chance(mpq_t to, mpq_srcptr reach, uint64_t from, uint64_t until)
{
    mpq_t part;
    mpq_init(part);
    mpq_set_ui(part, until - from, 1);
    mpq_div_2exp(part, part, 53);
    mpq_mul(part, part, reach);
    mpq_add(to, to, part);
    mpq_clear(part);
}

// What the given proposals lead to, times `reach`.
static void add_emissions(const struct question *x, struct made *out, mpq_srcptr start)
{
    struct given g = {{0}, 0};
    mpq_t reach, part;
    mpq_inits(reach, part, NULL);
    mpq_set(reach, start);
    for (size_t j = 0; j < x->proposals.count && mpq_sgn(reach) > 0; j++) {
        uint64_t n = coin_threshold(x, &g, j);
        add_chance(out->law[x->proposals.token[j]], reach, 0, n);
        mpq_set_ui(part, END - n, 1);
        mpq_div_2exp(part, part, 53);
        mpq_mul(reach, reach, part);
        g.coin[j] = END - 1;
    }
    uint64_t before = 0;
    for (size_t i = 0; i < out->vocab && mpq_sgn(reach) > 0; i++) {
        uint64_t border = residual_border(x, &g, (int32_t)i);
        add_chance(out->law[i], reach, before, border);
        before = border;
    }
    mpq_clears(reach, part, NULL);
}

// The chance of each draw of hm_row_draw, from its borders.
static void list_draws(struct hm_row *q, struct made *out)
{
    uint64_t before = 0;
    for (size_t i = 0; i < out->vocab; i++) {
        uint64_t low = before, high = END;
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            int32_t token;
            assert_int_equal(hm_row_draw(q, out->vocab, middle, &token, NULL), HM_OK);
            if (token <= (int32_t)i) low = middle + 1;
            else high = middle;
        }
        mpq_set_ui(out->draws[i], low - before, 1);
        mpq_div_2exp(out->draws[i], out->draws[i], 53);
        before = low;
    }
}

static void make_law(struct question *x, struct made *out)
{
    int32_t tokens[PROPOSALS];
    size_t all = 1, vocab = out->vocab;
    mpq_t chance;
    mpq_init(chance);
    x->proposals.token = tokens;
    list_draws(x->q, out);
    for (size_t j = 0; j < x->proposals.count; j++) all *= vocab;
    for (size_t code = 0; code < all; code++) {
        size_t rest = code;
        mpq_set_ui(chance, 1, 1);
        for (size_t j = 0; j < x->proposals.count; j++, rest /= vocab) {
            tokens[j] = (int32_t)(rest % vocab);
            mpq_mul(chance, chance, out->draws[tokens[j]]);
        }
        if (mpq_sgn(chance) > 0) add_emissions(x, out, chance);
    }
    mpq_clear(chance);
}

static void made_init(struct made *m, size_t vocab)
{
    m->vocab = vocab;
    for (size_t i = 0; i < MOST; i++) mpq_inits(m->law[i], m->draws[i], NULL);
}

static void made_clear(struct made *m)
{
    for (size_t i = 0; i < MOST; i++) mpq_clears(m->law[i], m->draws[i], NULL);
}

// Bounds of the total variation between the law made and p.
static struct hm_ival variation(const struct made *m, struct hm_row *p)
{
    struct hm_ival sum = {0, 0};
    for (size_t i = 0; i < m->vocab; i++) {
        struct hm_ival at;
        double x = mpq_get_d(m->law[i]);
        assert_int_equal(hm_row_probability(p, (int32_t)i, &at, NULL), HM_OK);
        double low = fmax(0, fmax(at.lo - x, x - at.hi)), high = fmax(at.hi - x, x - at.lo);
        sum.lo += low / 2;
        sum.hi += high / 2;
    }
    return (struct hm_ival){sum.lo - 0x1p-48, sum.hi + 0x1p-48};
}

// The law that the code's own thresholds make is the closed form's, but for what numbers of 53 bits cannot say: V 2^-53 a
// draw and 2^-53 a coin (docs/log.md, "Fidelity budgets").
static void the_law_of_the_code_is_the_closed_form(void **state)
{
    (void)state;
    struct random r = seeded("law of the code");
    for (size_t n = 0; n < rounds(24); n++) {
        float l[MOST], d[MOST];
        struct made m;
        struct hm_law law;
        size_t vocab = 2 + below(&r, 3), count = 1 + below(&r, 2);
        random_rows(&r, l, d, vocab);
        struct question x = {open_row(l, vocab, "1"), open_row(d, vocab, "1"), {.kind = HM_PROPOSAL_IID, .count = count}};
        x.proposals.sure = n % 2 ? below(&r, vocab + 1) : 0;
        made_init(&m, vocab);
        make_law(&x, &m);
        mpq_set_ui(m.draws[0], 0, 1);
        for (size_t i = 0; i < vocab; i++) mpq_add(m.draws[0], m.draws[0], m.law[i]);
        assert_int_equal(mpq_cmp_ui(m.draws[0], 1, 1), 0);
        assert_int_equal(hm_law_make(x.p, x.q, HM_PROPOSAL_IID, NULL, count, x.proposals.sure, &law, NULL), HM_OK);
        if (x.proposals.sure == 0) assert_true(law.e.hi == 0);
        struct hm_ival tv = variation(&m, x.p);
        double room = ((double)(count + 1) * (double)vocab + (double)count) * 0x1p-53;
        if (!(tv.lo <= law.e.hi + room && tv.hi >= law.e.lo - room))
            fail_msg("%zu proposals, %zu sure of %zu: [%.17g, %.17g], e [%.17g, %.17g]", count, x.proposals.sure, vocab, tv.lo, tv.hi, law.e.lo, law.e.hi);
        made_clear(&m);
        hm_row_close(x.p);
        hm_row_close(x.q);
    }
}

// ---- the ratio

// o(token) by the definition: what each proposal emits and the residual at the end, the first `reach` of 1.
static void true_emission(struct truth *t, const struct question *x, int32_t token, mpfr_ptr o)
{
    mpfr_t reach, part;
    mpfr_inits2(BITS, reach, part, (mpfr_ptr)0);
    mpfr_set_ui(reach, 1, MPFR_RNDN);
    mpfr_set_zero(o, 1);
    for (size_t j = 0; j < x->proposals.count && mpfr_sgn(reach) > 0; j++) {
        mpfr_set_zero(part, 1);
        for (size_t i = 0; i < t->vocab; i++) {
            bool proposed = x->proposals.kind == HM_PROPOSAL_IID || x->proposals.token[j] == (int32_t)i;
            if (!proposed) continue;
            if (x->proposals.kind == HM_PROPOSAL_IID) mpfr_set(t->term, t->q[i], MPFR_RNDN);
            else mpfr_set_ui(t->term, 1, MPFR_RNDN);
            if (hm_row_rank(x->p, (int32_t)i) >= x->proposals.sure && mpfr_less_p(t->now[i], t->term)) mpfr_set(t->term, t->now[i], MPFR_RNDN);
            mpfr_add(part, part, t->term, MPFR_RNDN);
            mpfr_mul(t->term, t->term, reach, MPFR_RNDN);
            if ((int32_t)i == token) mpfr_add(o, o, t->term, MPFR_RNDN);
        }
        mpfr_ui_sub(part, 1, part, MPFR_RNDN);
        if (mpfr_cmp_d(part, 0x1p-200) < 0) mpfr_set_zero(part, 1);
        mpfr_mul(reach, reach, part, MPFR_RNDN);
        if (mpfr_sgn(reach) > 0) true_residual(t, &x->proposals, x->proposals.token[j]);
    }
    mpfr_mul(part, reach, t->now[token], MPFR_RNDN);
    mpfr_add(o, o, part, MPFR_RNDN);
    mpfr_clears(reach, part, (mpfr_ptr)0);
}

static void check_ratio(const struct question *x, struct truth *t, int32_t token, size_t *apart)
{
    struct hm_ival ratio;
    struct hm_error err;
    mpfr_t o;
    mpfr_init2(o, BITS);
    true_emission(t, x, token, o);
    hm_status status = hm_speculative_ratio(x->p, x->q, &x->proposals, token, &ratio, &err);
    if (mpfr_cmp_d(o, 0x1p-190) < 0) {
        assert_int_equal(status, HM_RANGE);
    } else {
        assert_int_equal(status, HM_OK);
        mpfr_div(o, t->p[token], o, MPFR_RNDN);
        double near = mpfr_get_d(o, MPFR_RNDN);
        if (!(ratio.lo <= near * (1 + 0x1p-52) && ratio.hi >= near * (1 - 0x1p-52)) || !is_narrow(ratio))
            fail_msg("ratio of %ld, %zu proposals, %zu sure: %.17g not in [%.17g, %.17g]", (long)token, x->proposals.count, x->proposals.sure, near, ratio.lo, ratio.hi);
        if (x->proposals.sure == 0) assert_true(ratio.lo == 1 && ratio.hi == 1);
        *apart += ratio.hi < 1 || ratio.lo > 1;
    }
    mpfr_clear(o);
}

static void ratios_are_p_over_o(void **state)
{
    (void)state;
    struct random r = seeded("ratios");
    size_t apart = 0;
    for (size_t n = 0; n < rounds(400); n++) {
        float l[MOST], d[MOST];
        int32_t tokens[MOST];
        size_t vocab = 2 + below(&r, MOST - 1);
        struct question x = {.proposals.kind = n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK};
        random_rows(&r, l, d, vocab);
        choose_proposals(&r, d, vocab, &x.proposals, tokens);
        x.proposals.sure = below(&r, vocab + 1);
        x.p = open_row(l, vocab, "1/2");
        x.q = open_row(d, vocab, "1/2");
        if (n % 5 == 0) hm_row_exact_only(x.p);
        for (size_t i = 0; i < vocab; i++) {
            struct truth t;
            truth_init(&t, l, d, vocab, 0.5);
            check_ratio(&x, &t, (int32_t)i, &apart);
            truth_clear(&t);
        }
        hm_row_close(x.p);
        hm_row_close(x.q);
    }
    assert_true(apart > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_law_of_the_code_is_the_closed_form),
        cmocka_unit_test(ratios_are_p_over_o),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
