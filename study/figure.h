// The figures of the study's tables, private to study/: each is a small formula on means of series, so that the bootstrap
// evaluates differences, shares and thresholds on whole resamples.
#ifndef HM_STUDY_FIGURE_H
#define HM_STUDY_FIGURE_H

#include "study/sample.h"
#include "study/study.h"

enum hm_figure_kind {
    HM_FIGURE_MEAN,       // a
    HM_FIGURE_DIFFERENCE, // a - b
    HM_FIGURE_SHARE,      // (a - b) / (c - b)
    HM_FIGURE_REACH,      // least i with curve a at i >= b
    HM_FIGURE_CAP,        // least i, in fractions, with curve a at i = b
    HM_FIGURE_AT_CAP,     // curve c at that i
    HM_FIGURE_BEYOND_CAP  // d minus curve c at that i
};

struct hm_figure {
    enum hm_figure_kind kind;
    size_t a, b, c, d; // series; a curve is its first series
    size_t length;     // of curves
};

struct hm_figure hm_figure_mean(size_t a);
struct hm_figure hm_figure_difference(size_t a, size_t b);
struct hm_figure hm_figure_share(size_t a, size_t b, size_t c);

double hm_figure_value(const struct hm_figure *figure, const double *mean);

// Value and the 2.5 and 97.5 percentiles over resamples. means: [1 + resamples][series]; scratch [resamples].
void hm_figure_interval(const struct hm_figure *figure, const double *means, size_t resamples, size_t series,
                        double *scratch, double *value, double *low, double *high);

// E[A] of the rules at one context and budget; verified nodes where the rule does not fill the budget.
struct hm_rule_figures {
    double draft, root, oracle, root_draw, root_draw_size, pearl, pearl_size;
};

// A study in the making: tables add their series and cells when it opens, their values at every round.
struct hm_study {
    struct hm_study_options options;
    struct hm_sample sample;
    struct hm_context context;
    char *target, *drafter, *temperature, *probability_temperature, *top_p;
    uint32_t top_k, vocab, width, levels; // width, levels: of pools
    bool greedy;
    size_t curve;               // length of curves: candidates of the largest pool, and one
    size_t rounds, candidates;
    struct hm_study_cell *cell;
    struct hm_figure *figure;   // of each cell
    size_t cells, cell_room, figure_room;
    struct hm_rule_figures rule[HM_STUDY_BUDGETS]; // of the context loaded, by budget
    double *scratch;            // curves [4][curve]
    // First series of each table, by budget where there is one.
    size_t realised, traverse[HM_STUDY_BUDGETS], scored[HM_STUDY_BUDGETS];
    size_t rules[HM_STUDY_BUDGETS], depth[HM_STUDY_BUDGETS], limited[HM_STUDY_BUDGETS], split[HM_STUDY_BUDGETS];
    size_t draft_curve, root_curve, pearl_curve, size_curve;
    uint32_t depths;            // exact factors to try, at most
    size_t address, gain[HM_STUDY_BUDGETS], matched;
    struct hm_part *part;       // tasks, categories, late rounds [parts]
    size_t parts, part_room;
};

// Adds a cell. Sets study->sample.failed when memory is short.
void hm_study_cell(struct hm_study *study, int group, const char *table, const char *row, const char *column,
                   struct hm_figure figure);

// Each group: its series and cells, once the sizes are known; its values at the context loaded.
void hm_traversal_plan(struct hm_study *study);
void hm_traversal_add(struct hm_study *study, size_t prompt, uint32_t decode_budget);
void hm_selection_plan(struct hm_study *study);
void hm_selection_add(struct hm_study *study, size_t prompt);
void hm_address_plan(struct hm_study *study);
void hm_address_add(struct hm_study *study, size_t prompt);
void hm_parts_plan(struct hm_study *study); // last of all: which parts there are is known then
void hm_parts_add(struct hm_study *study, size_t prompt, const char *task, const char *category);

#endif
