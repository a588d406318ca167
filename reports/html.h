// Private to reports/: the parts of the HTML page, one function per section, in the order of the page.
#ifndef HM_REPORTS_HTML_H
#define HM_REPORTS_HTML_H

#include "reports/figures.h"
#include "reports/output.h"

// reports/{report,figures}.{css,js}, embedded by reports/sources.cmake; zero-terminated.
extern const char hm_report_css[], hm_report_js[];

enum {
    HM_HTML_MOST_CHARTS = 12, // claims with charts of their own; tables list all
    HM_HTML_MOST_TREES = 12   // rounds drawn
};

void hm_html_summary(struct hm_output *o, const struct hm_report *r);      // html_summary.c: the first screen
void hm_html_navigation(struct hm_output *o, const struct hm_report *r);
void hm_html_claims(struct hm_output *o, const struct hm_report *r);       // html_claims.c
void hm_html_theory(struct hm_output *o, const struct hm_report *r);       // html_theory.c
void hm_html_text(struct hm_output *o, const struct hm_report *r);         // html_text.c
void hm_html_token_data(struct hm_output *o, const struct hm_report *r);
void hm_html_missed(struct hm_output *o, const struct hm_report *r);       // html_missed.c
void hm_html_acceptance(struct hm_output *o, const struct hm_report *r);   // html_sections.c
void hm_html_trees(struct hm_output *o, const struct hm_report *r);        // html_trees.c
void hm_html_course(struct hm_output *o, const struct hm_report *r);       // html_course.c
void hm_html_speculative(struct hm_output *o, const struct hm_report *r);  // html_speculative.c
void hm_html_cost(struct hm_output *o, const struct hm_report *r);
void hm_html_findings_alone(struct hm_output *o, const struct hm_report *r); // html_summary.c: the first screen without a log
void hm_html_findings(struct hm_output *o, const struct hm_report *r);     // html_findings.c
void hm_html_closest(struct hm_output *o, const struct hm_report *r);
void hm_html_groups(struct hm_output *o, const struct hm_report *r);
void hm_html_run(struct hm_output *o, const struct hm_report *r);          // html_run.c
void hm_html_how(struct hm_output *o, const struct hm_report *r);

void hm_chart_depths(struct hm_output *o, const struct hm_acceptance *a);  // html_charts.c

// Pictures of one claim. The first claims have all of their variants, later ones the leading one only.
enum hm_detail { HM_DETAIL_LEAD, HM_DETAIL_FULL };
enum { HM_HTML_FULL_CHARTS = 4 };
void hm_html_known(struct hm_output *o, const struct hm_report *r);        // html_known.c
void hm_html_bands(struct hm_output *o, const struct hm_report *r, size_t claim, enum hm_detail detail);
void hm_html_requirement(struct hm_output *o, const struct hm_report *r, size_t claim, enum hm_detail detail);
void hm_html_regions(struct hm_output *o, const struct hm_report *r, size_t claim);   // html_region.c
bool hm_simplex_fits(const struct hm_region *region);                                  // html_simplex.c: greedy-like, k = m = 1
void hm_html_simplex_step(struct hm_output *o, const struct hm_region *region);
void hm_html_examples(struct hm_output *o, const struct hm_report *r);

enum hm_chart_course { HM_CHART_VARIATION, HM_CHART_REGRET };
void hm_chart_course(struct hm_output *o, const struct hm_report *r, enum hm_chart_course what); // chart_course.c

// Bounds on finished sequences at the report's risk, and the better of the two finite-sample ones (html_course.c).
void hm_html_bounds_of(const struct hm_fidelity_sum *sum, struct hm_fidelity *f, double *best);

// "greedy, m = tree", escaped.
void hm_html_claim_name(struct hm_output *o, const struct hm_claim_figures *f);
// A figure with the place of its unrounded value in the JSON report, so that tools/check_report can compare the two: a
// path as "claims.0.certified", and with `of` the path of what it is a share of (else NULL).
void hm_html_value(struct hm_output *o, const char *text, const char *of, const char *path, ...)
    __attribute__((format(printf, 4, 5)));
// The command that shows steps t to `to` of a sequence, or an audit's rows (sequence -1), as code: hallmark inspect LOG
// --step S:T-U. to: -1 for one alone.
void hm_html_inspect(struct hm_output *o, const struct hm_report *r, size_t log, int64_t sequence, int64_t t, int64_t to);
// The commands that compare this report's logs, or its first log with another run, and bring the answer to a report.
void hm_html_compare_command(struct hm_output *o, const struct hm_report *r);
// A word of a command line, quoted for a shell where needed, escaped for HTML.
void hm_html_shell_word(struct hm_output *o, const char *word);
// A bar of statuses in proportion; class is "stack" or "stack thin".
void hm_html_stack(struct hm_output *o, const char *class_name, const uint64_t status[HM_TOKEN_STATUSES]);
const char *hm_html_status_text(unsigned status); // "certified", "covered, not certified", ...

#endif
