// Levels and margins of a row, from bounds/level.h, at the precision they need: see certificate_state.h.
#include "certify/certificate_state.h"

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
static void to_doubles(const struct hm_level_values *v, struct hm_level *out)
{
    *out = (struct hm_level){.klf = hm_mpi_ival(&v->klf), .klr = hm_mpi_ival(&v->klr), .tv = hm_mpi_ival(&v->tv),
                             .level_f = hm_mpi_ival_wide(&v->level_f), .level_r = hm_mpi_ival_wide(&v->level_r),
                             .tied_f = {(uint32_t)v->tied_f[0], (uint32_t)v->tied_f[1]},
                             .tied_r = {(uint32_t)v->tied_r[0], (uint32_t)v->tied_r[1]}};
}

static bool all_narrow(const struct hm_level_values *v, const struct hm_margin_values *g, bool with_margin)
{
    bool levels = hm_mpi_narrow(&v->klf) && hm_mpi_narrow(&v->klr) && hm_mpi_narrow(&v->tv) &&
                  hm_mpi_narrow(&v->level_f) && hm_mpi_narrow(&v->level_r);
    return levels && (!with_margin || (hm_mpi_narrow(&g->gap) && hm_mpi_narrow(&g->klf) && hm_mpi_narrow(&g->klr) &&
                                       hm_mpi_narrow(&g->tv)));
}

hm_status hm_level_make(struct hm_row *row, size_t k, size_t m, struct hm_level *level, struct hm_margin *margin,
                        struct hm_error *err)
{
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
            to_doubles(&v, level);
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

void hm_level_constant(struct hm_level *level, double value)
{
    struct hm_ival point = {value, value};
    *level = (struct hm_level){.klf = point, .klr = point, .tv = point};
}
