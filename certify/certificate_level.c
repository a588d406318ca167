// Levels and margins of a row: from the filter (bounds/level_filter.h), else from MPFR at the precision they need
// (bounds/level.h). See certificate_state.h.
#include "certify/certificate_state.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "bounds/level_filter.h"

#include <math.h>
#include <stdlib.h>

// The mass behind the first n tokens: the total less the head where that keeps 60 bits, else summed term by term.
static hm_status tail_mass(struct hm_row *row, const int32_t *tokens, size_t n, mpfr_prec_t precision, struct hm_mpi *tail,
                           struct hm_error *err)
{
    struct hm_weight_sum head;
    hm_weight_sum_init(&head, row->weights);
    for (size_t r = 0; r < n; r++) hm_weight_sum_add(&head, row->weights, (size_t)tokens[r]);
    hm_weight_sum_get(&head, row->weights, tail);
    hm_weight_sum_clear(&head);
    hm_mpi_sub(tail, &row->total, tail);
    mpfr_t width;
    mpfr_init2(width, 64);
    mpfr_sub(width, tail->hi, tail->lo, MPFR_RNDU);
    mpfr_mul_2si(width, width, 60, MPFR_RNDU);
    bool sharp = mpfr_less_p(width, tail->lo);
    mpfr_clear(width);
    return sharp ? HM_OK : hm_row_tail(row, n, precision, tail, err);
}

hm_status hm_level_at(struct hm_row *row, size_t k, size_t m, mpfr_prec_t precision, struct hm_level_values *level,
                      struct hm_margin_values *margin, bool *good, struct hm_error *err)
{
    hm_status status = hm_row_sums(row, precision, err);
    if (status) return status;
    int32_t *tokens = hm_row_first(row, k + m);
    if (!tokens) return hm_fail(err, HM_MEMORY, "order of %zu logits: out of memory", k + m);
    struct hm_mpi tail;
    hm_mpi_init(&tail, row->weights->precision);
    status = tail_mass(row, tokens, k + m, precision, &tail, err);
    if (status == HM_OK) {
        struct hm_level_problem problem = {.weights = row->weights, .tokens = tokens, .k = k, .m = m,
                                           .support = row->support, .top = row->top,
                                           .temperature = row->temperature.value, .total = &row->total, .tail = &tail};
        *good = hm_level_forward(&problem, level);
        hm_level_reverse(&problem, level);
        if (margin) hm_margin_bounds(&problem, margin);
    }
    hm_mpi_clear(&tail);
    free(tokens);
    return status;
}

// Levels get one more unit at each end, so that a checker finds the balance strictly on its two sides there.
static struct hm_ival widened(struct hm_ival v)
{
    if (isfinite(v.lo)) v.lo = nextafter(v.lo, -INFINITY);
    if (isfinite(v.hi)) v.hi = nextafter(v.hi, INFINITY);
    return v;
}

static struct hm_level as_level(const struct hm_level_ivals *v)
{
    return (struct hm_level){.klf = v->klf, .klr = v->klr, .tv = v->tv,
                             .level_f = widened(v->level_f), .level_r = widened(v->level_r),
                             .tied_f = {(uint32_t)v->tied_f[0], (uint32_t)v->tied_f[1]},
                             .tied_r = {(uint32_t)v->tied_r[0], (uint32_t)v->tied_r[1]}};
}

static struct hm_level_ivals to_doubles(const struct hm_level_values *v)
{
    return (struct hm_level_ivals){.klf = hm_mpi_ival(&v->klf), .klr = hm_mpi_ival(&v->klr), .tv = hm_mpi_ival(&v->tv),
                                   .level_f = hm_mpi_ival(&v->level_f), .level_r = hm_mpi_ival(&v->level_r),
                                   .tied_f = {v->tied_f[0], v->tied_f[1]}, .tied_r = {v->tied_r[0], v->tied_r[1]}};
}

static float logit_of(void *row, size_t rank)
{
    return ((struct hm_row *)row)->logits[hm_row_token(row, rank)];
}

// Sums of the filter's weights, which have a scale of their own, in units of the largest weight.
static struct hm_ival head_of(void *row, size_t rank)
{
    return hm_ival_div(hm_filter_head(row, rank), hm_filter_top(row));
}

static struct hm_ival tail_of(void *row, size_t rank)
{
    return hm_ival_div(hm_filter_tail(row, rank), hm_filter_top(row));
}

bool hm_level_filtered(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin)
{
    if (!hm_filter_ready(row)) return false;
    struct hm_level_row problem = {.order = row, .logit = logit_of, .head = head_of, .tail = tail_of,
                                   .total = hm_ival_div(row->filter.total, hm_filter_top(row)), .k = k, .m = m,
                                   .support = row->support, .top = row->top, .temperature = row->temperature.value};
    struct hm_level_ivals v;
    struct hm_margin_ivals g;
    bool answered = hm_filter_count(row, hm_level_filter(&problem, &v, margin ? &g : NULL));
    if (answered) *level = as_level(&v);
    if (answered && margin) *margin = (struct hm_margin){g.gap, g.klf, g.klr, g.tv};
    return answered;
}

static bool all_narrow(const struct hm_level_values *v, const struct hm_margin_values *g, bool with_margin)
{
    bool levels = hm_mpi_narrow(&v->klf) && hm_mpi_narrow(&v->klr) && hm_mpi_narrow(&v->tv) &&
                  hm_mpi_narrow(&v->level_f) && hm_mpi_narrow(&v->level_r);
    return levels && (!with_margin || (hm_mpi_narrow(&g->gap) && hm_mpi_narrow(&g->klf) && hm_mpi_narrow(&g->klr) &&
                                       hm_mpi_narrow(&g->tv)));
}

static hm_status compute(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin,
                         struct hm_error *err)
{
    if (hm_level_filtered(row, k, m, level, margin)) return HM_OK;
    hm_status status = HM_OK;
    bool done = false, any = false;
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_level_values v;
        struct hm_margin_values g;
        bool good = false;
        hm_level_values_init(&v, precision);
        hm_margin_values_init(&g, precision);
        status = hm_level_at(row, k, m, precision, &v, margin ? &g : NULL, &good, err);
        if (status == HM_OK && good) {
            any = true;
            struct hm_level_ivals rounded = to_doubles(&v);
            *level = as_level(&rounded);
            if (margin)
                *margin = (struct hm_margin){hm_mpi_ival(&g.gap), hm_mpi_ival(&g.klf), hm_mpi_ival(&g.klr), hm_mpi_ival(&g.tv)};
            done = all_narrow(&v, &g, margin != NULL);
        }
        done = done || status != HM_OK;
        hm_level_values_clear(&v);
        hm_margin_values_clear(&g);
    }
    if (status == HM_OK && !any) return hm_fail(err, HM_RANGE, "level: not enclosed at %d bits", HM_PRECISION_LAST);
    return status;
}

// Rules often agree on k, so a row keeps the last few answers.
enum { REMEMBERED = 8 };
struct hm_level_memory {
    size_t count; // of all answers so far: the next goes to count % REMEMBERED
    struct {
        size_t k, m;
        bool has_margin;
        struct hm_level level;
        struct hm_margin margin;
    } at[REMEMBERED];
};

static bool recall(const struct hm_level_memory *memory, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin)
{
    for (size_t i = 0; memory && i < memory->count && i < REMEMBERED; i++) {
        if (memory->at[i].k != k || memory->at[i].m != m || (margin && !memory->at[i].has_margin)) continue;
        *level = memory->at[i].level;
        if (margin) *margin = memory->at[i].margin;
        return true;
    }
    return false;
}

hm_status hm_level_make(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin,
                        struct hm_error *err)
{
    if (recall(row->levels, k, m, level, margin)) return HM_OK;
    hm_status status = compute(row, k, m, level, margin, err);
    if (!row->levels) row->levels = hm_calloc(1, sizeof *row->levels);
    if (status || !row->levels) return status; // without memory nothing is remembered
    size_t next = row->levels->count++ % REMEMBERED;
    row->levels->at[next].k = k;
    row->levels->at[next].m = m;
    row->levels->at[next].has_margin = margin != NULL;
    row->levels->at[next].level = *level;
    if (margin) row->levels->at[next].margin = *margin;
    return HM_OK;
}

void hm_level_constant(struct hm_level *level, double value)
{
    struct hm_ival point = {value, value};
    *level = (struct hm_level){.klf = point, .klr = point, .tv = point};
}
