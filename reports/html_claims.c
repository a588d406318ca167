// The HTML section on certificates: every claim in a table, then pictures of the claim the reader chose.
#include "reports/html.h"
#include "reports/number.h"

#include <stdio.h>

// A share of the steps with verdicts; path: of the count in claim i of the JSON report.
static void put_share(struct hm_output *o, size_t i, const char *path, uint64_t part, const struct hm_claim_figures *f)
{
    char of[48];
    snprintf(of, sizeof of, "claims.%zu.with_draft", i);
    hm_html_value(o, hm_number_share(part, f->with_draft, f->status[HM_TOKEN_VACUOUS]).text, of, "claims.%zu.%s", i, path);
}

static void put_share_cell(struct hm_output *o, size_t i, const char *path, uint64_t part, const struct hm_claim_figures *f)
{
    hm_put(o, "<td>");
    put_share(o, i, path, part, f);
    hm_put(o, "</td>");
}

static void put_table(struct hm_output *o, const struct hm_report *r)
{
    static const char *const by[] = {"verdicts.klf.yes", "verdicts.klr.yes", "verdicts.tv.yes"};
    static const struct {
        enum hm_token_status status;
        const char *name;
    } rest[] = {{HM_TOKEN_VACUOUS, "vacuous"},
                {HM_TOKEN_INAPPLICABLE, "inapplicable"},
                {HM_TOKEN_UNDECIDED, "undecided"},
                {HM_TOKEN_NO_DRAFT, "no_draft"}};
    hm_put(o, "<div class=\"scroll\"><table class=\"tight sortable\"><thead><tr><th>Rule and "
              "m</th><th>certified</th><th></th><th>steps</th><th>by KLf</th><th>by KLr</th>"
              "<th>by TV</th><th>covered</th><th>vacuous</th><th>inapplicable</th><th>undecided</th><th>no draft "
              "row</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_figures *f = &r->claims[i];
        hm_put(o, "<tr><th scope=\"row\">");
        hm_html_claim_name(o, f);
        hm_put(o, "</th>");
        hm_put(o, "<td><b>");
        put_share(o, i, "certified", f->certified_any, f);
        hm_put(o, "</b></td>");
        hm_put(o, "<td>");
        hm_html_stack(o, "stack thin", f->status);
        hm_putf(o, "</td><td>%s of %s</td>", hm_number_count(f->certified_any).text,
                hm_number_count(f->with_draft).text);
        for (int d = 0; d < 3; d++) put_share_cell(o, i, by[d], f->verdict[d][HM_CERT_YES], f);
        put_share_cell(o, i, "covered.yes", f->covered[HM_YES], f);
        for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) {
            hm_put(o, "<td>");
            hm_html_value(o, hm_number_count(f->status[rest[k].status]).text, NULL, "claims.%zu.status.%s", i, rest[k].name);
            hm_put(o, "</td>");
        }
        hm_put(o, "</tr>\n");
    }
    hm_put(o, "</tbody></table></div>\n");
}

struct column {
    const char *name;
    const struct hm_histogram *values;
};

// One row of the table of bounds: a quantile, or the least value for percent 0.
static void put_bounds_row(struct hm_output *o, const struct column *columns, size_t n, const char *name,
                           unsigned percent)
{
    hm_putf(o, "<tr><th scope=\"row\">%s</th>", name);
    for (size_t i = 0; i < n; i++) {
        const struct hm_histogram *h = columns[i].values;
        double value = percent ? hm_histogram_lower(h, hm_histogram_rank(h, percent, 100)) : h->least;
        hm_putf(o, "<td>%s</td>", value > 1e300 ? "\xe2\x88\x9e" : hm_number_down(value, 3).text);
    }
    hm_put(o, "</tr>\n");
}

static void put_bounds(struct hm_output *o, const struct hm_claim_figures *f, bool beside)
{
    const struct column all[] = {
        {"KLf*, nats", &f->klf}, {"KLr*, nats", &f->klr}, {"TV*", &f->tv}, {"radius, logits", &f->radius}};
    static const struct {
        const char *name;
        unsigned percent;
    } rows[] = {{"least", 0}, {"1%", 1}, {"5%", 5}, {"25%", 25}, {"median", 50}, {"75%", 75}, {"95%", 95}};
    struct column columns[4];
    size_t n = 0;
    for (size_t i = 0; i < 4; i++)
        if (all[i].values->count) columns[n++] = all[i];
    hm_putf(o, "<div class=\"scroll\"%s><table class=\"tight\"><thead><tr><th>Lower bounds</th>",
            beside ? " style=\"margin:0\"" : "");
    for (size_t i = 0; i < n; i++) hm_putf(o, "<th>%s</th>", columns[i].name);
    hm_put(o, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        put_bounds_row(o, columns, n, rows[i].name, rows[i].percent);
    hm_put(o, "<tr><th scope=\"row\">steps</th>");
    for (size_t i = 0; i < n; i++) hm_putf(o, "<td>%s</td>", hm_number_count(columns[i].values->count).text);
    hm_put(o, "</tr>\n</tbody></table></div>\n");
}

static bool has_bands(const struct hm_claim_figures *f)
{
    for (size_t i = 0; i < HM_REPORT_BANDS; i++)
        if (f->gap[i].steps || f->logit[i].steps) return true;
    return false;
}

// What has nothing to show is left out; a requirement has the bounds beside it.
static void put_pictures(struct hm_output *o, const struct hm_report *r, size_t index)
{
    const struct hm_claim_figures *f = &r->claims[index];
    size_t rank = index == r->lead ? 0 : index < r->lead ? index + 1 : index; // the claim that leads the page comes first
    enum hm_detail detail = rank < HM_HTML_FULL_CHARTS ? HM_DETAIL_FULL : HM_DETAIL_LEAD;
    bool bands = has_bands(f), requirement = f->klf.count > 0, bounds = requirement || f->radius.count;
    if (rank >= HM_HTML_MOST_CHARTS) return;
    hm_putf(o, "<div data-claim=\"%zu\">\n", index);
    if (requirement) hm_put(o, "<div class=\"pair\"><div class=\"column\">");
    if (bands) hm_html_bands(o, r, index, detail);
    if (bounds) put_bounds(o, f, requirement);
    if (requirement) {
        hm_put(o, "</div>\n");
        hm_html_requirement(o, r, index, detail);
        hm_put(o, "</div>\n");
    }
    if (detail == HM_DETAIL_FULL) hm_html_regions(o, r, index);
    hm_put(o, "</div>\n");
}

void hm_html_claims(struct hm_output *o, const struct hm_report *r)
{
    static const char spelling[] =
        "KLf is KL(p\xe2\x80\x96q), KLr is KL(q\xe2\x80\x96p), TV is total variation, of the target p and the draft q; "
        "KLf*, KLr* and TV* are what coverage could fail at.";
    if (hm_report_has_draft_rows(r)) {
        hm_putf(
            o,
            "<section id=\"claims\"><h2>Certified</h2>\n<p class=\"note\">%s A step is certified when at least one "
            "distance of the draft lies below its limit. Shares are of the "
            "steps with a draft row; vacuous, inapplicable and undecided steps are never counted as certified.</p>\n",
            spelling);
        put_table(o, r);
    } else
        hm_putf(o,
                "<section id=\"claims\"><h2>What a draft must reach</h2>\n<p class=\"note\">%s No step has a draft row "
                "to hold against them.</p>\n",
                spelling);
    for (size_t i = 0; i < r->claim_count; i++) put_pictures(o, r, i);
    hm_put(o, "</section>\n");
}
