// The HTML section on certificates: every claim in a table, then pictures of the claim the reader chose.
#include "reports/html.h"
#include "reports/number.h"

static void put_share_cell(struct hm_output *o, uint64_t part, uint64_t whole)
{
    hm_putf(o, "<td>%s</td>", hm_number_percent(part, whole).text);
}

static void put_table(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Rule and m</th><th>certified</th><th></th><th>steps</th><th>by KL(p\xe2\x80\x96q)</th><th>by KL(q\xe2\x80\x96p)</th>"
              "<th>by TV</th><th>covered</th><th>vacuous</th><th>inapplicable</th><th>undecided</th><th>no draft</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_figures *f = &r->claims[i];
        hm_put(o, "<tr><th scope=\"row\">");
        hm_html_claim_name(o, f);
        hm_putf(o, "</th><td><b>%s</b></td><td>", hm_number_percent(f->certified_any, f->with_draft).text);
        hm_html_stack(o, "stack thin", f->status);
        hm_putf(o, "</td><td>%s of %s</td>", hm_number_count(f->certified_any).text, hm_number_count(f->with_draft).text);
        for (int d = 0; d < 3; d++) put_share_cell(o, f->verdict[d][HM_CERT_YES], f->with_draft);
        put_share_cell(o, f->covered[HM_YES], f->with_draft);
        hm_putf(o, "<td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", hm_number_count(f->status[HM_TOKEN_VACUOUS]).text,
                hm_number_count(f->status[HM_TOKEN_INAPPLICABLE]).text, hm_number_count(f->status[HM_TOKEN_UNDECIDED]).text,
                hm_number_count(f->status[HM_TOKEN_NO_DRAFT]).text);
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_lower(struct hm_output *o, double value)
{
    hm_putf(o, "<td>%s</td>", value > 1e300 ? "\xe2\x88\x9e" : hm_number_down(value, 3).text);
}

static void put_quantile_row(struct hm_output *o, const char *name, const struct hm_histogram *h)
{
    static const unsigned percent[] = {1, 5, 25, 50, 75, 95};
    if (!h->count) return;
    hm_putf(o, "<tr><th scope=\"row\">%s</th>", name);
    put_lower(o, h->least);
    for (size_t i = 0; i < sizeof percent / sizeof *percent; i++)
        put_lower(o, hm_histogram_lower(h, hm_histogram_rank(h, percent[i], 100)));
    hm_putf(o, "<td>%s</td></tr>\n", hm_number_count(h->count).text);
}

static void put_pictures(struct hm_output *o, const struct hm_report *r, size_t index)
{
    const struct hm_claim_figures *f = &r->claims[index];
    hm_putf(o, "<div data-claim=\"%zu\">\n<div class=\"pair\"><div class=\"panel\"><h3>Certified by margin</h3><p class=\"note\">", index);
    hm_html_claim_name(o, f);
    hm_put(o, f->gap_steps ? ". Margin: the gap p<sub>(k)</sub> \xe2\x88\x92 p<sub>(k+1)</sub> between the last accepted and the first rejected token.</p>"
                           : ". Margin: the difference of the logits of the last accepted and the first rejected token.</p>");
    hm_chart_bands(o, f);
    hm_put(o, "</div>\n<div class=\"panel\"><h3>What a draft must reach</h3><p class=\"note\"><span class=\"key\"><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"line\" d=\"M0 4H22\"/></svg>requires KLf* \xe2\x89\xa5 x</span>"
              "<span class=\"key\"><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"line second\" d=\"M0 4H22\"/></svg>this draft has KL \xe2\x89\xa5 x</span></p>");
    if (f->klf.count && f->draft.count) hm_chart_requirement(o, f);
    hm_put(o, "<p class=\"note\">Any draft whose KL(p\xe2\x80\x96q) stays below x at every step has at least the share of steps under the solid line at x certified. The dashed line is the draft that was used.</p></div></div>\n");
    hm_put(o, "<div class=\"scroll\"><table><thead><tr><th>Lower bounds, ");
    hm_html_claim_name(o, f);
    hm_put(o, "</th><th>least</th><th>1%</th><th>5%</th><th>25%</th><th>median</th><th>75%</th><th>95%</th><th>steps</th></tr></thead><tbody>\n");
    put_quantile_row(o, "KLf*, nats", &f->klf);
    put_quantile_row(o, "KLr*, nats", &f->klr);
    put_quantile_row(o, "TV*", &f->tv);
    put_quantile_row(o, "stability radius, logits", &f->radius);
    hm_put(o, "</tbody></table></div>\n</div>\n");
}

void hm_html_claims(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"claims\"><h2>Certified</h2>\n<p class=\"note\">A step is certified when at least one of three distances of the draft from the target lies "
              "below what coverage could fail at. Shares are of the steps with a draft; vacuous, inapplicable and undecided steps are never counted as certified.</p>\n");
    put_table(o, r);
    for (size_t i = 0; i < r->claim_count && i < HM_HTML_MOST_CHARTS; i++) put_pictures(o, r, i);
    hm_put(o, "</section>\n");
}
