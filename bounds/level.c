// The arithmetic water level: see level.h, theory.md §2 "Evaluation over an enclosure".
//
// Everything is in units of the largest weight (w = p W): the level is C = c W, and C >= 1/(1+m) because the first
// token alone pushes it there. A plain scan guesses the tied set; the enclosure it suggests is then proved by signs.
#include "bounds/level.h"

void hm_level_values_init(struct hm_level_values *v, mpfr_prec_t precision)
{
    struct hm_mpi *all[] = {&v->klf, &v->klr, &v->tv, &v->level_f, &v->level_r};
    for (size_t i = 0; i < 5; i++) hm_mpi_init(all[i], precision);
    v->tied_f[0] = v->tied_f[1] = v->tied_r[0] = v->tied_r[1] = 0;
}

void hm_level_values_clear(struct hm_level_values *v)
{
    struct hm_mpi *all[] = {&v->klf, &v->klr, &v->tv, &v->level_f, &v->level_r};
    for (size_t i = 0; i < 5; i++) hm_mpi_clear(all[i]);
}

// The guess: the first rank r whose weight, taken as the level, leaves the balance non-negative. The root lies between
// it and the rank before, where A's tokens of rank < r are above the level and S's of rank >= r are not. Rounding may
// choose a wrong neighbour; the signs decide.
static size_t scan(const struct hm_level_problem *p)
{
    mpfr_t above, below, balance, term;
    size_t n = p->k + p->m, r = 0;
    mpfr_inits2(p->weights->precision, above, below, balance, term, (mpfr_ptr)0);
    mpfr_set_zero(above, 1); // sum of A's weights of rank < r
    mpfr_set_zero(below, 1); // sum of S's weights of rank >= r
    for (size_t s = p->k; s < n; s++) mpfr_add(below, below, p->weights->low[p->tokens[s]], MPFR_RNDN);
    for (; r + 1 < n; r++) {
        mpfr_srcptr w = p->weights->low[p->tokens[r]];
        size_t a = r < p->k ? r : p->k, s = n - (r < p->k ? p->k : r);
        mpfr_add(balance, above, below, MPFR_RNDN);
        mpfr_mul_ui(term, w, a + s, MPFR_RNDN);
        if (mpfr_greaterequal_p(balance, term)) break;
        if (r < p->k) mpfr_add(above, above, w, MPFR_RNDN);
        else mpfr_sub(below, below, w, MPFR_RNDN);
    }
    mpfr_clears(above, below, balance, term, (mpfr_ptr)0);
    return r;
}

// C as the mean of the guessed tied set, widened so that rounding in the balance cannot hide its sign: the balance
// falls by at least one unit per unit and token, and its relative error is below (n + 16) 2^(4-precision).
static void enclose(const struct hm_level_problem *p, size_t r, struct hm_mpi *level)
{
    size_t n = p->k + p->m, a = r < p->k ? r : p->k, first = r < p->k ? p->k : r;
    struct hm_weight_sum sum;
    hm_weight_sum_init(&sum, p->weights);
    for (size_t i = 0; i < a; i++) hm_weight_sum_add(&sum, p->weights, (size_t)p->tokens[i]);
    for (size_t i = first; i < n; i++) hm_weight_sum_add(&sum, p->weights, (size_t)p->tokens[i]);
    hm_weight_sum_get(&sum, p->weights, level);
    hm_weight_sum_clear(&sum);
    hm_mpi_div_ui(level, level, a + n - first);
    mpfr_t slack;
    mpfr_init2(slack, 64);
    mpfr_set_ui_2exp(slack, n + 16, 6 - p->weights->precision, MPFR_RNDU);
    mpfr_mul(slack, slack, level->hi, MPFR_RNDU);
    mpfr_sub(level->lo, level->lo, slack, MPFR_RNDD);
    mpfr_add(level->hi, level->hi, slack, MPFR_RNDU);
    mpfr_clear(slack);
}

// The balance sum_A (w_a - t)^+ - sum_S (t - w_s)^+ at a point t, bounded from below (RNDD) or from above (RNDU).
// It rises with every weight, so the lower bound takes the lower ends and the upper bound the upper ends.
static void balance(const struct hm_level_problem *p, mpfr_srcptr t, mpfr_rnd_t direction, mpfr_ptr out)
{
    struct hm_mpi weight;
    mpfr_t term;
    hm_mpi_init(&weight, p->weights->precision);
    mpfr_init2(term, p->weights->precision);
    mpfr_set_zero(out, 1);
    for (size_t i = 0; i < p->k + p->m; i++) {
        hm_weight(p->weights, (size_t)p->tokens[i], &weight);
        mpfr_sub(term, direction == MPFR_RNDD ? weight.lo : weight.hi, t, direction);
        bool counts = i < p->k ? mpfr_sgn(term) > 0 : mpfr_sgn(term) < 0;
        if (counts) mpfr_add(out, out, term, direction);
    }
    mpfr_clear(term);
    hm_mpi_clear(&weight);
}

static bool proved(const struct hm_level_problem *p, const struct hm_mpi *level)
{
    mpfr_t at;
    mpfr_init2(at, p->weights->precision);
    balance(p, level->lo, MPFR_RNDD, at);
    bool good = mpfr_sgn(at) >= 0;
    balance(p, level->hi, MPFR_RNDU, at);
    good = good && mpfr_sgn(at) <= 0;
    mpfr_clear(at);
    return good;
}

// Adds f(w, t) = w ln(w/t) - w + t = w (v - ln(1+v)), v = (t-w)/w, at points w and t > 0, rounded in one direction.
static void add_excess(mpfr_ptr sum, mpfr_srcptr w, mpfr_srcptr t, mpfr_rnd_t direction)
{
    mpfr_t v, log;
    mpfr_prec_t precision = mpfr_get_prec(sum);
    if (mpfr_zero_p(w)) { // 0 ln 0 = 0
        mpfr_add(sum, sum, t, direction);
        return;
    }
    mpfr_init2(v, precision);
    mpfr_init2(log, precision);
    // f grows with |v|: away from zero for an upper bound, toward zero for a lower one.
    mpfr_rnd_t outward = direction == MPFR_RNDU ? MPFR_RNDA : MPFR_RNDZ;
    mpfr_sub(v, t, w, outward);
    mpfr_div(v, v, w, outward);
    mpfr_log1p(log, v, direction == MPFR_RNDU ? MPFR_RNDD : MPFR_RNDU);
    mpfr_sub(v, v, log, direction);
    if (mpfr_sgn(v) > 0) { // rounding may push a lower bound below 0, where f never is
        mpfr_mul(v, v, w, direction);
        mpfr_add(sum, sum, v, direction);
    }
    mpfr_clear(v);
    mpfr_clear(log);
}

// KLf* W. Upper end: F at one point of the enclosure, all weights where f is largest. Lower end: A's terms at the
// upper end of the level, S's at its lower end. A token near the level is clipped, never classified.
static void forward_value(const struct hm_level_problem *p, const struct hm_mpi *level, struct hm_mpi *klf)
{
    struct hm_mpi weight;
    hm_mpi_init(&weight, p->weights->precision);
    hm_mpi_set_ui(klf, 0);
    for (size_t i = 0; i < p->k + p->m; i++) {
        hm_weight(p->weights, (size_t)p->tokens[i], &weight);
        if (i < p->k) {
            if (mpfr_greater_p(weight.lo, level->hi)) add_excess(klf->lo, weight.lo, level->hi, MPFR_RNDD);
            if (mpfr_greater_p(weight.hi, level->lo)) add_excess(klf->hi, weight.hi, level->lo, MPFR_RNDU);
        } else {
            if (mpfr_less_p(weight.hi, level->lo)) add_excess(klf->lo, weight.hi, level->lo, MPFR_RNDD);
            if (mpfr_less_p(weight.lo, level->lo)) add_excess(klf->hi, weight.lo, level->lo, MPFR_RNDU);
        }
    }
    hm_mpi_clear(&weight);
}

// TV* W = sum_A (w_a - C)^+, which falls as C rises; and the tokens surely on either side of the level.
static void variation_value(const struct hm_level_problem *p, const struct hm_mpi *level, struct hm_level_values *out)
{
    struct hm_mpi weight;
    mpfr_t term;
    hm_mpi_init(&weight, p->weights->precision);
    mpfr_init2(term, p->weights->precision);
    hm_mpi_set_ui(&out->tv, 0);
    out->tied_f[0] = out->tied_f[1] = 0;
    for (size_t i = 0; i < p->k + p->m; i++) {
        hm_weight(p->weights, (size_t)p->tokens[i], &weight);
        if (i >= p->k) {
            out->tied_f[1] += mpfr_less_p(weight.hi, level->lo) != 0;
            continue;
        }
        out->tied_f[0] += mpfr_greater_p(weight.lo, level->hi) != 0;
        mpfr_sub(term, weight.lo, level->hi, MPFR_RNDD);
        if (mpfr_sgn(term) > 0) mpfr_add(out->tv.lo, out->tv.lo, term, MPFR_RNDD);
        mpfr_sub(term, weight.hi, level->lo, MPFR_RNDU);
        if (mpfr_sgn(term) > 0) mpfr_add(out->tv.hi, out->tv.hi, term, MPFR_RNDU);
    }
    mpfr_clear(term);
    hm_mpi_clear(&weight);
}

bool hm_level_forward(const struct hm_level_problem *p, struct hm_level_values *out)
{
    const float *logits = p->weights->logits;
    if (logits[p->tokens[p->k + p->m - 1]] == p->top) { // all tied: p itself fails weakly
        hm_mpi_set_ui(&out->klf, 0);
        hm_mpi_set_ui(&out->tv, 0);
        out->tied_f[0] = out->tied_f[1] = 0;
        hm_mpi_set_ui(&out->level_f, 1);
        hm_mpi_div(&out->level_f, &out->level_f, p->total);
        return true;
    }
    struct hm_mpi level;
    hm_mpi_init(&level, p->weights->precision);
    enclose(p, scan(p), &level);
    bool good = proved(p, &level);
    if (good) {
        forward_value(p, &level, &out->klf);
        variation_value(p, &level, out);
        hm_mpi_div(&out->klf, &out->klf, p->total);
        hm_mpi_div(&out->tv, &out->tv, p->total);
        hm_mpi_clip_high(&out->tv, 1);
        hm_mpi_div(&out->level_f, &level, p->total);
    }
    hm_mpi_clear(&level);
    return good;
}
