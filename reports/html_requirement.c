// The requirement curves of a claim: for KL(p||q), KL(q||p) and TV, at which share of the steps a draft may have x and
// is still certified, with the draft that was used laid over it (requirement.h, docs/theory.md §2). They need target
// rows only.
#include "reports/html.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>

enum { LEFT = 46, RIGHT = 12, TOP = 12, HEIGHT = 250, BOTTOM = 40 };

static const struct {
    const char *name, *unit, *member;
    int most; // power of ten that the values do not exceed
} KIND[HM_REQUIREMENTS] = {
    {"KLf", "nats", "requirement.klf", 3}, {"KLr", "nats", "requirement.klr", 3}, {"TV", "", "requirement.tv", 0}};

static const unsigned SHARES[] = {99, 90, 50};

// The plane: x runs over powers of ten, y from all (top) to none.
struct plane {
    int from, to; // powers of ten at the left and right border
};

static double plane_x(const struct plane *p, double value)
{
    double share = (log10(value) - p->from) / (p->to - p->from);
    return LEFT + (HM_PICTURE_WIDTH - LEFT - RIGHT) * fmin(fmax(share, 0), 1);
}

static double plane_y(double share)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
}

// From the lowest hundredth of the requirement, and the lowest fiftieth of the draft, to their largest, in whole powers
// of ten; two at least.
static struct plane plane_of(const struct hm_requirement *q, int most)
{
    const struct hm_histogram *both[] = {q->level, q->draft};
    double low = INFINITY, high = 0;
    for (int i = 0; i < 2; i++) {
        if (!both[i]->count) continue;
        double value =
            i ? hm_histogram_lower(q->draft, hm_histogram_rank(q->draft, 2, 100)) : hm_requirement_at(q->level, 99);
        if (value > 0) low = fmin(low, value);
        value = both[i]->most;
        if (isinf(value)) value = hm_histogram_lower(both[i], hm_histogram_rank(both[i], 98, 100));
        if (!isinf(value)) high = fmax(high, value);
    }
    struct plane p = {-4, most < 1 ? most : 1};
    if (high > 0) p.to = (int)fmin(fmax(ceil(log10(high)), -6), most);
    if (!isinf(low)) p.from = (int)fmax(floor(log10(low)), -9);
    if (p.from > p.to - 2) p.from = p.to - 2;
    return p;
}

static void put_axes(struct hm_output *o, const struct plane *p, int kind)
{
    hm_put(o, "<path class=\"grid\" d=\"");
    for (int i = 0; i <= 4; i++)
        hm_putf(o, "M%d %sH%d", LEFT, hm_units(plane_y(i / 4.0)).text, HM_PICTURE_WIDTH - RIGHT);
    hm_put(o, "\"/><path class=\"tick\" d=\"");
    for (int e = p->from; e < p->to; e++)
        for (int digit = 1; digit < 10; digit++)
            hm_putf(o, "M%s %dv%d", hm_units(plane_x(p, digit * pow(10, e))).text, HEIGHT - BOTTOM, digit == 1 ? 6 : 3);
    hm_putf(o, "M%d %dv6\"/><g class=\"muted e\">", HM_PICTURE_WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (int i = 0; i <= 4; i++)
        hm_putf(o, "<text x=\"%d\" y=\"%s\">%d%%</text>", LEFT - 7, hm_units(plane_y(i / 4.0) + 4).text, i * 25);
    hm_put(o, "</g><g class=\"muted m\">");
    int every = p->to - p->from > 6 ? 2 : 1;
    for (int e = p->to; e >= p->from; e -= every)
        hm_putf(o, "<text x=\"%s\" y=\"%d\">%s</text>",
                hm_units(fmin(plane_x(p, pow(10, e)), HM_PICTURE_WIDTH - 14)).text, HEIGHT - BOTTOM + 19,
                hm_number_near(pow(10, e), 2).text);
    hm_putf(o, "<text x=\"%d\" y=\"%d\">x, %s%s%s</text></g>\n", (HM_PICTURE_WIDTH + LEFT - RIGHT) / 2, HEIGHT - 5,
            KIND[kind].unit, KIND[kind].unit[0] ? " of " : "", KIND[kind].name);
}

// The share of values that are at least x, as steps: at every point the count is exact, and between two of them a
// requirement is drawn no higher than it is, a draft no lower.
enum side { NO_HIGHER, NO_LOWER };
static void put_curve(struct hm_output *o, const struct plane *p, const struct hm_histogram *h, enum side side,
                      const char *class_name)
{
    struct hm_curve c = hm_curve_between(pow(10, p->from), pow(10, p->to));
    uint64_t before = hm_histogram_at_least(h, c.first);
    double n = (double)h->count;
    hm_putf(o, "<path class=\"%s\" d=\"M%d %s", class_name, LEFT, hm_units(plane_y((double)before / n)).text);
    for (size_t bin = c.first; bin < c.last;) {
        size_t next = hm_curve_next(&c, bin);
        uint64_t count = hm_curve_count(h, bin, before, next);
        if (count != before)
            hm_putf(o, "H%sV%s", hm_units(plane_x(p, hm_histogram_edge(side == NO_HIGHER ? bin : next))).text,
                    hm_units(plane_y((double)count / n)).text);
        before = count;
        bin = next;
    }
    hm_putf(o, "H%d\"/>\n", HM_PICTURE_WIDTH - RIGHT);
}

// How many of the draft's steps are surely below x: counted at the last edge that is not above x.
static uint64_t surely_below(const struct hm_histogram *draft, double x)
{
    size_t bin = 0;
    if (!(x >= hm_histogram_edge(0))) return 0;
    while (bin < HM_HISTOGRAM_BINS && hm_histogram_edge(bin + 1) <= x) bin++;
    return draft->count - hm_histogram_at_least(draft, bin);
}

// Points of the curve with their x, at the shares that the table lists too. Their text stands above the curve, or below
// it where the draft's curve is above.
static void put_points(struct hm_output *o, const struct plane *p, const struct hm_requirement *q)
{
    for (size_t i = 0; i < sizeof SHARES / sizeof *SHARES; i++) {
        double at = hm_requirement_at(q->level, SHARES[i]);
        if (!(at >= pow(10, p->from) && at <= pow(10, p->to))) continue;
        double x = plane_x(p, at), y = plane_y(SHARES[i] / 100.0), n = (double)q->draft->count;
        bool below = x > LEFT + 95 && (n - (double)surely_below(q->draft, at)) * 100 > n * SHARES[i];
        bool border = !below && x > HM_PICTURE_WIDTH - 95;
        hm_putf(o, "<circle class=\"dot-level\" cx=\"%s\" cy=\"%s\" r=\"3.5\"/>", hm_units(x).text, hm_units(y).text);
        hm_putf(o, "<text class=\"halo%s\" x=\"%s\" y=\"%s\">%u%%: %s</text>\n", below || border ? " e" : "",
                hm_units(below    ? x - 8
                         : border ? HM_PICTURE_WIDTH - 2
                                  : x + 8)
                    .text,
                hm_units(below ? y + 14 : y - 5).text, SHARES[i], hm_number_down(at, 3).text);
    }
}

static void put_table(struct hm_output *o, const struct hm_requirement *q, size_t claim, int kind)
{
    hm_putf(o, "<table class=\"tight\"><thead><tr><th>certified by %s</th><th>below%s%s</th>", KIND[kind].name,
            KIND[kind].unit[0] ? ", " : "", KIND[kind].unit);
    hm_put(o, q->draft->count ? "<th>draft is below at</th></tr></thead><tbody>" : "</tr></thead><tbody>");
    for (size_t i = 0; i < sizeof SHARES / sizeof *SHARES; i++) {
        double at = hm_requirement_at(q->level, SHARES[i]);
        hm_putf(o, "<tr><th scope=\"row\">%u%% of steps</th><td>", SHARES[i]);
        if (isinf(at) || !(at > 0))
            hm_put(o, isinf(at) ? "any" : "nothing is");
        else
            hm_html_value(o, hm_number_down(at, 3).text, NULL, "claims.%zu.%s.certified_below.x%u", claim,
                          KIND[kind].member, SHARES[i]);
        hm_put(o, "</td>");
        if (q->draft->count)
            hm_putf(o, "<td>%s</td>",
                    isinf(at) ? "\xe2\x80\x93" : hm_number_percent(surely_below(q->draft, at), q->draft->count).text);
        hm_put(o, "</tr>");
    }
    hm_put(o, "</tbody></table>\n");
}

static void put_kind(struct hm_output *o, const struct hm_requirement *q, size_t claim, int kind)
{
    char title[256];
    struct plane p = plane_of(q, KIND[kind].most);
    const char *name = KIND[kind].name;
    snprintf(title, sizeof title, "Share of steps whose requirement %s* is at least x%s%s%s", name,
             q->draft->count ? ", and share of steps whose draft has a " : "", q->draft->count ? name : "",
             q->draft->count ? " of at least x" : "");
    hm_putf(o, "<div class=\"reads\" data-plane=\"%d %d %d %d %d %d\" data-name=\"%s\">", LEFT,
            HM_PICTURE_WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, p.from, p.to, name);
    hm_picture_open(
        o, HEIGHT, title,
        "Both fall from all steps at the left to none at the right; x is on a logarithmic axis. The table below has "
        "three points of the requirement.");
    put_axes(o, &p, kind);
    if (q->draft->count) put_curve(o, &p, q->draft, NO_LOWER, "line second");
    put_curve(o, &p, q->level, NO_HIGHER, "line");
    put_points(o, &p, q);
    hm_put(o, "</svg></div>\n");
    put_table(o, q, claim, kind);
}

static void put_keys(struct hm_output *o, const struct hm_claim_figures *f)
{
    hm_picture_key(o, HM_KEY_LINE("line"), "requires at least x");
    if (f->draft.count) hm_picture_key(o, HM_KEY_LINE("line second"), "this draft has at least x");
}

void hm_html_requirement(struct hm_output *o, const struct hm_report *r, size_t index, enum hm_detail detail)
{
    static const char *const names[HM_REQUIREMENTS] = {"KLf", "KLr", "TV"};
    const struct hm_claim_figures *f = &r->claims[index];
    const struct hm_requirement q[HM_REQUIREMENTS] = {
        {&f->klf, &f->draft}, {&f->klr, &f->draft_klr}, {&f->tv, &f->draft_tv}};
    char group[40];
    hm_put(o, "<div class=\"panel\"><h3>Requirement curve</h3><p class=\"note\">");
    hm_html_claim_name(o, f);
    hm_put(o, ". What any draft must reach, from target rows only: where it stays below x, the share of steps on the "
              "solid line "
              "is certified.</p><p class=\"note\">");
    put_keys(o, f);
    hm_put(o, "</p>\n");
    if (detail == HM_DETAIL_FULL) {
        snprintf(group, sizeof group, "requirement%zu", index);
        hm_tabs_open(o, group, "Requirement for which distance", names, HM_REQUIREMENTS);
        for (int kind = 0; kind < HM_REQUIREMENTS; kind++) {
            hm_tab_open(o);
            put_kind(o, &q[kind], index, kind);
            hm_tab_close(o);
        }
        hm_tabs_close(o);
    } else
        put_kind(o, &q[0], index, 0);
    hm_picture_made(
        o, r,
        "Solid: steps with D* &ge; x / steps with levels, draft row or not, lower ends. Dashed: steps with D &ge; x / "
        "steps with a draft row, upper ends. Both are exact where a bin begins (32 bins to a factor of two).",
        "2", (long)index, "requirement");
    hm_put(o, "</div>\n");
}
