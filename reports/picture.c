// What the pictures of the HTML page share: see picture.h.
#include "reports/picture.h"

#include "reports/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_COMMAND = 200 }; // bytes of file names in a command under a picture

void hm_picture_open(struct hm_output *o, int height, const char *title, const char *description)
{
    hm_putf(o, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title><desc>%s</desc>\n", HM_PICTURE_WIDTH, height,
            title, description);
}

// Integers print the same in every locale. What is no number, or off any picture, is drawn at a border.
static struct hm_number tenths(double x)
{
    struct hm_number out;
    long whole = x > -1e6 ? x < 1e6 ? (long)x : 1000000 : -1000000;
    const char *sign = whole < 0 ? "-" : "";
    if (whole < 0) whole = -whole;
    if (whole % 10)
        snprintf(out.text, sizeof out.text, "%s%ld.%ld", sign, whole / 10, whole % 10);
    else
        snprintf(out.text, sizeof out.text, "%s%ld", sign, whole / 10);
    return out;
}

struct hm_number hm_units(double x)
{
    return tenths(floor(x * 10 + 0.5));
}

struct hm_number hm_units_down(double x)
{
    return tenths(floor(x * 10));
}

struct hm_number hm_units_up(double x)
{
    return tenths(ceil(x * 10));
}

void hm_picture_made(struct hm_output *o, const struct hm_report *r, const char *formula, const char *sections,
                     long claim, const char *member)
{
    size_t names = 0;
    for (size_t i = 0; i < r->log_count; i++) names += strlen(r->logs[i].path) + 1;
    hm_putf(o, "<details class=\"made\"><summary>How computed</summary><p>%s", formula);
    if (sections) hm_putf(o, " Theory: docs/theory.md \xc2\xa7%s.", sections);
    hm_put(o, " The numbers: ");
    if (names > LONGEST_COMMAND) {
        hm_put(o, "the command under <a href=\"#how\">Method</a> with <code>--json -</code>");
    } else {
        hm_put(o, "<code>hallmark report");
        for (size_t i = 0; i < r->log_count; i++) {
            hm_put(o, " ");
            hm_html_shell_word(o, r->logs[i].path);
        }
        hm_put(o, " --json -</code>");
    }
    hm_put(o, ", under <code>");
    if (claim >= 0) hm_putf(o, "claims[%ld].", claim);
    hm_putf(o, "%s</code>.</p></details>\n", member);
}

void hm_picture_key(struct hm_output *o, const char *shape, const char *text)
{
    hm_putf(o, "<span class=\"key\"><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\">%s</svg>%s</span>", shape, text);
}

void hm_tabs_open(struct hm_output *o, const char *group, const char *legend, const char *const *names, size_t count)
{
    hm_putf(o, "<div class=\"tabs\" role=\"group\" aria-label=\"%s\">", legend);
    for (size_t i = 0; i < count; i++)
        hm_putf(o, "<input type=\"radio\" name=\"%s\" id=\"%s-%zu\"%s><label for=\"%s-%zu\">%s</label>", group, group,
                i, i ? "" : " checked", group, i, names[i]);
    hm_put(o, "\n");
}

void hm_tab_open(struct hm_output *o)
{
    hm_put(o, "<div class=\"tab\">");
}

void hm_tab_close(struct hm_output *o)
{
    hm_put(o, "</div>\n");
}

void hm_tabs_close(struct hm_output *o)
{
    hm_put(o, "</div>\n");
}
