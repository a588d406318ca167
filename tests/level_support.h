// Levels and margins of one row at three arithmetics: MPFR at 128 and 512 bits and double intervals.
#ifndef HM_TESTS_LEVEL_SUPPORT_H
#define HM_TESTS_LEVEL_SUPPORT_H

#include "certify/certificate_state.h"
#include "tests/certify_rows.h"

#include <mpfr.h>

enum { FIGURES = 9 };

static const char *const figure_names[FIGURES] = {"klf", "klr", "tv", "level_f", "level_r", "gap", "margin klf", "margin klr",
                                                  "margin tv"};

struct exact {
    struct hm_level_values level;
    struct hm_margin_values margin;
};

static inline void exact_init(struct exact *e, mpfr_prec_t precision)
{
    hm_level_values_init(&e->level, precision);
    hm_margin_values_init(&e->margin, precision);
}

static inline void exact_clear(struct exact *e)
{
    hm_level_values_clear(&e->level);
    hm_margin_values_clear(&e->margin);
}

static inline bool exact_fill(struct hm_row *row, size_t k, size_t m, mpfr_prec_t precision, struct exact *e)
{
    struct hm_error err = {.message = ""};
    bool good;
    exact_init(e, precision);
    if (hm_level_at(row, k, m, precision, &e->level, &e->margin, &good, &err)) fail_msg("%s", err.message);
    return good;
}

static inline const struct hm_mpi *exact_figure(const struct exact *e, size_t i)
{
    const struct hm_mpi *all[FIGURES] = {&e->level.klf, &e->level.klr, &e->level.tv, &e->level.level_f, &e->level.level_r,
                                         &e->margin.gap, &e->margin.klf, &e->margin.klr, &e->margin.tv};
    return all[i];
}

struct case_of_row {
    struct hm_row *row;
    size_t k, m;
    const char *kind;
};

static inline void assert_same_number(const struct case_of_row *c, const struct exact *a, const struct exact *b)
{
    for (size_t i = 0; i < FIGURES; i++) {
        const struct hm_mpi *x = exact_figure(a, i), *y = exact_figure(b, i);
        if (!mpfr_lessequal_p(x->lo, y->hi) || !mpfr_lessequal_p(y->lo, x->hi))
            fail_msg("%s, k %zu, m %zu: %s at two precisions do not meet", c->kind, c->k, c->m, figure_names[i]);
    }
}

static inline void assert_encloses_exact(const struct case_of_row *c, const struct hm_level *level, const struct hm_margin *margin,
                                  const struct exact *e)
{
    const struct hm_ival ours[FIGURES] = {level->klf, level->klr, level->tv, level->level_f, level->level_r,
                                          margin->gap, margin->klf, margin->klr, margin->tv};
    for (size_t i = 0; i < FIGURES; i++) {
        const struct hm_mpi *x = exact_figure(e, i);
        if (!(mpfr_cmp_d(x->hi, ours[i].lo) >= 0 && mpfr_cmp_d(x->lo, ours[i].hi) <= 0))
            fail_msg("%s, k %zu, m %zu: %s: [%a, %a] does not hold [%a, %a]", c->kind, c->k, c->m, figure_names[i], ours[i].lo,
                     ours[i].hi, mpfr_get_d(x->lo, MPFR_RNDD), mpfr_get_d(x->hi, MPFR_RNDU));
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(level->tied_r[i], e->level.tied_r[i]);
        if (mpfr_get_prec(e->level.klf.lo) > 128) assert_int_equal(level->tied_f[i], e->level.tied_f[i]); // else too close to tell
    }
}

// One row at k and m; true when the filter answered. `sharp`: also at 512 bits, which is slow.
static inline bool compare(const struct case_of_row *c, bool sharp)
{
    struct exact low, high;
    struct hm_level level;
    struct hm_margin margin;
    bool answered = hm_level_filtered(c->row, c->k, c->m, &level, &margin), proved = exact_fill(c->row, c->k, c->m, 128, &low);
    if (answered && proved) assert_encloses_exact(c, &level, &margin, &low);
    if (sharp && exact_fill(c->row, c->k, c->m, 512, &high)) {
        if (proved) assert_same_number(c, &low, &high);
        if (answered) assert_encloses_exact(c, &level, &margin, &high);
    }
    exact_clear(&low);
    if (sharp) exact_clear(&high);
    return answered;
}

#endif
