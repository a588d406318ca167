// The Markdown report's tables on speculative sampling and fidelity budgets (speculative.h), at most 80 columns wide.
#include "reports/figures.h"
#include "reports/number.h"
#include "reports/output.h"

static void put_sum(struct hm_output *o, const char *name, const struct hm_sum *sum)
{
    if (!sum->count) return;
    hm_putf(o, "| %s | %s | %s | %s |\n", name, hm_number_down(sum->lo, 6).text, hm_number_up(sum->hi, 6).text,
            hm_number_up(hm_sum_mean_upper(sum), 4).text);
}

static void put_acceptance(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = &r->logs[0].header;
    hm_put(o, "### Speculative sampling\n\nAcceptance ");
    hm_put_markdown(o, h->acceptance);
    hm_putf(o, ", children %s.\nA child was accepted at %s of %s.\n\n",
            h->proposal && h->proposal[0] == 'i' ? "drawn from the draft" : "the draft's likeliest",
            hm_number_count(s->accepted).text, hm_number_of(s->positions, "position").text);
    hm_put(o, "| sum over positions | at least | at most | mean, at most |\n|---|---:|---:|---:|\n");
    put_sum(o, "acceptance", &s->accept);
    put_sum(o, "standard acceptance", &s->standard);
    put_sum(o, "acceptance gained", &s->gain);
    put_sum(o, "E_N where in force", &s->excess);
    put_sum(o, "e where in force", &s->e);
    if (!s->standard.count) hm_put(o, "\nNothing was relaxed: every token has the target's law.\n");
    hm_put(o, "\n");
    if (!s->single) return;
    hm_putf(
        o,
        "At the %s with one draw the acceptance gained, E_N and e are one number by identity; its three enclosures in "
        "the log, summed:\n\n| | acceptance gained | E_N | e |\n|---|---:|---:|---:|\n",
        hm_number_of(s->single, "position").text);
    hm_putf(o, "| at least | %s | %s | %s |\n", hm_number_down(s->single_gain.lo, 9).text,
            hm_number_down(s->single_excess.lo, 9).text, hm_number_down(s->single_e.lo, 9).text);
    hm_putf(o, "| at most | %s | %s | %s |\n\n", hm_number_up(s->single_gain.hi, 9).text,
            hm_number_up(s->single_excess.hi, 9).text, hm_number_up(s->single_e.hi, 9).text);
}

static void put_budget(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = hm_report_budget(r);
    bool tv = h->budget_kind[0] == 't';
    hm_put(o, "### Fidelity budget\n\n| figure | value |\n|---|---:|\n| limit per sequence, ");
    hm_putf(o, "%s | ", tv ? "total variation" : "nats of regret");
    hm_put_markdown(o, h->budget_limit);
    hm_put(o, " |\n");
    if (s->budgets) {
        hm_putf(o, "| spent, mean of %s, at most | %s |\n", hm_number_of(s->budgets, "sequence").text,
                hm_number_up(hm_speculative_spent_mean(s), 4).text);
        hm_putf(o, "| spent, most | %s |\n", hm_number_up(s->spent_most, 4).text);
    }
    hm_putf(o, "| relaxation in force | %s of %s (%s) |\n\n", hm_number_count(s->relaxed).text,
            hm_number_of(s->charged, "position").text, hm_number_percent(s->relaxed, s->charged).text);
    if (tv)
        hm_putf(o,
                "On every path the total variation between the law of a sequence and the target's is at most the "
                "larger of "
                "the limit and R, the room that uniforms of 53 bits need (here at most %s).\n\n",
                hm_number_up(s->reserve, 3).text);
    else
        hm_put(o, "On every path the regrets of a sequence's tokens sum to at most the limit.\n\n");
}

void hm_markdown_speculative(struct hm_output *o, const struct hm_report *r)
{
    if (r->speculative.positions) put_acceptance(o, r);
    if (hm_report_budget(r)) put_budget(o, r);
}
