// How deep rounds go: bars (picture.h).
#include "reports/html.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = HM_PICTURE_WIDTH, LABEL = 94, VALUE = 112, ROW = 24 };

// A labelled bar: part of whole, with its text at the right.
static void put_bar(struct hm_output *o, int row, const char *label, uint64_t part, uint64_t whole, const char *text)
{
    int y = row * ROW, span = WIDTH - LABEL - VALUE;
    double length = whole ? span * (double)part / (double)whole : 0;
    hm_putf(o, "<text class=\"muted\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABEL - 10, y + 16);
    hm_put_html(o, label);
    hm_putf(o, "</text><rect class=\"track\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\" rx=\"3\"/>", LABEL, y + 5,
            span);
    if (part)
        hm_putf(o, "<rect class=\"fill\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"14\" rx=\"3\"/>", LABEL, y + 5,
                hm_units(fmax(length, 1.5)).text);
    hm_putf(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - VALUE + 10, y + 16, text);
}

void hm_chart_depths(struct hm_output *o, const struct hm_acceptance *a)
{
    size_t depths = 0;
    int row = 0, span = WIDTH - LABEL - VALUE;
    while (depths + 1 < HM_REPORT_DEPTHS && a->offered[depths + 1]) depths++;
    hm_picture_open(o, (int)depths * ROW + 4,
                    "Share of rounds that accept at least that many draft tokens, and the share among the rounds that "
                    "reached the depth before",
                    "One bar for each depth; the numbers stand in the table beside it.");
    for (size_t d = 1; d <= depths; d++, row++) {
        struct hm_number label = hm_number_count(d);
        char text[64];
        snprintf(text, sizeof text, "depth %s", label.text);
        put_bar(o, row, text, a->reach[d], a->rounds, hm_number_percent(a->reach[d], a->rounds).text);
        if (!a->reach[d - 1]) continue;
        double x = LABEL + span * (double)a->reach[d] / (double)a->reach[d - 1];
        hm_putf(o, "<path class=\"mark\" d=\"M%s %dv18\"/>\n", hm_units(x).text, row * ROW + 3);
    }
    hm_put(o, "</svg>\n");
}
