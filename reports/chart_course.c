// The picture of what relaxation costs as a text grows: mean cumulative total variation, or regret, over tokens.
#include "reports/html.h"
#include "reports/number.h"
#include "reports/picture.h"

#include <math.h>

enum { WIDTH = 440, LEFT = 46, RIGHT = 12, TOP = 10, HEIGHT = 200, BOTTOM = 36 };

// The least of 1, 2, 2.5 and 5 times a power of ten that is at least x > 0.
static double round_up(double x)
{
    double power = pow(10, floor(log10(x)));
    static const double steps[] = {1, 2, 2.5, 5};
    for (int i = 0; i < 4; i++)
        if (x <= steps[i] * power * (1 + 1e-12)) return steps[i] * power;
    return 10 * power;
}

static double value_of(const struct hm_course_point *p, int which)
{
    return which == 0 ? p->shortfall : which == 1 ? p->e : p->regret;
}

static void put_line(struct hm_output *o, const struct hm_course_point *points, size_t n, int which, double top,
                     const char *class_name)
{
    double most = (double)points[n - 1].tokens;
    hm_putf(o, "<path class=\"%s\" d=\"M%d %d", class_name, LEFT, HEIGHT - BOTTOM);
    for (size_t i = 0; i < n; i++) {
        double y = fmin(fmax(value_of(&points[i], which) / top, 0), 1);
        hm_putf(o, "L%s ", hm_units(LEFT + (WIDTH - LEFT - RIGHT) * (double)points[i].tokens / most).text);
        hm_put(o, hm_units(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y).text);
        if (value_of(&points[i], which) > top * (1 + 1e-9)) break; // it leaves the picture
    }
    hm_put(o, "\"/>\n");
}

void hm_chart_course(struct hm_output *o, const struct hm_report *r, enum hm_chart_course what)
{
    struct hm_course_point points[HM_COURSE_BINS];
    size_t n = hm_course_points(&r->course, points);
    if (!n) return;
    bool variation = what == HM_CHART_VARIATION;
    double highest = 0;
    for (size_t i = 0; i < n; i++)
        highest = fmax(highest, variation ? fmax(points[i].shortfall, points[i].e) : points[i].regret);
    double top = highest > 0 && highest < 1e300 ? round_up(highest) : 1;
    if (variation) top = fmin(top, 1); // from 1 on a bound says nothing
    hm_putf(o, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s; after %llu tokens: %s</title>\n", WIDTH, HEIGHT,
            variation ? "Mean cumulative total variation over tokens" : "Mean cumulative regret over tokens",
            (unsigned long long)points[n - 1].tokens,
            hm_number_up(variation ? points[n - 1].shortfall : points[n - 1].regret, 3).text);
    for (int i = 0; i <= 4; i++) {
        double y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / 4.0;
        hm_putf(o,
                "<path class=\"grid\" d=\"M%d %sH%d\"/><text class=\"muted\" x=\"%d\" y=\"%s\" text-anchor=\"end\">%s</text>\n",
                LEFT, hm_units(y).text, WIDTH - RIGHT, LEFT - 6, hm_units(y + 4).text, hm_number_near(top * i / 4, 3).text);
        double t = (double)points[n - 1].tokens * i / 4;
        hm_putf(o, "<text class=\"muted\" x=\"%s\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
                hm_units(LEFT + (WIDTH - LEFT - RIGHT) * i / 4.0).text, HEIGHT - BOTTOM + 17, i == 4 ? "end" : "middle",
                hm_number_near(floor(t), 6).text);
    }
    hm_putf(o, "<text class=\"muted\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">tokens</text>\n", (WIDTH + LEFT) / 2,
            HEIGHT - 4);
    if (variation) put_line(o, points, n, 1, top, "line second");
    put_line(o, points, n, variation ? 0 : 2, top, "line");
    hm_put(o, "</svg>\n");
}
