// Private to reports/: the parts of the JSON report that have files of their own. Each writes one member with its name.
#ifndef HM_REPORTS_JSON_H
#define HM_REPORTS_JSON_H

#include "reports/figures.h"
#include "reports/output.h"

// The whole report (report_json.c): what hm_report_write_json writes, and what the CSV report is taken from.
void hm_json_report(struct hm_output *o, const struct hm_report *r);

void hm_json_sequences(struct hm_output *o, const struct hm_report *r);    // json_lists.c
void hm_json_blocks(struct hm_output *o, const struct hm_report *r);
void hm_json_missed(struct hm_output *o, const struct hm_report *r);
void hm_json_closest(struct hm_output *o, const struct hm_report *r);
void hm_json_trees(struct hm_output *o, const struct hm_report *r);        // json_trees.c
void hm_json_course(struct hm_output *o, const struct hm_report *r);       // json_course.c: the curve
void hm_json_course_group(struct hm_output *o, const struct hm_course_group *group);
void hm_json_findings(struct hm_output *o, const struct hm_findings *f);   // json_findings.c

// "key":"text" or "key":null, then what follows.
void hm_json_text(struct hm_output *o, const char *key, const char *text, const char *after);
// "key_lower":x,"key_upper":y; both null when not known.
void hm_json_ends(struct hm_output *o, const char *key, bool known, struct hm_ival value, const char *after);

extern const char *const HM_JSON_STATUS[HM_TOKEN_STATUSES]; // "certified", "covered_not_certified", ...

#endif
