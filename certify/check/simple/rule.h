// Acceptance rules: their names, membership in A(p), and the radius of a decision (theory.md §1, §6, §8). A rule is a
// count, or a slack that is >= 0 for accepted tokens, or both. A slack is exact where it is 0, so that no tie stays
// open. The radius is proved by the same slack on a disturbed row: noise of that size turns against the decision, but
// the slack has its sign at the lower end of the enclosure, and the other one at the upper.
#include "row.h"

static bool empty(const struct ask *a) { return a->at >= a->p->finite; } // probability 0
static bool is_disturbed(const struct ask *a) { return a->p == &run->row[NOISY]; }
static size_t place_of(const struct ask *a, size_t at) { return a->p->order[at]; }

static real is_near(const struct ask *a) { // p - p_rival + eps
    const struct row *p = a->p;
    mpq_srcptr eps = a->rule->a;
    size_t x = place_of(a, a->at), y = place_of(a, a->rival);
    if (mpq_sgn(eps) == 0) return gap(p, x, y);
    if (empty(a) && flat(p)) return r_number(compare(p->finite, eps, 1, run->one));
    if (!is_disturbed(a) && p->logit[x] == p->logit[y]) return r_rational(eps);
    return r_add(r_sub(&p->p[x], &p->p[y]), r_rational(eps));
}

static real is_likely(const struct ask *a) { // ln p - ln p_rival - ln alpha
    real z = r_mul(gap(a->p, place_of(a, a->at), place_of(a, a->rival)), r_rational(a->p->inverse));
    return r_sub(z, r_log(r_rational(a->rule->a)));
}

static real is_above(const struct ask *a) { // p - t
    mpq_srcptr t = a->rule->a;
    if (!empty(a) && flat(a->p)) return r_number(-compare(a->p->finite, t, 1, run->one));
    if (mpq_cmp_ui(t, 1, 1) >= 0) return r_number(-1);
    return r_sub(&a->p->p[place_of(a, a->at)], r_rational(t));
}

static real is_bearable(const struct ask *a) { // ln p + r
    if (mpq_sgn(a->rule->a) == 0) return r_number(a->p->finite == 1 && !empty(a) ? 0 : -1);
    return r_add(log_p(a->p, place_of(a, a->at)), r_rational(a->rule->a));
}

TERM(before) { // the mass that comes before the token: for certain, or as far as noise can bring it there
    bool is = is_disturbed(a) ? a->p->shift[i] == (a->at < a->k ? 1 : -1) : j < a->at;
    return is ? &a->p->p[i] : r_number(0);
}

static real is_needed(const struct ask *a) { // P less the mass before the token, which must be > 0
    mpq_srcptr share = a->rule->a;
    size_t finite = a->p->finite;
    if (empty(a) || mpq_cmp_ui(share, 1, 1) == 0) return r_number(empty(a) ? -1 : 1);
    if (!is_disturbed(a) && flat(a->p)) return r_number(compare(finite, share, a->at, run->one) > 0 ? 1 : -1);
    return r_sub(r_rational(share), sum_of(before, a, 0, finite));
}

// How far the delta branch of entropy is from holding: a sum over the row of x = e^d (v + d), d being noise. Everywhere
// in the box of noise s it holds where the sum of their maxima is <= 0, and fails (flag) where that of the minima is
// > 0. theory.md §6.
TERM(extremal) {
    real s = a->x, one = r_number(1), lead = r_mul(gap(a->whole, i, place_of(a, a->at)), r_rational(a->p->inverse));
    real v = r_add(r_add(lead, a->z), a->flag ? r_negative(s) : s);
    real high = r_mul(a->up, r_add(v, s)), low = r_mul(a->down, r_sub(v, s)), x = r_max(high, low);
    if (j == a->at) x = (a->flag ? r_min : r_max)(r_mul(a->up, a->z), r_mul(a->down, a->z));
    else if (a->flag) { // which form the minimum has depends on v, or on where v may be
        real above = r_sub(v, r_sub(s, one)), below = r_add(v, r_add(s, one));
        x = mpfr_sgn(above->lo) >= 0 ? low : mpfr_sgn(below->hi) <= 0 ? high : NULL;
        if (!x) x = r_hull(r_hull(low, r_min(high, low)), r_negative(r_exp(r_negative(r_add(one, v)))));
    }
    return r_mul(&a->whole->p[i], x);
}

static real is_typical(const struct ask *ask) { // either branch
    struct ask a = *ask;
    real eps = is_above(&a);
    if (mpq_sgn(a.rule->b) == 0) return r_number(INFINITY);
    if (empty(&a)) return eps;
    a.flag = is_disturbed(&a) && a.at >= a.k;
    a.x = r_mul(r_number(a.p->noise), r_rational(a.p->inverse));
    a.z = r_log(r_rational(a.rule->b));
    a.up = r_exp(a.x);
    a.down = r_exp(r_negative(a.x));
    return r_max(eps, r_negative(sum_of(extremal, &a, 0, a.p->finite)));
}

static const struct rule_kind kinds[] = {
    // name, counts, rationals, range of the first one (x >= 0; 0 <= x < 1; 0 < x <= 1), slack, universal bound
    {"greedy", 0, 0, '+', NULL, 0},
    {"topm", 1, 0, '+', NULL, 0},
    {"additive", 0, 1, '<', is_near, 'a'},
    {"topk-delta", 1, 1, '<', is_near, 0},
    {"multiplicative", 0, 1, '(', is_likely, 'm'},
    {"topk-ratio", 1, 1, '(', is_likely, 0},
    {"entropy", 0, 2, '+', is_typical, 'e'},
    {"nucleus", 0, 1, '(', is_needed, 0},
    {"absolute", 0, 1, '(', is_above, 't'},
    {"regret", 0, 1, '+', is_bearable, 'r'},
    {0},
};

static mpq_ptr rational(const char *text, const char *field) { // which lasts as long as the run
    need(run->rational_count < RATIONALS, field);
    mpq_ptr q = run->rationals[run->rational_count];
    mpq_init(q);
    run->rational_count++;
    need(like(text, "^[0-9]{1,40}(/[0-9]{1,40})?$") && mpq_set_str(q, text, 10) == 0, field);
    need(mpz_sgn(mpq_denref(q)) != 0, field);
    mpq_canonicalize(q);
    return q;
}

static void read_rule(struct rule *r, const char *text, const char *field) { // "name", or "name:parameter,parameter"
    char copy[sizeof r->text];
    need(strlen(text) < sizeof copy, field);
    strcpy(r->text, text);
    strcpy(copy, text);
    char *rest = copy, *name = strsep(&rest, ":");
    for (r->kind = kinds; r->kind->name && strcmp(r->kind->name, name) != 0;) r->kind++;
    need(r->kind->name != NULL, field);
    mpq_ptr given[3] = {run->one, run->zero, run->zero}; // a count first, if the rule has one
    for (int i = !r->kind->counts; i < 1 + r->kind->rationals; i++) {
        need(rest != NULL, field);
        given[i] = rational(strsep(&rest, ",:"), field);
    }
    need(rest == NULL && mpz_cmp_ui(mpq_denref(given[0]), 1) == 0, field);
    need(mpq_sgn(given[0]) > 0 && mpq_cmp_ui(given[0], 1UL << 53, 1) < 0, field);
    r->count = r->kind->counts || r->kind == kinds ? mpz_get_ui(mpq_numref(given[0])) : SIZE_MAX;
    r->a = given[1];
    r->b = given[2];
    need(r->kind->range == '+' || mpq_cmp_ui(r->a, 1, 1) < (r->kind->range == '('), field);
    need(r->kind->range != '(' || mpq_sgn(r->a) > 0, field);
}

static enum answer member(struct ask a) { // is the token at place a.at accepted?
    a.whole = a.p;
    if (a.at >= a.p->count || a.at >= a.rule->count) return NO;
    return a.rule->kind->slack ? decide(a.rule->kind->slack, &a) : YES;
}

static int side(double upper, double lower, double distance) { // the sign of upper - lower - distance
    size_t used = run->used;
    run->precision = EXACT;
    int sign = mpfr_sgn(r_sub(r_sub(r_number(upper), r_number(lower)), r_number(distance))->lo);
    run->used = used;
    return sign;
}

// Disturbs the row against the decision: the token goes one way, the others the other, but for what theory.md §6 says
// of additive (its rival alone gains; or none passes the first) and of nucleus (only those gain, or lose, that are
// before the token thereby). Just past the noise those on its edge change sides.
static void disturb(const struct ask *a, double noise, bool past) {
    struct row *r = &run->row[NOISY];
    const struct row *p = a->p;
    quantity *slack = a->rule->kind->slack;
    bool in = a->at < a->k;
    float first = p->logit[p->order[0]], x = p->logit[p->order[a->at]];
    *r = (struct row){r->logit,  r->shift,   noise, p->order, p->rank, p->count,
                      p->finite, p->inverse, r->p,  r->limbs, 0,       true};
    for (size_t j = 0; j < p->count; j++) {
        size_t i = p->order[j];
        float l = p->logit[i];
        bool up = in;
        if (j == a->at) up = !in;
        else if (slack == is_near && in) up = j == a->rival;
        else if (slack == is_near) {
            up = side(first, l, 2 * noise) > 0;
            l = up ? l : first;
        } else if (slack == is_needed) {
            int order = side(l, x, in ? -2 * noise : 2 * noise);
            bool ahead = order > 0 || (order == 0 && in == past);
            up = ahead == in;
            l = up && !in && l > x ? x : l;
        }
        r->logit[i] = l;
        r->shift[i] = up ? 1 : -1;
    }
}

static real unchanged(const struct ask *a) { // >= 0 while noise leaves the decision as it is; flag: turned
    size_t count = a->rule->count;
    bool in = a->at < a->k, fixed = in ? count >= a->p->finite : empty(a);
    real lead = r_number(INFINITY), slack = a->rule->kind->slack ? a->rule->kind->slack(a) : lead;
    if (!in && a->at < count) lead = r_number(-INFINITY);
    else if (!fixed) { // what stands between the token and the last place that is accepted, or the first that is not
        lead = gap(a->whole, place_of(a, in ? a->at : count - 1), place_of(a, in ? count : a->at));
        lead = r_sub(lead, r_number(2 * a->p->noise));
    }
    real x = in ? r_min(lead, slack) : r_max(lead, r_negative(slack));
    return a->flag ? r_negative(x) : x;
}

static enum answer is_unchanged(struct ask a, double noise, bool turned) {
    disturb(&a, noise, turned);
    a.flag = turned;
    a.whole = a.p;
    a.p = &run->row[NOISY];
    enum answer answer = decide(unchanged, &a);
    run->row[NOISY].here = false;
    return answer;
}

static void check_radius(const cJSON *claim, struct ask a, bool rows) { // of the decision about the token at place a.at
    const struct rule_kind *kind = a.rule->kind;
    bool in = a.at < a.k, both = kind->counts && kind->rationals;
    bool open = both && !rows && isinf(number(get(claim, "radius", cJSON_Array)->child->next, "radius"));
    bool bound = open || kind->slack == is_typical || (rows && !in && both);
    struct ends e = enclosure(claim, "radius", bound ? BOUND : NARROW);
    must(e.lo >= 0, "radius");
    if (!rows) return;
    a.rival = a.at == 0 && a.p->count > 1 ? 1 : 0;
    enum answer low = e.lo > 0 ? is_unchanged(a, fmin(e.lo, 0x1p300), false) : YES; // beyond that nothing moves
    enum answer high = isinf(e.hi) ? YES : is_unchanged(a, e.hi, true);
    settle(low, "radius");
    settle(high, "radius");
}
