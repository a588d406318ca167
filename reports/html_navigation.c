// The bar of links and the choice of a claim, which stays in sight.
#include "reports/html.h"

static void put_link(struct hm_output *o, const char *id, const char *text)
{
    hm_putf(o, "<a href=\"#%s\">%s</a>", id, text);
}

static bool has_missed(const struct hm_report *r)
{
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++)
        if (r->missed_count[i]) return true;
    return false;
}

void hm_html_navigation(struct hm_output *o, const struct hm_report *r)
{
    bool audit = hm_report_audit(r);
    hm_put(o, "<nav class=\"bar\" aria-label=\"Sections\"><div>");
    put_link(o, "claims", hm_report_has_draft_rows(r) ? "Certified" : "Requirement");
    if (has_missed(r)) put_link(o, "missed", "Not certified");
    if (!audit) put_link(o, "text", "Text");
    if (!audit) put_link(o, "acceptance", "Acceptance");
    if (!audit && r->rounds.kept) put_link(o, "trees", "Trees");
    if (!audit && (r->speculative.positions || hm_report_budget(r))) put_link(o, "speculative", "Speculation");
    put_link(o, "cost", audit ? "Distance" : "Cost");
    if (!audit) put_link(o, "sequences", "Sequences");
    put_link(o, "theory", "Bounds");
    put_link(o, "findings", "Findings");
    if (!audit) put_link(o, "closest", "Closest");
    put_link(o, "run", "Run");
    put_link(o, "pictures", "Theorem");
    put_link(o, "how", "Method");
    if (r->claim_count > 1) {
        hm_put(o, "<label class=\"js-only\">Claim <select id=\"claim\">");
        for (size_t i = 0; i < r->claim_count; i++) {
            hm_putf(o, "<option value=\"%zu\"%s>", i, i == r->lead ? " selected" : "");
            hm_html_claim_name(o, &r->claims[i]);
            hm_put(o, "</option>");
        }
        hm_put(o, "</select></label>");
    }
    hm_put(o, "</div></nav>\n");
}
