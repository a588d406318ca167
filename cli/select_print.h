// How `hallmark select` shows what a study found.
#ifndef HM_CLI_SELECT_PRINT_H
#define HM_CLI_SELECT_PRINT_H

#include "base/error.h"
#include "study/study.h"

#include <cjson/cJSON.h>
#include <stddef.h>

// What the tables' words mean, once; then a study.
void hm_select_markdown_head(void);
void hm_select_markdown(const struct hm_study_summary *summary, const struct hm_study_cell *cell, size_t count);

// One line a figure. The head first, once.
void hm_select_csv_head(void);
void hm_select_csv(const struct hm_study_summary *summary, const struct hm_study_cell *cell, size_t count);

// Adds the study to an array. HM_MEMORY.
hm_status hm_select_json(const struct hm_study_summary *summary, const struct hm_study_cell *cell, size_t count,
                         cJSON *studies, struct hm_error *err);

// Every candidate of a recording as one CSV line, for programs that fit something to it (tools/cross_fit.py). The head
// first, once.
void hm_select_candidates_head(void);
hm_status hm_select_candidates(struct hm_recording *recording, struct hm_error *err);

#endif
