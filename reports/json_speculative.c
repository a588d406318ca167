// The JSON report's figures on speculative sampling and fidelity budgets (speculative.h, docs/report.md).
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

static unsigned long long count(uint64_t n)
{
    return n;
}

static void put_budget(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = hm_report_budget(r);
    if (!h) {
        hm_put(o, "\"fidelity_budget\":null");
        return;
    }
    hm_putf(o, "\"fidelity_budget\":{\"kind\":\"%s\",\"limit\":", h->budget_kind);
    hm_put_json(o, h->budget_limit);
    hm_putf(o, ",\"sequences\":%llu,\"spent_sum_upper\":%s,\"spent_max_upper\":%s,\"asked\":%llu,\"in_force\":%llu,",
            count(s->budgets), hm_number_json_up(s->spent).text, hm_number_json_up(s->spent_most).text,
            count(s->charged), count(s->relaxed));
    hm_putf(o, "\"reserve_upper\":%s}", h->budget_kind[0] == 't' ? hm_number_json_up(s->reserve).text : "null");
}

void hm_json_speculative(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    hm_put(o, "\"speculative\":");
    if (s->positions) {
        hm_putf(o, "{\"positions\":%llu,\"accepted\":%llu,\"in_force\":%llu,", count(s->positions), count(s->accepted),
                count(s->in_force));
        hm_json_sum(o, "accept", &s->accept, ",");
        hm_json_sum(o, "accept_standard", &s->standard, ",");
        hm_json_sum(o, "gained", &s->gain, ",");
        hm_json_sum(o, "nucleus_excess", &s->excess, ",");
        hm_json_sum(o, "e", &s->e, ",");
        hm_put(o, "\"one_draw\":{");
        hm_json_sum(o, "gained", &s->single_gain, ",");
        hm_json_sum(o, "nucleus_excess", &s->single_excess, ",");
        hm_json_sum(o, "e", &s->single_e, "}},\n");
    } else {
        hm_put(o, "null,\n");
    }
    put_budget(o, r);
}
