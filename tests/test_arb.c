// Enclosures against an independent rigorous library: Arb's balls (Johansson 2017) and our intervals of the same number
// must overlap, for 10^4 rows structured to hurt. Arb is asked at 320 bits, from the definitions of docs/theory.md §1-§3.
#include "tests/certify_rows.h"
#include "tests/seed.h"

#include <arb.h>
#include <flint/flint.h>
#include <string.h>

enum { BITS = 320, MOST = 24 };

static struct {
    arb_t weight[2][MOST], p[2][MOST], mass[2], temperature; // of target and draft, by token
    arb_t a, b, c;
    arf_t end;
} arb;

static int setup(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        arb_init(arb.mass[side]);
        for (int i = 0; i < MOST; i++) arb_init(arb.weight[side][i]), arb_init(arb.p[side][i]);
    }
    arb_init(arb.temperature), arb_init(arb.a), arb_init(arb.b), arb_init(arb.c), arf_init(arb.end);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        arb_clear(arb.mass[side]);
        for (int i = 0; i < MOST; i++) arb_clear(arb.weight[side][i]), arb_clear(arb.p[side][i]);
    }
    arb_clear(arb.temperature), arb_clear(arb.a), arb_clear(arb.b), arb_clear(arb.c), arf_clear(arb.end);
    flint_cleanup();
    return 0;
}

// Fails unless ball and interval share a point.
static void overlaps(const char *what, const arb_t ball, struct hm_ival v)
{
    arf_t end;
    arf_init(end);
    arb_get_lbound_arf(end, ball, BITS);
    bool above = arf_cmp_d(end, v.hi) > 0;
    arb_get_ubound_arf(end, ball, BITS);
    bool below = arf_cmp_d(end, v.lo) < 0;
    arf_clear(end);
    if (!above && !below) return;
    arb_printn(ball, 40, 0);
    fail_msg("%s: not in [%.17g, %.17g]", what, v.lo, v.hi);
}

static float logit(uint64_t *seed, int style, const float *before, size_t i)
{
    double x = 4 * (test_signed(seed) + test_signed(seed));
    size_t pick = test_below(seed, 8);
    if (i > 0 && pick < 3) return before[test_below(seed, i)];                            // a tie
    if (i > 0 && pick == 3) return nextafterf(before[test_below(seed, i)], INFINITY);     // or nearly one
    if (style == 1) return (float)(200 * x);                                              // a spread of 10^3 nats
    if (style == 2) return i == 0 ? 0 : -16 - (float)test_below(seed, 20);                // mass on one token
    if (style == 3 && pick == 4) return -INFINITY;
    if (style == 4) return (float)(x * 0x1p-20);                                          // flat
    if (style == 5) return (float)((int)(8 * x)) / 8;                                     // bf16-like
    return (float)x;
}

static void set_row(int side, const float *logits, size_t n)
{
    float top = -INFINITY;
    for (size_t i = 0; i < n; i++) top = logits[i] > top ? logits[i] : top;
    arb_zero(arb.mass[side]);
    for (size_t i = 0; i < n; i++) {
        arb_zero(arb.weight[side][i]);
        if (logits[i] == -INFINITY) continue;
        arb_set_d(arb.a, (double)logits[i]);
        arb_set_d(arb.b, (double)top);
        arb_sub(arb.a, arb.a, arb.b, BITS);
        arb_div(arb.a, arb.a, arb.temperature, BITS);
        arb_exp(arb.weight[side][i], arb.a, BITS);
        arb_add(arb.mass[side], arb.mass[side], arb.weight[side][i], BITS);
    }
    for (size_t i = 0; i < n; i++) arb_div(arb.p[side][i], arb.weight[side][i], arb.mass[side], BITS);
}

static void check_figures(struct hm_row *row, size_t n)
{
    struct hm_error err;
    struct hm_ival v;
    arb_set_d(arb.a, (double)hm_row_logits(row)[hm_row_token(row, 0)]);
    arb_div(arb.a, arb.a, arb.temperature, BITS);
    arb_log(arb.b, arb.mass[0], BITS);
    arb_add(arb.a, arb.a, arb.b, BITS);
    assert_int_equal(hm_row_lse(row, &v, &err), HM_OK);
    overlaps("lse", arb.a, v);
    arb_zero(arb.a);
    for (size_t i = 0; i < n; i++) {
        if (hm_row_logits(row)[i] == -INFINITY) continue;
        arb_log(arb.b, arb.p[0][i], BITS);
        arb_submul(arb.a, arb.b, arb.p[0][i], BITS);
    }
    assert_int_equal(hm_row_entropy(row, &v, &err), HM_OK);
    overlaps("entropy", arb.a, v);
    int32_t token = hm_row_token(row, n / 2);
    assert_int_equal(hm_row_probability(row, token, &v, &err), HM_OK);
    overlaps("probability", arb.p[0][token], v);
}

// KL between the sides, into a; false when it is infinite.
static bool divergence(int from, int to, size_t n)
{
    arb_zero(arb.a);
    for (size_t i = 0; i < n; i++) {
        if (arb_is_zero(arb.p[from][i])) continue;
        if (arb_is_zero(arb.p[to][i])) return false;
        arb_div(arb.b, arb.p[from][i], arb.p[to][i], BITS);
        arb_log(arb.b, arb.b, BITS);
        arb_addmul(arb.a, arb.b, arb.p[from][i], BITS);
    }
    return true;
}

static void check_distance(struct hm_row *p, struct hm_row *q, size_t n)
{
    struct hm_row_distance d;
    struct hm_error err;
    assert_int_equal(hm_row_distance(p, q, &d, &err), HM_OK);
    if (divergence(0, 1, n)) overlaps("KL(p||q)", arb.a, d.kl_pq);
    else assert_true(d.kl_pq.lo == INFINITY);
    if (divergence(1, 0, n)) overlaps("KL(q||p)", arb.a, d.kl_qp);
    else assert_true(d.kl_qp.lo == INFINITY);
    arb_zero(arb.a);
    for (size_t i = 0; i < n; i++) {
        arb_sub(arb.b, arb.p[0][i], arb.p[1][i], BITS);
        arb_abs(arb.b, arb.b);
        arb_add(arb.a, arb.a, arb.b, BITS);
    }
    arb_mul_2exp_si(arb.a, arb.a, -1);
    overlaps("TV", arb.a, d.tv);
    arb_sub_ui(arb.a, arb.a, 1, BITS);
    arb_neg(arb.a, arb.a);
    overlaps("sum min(p, q)", arb.a, d.standard_accept);
}

// The arithmetic level of the first k and the next m by trying every tied set: c = mean of the first a and the last s,
// valid when it separates them from the rest. Equal tokens at the level leave c as it is. All levels into c.
static bool is_level(struct hm_row *row, size_t k, size_t m, size_t a, size_t s)
{
    arb_zero(arb.c);
    for (size_t r = 0; r < k + m; r++)
        if (r < a || r >= k + m - s) arb_add(arb.c, arb.c, arb.p[0][hm_row_token(row, r)], BITS);
    arb_div_ui(arb.c, arb.c, a + s, BITS);
    for (size_t r = 0; r < k + m; r++) {
        arb_srcptr p = arb.p[0][hm_row_token(row, r)];
        bool tied = r < a || r >= k + m - s, accepted = r < k;
        if (tied == accepted ? arb_lt(p, arb.c) : arb_gt(p, arb.c)) return false; // tied A above, other S above
    }
    return true;
}

static void check_level(struct hm_row *row, size_t k, size_t m, const struct hm_claim *claim)
{
    size_t a = 1, s = 1;
    while (a <= k && !is_level(row, k, m, a, s)) {
        if (++s > m) s = 1, a++;
    }
    assert_true(a <= k);
    overlaps("level", arb.c, claim->level.level_f);
    arb_zero(arb.a); // KLf*: sum of p ln(p/c) over the tied set
    arb_t tv;
    arb_init(tv);
    for (size_t r = 0; r < k + m; r++) {
        arb_srcptr p = arb.p[0][hm_row_token(row, r)];
        if (r < a) {
            arb_sub(arb.b, p, arb.c, BITS);
            arb_add(tv, tv, arb.b, BITS);
        }
        if ((r >= a && r < k + m - s) || arb_is_zero(p)) continue;
        arb_div(arb.b, p, arb.c, BITS);
        arb_log(arb.b, arb.b, BITS);
        arb_addmul(arb.a, arb.b, p, BITS);
    }
    overlaps("KLf*", arb.a, claim->level.klf);
    overlaps("TV*", tv, claim->level.tv);
    arb_clear(tv);
}

// k = m = 1: -ln(1 - (sqrt p1 - sqrt p2)^2) and the strict-greedy margins.
static void check_greedy(struct hm_row *row, const struct hm_claim *claim)
{
    arb_srcptr p1 = arb.p[0][hm_row_token(row, 0)], p2 = arb.p[0][hm_row_token(row, 1)];
    arb_sqrt(arb.a, p1, BITS);
    arb_sqrt(arb.b, p2, BITS);
    arb_sub(arb.a, arb.a, arb.b, BITS);
    arb_sqr(arb.a, arb.a, BITS);
    arb_sub_ui(arb.a, arb.a, 1, BITS);
    arb_neg(arb.a, arb.a);
    if (!arb_is_positive(arb.a)) return; // p1 = 1 within 320 bits
    arb_log(arb.a, arb.a, BITS);
    arb_neg(arb.a, arb.a);
    overlaps("KLr*", arb.a, claim->level.klr);
    arb_sub(arb.b, p1, p2, BITS); // y
    overlaps("gap", arb.b, claim->margin.gap);
    arb_sqr(arb.a, arb.b, BITS);
    arb_sub_ui(arb.a, arb.a, 1, BITS);
    arb_neg(arb.a, arb.a);
    arb_log(arb.a, arb.a, BITS);
    arb_mul_2exp_si(arb.a, arb.a, -1);
    arb_neg(arb.a, arb.a);
    overlaps("margin KLr", arb.a, claim->margin.klr);
}

static void overlaps_arb(void **state)
{
    (void)state;
    static const char *const temperatures[] = {"1", "7/10", "1/100", "3"};
    uint64_t seed = test_seed("test_arb");
    size_t rows = test_count(500, 10000, 100000);
    for (size_t n = 0; n < rows; n++) {
        float l[2][MOST];
        size_t vocab = 2 + test_below(&seed, MOST - 1);
        int style = (int)test_below(&seed, 6);
        const char *temperature = temperatures[test_below(&seed, 4)];
        for (int side = 0; side < 2; side++) {
            for (size_t i = 0; i < vocab; i++) l[side][i] = logit(&seed, style, l[side], i);
            if (l[side][0] == -INFINITY) l[side][0] = 1;
        }
        arb_set_str(arb.temperature, strcmp(temperature, "7/10") == 0 ? "7" : strcmp(temperature, "1/100") == 0 ? "1" : temperature, BITS);
        if (strchr(temperature, '/')) arb_div_ui(arb.temperature, arb.temperature, strtoul(strchr(temperature, '/') + 1, NULL, 10), BITS);
        set_row(0, l[0], vocab);
        set_row(1, l[1], vocab);
        struct hm_row *p = open_row(l[0], vocab, temperature), *q = open_row(l[1], vocab, temperature);
        check_figures(p, vocab);
        check_distance(p, q, vocab);
        size_t k = 1 + test_below(&seed, vocab - 1), m = 1 + test_below(&seed, vocab - k);
        char rule[32];
        snprintf(rule, sizeof rule, "topm:%zu", k);
        struct hm_claim claim = make_claim(rule, p, q, m);
        check_level(p, k, m, &claim);
        claim = make_claim("greedy", p, q, 1);
        check_greedy(p, &claim);
        hm_row_close(p);
        hm_row_close(q);
    }
    print_message("%zu rows\n", rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(overlaps_arb)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
