// What the level of noise makes of a comparison: see compare_run.h and docs/compare.md.
#include "cli/compare_run.h"

#include "base/memory.h"
#include "bounds/ival_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- groups

struct hm_compare_group *hm_compare_group_of(struct hm_compare_run *run, bool of_width, const char *name, int32_t width,
                                             struct hm_error *err)
{
    err->code = HM_OK;
    for (size_t i = 0; i < run->groups; i++) {
        struct hm_compare_group *g = run->group[i];
        if (g->of_width == of_width && g->width == width && strncmp(g->name, name, HM_SPOOL_CATEGORY - 1) == 0) return g;
    }
    if (run->groups == HM_GROUPS_MOST) return NULL;
    struct hm_compare_group *g = hm_calloc(1, sizeof *g);
    if (!g) {
        hm_fail(err, HM_MEMORY, "out of memory for the noise of a group");
        return NULL;
    }
    g->of_width = of_width;
    g->width = width;
    strncpy(g->name, name, HM_SPOOL_CATEGORY - 1);
    return run->group[run->groups++] = g;
}

// ---- forks and positions by the level

static void judge_fork(const struct hm_compare_run *run, struct hm_spool_fork *record, struct hm_compare_judged *out)
{
    struct hm_fork *fork = &record->fork;
    fork->has_level = out->has_level = hm_noise_level(&run->noise, &record->noise, &fork->level);
    out->level = fork->level;
    hm_fork_judge(fork, run->foreign);
}

static void judge_position(const struct hm_compare_run *run, const struct hm_spool_position *record,
                           struct hm_compare_judged *out)
{
    out->has_level = hm_noise_level(&run->noise, &record->noise, &out->level);
    out->outlier = out->has_level && hm_noise_outlier(record->noise.nats, out->level) == HM_YES;
}

hm_status hm_compare_each(struct hm_compare_run *run,
                          hm_status (*see)(void *user, const struct hm_compare_judged *judged, struct hm_error *err), void *user,
                          struct hm_error *err)
{
    struct hm_spool_record record;
    struct hm_spool_prompt prompt = {0};
    bool there;
    hm_status rc = hm_spool_rewind(&run->spool, err);
    while (!rc && !(rc = hm_spool_read(&run->spool, &record, &there, err)) && there) {
        struct hm_compare_judged judged = {.prompt = &prompt, .record = &record};
        if (record.kind == HM_SPOOL_PROMPT) prompt = record.prompt;
        if (record.kind == HM_SPOOL_FORK) judge_fork(run, &record.fork, &judged);
        if (record.kind == HM_SPOOL_POSITION) judge_position(run, &record.position, &judged);
        rc = see(user, &judged, err);
    }
    return rc;
}

// ---- counts

static void count_group(struct hm_compare_run *run, bool of_width, const char *name, int32_t width, enum hm_fork_class kind)
{
    struct hm_error none;
    struct hm_compare_group *g = hm_compare_group_of(run, of_width, name, width, &none);
    if (!g) return;
    g->forks++;
    g->unexplained += kind == HM_FORK_UNEXPLAINED;
}

static hm_status count(void *user, const struct hm_compare_judged *judged, struct hm_error *err)
{
    struct hm_compare_run *run = user;
    (void)err;
    if (judged->outlier) run->outliers++;
    if (judged->record->kind != HM_SPOOL_FORK) return HM_OK;
    const struct hm_spool_fork *fork = &judged->record->fork;
    run->classes[fork->fork.kind]++;
    if (*judged->prompt->category) count_group(run, false, judged->prompt->category, 0, fork->fork.kind);
    if (fork->width > 0) count_group(run, true, "", fork->width, fork->fork.kind);
    return HM_OK;
}

// Categories as they came, then widths.
static void sort_groups(struct hm_compare_run *run)
{
    for (size_t i = 1; i < run->groups; i++) {
        struct hm_compare_group *g = run->group[i];
        size_t at = i;
        for (; at > 0; at--) {
            const struct hm_compare_group *before = run->group[at - 1];
            bool after = before->of_width > g->of_width || (before->of_width && g->of_width && before->width > g->width);
            if (!after) break;
            run->group[at] = run->group[at - 1];
        }
        run->group[at] = g;
    }
}

hm_status hm_compare_judge(struct hm_compare_run *run, struct hm_error *err)
{
    double alpha = hm_ival_rational(run->options->alpha.value).lo;
    sort_groups(run);
    run->foreign = hm_noise_is_foreign(&run->noise);
    hm_status rc = hm_compare_each(run, count, run, err);
    if (rc) return rc;
    for (int s = 0; s < 2; s++) run->refuted[s] = run->likelihood[s].tokens && hm_likelihood_p_value(&run->likelihood[s]) <= alpha;
    bool nothing = run->prompts == 0 || (run->tokens == 0 && run->noise.lower.count == 0);
    bool found = run->foreign || run->classes[HM_FORK_UNEXPLAINED] || run->outliers || run->broken || run->refuted[0] ||
                 run->refuted[1];
    bool open = run->classes[HM_FORK_UNDECIDED] || run->parted || run->pairs.alone || nothing;
    run->exit = found ? 1 : open ? 3 : 0;
    return HM_OK;
}

// ---- for the printers

void hm_compare_quantiles(const struct hm_noise_run *run, struct hm_noise_quantile out[HM_NOISE_QUANTILES])
{
    static const struct { const char *name; unsigned per_mille; } of[HM_NOISE_QUANTILES] = {
        {"50", 500}, {"90", 900}, {"99", 990}, {"99.9", 999}, {"100", 1000}};
    for (int i = 0; i < HM_NOISE_QUANTILES; i++) {
        uint64_t rank = hm_histogram_rank(&run->lower, of[i].per_mille, 1000);
        struct hm_ival nats = {hm_histogram_lower(&run->lower, rank), hm_histogram_upper(&run->upper, rank)};
        if (of[i].per_mille == 1000) nats = (struct hm_ival){run->lower.most, run->upper.most};
        out[i] = (struct hm_noise_quantile){of[i].name, nats};
    }
}

static int by_length(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

uint32_t hm_compare_median(const struct hm_compare_run *run)
{
    if (run->prompts == 0) return 0;
    qsort(run->prefix, run->prompts, sizeof *run->prefix, by_length);
    return run->prefix[(run->prompts - 1) / 2];
}
