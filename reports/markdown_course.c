// The Markdown report on whole sequences, by category (course.h).
#include "reports/markdown.h"
#include "reports/number.h"

#include <math.h>

static void put_group(struct hm_output *o, const struct hm_report_group *g)
{
    const struct hm_course_group *c = &g->course;
    hm_put(o, "| ");
    hm_put_markdown(o, g->name);
    hm_putf(o, " | %llu ", (unsigned long long)(c->fidelity.sequences ? c->fidelity.sequences : c->regret.count));
    if (c->fidelity.sequences) {
        struct hm_fidelity f;
        hm_fidelity_bound(&c->fidelity, HM_FIDELITY_RISK_PERCENT / 200.0, &f);
        hm_putf(o, "| %s | %s ", hm_number_up(f.mean_shortfall.hi, 4).text,
                f.vacuous ? "bound vacuous" : hm_number_up(fmin(f.hoeffding, f.bernstein), 4).text);
        hm_putf(o, "| %s%s ", hm_number_up(f.mean_s.hi, 4).text, f.vacuous_s ? " (vacuous)" : "");
    } else {
        hm_put(o, "| | | ");
    }
    if (c->regret.count)
        hm_putf(o, "| %s |\n", hm_number_up(hm_sum_mean_upper(&c->regret), 4).text);
    else
        hm_put(o, "| |\n");
}

void hm_markdown_course(struct hm_output *o, const struct hm_report *r)
{
    if (!r->course.with_e && !r->course.with_regret) return;
    hm_put(o, "### Whole sequences by category\n\n| category | finished | estimate of TV | bound, 95 % | mean sum of e | mean "
              "regret, nats |\n|---|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < r->category_count; i++) put_group(o, &r->categories[i]);
    hm_put(o, "\nEstimates are upper ends; sums of e are never clipped before they are averaged; regrets are sums over a "
              "sequence.\n\n");
}
