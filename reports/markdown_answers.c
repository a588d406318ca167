// The first table of the Markdown report: what the rule was, whether every token was certified and which was not, what
// relaxation cost, whether anything is unexplained.
#include "reports/markdown.h"
#include "reports/number.h"

#include <math.h>
#include <string.h>

void hm_markdown_word(struct hm_output *o, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-=:,@%";
    bool quote = !*word || word[strspn(word, plain)];
    if (quote) hm_put(o, "'");
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        hm_putf(o, c < 0x20 || c >= 0x7f || strchr("`'|\\\"$", c) ? "?" : "%c", c);
    }
    if (quote) hm_put(o, "'");
}

static unsigned long long count(uint64_t n)
{
    return n;
}

static void put_rule(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    char m[24];
    hm_put(o, "| Rule | ");
    hm_put_markdown(o, r->claims[r->lead].rule);
    hm_putf(o, ", m = %s", hm_m_text(r->claims[r->lead].m, m));
    if (r->claim_count > 1) hm_putf(o, " (one of %zu claims)", r->claim_count);
    if (!h->audit) {
        hm_put(o, "; accepted by ");
        hm_put_markdown(o, h->acceptance);
    }
    hm_put(o, "; temperature ");
    hm_put_markdown(o, h->audit ? h->certify_temperature : h->temperature);
    if (r->log_count > 1) hm_putf(o, "; first of %zu logs", r->log_count);
    hm_put(o, " |\n");
}

static void put_certified(struct hm_output *o, const struct hm_report *r)
{
    static const struct {
        enum hm_token_status status;
        const char *text;
    } kinds[] = {{HM_TOKEN_COVERED, "covered all the same"},
                 {HM_TOKEN_UNCOVERED, "not covered"},
                 {HM_TOKEN_INAPPLICABLE, "where the claim does not apply"},
                 {HM_TOKEN_VACUOUS, "vacuous"},
                 {HM_TOKEN_UNDECIDED, "undecided"},
                 {HM_TOKEN_NO_DRAFT, "without a draft row"}};
    const struct hm_claim_figures *f = &r->claims[r->lead];
    const char *between = "";
    if (f->with_draft)
        hm_putf(o, "| Certified | **%s**: %s of %s",
                hm_number_share(f->certified_any, f->with_draft, f->status[HM_TOKEN_VACUOUS]).text,
                hm_number_count(f->certified_any).text,
                hm_number_of(f->with_draft, hm_report_audit(r) ? "row" : "step").text);
    else
        hm_put(o, "| Certified | none");
    hm_putf(o, " with a draft row (%s in all) |\n| Not certified | ", hm_number_of(r->steps, hm_report_noun(r)).text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!f->status[kinds[i].status]) continue;
        hm_putf(o, "%s%s %s", between, hm_number_count(f->status[kinds[i].status]).text, kinds[i].text);
        between = ", ";
    }
    hm_put(o, *between ? " |\n" : "none |\n");
}

static void put_cost(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = hm_report_budget(r);
    hm_put(o, "| Cost of relaxation | ");
    if (h && r->log_count == 1) {
        hm_putf(o, "at most %s %s in every sequence, by a budget |\n", h->budget_limit,
                h->budget_kind[0] == 't' ? "of total variation" : "nats of regret");
    } else if (r->theory.fidelity.sequences && r->regret.count) {
        struct hm_fidelity f;
        hm_fidelity_bound(&r->theory.fidelity, HM_FIDELITY_RISK_PERCENT / 200.0, &f);
        if (f.vacuous)
            hm_put(o, "**bound vacuous** on total variation");
        else
            hm_putf(o, "total variation of a sequence at most **%s** (95 %%)",
                    hm_number_up(fmin(f.hoeffding, f.bernstein), 4).text);
        hm_putf(o, "; estimate %s from %s |\n", hm_number_up(f.mean_shortfall.hi, 4).text,
                hm_number_of(r->theory.fidelity.sequences, "sequence").text);
    } else if (r->speculative.positions && !r->speculative.standard.count) {
        hm_put(o, "none: standard speculative sampling, every token has the target's law |\n");
    } else if (r->regret.count) {
        hm_putf(o, "at most **%s** nats of regret per token; %llu of %llu accepted tokens are not the target's first; a bound "
                   "on total variation would be vacuous |\n",
                hm_number_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most), 4).text, count(r->accepted_not_first),
                count(r->accepted_known));
    } else {
        hm_put(o, "none: every token is the target's own (match) |\n");
    }
}

static void put_unexplained(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_findings *f = &r->findings;
    hm_put(o, "| Unexplained | ");
    if (!f->files) {
        hm_put(o, "no comparison was given; to make one: `hallmark compare ");
        hm_markdown_word(o, r->logs[0].path);
        hm_put(o, " ");
        hm_markdown_word(o, r->log_count > 1 ? r->logs[1].path : "other-run.jsonl");
        hm_put(o, " --json > compare.jsonl`, then `hallmark report` with `--findings compare.jsonl` |\n");
        return;
    }
    hm_putf(o, "**%s**", hm_number_count(hm_findings_unexplained(f)).text);
    hm_putf(o, ": %s unexplained, ", hm_number_of(f->forks[HM_FORK_WORD_UNEXPLAINED], "fork").text);
    hm_putf(o, "%s with too much noise, %s", hm_number_of(f->outliers, "position").text,
            hm_number_of(f->findings, "finding").text);
    if (f->refuted) hm_putf(o, ", %s refuted", hm_number_of(f->refuted, "temperature").text);
    hm_putf(o, "; %s undecided%s |\n", hm_number_of(f->forks[HM_FORK_WORD_UNDECIDED], "fork").text,
            hm_findings_compared(f) ? "" : "; no comparison was given");
}

void hm_markdown_answers(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "| | |\n|---|---|\n");
    if (r->log_count) {
        put_rule(o, r);
        put_certified(o, r);
        if (!hm_report_audit(r)) put_cost(o, r);
    }
    put_unexplained(o, r);
    if (r->log_count) hm_putf(o, "| Undecided | %llu exact questions |\n", count(r->undecided));
    if (r->log_count && !hm_report_audit(r))
        hm_putf(o, "| Speed | %s tokens per round over %s |\n",
                hm_number_ratio(r->acceptance.emitted, r->acceptance.rounds, 2).text,
                hm_number_of(r->acceptance.rounds, "round").text);
    hm_put(o, "\n");
}

void hm_markdown_missed(struct hm_output *o, const struct hm_report *r)
{
    static const enum hm_token_status order[] = {HM_TOKEN_UNDECIDED, HM_TOKEN_UNCOVERED, HM_TOKEN_INAPPLICABLE,
                                                 HM_TOKEN_COVERED};
    static const char *const why[HM_TOKEN_STATUSES] = {[HM_TOKEN_COVERED] = "no distance below its limit",
                                                       [HM_TOKEN_UNCOVERED] = "no proposed token in A",
                                                       [HM_TOKEN_INAPPLICABLE] = "children not the draft's first m",
                                                       [HM_TOKEN_UNDECIDED] = "exact arithmetic gave up"};
    size_t left = HM_MARKDOWN_MISSED;
    bool any = false;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (size_t k = 0; k < r->missed_count[order[i]] && left; k++, left--) {
            const struct hm_missed_step *m = &r->missed[order[i]][k];
            if (!any)
                hm_put(o, "First of the steps that are not certified (see them with `hallmark inspect`):\n\n"
                          "| where | token | why | k | m | log line |\n|---|---|---|---:|---:|---:|\n");
            any = true;
            if (m->index < 0)
                hm_putf(o, "| --step %lld:%lld | ", (long long)m->sequence, (long long)m->t);
            else
                hm_putf(o, "| --row %lld | ", (long long)m->index);
            hm_put_markdown(o, m->text);
            hm_putf(o, " | %s | %lld | %lld | %zu |\n", why[m->status], (long long)m->k, (long long)m->m, m->line);
        }
    if (any) hm_put(o, "\n");
}

void hm_markdown_again(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "Again: `hallmark report");
    for (size_t i = 0; i < r->log_count && i < HM_MARKDOWN_LOGS; i++) {
        hm_put(o, " ");
        hm_markdown_word(o, r->logs[i].path);
    }
    for (size_t i = 0; i < r->findings.files && i < HM_MARKDOWN_LOGS; i++) {
        hm_put(o, " --findings ");
        hm_markdown_word(o, r->findings.file[i].path);
    }
    hm_put(o, "`");
    if (r->log_count) {
        hm_put(o, "; proof: `hallmark verify ");
        hm_markdown_word(o, r->logs[0].path);
        hm_put(o, hm_report_audit(r) ? "`; one row: `hallmark inspect " : "`; one step: `hallmark inspect ");
        hm_markdown_word(o, r->logs[0].path);
        hm_put(o, hm_report_audit(r) ? " --row 0`" : " --step 0:0`");
    }
    hm_put(o, ".\n");
}
