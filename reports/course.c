// Gathers course.h's figures, record by record.
#include "reports/course.h"

#include "bounds/ival_math.h"

#include <math.h>

static const struct hm_ival NOTHING = {0, 0};

// Twice as many tokens to a bin. Sums of two bins add; a value is that of the later one.
static void widen(struct hm_course_curve *c, bool values)
{
    size_t used = (c->used + 1) / 2;
    for (size_t i = 0; i < used; i++) {
        bool pair = 2 * i + 1 < c->used;
        size_t a = 2 * i, b = a + 1;
        c->e[i] = pair ? hm_ival_add(c->e[a], c->e[b]) : c->e[a];
        c->regret[i] = pair ? hm_ival_add(c->regret[a], c->regret[b]) : c->regret[a];
        if (values)
            c->shortfall[i] = c->shortfall[pair ? b : a];
        else
            c->shortfall[i] = pair ? hm_ival_add(c->shortfall[a], c->shortfall[b]) : c->shortfall[a];
    }
    c->used = used;
    c->width *= 2;
}

static void use(struct hm_course_curve *c, size_t bins)
{
    for (; c->used < bins; c->used++)
        c->e[c->used] = c->shortfall[c->used] = c->regret[c->used] = NOTHING;
}

// (1 - w)^+ from ln w; 0 where w is surely 1 or more.
static struct hm_ival shortfall_of(struct hm_ival log_w)
{
    struct hm_ival below = {fmax(0, -log_w.hi), fmax(0, -log_w.lo)};
    struct hm_ival fall = hm_ival_drop(below);
    return (struct hm_ival){fmax(0, fall.lo), fmin(1, fall.hi)};
}

void hm_course_step(struct hm_report_course *c, const struct hm_record_step *step)
{
    if (!step->has_e && !step->has_regret) return;
    struct hm_course_curve *open = &c->open;
    uint64_t t = (uint64_t)step->t;
    if (!open->width) open->width = 1;
    while (t / open->width >= HM_COURSE_BINS) widen(open, true);
    size_t bin = (size_t)(t / open->width);
    if (bin >= open->used) {
        struct hm_ival last = open->used ? open->shortfall[open->used - 1] : NOTHING;
        size_t from = open->used;
        use(open, bin + 1);
        for (size_t i = from; i <= bin; i++) open->shortfall[i] = last;
    }
    if (step->has_e) {
        if (!c->open_has_e) c->open_sum = HM_SEQUENCE_START;
        c->open_has_e = true;
        hm_sequence_add(&c->open_sum, step->e, step->ratio);
        open->e[bin] = hm_ival_add(open->e[bin], step->e);
        open->shortfall[bin] = shortfall_of(c->open_sum.log_w);
    }
    if (step->has_regret) {
        hm_sum_add(&c->open_regret, step->regret);
        open->regret[bin] = hm_ival_add(open->regret[bin], step->regret);
    }
}

static void add_group(struct hm_course_group *group, const struct hm_report_course *c, const struct hm_course *course)
{
    if (!group) return;
    if (course->has_e) hm_fidelity_add(&group->fidelity, &c->open_sum);
    if (!course->has_regret) return;
    hm_sum_add(&group->regret, course->regret);
    group->regret_most = fmax(group->regret_most, course->regret.hi);
}

// The sequence's curve into the sum of all: values become differences, which stay right when it ends.
static void add_curve(struct hm_course_curve *sum, struct hm_course_curve *open)
{
    if (!sum->width) sum->width = open->width;
    while (open->width < sum->width) widen(open, true);
    while (sum->width < open->width) widen(sum, false);
    use(sum, open->used);
    struct hm_ival before = NOTHING;
    for (size_t i = 0; i < open->used; i++) {
        sum->e[i] = hm_ival_add(sum->e[i], open->e[i]);
        sum->regret[i] = hm_ival_add(sum->regret[i], open->regret[i]);
        sum->shortfall[i] = hm_ival_add(sum->shortfall[i], hm_ival_sub(open->shortfall[i], before));
        before = open->shortfall[i];
    }
}

struct hm_course hm_course_end(struct hm_report_course *c, bool finished, struct hm_course_group *category,
                               struct hm_course_group *log)
{
    struct hm_course course = {.has_e = c->open_has_e, .has_regret = c->open_regret.count > 0};
    if (course.has_e) {
        course.s = c->open_sum.s;
        course.w = hm_ival_exp(c->open_sum.log_w);
        course.shortfall = shortfall_of(c->open_sum.log_w);
    }
    if (course.has_regret) course.regret = (struct hm_ival){c->open_regret.lo, c->open_regret.hi};
    if (finished && (course.has_e || course.has_regret)) {
        add_curve(&c->curve, &c->open);
        c->with_e += course.has_e;
        c->with_regret += course.has_regret;
        add_group(&c->all, c, &course);
        add_group(category, c, &course);
        add_group(log, c, &course);
    }
    c->open = (struct hm_course_curve){0};
    c->open_regret = (struct hm_sum){0};
    c->open_has_e = false;
    return course;
}

static double mean_upper(struct hm_ival sum, uint64_t count)
{
    return count ? hm_ival_div(sum, hm_ival_point((double)count)).hi : 0;
}

size_t hm_course_points(const struct hm_report_course *c, struct hm_course_point *out)
{
    struct hm_ival e = NOTHING, fall = NOTHING, regret = NOTHING;
    for (size_t i = 0; i < c->curve.used; i++) {
        e = hm_ival_add(e, c->curve.e[i]);
        fall = hm_ival_add(fall, c->curve.shortfall[i]);
        regret = hm_ival_add(regret, c->curve.regret[i]);
        out[i] = (struct hm_course_point){.tokens = (i + 1) * c->curve.width,
                                          .e = mean_upper(e, c->with_e),
                                          .shortfall = fmin(1, mean_upper(fall, c->with_e)),
                                          .regret = mean_upper(regret, c->with_regret)};
    }
    return c->curve.used;
}
