// Stochastic decoding by enumeration of every draw and coin in exact rational arithmetic (exact_law.h, exact_decoder.h): what
// `match` and `standard` do not change, what `nucleus` changes, and that the closed forms of theory.md §5 are right.
#include "tests/exact_decoder.h"

// ---- whole decodes

static void assert_target(const struct exact_decoder *d)
{
    mpq_t p;
    mpq_init(p);
    for (size_t code = 0; code < sequence_count(d->model); code++) {
        target_probability(d->model, code, p);
        if (!mpq_equal(p, d->law[code])) fail_msg("sequence %zu: %g instead of %g", code, mpq_get_d(d->law[code]), mpq_get_d(p));
    }
    mpq_clear(p);
}

static void decode_and_compare(struct random *r, struct exact_model *m, enum exact_acceptance how, enum hm_proposal kind,
                               size_t siblings, bool fresh)
{
    struct exact_decoder d = {.model = m, .how = how, .kind = kind, .siblings = siblings, .levels = 1 + below(r, MOST_LEVELS)};
    decoder_init(&d);
    decode(&d, fresh);
    assert_target(&d);
    decoder_clear(&d);
}

// Chains, siblings that are drawn and point masses in any tree: the law of the sequence is the target's.
static void standard_and_match_keep_the_law(void **state)
{
    (void)state;
    struct random r = seeded("standard and match");
    static struct exact_model m;
    for (size_t n = 0; n < rounds(12); n++) {
        size_t vocab = n % 4 == 0 ? 5 : 2 + below(&r, 2), length = vocab == 5 ? 2 : MOST_LENGTH;
        model_init(&m, &r, vocab, length);
        decode_and_compare(&r, &m, EXACT_STANDARD, HM_PROPOSAL_IID, 1, true);
        decode_and_compare(&r, &m, EXACT_STANDARD, HM_PROPOSAL_IID, 2, true);
        decode_and_compare(&r, &m, EXACT_STANDARD, HM_PROPOSAL_TOPK, 0, true);
        decode_and_compare(&r, &m, EXACT_MATCH, HM_PROPOSAL_TOPK, 0, true);
        model_clear(&m);
    }
}

// A position's draws come from the same numbers in every round that drafts it: what has been emitted by then cannot know them.
static void numbers_of_a_position_may_be_used_again(void **state)
{
    (void)state;
    struct random r = seeded("numbers");
    static struct exact_model m;
    for (size_t n = 0; n < rounds(6); n++) {
        model_init(&m, &r, 2 + n % 2, MOST_LENGTH);
        for (size_t i = 0; i < prefix_place(&m, (struct prefix){MOST_LENGTH, 0}); i++) {
            unsigned counts[MOST_TOKENS] = {0};
            for (unsigned k = 0; k < NUMBERS; k++) counts[below(&r, m.vocab)]++;
            law_set(&m.at[i].q, counts);
        }
        decode_and_compare(&r, &m, EXACT_STANDARD, HM_PROPOSAL_IID, 1 + n % 2, false);
        model_clear(&m);
    }
}

// A selection that looks at what was drawn: of two draws the likelier is kept, and judged as if it were the only one.
static void keeping_likelier_draws_changes_the_law(void **state)
{
    (void)state;
    struct exact_position x;
    mpq_t out[2], tv, chance;
    position_init(&x, 2);
    law_set(&x.p, (unsigned[]){1, 1});
    law_set(&x.q, (unsigned[]){9, 1});
    mpq_inits(out[0], out[1], tv, chance, NULL);
    for (int32_t a = 0; a < 2; a++)
        for (int32_t b = 0; b < 2; b++) {
            int32_t kept = a < b ? a : b; // q_0 > q_1
            mpq_t accept;
            mpq_init(accept);
            mpq_mul(chance, x.q.at[a], x.q.at[b]);
            mpq_div(accept, x.p.at[kept], x.q.at[kept]);
            if (mpq_cmp_ui(accept, 1, 1) > 0) mpq_set_ui(accept, 1, 1);
            mpq_mul(accept, accept, chance);
            mpq_add(out[kept], out[kept], accept);
            mpq_sub(chance, chance, accept);
            mpq_add(out[1], out[1], chance); // all of (p - q)^+ is token 1
            mpq_clear(accept);
        }
    total_variation(tv, out, x.p.at, 2);
    assert_int_equal(mpq_cmp_ui(tv, 1, 20), 0);
    mpq_clears(out[0], out[1], tv, chance, NULL);
    position_clear(&x);
}

// ---- one position

struct emitted {
    mpq_t law[MOST_TOKENS], accepted;
};

static void emitted_init(struct emitted *e)
{
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_init(e->law[i]);
    mpq_init(e->accepted);
}

static void emitted_clear(struct emitted *e)
{
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_clear(e->law[i]);
    mpq_clear(e->accepted);
}

static void collect(void *user, const struct exact_event *event, mpq_srcptr chance)
{
    struct emitted *e = user;
    mpq_add(e->law[event->token], e->law[event->token], chance);
    if (event->child >= 0) mpq_add(e->accepted, e->accepted, chance);
}

static void enumerate_position(const struct exact_position *x, enum hm_proposal kind, const int32_t *children, size_t m,
                               bool relaxed, struct emitted *out)
{
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    if (kind == HM_PROPOSAL_IID) draw_proposals(x, m, relaxed, one, collect, out);
    else try_proposals(x, kind, children, m, relaxed, one, collect, out);
    mpq_clear(one);
}

// out = (c q_i - p_i)^+
static void excess_of(mpq_t out, const struct exact_position *x, mpq_srcptr c, size_t i)
{
    mpq_mul(out, c, x->q.at[i]);
    mpq_sub(out, out, x->p.at[i]);
    if (mpq_sgn(out) < 0) mpq_set_ui(out, 0, 1);
}

// The closed forms: P_j, H, c_j, Z_j and the law o of the emitted token (theory.md §5).
struct closed {
    mpq_t missed, looked, c, rest, e;
    mpq_t o[MOST_TOKENS];
};

static void closed_init(struct closed *x)
{
    mpq_inits(x->missed, x->looked, x->c, x->rest, x->e, NULL);
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_init(x->o[i]);
}

static void closed_clear(struct closed *x)
{
    mpq_clears(x->missed, x->looked, x->c, x->rest, x->e, NULL);
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_clear(x->o[i]);
}

// out = (p_i - c q_i)^+ / Z, or 0 where nothing is left
static void left_of(mpq_t out, const struct exact_position *x, const struct closed *a, size_t i)
{
    mpq_mul(out, a->c, x->q.at[i]);
    mpq_sub(out, x->p.at[i], out);
    if (mpq_sgn(out) < 0) mpq_set_ui(out, 0, 1);
    if (mpq_sgn(out) > 0) mpq_div(out, out, a->rest);
}

// sum over the rejected of max(p, c q), as N(c) + p
static void reach_of(mpq_t out, const struct exact_position *x, mpq_srcptr c)
{
    mpq_t term;
    mpq_init(term);
    mpq_set_ui(out, 0, 1);
    for (size_t i = 0; i < x->p.vocab; i++) {
        excess_of(term, x, c, i);
        if (!x->kept[i]) mpq_add(out, out, term);
    }
    mpq_clear(term);
}

static void close_iid(struct closed *a, const struct exact_position *x, size_t m)
{
    mpq_t before, after, term;
    mpq_inits(before, after, term, NULL);
    mpq_set_ui(a->missed, 1, 1);
    mpq_set_ui(a->rest, 1, 1);
    for (size_t j = 0; j < m && mpq_sgn(a->rest) > 0; j++) {
        for (size_t i = 0; i < x->p.vocab; i++) {
            left_of(term, x, a, i);
            if (x->kept[i] || mpq_cmp(x->q.at[i], term) < 0) mpq_set(term, x->q.at[i]);
            mpq_mul(term, term, a->missed);
            mpq_add(a->o[i], a->o[i], term);
        }
        mpq_add(a->looked, a->looked, a->missed);
        reach_of(before, x, a->c);
        mpq_add(a->c, a->c, a->rest);
        reach_of(after, x, a->c);
        mpq_sub(after, after, before);
        mpq_div(after, after, a->rest);
        mpq_mul(a->missed, a->missed, after);
        mpq_set_ui(a->rest, 0, 1);
        for (size_t i = 0; i < x->p.vocab; i++) {
            mpq_mul(term, a->c, x->q.at[i]);
            mpq_sub(term, x->p.at[i], term);
            if (mpq_sgn(term) > 0) mpq_add(a->rest, a->rest, term);
        }
    }
    for (size_t i = 0; i < x->p.vocab; i++) {
        left_of(term, x, a, i);
        mpq_mul(term, term, a->missed);
        mpq_add(a->o[i], a->o[i], term);
        excess_of(term, x, a->looked, i);
        if (x->kept[i]) mpq_add(a->e, a->e, term);
    }
    mpq_clears(before, after, term, NULL);
}

static void close_topk(struct closed *a, const struct exact_position *x, const int32_t *children, size_t m)
{
    mpq_set_ui(a->missed, 1, 1);
    for (size_t j = 0; j < m; j++) {
        size_t t = (size_t)children[j];
        mpq_set(a->o[t], x->kept[t] ? a->missed : x->p.at[t]);
        mpq_sub(a->missed, a->missed, x->p.at[t]);
        if (!x->kept[t]) continue;
        mpq_set(a->e, a->missed);
        mpq_set_ui(a->missed, 0, 1);
        return;
    }
    for (size_t i = 0; i < x->p.vocab; i++) mpq_set(a->o[i], x->p.at[i]);
}

static void compare_closed(const struct exact_position *x, enum hm_proposal kind, const int32_t *children, size_t m)
{
    struct emitted out;
    struct closed a;
    mpq_t tv;
    mpq_init(tv);
    emitted_init(&out);
    closed_init(&a);
    enumerate_position(x, kind, children, m, true, &out);
    if (kind == HM_PROPOSAL_IID) close_iid(&a, x, m);
    else close_topk(&a, x, children, m);
    for (size_t i = 0; i < x->p.vocab; i++) assert_true(mpq_equal(a.o[i], out.law[i]));
    total_variation(tv, out.law, (mpq_t *)x->p.at, x->p.vocab);
    assert_true(mpq_equal(tv, a.e));
    mpq_add(a.missed, a.missed, out.accepted);
    assert_int_equal(mpq_cmp_ui(a.missed, 1, 1), 0);
    emitted_clear(&out);
    closed_clear(&a);
    mpq_clear(tv);
}

static void random_position(struct random *r, struct exact_position *x)
{
    random_law(r, &x->p);
    random_law(r, &x->q);
    keep_first_tokens(x, below(r, x->p.vocab + 1));
}

// The law, its distance from the target's and the acceptance are the closed forms, to the last digit.
static void closed_forms_are_exact(void **state)
{
    (void)state;
    struct random r = seeded("closed forms");
    static struct exact_model m; // for its children
    for (size_t n = 0; n < rounds(300); n++) {
        m.vocab = 2 + below(&r, 4);
        position_init(&m.at[0], m.vocab);
        random_position(&r, &m.at[0]);
        random_children(&r, &m, 0);
        compare_closed(&m.at[0], HM_PROPOSAL_IID, NULL, 1 + below(&r, 3));
        if (m.child_count[0]) compare_closed(&m.at[0], HM_PROPOSAL_TOPK, m.children[0], m.child_count[0]);
        position_clear(&m.at[0]);
    }
}

// One draft a position: what nucleus speculative decoding gains in acceptance is what it loses in fidelity, E_N.
static void one_draft_loses_what_it_gains(void **state)
{
    (void)state;
    struct random r = seeded("one draft");
    size_t lossy = 0;
    for (size_t n = 0; n < rounds(300); n++) {
        struct exact_position x;
        struct emitted relaxed, standard;
        mpq_t tv, excess, term, one;
        position_init(&x, 2 + below(&r, 4));
        random_position(&r, &x);
        emitted_init(&relaxed);
        emitted_init(&standard);
        mpq_inits(tv, excess, term, one, NULL);
        mpq_set_ui(one, 1, 1);
        enumerate_position(&x, HM_PROPOSAL_IID, NULL, 1, true, &relaxed);
        enumerate_position(&x, HM_PROPOSAL_IID, NULL, 1, false, &standard);
        for (size_t i = 0; i < x.p.vocab; i++) {
            excess_of(term, &x, one, i);
            if (x.kept[i]) mpq_add(excess, excess, term);
        }
        total_variation(tv, relaxed.law, x.p.at, x.p.vocab);
        assert_true(mpq_equal(tv, excess));
        mpq_sub(term, relaxed.accepted, standard.accepted);
        assert_true(mpq_equal(term, excess));
        lossy += mpq_sgn(excess) > 0;
        mpq_clears(tv, excess, term, one, NULL);
        emitted_clear(&relaxed);
        emitted_clear(&standard);
        position_clear(&x);
    }
    assert_true(lossy > 30);
}

// ---- the code that decides, where p and q are rational: uniform on their supports

static void uniform_on(struct exact_law *x, float *logits, unsigned support)
{
    unsigned counts[MOST_TOKENS];
    for (size_t i = 0; i < x->vocab; i++) {
        counts[i] = support >> i & 1;
        logits[i] = counts[i] ? 1.5f : -INFINITY;
    }
    law_set(x, counts);
}

static void assert_in(struct hm_ival v, mpq_srcptr x)
{
    mpq_t end;
    mpq_init(end);
    mpq_set_d(end, v.lo);
    assert_true(mpq_cmp(end, x) <= 0);
    mpq_set_d(end, v.hi);
    assert_true(mpq_cmp(end, x) >= 0);
    assert_true(is_narrow(v));
    mpq_clear(end);
}

static void compare_code(const struct exact_position *x, const float *l, const float *d, enum hm_proposal kind,
                         const int32_t *children, size_t m, size_t k)
{
    struct emitted out;
    struct hm_law law;
    mpq_t tv;
    struct hm_row *p = open_row(l, x->p.vocab, "1"), *q = open_row(d, x->p.vocab, "1");
    mpq_init(tv);
    emitted_init(&out);
    enumerate_position(x, kind, children, m, true, &out);
    total_variation(tv, out.law, (mpq_t *)x->p.at, x->p.vocab);
    assert_int_equal(hm_law_make(p, q, kind, children, m, k, &law, NULL), HM_OK);
    assert_in(law.e, tv);
    assert_in(law.accept, out.accepted);
    hm_row_close(p);
    hm_row_close(q);
    emitted_clear(&out);
    mpq_clear(tv);
}

// Every pair of supports of three tokens, every k, up to three proposals.
static void hm_law_make_agrees_where_all_is_rational(void **state)
{
    (void)state;
    struct exact_position x;
    position_init(&x, 3);
    for (unsigned a = 1; a < 8; a++)
        for (unsigned b = 1; b < 8; b++)
            for (size_t k = 0; k <= 3; k++) {
                float l[3], d[3];
                uniform_on(&x.p, l, a);
                uniform_on(&x.q, d, b);
                keep_first_tokens(&x, k);
                for (size_t m = 1; m <= 3; m++) {
                    compare_code(&x, l, d, HM_PROPOSAL_IID, NULL, m, k);
                    compare_code(&x, l, d, HM_PROPOSAL_TOPK, (int32_t[]){2, 0, 1}, m, k);
                }
            }
    position_clear(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_and_match_keep_the_law),
        cmocka_unit_test(numbers_of_a_position_may_be_used_again),
        cmocka_unit_test(keeping_likelier_draws_changes_the_law),
        cmocka_unit_test(closed_forms_are_exact),
        cmocka_unit_test(one_draft_loses_what_it_gains),
        cmocka_unit_test(hm_law_make_agrees_where_all_is_rational),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
