// The pictures of the HTML page: inline SVG, 440 units wide so that 12-unit text stays readable on a phone; colours and
// fonts come from report.css. Each has a title that says what it shows; the numbers stand in it or in a table beside
// it.
#include "reports/html.h"
#include "reports/number.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 440, LABEL = 94, VALUE = 112, ROW = 24 };

static void open_chart(struct hm_output *o, int height, const char *title)
{
    hm_putf(o, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, height);
    hm_put_html(o, title);
    hm_put(o, "</title>\n");
}

// Tenths of a unit are plenty for a picture, and integers print the same in every locale.
static struct hm_number units(double x)
{
    return hm_number_near(floor(x * 10 + 0.5) / 10, 6);
}

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
                units(fmax(length, 1.5)).text);
    hm_putf(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - VALUE + 10, y + 16, text);
}

void hm_chart_depths(struct hm_output *o, const struct hm_acceptance *a)
{
    size_t depths = 0;
    int row = 0, span = WIDTH - LABEL - VALUE;
    while (depths + 1 < HM_REPORT_DEPTHS && a->offered[depths + 1]) depths++;
    open_chart(o, (int)depths * ROW + 4,
               "Share of rounds that accept at least that many draft tokens, and the share among the rounds that "
               "reached the depth before");
    for (size_t d = 1; d <= depths; d++, row++) {
        struct hm_number label = hm_number_count(d);
        char text[64];
        snprintf(text, sizeof text, "depth %s", label.text);
        put_bar(o, row, text, a->reach[d], a->rounds, hm_number_percent(a->reach[d], a->rounds).text);
        if (!a->reach[d - 1]) continue;
        double x = LABEL + span * (double)a->reach[d] / (double)a->reach[d - 1];
        hm_putf(o, "<path class=\"mark\" d=\"M%s %dv18\"/>\n", units(x).text, row * ROW + 3);
    }
    hm_put(o, "</svg>\n");
}

static void band_label(const double edges[HM_REPORT_BANDS], size_t i, char out[128])
{
    struct hm_number from = hm_number_near(edges[i], 4);
    if (i + 1 == HM_REPORT_BANDS)
        snprintf(out, 128, "\xe2\x89\xa5 %s", from.text);
    else
        snprintf(out, 128, "%s \xe2\x80\x93 %s", from.text, hm_number_near(edges[i + 1], 4).text);
}

void hm_chart_bands(struct hm_output *o, const struct hm_claim_figures *f)
{
    const struct hm_band *bands = f->gap_steps ? f->gap : f->logit;
    const double *edges = f->gap_steps ? HM_GAP_EDGES : HM_LOGIT_EDGES;
    open_chart(o, HM_REPORT_BANDS * ROW + 4, "Share of certified steps by margin");
    for (size_t i = 0; i < HM_REPORT_BANDS; i++) {
        char label[128], text[128];
        band_label(edges, i, label);
        if (bands[i].steps)
            snprintf(text, sizeof text, "%s of %s", hm_number_percent(bands[i].certified, bands[i].steps).text,
                     hm_number_count(bands[i].steps).text);
        else
            snprintf(text, sizeof text, "no steps");
        put_bar(o, (int)i, label, bands[i].certified, bands[i].steps, text);
    }
    hm_put(o, "</svg>\n");
}

// The plane of the requirement curve: x runs over powers of ten, y from all (top) to none.
struct plane {
    int from, to; // powers of ten at the left and right border
};

enum { LEFT = 46, RIGHT = 10, TOP = 10, HEIGHT = 236, BOTTOM = 38 };

static double plane_x(const struct plane *p, double value)
{
    double share = (log10(value) - p->from) / (p->to - p->from);
    return LEFT + (WIDTH - LEFT - RIGHT) * fmin(fmax(share, 0), 1);
}

static double plane_y(double share)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
}

static void put_axes(struct hm_output *o, const struct plane *p)
{
    for (int i = 0; i <= 4; i++) {
        double y = plane_y(i / 4.0);
        hm_putf(o,
                "<path class=\"grid\" d=\"M%d %sH%d\"/><text class=\"muted\" x=\"%d\" y=\"%s\" "
                "text-anchor=\"end\">%d%%</text>\n",
                LEFT, units(y).text, WIDTH - RIGHT, LEFT - 6, units(y + 4).text, i * 25);
    }
    for (int e = p->from; e <= p->to; e++)
        hm_putf(o, "<text class=\"muted\" x=\"%s\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                units(plane_x(p, pow(10, e))).text, HEIGHT - BOTTOM + 17, hm_number_near(pow(10, e), 2).text);
    hm_putf(o, "<text class=\"muted\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">x, nats</text>\n", (WIDTH + LEFT) / 2,
            HEIGHT - 4);
}

// The share of values that are at least x, drawn as steps: exact at every bin edge.
static void put_curve(struct hm_output *o, const struct plane *p, const struct hm_histogram *h, const char *class_name)
{
    size_t bin = 0;
    while (bin < HM_HISTOGRAM_BINS && hm_histogram_edge(bin) < pow(10, p->from)) bin++;
    uint64_t left = hm_histogram_at_least(h, bin);
    hm_putf(o, "<path class=\"%s\" d=\"M%d %s", class_name, LEFT, units(plane_y((double)left / (double)h->count)).text);
    for (; bin < HM_HISTOGRAM_BINS && hm_histogram_edge(bin + 1) <= pow(10, p->to); bin++) {
        left -= h->bin[bin];
        if (h->bin[bin])
            hm_putf(o, "H%sV%s", units(plane_x(p, hm_histogram_edge(bin + 1))).text,
                    units(plane_y((double)left / (double)h->count)).text);
    }
    hm_putf(o, "H%d\"/>\n", WIDTH - RIGHT);
}

void hm_chart_requirement(struct hm_output *o, const struct hm_claim_figures *f)
{
    struct plane p = {-4, 1};
    const struct hm_histogram *both[] = {&f->klf, &f->draft};
    for (int i = 0; i < 2; i++) { // from the lower tenth of both to their largest, in whole powers of ten
        double low = hm_histogram_lower(both[i], hm_histogram_rank(both[i], 5, 100)), high = both[i]->most;
        if (low > 0 && floor(log10(low)) > -9 && floor(log10(low)) < p.from) p.from = (int)floor(log10(low));
        if (high < 1e3 && high > 0 && ceil(log10(high)) > p.to) p.to = (int)ceil(log10(high));
    }
    open_chart(o, HEIGHT,
               f->draft.count ? "Share of steps whose requirement KLf* is at least x, and share of steps whose draft "
                                "has a KLf of at least x"
                              : "Share of steps whose requirement KLf* is at least x");
    put_axes(o, &p);
    if (f->draft.count) put_curve(o, &p, &f->draft, "line second");
    put_curve(o, &p, &f->klf, "line");
    hm_put(o, "</svg>\n");
}
