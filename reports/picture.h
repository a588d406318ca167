// Private to reports/: what the pictures of the HTML page share. A picture is inline SVG, 440 units wide so that 12-unit
// text stays readable on a phone; its colours come from report.css and figures.css. It says in a title what it shows and
// in a description what is to be seen; beneath it stands how it is computed and what redoes it.
#ifndef HM_REPORTS_PICTURE_H
#define HM_REPORTS_PICTURE_H

#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

enum { HM_PICTURE_WIDTH = 440 };

// <svg ...><title>..</title><desc>..</desc>; the texts are ours, in HTML. The caller writes "</svg>".
void hm_picture_open(struct hm_output *o, int height, const char *title, const char *description);

// Tenths of a unit, to nearest, down, up. Down and up keep a bound on its side of what is drawn.
struct hm_number hm_units(double x);
struct hm_number hm_units_down(double x);
struct hm_number hm_units_up(double x);

// "How computed": a formula in words (HTML), sections of docs/theory.md ("2, 3"; NULL: none), and the command that gives the
// numbers, with the JSON member they stand under; claim: its index, or -1.
void hm_picture_made(struct hm_output *o, const struct hm_report *r, const char *formula, const char *sections, long claim,
                     const char *member);

// A sample of a line, a bar or a point, with its meaning.
void hm_picture_key(struct hm_output *o, const char *shape, const char *text);
#define HM_KEY_LINE(kind) "<path class=\"" kind "\" d=\"M0 6H22\"/>"
#define HM_KEY_BAR(kind) "<rect class=\"" kind "\" y=\"1\" width=\"22\" height=\"10\" rx=\"2\"/>"
#define HM_KEY_MARK(kind) "<path class=\"" kind "\" d=\"M11 0v12\"/>"
#define HM_KEY_POINT(kind) "<circle class=\"" kind "\" cx=\"11\" cy=\"6\" r=\"4.5\"/>"

// Panels of which one is shown, chosen by radio buttons: without a script, with the keyboard, and in print as on the
// screen. `group` is unique on the page. Between the calls the caller writes each panel: hm_tab_open(o), ..., hm_tab_close(o).
void hm_tabs_open(struct hm_output *o, const char *group, const char *legend, const char *const *names, size_t count);
void hm_tab_open(struct hm_output *o);
void hm_tab_close(struct hm_output *o);
void hm_tabs_close(struct hm_output *o);

#endif
