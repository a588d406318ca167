// The Markdown report's tables on bounds and laws (theory.h): those that have something to say.
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

static void put_name(struct hm_output *o, const struct hm_claim_figures *f)
{
    char m[24];
    hm_put(o, "| ");
    hm_put_markdown(o, f->rule);
    hm_putf(o, " | %s ", hm_m_text(f->m, m));
}

static void put_failures(struct hm_output *o, const struct hm_report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_theory *t = &r->claims[i].theory;
        if (!t->judged) continue;
        if (!any)
            hm_put(o, "### What a drafter must reach\n\nA step whose proposals all miss A has D >= D*: failures are at "
                      "most the sum "
                      "of min(1, D/D*).\n\n| rule | m | steps | failures | at most, by KLf | by KLr | by TV "
                      "|\n|---|---|---:|---:|---:|---:|---:|\n");
        any = true;
        put_name(o, &r->claims[i]);
        hm_putf(o, "| %llu | %llu ", (unsigned long long)t->judged, (unsigned long long)t->failure[0].failures);
        for (int d = 0; d < 3; d++) hm_putf(o, "| %s ", hm_number_up(t->failure[d].bound.hi, 4).text);
        hm_put(o, "|\n");
    }
    if (any) hm_put(o, "\n");
}

static void put_sequences(struct hm_output *o, const struct hm_report *r)
{
    struct hm_fidelity f;
    if (!r->theory.fidelity.sequences) return;
    hm_fidelity_bound(&r->theory.fidelity, HM_FIDELITY_RISK_PERCENT / 200.0, &f);
    hm_putf(o,
            "**Fidelity of whole sequences** (total variation from the target's law, %s): estimate of an "
            "upper bound %s; ",
            hm_number_of(r->theory.fidelity.sequences, "sequence").text, hm_number_up(f.mean_shortfall.hi, 4).text);
    if (f.vacuous)
        hm_putf(o, "finite-sample bound vacuous; ");
    else
        hm_putf(o, "at most %s with %d%% risk; ",
                hm_number_up(f.bernstein < f.hoeffding ? f.bernstein : f.hoeffding, 4).text, HM_FIDELITY_RISK_PERCENT);
    hm_putf(o, "mean sum of e %s%s.\n\n", hm_number_up(f.mean_s.hi, 4).text, f.vacuous_s ? " (bound vacuous)" : "");
}

static void put_restricted(struct hm_output *o, const struct hm_report *r)
{
    if (!hm_report_has_restricted(r)) return;
    hm_put(o, "### Reduced draft vocabulary\n\nCertificates on D, the tokens that the draft can score: KLf on the whole "
              "vocabulary is infinite wherever the target can choose another. p(D) is the target's mass on D.\n\n"
              "| rule | m | certified | steps | mean p(D), at least | p(D) = 0 |\n|---|---|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_theory *t = &r->claims[i].theory;
        if (!t->restricted) continue;
        put_name(o, &r->claims[i]);
        hm_putf(o, "| %s | %llu | %s | %llu |\n",
                hm_number_share(t->restricted_yes, t->restricted, t->restricted_vacuous).text,
                (unsigned long long)t->restricted, hm_number_down(hm_sum_mean_lower(&t->mass), 4).text,
                (unsigned long long)t->no_mass);
    }
    hm_put(o, "\n");
}

static void put_divergences(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    if (!h->divergence_count) return;
    hm_put(o, "### Other divergences\n\n| divergence | rule | m | certified | steps | least threshold "
              "|\n|---|---|---|---:|---:|---:|\n");
    for (size_t d = 0; d < h->divergence_count; d++)
        for (size_t i = 0; i < r->claim_count; i++) {
            const struct hm_claim_divergence *c = &r->claims[i].theory.divergence[d];
            if (!c->thresholds) continue;
            hm_put(o, "| ");
            hm_put_markdown(o, h->divergences[d]);
            hm_put(o, " ");
            put_name(o, &r->claims[i]);
            hm_putf(o, "| %s | %llu | %s |\n", hm_number_share(c->yes, c->verdicts, c->vacuous).text,
                    (unsigned long long)c->verdicts, hm_number_down(c->least, 3).text);
        }
    hm_put(o, "\n");
}

static void put_laws(struct hm_output *o, const struct hm_report *r)
{
    static const char *const names[HM_LOG_LAWS] = {[HM_PROPOSAL_IID] = "iid", [HM_PROPOSAL_TOPK] = "topk"};
    bool any = false;
    for (size_t i = 0; i < r->claim_count; i++)
        for (size_t l = 0; l < HM_LOG_LAWS; l++) {
            const struct hm_claim_theory *t = &r->claims[i].theory;
            if (!t->e[l].count) continue;
            if (!any)
                hm_put(
                    o,
                    "### Stochastic acceptance\n\n| rule | m | proposal | accepted, mean | e, mean at most | steps |\n"
                    "|---|---|---|---:|---:|---:|\n");
            any = true;
            put_name(o, &r->claims[i]);
            hm_putf(o, "| %s | %s | %s | %llu |\n", names[l], hm_number_down(hm_sum_mean_lower(&t->accept[l]), 4).text,
                    hm_number_up(hm_sum_mean_upper(&t->e[l]), 4).text, (unsigned long long)t->e[l].count);
        }
    if (any) hm_put(o, "\n");
}

void hm_markdown_theory(struct hm_output *o, const struct hm_report *r)
{
    put_sequences(o, r);
    put_failures(o, r);
    put_restricted(o, r);
    put_divergences(o, r);
    put_laws(o, r);
    if (r->theory.filter_logs)
        hm_putf(o, "Exact questions: %llu, of them double enclosures left %llu to MPFR; undecided: %llu.\n\n",
                (unsigned long long)r->theory.decisions, (unsigned long long)r->theory.filter_undecided,
                (unsigned long long)r->undecided);
}
