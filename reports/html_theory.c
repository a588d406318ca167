// The HTML section on bounds and laws: what a drafter must reach, what cheaper bounds would have said, reduced
// vocabularies, other divergences, stochastic acceptance, and whole sequences (theory.h).
#include "reports/html.h"
#include "reports/number.h"

// Mean of the upper ends, rounded up.
static struct hm_number mean_up(const struct hm_sum *sum)
{
    return hm_number_up(hm_sum_mean_upper(sum), 4);
}

static void put_head(struct hm_output *o, const char *title, const char *note, const char *columns)
{
    hm_putf(o,
            "<h3>%s</h3><p class=\"note\">%s</p>\n<div class=\"scroll\"><table "
            "class=\"tight\"><thead><tr>%s</tr></thead><tbody>\n",
            title, note, columns);
}

static void put_name(struct hm_output *o, const struct hm_claim_figures *f)
{
    hm_put(o, "<tr><th scope=\"row\">");
    hm_html_claim_name(o, f);
    hm_put(o, "</th>");
}

static void put_failures(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[] = {"klf", "klr", "tv"};
    put_head(
        o, "What a drafter must reach",
        "A step whose proposals all miss A has D \xe2\x89\xa5 D*, so on every run the failures are at most the sum of "
        "min(1, D/D*) over the steps, and for any s at most the share of steps with D* below s plus the mean of D "
        "over s (D: KLf; the best s is shown). Steps with a draft row whose children are the draft\xe2\x80\x99s first "
        "m.",
        "<th>Rule and m</th><th>steps</th><th>failures</th><th>at most, by KLf</th><th>by KLr</th><th>by TV</th>"
        "<th>share at most</th><th>at s</th>");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_theory *t = &r->claims[i].theory;
        double at, share = hm_theory_markov(t, &at);
        if (!t->judged) continue;
        put_name(o, &r->claims[i]);
        hm_putf(o, "<td>%s</td><td><b>", hm_number_count(t->judged).text);
        hm_html_value(o, hm_number_count(t->failure[0].failures).text, NULL, "claims.%zu.theory.failures", i);
        hm_put(o, "</b></td>");
        for (int d = 0; d < 3; d++) {
            hm_put(o, "<td>");
            hm_html_value(o, hm_number_up(t->failure[d].bound.hi, 4).text, NULL, "claims.%zu.theory.failures_upper.%s", i,
                          names[d]);
            hm_put(o, "</td>");
        }
        hm_put(o, "<td>");
        hm_html_value(o, hm_number_up(share, 3).text, NULL, "claims.%zu.theory.failure_share_upper", i);
        hm_putf(o, "</td><td>%s</td></tr>\n", at > 0 ? hm_number_near(at, 3).text : "any");
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_active(struct hm_output *o, const struct hm_report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->claim_count; i++) {
        const uint64_t *active = r->claims[i].theory.active;
        uint64_t known = active[HM_ACTIVE_EPS] + active[HM_ACTIVE_DELTA];
        if (!known) continue;
        hm_put(o, any ? "; " : "<p class=\"note\">Which threshold of an entropy rule was in force: ");
        any = true;
        hm_html_claim_name(o, &r->claims[i]);
        hm_putf(o,
                ": \xce\xb5 at %s of %s, \xce\xb4\xc2\xb7"
                "e<sup>\xe2\x88\x92H</sup> at the others",
                hm_number_count(active[HM_ACTIVE_EPS]).text, hm_number_of(known, "step").text);
    }
    if (any) hm_put(o, ".</p>\n");
}

static void put_restricted(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<div id=\"reduced\"></div>");
    put_head(o, "Reduced draft vocabulary",
             "Where the target can choose a token whose draft logit is \xe2\x88\x92\xe2\x88\x9e, KLf on the whole "
             "vocabulary is infinite; these are the certificates on the tokens D that the draft can score, p(D) the "
             "target\xe2\x80\x99s mass there.",
             "<th>Rule and m</th><th>certified</th><th>steps</th><th>mean p(D), at least</th><th>p(D) = 0</th>");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_theory *t = &r->claims[i].theory;
        if (!t->restricted) continue;
        put_name(o, &r->claims[i]);
        hm_putf(o, "<td><b>%s</b></td><td>%s</td>",
                hm_number_share(t->restricted_yes, t->restricted, t->restricted_vacuous).text,
                hm_number_count(t->restricted).text);
        hm_putf(o, "<td>%s</td><td>%s</td></tr>\n", hm_number_down(hm_sum_mean_lower(&t->mass), 4).text,
                hm_number_count(t->no_mass).text);
    }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_divergences(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    put_head(o, "Other divergences",
             "Certified when the draft\xe2\x80\x99s value lies below the least value at which coverage could fail.",
             "<th>Divergence</th><th>draft, mean at most</th><th class=\"left\">Rule and "
             "m</th><th>certified</th><th>steps</th><th>least threshold</th>");
    for (size_t d = 0; d < h->divergence_count; d++)
        for (size_t i = 0; i < r->claim_count; i++) {
            const struct hm_claim_divergence *c = &r->claims[i].theory.divergence[d];
            if (!c->thresholds) continue;
            hm_put(o, "<tr><th scope=\"row\">");
            hm_put_html(o, h->divergences[d]);
            hm_putf(o, "</th><td>%s</td><td class=\"left\">",
                    r->theory.divergence[d].count ? mean_up(&r->theory.divergence[d]).text : "\xe2\x80\x93");
            hm_html_claim_name(o, &r->claims[i]);
            hm_putf(o, "</td><td><b>%s</b></td><td>%s</td><td>%s</td></tr>\n",
                    hm_number_share(c->yes, c->verdicts, c->vacuous).text, hm_number_count(c->verdicts).text,
                    hm_number_down(c->least, 3).text);
        }
    hm_put(o, "</tbody></table></div>\n");
}

static void put_laws(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[HM_LOG_LAWS] = {[HM_PROPOSAL_IID] = "iid", [HM_PROPOSAL_TOPK] = "topk"};
    put_head(
        o, "Stochastic acceptance",
        "If the draft proposed m tokens (iid: draws; topk: its first m) and those in A were accepted surely, the "
        "others as "
        "standard speculative sampling would: how often one is accepted, and the total variation e that this costs.",
        "<th>Rule and m</th><th>proposal</th><th>accepted, mean</th><th>e, mean at most</th><th>steps</th>");
    for (size_t i = 0; i < r->claim_count; i++)
        for (size_t l = 0; l < HM_LOG_LAWS; l++) {
            const struct hm_claim_theory *t = &r->claims[i].theory;
            if (!t->e[l].count) continue;
            put_name(o, &r->claims[i]);
            hm_putf(o, "<td>%s</td><td>%s</td><td><b>%s</b></td><td>%s</td></tr>\n", names[l],
                    hm_number_down(hm_sum_mean_lower(&t->accept[l]), 4).text, mean_up(&t->e[l]).text,
                    hm_number_count(t->e[l].count).text);
        }
    hm_put(o, "</tbody></table></div>\n");
    if (r->theory.standard_accept.count)
        hm_putf(
            o, "<p class=\"note\">Standard acceptance of one draw, \xce\xa3 min(p, q): mean at least %s over %s.</p>\n",
            hm_number_down(hm_sum_mean_lower(&r->theory.standard_accept), 4).text,
            hm_number_of(r->theory.standard_accept.count, "step").text);
}

static bool any_claim(const struct hm_report *r, bool (*has)(const struct hm_claim_theory *))
{
    for (size_t i = 0; i < r->claim_count; i++)
        if (has(&r->claims[i].theory)) return true;
    return false;
}
static bool has_judged(const struct hm_claim_theory *t)
{
    return t->judged > 0;
}
static bool has_laws(const struct hm_claim_theory *t)
{
    return t->e[0].count || t->e[1].count;
}

void hm_html_theory(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"theory\"><h2>Bounds and laws</h2>\n");
    if (any_claim(r, has_judged)) put_failures(o, r);
    hm_html_known(o, r);
    put_active(o, r);
    if (hm_report_has_restricted(r)) put_restricted(o, r);
    if (r->logs[0].header.divergence_count) put_divergences(o, r);
    if (any_claim(r, has_laws)) put_laws(o, r);
    if (r->theory.filter_logs)
        hm_putf(
            o,
            "<p class=\"note\">Exact questions asked while certifying: %s, of them double enclosures left %s to MPFR "
            "(%s in a million). Undecided after 4096 bits: %s.</p>\n",
            hm_number_count(r->theory.decisions).text, hm_number_count(r->theory.filter_undecided).text,
            r->theory.decisions
                ? hm_number_near(1e6 * (double)r->theory.filter_undecided / (double)r->theory.decisions, 3).text
                : "0",
            hm_number_count(r->undecided).text);
    hm_put(o, "</section>\n");
}
