// Acceptance regions, one picture for each step near the line: the plane of the gap and KL(p||q), with what is
// certified from the gap alone, what this step's row adds, its draft and its witness (region.h, docs/theory.md §2, §3).
#include "bounds/ival_math.h"
#include "reports/html.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = 46, RIGHT = 14, TOP = 24, HEIGHT = 310, BOTTOM = 40, CURVE = 48 };

struct plane {
    double gap, high; // at the right border and at the top
};

static double plane_x(const struct plane *p, double gap)
{
    return LEFT + (HM_PICTURE_WIDTH - LEFT - RIGHT) * fmin(fmax(gap / p->gap, 0), 1);
}

// A square root's axis: for small gaps the bound grows as the square of the gap, so its curve is nearly straight here.
static double plane_y(const struct plane *p, double nats)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - sqrt(fmin(fmax(nats / p->high, 0), 1)));
}

static struct plane plane_of(const struct hm_region *g)
{
    double high = fmax(hm_region_margin(g->k, g->m, hm_ival_point(1.0 / (double)g->k)).hi, g->level[0].lo) * 1.08;
    double draft = g->distance[0].hi * 1.08;
    return (struct plane){1.0 / (double)g->k, draft > high && draft < 2.5 * high ? draft : high};
}

static void put_axes(struct hm_output *o, const struct plane *p)
{
    static const double ticks[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20};
    double last = HEIGHT;
    hm_put(o, "<path class=\"grid\" d=\"");
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks && ticks[i] <= p->high; i++)
        if (last - plane_y(p, ticks[i]) >= 19) {
            last = plane_y(p, ticks[i]);
            hm_putf(o, "M%d %sH%d", LEFT, hm_units(last).text, HM_PICTURE_WIDTH - RIGHT);
        }
    hm_put(o, "\"/><g class=\"muted e\">");
    last = HEIGHT;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks && ticks[i] <= p->high; i++)
        if (last - plane_y(p, ticks[i]) >= 19) {
            last = plane_y(p, ticks[i]);
            hm_putf(o, "<text x=\"%d\" y=\"%s\">%s</text>", LEFT - 7, hm_units(last + 4).text,
                    hm_number_near(ticks[i], 2).text);
        }
    hm_put(o, "</g><g class=\"muted m\">");
    for (int i = 0; i <= 4; i++) {
        double gap = p->gap * i / 4;
        hm_putf(o, "<text x=\"%s\" y=\"%d\">%s</text>", hm_units(plane_x(p, gap)).text, HEIGHT - BOTTOM + 18,
                hm_number_near(gap, 2).text);
    }
    hm_putf(o,
            "<text x=\"%d\" y=\"%d\">gap p(k) \xe2\x88\x92 p(k+1)</text></g><text class=\"muted\" x=\"8\" "
            "y=\"12\">KLf, nats (square "
            "root)</text>\n",
            (HM_PICTURE_WIDTH + LEFT - RIGHT) / 2, HEIGHT - 5);
}

// What every row with that gap certifies: at its points not above the bound, and between two of them, which stand
// closer where the curve bends, by less than a tenth of a unit. Its right border is the largest gap, 1/k.
static void put_margin(struct hm_output *o, const struct plane *p, const struct hm_region *g)
{
    hm_putf(o, "<path class=\"line area\" d=\"M%d %d", LEFT, HEIGHT - BOTTOM);
    for (int i = 1; i <= CURVE; i++) {
        double rest = 1 - (double)i / CURVE, gap = p->gap * (1 - rest * rest * rest);
        hm_putf(o, "L%s %s", hm_units(plane_x(p, gap)).text,
                hm_units_up(plane_y(p, hm_region_margin(g->k, g->m, hm_ival_point(gap)).lo)).text);
    }
    hm_putf(o, "V%d\"/>\n", HEIGHT - BOTTOM);
}

static void put_label(struct hm_output *o, double x, double y, bool above, const char *text)
{
    double width = 6.6 * (double)strlen(text);
    bool right = x - 12 - width < LEFT; // the curve rises to the right, so the left is better where there is room
    hm_putf(o, "<text class=\"halo%s\" x=\"%s\" y=\"%s\">%s</text>", right ? "" : " e",
            hm_units(right ? x + 12 : x - 12).text,
            hm_units(fmin(fmax(above ? y - 7 : y + 15, TOP + 12), HEIGHT - BOTTOM - 5)).text, text);
}

// Digits that tell a distance from its level, however near it is.
static int digits_of(const struct hm_region *g, int i)
{
    double apart = fabs(g->level[i].lo - g->distance[i].hi) / fmax(g->level[i].lo, g->distance[i].hi);
    return apart > 0 && apart < 1 ? (int)fmin(fmax(4, ceil(-log10(apart)) + 1), 16) : 4;
}

static void put_points(struct hm_output *o, const struct plane *p, const struct hm_region *g)
{
    double x = plane_x(p, g->gap.lo), zero = HEIGHT - BOTTOM;
    double margin = plane_y(p, hm_region_margin(g->k, g->m, g->gap).lo), level = plane_y(p, g->level[0].lo);
    bool beyond = !(g->distance[0].hi <= p->high);
    double draft = beyond ? TOP : plane_y(p, g->distance[0].hi);
    hm_putf(o, "<path class=\"level\" d=\"M%d %sH%d\"/>", LEFT, hm_units_up(level).text, HM_PICTURE_WIDTH - RIGHT);
    hm_putf(o,
            "<path class=\"reach fails\" d=\"M%s %sV%d\"/><path class=\"reach row\" d=\"M%s %sV%s\"/><path "
            "class=\"reach gap\" "
            "d=\"M%s %sV%s\"/>\n",
            hm_units(x).text, hm_units_up(level).text, TOP, hm_units(x).text, hm_units_up(margin).text,
            hm_units_up(level).text, hm_units(x).text, hm_units(zero).text, hm_units_up(margin).text);
    hm_putf(o, "<path class=\"witness\" d=\"M%s %sl8 8l-8 8l-8 -8z\"/>", hm_units(x).text, hm_units(level - 8).text);
    if (beyond)
        hm_putf(o, "<path class=\"draft\" d=\"M%s %dl6 10h-12z\"/>", hm_units(x).text, TOP);
    else
        hm_putf(o, "<circle class=\"draft\" cx=\"%s\" cy=\"%s\" r=\"4.5\"/>", hm_units(x).text,
                hm_units_down(draft).text);
    put_label(o, x, level, g->certified, "witness");
    put_label(o, x, draft, !g->certified,
              !beyond                    ? "draft"
              : isinf(g->distance[0].hi) ? "draft: infinite"
                                         : "draft: above the picture");
    hm_put(o, "\n");
}

static void put_plane(struct hm_output *o, const struct hm_region *g)
{
    char title[256], description[512];
    struct plane p = plane_of(g);
    snprintf(title, sizeof title, "KL(p\xe2\x80\x96q) against the gap, for k = %lld and m = %lld, with one %s step",
             (long long)g->k, (long long)g->m, g->certified ? "certified" : "uncertified");
    snprintf(
        description, sizeof description,
        "The curve is what every row with that gap certifies. At this step's gap, at least %s, it is %s; the whole row "
        "certifies up to KLf* = %s, where the witness stands; the draft is at KLf = %s, %s.",
        hm_number_down(g->gap.lo, 4).text, hm_number_down(hm_region_margin(g->k, g->m, g->gap).lo, 4).text,
        hm_number_down(g->level[0].lo, 4).text, hm_number_up(g->distance[0].hi, 4).text,
        g->certified ? "below it" : "not below it");
    hm_picture_open(o, HEIGHT, title, description);
    put_axes(o, &p);
    put_margin(o, &p, g);
    put_points(o, &p, g);
    hm_put(o, "</svg>\n");
}

static void put_value(struct hm_output *o, const char *name, const char *value)
{
    hm_putf(o, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>", name, value);
}

static struct hm_number between(struct hm_ival x)
{
    struct hm_number out;
    struct hm_number low = hm_number_down(x.lo, 4), high = hm_number_up(x.hi, 4);
    snprintf(out.text, sizeof out.text, "%.20s \xe2\x80\x93 %.20s", low.text, high.text);
    return out;
}

static void put_values(struct hm_output *o, const struct hm_region *g)
{
    static const char *const names[3] = {"KLf, KLf*", "KLr, KLr*", "TV, TV*"};
    char text[160];
    hm_put(o, "<table class=\"tight\"><tbody>");
    snprintf(text, sizeof text, "%lld, %lld", (long long)g->k, (long long)g->m);
    put_value(o, "k, m", text);
    put_value(o, "p(k)", between(g->edge[0]).text);
    put_value(o, "p(k+1)", between(g->edge[1]).text);
    put_value(o, "gap", between(g->gap).text);
    snprintf(text, sizeof text, "\xe2\x89\xa5 %s", hm_number_down(hm_region_margin(g->k, g->m, g->gap).lo, 4).text);
    put_value(o, "KLf* from the gap alone", text);
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "\xe2\x89\xa4 %s, \xe2\x89\xa5 %s",
                 hm_number_up(g->distance[i].hi, digits_of(g, i)).text,
                 hm_number_down(g->level[i].lo, digits_of(g, i)).text);
        put_value(o, names[i], text);
    }
    put_value(o, "witness: level c", between(g->water[0]).text);
    hm_put(o, "</tbody></table>\n");
}

static void put_step(struct hm_output *o, const struct hm_report *r, const struct hm_region *g)
{
    hm_put(o, "<p class=\"note\">");
    if (g->index >= 0)
        hm_putf(o, "Row %lld", (long long)g->index);
    else
        hm_putf(o, "Step %lld of sequence %lld", (long long)g->t, (long long)g->sequence);
    if (r->log_count > 1) {
        hm_put(o, " of ");
        hm_put_html(o, r->logs[g->log].path);
    }
    hm_putf(o, ", line %zu", g->line);
    if (g->text[0]) {
        hm_put(o, ", token \xe2\x80\x9c");
        hm_put_html(o, g->text);
        hm_put(o, "\xe2\x80\x9d");
    }
    hm_putf(o, ". KLf %s %s, ", isinf(g->distance[0].hi) ? "is" : "\xe2\x89\xa4",
            isinf(g->distance[0].hi) ? "\xe2\x88\x9e" : hm_number_up(g->distance[0].hi, digits_of(g, 0)).text);
    hm_putf(o, "KLf* \xe2\x89\xa5 %s, from the gap alone \xe2\x89\xa5 %s: %s by KLf.</p><div class=\"pair\"><div>\n",
            hm_number_down(g->level[0].lo, digits_of(g, 0)).text,
            hm_number_down(hm_region_margin(g->k, g->m, g->gap).lo, 4).text,
            g->certified ? "certified" : "not certified");
    put_plane(o, g);
    hm_put(o, "</div><div>");
    if (hm_simplex_fits(g))
        hm_html_simplex_step(o, g);
    else
        put_values(o, g);
    hm_put(o, "</div></div>\n");
}

// "certified, 0.98": how far the draft is, as a multiple of what it must stay below.
static void tab_name(const struct hm_region *g, char out[96])
{
    double share = g->distance[0].hi / g->level[0].lo;
    int digits = digits_of(g, 0) - g->certified;
    snprintf(out, 96, "%s, %s", g->certified ? "certified" : "uncertified",
             isinf(share) ? "\xe2\x88\x9e"
                          : (g->certified ? hm_number_up(share, digits) : hm_number_near(share, digits)).text);
}

void hm_html_regions(struct hm_output *o, const struct hm_report *r, size_t index)
{
    const struct hm_regions *all = &r->claims[index].regions;
    const struct hm_region *shown[2 * HM_REGION_STEPS];
    char text[2 * HM_REGION_STEPS][96], group[32];
    const char *names[2 * HM_REGION_STEPS];
    size_t count = 0, each = index == r->lead ? HM_REGION_STEPS : 1;
    for (size_t i = 0; i < each; i++) // nearest first, certified and not in turn
        for (int certified = 1; certified >= 0; certified--)
            if (i < all->count[certified]) shown[count++] = &all->near[certified][i];
    if (!count) return;
    for (size_t i = 0; i < count; i++) {
        tab_name(shown[i], text[i]);
        names[i] = text[i];
    }
    hm_put(o, "<div class=\"panel\"><h3>Acceptance region</h3><p class=\"note\">");
    hm_html_claim_name(o, &r->claims[index]);
    hm_put(o, ". The steps nearest to the line between certified and not, each with its KLf as a multiple of its "
              "KLf*.</p><p class=\"note\">");
    hm_picture_key(o, HM_KEY_BAR("area"), "certified for every row with this gap");
    hm_picture_key(o, HM_KEY_LINE("reach row"), "certified by this row as well, up to KLf*");
    hm_picture_key(o, HM_KEY_LINE("reach fails"), "coverage can fail");
    hm_picture_key(o, HM_KEY_POINT("draft"), "the draft");
    hm_picture_key(o, "<path class=\"witness\" d=\"M11 0l6 6l-6 6l-6 -6z\"/>", "the witness, at which it does");
    hm_put(o, "</p>\n");
    snprintf(group, sizeof group, "region%zu", index);
    hm_tabs_open(o, group, "Which step", names, count);
    for (size_t i = 0; i < count; i++) {
        hm_tab_open(o);
        put_step(o, r, shown[i]);
        hm_tab_close(o);
    }
    hm_tabs_close(o);
    hm_picture_made(
        o, r,
        "Curve: [k&psi;(my) + m&psi;(&minus;ky)]/(k+m), &psi;(v) = (1+v)ln(1+v) &minus; v, at the gap y; level: the "
        "logged KLf*, lower end; draft: the logged KL(p\xe2\x80\x96q), upper end; gap: the logged one, or from the two "
        "edge logits and the logged lse. A certificate holds strictly below the level; the witness stands on it.",
        "2, 3", (long)index, "regions");
    hm_put(o, "</div>\n");
}
