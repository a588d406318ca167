// Reports: one pass over certificate logs, then a page for people (HTML, Markdown) and one for machines (JSON).
//
// A report summarises what logs say; it proves nothing. Proof is `hallmark verify`, and every report says so.
#ifndef HM_REPORTS_REPORT_H
#define HM_REPORTS_REPORT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hm_report;

hm_status hm_report_open(struct hm_report **out, struct hm_error *err);
void hm_report_close(struct hm_report *report); // NULL is allowed

// Reads one log to its end and adds it. A truncated log is added as far as it goes. All logs of a report must claim the
// same rules for the same m (HM_SHAPE otherwise). After a failure the report may only be closed.
hm_status hm_report_add(struct hm_report *report, const char *log_path, struct hm_error *err);

// Reads what `hallmark compare --json` or `hallmark audit --json` wrote, for the table of findings. A report may have
// findings and no log. After a failure the report may only be closed.
hm_status hm_report_add_findings(struct hm_report *report, const char *path, struct hm_error *err);

// Is some log of the report cut short?
bool hm_report_truncated(const struct hm_report *report);

// Each writes one file: complete under its name, or not at all. At least one log, or findings, must have been added.
hm_status hm_report_write_html(const struct hm_report *report, const char *path, struct hm_error *err);
hm_status hm_report_write_markdown(const struct hm_report *report, const char *path, struct hm_error *err);
hm_status hm_report_write_json(const struct hm_report *report, const char *path, struct hm_error *err);

// Tables of comma-separated values, one file each, in a folder that is made where there is none. Each is complete under its
// name or absent.
hm_status hm_report_write_csv(const struct hm_report *report, const char *folder, struct hm_error *err);

// Their names, i = 0, 1, ...; NULL behind the last.
const char *hm_report_csv_name(size_t i);

#ifdef __cplusplus
}
#endif

#endif
