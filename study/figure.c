// Formulas on means, and their intervals: see figure.h.
#include "study/figure.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct hm_figure hm_figure_mean(size_t a)
{
    return (struct hm_figure){.kind = HM_FIGURE_MEAN, .a = a};
}

struct hm_figure hm_figure_difference(size_t a, size_t b)
{
    return (struct hm_figure){.kind = HM_FIGURE_DIFFERENCE, .a = a, .b = b};
}

struct hm_figure hm_figure_share(size_t a, size_t b, size_t c)
{
    return (struct hm_figure){.kind = HM_FIGURE_SHARE, .a = a, .b = b, .c = c};
}

// The least place in a rising curve at which it has come to `level`, by linear interpolation; +inf when it never does.
static double place(const double *curve, size_t length, double level)
{
    for (size_t i = 0; i < length; i++) {
        if (!(curve[i] >= level)) continue;
        if (i == 0 || curve[i] == curve[i - 1]) return (double)i;
        return (double)i - (curve[i] - level) / (curve[i] - curve[i - 1]);
    }
    return isnan(level) ? NAN : INFINITY;
}

static double at(const double *curve, size_t length, double place)
{
    if (!isfinite(place)) return place > 0 ? curve[length - 1] : NAN;
    size_t below = (size_t)place;
    if (below + 1 >= length) return curve[length - 1];
    return curve[below] + (place - (double)below) * (curve[below + 1] - curve[below]);
}

double hm_figure_value(const struct hm_figure *f, const double *mean)
{
    switch (f->kind) {
    case HM_FIGURE_MEAN: return mean[f->a];
    case HM_FIGURE_DIFFERENCE: return mean[f->a] - mean[f->b];
    case HM_FIGURE_SHARE: return mean[f->c] == mean[f->b] ? NAN : (mean[f->a] - mean[f->b]) / (mean[f->c] - mean[f->b]);
    case HM_FIGURE_REACH: return ceil(place(mean + f->a, f->length, mean[f->b]));
    case HM_FIGURE_CAP: return place(mean + f->a, f->length, mean[f->b]);
    case HM_FIGURE_AT_CAP: return at(mean + f->c, f->length, place(mean + f->a, f->length, mean[f->b]));
    case HM_FIGURE_BEYOND_CAP:
        return mean[f->d] - at(mean + f->c, f->length, place(mean + f->a, f->length, mean[f->b]));
    }
    return NAN;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// By linear interpolation between order statistics.
static double percentile(const double *sorted, size_t n, double share)
{
    double where = share * (double)(n - 1);
    size_t below = (size_t)where;
    double part = where - (double)below;
    if (part == 0 || below + 1 >= n || sorted[below] == sorted[below + 1]) return sorted[below]; // also when infinite
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

void hm_figure_interval(const struct hm_figure *f, const double *means, size_t resamples, size_t series, double *scratch,
                        double *value, double *low, double *high)
{
    size_t n = 0;
    *value = hm_figure_value(f, means);
    for (size_t r = 1; r <= resamples; r++) {
        double x = hm_figure_value(f, means + r * series);
        if (!isnan(x)) scratch[n++] = x; // a resample without such rounds says nothing about them
    }
    qsort(scratch, n, sizeof *scratch, ascending);
    *low = n ? percentile(scratch, n, 0.025) : NAN;
    *high = n ? percentile(scratch, n, 0.975) : NAN;
}

void hm_study_cell(struct hm_study *s, int group, const char *table, const char *row, const char *column,
                   struct hm_figure figure)
{
    void *cells = s->cell, *figures = s->figure;
    bool good = hm_grow(&cells, &s->cell_room, s->cells + 1, sizeof *s->cell);
    s->cell = cells;
    good = good && hm_grow(&figures, &s->figure_room, s->cells + 1, sizeof *s->figure);
    s->figure = figures;
    if (!good) {
        s->sample.failed = true;
        return;
    }
    struct hm_study_cell *c = &s->cell[s->cells];
    int digits = figure.kind == HM_FIGURE_REACH ? 0 : figure.kind == HM_FIGURE_CAP ? 1 : 3;
    *c = (struct hm_study_cell){.group = group, .digits = digits};
    snprintf(c->table, sizeof c->table, "%s", table);
    snprintf(c->row, sizeof c->row, "%s", row);
    snprintf(c->column, sizeof c->column, "%s", column);
    s->figure[s->cells++] = figure;
}
