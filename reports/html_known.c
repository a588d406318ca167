// What would have been certified from less than the whole target row: a table of all claims, and a picture of one claim
// by margin (requirement.h, docs/theory.md §3).
#include "reports/html.h"
#include "reports/picture.h"

#include <stdio.h>

static const char *const BY[HM_KNOWN_BY] = {"KLf", "KLr", "TV", "any"};

// "41.5%", or a dash where there is no such bound.
static void put_share(struct hm_output *o, const struct hm_known *k, size_t claim, int from, int by)
{
    static const char *const from_keys[HM_KNOWN_FROM] = {"row", "gap", "rule"}, *const by_keys[HM_KNOWN_BY] = {
                                                                                    "klf", "klr", "tv", "any"};
    char of[64];
    if (from == HM_FROM_RULE && by == HM_BY_TV) {
        hm_put(o, "<td>\xe2\x80\x93</td>");
        return;
    }
    snprintf(of, sizeof of, "claims.%zu.known.row.steps", claim);
    hm_put(o, "<td>");
    hm_html_value(o, hm_number_percent(k->yes[from][by], k->steps).text, of, "claims.%zu.known.%s.%s", claim,
                  from_keys[from], by_keys[by]);
    hm_put(o, "</td>");
}

void hm_html_known(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[HM_KNOWN_FROM] = {"the whole row", "the gap alone", "the rule alone"};
    bool less = false;
    for (size_t i = 0; i < r->claim_count; i++)
        less = less || r->claims[i].known.with[HM_FROM_GAP] || r->claims[i].known.with[HM_FROM_RULE];
    if (!less) return;
    hm_put(
        o,
        "<h3>What knowing less loses</h3><p class=\"note\">Certified from the whole target row (exact), from the gap "
        "p<sub>(k)</sub> \xe2\x88\x92 p<sub>(k+1)</sub> alone, and from the rule\xe2\x80\x99s parameter and "
        "p<sub>(1)</sub> alone; less can never certify more. Steps with a draft row to which the claim applies.</p>\n"
        "<div class=\"scroll\"><table class=\"tight\"><thead><tr><th>Rule and m</th><th class=\"left\">known</th>"
        "<th>by KLf</th><th>by KLr</th><th>by TV</th><th>by any</th><th>steps</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_known *k = &r->claims[i].known;
        for (int from = 0, first = 1; from < HM_KNOWN_FROM; from++) {
            if (!k->with[from]) continue;
            hm_put(o, "<tr><th scope=\"row\">");
            if (first) hm_html_claim_name(o, &r->claims[i]);
            hm_putf(o, "</th><td class=\"left\">%s</td>", names[from]);
            for (int by = 0; by < HM_KNOWN_BY; by++) put_share(o, k, i, from, by);
            hm_putf(o, "<td>%s</td></tr>\n", first ? hm_number_count(k->steps).text : "");
            first = 0;
        }
    }
    hm_put(o, "</tbody></table></div>\n");
    hm_picture_made(
        o, r,
        "Exact: the log\xe2\x80\x99s verdicts. Gap and rule: the upper end of the draft\xe2\x80\x99s distance lies "
        "below the lower end of the logged bound.",
        "2, 3", -1, "claims[].known");
}

static void band_label(const double edges[HM_REPORT_BANDS], size_t i, char out[128])
{
    struct hm_number from = hm_number_near(edges[i], 4);
    if (i + 1 == HM_REPORT_BANDS)
        snprintf(out, 128, "\xe2\x89\xa5 %s", from.text);
    else
        snprintf(out, 128, "%s \xe2\x80\x93 %s", from.text, hm_number_near(edges[i + 1], 4).text);
}

enum { LABEL = 84, SPAN = 186, ROW = 31, HEAD = 22, BAR = 17, EXACT = 328, LESS = 386, STEPS = 436 };

static void put_bar(struct hm_output *o, int y, double share, const char *class_name)
{
    double length = SPAN * share;
    if (share > 0)
        hm_putf(o, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\" rx=\"3\"/>", class_name, LABEL, y,
                hm_units(length < 1.5 ? 1.5 : length).text, BAR);
}

static void put_band(struct hm_output *o, int row, const double *edges, const struct hm_known *k, int by)
{
    char label[128];
    int y = HEAD + row * ROW, text = y + 18;
    band_label(edges, (size_t)row, label);
    hm_putf(o,
            "<text class=\"muted e\" x=\"%d\" y=\"%d\">%s</text><rect class=\"track\" x=\"%d\" y=\"%d\" width=\"%d\" "
            "height=\"%d\" rx=\"3\"/>",
            LABEL - 10, text, label, LABEL, y + 5, SPAN, BAR);
    hm_putf(o, "<text class=\"e%s\" x=\"%d\" y=\"%d\">%s</text>", k->steps ? "" : " muted", STEPS, text,
            hm_number_count(k->steps).text);
    if (k->steps) {
        bool gap = k->with[HM_FROM_GAP] > 0, rule = k->with[HM_FROM_RULE] > 0 && by != HM_BY_TV;
        double n = (double)k->steps;
        put_bar(o, y + 5, (double)k->yes[HM_FROM_ROW][by] / n, gap ? "fill pale" : "fill");
        if (gap) put_bar(o, y + 5, (double)k->yes[HM_FROM_GAP][by] / n, "fill");
        if (rule)
            hm_putf(o, "<path class=\"mark\" d=\"M%s %dv21\"/>",
                    hm_units(LABEL + SPAN * (double)k->yes[HM_FROM_RULE][by] / n).text, y + 3);
        hm_putf(o, "<text class=\"e\" x=\"%d\" y=\"%d\">%s</text>", EXACT, text,
                hm_number_percent(k->yes[HM_FROM_ROW][by], k->steps).text);
        if (gap)
            hm_putf(o, "<text class=\"e\" x=\"%d\" y=\"%d\">%s</text>", LESS, text,
                    hm_number_percent(k->yes[HM_FROM_GAP][by], k->steps).text);
    }
    hm_put(o, "\n");
}

static void put_bands(struct hm_output *o, const struct hm_claim_figures *f, int by)
{
    char title[160];
    bool gap = f->gap_steps > 0;
    snprintf(title, sizeof title, "Share of steps certified by %s, in bands of the margin%s",
             by == HM_BY_ANY ? "any distance" : BY[by], gap ? ": from the whole row, and from the gap alone" : "");
    hm_picture_open(o, HEAD + HM_REPORT_BANDS * ROW + 4, title,
                    "One bar for each band of the margin, with its numbers at the right.");
    hm_putf(o,
            "<g class=\"muted\"><text class=\"e\" x=\"%d\" y=\"12\">margin</text><text class=\"e\" x=\"%d\" "
            "y=\"12\">exact</text>",
            LABEL - 10, EXACT);
    if (gap) hm_putf(o, "<text class=\"e\" x=\"%d\" y=\"12\">by gap</text>", LESS);
    hm_putf(o, "<text class=\"e\" x=\"%d\" y=\"12\">steps</text></g>\n", STEPS);
    for (int i = 0; i < HM_REPORT_BANDS; i++)
        put_band(o, i, gap ? HM_GAP_EDGES : HM_LOGIT_EDGES, gap ? &f->gap[i] : &f->logit[i], by);
    hm_put(o, "</svg>\n");
}

// The rule-universal bound says nothing by TV.
static bool has_rule(const struct hm_claim_figures *f)
{
    return f->known.with[HM_FROM_RULE] > 0;
}

void hm_html_bands(struct hm_output *o, const struct hm_report *r, size_t index, enum hm_detail detail)
{
    static const char *const names[HM_KNOWN_BY] = {"any", "KLf", "KLr", "TV"};
    static const int order[HM_KNOWN_BY] = {HM_BY_ANY, HM_BY_KLF, HM_BY_KLR, HM_BY_TV};
    const struct hm_claim_figures *f = &r->claims[index];
    char group[32];
    hm_put(o, "<div class=\"panel\"><h3>Certified by margin</h3><p class=\"note\">");
    hm_html_claim_name(o, f);
    hm_put(o, f->gap_steps
                  ? ". Margin: the gap p<sub>(k)</sub> \xe2\x88\x92 p<sub>(k+1)</sub> between the last accepted and "
                    "the first rejected token.</p><p class=\"note\">"
                  : ". Margin: the difference of the logits of the last accepted and the first rejected "
                    "token.</p><p class=\"note\">");
    hm_picture_key(o, HM_KEY_BAR("fill"), f->gap_steps ? "certified from the gap alone" : "certified");
    if (f->gap_steps) hm_picture_key(o, HM_KEY_BAR("fill pale"), "only from the whole row");
    if (has_rule(f)) hm_picture_key(o, HM_KEY_MARK("mark"), "from the rule alone");
    hm_put(o, "</p>\n");
    if (detail == HM_DETAIL_FULL) {
        snprintf(group, sizeof group, "bands%zu", index);
        hm_tabs_open(o, group, "Certified by which distance", names, HM_KNOWN_BY);
        for (size_t i = 0; i < HM_KNOWN_BY; i++) {
            hm_tab_open(o);
            put_bands(o, f, order[i]);
            hm_tab_close(o);
        }
        hm_tabs_close(o);
    } else
        put_bands(o, f, HM_BY_ANY);
    hm_picture_made(
        o, r,
        "Steps of a band that are certified / steps of the band (with a draft row, decided, both levels finite). A "
        "step is certified from the gap when D &lt; the bound that holds for every row with this gap.",
        "2, 3", (long)index, "bands");
    hm_put(o, "</div>\n");
}
