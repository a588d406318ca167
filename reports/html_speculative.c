// The HTML sections on speculative sampling and fidelity budgets (speculative.h).
#include "reports/html.h"
#include "reports/number.h"

// key: of the sum in the JSON report's `speculative`.
static void put_sum(struct hm_output *o, const char *name, const char *key, const struct hm_sum *sum, const char *how)
{
    if (!sum->count) return;
    hm_putf(o, "<tr><th scope=\"row\">%s</th><td>", name);
    hm_html_value(o, hm_number_down(sum->lo, 6).text, NULL, "speculative.%s.sum_lower", key);
    hm_put(o, "</td><td>");
    hm_html_value(o, hm_number_up(sum->hi, 6).text, NULL, "speculative.%s.sum_upper", key);
    hm_put(o, "</td><td><b>");
    hm_html_value(o, hm_number_up(hm_sum_mean_upper(sum), 4).text, NULL, "speculative.%s.mean_upper", key);
    hm_putf(o, "</b></td><td class=\"left wrap soft\">%s</td></tr>\n", how);
}

static void put_single(struct hm_output *o, const struct hm_report_speculative *s)
{
    const struct hm_sum *const sums[] = {&s->single_gain, &s->single_excess, &s->single_e};
    hm_putf(o,
            "<h3>One draw, one number</h3><p class=\"note\">At the %s with a single draw the acceptance gained over "
            "standard, E<sub>N</sub>, and the total variation e that it costs are the same number, by identity. Its "
            "three enclosures in the log, summed:</p>\n<div class=\"scroll\"><table "
            "class=\"tight\"><thead><tr><th>sum</th><th>acceptance "
            "gained</th><th>E<sub>N</sub></th><th>e</th></tr></thead><tbody>\n<tr><th scope=\"row\">at least</th>",
            hm_number_of(s->single, "position").text);
    for (int i = 0; i < 3; i++) hm_putf(o, "<td>%s</td>", hm_number_down(sums[i]->lo, 9).text);
    hm_put(o, "</tr>\n<tr><th scope=\"row\">at most</th>");
    for (int i = 0; i < 3; i++) hm_putf(o, "<td>%s</td>", hm_number_up(sums[i]->hi, 9).text);
    hm_put(o, "</tr>\n</tbody></table></div>\n");
}

static void put_budget(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = hm_report_budget(r);
    bool tv = h->budget_kind[0] == 't';
    hm_put(o, "<h3>Fidelity budget</h3><p class=\"note\">");
    if (tv)
        hm_putf(
            o,
            "Set before decoding, and kept on every path: the total variation between the law of a sequence and the "
            "target\xe2\x80\x99s is at most the larger of the limit and R, the room that uniforms of 53 bits need "
            "(here at "
            "most %s).",
            hm_number_up(s->reserve, 3).text);
    else
        hm_put(
            o,
            "Set before decoding, and kept on every path: the regrets of a sequence\xe2\x80\x99s tokens sum to at most "
            "the limit, in nats.");
    hm_put(o, "</p>\n<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Figure</th><th>value</th><th "
              "class=\"left\">how</th></tr></thead><tbody>\n<tr><th scope=\"row\">limit per sequence</th><td><b>");
    hm_put_html(o, h->budget_limit);
    hm_putf(o, "</b></td><td class=\"left wrap soft\">%s%s</td></tr>\n", tv ? "total variation" : "nats of regret",
            r->log_count > 1 ? "; of the first log with one" : "");
    if (s->budgets) {
        hm_putf(o,
                "<tr><th scope=\"row\">spent, mean</th><td><b>%s</b></td><td class=\"left wrap soft\">charged in %s, "
                "at most"
                "</td></tr>\n",
                hm_number_up(hm_speculative_spent_mean(s), 4).text, hm_number_of(s->budgets, "sequence").text);
        hm_putf(o,
                "<tr><th scope=\"row\">spent, most</th><td><b>%s</b></td><td class=\"left wrap soft\">by one "
                "sequence</td></tr>\n",
                hm_number_up(s->spent_most, 4).text);
    }
    hm_putf(o,
            "<tr><th scope=\"row\">relaxation in force</th><td><b>%s</b></td><td class=\"left wrap soft\">%s of %s "
            "where it "
            "was asked for</td></tr>\n</tbody></table></div>\n",
            hm_number_percent(s->relaxed, s->charged).text, hm_number_count(s->relaxed).text,
            hm_number_of(s->charged, "position").text);
}

static void put_acceptance(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = &r->logs[0].header;
    hm_put(o, "<p class=\"note\">Children were proposals, accepted or not by coins (acceptance ");
    hm_put_html(o, h->acceptance);
    hm_putf(
        o, "; %s). At %s the probability that one is accepted is in the log; a child was accepted at %s of them.</p>\n",
        h->proposal && h->proposal[0] == 'i' ? "draws from the draft"
                                             : "the draft\xe2\x80\x99s likeliest, as point masses",
        hm_number_of(s->positions, "position").text, hm_number_count(s->accepted).text);
    hm_put(o,
           "<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Sum over positions</th><th>at least</th><th>at "
           "most</th><th>mean, at most</th><th class=\"left\">what it is</th></tr></thead><tbody>\n");
    put_sum(o, "acceptance", "accept", &s->accept, "probability that a child is accepted, under the rule in force");
    put_sum(o, "standard", "accept_standard", &s->standard, "the same by standard speculative sampling");
    put_sum(o, "gained", "gained", &s->gain, "what the relaxation adds to it");
    put_sum(o, "E<sub>N</sub>", "nucleus_excess", &s->excess,
            "\xce\xa3 (q \xe2\x88\x92 p)<sup>+</sup> over the nucleus, where the relaxation was in force");
    put_sum(o, "e", "e", &s->e, "total variation between the token\xe2\x80\x99s law and the target\xe2\x80\x99s, there");
    hm_put(o, "</tbody></table></div>\n");
    if (!s->standard.count)
        hm_put(o, "<p class=\"note\">Nothing was relaxed: every token has the target\xe2\x80\x99s law.</p>\n");
    else if (r->theory.fidelity.sequences)
        hm_put(o, "<p class=\"note\">What this means for whole sequences stands under <a href=\"#theory\">Bounds and "
                  "laws</a>.</p>\n");
    if (s->single) put_single(o, s);
}

void hm_html_speculative(struct hm_output *o, const struct hm_report *r)
{
    bool budget = hm_report_budget(r) != NULL, positions = r->speculative.positions > 0;
    if (!budget && !positions) return;
    hm_putf(o, "<section id=\"speculative\"><h2>%s</h2>\n",
            positions ? "Speculative sampling" : "Relaxation within a budget");
    if (positions) put_acceptance(o, r);
    if (budget) put_budget(o, r);
    hm_put(o, "</section>\n");
}
