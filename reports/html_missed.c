// The HTML section on steps that the lead claim does not certify: which, and by how much each distance misses its limit.
#include "reports/html.h"
#include "reports/number.h"

static const char *const NAMES[] = {"KLf", "KLr", "TV"};

// "KLf 0.31, limit 0.12" for the distance that comes nearest to its limit.
static void put_nearest(struct hm_output *o, const struct hm_missed_step *m)
{
    int best = -1;
    for (int i = 0; i < 3 && m->has_draft && m->has_limits; i++) {
        if (!(m->limit[i] > 0)) continue;
        if (best < 0 || m->distance[i] / m->limit[i] < m->distance[best] / m->limit[best]) best = i;
    }
    if (best < 0)
        hm_put(o, "<td>\xe2\x80\x93</td><td>\xe2\x80\x93</td>");
    else
        hm_putf(o, "<td>%s <span class=\"soft\">%s</span></td><td>%s</td>", hm_number_up(m->distance[best], 3).text,
                NAMES[best], hm_number_down(m->limit[best], 3).text);
}

static const char *why(const struct hm_missed_step *m)
{
    switch (m->status) {
    case HM_TOKEN_UNCOVERED: return "no proposed token lies in A";
    case HM_TOKEN_INAPPLICABLE: return "the children are not the draft\xe2\x80\x99s first m";
    case HM_TOKEN_UNDECIDED: return "exact arithmetic gave up";
    default: return m->k == 0 ? "the rule accepts no token" : "no distance is below its limit";
    }
}

static void put_step(struct hm_output *o, const struct hm_report *r, const struct hm_missed_step *m)
{
    hm_put(o, "<tr><th scope=\"row\">");
    if (m->index < 0) {
        hm_putf(o, "%lld, %lld</th><td class=\"left\"><code>", (long long)m->sequence, (long long)m->t);
        hm_put_html(o, m->text);
        hm_put(o, "</code></td>");
    } else {
        hm_putf(o, "row %lld</th>", (long long)m->index);
    }
    hm_putf(o, "<td class=\"left\"><span class=\"dot s%u\"></span>%s</td>", m->status, why(m));
    hm_putf(o, "<td>%lld, %lld</td>", (long long)m->k, (long long)m->m);
    put_nearest(o, m);
    hm_put(o, "<td>");
    if (r->log_count > 1) {
        hm_put_html(o, r->logs[m->log].path);
        hm_put(o, ": ");
    }
    hm_putf(o, "%zu</td>", m->line);
    hm_put(o, "<td class=\"left\">");
    hm_html_inspect(o, r, m->log, m->index < 0 ? m->sequence : -1, m->index < 0 ? m->t : m->index, -1);
    hm_put(o, "</td></tr>\n");
}

void hm_html_missed(struct hm_output *o, const struct hm_report *r)
{
    static const enum hm_token_status order[] = {HM_TOKEN_UNDECIDED, HM_TOKEN_UNCOVERED, HM_TOKEN_INAPPLICABLE,
                                                 HM_TOKEN_COVERED};
    const struct hm_claim_figures *f = &r->claims[r->lead];
    uint64_t all = 0, shown = 0;
    bool audit = hm_report_audit(r);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        all += f->status[order[i]];
        shown += r->missed_count[order[i]];
    }
    if (!all) return;
    hm_put(o, "<section id=\"missed\"><h2>Not certified, and why</h2>\n<p class=\"note\">Under ");
    hm_html_claim_name(o, f);
    hm_putf(o,
            ": %s. A step that is not certified may be covered all the same; nothing proves it then but the step itself. "
            "Beside each stands the distance that comes nearest to its limit.%s</p>\n",
            hm_number_of(all, audit ? "row" : "step").text,
            shown < all ? " The first 40 of each kind are listed." : "");
    hm_putf(o, "<div class=\"scroll tall\"><table class=\"tight sortable\"><thead><tr><th>%s<th class=\"left\">why</th>"
               "<th>k, m</th><th>draft \xe2\x89\xa4</th><th>limit \xe2\x89\xa5</th><th>line</th><th class=\"left\">look at it</th></tr></thead><tbody>\n",
            audit ? "row</th>" : "sequence, t</th><th class=\"left\">token</th>");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t k = 0; k < r->missed_count[order[i]]; k++) put_step(o, r, &r->missed[order[i]][k]);
    hm_put(o, "</tbody></table></div>\n</section>\n");
}
