// Simplex pictures: distributions on two and on three tokens as points, what is certified and where coverage fails
// (region.h, docs/theory.md §2). For a step of a log the triangle is a projection: its two first tokens and all others
// as one.
//
// The shadow of what KLf certifies is drawn exactly: merging tokens never raises KL(p||q), and where q splits its rest
// as p does it leaves it as it is; so a point is a shadow of some certified q if and only if the distance between the
// shadows is below.
#include "bounds/ival_math.h"
#include "reports/example.h"
#include "reports/html.h"
#include "reports/picture.h"

#include <math.h>
#include <stdio.h>

enum { RAYS = 20, HEIGHT = 318 };
static const double CORNER[3][2] = {{64, 288}, {376, 288}, {220, 18}}; // the first token, the second, all others

struct point {
    double x, y;
};

static struct point place(double q1, double q2)
{
    double q3 = 1 - q1 - q2;
    return (struct point){CORNER[0][0] * q1 + CORNER[1][0] * q2 + CORNER[2][0] * q3,
                          CORNER[0][1] * q1 + CORNER[1][1] * q2 + CORNER[2][1] * q3};
}

static double middle(struct hm_ival x)
{
    return x.lo + (x.hi - x.lo) / 2;
}

// A closed line around p where the distance to it is `level`: inside of it, or outside where the draft is only known to
// be within. Points are added between two rays until the line is straight there.
struct outline {
    const struct hm_three *p;
    double from[2];
    int kind;
    struct hm_ival level;
    enum hm_side side;
};

static struct point on_ray(const struct outline *l, double turns)
{
    double dx = cos(2 * M_PI * turns), dy = sin(2 * M_PI * turns); // in the picture
    double d3 = -dy / (CORNER[0][1] - CORNER[2][1]);               // y falls by the height from 0 to 1 of the others
    double d2 = (dx + (CORNER[0][0] - CORNER[2][0]) * d3) / (CORNER[1][0] - CORNER[0][0]);
    double t = hm_three_reach(l->p, l->from, -d2 - d3, d2, l->kind, l->level, l->side);
    return place(l->from[0] + t * (-d2 - d3), l->from[1] + t * d2);
}

static void put_between(struct hm_output *o, const struct outline *l, double a, struct point at_a, double b,
                        struct point at_b, int depth)
{
    double half = a + (b - a) / 2, dx = at_b.x - at_a.x, dy = at_b.y - at_a.y, length = hypot(dx, dy);
    struct point at = on_ray(l, half);
    double off =
        length > 0 ? fabs(dx * (at.y - at_a.y) - dy * (at.x - at_a.x)) / length : hypot(at.x - at_a.x, at.y - at_a.y);
    if (depth > 0 && (off > 0.3 || length > 60)) {
        put_between(o, l, a, at_a, half, at, depth - 1);
        put_between(o, l, half, at, b, at_b, depth - 1);
    } else
        hm_putf(o, "L%s %s", hm_units(at_b.x).text, hm_units(at_b.y).text);
}

static void put_set(struct hm_output *o, const struct hm_three *p, int kind, struct hm_ival level, enum hm_side side,
                    const char *class_name)
{
    struct outline l = {p, {middle(p->share[0]), middle(p->share[1])}, kind, level, side};
    struct point at = on_ray(&l, 0), next;
    hm_putf(o, "<path class=\"%s\" d=\"M%s %s", class_name, hm_units(at.x).text, hm_units(at.y).text);
    for (int i = 0; i < RAYS; i++, at = next) {
        next = on_ray(&l, (i + 1.0) / RAYS);
        put_between(o, &l, (double)i / RAYS, at, (i + 1.0) / RAYS, next, 4);
    }
    hm_put(o, "Z\"/>\n");
}

static void put_polygon(struct hm_output *o, const char *class_name, const double (*shares)[2], size_t corners)
{
    hm_putf(o, "<path class=\"%s\" d=\"", class_name);
    for (size_t i = 0; i < corners; i++) {
        struct point q = place(shares[i][0], shares[i][1]);
        hm_putf(o, "%s%s %s", i ? "L" : "M", hm_units(q.x).text, hm_units(q.y).text);
    }
    hm_put(o, "Z\"/>");
}

// Where coverage fails. With three tokens: where the first is not above both others. In a projection: where it is not
// above the second; where all others together reach it, it depends on how they share.
static void put_failure(struct hm_output *o, bool projected)
{
    static const double third = 1.0 / 3, all[3][2] = {{1, 0}, {0, 1}, {0, 0}};
    const double half[3][2] = {{.5, .5}, {0, 1}, {0, 0}}, may[3][2] = {{.5, 0}, {0, 0}, {third, third}};
    const double both[5][2] = {{.5, .5}, {0, 1}, {0, 0}, {.5, 0}, {third, third}};
    if (projected) {
        put_polygon(o, "fails", half, 3);
        put_polygon(o, "may-fail", may, 3);
    } else
        put_polygon(o, "fails", both, 5);
    put_polygon(o, "frame", all, 3);
    hm_put(o, "\n");
}

static void put_corners(struct hm_output *o, const char *third)
{
    hm_putf(o,
            "<g class=\"muted m\"><text x=\"%g\" y=\"308\">first token</text><text x=\"%g\" y=\"308\">second "
            "token</text><text "
            "x=\"%g\" y=\"12\">%s</text></g>",
            CORNER[0][0], CORNER[1][0], CORNER[2][0], third);
}

static void put_witness(struct hm_output *o, double q1, double q2, const char *class_name, int size)
{
    struct point at = place(q1, q2);
    hm_putf(o, "<path class=\"%s\" d=\"M%s %sl%d %dl-%d %dl-%d -%dz\"/>", class_name, hm_units(at.x).text,
            hm_units(at.y - size).text, size, size, size, size, size, size);
}

static void put_dot(struct hm_output *o, double q1, double q2, const char *class_name, const char *name, int dx, int dy)
{
    struct point at = place(q1, q2);
    hm_putf(o,
            "<g class=\"%s\" transform=\"translate(%s %s)\"><circle r=\"5\"/><text class=\"halo m\" x=\"%d\" "
            "y=\"%d\">%s</text></g>",
            class_name, hm_units(at.x).text, hm_units(at.y).text, dx, dy, name);
}

bool hm_simplex_fits(const struct hm_region *g)
{
    return g->k == 1 && g->m == 1 && g->edge[0].lo > 0 && g->edge[0].hi + g->edge[1].hi < 1 &&
           middle(g->water[0]) <= 0.5 && g->water[0].lo >= 0;
}

void hm_html_simplex_step(struct hm_output *o, const struct hm_region *g)
{
    char description[640];
    struct hm_three p = hm_three_of(g->edge[0], g->edge[1]);
    double c = middle(g->water[0]), first = middle(g->edge[0]), second = middle(g->edge[1]);
    snprintf(description, sizeof description,
             "A triangle whose corners are the first token, the second, and all others as one. The target has %s, %s "
             "and %s. The "
             "shadow of what KLf certifies touches the line where the first two are equal at the witness, %s each.",
             hm_number_near(first, 3).text, hm_number_near(second, 3).text,
             hm_number_near(fmax(1 - first - second, 0), 3).text, hm_number_near(c, 3).text);
    hm_picture_open(o, HEIGHT, "The step as a point of a triangle, projected: the two first tokens and all others",
                    description);
    put_failure(o, true);
    put_set(o, &p, 0, g->level[0], HM_INSIDE, "set klf");
    if (g->distance[0].hi < INFINITY)
        put_set(o, &p, 0, (struct hm_ival){g->distance[0].hi, g->distance[0].hi}, HM_OUTSIDE, "set of-draft");
    put_corners(o, "all others, together");
    put_witness(o, c, c, "witness", 6);
    put_dot(o, first, second, "p", "p", -11, -6);
    hm_put(o, "</svg>\n<p class=\"note\">Projected: the two first tokens and all others as one. ");
    hm_picture_key(o, HM_KEY_BAR("set klf"), "shadow of what KLf certifies");
    if (g->distance[0].hi < INFINITY)
        hm_picture_key(o, HM_KEY_LINE("set of-draft"), "the draft\xe2\x80\x99s shadow lies within");
    hm_picture_key(o, HM_KEY_BAR("fails"), "coverage fails");
    hm_picture_key(o, HM_KEY_BAR("may-fail"), "it may, if one of the others has more than the first");
    hm_put(o, "</p>");
}

// Three tokens: nothing is projected, and all three regions are drawn.
static void put_triangle(struct hm_output *o, const struct hm_example *e)
{
    struct hm_three p = {{e->p[0], e->p[1], e->p[2]}};
    double c = middle(e->water[0]), z = exp(-middle(e->level[1])), g = exp(middle(e->water[1])) / z;
    hm_putf(o, "<div data-corners=\"%g %g %g %g %g %g\">", CORNER[0][0], CORNER[0][1], CORNER[1][0], CORNER[1][1],
            CORNER[2][0], CORNER[2][1]);
    hm_picture_open(
        o, HEIGHT, "Three tokens: all drafts as a triangle, the certified ones around the target",
        "Three sets around the target p, one for each distance, all inside the part where the first token is the "
        "likeliest; each touches its border at a witness.");
    put_failure(o, false);
    put_set(o, &p, 0, e->level[0], HM_INSIDE, "set klf");
    put_set(o, &p, 1, e->level[1], HM_INSIDE, "set klr");
    put_set(o, &p, 2, e->level[2], HM_INSIDE, "set tv");
    put_corners(o, "third token");
    put_witness(o, g, g, "witness open", 8);
    put_witness(o, c, c, "witness", 5);
    put_dot(o, middle(e->p[0]), middle(e->p[1]), "p", "p", -11, -6);
    put_dot(o, middle(e->q[0]), middle(e->q[1]), "q", "q", 0, -10);
    hm_put(o, "</svg></div>\n<p class=\"note\">");
    hm_picture_key(o, HM_KEY_BAR("set klf"), "KLf &lt; KLf*");
    hm_picture_key(o, HM_KEY_BAR("set klr"), "KLr &lt; KLr*");
    hm_picture_key(o, HM_KEY_BAR("set tv"), "TV &lt; TV*");
    hm_picture_key(o, HM_KEY_BAR("fails"), "coverage fails");
    hm_picture_key(o, "<path class=\"witness\" d=\"M11 0l6 6l-6 6l-6 -6z\"/>", "witness of KLf* and TV*");
    hm_picture_key(o, "<path class=\"witness open\" d=\"M11 0l6 6l-6 6l-6 -6z\"/>", "of KLr*");
    hm_put(o, "</p>\n");
}

// Two tokens: a draft is one number, its share of the first token.
enum { LEFT = 46, RIGHT = 14, TOP = 26, LINE_HEIGHT = 280, BOTTOM = 44, STEPS = 60 };

// Four steps of a round size to the top, which is at least two and a half times the level.
static double line_top(double level)
{
    static const double steps[] = {0.02, 0.05, 0.1, 0.2, 0.25, 0.5};
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && 4 * steps[i] < 2.5 * level) i++;
    return 4 * steps[i];
}

static double line_x(double q1)
{
    return LEFT + (HM_PICTURE_WIDTH - LEFT - RIGHT) * q1;
}

static double line_y(double value, double high)
{
    return TOP + (LINE_HEIGHT - TOP - BOTTOM) * (1 - fmin(fmax(value / high, 0), 1));
}

static void put_line_axes(struct hm_output *o, double high, const char *name)
{
    hm_put(o, "<path class=\"grid\" d=\"");
    for (int i = 0; i <= 4; i++)
        hm_putf(o, "M%d %sH%d", LEFT, hm_units(line_y(high * i / 4, high)).text, HM_PICTURE_WIDTH - RIGHT);
    hm_put(o, "\"/><g class=\"muted e\">");
    for (int i = 0; i <= 4; i++)
        hm_putf(o, "<text x=\"%d\" y=\"%s\">%s</text>", LEFT - 7, hm_units(line_y(high * i / 4, high) + 4).text,
                hm_number_near(high * i / 4, 2).text);
    hm_put(o, "</g><g class=\"muted m\">");
    for (int i = 0; i <= 4; i++)
        hm_putf(o, "<text x=\"%s\" y=\"%d\">%s</text>", hm_units(line_x(i / 4.0)).text, LINE_HEIGHT - BOTTOM + 22,
                hm_number_near(i / 4.0, 3).text);
    hm_putf(o,
            "<text x=\"%d\" y=\"%d\">q of the first token</text></g><text class=\"muted\" x=\"8\" y=\"12\">%s</text>\n",
            (HM_PICTURE_WIDTH + LEFT - RIGHT) / 2, LINE_HEIGHT - 4, name);
}

static void put_line(struct hm_output *o, const struct hm_example *e, int kind)
{
    static const char *const names[3] = {"KL(p\xe2\x80\x96q), nats", "KL(q\xe2\x80\x96p), nats", "TV(p, q)"};
    static const char *const stars[3] = {"KLf*", "KLr*", "TV*"};
    char title[128];
    struct hm_three p = {{e->p[0], e->p[1], {0, 0}}};
    double p1 = middle(e->p[0]), level = e->level[kind].lo, high = line_top(level), from[2] = {p1, 1 - p1};
    double reach = hm_three_reach(&p, from, 1, -1, kind, e->level[kind], HM_INSIDE);
    struct hm_ival top = hm_ival_point(high);
    double left = p1 - hm_three_reach(&p, from, -1, 1, kind, top, HM_INSIDE), q1 = middle(e->q[0]);
    double right = p1 + hm_three_reach(&p, from, 1, -1, kind, top, HM_INSIDE);
    snprintf(title, sizeof title, "Two tokens: %s over the draft\xe2\x80\x99s share of the first token", names[kind]);
    hm_putf(o, "<div data-line=\"%d %d %d %d %s %d\">", LEFT, HM_PICTURE_WIDTH - RIGHT, TOP, LINE_HEIGHT - BOTTOM,
            hm_number_near(high, 6).text, kind);
    hm_picture_open(o, LINE_HEIGHT, title,
                    "The distance is 0 at the target and grows to both sides. Up to one half coverage fails; there the "
                    "curve stands "
                    "at the level, and what lies below the level on the other side of it is certified.");
    hm_putf(o, "<rect class=\"fails\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\"/>", LEFT, TOP,
            hm_units(line_x(.5) - LEFT).text, LINE_HEIGHT - TOP - BOTTOM);
    put_line_axes(o, high, names[kind]);
    hm_putf(o, "<path class=\"level\" d=\"M%d %sH%d\"/>", LEFT, hm_units_up(line_y(level, high)).text,
            HM_PICTURE_WIDTH - RIGHT);
    hm_putf(o, "<path class=\"certified\" d=\"M%s %dH%s\"/>", hm_units_up(line_x(.5)).text, LINE_HEIGHT - BOTTOM,
            hm_units_down(line_x(p1 + reach)).text);
    hm_put(o, "<path class=\"line\" d=\"");
    for (int i = 0; i <= STEPS; i++) {
        double x = left + (right - left) * i / STEPS;
        hm_putf(o, "%s%s %s", i ? "L" : "M", hm_units(line_x(x)).text,
                hm_units(line_y(middle(hm_three_distance(&p, x, 1 - x, kind)), high)).text);
    }
    hm_put(o, "\"/>\n");
    hm_putf(o, "<path class=\"witness\" d=\"M%s %sl6 6l-6 6l-6 -6z\"/>", hm_units(line_x(.5)).text,
            hm_units(line_y(level, high) - 6).text);
    hm_putf(o, "<text x=\"%d\" y=\"%s\">%s \xe2\x89\xa5 %s</text>", LEFT + 6, hm_units(line_y(level, high) - 6).text,
            stars[kind], hm_number_down(level, 4).text);
    hm_putf(
        o,
        "<g class=\"p\" transform=\"translate(%s %d)\"><circle r=\"5\"/><text class=\"halo m\" y=\"-10\">p</text></g>",
        hm_units(line_x(p1)).text, LINE_HEIGHT - BOTTOM);
    hm_putf(o,
            "<g class=\"q\" transform=\"translate(%s %s)\"><circle r=\"5\"/><text class=\"halo m\" "
            "y=\"-10\">q</text></g></svg></div>\n",
            hm_units(line_x(q1)).text, hm_units(line_y(e->distance[kind].hi, high)).text);
}

// p, q and the levels, for the script.
static void open_panel(struct hm_output *o, const struct hm_example *e, const char *title)
{
    const struct hm_ival *rows[] = {e->p, e->q};
    for (int i = 0; i < 2; i++) {
        hm_putf(o, "%s", i ? "\" data-q=\"" : "<div class=\"panel\" data-p=\"");
        for (size_t j = 0; j < e->vocab; j++)
            hm_putf(o, "%s%s", j ? " " : "", hm_number_near(middle(rows[i][j]), 17).text);
    }
    hm_putf(o, "\" data-level=\"%s %s %s\"><h3>%s</h3><p class=\"note\">", hm_number_down(e->level[0].lo, 17).text,
            hm_number_down(e->level[1].lo, 17).text, hm_number_down(e->level[2].lo, 17).text, title);
}

static void put_line_panel(struct hm_output *o, const struct hm_report *r, const struct hm_example *e)
{
    static const char *const names[3] = {"KLf", "KLr", "TV"};
    open_panel(o, e, "Two tokens");
    hm_putf(o,
            "The target p has %s of its first token. Greedy with m = 1: a draft covers it where its own share is above "
            "one half. "
            "</p><p class=\"note\">",
            hm_number_near(middle(e->p[0]), 4).text);
    hm_picture_key(o, HM_KEY_LINE("certified"), "certified drafts");
    hm_picture_key(o, HM_KEY_BAR("fails"), "coverage fails");
    hm_picture_key(o, "<path class=\"witness\" d=\"M11 0l6 6l-6 6l-6 -6z\"/>", "the witness");
    hm_put(o, "</p>\n");
    hm_tabs_open(o, "line", "Which distance", names, 3);
    for (int kind = 0; kind < 3; kind++) {
        hm_tab_open(o);
        put_line(o, e, kind);
        hm_tab_close(o);
    }
    hm_tabs_close(o);
    hm_picture_made(o, r,
                    "p, q, the distances and the levels come from the calls that stamp a log, on two logits each; the "
                    "certified drafts "
                    "end where the distance reaches the level, by bisection on the safe side. Moving q: the "
                    "page\xe2\x80\x99s script, in "
                    "floating point.",
                    "2", -1, "example.two");
    hm_put(o, "</div>\n");
}

static void put_triangle_panel(struct hm_output *o, const struct hm_report *r, const struct hm_example *e)
{
    open_panel(o, e, "Three tokens");
    hm_putf(o,
            "Every point is a draft. p = (%s, %s, %s), q = (%s, %s, %s); "
            "what lies inside a set is certified by its distance, and no set can be made larger: at its witness it "
            "touches a draft "
            "that fails.</p>\n",
            hm_number_near(middle(e->p[0]), 3).text, hm_number_near(middle(e->p[1]), 3).text,
            hm_number_near(middle(e->p[2]), 3).text, hm_number_near(middle(e->q[0]), 3).text,
            hm_number_near(middle(e->q[1]), 3).text, hm_number_near(middle(e->q[2]), 3).text);
    put_triangle(o, e);
    hm_picture_made(
        o, r,
        "As on the left, on three logits each. Sets: along rays from p, as far as the distance surely stays below the "
        "level; witnesses: the level c for both of the first two tokens, and for KLr* the level g, divided by Z. "
        "Moving "
        "q: the page\xe2\x80\x99s script, in floating point.",
        "2", -1, "example.three");
    hm_put(o, "</div>\n");
}

void hm_html_examples(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"pictures\"><h2>The theorem in pictures</h2>\n<p class=\"note\">A fixed example, not this "
              "log: a vocabulary so "
              "small that every possible draft can be drawn.</p>\n<div class=\"pair\">\n");
    put_line_panel(o, r, &r->example[0]);
    put_triangle_panel(o, r, &r->example[1]);
    hm_put(o, "</div>\n</section>\n");
}
