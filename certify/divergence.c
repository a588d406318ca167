// Divergences on request: their names, and their values at the precision that makes them narrow. See divergence.h.
#include "certify/divergence.h"

#include "bounds/ival_math.h"
#include "certify/divergence_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct spelling {
    const char *name;
    enum hm_divergence_kind kind;
    bool ordered;
} names[] = {
    {"renyi", HM_DIVERGENCE_RENYI, true},
    {"renyi-reverse", HM_DIVERGENCE_RENYI_REVERSE, true},
    {"hellinger", HM_DIVERGENCE_HELLINGER, false},
    {"chi2", HM_DIVERGENCE_CHI2, false},
    {"chi2-reverse", HM_DIVERGENCE_CHI2_REVERSE, false},
    {"max", HM_DIVERGENCE_MAX, false},
    {"spread", HM_DIVERGENCE_SPREAD, false},
};

hm_status hm_divergence_parse(const char *text, struct hm_divergence *out, struct hm_error *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    const struct spelling *s = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == length && strncmp(names[i].name, text, length) == 0) s = &names[i];
    if (!s)
        return hm_fail(err, HM_USAGE, "divergence \"%.80s\": expected renyi:A, renyi-reverse:A, hellinger, chi2, "
                       "chi2-reverse, max or spread", text);
    if (!s->ordered && colon)
        return hm_fail(err, HM_USAGE, "divergence \"%.80s\": expected %s without a parameter", text, s->name);
    *out = (struct hm_divergence){.kind = s->kind};
    hm_rational_init(&out->order);
    if (!s->ordered) return HM_OK;
    bool good = colon && hm_rational_parse(colon + 1, &out->order, NULL) == HM_OK && hm_rational_sign(&out->order) > 0 &&
                mpq_cmp_ui(out->order.value, 1, 1) != 0;
    if (good) return HM_OK;
    hm_divergence_clear(out);
    return hm_fail(err, HM_USAGE, "divergence \"%.80s\": expected %s:A with A > 0 and not 1", text, s->name);
}

void hm_divergence_clear(struct hm_divergence *d)
{
    hm_rational_clear(&d->order);
}

char *hm_divergence_text(const struct hm_divergence *d)
{
    const struct spelling *s = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].kind == d->kind) s = &names[i];
    if (!s) return NULL;
    char *order = s->ordered ? hm_rational_text(&d->order) : NULL, *text = NULL;
    if (s->ordered && !order) return NULL;
    size_t size = strlen(s->name) + (order ? strlen(order) : 0) + 2;
    text = malloc(size);
    if (text) snprintf(text, size, "%s%s%s", s->name, order ? ":" : "", order ? order : "");
    free(order);
    return text;
}

bool hm_divergence_power(const struct hm_divergence *d, struct hm_power *out)
{
    if (d->kind == HM_DIVERGENCE_MAX || d->kind == HM_DIVERGENCE_SPREAD) return false;
    mpq_init(out->a);
    out->reversed = d->kind == HM_DIVERGENCE_RENYI_REVERSE || d->kind == HM_DIVERGENCE_CHI2_REVERSE;
    if (d->kind == HM_DIVERGENCE_HELLINGER) mpq_set_ui(out->a, 1, 2);
    else if (d->kind == HM_DIVERGENCE_CHI2 || d->kind == HM_DIVERGENCE_CHI2_REVERSE) mpq_set_ui(out->a, 2, 1);
    else mpq_set(out->a, d->order.value);
    if (out->reversed) { // D_b(q||p) has the exponent 1 - b
        mpq_t one;
        mpq_init(one);
        mpq_set_ui(one, 1, 1);
        mpq_sub(out->a, one, out->a);
        mpq_clear(one);
    }
    return true;
}

// Narrow, and relatively so unless that is asking for a number below 2^-80 to 512 bits and more.
static bool sharp(const struct hm_mpi *x, mpfr_prec_t precision)
{
    enum { ENOUGH = 512 };
    struct hm_ival v = hm_mpi_ival(x);
    bool relative = v.lo == v.hi || v.hi - v.lo <= 0x1p-40 * v.lo;
    return hm_mpi_narrow(x) && (relative || precision >= ENOUGH);
}

// Narrow by its relative width: what is small is left to MPFR.
static bool sharp_ival(struct hm_ival v)
{
    return hm_ival_narrow(v) && v.hi - v.lo <= 0x1p-34 * v.lo;
}

// An end too far away to be near the other says no more than an infinite one (docs/log.md, "Numbers").
static struct hm_ival sayable(struct hm_ival v)
{
    bool good = v.lo == v.hi || v.hi - v.lo <= 0x1p-31 * v.hi || v.hi - v.lo <= 0x1p-61;
    if (!good) v.hi = INFINITY;
    return v;
}

hm_status hm_divergence_between(const struct hm_divergence *d, struct hm_row *p, struct hm_row *q, struct hm_ival *out,
                                struct hm_error *err)
{
    hm_status status = hm_row_pair_check(p, q, err);
    if (status) return status;
    *out = (struct hm_ival){0, INFINITY};
    bool done = hm_divergence_between_filter(d, p, q, out);
    if (done) {
        *out = hm_divergence_unit_ival(d, *out);
        done = sharp_ival(*out);
    }
    if (d->kind != HM_DIVERGENCE_SPREAD && !hm_row_same(p, q)) hm_filter_count(p, done);
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_mpi value;
        hm_mpi_init(&value, precision);
        status = hm_divergence_between_at(d, p, q, precision, &value, err);
        hm_divergence_unit(d, &value);
        if (status == HM_OK) *out = hm_mpi_ival(&value);
        done = status || sharp(&value, precision);
        hm_mpi_clear(&value);
    }
    *out = sayable(*out);
    return status;
}

static hm_status check_sizes(const struct hm_row *p, size_t k, size_t m, struct hm_error *err)
{
    if (k > p->vocab) return hm_fail(err, HM_RANGE, "accepted tokens: expected at most %zu, found %zu", p->vocab, k);
    if (m < 1) return hm_fail(err, HM_USAGE, "divergence: expected m of at least 1, found 0");
    return HM_OK;
}

hm_status hm_divergence_level(const struct hm_divergence *d, struct hm_row *p, size_t k, size_t m, struct hm_ival *out,
                              struct hm_error *err)
{
    hm_status status = check_sizes(p, k, m, err);
    if (status) return status;
    double constant = k == 0 ? 0 : INFINITY;
    *out = (struct hm_ival){constant, constant};
    if (k == 0 || m > p->vocab - k) return HM_OK;
    bool exact = d->kind == HM_DIVERGENCE_SPREAD || p->logits[hm_row_token(p, k + m - 1)] == p->top; // and cheap
    bool done = hm_divergence_level_filter(d, p, k, m, out);
    if (done) {
        *out = hm_divergence_unit_ival(d, *out);
        done = sharp_ival(*out);
    }
    if (!exact) hm_filter_count(p, done);
    if (!done) *out = (struct hm_ival){0, INFINITY};
    for (mpfr_prec_t precision = HM_PRECISION_FIRST; precision <= HM_PRECISION_LAST && !done; precision *= 2) {
        struct hm_mpi value;
        bool good = false;
        hm_mpi_init(&value, precision);
        status = hm_divergence_level_at(d, p, k, m, precision, &value, NULL, &good, err);
        hm_divergence_unit(d, &value);
        if (status == HM_OK && good) *out = hm_mpi_ival(&value);
        done = status || (good && sharp(&value, precision));
        hm_mpi_clear(&value);
    }
    *out = sayable(*out);
    return status;
}
