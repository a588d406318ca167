// Margin-only bounds in double intervals: see level_filter.h, theory.md §3.
#include "bounds/ival_math.h"
#include "bounds/level_filter_terms.h"

#include <math.h>

static const struct hm_ival zero = {0, 0}, one = {1, 1};

// (1 - k y) W = sum_{i<=k} (w_i - w_k) + sum_{i>k} w_i + k w_(k+1), where k y may be near 1.
static struct hm_ival kept_mass(struct hm_terms *t, const struct hm_term *last, const struct hm_term *next)
{
    const struct hm_level_row *row = t->row;
    struct hm_ival kept = hm_ival_add(row->tail(row->order, row->k), hm_ival_mul(hm_ival_count(row->k), next->weight));
    for (size_t i = 0; i < row->k; i++) {
        struct hm_term x = hm_term(t, i);
        if (x.logit == last->logit) break; // the rest equals the last
        kept = hm_ival_add(kept, hm_ival_sub(last->drop, x.drop));
    }
    return kept;
}

// (1+v) ln(1+v) - v = (1+v) (t - ln(1+t)) with t = -v/(1+v): nothing cancels.
static struct hm_ival psi(struct hm_ival v, struct hm_ival one_plus)
{
    return hm_ival_mul(one_plus, hm_ival_log_excess(hm_ival_div(hm_ival_neg(v), one_plus)));
}

static struct hm_ival weighted_mean(size_t k, struct hm_ival x, size_t m, struct hm_ival y)
{
    struct hm_ival sum = hm_ival_add(hm_ival_mul(hm_ival_count(k), x), hm_ival_mul(hm_ival_count(m), y));
    return hm_ival_div(sum, hm_ival_count(k + m));
}

void hm_level_filter_margin(struct hm_terms *t, struct hm_margin_ivals *out)
{
    const struct hm_level_row *row = t->row;
    size_t k = row->k, m = row->m;
    struct hm_term last = hm_term(t, k - 1), next = hm_term(t, k);
    *out = (struct hm_margin_ivals){zero, zero, zero, zero};
    if (last.logit == next.logit) return;
    struct hm_ival apart = hm_ival_sub(hm_ival_point(last.logit), hm_ival_point(next.logit)), drop;
    drop = hm_ival_drop(hm_ival_mul(apart, t->inverse)); // w_k - w_(k+1) = w_k (1 - e^-(l_k - l_(k+1))/T)
    out->gap = hm_ival_div(hm_ival_mul(last.weight, drop), row->total);
    struct hm_ival up = hm_ival_mul(hm_ival_count(m), out->gap), down = hm_ival_mul(hm_ival_count(k), out->gap); // m y, k y
    out->tv = hm_ival_div(hm_ival_mul(hm_ival_count(k), up), hm_ival_count(k + m));
    struct hm_ival psi_up = psi(up, hm_ival_add(one, up)), log_up = hm_ival_log_excess(up), psi_down, log_down;
    if (next.logit == -INFINITY && last.logit == row->top) { // 1 - k y = 0 exactly
        psi_down = one;
        log_down = hm_ival_point(INFINITY);
    } else if (down.hi < 0.5) {
        psi_down = psi(hm_ival_neg(down), hm_ival_sub(one, down));
        log_down = hm_ival_log_excess(hm_ival_neg(down));
    } else { // v - ln(1+v) with 1 + v = 1 - k y as a sum of terms that are not negative
        struct hm_ival kept = hm_ival_div(kept_mass(t, &last, &next), row->total);
        psi_down = psi(hm_ival_neg(down), kept);
        log_down = hm_ival_sub(hm_ival_neg(down), hm_ival_log(kept));
    }
    out->klf = hm_ival_max(weighted_mean(k, psi_up, m, psi_down), zero);
    out->klr = hm_ival_max(weighted_mean(k, log_up, m, log_down), zero);
}
