// The weights of ranges of ranks in double enclosures, for the formulas of radii (rules/rules.h). Within the head of a row
// they are single terms; behind it the weights are summed in order once, from the front and from the back.
#include "certify/rules/rules.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

void hm_masses_clear(struct hm_masses *m)
{
    free(m->forward);
    free(m->backward);
    *m = (struct hm_masses){.row = m->row};
}

// Sums of n weights, w[i * step] in order, into sums [n + 1]: chains of at most HM_FILTER_BLOCK terms on top of a chain of
// block sums, as hm_filter_enclose wants.
static void run(const double *w, size_t n, double *sums)
{
    double before = 0;
    for (size_t start = 0; start < n; start += HM_FILTER_BLOCK) {
        size_t end = n - start < HM_FILTER_BLOCK ? n : start + HM_FILTER_BLOCK;
        double block = 0;
        for (size_t i = start; i < end; i++) {
            sums[i] = before + block;
            block += w[i];
        }
        before += block;
    }
    sums[n] = before;
}

// Ranks from HM_ROW_HEAD to the support: forward[i] sums those before HM_ROW_HEAD + i, backward[i] the last i.
static bool fill(struct hm_masses *m)
{
    struct hm_row *row = m->row;
    if (m->forward) return true;
    size_t n = row->support - HM_ROW_HEAD;
    double *w = hm_calloc(n, sizeof *w);
    m->forward = hm_calloc(n + 1, sizeof *m->forward);
    m->backward = hm_calloc(n + 1, sizeof *m->backward);
    bool good = w && m->forward && m->backward;
    if (good) {
        for (size_t i = 0; i < n; i++) w[i] = row->filter.weights[hm_row_token(row, HM_ROW_HEAD + i)];
        run(w, n, m->forward);
        for (size_t i = 0; i < n / 2; i++) {
            double swap = w[i];
            w[i] = w[n - 1 - i];
            w[n - 1 - i] = swap;
        }
        run(w, n, m->backward);
    } else {
        hm_masses_clear(m);
    }
    free(w);
    return good;
}

static struct hm_ival few(struct hm_row *row, size_t from, size_t to)
{
    struct hm_ival sum = {0, 0};
    for (size_t r = from; r < to; r++) sum = hm_ival_add(sum, hm_filter_weight(row, (size_t)hm_row_token(row, r)));
    return sum;
}

// Ranks at or behind the head, to the end or from its border: no difference. Others lose what lies before them, which the
// sum from the back makes up for where the weights fall steeply.
static struct hm_ival behind(struct hm_masses *m, size_t from, size_t to)
{
    const struct hm_ival unknown = {-INFINITY, INFINITY};
    if (!fill(m)) return unknown;
    size_t n = m->row->support - HM_ROW_HEAD, first = from - HM_ROW_HEAD, last = to - HM_ROW_HEAD;
    struct hm_ival forward = hm_filter_enclose(m->forward[last], last), back = hm_filter_enclose(m->backward[n - first], n - first);
    if (first > 0) forward = hm_ival_sub(forward, hm_filter_enclose(m->forward[first], first));
    if (last < n) back = hm_ival_sub(back, hm_filter_enclose(m->backward[n - last], n - last));
    return hm_ival_meet(forward, back);
}

struct hm_ival hm_mass(struct hm_masses *m, size_t from, size_t to)
{
    struct hm_row *row = m->row;
    struct hm_ival head = {0, 0};
    if (to > row->support) to = row->support; // the others weigh nothing
    if (from >= to) return head;
    if (to <= HM_ROW_HEAD || to - from <= 2) return from == 0 ? hm_filter_head(row, to) : few(row, from, to);
    if (to == row->support && from <= HM_ROW_HEAD) return hm_filter_tail(row, from);
    if (from < HM_ROW_HEAD) {
        head = from == 0 ? hm_filter_head(row, HM_ROW_HEAD) : few(row, from, HM_ROW_HEAD);
        from = HM_ROW_HEAD;
    }
    return hm_ival_add(head, behind(m, from, to));
}
