// Decisions of stochastic acceptance: the exact threshold of every coin and every border of the residual draw, found by
// bisection over all 53-bit numbers, against the definition in 300 bits; the law that these thresholds make; ties; the ratio.
#include "certify/speculative_state.h"
#include "tests/certify_rows.h"

#include <gmp.h>

enum { BITS = 300, MOST = 6, PROPOSALS = 4 };
static const uint64_t END = UINT64_C(1) << 53;

// ---- random numbers given one by one

struct given {
    uint64_t coin[PROPOSALS], residual;
};

static uint64_t given_bits(const void *source, enum hm_purpose purpose, uint32_t child)
{
    const struct given *g = source;
    return purpose == HM_COIN ? g->coin[child] : g->residual;
}

struct question {
    struct hm_row *p, *q;
    struct hm_proposals proposals;
};

static int64_t ask(const struct question *x, const struct given *g, int32_t *token)
{
    int64_t accepted;
    struct hm_error err = {.message = ""};
    if (hm_speculate_with(x->p, x->q, &x->proposals, &(struct hm_numbers){given_bits, g}, &accepted, token, &err))
        fail_msg("%s", err.message);
    return accepted;
}

// How many numbers of coin j accept proposal j, all coins before it being set to reject.
static uint64_t coin_threshold(const struct question *x, struct given *g, size_t j)
{
    uint64_t low = 0, high = END; // accepted below low, rejected from high on
    int32_t token;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        g->coin[j] = middle;
        if (ask(x, g, &token) == (int64_t)j) low = middle + 1;
        else high = middle;
    }
    return low;
}

// How many numbers of the residual draw give a token of at most this id.
static uint64_t residual_border(const struct question *x, struct given *g, int32_t id)
{
    uint64_t low = 0, high = END;
    int32_t token;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        g->residual = middle;
        assert_int_equal(ask(x, g, &token), -1);
        if (token <= id) low = middle + 1;
        else high = middle;
    }
    return low;
}

// ---- the definition

struct truth {
    size_t vocab;
    mpfr_t p[MOST], q[MOST], now[MOST], sum, term;
};

static void fill(mpfr_t *out, const float *logits, size_t vocab, double temperature)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < vocab; i++) {
        mpfr_set_flt(out[i], logits[i], MPFR_RNDN);
        mpfr_div_d(out[i], out[i], temperature, MPFR_RNDN);
        mpfr_exp(out[i], out[i], MPFR_RNDN);
        mpfr_add(sum, sum, out[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < vocab; i++) mpfr_div(out[i], out[i], sum, MPFR_RNDN);
    mpfr_clear(sum);
}

static void truth_init(struct truth *t, const float *l, const float *d, size_t vocab, double temperature)
{
    t->vocab = vocab;
    for (size_t i = 0; i < vocab; i++) mpfr_inits2(BITS, t->p[i], t->q[i], t->now[i], (mpfr_ptr)0);
    mpfr_inits2(BITS, t->sum, t->term, (mpfr_ptr)0);
    fill(t->p, l, vocab, temperature);
    fill(t->q, d, vocab, temperature);
    for (size_t i = 0; i < vocab; i++) mpfr_set(t->now[i], t->p[i], MPFR_RNDN);
}

static void truth_clear(struct truth *t)
{
    for (size_t i = 0; i < t->vocab; i++) mpfr_clears(t->p[i], t->q[i], t->now[i], (mpfr_ptr)0);
    mpfr_clears(t->sum, t->term, (mpfr_ptr)0);
}

// How many numbers lie below x 2^53; one that is equal to it but for rounding does not.
static uint64_t numbers_below(struct truth *t, mpfr_srcptr x)
{
    mpfr_mul_2ui(t->term, x, 53, MPFR_RNDN);
    mpfr_sub_d(t->term, t->term, 0x1p-120, MPFR_RNDN);
    mpfr_ceil(t->term, t->term);
    if (mpfr_sgn(t->term) <= 0) return 0;
    uint64_t count = mpfr_get_uj(t->term, MPFR_RNDN);
    return count < END ? count : END;
}

static uint64_t true_threshold(struct truth *t, const struct hm_proposals *x, int32_t token)
{
    mpfr_set(t->sum, t->now[token], MPFR_RNDN);
    if (x->kind == HM_PROPOSAL_IID) mpfr_div(t->sum, t->sum, t->q[token], MPFR_RNDN);
    return numbers_below(t, t->sum);
}

// now = norm((now - proposal)^+)
static void true_residual(struct truth *t, const struct hm_proposals *x, int32_t token)
{
    mpfr_set_zero(t->sum, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        if (x->kind == HM_PROPOSAL_IID) mpfr_sub(t->now[i], t->now[i], t->q[i], MPFR_RNDN);
        else if ((int32_t)i == token) mpfr_set_zero(t->now[i], 1);
        if (mpfr_cmp_d(t->now[i], 0x1p-200) < 0) mpfr_set_zero(t->now[i], 1); // an exact match, rounded
        mpfr_add(t->sum, t->sum, t->now[i], MPFR_RNDN);
    }
    for (size_t i = 0; i < t->vocab; i++) mpfr_div(t->now[i], t->now[i], t->sum, MPFR_RNDN);
}

static void check_borders(const struct question *x, struct truth *t, struct given *g)
{
    mpfr_t sum;
    mpfr_init2(sum, BITS);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < t->vocab; i++) {
        mpfr_add(sum, sum, t->now[i], MPFR_RNDN);
        uint64_t found = residual_border(x, g, (int32_t)i), expected = numbers_below(t, sum);
        if (found != expected)
            fail_msg("residual up to %zu of %zu: %llu instead of %llu", i, t->vocab, (unsigned long long)found, (unsigned long long)expected);
    }
    mpfr_clear(sum);
}

// Every coin in turn, then the residual draw if it can be reached.
static size_t check_thresholds(const struct question *x, struct truth *t)
{
    struct given g = {{0}, 0};
    size_t asked = 0;
    for (size_t j = 0; j < x->proposals.count; j++, asked++) {
        int32_t token = x->proposals.token[j];
        uint64_t found = coin_threshold(x, &g, j), expected = END;
        if (!x->proposals.sure || hm_row_rank(x->p, token) >= x->proposals.sure) expected = true_threshold(t, &x->proposals, token);
        if (found != expected)
            fail_msg("coin %zu of token %ld: %llu instead of %llu", j, (long)token, (unsigned long long)found, (unsigned long long)expected);
        if (found == END) return asked; // always accepted: nothing comes after it
        true_residual(t, &x->proposals, token);
        g.coin[j] = END - 1;
    }
    check_borders(x, t, &g);
    return asked + t->vocab;
}

static void random_rows(struct random *r, float *l, float *d, size_t vocab)
{
    size_t kind = below(r, 5);
    for (size_t i = 0; i < vocab; i++) {
        l[i] = kind == 3 ? 0 : below(r, 4) ? (float)(2 * gauss(r)) : (float)below(r, 3);
        d[i] = kind == 0 ? (float)(2 * gauss(r)) : kind == 1 ? l[i] + (float)(0.3 * gauss(r)) : (float)below(r, 3);
        if (kind == 3) d[i] = 0;
        if (kind == 4) d[i] = below(r, 2) ? l[i] : l[i] + 1e-6f * (float)gauss(r);
        if (kind >= 2 && below(r, 3) == 0) l[i] = -INFINITY;
        if (kind >= 2 && below(r, 3) == 0) d[i] = -INFINITY;
    }
    if (l[0] == -INFINITY) l[0] = 0.5f * (kind != 3);
    if (d[vocab - 1] == -INFINITY) d[vocab - 1] = 0;
}

static void choose_proposals(struct random *r, const float *d, size_t vocab, struct hm_proposals *x, int32_t *tokens)
{
    x->token = tokens;
    x->sure = below(r, 3) ? 0 : below(r, vocab + 1);
    if (x->kind == HM_PROPOSAL_IID) {
        x->count = 1 + below(r, PROPOSALS);
        for (size_t j = 0; j < x->count; j++)
            do tokens[j] = (int32_t)below(r, vocab);
            while (d[tokens[j]] == -INFINITY);
        return;
    }
    x->count = 1 + below(r, vocab < PROPOSALS ? vocab : PROPOSALS);
    for (size_t j = 0; j < vocab; j++) tokens[j] = (int32_t)j;
    for (size_t j = 0; j < vocab; j++) {
        size_t k = j + below(r, vocab - j);
        int32_t other = tokens[k];
        tokens[k] = tokens[j];
        tokens[j] = other;
    }
}

static void every_threshold_is_exact(void **state)
{
    (void)state;
    struct random r = seeded("thresholds");
    size_t asked = 0;
    for (size_t n = 0; n < rounds(250); n++) {
        float l[MOST], d[MOST];
        int32_t tokens[MOST];
        struct truth t;
        size_t vocab = 2 + below(&r, MOST - 1);
        struct question x = {.proposals.kind = n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK};
        random_rows(&r, l, d, vocab);
        choose_proposals(&r, d, vocab, &x.proposals, tokens);
        x.p = open_row(l, vocab, "1/2");
        x.q = open_row(d, vocab, "1/2");
        if (n % 5 == 0) hm_row_exact_only(x.p); // MPFR alone
        truth_init(&t, l, d, vocab, 0.5);
        asked += check_thresholds(&x, &t);
        truth_clear(&t);
        hm_row_close(x.p);
        hm_row_close(x.q);
    }
    print_message("%zu thresholds\n", asked);
}

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

// ---- ties and ends

static void symbolic_cases(void **state)
{
    (void)state;
    const float same[] = {1, 2.5f, 1, 2.5f}, shifted[] = {2, 3.5f, 2, 3.5f}, uniform[] = {3, 3, -INFINITY, 3};
    int32_t tokens[] = {1, 1, 1}, token;
    struct question x = {open_row(same, 4, "1/3"), open_row(shifted, 4, "1/3"), {HM_PROPOSAL_IID, tokens, 3, 0}};
    struct given g = {{END - 1, END - 1, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 0); // p = q: every draw is accepted, at u < 1 however near
    hm_row_close(x.p);
    hm_row_close(x.q);

    // three equal tokens as point masses: accepted below 1/3, then below 1/2, then always; the empty one never
    int32_t points[] = {3, 2, 0, 1};
    x = (struct question){open_row(uniform, 4, "1"), NULL, {HM_PROPOSAL_TOPK, points, 4, 0}};
    g = (struct given){{END / 3 + 1, 0, END / 2, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 3);
    assert_int_equal(token, 1);
    g.coin[2]--; // u < 1/2
    assert_int_equal(ask(&x, &g, &token), 2);
    g.coin[0]--;
    assert_int_equal(ask(&x, &g, &token), 0);
    x.proposals.count = 1; // the residual draw of u = 1/2 from tokens 0 and 1: the sum has to pass
    g = (struct given){{END - 1}, END / 2};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 1);
    g.residual--;
    ask(&x, &g, &token);
    assert_int_equal(token, 0);
    hm_row_close(x.p);

    // classes that are divided in one proportion: 1, 2.5, 1, 2.5 and u = 1/2 after an empty proposal
    const float classes[] = {1, 2.5f, 1, 2.5f, -INFINITY};
    x = (struct question){open_row(classes, 5, "1"), NULL, {HM_PROPOSAL_TOPK, (int32_t[]){4}, 1, 0}};
    g = (struct given){{0}, END / 2};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 2);
    hm_row_close(x.p);

    // far tokens: weights that no double has
    const float far[] = {-INFINITY, -3e30f, 0, -5000, -3e30f};
    x = (struct question){open_row(far, 5, "1"), NULL, {HM_PROPOSAL_TOPK, (int32_t[]){1, 3, 2}, 3, 0}};
    g = (struct given){{1, 1, END - 1}, 0};
    assert_int_equal(ask(&x, &g, &token), 2); // nearly all of the weight: accepted whatever the coin
    g.coin[1] = 0; // u = 0 accepts what has any weight
    assert_int_equal(ask(&x, &g, &token), 1);
    g.coin[0] = 0;
    assert_int_equal(ask(&x, &g, &token), 0);
    x.proposals.count = 2; // u = 0 draws the first token left that has any weight
    g = (struct given){{1, 1}, 0};
    assert_int_equal(ask(&x, &g, &token), -1);
    assert_int_equal(token, 2);
    hm_row_close(x.p);
}

// On long rows the filter answers, and says what MPFR says.
static void the_filter_agrees(void **state)
{
    (void)state;
    enum { WIDE = 1500 };
    struct random r = seeded("filter");
    static float l[WIDE], d[WIDE];
    uint64_t answered = 0, undecided = 0;
    for (size_t n = 0; n < rounds(40); n++) {
        int32_t tokens[PROPOSALS];
        size_t vocab = 300 + below(&r, WIDE - 300);
        for (size_t i = 0; i < vocab; i++) {
            l[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((n % 4 ? 2 : 30) * gauss(&r));
            d[i] = i && below(&r, 9) == 0 ? -INFINITY : (float)((l[i] == -INFINITY ? 0 : l[i]) + (n % 3 ? 1 : 0.01) * gauss(&r));
        }
        struct question x = {open_row(l, vocab, "1"), open_row(d, vocab, "1"), {n % 2 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK, tokens, PROPOSALS, 0}}, slow = x;
        slow.p = open_row(l, vocab, "1");
        hm_row_exact_only(slow.p);
        for (size_t j = 0; j < PROPOSALS; j++) {
            tokens[j] = hm_row_token(x.q, j);
            if (n % 2) hm_row_draw(x.q, vocab, next_word(&r) >> 11, &tokens[j], NULL);
        }
        for (size_t i = 0; i < 8; i++) {
            struct given g;
            int32_t a, b;
            for (size_t j = 0; j < PROPOSALS; j++) g.coin[j] = END - 1 - (next_word(&r) >> (11 + below(&r, 20)));
            g.residual = next_word(&r) >> 11;
            assert_int_equal(ask(&x, &g, &a), ask(&slow, &g, &b));
            assert_int_equal(a, b);
        }
        answered += hm_row_questions(x.p).answered;
        undecided += hm_row_questions(x.p).undecided;
        hm_row_close(x.p);
        hm_row_close(x.q);
        hm_row_close(slow.p);
    }
    print_message("answered %llu, left to MPFR %llu\n", (unsigned long long)answered, (unsigned long long)undecided);
    assert_true(undecided * 50 < answered);
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

static void bad_questions(void **state)
{
    (void)state;
    const float l[] = {1, 2, 3}, d[] = {1, -INFINITY, 0};
    struct hm_row *p = open_row(l, 3, "1"), *q = open_row(d, 3, "1"), *other = open_row(l, 3, "2");
    struct hm_speculative_draws draws = {1, 0, 0};
    struct hm_error err;
    struct hm_ival ratio;
    int64_t accepted;
    int32_t token, one[] = {1}, out[] = {3};
    struct hm_proposals x = {HM_PROPOSAL_IID, one, 1, 0};
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_USAGE);
    assert_string_equal(err.message, "iid proposals: expected the draft's row, found none");
    assert_int_equal(hm_speculate(p, other, &x, &draws, &accepted, &token, &err), HM_USAGE);
    assert_int_equal(hm_speculate(p, q, &x, &draws, &accepted, &token, &err), HM_RANGE);
    assert_string_equal(err.message, "proposal 0: token 1 has probability 0 under the draft");
    x = (struct hm_proposals){HM_PROPOSAL_TOPK, out, 1, 0};
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_RANGE);
    assert_string_equal(err.message, "proposal 0: expected an id from 0 to 2, found 3");
    x.count = 0;
    assert_int_equal(hm_speculate(p, NULL, &x, &draws, &accepted, &token, &err), HM_USAGE);
    x = (struct hm_proposals){HM_PROPOSAL_TOPK, one, 1, 2}; // token 1 is in A: it alone is emitted
    assert_int_equal(hm_speculative_ratio(p, NULL, &x, 2, &ratio, &err), HM_RANGE);
    assert_string_equal(err.message, "ratio: expected a token that can be emitted, found 2 of probability 0");
    assert_int_equal(hm_speculative_ratio(p, NULL, &x, 5, &ratio, &err), HM_RANGE);
    hm_row_close(p);
    hm_row_close(q);
    hm_row_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_threshold_is_exact),
        cmocka_unit_test(the_law_of_the_code_is_the_closed_form),
        cmocka_unit_test(symbolic_cases),
        cmocka_unit_test(the_filter_agrees),
        cmocka_unit_test(ratios_are_p_over_o),
        cmocka_unit_test(bad_questions),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
