// Fidelity budgets by enumeration in exact rational arithmetic (theory.md §5): the budget bounds the total variation of a
// sequence's law, and other ways to keep the books do not. Also the estimators that need no budget.
#include "tests/exact_decoder.h"

// ---- the law of a sequence under a budget, enumerated

// How the books are kept. The first is docs/log.md's.
enum books { REACHED, RESCUED, ACCEPTED };

static bool is_charged(enum books books, const struct exact_event *event)
{
    return books == REACHED || (books == RESCUED && event->rescued) || (books == ACCEPTED && event->child >= 0);
}

struct emission {
    mpq_t at[MOST_TOKENS];
};

static void add_token(void *user, const struct exact_event *event, mpq_srcptr chance)
{
    struct emission *e = user;
    mpq_add(e->at[event->token], e->at[event->token], chance);
}

// The relaxed law of a position with m iid proposals, and its distance from p.
static void relaxed_law(const struct exact_position *x, size_t m, struct emission *o, mpq_t e)
{
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_init(o->at[i]);
    draw_proposals(x, m, true, one, add_token, o);
    total_variation(e, o->at, (mpq_t *)x->p.at, x->p.vocab);
    mpq_clear(one);
}

static void emission_clear(struct emission *o)
{
    for (size_t i = 0; i < MOST_TOKENS; i++) mpq_clear(o->at[i]);
}

// Every position of a chain that never ends is looked at, with a number of proposals of its own.
struct spender {
    const struct exact_model *model;
    enum books books;
    mpq_t limit, law[MOST_SEQUENCES];
    mpq_t cost[MOST_PREFIXES]; // e of each prefix
};

struct spending {
    struct spender *s;
    struct prefix at;
    mpq_srcptr spent, next; // next: after a charge
    bool relaxed;
};

static void spend(struct spender *s, struct prefix at, mpq_srcptr spent, mpq_srcptr chance);

static void spend_on(void *user, const struct exact_event *event, mpq_srcptr chance)
{
    const struct spending *x = user;
    bool charged = x->relaxed && is_charged(x->s->books, event);
    spend(x->s, prefix_and(x->s->model, x->at, event->token), charged ? x->next : x->spent, chance);
}

static void spend(struct spender *s, struct prefix at, mpq_srcptr spent, mpq_srcptr chance)
{
    if (at.length == s->model->length) {
        mpq_add(s->law[at.code], s->law[at.code], chance);
        return;
    }
    size_t place = prefix_place(s->model, at), m = s->model->child_count[place];
    mpq_t next;
    mpq_init(next);
    mpq_add(next, spent, s->cost[place]);
    struct spending x = {s, at, spent, next, mpq_cmp(next, s->limit) <= 0};
    draw_proposals(&s->model->at[place], m, x.relaxed, chance, spend_on, &x);
    mpq_clear(next);
}

static void spender_init(struct spender *s, const struct exact_model *m, enum books books)
{
    *s = (struct spender){.model = m, .books = books};
    mpq_init(s->limit);
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_init(s->law[i]);
    for (size_t i = 0; i < MOST_PREFIXES; i++) mpq_init(s->cost[i]);
    for (size_t i = 0; i < prefix_place(m, (struct prefix){m->length, 0}); i++) {
        struct emission o;
        relaxed_law(&m->at[i], m->child_count[i], &o, s->cost[i]);
        emission_clear(&o);
    }
}

static void spender_clear(struct spender *s)
{
    mpq_clear(s->limit);
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_clear(s->law[i]);
    for (size_t i = 0; i < MOST_PREFIXES; i++) mpq_clear(s->cost[i]);
}

static void sequence_variation(struct spender *s, mpq_t tv)
{
    mpq_t target[MOST_SEQUENCES], zero, one;
    mpq_inits(zero, one, NULL);
    mpq_set_ui(one, 1, 1);
    for (size_t i = 0; i < MOST_SEQUENCES; i++) mpq_set_ui(s->law[i], 0, 1);
    spend(s, (struct prefix){0, 0}, zero, one);
    for (size_t i = 0; i < sequence_count(s->model); i++) {
        mpq_init(target[i]);
        target_probability(s->model, i, target[i]);
    }
    total_variation(tv, s->law, target, sequence_count(s->model));
    for (size_t i = 0; i < sequence_count(s->model); i++) mpq_clear(target[i]);
    mpq_clears(zero, one, NULL);
}

// Two and three steps, every prefix with laws of its own: charged where it is reached, the budget bounds the total variation of
// the whole sequence on every model. The other books break it on some.
static void a_budget_bounds_the_law_of_a_sequence(void **state)
{
    (void)state;
    struct random r = seeded("budgets");
    static struct exact_model m;
    static struct spender s;
    double nearest = 0;
    size_t broken[3] = {0};
    for (size_t n = 0; n < rounds(400); n++) {
        model_init(&m, &r, 2 + below(&r, 2), 2 + below(&r, 2));
        for (size_t i = 0; i < prefix_place(&m, (struct prefix){m.length, 0}); i++) m.child_count[i] = below(&r, 3);
        for (enum books books = REACHED; books <= ACCEPTED; books++) {
            mpq_t tv;
            mpq_init(tv);
            spender_init(&s, &m, books);
            size_t a = below(&r, m.vocab + 1), b = below(&r, m.vocab + 1); // a limit that some sum of charges meets
            mpq_add(s.limit, s.cost[a], s.cost[b]);
            sequence_variation(&s, tv);
            int over = mpq_cmp(tv, s.limit) > 0;
            broken[books] += (size_t)over;
            if (books == REACHED && over) fail_msg("total variation %g above the limit %g", mpq_get_d(tv), mpq_get_d(s.limit));
            if (books == REACHED && mpq_sgn(s.limit) > 0) nearest = fmax(nearest, mpq_get_d(tv) / mpq_get_d(s.limit));
            spender_clear(&s);
            mpq_clear(tv);
        }
        model_clear(&m);
    }
    print_message("total variation up to %.4f of the limit; above it when rescued tokens are charged: %zu, accepted: %zu of %zu\n",
                  nearest, broken[RESCUED], broken[ACCEPTED], rounds(400));
    assert_true(nearest > 0.9);
}

// ---- the three wrong ways, with large numbers: 100 equal positions that cost 1/100 each, and a limit of 1/100

enum { STEPS = 100 };

// The chance that none of STEPS tokens is `token`, over a state: how often it was charged (at most once).
struct path {
    enum books books;
    int32_t token;
    bool relaxed;
    mpq_t *from, *to; // [2]: by charges; where this step comes from and goes to
    size_t charges;
};

static void go_on(void *user, const struct exact_event *event, mpq_srcptr chance)
{
    struct path *x = user;
    if (event->token == x->token) return;
    size_t to = x->charges + (x->relaxed && is_charged(x->books, event));
    mpq_add(x->to[to], x->to[to], chance);
}

static double chance_of_none(const struct exact_position *x, enum books books, int32_t token)
{
    mpq_t a[2], b[2];
    mpq_inits(a[0], a[1], b[0], b[1], NULL);
    mpq_set_ui(a[0], 1, 1);
    for (int step = 0; step < STEPS; step++) {
        for (size_t c = 0; c < 2; c++) mpq_set_ui(b[c], 0, 1);
        for (size_t c = 0; c < 2; c++) {
            struct path path = {books, token, c == 0, a, b, c}; // one charge is the limit
            if (mpq_sgn(a[c]) > 0) draw_proposals(x, 1, path.relaxed, a[c], go_on, &path);
        }
        for (size_t c = 0; c < 2; c++) mpq_swap(a[c], b[c]);
    }
    mpq_add(a[0], a[0], a[1]);
    double out = mpq_get_d(a[0]);
    mpq_clears(a[0], a[1], b[0], b[1], NULL);
    return out;
}

// Only rescued tokens are charged: p = (1 - a, a), q = (1, 0), A = {0}. All tokens are 0 too often, by .37.
static void charging_rescued_tokens_is_wrong(void **state)
{
    (void)state;
    struct exact_position x;
    struct emission o;
    mpq_t e;
    mpq_init(e);
    position_init(&x, 2);
    law_set(&x.p, (unsigned[]){STEPS - 1, 1});
    law_set(&x.q, (unsigned[]){1, 0});
    keep_first_tokens(&x, 1);
    relaxed_law(&x, 1, &o, e);
    assert_int_equal(mpq_cmp_ui(e, 1, STEPS), 0);
    double target = pow(1 - 1.0 / STEPS, STEPS), found = chance_of_none(&x, RESCUED, 1), right = chance_of_none(&x, REACHED, 1);
    assert_true(fabs(found - target - 0.37) < 0.005);
    assert_true(right - target <= 0.01 && right > target);
    emission_clear(&o);
    position_clear(&x);
    mpq_clear(e);
}

// p gives token 0 nothing, q gives it 1/100 and the rest to a token that is rejected; A = {1, 0}.
static void a_token_that_the_target_never_says(struct exact_position *x)
{
    position_init(x, 3);
    law_set(&x->p, (unsigned[]){0, 1, 0});
    law_set(&x->q, (unsigned[]){1, 0, STEPS - 1});
    keep_first_tokens(x, 2);
    assert_true(x->kept[0] && x->kept[1] && !x->kept[2]);
}

// Only accepted positions are charged: token 0 comes sooner or later, .63.
static void charging_accepted_positions_is_wrong(void **state)
{
    (void)state;
    struct exact_position x;
    a_token_that_the_target_never_says(&x);
    double found = 1 - chance_of_none(&x, ACCEPTED, 0), right = 1 - chance_of_none(&x, REACHED, 0);
    assert_true(fabs(found - 0.63) < 0.005);
    assert_true(right <= 0.01 * (1 + 1e-12) && right > 0.0099);
    position_clear(&x);
}

// A block of two is decided, and charged, by the sum of e over the drafted path: the second position costs nothing after token 0
// and everything after another, so the block is relaxed exactly when the first position does harm.
static void deciding_by_the_drafted_path_is_wrong(void **state)
{
    (void)state;
    struct exact_position x;
    mpq_t none, limit, first, second[3], sum, chance, total;
    a_token_that_the_target_never_says(&x);
    mpq_inits(none, limit, first, second[0], second[1], second[2], sum, chance, total, NULL);
    struct emission o;
    relaxed_law(&x, 1, &o, first);
    mpq_set(limit, first);
    mpq_set_ui(second[1], 1, 1);
    mpq_set_ui(second[2], 1, 1);
    mpq_set_ui(none, 1, 1); // the chance that all rounds so far rejected what they drafted: then nothing was charged
    for (int round = 0; round < STEPS; round++) {
        struct emission step = {0};
        for (size_t i = 0; i < MOST_TOKENS; i++) mpq_init(step.at[i]);
        for (int32_t drafted = 0; drafted < 3; drafted++) {
            mpq_add(sum, first, second[drafted]);
            mpq_mul(chance, none, x.q.at[drafted]);
            if (mpq_sgn(chance) > 0)
                try_proposals(&x, HM_PROPOSAL_IID, &drafted, 1, mpq_cmp(sum, limit) <= 0, chance, add_token, &step);
        }
        mpq_sub(none, none, step.at[0]);
        mpq_set_ui(total, 0, 1);
        for (size_t i = 0; i < 3; i++) mpq_add(total, total, step.at[i]);
        mpq_sub(total, total, step.at[0]);
        assert_true(mpq_equal(total, none));
        emission_clear(&step);
    }
    assert_true(fabs(1 - mpq_get_d(none) - 0.63) < 0.005);
    emission_clear(&o);
    position_clear(&x);
    mpq_clears(none, limit, first, second[0], second[1], second[2], sum, chance, total, NULL);
}

// ---- estimators

// Along a sequence: its chance under the decoder whose every position is relaxed, S and the product w of p/o.
static void follow(const struct spender *s, const struct emission *laws, size_t code, mpq_t chance, mpq_t S, mpq_t w)
{
    size_t digits[MOST_LENGTH], rest = code;
    struct prefix at = {0, 0};
    mpq_t ratio;
    mpq_init(ratio);
    for (size_t i = s->model->length; i-- > 0; rest /= s->model->vocab) digits[i] = rest % s->model->vocab;
    mpq_set_ui(chance, 1, 1);
    mpq_set_ui(S, 0, 1);
    mpq_set_ui(w, 1, 1);
    for (size_t i = 0; i < s->model->length && mpq_sgn(chance) > 0; i++) {
        size_t place = prefix_place(s->model, at);
        mpq_srcptr o = laws[place].at[digits[i]];
        mpq_mul(chance, chance, o);
        mpq_add(S, S, s->cost[place]);
        if (mpq_sgn(o) > 0) {
            mpq_div(ratio, s->model->at[place].p.at[digits[i]], o);
            mpq_mul(w, w, ratio);
        }
        at = prefix_and(s->model, at, (int32_t)digits[i]);
    }
    mpq_clear(ratio);
}

// The law depends on the prefix only: E[(1 - w)^+] is the total variation, and E[S] is no less.
static void the_bounded_estimator_is_the_total_variation(void **state)
{
    (void)state;
    struct random r = seeded("estimators");
    static struct exact_model m;
    static struct spender s;
    static struct emission laws[MOST_PREFIXES];
    for (size_t n = 0; n < rounds(60); n++) {
        mpq_t tv, bounded, sum, chance, S, w, one;
        mpq_inits(tv, bounded, sum, chance, S, w, one, NULL);
        mpq_set_ui(one, 1, 1);
        model_init(&m, &r, 2 + below(&r, 2), 2 + below(&r, 2));
        size_t places = prefix_place(&m, (struct prefix){m.length, 0});
        for (size_t i = 0; i < places; i++) m.child_count[i] = below(&r, 3);
        spender_init(&s, &m, REACHED);
        mpq_set_ui(s.limit, 100, 1); // never reached
        sequence_variation(&s, tv);
        for (size_t i = 0; i < places; i++) relaxed_law(&m.at[i], m.child_count[i], &laws[i], s.cost[i]);
        for (size_t code = 0; code < sequence_count(&m); code++) {
            follow(&s, laws, code, chance, S, w);
            assert_true(mpq_equal(chance, s.law[code]));
            mpq_mul(S, S, chance);
            mpq_add(sum, sum, S);
            mpq_sub(w, one, w);
            mpq_mul(w, w, chance);
            if (mpq_sgn(w) > 0) mpq_add(bounded, bounded, w);
        }
        assert_true(mpq_equal(bounded, tv));
        assert_true(mpq_cmp(sum, tv) >= 0);
        for (size_t i = 0; i < places; i++) emission_clear(&laws[i]);
        spender_clear(&s);
        model_clear(&m);
        mpq_clears(tv, bounded, sum, chance, S, w, one, NULL);
    }
}

// Two steps; the decoder takes a branch where the laws are disjoint half the time, and the other has no target at all: TV = 1,
// mean S = 1, but the mean of min(1, S) is 3/4.
static void never_clip_a_sum(void **state)
{
    (void)state;
    struct random r = seeded("clipping");
    static struct exact_model m;
    static struct spender s;
    struct emission laws[3];
    mpq_t tv, sum, clipped, chance, S, w;
    mpq_inits(tv, sum, clipped, chance, S, w, NULL);
    model_init(&m, &r, 2, 2);
    for (size_t i = 0; i < 3; i++) {
        m.child_count[i] = 1;
        law_set(&m.at[i].p, (unsigned[]){1, 0});
        keep_first_tokens(&m.at[i], 2);
    }
    law_set(&m.at[0].q, (unsigned[]){1, 1});
    law_set(&m.at[1].q, (unsigned[]){0, 1}); // after token 0
    law_set(&m.at[2].q, (unsigned[]){1, 0});
    spender_init(&s, &m, REACHED);
    mpq_set_ui(s.limit, 100, 1);
    sequence_variation(&s, tv);
    assert_int_equal(mpq_cmp_ui(s.cost[0], 1, 2), 0);
    for (size_t i = 0; i < 3; i++) relaxed_law(&m.at[i], 1, &laws[i], s.cost[i]);
    for (size_t code = 0; code < 4; code++) {
        follow(&s, laws, code, chance, S, w);
        mpq_mul(w, S, chance);
        mpq_add(sum, sum, w);
        if (mpq_cmp_ui(S, 1, 1) > 0) mpq_set_ui(S, 1, 1);
        mpq_mul(S, S, chance);
        mpq_add(clipped, clipped, S);
    }
    assert_int_equal(mpq_cmp_ui(tv, 1, 1), 0);
    assert_int_equal(mpq_cmp_ui(sum, 1, 1), 0);
    assert_int_equal(mpq_cmp_ui(clipped, 3, 4), 0);
    for (size_t i = 0; i < 3; i++) emission_clear(&laws[i]);
    spender_clear(&s);
    model_clear(&m);
    mpq_clears(tv, sum, clipped, chance, S, w, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_bounds_the_law_of_a_sequence),
        cmocka_unit_test(charging_rescued_tokens_is_wrong),
        cmocka_unit_test(charging_accepted_positions_is_wrong),
        cmocka_unit_test(deciding_by_the_drafted_path_is_wrong),
        cmocka_unit_test(the_bounded_estimator_is_the_total_variation),
        cmocka_unit_test(never_clip_a_sum),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
