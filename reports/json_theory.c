// The JSON report's figures on bounds and laws (theory.h, docs/report.md).
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

static const char *const LAWS[HM_LOG_LAWS] = {[HM_PROPOSAL_IID] = "iid", [HM_PROPOSAL_TOPK] = "topk"};

static unsigned long long count(uint64_t n)
{
    return n;
}

static void put_fidelity(struct hm_output *o, const struct hm_report_theory *t)
{
    struct hm_fidelity f;
    if (!t->fidelity.sequences) {
        hm_put(o, "\"fidelity\":null,");
        return;
    }
    hm_fidelity_bound(&t->fidelity, HM_FIDELITY_RISK_PERCENT / 200.0, &f);
    hm_putf(o, "\"fidelity\":{\"sequences\":%llu,\"unfinished\":%llu,\"risk\":0.0%d,\"shortfall_mean_lower\":%s,",
            count(t->fidelity.sequences), count(t->unfinished), HM_FIDELITY_RISK_PERCENT,
            hm_number_json_down(f.mean_shortfall.lo).text);
    hm_putf(o, "\"shortfall_mean_upper\":%s,\"hoeffding_upper\":%s,\"bernstein_upper\":%s,",
            hm_number_json_up(f.mean_shortfall.hi).text, hm_number_json_up(f.hoeffding).text,
            hm_number_json_up(f.bernstein).text);
    hm_putf(o, "\"bound_upper\":%s,\"vacuous\":%s,\"e_sum_mean_lower\":%s,\"e_sum_mean_upper\":%s,\"e_sum_vacuous\":%s},",
            hm_number_json_up(f.bernstein < f.hoeffding ? f.bernstein : f.hoeffding).text,
            f.vacuous ? "true" : "false", hm_number_json_down(f.mean_s.lo).text, hm_number_json_up(f.mean_s.hi).text,
            f.vacuous_s ? "true" : "false");
}

void hm_json_theory(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    const struct hm_report_theory *t = &r->theory;
    hm_put(o, "{");
    put_fidelity(o, t);
    hm_json_sum(o, "standard_accept", &t->standard_accept, ",");
    hm_put(o, "\"divergences\":{");
    for (size_t d = 0; d < h->divergence_count; d++) {
        if (d) hm_put(o, ",");
        hm_json_sum(o, h->divergences[d], &t->divergence[d], ""); // canonical names: letters, digits and -:/
    }
    if (t->filter_logs)
        hm_putf(o, "},\"filter\":{\"decisions\":%llu,\"undecided\":%llu}}", count(t->decisions),
                count(t->filter_undecided));
    else
        hm_put(o, "},\"filter\":null}");
}

static void put_claim_divergences(struct hm_output *o, const struct hm_record_header *h,
                                  const struct hm_claim_theory *t)
{
    bool any = false;
    hm_put(o, "\"divergences\":{");
    for (size_t d = 0; d < h->divergence_count; d++) {
        const struct hm_claim_divergence *c = &t->divergence[d];
        if (!c->thresholds) continue;
        hm_putf(o, "%s\"%s\":{\"verdicts\":%llu,\"yes\":%llu,\"least_lower\":%s}", any ? "," : "", h->divergences[d],
                count(c->verdicts), count(c->yes), hm_number_json_down(c->least).text);
        any = true;
    }
    hm_put(o, "},");
}

void hm_json_claim_theory(struct hm_output *o, const struct hm_report *r, const struct hm_claim_figures *f)
{
    const struct hm_claim_theory *t = &f->theory;
    double at, share = hm_theory_markov(t, &at);
    hm_putf(o, "{\"judged\":%llu,\"failures\":%llu,\"failures_upper\":", count(t->judged),
            count(t->failure[0].failures));
    for (int d = 0; d < 3; d++)
        hm_putf(o, "%s\"%s\":%s", d ? "," : "{",
                d == 0   ? "klf"
                : d == 1 ? "klr"
                         : "tv",
                hm_number_json_up(t->failure[d].bound.hi).text);
    const struct hm_known *k = &f->known;
    hm_putf(o, "},\"failure_share_upper\":%s,\"exact\":%llu,\"margin\":%llu,\"with_margin\":%llu,\"universal\":%llu,",
            t->judged ? hm_number_json_up(share).text : "null", count(k->yes[HM_FROM_ROW][HM_BY_ANY]),
            count(k->yes[HM_FROM_GAP][HM_BY_ANY]), count(k->with[HM_FROM_GAP]), count(k->yes[HM_FROM_RULE][HM_BY_ANY]));
    hm_putf(o, "\"with_universal\":%llu,\"active\":{\"eps\":%llu,\"delta\":%llu},", count(k->with[HM_FROM_RULE]),
            count(t->active[HM_ACTIVE_EPS]), count(t->active[HM_ACTIVE_DELTA]));
    hm_putf(o, "\"restricted\":{\"steps\":%llu,\"certified\":%llu,\"no_mass\":%llu,", count(t->restricted),
            count(t->restricted_yes), count(t->no_mass));
    hm_json_sum(o, "mass", &t->mass, "},");
    put_claim_divergences(o, &r->logs[0].header, t);
    hm_put(o, "\"laws\":{");
    for (size_t l = 0; l < HM_LOG_LAWS; l++) {
        hm_putf(o, "%s\"%s\":{", l ? "," : "", LAWS[l]);
        hm_json_sum(o, "accept", &t->accept[l], ",");
        hm_json_sum(o, "e", &t->e[l], "}");
    }
    hm_put(o, "}}");
}
