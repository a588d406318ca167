// The HTML section on whole sequences: what relaxation costs them in total variation and regret, with bounds or the word
// "vacuous", by prompt, by category and token by token (course.h; docs/theory.md §5).
#include "reports/html.h"
#include "reports/number.h"
#include "reports/picture.h"

#include <stdio.h>

enum { LISTED = 200 };

// The value of a bound, or the word; the exact figure is in the JSON report.
static const char *bound_text(double bound, struct hm_number *text)
{
    *text = hm_number_up(bound, 4);
    return bound < 1 ? text->text : "bound vacuous";
}

void hm_html_bounds_of(const struct hm_fidelity_sum *sum, struct hm_fidelity *f, double *best)
{
    hm_fidelity_bound(sum, HM_FIDELITY_RISK_PERCENT / 200.0, f);
    *best = f->bernstein < f->hoeffding ? f->bernstein : f->hoeffding;
}

static void put_row(struct hm_output *o, const char *name, const char *path, const char *value, const char *how)
{
    hm_putf(o, "<tr><th scope=\"row\">%s</th><td><b>", name);
    if (path)
        hm_html_value(o, value, NULL, "%s", path);
    else
        hm_put(o, value);
    hm_putf(o, "</b></td><td class=\"left wrap soft\">%s</td></tr>\n", how);
}

static void put_bounds(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_fidelity_sum *sum = &r->theory.fidelity;
    struct hm_fidelity f;
    struct hm_number number;
    double best;
    hm_html_bounds_of(sum, &f, &best);
    hm_put(o, "<p class=\"note\">Upper bounds on the total variation between the law of the decoder\xe2\x80\x99s sequences "
              "and the target\xe2\x80\x99s, averaged over prompts, from finished sequences taken as independent. w is the "
              "product of p(x)/o(x) along a sequence, e the total variation of one token; sums of e are never "
              "clipped.</p>\n<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Bound</th><th>value</th><th "
              "class=\"left\">how</th></tr></thead><tbody>\n");
    char how[256];
    snprintf(how, sizeof how, "mean of (1 \xe2\x88\x92 w)<sup>+</sup> over %s: an unbiased estimate of an upper bound",
             hm_number_of(sum->sequences, "sequence").text);
    put_row(o, "estimate", "theory.fidelity.shortfall_mean_upper", hm_number_up(f.mean_shortfall.hi, 4).text, how);
    snprintf(how, sizeof how,
             "the smaller of Hoeffding %s and empirical Bernstein %s; each at half the risk: wrong with probability at "
             "most %d%%",
             hm_number_up(f.hoeffding, 4).text, hm_number_up(f.bernstein, 4).text, HM_FIDELITY_RISK_PERCENT);
    put_row(o, "finite sample", f.vacuous ? NULL : "theory.fidelity.bound_upper", bound_text(best, &number), how);
    snprintf(how, sizeof how, "weaker, unbiased; %s", f.vacuous_s ? "bound vacuous: it is not below 1" : "below 1");
    put_row(o, "mean \xce\xa3 e", "theory.fidelity.e_sum_mean_upper", hm_number_up(f.mean_s.hi, 4).text, how);
    hm_put(o, "</tbody></table></div>\n");
    if (r->theory.unfinished)
        hm_putf(o, "<p class=\"note\">Left out: %s.</p>\n", hm_number_of(r->theory.unfinished, "unfinished sequence").text);
}

static void put_group(struct hm_output *o, const char *list, size_t i, const struct hm_report_group *g, bool e, bool regret)
{
    const struct hm_course_group *c = &g->course;
    hm_put(o, "<tr><th scope=\"row\">");
    hm_put_html(o, g->name);
    hm_putf(o, "</th><td>%s</td>", hm_number_count(c->fidelity.sequences ? c->fidelity.sequences : c->regret.count).text);
    if (e && c->fidelity.sequences) {
        struct hm_fidelity f;
        struct hm_number number;
        double best;
        hm_html_bounds_of(&c->fidelity, &f, &best);
        hm_put(o, "<td><b>");
        hm_html_value(o, hm_number_up(f.mean_shortfall.hi, 4).text, NULL, "%s.%zu.course.shortfall_mean_upper", list, i);
        hm_putf(o, "</b></td><td>%s</td><td>", bound_text(best, &number));
        hm_html_value(o, hm_number_up(f.mean_s.hi, 4).text, NULL, "%s.%zu.course.e_sum_mean_upper", list, i);
        hm_put(o, f.vacuous_s ? " <span class=\"soft\">vacuous</span></td>" : "</td>");
    } else if (e) {
        hm_put(o, "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>");
    }
    if (regret && c->regret.count) {
        hm_put(o, "<td>");
        hm_html_value(o, hm_number_up(hm_sum_mean_upper(&c->regret), 4).text, NULL, "%s.%zu.course.regret.mean_upper", list,
                      i);
        hm_putf(o, "</td><td>%s</td>", hm_number_up(c->regret_most, 4).text);
    } else if (regret) {
        hm_put(o, "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>");
    }
    hm_put(o, "</tr>\n");
}

static void put_groups(struct hm_output *o, const char *title, const char *list, const struct hm_report_group *groups,
                       size_t n, bool e, bool regret)
{
    hm_putf(o, "<div class=\"scroll\"><table class=\"tight sortable\"><thead><tr><th>%s</th><th>finished sequences</th>%s%s"
               "</tr></thead><tbody>\n",
            title, e ? "<th>estimate of TV</th><th>bound, 95 %</th><th>mean \xce\xa3 e</th>" : "",
            regret ? "<th>regret per sequence, mean at most</th><th>largest</th>" : "");
    for (size_t i = 0; i < n; i++) put_group(o, list, i, &groups[i], e, regret);
    hm_put(o, "</tbody></table></div>\n");
}

static void put_sequence(struct hm_output *o, const struct hm_report *r, size_t i, bool e, bool regret)
{
    const struct hm_kept_sequence *s = &r->kept[i];
    const struct hm_course *c = &s->course;
    hm_put(o, "<tr><th scope=\"row\">");
    hm_put_html(o, s->id[0] ? s->id : "sequence");
    if (s->turn) hm_putf(o, ", turn %u", s->turn);
    hm_put(o, "</th><td class=\"left\">");
    hm_put_html(o, r->log_count > 1 ? r->logs[s->log].path : s->category);
    hm_putf(o, "</td><td>%llu%s</td>", (unsigned long long)s->steps, s->finish ? "" : " (cut)");
    if (e && c->has_e) {
        hm_put(o, "<td>");
        hm_html_value(o, hm_number_up(c->s.hi, 4).text, NULL, "sequences.%zu.e_sum_upper", i);
        hm_put(o, c->s.hi >= 1 ? " <span class=\"soft\">vacuous</span></td><td>" : "</td><td>");
        hm_html_value(o, hm_number_down(c->w.lo, 4).text, NULL, "sequences.%zu.w_lower", i);
        hm_put(o, "</td><td>");
        hm_html_value(o, hm_number_up(c->shortfall.hi, 4).text, NULL, "sequences.%zu.shortfall_upper", i);
        hm_put(o, "</td>");
    } else if (e) {
        hm_put(o, "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>");
    }
    if (regret && c->has_regret) {
        hm_put(o, "<td>");
        hm_html_value(o, hm_number_up(c->regret.hi, 4).text, NULL, "sequences.%zu.regret_upper", i);
        hm_put(o, "</td>");
    } else if (regret) {
        hm_put(o, "<td>\xe2\x80\x93</td>");
    }
    hm_put(o, "</tr>\n");
}

static void put_sequences(struct hm_output *o, const struct hm_report *r, bool e, bool regret)
{
    size_t n = r->kept_count < LISTED ? r->kept_count : LISTED;
    hm_putf(o, "<h3>By prompt</h3><p class=\"note\">Along the one path that was decoded%s.%s</p>\n",
            e ? ": a mean over paths bounds the law, a single path does not" : "",
            r->sequences > n ? " The first are listed; the JSON and CSV reports list more." : "");
    hm_putf(o, "<div class=\"scroll tall\"><table class=\"tight sortable\"><thead><tr><th>Prompt</th><th "
               "class=\"left\">%s</th><th>tokens</th>%s%s</tr></thead><tbody>\n",
            r->log_count > 1 ? "log" : "category",
            e ? "<th>\xce\xa3 e, at most</th><th>w, at least</th><th>(1 \xe2\x88\x92 w)<sup>+</sup>, at most</th>" : "",
            regret ? "<th>regret, nats, at most</th>" : "");
    for (size_t i = 0; i < n; i++) put_sequence(o, r, i, e, regret);
    hm_put(o, "</tbody></table></div>\n");
}

static void put_curves(struct hm_output *o, const struct hm_report *r, bool e, bool regret)
{
    hm_putf(o, "<div class=\"%s\">", e && regret ? "pair" : "");
    if (e) {
        hm_put(o, "<div class=\"panel\"><h3>Total variation as it accumulates</h3><p class=\"note\"><span "
                  "class=\"key\"><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"line\" d=\"M0 "
                  "4H22\"/></svg><span>mean (1 \xe2\x88\x92 w)<sup>+</sup></span></span><span class=\"key\"><svg viewBox=\"0 0 22 8\" "
                  "aria-hidden=\"true\"><path class=\"line second\" d=\"M0 4H22\"/></svg>mean \xce\xa3 e</span></p>");
        hm_chart_course(o, r, HM_CHART_VARIATION);
        hm_picture_made(o, r,
                        "Of finished sequences: after t tokens, w = \xce\xa0 p(x)/o(x) and \xce\xa3 e so far, averaged; a "
                        "sequence that has ended keeps its last value. Upper ends.",
                        "5", -1, "course.points");
        hm_put(o, "<p class=\"note\">Estimates of bounds on the law of the first t tokens; what reaches 1 says "
                  "nothing and leaves the picture.</p></div>");
    }
    if (regret) {
        hm_put(o, "<div class=\"panel\"><h3>Regret as it accumulates</h3><p class=\"note\">Mean over sequences of the summed "
                  "regret of the first t tokens, in nats.</p>");
        hm_chart_course(o, r, HM_CHART_REGRET);
        hm_picture_made(o, r,
                        "Of finished sequences: the regrets of the first t tokens, summed, then averaged; a sequence that has "
                        "ended keeps its last value. Upper ends.",
                        "5", -1, "course.points");
        hm_put(o, "</div>");
    }
    hm_put(o, "</div>\n");
}

void hm_html_course(struct hm_output *o, const struct hm_report *r)
{
    bool e = r->theory.fidelity.sequences || r->theory.unfinished, regret = r->regret.count > 0;
    hm_put(o, "<section id=\"sequences\"><h2>Whole sequences</h2>\n");
    if (!e && !regret) {
        hm_put(o, "<p class=\"note\">Nothing was relaxed: the law of the sequences is the target\xe2\x80\x99s, total "
                  "variation 0.</p>\n</section>\n");
        return;
    }
    if (!e)
        hm_put(o, "<p class=\"note\">At temperature 0 a decoder\xe2\x80\x99s law is one text, so total variation is 0 where "
                  "the texts agree and 1 where they do not: a bound on it would be vacuous. What a relaxation costs there is "
                  "its regret, ln(p<sub>(1)</sub>/p<sub>token</sub>), summed along the path.</p>\n");
    if (e) put_bounds(o, r);
    if (r->course.with_e || r->course.with_regret) put_curves(o, r, r->course.with_e > 0, r->course.with_regret > 0);
    if (r->category_count > 1) put_groups(o, "Category", "categories", r->categories, r->category_count, e, regret);
    if (r->log_count > 1) put_groups(o, "Log", "logs", r->by_log, r->log_count, e, regret);
    if (r->kept_count) put_sequences(o, r, e, regret);
    hm_put(o, "</section>\n");
}
