// How two rows at one context differ: docs/evidence.md "Two rows".
//
// f(p, q) = p ln(p/q) - p + q >= 0 is convex and 0 only at p = q, and KL is its sum over tokens, or at least its sum over
// groups of tokens. So each group adds at least f at the nearest points of its two enclosures, and never less than 0.
#include "evidence/known_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "evidence/match.h"

#include <math.h>
#include <stdlib.h>

static const struct hm_ival zero = {0, 0}, open_end = {0, INFINITY};

// ---- Matching

struct match {
    size_t *q_of;     // [p's count]: the entry of q, HM_UNSEEN where none was matched
    bool *q_matched;  // [q's count]
    bool by_id;       // every entry of both has an id: what is not matched is not listed
};

static void pair_up(void *user, const struct hm_shared_token *token)
{
    struct match *m = user;
    if (m->q_of[token->a_entry] != HM_UNSEEN || m->q_matched[token->b_entry]) return; // by id, before texts were looked at
    m->q_of[token->a_entry] = token->b_entry;
    m->q_matched[token->b_entry] = true;
}

static bool match(const struct hm_evidence *p, const struct hm_evidence *q, struct match *out)
{
    *out = (struct match){hm_calloc(p->count, sizeof *out->q_of), hm_calloc(q->count, sizeof *out->q_matched), true};
    if (!out->q_of || !out->q_matched) return false;
    for (size_t i = 0; i < p->count; i++) {
        out->q_of[i] = HM_UNSEEN;
        out->by_id = out->by_id && p->entry[i].id >= 0;
    }
    for (size_t i = 0; i < q->count; i++) out->by_id = out->by_id && q->entry[i].id >= 0;
    return hm_evidence_match(p, q, pair_up, out, NULL) == HM_OK;
}

// ---- Figures

static struct hm_ival f_at(double p, double q)
{
    if (p == 0) return hm_ival_point(q);
    if (q == 0) return hm_ival_point(INFINITY);
    struct hm_ival a = hm_ival_point(p), v = hm_ival_div(hm_ival_sub(hm_ival_point(q), a), a);
    if (v.hi < INFINITY) return hm_ival_mul(a, hm_ival_log_excess(v));
    struct hm_ival log = hm_ival_sub(hm_ival_log(a), hm_ival_log(hm_ival_point(q)));
    return hm_ival_add(hm_ival_sub(hm_ival_mul(a, log), a), hm_ival_point(q));
}

// f over a box: least at the nearest points, largest in one of the two corners that lie farthest apart.
static struct hm_ival f_over(struct hm_ival p, struct hm_ival q)
{
    struct hm_ival out = {0, 0}, high = f_at(p.hi, q.lo), low = f_at(p.lo, q.hi);
    if (p.lo > q.hi) out.lo = f_at(p.lo, q.hi).lo;
    else if (p.hi < q.lo) out.lo = f_at(p.hi, q.lo).lo;
    out.hi = fmax(high.hi, low.hi);
    return (struct hm_ival){fmax(out.lo, 0), out.hi};
}

static struct hm_ival swap_f(struct hm_ival p, struct hm_ival q)
{
    return f_over(q, p);
}

// Sums over the tokens of both rows, over those of one only, and what is left of the two.
struct sums {
    struct hm_ival p, q;             // masses of the shared tokens
    struct hm_ival p_only, q_only;   // of the others listed
    struct hm_ival p_above, q_above; // sums of (p - q)^+ and (q - p)^+ over the shared
    struct hm_ival least;            // sum of min(p, q)
    struct hm_ival kl_pq, kl_qp;     // sums of f over the shared
    double f_pq, f_qp;               // lower bounds of f summed over the tokens of one row only
    size_t p_count, q_count;         // how many those are
};

static struct hm_ival above(struct hm_ival a, struct hm_ival b)
{
    struct hm_ival d = hm_ival_sub(a, b);
    return (struct hm_ival){fmax(d.lo, 0), fmax(d.hi, 0)};
}

static void add(struct hm_ival *sum, struct hm_ival x)
{
    *sum = hm_ival_add(*sum, x);
}

static void add_shared(struct sums *s, struct hm_ival p, struct hm_ival q)
{
    add(&s->p, p);
    add(&s->q, q);
    add(&s->p_above, above(p, q));
    add(&s->q_above, above(q, p));
    add(&s->least, hm_ival_min(p, q));
    add(&s->kl_pq, f_over(p, q));
    add(&s->kl_qp, swap_f(p, q));
}

static void sum_up(const struct hm_known *p, const struct hm_known *q, const struct match *m, struct sums *s)
{
    const struct hm_ival p_unseen = {0, hm_known_unseen_most(p)}, q_unseen = {0, hm_known_unseen_most(q)};
    for (size_t i = 0; i < p->count; i++) {
        struct hm_ival x = hm_known_probability(p, i);
        if (m->q_of[i] != HM_UNSEEN) {
            add_shared(s, x, hm_known_probability(q, m->q_of[i]));
            continue;
        }
        add(&s->p_only, x);
        s->p_count++;
        s->f_pq = hm_ival_add(hm_ival_point(s->f_pq), hm_ival_point(f_over(x, q_unseen).lo)).lo;
        s->f_qp = hm_ival_add(hm_ival_point(s->f_qp), hm_ival_point(f_over(q_unseen, x).lo)).lo;
    }
    for (size_t i = 0; i < q->count; i++) {
        if (m->q_matched[i]) continue;
        struct hm_ival x = hm_known_probability(q, i);
        add(&s->q_only, x);
        s->q_count++;
        s->f_pq = hm_ival_add(hm_ival_point(s->f_pq), hm_ival_point(f_over(p_unseen, x).lo)).lo;
        s->f_qp = hm_ival_add(hm_ival_point(s->f_qp), hm_ival_point(f_over(x, p_unseen).lo)).lo;
    }
}

// Mass of what is not shared: listed and unseen, or 1 less the shared.
static struct hm_ival remaining(struct hm_ival only, struct hm_ival unseen, struct hm_ival shared)
{
    struct hm_ival a = hm_ival_add(only, unseen), b = hm_ival_sub(hm_ival_point(1), shared);
    return (struct hm_ival){fmax(fmax(a.lo, b.lo), 0), fmax(fmin(a.hi, b.hi), 0)};
}

// An event's p less its q: what is above on the shared tokens, and the tokens listed in p only, of which q has at most so
// many times its largest unseen.
static double event(struct hm_ival above_sum, struct hm_ival only, size_t count, double most, struct hm_ival unseen)
{
    double other = count == 0 ? 0 : fmin(hm_ival_mul(hm_ival_point((double)count), hm_ival_point(most)).hi, unseen.hi);
    double more = hm_ival_sub(hm_ival_point(only.lo), hm_ival_point(other)).lo;
    return hm_ival_add(hm_ival_point(above_sum.lo), hm_ival_point(fmax(more, 0))).lo;
}

static struct hm_ival variation(const struct hm_known *p, const struct hm_known *q, const struct sums *s, struct hm_ival rp,
                                struct hm_ival rq, bool by_id)
{
    struct hm_ival out;
    // TV is P(E) - Q(E) at its largest: E what is above, with all of the rest, or without.
    out.lo = fmax(hm_ival_add(s->p_above, above(rp, rq)).lo, hm_ival_add(s->q_above, above(rq, rp)).lo);
    if (by_id) {
        out.lo = fmax(out.lo, event(s->p_above, s->p_only, s->p_count, hm_known_unseen_most(q), hm_known_unseen(q)));
        out.lo = fmax(out.lo, event(s->q_above, s->q_only, s->q_count, hm_known_unseen_most(p), hm_known_unseen(p)));
    }
    // And it is 1 - sum min(p, q), or a sum of one side's excess.
    out.hi = hm_ival_sub(hm_ival_point(1), s->least).hi;
    out.hi = fmin(out.hi, fmin(hm_ival_add(s->p_above, rp).hi, hm_ival_add(s->q_above, rq).hi));
    return (struct hm_ival){fmax(out.lo, 0), fmax(fmin(out.hi, 1), 0)};
}

// At least the shared and the rest as one group; or the tokens of one row one by one. At most: with nothing of p outside
// the shared, all of it and the mass that q has there.
static struct hm_ival divergence(struct hm_ival shared, double one_by_one, struct hm_ival rp, struct hm_ival rq, bool by_id)
{
    struct hm_ival out;
    out.lo = hm_ival_add(shared, f_over(rp, rq)).lo;
    if (by_id) out.lo = fmax(out.lo, hm_ival_add(shared, hm_ival_point(one_by_one)).lo);
    out.hi = rp.hi == 0 ? hm_ival_add(shared, rq).hi : INFINITY;
    return (struct hm_ival){fmax(out.lo, 0), out.hi};
}

static struct hm_known_distance measure(const struct hm_known *p, const struct hm_known *q)
{
    struct hm_known_distance out = {open_end, open_end, {0, 1}};
    struct match m;
    if (match(p->evidence, q->evidence, &m)) {
        struct sums s = {.p = zero};
        sum_up(p, q, &m, &s);
        struct hm_ival rp = remaining(s.p_only, hm_known_unseen(p), s.p), rq = remaining(s.q_only, hm_known_unseen(q), s.q);
        out.tv = variation(p, q, &s, rp, rq, m.by_id);
        out.kl_pq = divergence(s.kl_pq, s.f_pq, rp, rq, m.by_id);
        out.kl_qp = divergence(s.kl_qp, s.f_qp, rq, rp, m.by_id);
    }
    free(m.q_of);
    free(m.q_matched);
    return out;
}

// ---- A full row of floats against a list: as a list of points

struct listed {
    struct hm_evidence evidence;
    struct hm_evidence_entry *entry;
    struct hm_known *known;
};

static bool list(const struct hm_known *row, struct listed *out)
{
    size_t vocab = row->evidence->vocab;
    *out = (struct listed){.entry = hm_calloc(vocab, sizeof *out->entry)};
    if (!out->entry) return false;
    for (size_t i = 0; i < vocab; i++) {
        out->entry[i].id = (int32_t)i;
        out->entry[i].value = hm_ival_point(row->evidence->logits[i]);
    }
    out->evidence = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .entry = out->entry, .count = vocab, .ranked = vocab,
                                         .emitted = HM_UNSEEN, .vocab = vocab};
    return hm_known_open(&out->evidence, &row->temperature, &out->known, NULL) == HM_OK;
}

struct hm_known_distance hm_known_distance(const struct hm_known *p, const struct hm_known *q)
{
    struct hm_known_distance out = {open_end, open_end, {0, 1}};
    bool same = p->row && q->row && p->evidence->vocab == q->evidence->vocab &&
                mpq_equal(p->temperature.value, q->temperature.value) != 0;
    struct hm_row_distance exact;
    if (same && hm_row_distance(p->row, q->row, &exact, NULL) == HM_OK)
        return (struct hm_known_distance){exact.kl_pq, exact.kl_qp, exact.tv};
    struct listed a = {.known = NULL}, b = {.known = NULL};
    bool fits = (!p->row || list(p, &a)) && (!q->row || list(q, &b));
    if (fits) out = measure(p->row ? a.known : p, q->row ? b.known : q);
    hm_known_close(a.known);
    hm_known_close(b.known);
    free(a.entry);
    free(b.entry);
    return out;
}
