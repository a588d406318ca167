// Evidence prepared for questions: see evidence.h and docs/evidence.md "Evidence for a row".
//
// Opening makes a box (known_state.h) that contains every row that fits: values as printed, narrowed by the sum of all
// probabilities being 1, and what that leaves for the unseen. At T != 1 the unseen weights are bounded by known_tail.c.
#include "evidence/known_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

static const struct hm_ival zero = {0, 0}, one = {1, 1}, open_end = {0, INFINITY};

double hm_known_number(size_t n)
{
    if (n == SIZE_MAX) return INFINITY;
    return n < (size_t)1 << 53 ? (double)n : 0x1p64;
}

size_t hm_known_size(double n, size_t most)
{
    if (!(n < 0x1p53)) return most;
    size_t size = n > 0 ? (size_t)n : 0;
    return size < most ? size : most;
}

bool hm_known_sentinel(const struct hm_evidence *evidence, size_t entry)
{
    const struct hm_ival v = evidence->entry[entry].value;
    return evidence->unit == HM_UNIT_LOG_PROBABILITY && v.lo > -9999.5 && v.lo <= -9999 && v.hi >= -9999 && v.hi < -9998.5;
}

// ---- Opening

static hm_status check(const struct hm_evidence *e, struct hm_error *err)
{
    if (e->count == 0) return hm_fail(err, HM_RANGE, "row: expected entries, found none");
    if (e->ranked > e->count)
        return hm_fail(err, HM_RANGE, "row: expected at most %zu ranked entries, found %zu", e->count, e->ranked);
    if (e->vocab > 0 && e->count > e->vocab)
        return hm_fail(err, HM_RANGE, "row: expected at most %zu entries, found %zu", e->vocab, e->count);
    bool some = false;
    for (size_t i = 0; i < e->count; i++) {
        const struct hm_ival v = e->entry[i].value;
        if (!(v.lo <= v.hi) || v.hi == INFINITY)
            return hm_fail(err, HM_RANGE, "entry %zu: expected a number or -inf, found [%g, %g]", i, v.lo, v.hi);
        if (e->unit == HM_UNIT_LOG_PROBABILITY && v.lo > e->shift)
            return hm_fail(err, HM_RANGE, "entry %zu: expected a log-probability, found at least %.17g", i, v.lo);
        some = some || v.hi > -INFINITY;
    }
    return some ? HM_OK : hm_fail(err, HM_RANGE, "row: expected a finite value, found only -inf");
}

// Values, and the most that an unseen token may have: the least of the ranked. How many there are.
static void place(struct hm_known *known)
{
    const struct hm_evidence *e = known->evidence;
    bool probabilities = e->unit == HM_UNIT_LOG_PROBABILITY;
    double cap = probabilities ? e->shift : INFINITY;
    size_t sure = 0;
    known->whole = e->shift > 0 ? hm_ival_exp((struct hm_ival){-e->shift, e->shift}) : one;
    for (size_t i = 0; i < e->ranked; i++)
        if (!hm_known_sentinel(e, i) && e->entry[i].value.hi < cap) cap = e->entry[i].value.hi;
    for (size_t i = 0; i < e->count; i++) {
        struct hm_ival v = e->entry[i].value;
        if (hm_known_sentinel(e, i)) v = (struct hm_ival){-INFINITY, cap};
        if (probabilities && v.hi > e->shift) v.hi = fmax(v.lo, e->shift); // above 0 for sure is a finding, not a row that opens
        known->token[i].value = v;
        sure += v.lo > -INFINITY;
    }
    known->unseen = known->positive = e->vocab > 0 ? e->vocab - e->count : SIZE_MAX;
    if (e->support > 0) {
        size_t left = e->support > sure ? e->support - sure : 0;
        if (left < known->positive) known->positive = left;
    }
    if (cap == -INFINITY) known->positive = 0;
    if (known->positive == 0) cap = -INFINITY;
    known->each.value = (struct hm_ival){-INFINITY, cap};
    known->largest = -INFINITY;
}

// Sums of one end each, rounded outward; `first` is left out of the second.
struct sums {
    struct hm_ival all, but_first;
};

static struct sums add_up(const struct hm_known *known)
{
    struct hm_ival sum = zero;
    for (size_t i = 0; i < known->count; i++)
        if (i != known->first) sum = hm_ival_add(sum, known->token[i].weight);
    return (struct sums){hm_ival_add(sum, known->token[known->first].weight), sum};
}

// Upper bound of n times an unseen token's weight.
static double at_most(const struct hm_known *known, double weight)
{
    if (known->positive == 0 || weight == 0) return 0;
    return hm_ival_mul(hm_ival_point(hm_known_number(known->positive)), hm_ival_point(weight)).hi;
}

static struct hm_ival without(const struct hm_known *known, const struct sums *sums, size_t i)
{
    if (i == known->first) return sums->but_first;
    const struct hm_ival w = known->token[i].weight, first = known->token[known->first].weight;
    double lo = hm_ival_sub(hm_ival_point(sums->but_first.lo), hm_ival_point(w.lo)).lo;
    double hi = hm_ival_sub(hm_ival_point(sums->but_first.hi), hm_ival_point(w.hi)).hi;
    return hm_ival_add((struct hm_ival){lo > 0 ? lo : 0, hi > 0 ? hi : 0}, first);
}

// Each probability is 1 less all others. Those others are known better than it where it is printed coarsely: where its own
// width exceeds what the sum of the upper ends, or of the lower, leaves to 1.
static void narrow(struct hm_known *known, double unseen_most)
{
    if (known->whole.lo != 1 || known->whole.hi != 1) return; // no exact sum to narrow by
    struct sums sums = add_up(known);
    double slack = fmin(sums.all.hi + unseen_most - 1, 1 - sums.all.lo) * (1 - 0x1p-20);
    for (size_t i = 0; i < known->count; i++) {
        struct hm_known_token *t = &known->token[i];
        if (t->weight.hi - t->weight.lo < slack) continue;
        struct hm_ival others = without(known, &sums, i);
        bool changed = false;
        struct hm_ival least = hm_ival_sub(one, hm_ival_add(hm_ival_point(others.hi), hm_ival_point(unseen_most)));
        struct hm_ival most = hm_ival_sub(one, hm_ival_point(others.lo));
        if (least.lo > t->weight.lo) {
            double spare = hm_ival_add(hm_ival_point(others.hi), hm_ival_point(unseen_most)).hi;
            double lo = hm_ival_log1p(hm_ival_point(-spare)).lo;
            if (lo > t->value.lo && lo <= t->value.hi) t->value.lo = lo, changed = true;
        }
        if (most.hi < t->weight.hi && others.lo < 1) {
            double hi = hm_ival_log1p(hm_ival_point(-others.lo)).hi;
            if (hi < t->value.hi && hi >= t->value.lo) t->value.hi = hi, changed = true;
        }
        if (changed) t->weight = hm_ival_exp(t->value);
    }
}

// Weights at T = 1, and what the unseen may add to them.
static struct hm_known_mass mass_of(struct hm_known *known)
{
    for (size_t i = 0; i < known->count; i++) known->token[i].weight = hm_ival_exp(known->token[i].value);
    double each = hm_ival_exp(hm_ival_point(known->each.value.hi)).hi;
    return (struct hm_known_mass){add_up(known).all, known->whole, at_most(known, each)};
}

bool hm_known_mass(const struct hm_evidence *evidence, struct hm_known_mass *out)
{
    struct hm_known known = {.evidence = evidence, .count = evidence->count};
    known.token = hm_calloc(known.count, sizeof *known.token);
    if (!known.token) return false;
    place(&known);
    *out = mass_of(&known);
    free(known.token);
    return true;
}

// What log-probabilities say of the unseen, at T = 1: their mass r, and with it bounds of each of them.
static hm_status balance(struct hm_known *known, struct hm_ival *r, struct hm_error *err)
{
    struct hm_known_mass mass = mass_of(known);
    if (mass.seen.lo > mass.whole.hi)
        return hm_fail(err, HM_RANGE, "row: expected a mass of at most %.9g, found at least %.17g", mass.whole.hi, mass.seen.lo);
    if (hm_ival_add(hm_ival_point(mass.seen.hi), hm_ival_point(mass.unseen)).hi < mass.whole.lo)
        return hm_fail(err, HM_RANGE, "row: expected a mass of %.9g, found at most %.17g, and %.17g for unseen tokens",
                       mass.whole.lo, mass.seen.hi, mass.unseen);
    narrow(known, mass.unseen);
    *r = hm_ival_sub(known->whole, add_up(known).all);
    *r = (struct hm_ival){fmax(r->lo, 0), fmax(fmin(r->hi, mass.unseen), 0)};
    if (r->lo > r->hi) r->lo = r->hi; // the two differ by rounding only
    if (known->positive == 0) return HM_OK;
    struct hm_ival n = hm_ival_point(hm_known_number(known->positive)), each = hm_ival_exp(hm_ival_point(known->each.value.hi));
    known->each.value.hi = fmin(known->each.value.hi, hm_ival_log(hm_ival_point(r->hi)).hi);
    if (r->lo == 0 || n.hi == INFINITY) return HM_OK;
    known->largest = fmin(hm_ival_log(hm_ival_div(hm_ival_point(r->lo), n)).lo, known->each.value.hi);
    if (known->unseen != known->positive) return HM_OK; // some may have no probability at all
    struct hm_ival others = hm_ival_mul(hm_ival_sub(n, one), hm_ival_point(each.hi));
    double left = hm_ival_sub(hm_ival_point(r->lo), others).lo;
    if (left > 0) known->each.value.lo = fmin(hm_ival_log(hm_ival_point(left)).lo, known->each.value.hi);
    return HM_OK;
}

struct hm_ival hm_known_log(const struct hm_known *known, struct hm_ival value)
{
    if (known->unit) return value;
    const struct hm_ival from = hm_ival_point(known->reference);
    double lo = value.lo, hi = value.hi; // infinite ends stay, and a difference of 0 is 0 at every temperature
    if (isfinite(lo) && lo != known->reference)
        lo = hm_ival_mul(hm_ival_sub(hm_ival_point(lo), from), known->inverse).lo;
    else if (isfinite(lo)) lo = 0;
    if (isfinite(hi) && hi != known->reference)
        hi = hm_ival_mul(hm_ival_sub(hm_ival_point(hi), from), known->inverse).hi;
    else if (isfinite(hi)) hi = 0;
    return (struct hm_ival){lo, hi};
}

static void weigh(struct hm_known *known, struct hm_known_token *t)
{
    t->log = hm_known_log(known, t->value);
    t->weight = hm_ival_exp(t->log);
}

// Log-probabilities at T = 1, whose sum is known up to a shift of the row?
static bool at_one(const struct hm_known *known)
{
    return known->evidence->unit == HM_UNIT_LOG_PROBABILITY && mpq_cmp_ui(known->temperature.value, 1, 1) == 0 && !known->unit;
}

static void bound_total(struct hm_known *known)
{
    struct hm_ival whole = hm_ival_mul(known->whole, hm_ival_exp(hm_ival_point(-known->reference)));
    double lo = fmax(known->total.lo, whole.lo), hi = fmin(known->total.hi, whole.hi);
    if (lo <= hi) known->total = (struct hm_ival){lo, hi}; // else they differ by rounding only
}

// Weights at the temperature and their sums.
static void weigh_all(struct hm_known *known, struct hm_ival r)
{
    double cap = known->each.value.hi;
    known->reference = known->unit ? 0 : fmax(known->token[known->first].value.hi, cap < INFINITY ? cap : -INFINITY);
    for (size_t i = 0; i < known->count; i++) {
        if (known->unit) known->token[i].log = known->token[i].value; // weighed already
        else weigh(known, &known->token[i]);
    }
    weigh(known, &known->each);
    struct sums sums = add_up(known);
    known->others = sums.but_first;
    if (known->positive == 0) known->rest = zero;
    else if (known->unit) known->rest = r;
    else if (at_one(known)) known->rest = hm_ival_mul(r, hm_ival_exp(hm_ival_point(-known->reference)));
    else if (known->evidence->unit == HM_UNIT_LOG_PROBABILITY) known->rest = hm_tail_power(known, r, cap);
    else known->rest = (struct hm_ival){0, at_most(known, known->each.weight.hi)};
    known->total = known->unit ? one : hm_ival_add(sums.all, known->rest);
    if (at_one(known)) bound_total(known);
    known->moment = hm_tail_moment(known);
    for (size_t i = 0; i < known->count; i++) known->moment = hm_ival_add(known->moment, hm_tail_term(&known->token[i]));
}

static hm_status fill(struct hm_known *known, struct hm_error *err)
{
    struct hm_ival r = zero;
    place(known);
    for (size_t i = 1; i < known->count; i++)
        if (known->token[i].value.hi > known->token[known->first].value.hi) known->first = i;
    if (known->evidence->unit == HM_UNIT_LOG_PROBABILITY) {
        hm_status status = balance(known, &r, err);
        if (status) return status;
    }
    weigh_all(known, r);
    return hm_known_sort(known) ? HM_OK : hm_fail(err, HM_MEMORY, "a row of evidence: out of memory");
}

hm_status hm_known_open(const struct hm_evidence *evidence, const struct hm_rational *temperature, struct hm_known **out,
                        struct hm_error *err)
{
    *out = NULL;
    if (hm_rational_sign(temperature) <= 0) return hm_fail(err, HM_RANGE, "temperature: expected a number above 0");
    struct hm_known *known = hm_calloc(1, sizeof *known);
    if (!known) return hm_fail(err, HM_MEMORY, "a row of evidence: out of memory");
    hm_status status = HM_OK;
    known->evidence = evidence;
    hm_rational_init(&known->temperature);
    hm_rational_set(&known->temperature, temperature);
    if (evidence->logits) {
        status = hm_row_open(evidence->logits, evidence->vocab, temperature, &known->row, err);
    } else if ((status = check(evidence, err)) == HM_OK) {
        known->count = evidence->count;
        known->inverse = hm_ival_div(one, hm_ival_rational(temperature->value));
        known->unit = evidence->unit == HM_UNIT_LOG_PROBABILITY && mpq_cmp_ui(temperature->value, 1, 1) == 0 &&
                      evidence->shift == 0;
        known->token = hm_calloc(known->count, sizeof *known->token);
        known->high = hm_calloc(known->count, sizeof *known->high);
        known->low = hm_calloc(known->count, sizeof *known->low);
        if (!known->token || !known->high || !known->low) status = hm_fail(err, HM_MEMORY, "a row of evidence: out of memory");
        else status = fill(known, err);
    }
    if (status) hm_known_close(known);
    else *out = known;
    return status;
}

void hm_known_close(struct hm_known *known)
{
    if (!known) return;
    hm_row_close(known->row);
    hm_rational_clear(&known->temperature);
    free(known->token);
    free(known->high);
    free(known->low);
    free(known);
}

// ---- Figures of one token, and of all

bool hm_known_token(const struct hm_known *known, size_t entry, struct hm_known_token *out)
{
    if (entry == HM_UNSEEN) *out = known->each;
    else if (entry < known->count) *out = known->token[entry];
    return entry < known->count || (entry == HM_UNSEEN && known->unseen > 0);
}

struct hm_ival hm_known_others(const struct hm_known *known, size_t entry, const struct hm_known_token *token)
{
    struct sums sums = {zero, known->others};
    if (entry != HM_UNSEEN) return hm_ival_add(without(known, &sums, entry), known->rest);
    const struct hm_ival u = token->weight, listed = hm_ival_add(known->others, known->token[known->first].weight);
    double lo = hm_ival_sub(hm_ival_point(known->rest.lo), hm_ival_point(u.hi)).lo;
    double hi = known->rest.hi == INFINITY ? INFINITY : hm_ival_sub(hm_ival_point(known->rest.hi), hm_ival_point(u.lo)).hi;
    return hm_ival_add(listed, (struct hm_ival){lo > 0 ? lo : 0, hi > 0 ? hi : 0});
}

struct hm_ival hm_known_share(struct hm_ival a, struct hm_ival b)
{
    struct hm_ival out = zero;
    if (a.lo > 0) out.lo = hm_ival_div(hm_ival_point(a.lo), hm_ival_add(hm_ival_point(a.lo), hm_ival_point(b.hi))).lo;
    if (a.hi == INFINITY || (a.hi > 0 && b.lo == 0)) out.hi = 1;
    else if (a.hi > 0) out.hi = hm_ival_div(hm_ival_point(a.hi), hm_ival_add(hm_ival_point(a.hi), hm_ival_point(b.lo))).hi;
    return (struct hm_ival){fmax(out.lo, 0), fmin(out.hi, 1)};
}

struct hm_ival hm_known_seen(const struct hm_known *known)
{
    if (known->row) return one;
    struct hm_ival listed = hm_ival_add(known->others, known->token[known->first].weight);
    struct hm_ival share = hm_known_share(listed, known->rest);
    if (!known->unit) return share;
    return (struct hm_ival){fmax(share.lo, listed.lo), fmin(share.hi, listed.hi)};
}

struct hm_ival hm_known_unseen(const struct hm_known *known)
{
    if (known->row) return zero;
    if (known->unit) return known->rest;
    return hm_known_share(known->rest, hm_ival_add(known->others, known->token[known->first].weight));
}

static struct hm_ival probability(const struct hm_known *known, size_t entry, const struct hm_known_token *t)
{
    struct hm_ival share = hm_known_share(t->weight, hm_known_others(known, entry, t));
    if (!known->unit) return share;
    return (struct hm_ival){fmax(share.lo, t->weight.lo), fmin(share.hi, t->weight.hi)};
}

double hm_known_unseen_most(const struct hm_known *known)
{
    if (known->row || known->positive == 0) return 0;
    return fmin(probability(known, HM_UNSEEN, &known->each).hi, hm_known_unseen(known).hi);
}

struct hm_ival hm_known_probability(const struct hm_known *known, size_t entry)
{
    struct hm_known_token t;
    if (known->row) return hm_exact_probability(known, entry);
    if (!hm_known_token(known, entry, &t)) return (struct hm_ival){0, 1};
    return probability(known, entry, &t);
}

struct hm_ival hm_known_entropy(const struct hm_known *known)
{
    if (known->row) return hm_exact_entropy(known);
    struct hm_ival out = hm_ival_div(known->moment, known->total);
    if (!known->unit) out = hm_ival_add(out, hm_ival_log(known->total));
    double tokens = (double)known->count + hm_known_number(known->positive);
    if (tokens < INFINITY) out.hi = fmin(out.hi, hm_ival_log(hm_ival_point(tokens)).hi);
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

struct hm_ival hm_known_surprise(const struct hm_known *known, size_t entry)
{
    struct hm_known_token t;
    if (known->row) return hm_exact_surprise(known, entry);
    if (!hm_known_token(known, entry, &t)) return open_end;
    // ln(1 + others/x) keeps its digits where x is nearly sure, -ln x + ln total where x is tiny.
    struct hm_ival others = hm_known_others(known, entry, &t), out = hm_ival_neg(t.log);
    if (!known->unit) out = hm_ival_add(out, hm_ival_log(known->total));
    if (t.log.hi == -INFINITY) return hm_ival_point(INFINITY);
    struct hm_ival least = hm_ival_div(hm_ival_point(others.lo), hm_ival_point(t.weight.hi));
    struct hm_ival most = hm_ival_div(hm_ival_point(others.hi), hm_ival_point(t.weight.lo));
    if (t.weight.hi > 0) out.lo = fmax(out.lo, hm_ival_log1p(least).lo);
    if (t.weight.lo > 0) out.hi = fmin(out.hi, hm_ival_log1p(most).hi);
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

struct hm_ival hm_known_regret(const struct hm_known *known, size_t entry)
{
    struct hm_known_token t;
    if (known->row) return hm_exact_regret(known, entry);
    if (!hm_known_token(known, entry, &t)) return open_end;
    struct hm_ival best = hm_known_ranked_but(known, entry, &t, 0), out = zero; // its own regret is 0 if it is the first
    if (t.value.hi == -INFINITY) return hm_ival_point(INFINITY);
    if (best.lo > t.value.hi)
        out.lo = hm_ival_mul(hm_ival_sub(hm_ival_point(best.lo), hm_ival_point(t.value.hi)), known->inverse).lo;
    if (t.value.lo == -INFINITY) out.hi = INFINITY;
    else if (best.hi > t.value.lo)
        out.hi = hm_ival_mul(hm_ival_sub(hm_ival_point(best.hi), hm_ival_point(t.value.lo)), known->inverse).hi;
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}
