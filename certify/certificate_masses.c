// The weights of ranges of ranks in double enclosures, for the formulas of radii (rules/rules.h). Within the head of a row
// they are single terms; behind it the weights are summed in order as far as they are asked for.
#include "certify/rules/rules.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>

void hm_masses_clear(struct hm_masses *m)
{
    free(m->forward);
    m->forward = NULL;
    m->count = 0;
}

// forward[i] is the sum of i weights from rank HM_ROW_HEAD on: chains of at most HM_FILTER_BLOCK terms on top of a chain of
// block sums, as hm_filter_enclose wants.
static bool fill(struct hm_masses *m, size_t count)
{
    size_t most = m->row->support - HM_ROW_HEAD, n = most / 4 > count ? 4 * count : most;
    if (m->forward && m->count >= count) return true;
    hm_masses_clear(m);
    m->forward = hm_calloc(n + 1, sizeof *m->forward);
    if (!m->forward) return false;
    m->count = n;
    double before = 0, block = 0;
    for (size_t i = 0; i < n; i++) {
        m->forward[i] = before + block;
        block += m->row->filter.weights[hm_row_token(m->row, HM_ROW_HEAD + i)];
        if ((i + 1) % HM_FILTER_BLOCK == 0) {
            before += block;
            block = 0;
        }
    }
    m->forward[n] = before + block;
    return true;
}

static struct hm_ival few(const struct hm_masses *m, size_t from, size_t to)
{
    struct hm_ival sum = {0, 0};
    for (size_t r = from; r < to; r++) {
        size_t token = r == m->rank ? m->token : (size_t)hm_row_token(m->row, r); // the latter may sort
        sum = hm_ival_add(sum, hm_filter_weight(m->row, token));
    }
    return sum;
}

// Ranks [HM_ROW_HEAD, to), to > HM_ROW_HEAD.
static struct hm_ival up_to(struct hm_masses *m, size_t to)
{
    const struct hm_ival unknown = {-INFINITY, INFINITY};
    size_t n = to - HM_ROW_HEAD;
    return fill(m, n) ? hm_filter_enclose(m->forward[n], n) : unknown;
}

// Ranks from `from` > HM_ROW_HEAD on: what the others leave, or a pass of its own where they leave little.
static struct hm_ival rest(struct hm_masses *m, size_t from)
{
    struct hm_ival out = hm_ival_sub(hm_filter_tail(m->row, HM_ROW_HEAD), up_to(m, from));
    bool sharp = out.hi - out.lo <= out.lo * 0x1p-36;
    return sharp ? out : hm_filter_tail(m->row, from);
}

struct hm_ival hm_mass(struct hm_masses *m, size_t from, size_t to)
{
    struct hm_row *row = m->row;
    struct hm_ival head = {0, 0};
    if (to > row->support) to = row->support; // the others weigh nothing
    if (from >= to) return head;
    if (from == 0 && to == row->support) return row->filter.total;
    if (to <= HM_ROW_HEAD || to - from <= 2) return from == 0 ? hm_filter_head(row, to) : few(m, from, to);
    if (to == row->support) return from <= HM_ROW_HEAD ? hm_filter_tail(row, from) : rest(m, from);
    if (from > HM_ROW_HEAD) return hm_ival_sub(up_to(m, to), up_to(m, from));
    if (from < HM_ROW_HEAD) head = from == 0 ? hm_filter_head(row, HM_ROW_HEAD) : few(m, from, HM_ROW_HEAD);
    return hm_ival_add(head, up_to(m, to));
}

// All but one: the ones before it are no lighter, so a difference loses one bit at most.
struct hm_ival hm_mass_but_one(struct hm_masses *m, size_t rank)
{
    if (rank == 0) return hm_filter_tail(m->row, 1);
    return hm_ival_sub(m->row->filter.total, few(m, rank, rank + 1));
}
