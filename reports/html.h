// Private to reports/: the parts of the HTML page, one function per section, in the order of the page.
#ifndef HM_REPORTS_HTML_H
#define HM_REPORTS_HTML_H

#include "reports/figures.h"
#include "reports/output.h"

// reports/{report,figures}.{css,js}, embedded by reports/sources.cmake; zero-terminated.
extern const char hm_report_css[], hm_report_js[];

enum { HM_HTML_MOST_CHARTS = 24 }; // claims with charts of their own; tables list all

void hm_html_summary(struct hm_output *o, const struct hm_report *r);      // html_summary.c: the first screen
void hm_html_navigation(struct hm_output *o, const struct hm_report *r);
void hm_html_claims(struct hm_output *o, const struct hm_report *r);       // html_claims.c
void hm_html_theory(struct hm_output *o, const struct hm_report *r);       // html_theory.c
void hm_html_text(struct hm_output *o, const struct hm_report *r);         // html_text.c
void hm_html_token_data(struct hm_output *o, const struct hm_report *r);
void hm_html_acceptance(struct hm_output *o, const struct hm_report *r);   // html_sections.c
void hm_html_speculative(struct hm_output *o, const struct hm_report *r);  // html_speculative.c
void hm_html_cost(struct hm_output *o, const struct hm_report *r);
void hm_html_closest(struct hm_output *o, const struct hm_report *r);
void hm_html_groups(struct hm_output *o, const struct hm_report *r);
void hm_html_run(struct hm_output *o, const struct hm_report *r);          // html_run.c
void hm_html_how(struct hm_output *o, const struct hm_report *r);

void hm_chart_depths(struct hm_output *o, const struct hm_acceptance *a);  // html_charts.c

// Pictures of one claim. The first claims have all of their variants, later ones the leading one only.
enum hm_detail { HM_DETAIL_LEAD, HM_DETAIL_FULL };
enum { HM_HTML_FULL_CHARTS = 8 };
void hm_html_known(struct hm_output *o, const struct hm_report *r);        // html_known.c
void hm_html_bands(struct hm_output *o, const struct hm_report *r, size_t claim, enum hm_detail detail);
void hm_html_requirement(struct hm_output *o, const struct hm_report *r, size_t claim, enum hm_detail detail);

// "greedy, m = tree", escaped.
void hm_html_claim_name(struct hm_output *o, const struct hm_claim_figures *f);
// A word of a command line, quoted for a shell where needed, escaped for HTML.
void hm_html_shell_word(struct hm_output *o, const char *word);
// A bar of statuses in proportion; class is "stack" or "stack thin".
void hm_html_stack(struct hm_output *o, const char *class_name, const uint64_t status[HM_TOKEN_STATUSES]);
const char *hm_html_status_text(unsigned status); // "certified", "covered, not certified", ...

#endif
