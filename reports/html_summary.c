// The first screen of the HTML page: what the rule was, whether every token was certified, what it cost, what is open.
#include "reports/html.h"
#include "reports/number.h"
#include "reports/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_some(struct hm_output *o, uint64_t n, const char *text, int *first)
{
    if (!n) return;
    hm_putf(o, "%s<b>%s</b> %s", *first ? "" : ", ", hm_number_count(n).text, text);
    *first = 0;
}

// What the drafter of all logs is, if it is one: why there is no row.
static const char *why_no_rows(const struct hm_report *r)
{
    const char *drafter = r->logs[0].header.drafter; // NULL in an audit
    if (hm_report_audit(r))
        return r->logs[0].header.draft.name ? "no row of a draft stands beside these" : "no draft model was audited";
    for (size_t i = 0; i < r->log_count; i++)
        if (!drafter || !r->logs[i].header.drafter || strcmp(r->logs[i].header.drafter, drafter) != 0)
            return "no drafter left a distribution";
    if (strcmp(drafter, "ngram") == 0) return "the n-gram drafter proposes tokens, but has no distribution";
    if (strcmp(drafter, "none") == 0) return "decoding was plain, without a draft";
    return "no draft was made at any of these steps";
}

static void put_answer_without_rows(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_claim_figures *f = &r->claims[r->lead];
    hm_put(o, "<h1>No draft distribution to certify.</h1>\n<p class=\"lead\">None of the ");
    if (hm_report_has_draft_rows(r)) // other claims have verdicts: this one asks for children, m = tree
        hm_putf(o, "%s comes from a node with both a draft row and children.",
                hm_number_of(r->steps, hm_report_noun(r)).text);
    else
        hm_putf(o, "%s has a draft row: %s.", hm_number_of(r->steps, hm_report_noun(r)).text, why_no_rows(r));
    if (f->klf.count) {
        hm_put(o, " What any drafter would have to reach under the rule <b>");
        hm_html_claim_name(o, f);
        hm_put(o, "</b> is <a href=\"#claims\">shown below</a>.");
    }
    hm_put(o, "</p>\n");
}

// The answer in one line, and what became of the rest in two.
static void put_answer(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_claim_figures *f = &r->claims[r->lead];
    uint64_t rest = f->with_draft - f->certified_any;
    const char *step = hm_report_audit(r) ? "row" : "step";
    int first = 1;
    if (f->status[HM_TOKEN_VACUOUS] == f->with_draft)
        hm_put(o, "<h1>Nothing to certify: vacuous at all ");
    else if (rest)
        hm_putf(o, "<h1>%s certified: %s of ", hm_number_percent(f->certified_any, f->with_draft).text,
                hm_number_count(f->certified_any).text);
    else
        hm_put(o, "<h1>Certified: all ");
    hm_putf(o, "%s with a draft row ", hm_number_of(f->with_draft, step).text);
    hm_putf(o, "<span class=\"soft\">(%s in all)</span></h1>\n", hm_number_of(r->steps, hm_report_noun(r)).text);
    hm_put(o, "<p class=\"lead\">Under the rule <b>");
    hm_html_claim_name(o, f);
    hm_put(o, "</b>");
    if (r->claim_count > 1) hm_putf(o, " (one of %zu claims)", r->claim_count);
    if (rest) {
        hm_putf(o, ", %s with a draft row %s not certified: ", hm_number_of(rest, step).text, rest == 1 ? "is" : "are");
        put_some(o, f->status[HM_TOKEN_COVERED], "covered all the same", &first);
        put_some(o, f->status[HM_TOKEN_UNCOVERED], "not covered", &first);
        put_some(o, f->status[HM_TOKEN_VACUOUS], "vacuous", &first);
        put_some(o, f->status[HM_TOKEN_INAPPLICABLE], "where the claim does not apply", &first);
        put_some(o, f->status[HM_TOKEN_UNDECIDED], "undecided", &first);
    } else {
        hm_putf(o, ", no %s with a draft row is left uncertified", step);
    }
    hm_put(o, ".");
    if (f->status[HM_TOKEN_NO_DRAFT])
        hm_putf(o, " %s without a draft row.", hm_number_of(f->status[HM_TOKEN_NO_DRAFT], hm_report_noun(r)).text);
    hm_put(o, "</p>\n");
}

// Settings of the first log alone, where there are several.
static void put_first_of(struct hm_output *o, const struct hm_report *r, const char *before)
{
    if (r->log_count > 1) hm_putf(o, "%sfirst of %zu logs", before, r->log_count);
}

static void put_rule_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    char m[24];
    hm_put(o, "<div class=\"tile\"><dt>Rule</dt><dd><div class=\"value small\">");
    hm_put_html(o, r->claims[r->lead].rule);
    hm_putf(o, "</div><div class=\"about\">m = %s%s; ", hm_m_text(r->claims[r->lead].m, m),
            r->claims[r->lead].m == HM_M_TREE ? ", the node\xe2\x80\x99s children" : "");
    if (!h->audit) {
        hm_put(o, "accepted by ");
        hm_put_html(o, h->acceptance);
        hm_put(o, "; ");
    }
    hm_put(o, "temperature ");
    hm_put_html(o, h->audit ? h->certify_temperature : h->temperature); // nothing was drawn in an audit
    put_first_of(o, r, "; ");
    hm_put(o, "</div></dd></div>\n");
}

static void put_certified_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_claim_figures *f = &r->claims[r->lead];
    if (!f->with_draft) {
        hm_put(o, "<div class=\"tile\"><dt>Certified</dt><dd><div class=\"value\">\xe2\x80\x93<small>no draft "
                  "row</small></div><div class=\"about\">");
        double median = f->klf.count ? hm_histogram_lower(&f->klf, hm_histogram_rank(&f->klf, 50, 100)) : INFINITY;
        if (median < 1e300)
            hm_putf(o, "a drafter needs KLf below %s nats at the median step", hm_number_down(median, 3).text);
        hm_put(o, "</div></dd></div>\n");
        return;
    }
    char of[48];
    uint64_t missed = f->status[HM_TOKEN_COVERED] + f->status[HM_TOKEN_UNCOVERED] + f->status[HM_TOKEN_INAPPLICABLE] +
                      f->status[HM_TOKEN_UNDECIDED];
    snprintf(of, sizeof of, "claims.%zu.with_draft", r->lead);
    hm_put(o, "<div class=\"tile\"><dt>Certified</dt><dd><div class=\"value\">");
    hm_html_value(o, hm_number_share(f->certified_any, f->with_draft, f->status[HM_TOKEN_VACUOUS]).text, of,
                  "claims.%zu.certified", r->lead);
    hm_put(o, "</div>");
    hm_html_stack(o, "stack", f->status);
    hm_put(o, "<div class=\"about\">");
    hm_html_value(o, hm_number_count(f->certified_any).text, NULL, "claims.%zu.certified", r->lead);
    hm_putf(o, " of %s with a draft row; covered: %s",
            hm_number_of(f->with_draft, hm_report_audit(r) ? "row" : "step").text,
            hm_number_share(f->covered[HM_YES], f->with_draft, f->status[HM_TOKEN_VACUOUS]).text);
    if (missed) hm_putf(o, "; <a href=\"#missed\">which %s not, and why</a>", missed == 1 ? "is" : "are");
    hm_put(o, "</div></dd></div>\n");
}

static void put_speed_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    hm_put(o, "<div class=\"tile\"><dt>Speed</dt><dd><div class=\"value\">");
    hm_html_value(o, hm_number_ratio(a->emitted, a->rounds, 2).text, NULL, "acceptance.tokens_per_round");
    hm_putf(o,
            "<small>tokens per round</small></div><div class=\"about\">%s of them accepted draft tokens; %s of %s "
            "nodes</div></dd></div>\n",
            hm_number_ratio(a->accepted, a->rounds, 2).text, hm_number_of(a->rounds, "round").text,
            hm_number_ratio(a->verified, a->rounds, 1).text);
}

// A bound on whole sequences, or the word: the first thing to say where a law was relaxed.
static void put_variation(struct hm_output *o, const struct hm_report *r)
{
    struct hm_fidelity f;
    double best;
    hm_html_bounds_of(&r->theory.fidelity, &f, &best);
    hm_put(o, "<div class=\"value\">");
    if (f.vacuous)
        hm_put(o, "vacuous<small>bound on total variation, 95 %</small></div><div class=\"about\">");
    else {
        hm_put(o, "\xe2\x89\xa4 ");
        hm_html_value(o, hm_number_up(best, 3).text, NULL, "theory.fidelity.bound_upper");
        hm_put(o, "<small>total variation of a sequence, 95 %</small></div><div class=\"about\">");
    }
    hm_put(o, "estimate ");
    hm_html_value(o, hm_number_up(f.mean_shortfall.hi, 3).text, NULL, "theory.fidelity.shortfall_mean_upper");
    hm_putf(o, " from <a href=\"#sequences\">%s</a>", hm_number_of(r->theory.fidelity.sequences, "sequence").text);
    if (r->accepted_known)
        hm_putf(o, "; %s of %s accepted tokens are not the target\xe2\x80\x99s first",
                hm_number_count(r->accepted_not_first).text, hm_number_count(r->accepted_known).text);
}

static void put_budget_cost(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_record_header *h = hm_report_budget(r);
    hm_put(o, "<div class=\"value\">\xe2\x89\xa4 ");
    hm_put_html(o, h->budget_limit);
    hm_putf(o, "<small>%s</small></div><div class=\"about\">a budget kept on every path",
            h->budget_kind[0] == 't' ? "total variation of a sequence" : "nats of regret in a sequence");
    if (s->budgets)
        hm_putf(o, "; spent: %s on average, %s at most", hm_number_up(hm_speculative_spent_mean(s), 3).text,
                hm_number_up(s->spent_most, 3).text);
}

static void put_cost_tile(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<div class=\"tile\"><dt>Cost of relaxation</dt><dd>");
    if (hm_report_budget(r) && r->log_count == 1)
        put_budget_cost(o, r);
    else if (r->theory.fidelity.sequences && r->regret.count)
        put_variation(o, r);
    else if (r->speculative.positions && !r->speculative.standard.count)
        hm_put(o, "<div class=\"value\">none<small>nothing was relaxed</small></div><div class=\"about\">standard "
                  "speculative sampling: every token has the target\xe2\x80\x99s law");
    else if (r->regret.count) {
        hm_put(o, "<div class=\"value\">");
        hm_html_value(o, hm_number_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most), 3).text, NULL,
                      "relaxation.regret_mean_upper");
        hm_putf(o, "<small>nats of regret per token, at most</small></div><div class=\"about\">%s of %s accepted tokens are not "
                   "the target\xe2\x80\x99s first; a bound on total variation would be <a href=\"#sequences\">vacuous</a>",
                hm_number_count(r->accepted_not_first).text, hm_number_count(r->accepted_known).text);
    } else
        hm_put(o, "<div class=\"value\">none<small>nothing was relaxed</small></div><div class=\"about\">every token "
                  "is the target\xe2\x80\x99s own (match)");
    hm_put(o, "</div></dd></div>\n");
}

// Is anything unexplained: only a comparison, or an audit of what others logged, can say.
static void put_unexplained_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_findings *f = &r->findings;
    hm_putf(o, "<div class=\"tile\"><dt>Unexplained</dt><dd><div class=\"value%s\">",
            hm_findings_unexplained(f) ? " alarm" : "");
    if (!f->files) {
        hm_put(o, "\xe2\x80\x93<small>no comparison was given</small></div><div class=\"about\"><a href=\"#findings\">How to "
                  "make one</a>: another run of the same prompts, and <code>hallmark compare</code></div></dd></div>\n");
        return;
    }
    hm_html_value(o, hm_number_count(hm_findings_unexplained(f)).text, NULL, "findings.unexplained");
    hm_putf(o, "<small>of forks, noise and findings</small></div><div class=\"about\"><a href=\"#findings\">%s</a> unexplained, ",
            hm_number_of(f->forks[HM_FORK_WORD_UNEXPLAINED], "fork").text);
    hm_putf(o, "%s undecided, %s explained, ", hm_number_count(f->forks[HM_FORK_WORD_UNDECIDED]).text,
            hm_number_count(f->forks[HM_FORK_WORD_EXPLAINED]).text);
    hm_putf(o, "%s; %s with too much noise; ", hm_number_of(f->forks[HM_FORK_WORD_TIE], "tie").text,
            hm_number_of(f->outliers, "position").text);
    hm_putf(o, "%s", hm_number_of(f->findings, "finding").text);
    if (f->refuted) hm_putf(o, "; %s refuted", hm_number_of(f->refuted, "temperature").text);
    if (!hm_findings_compared(f)) hm_put(o, "; no comparison was given");
    hm_put(o, "</div></dd></div>\n");
}

static void put_undecided_tile(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<div class=\"tile\"><dt>Undecided</dt><dd><div class=\"value\">");
    hm_html_value(o, hm_number_count(r->undecided).text, NULL, "totals.undecided");
    hm_putf(o, "<small>open questions</small></div><div class=\"about\">%s</div></dd></div>\n",
            r->undecided             ? "exact arithmetic gave up there; never counted as certified"
            : hm_report_truncated(r) ? "as far as the log goes"
                                     : "every exact question was settled");
}

static void put_warnings(struct hm_output *o, const struct hm_report *r)
{
    for (size_t i = 0; i < r->log_count; i++) {
        const struct hm_report_log *log = &r->logs[i];
        if (log->state == HM_LOG_COMPLETE && !log->unfinished) continue;
        hm_put(o, "<div class=\"callout warn\" role=\"alert\"><p><b>");
        if (log->state != HM_LOG_COMPLETE)
            hm_put(o, "Truncated log.</b> ");
        else
            hm_put(o, "Unfinished sequences.</b> ");
        hm_put_html(o, log->path);
        if (log->state != HM_LOG_COMPLETE)
            hm_putf(o, " stops %s line %zu, without its end record. The figures cover what was written%s.</p></div>\n",
                    log->state == HM_LOG_CUT_LINE ? "inside the line after" : "after", log->lines,
                    r->acceptance.cut ? "; the round cut off is left out of the acceptance figures" : "");
        else
            hm_putf(o, " has %s without a last step.</p></div>\n", hm_number_of(log->unfinished, "sequence").text);
    }
}

static void put_verify(struct hm_output *o, const struct hm_report *r)
{
    hm_putf(
        o,
        "<div class=\"callout\"><p>This page repeats what the log%s; it proves nothing. The proof is a check from the "
        "rows, by a program that shares no code with the writer:</p><div class=\"command\"><code>hallmark verify",
        r->log_count > 1 ? "s say" : " says");
    for (size_t i = 0; i < r->log_count; i++) {
        hm_put(o, " ");
        hm_html_shell_word(o, r->logs[i].path);
    }
    hm_put(
        o,
        "</code><button class=\"copy js-only\" type=\"button\">Copy</button></div><p class=\"soft\">The proof covers ");
    hm_put(o, hm_report_audit(r) ? "numbers and rows; model names are the writer\xe2\x80\x99s word.</p></div>\n"
                                 : "numbers, rows and the walk; model names, prompt and text are the "
                                   "writer\xe2\x80\x99s word.</p></div>\n");
}

void hm_html_summary(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_record_header *h = &r->logs[0].header;
    hm_put(o, "<header class=\"top\">\n<div class=\"brand\"><b>hallmark</b><span>report on ");
    hm_put_html(o, r->logs[0].path);
    if (r->log_count > 1) hm_putf(o, " and %zu more", r->log_count - 1);
    hm_put(o, "</span><span>");
    hm_put_html(o, h->target.name);
    const char *draft = h->draft.name ? h->draft.name : h->drafter; // an audit may have neither
    hm_put(o, h->audit ? (draft ? ", draft " : "") : h->draft.name ? ", drafted by " : ", drafter ");
    hm_put_html(o, draft ? draft : "");
    hm_put(o, " (as the log says");
    put_first_of(o, r, "; ");
    hm_put(o, ")</span></div>\n");
    put_warnings(o, r);
    if (r->claims[r->lead].with_draft)
        put_answer(o, r);
    else
        put_answer_without_rows(o, r);
    hm_put(o, "<dl class=\"tiles\">\n");
    put_rule_tile(o, r);
    put_certified_tile(o, r);
    if (!hm_report_audit(r)) put_cost_tile(o, r);
    put_unexplained_tile(o, r);
    put_undecided_tile(o, r);
    if (!hm_report_audit(r)) put_speed_tile(o, r);
    hm_put(o, "</dl>\n");
    put_verify(o, r);
    hm_put(o, "</header>\n");
}

void hm_html_findings_alone(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_findings *f = &r->findings;
    uint64_t unexplained = hm_findings_unexplained(f), undecided = hm_findings_undecided(f);
    hm_put(o, "<header class=\"top\">\n<div class=\"brand\"><b>hallmark</b><span>report on ");
    hm_put_html(o, f->file[0].path);
    if (f->files > 1) hm_putf(o, " and %zu more", f->files - 1);
    hm_put(o, "</span></div>\n");
    for (size_t i = 0; i < f->files; i++) {
        if (!hm_findings_doubtful(&f->file[i])) continue;
        hm_put(o, "<div class=\"callout warn\" role=\"alert\"><p><b>Incomplete.</b> ");
        hm_put_html(o, f->file[i].path);
        hm_put(o, f->file[i].has_summary ? " counts otherwise in its summary than in its lines.</p></div>\n"
                                         : " has no summary line: it covers what was written.</p></div>\n");
    }
    hm_put(o, "<h1>");
    if (unexplained) {
        hm_html_value(o, hm_number_count(unexplained).text, NULL, "findings.unexplained");
        hm_put(o, " unexplained.</h1>\n");
    } else if (undecided) {
        hm_put(o, "Nothing unexplained, but ");
        hm_html_value(o, hm_number_count(undecided).text, NULL, "findings.forks.undecided");
        hm_put(o, " undecided.</h1>\n");
    } else {
        hm_put(o, "Nothing unexplained.</h1>\n");
    }
    hm_put(o, "<p class=\"lead\">");
    if (hm_findings_compared(f))
        for (size_t i = 0; i < HM_FORK_WORDS; i++)
            hm_putf(o, "%s<b>%s</b> %s", i ? ", " : "Forks: ", hm_number_count(f->forks[i]).text,
                    hm_fork_word((enum hm_fork_word)i));
    else
        hm_put(o, "No comparison was given");
    hm_putf(o, "; %s with too much noise, ", hm_number_of(f->outliers, "position").text);
    hm_putf(o, "%s", hm_number_of(f->findings, "finding").text);
    if (f->refuted) hm_putf(o, ", %s refuted", hm_number_of(f->refuted, "claimed temperature").text);
    hm_put(o, ". No certificate log was given.</p>\n</header>\n");
}
