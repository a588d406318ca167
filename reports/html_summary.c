// The first screen of the HTML page: what the rule was, whether every token was certified, what it cost, what is open.
#include "reports/html.h"
#include "reports/number.h"
#include "reports/report.h"

#include <math.h>
#include <string.h>

const char *hm_html_status_text(unsigned status)
{
    static const char *const names[] = {"certified", "covered, not certified", "not covered", "no draft row",
                                        "vacuous",   "inapplicable",           "undecided"};
    return status < HM_TOKEN_STATUSES ? names[status] : "";
}

void hm_html_claim_name(struct hm_output *o, const struct hm_claim_figures *f)
{
    char m[24];
    hm_put_html(o, f->rule);
    hm_putf(o, ", m = %s", hm_m_text(f->m, m));
}

void hm_html_shell_word(struct hm_output *o, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-=:,@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        hm_put_html(o, word);
        return;
    }
    hm_put(o, "&#39;");
    for (; *word; word += strcspn(word, "'") + (word[strcspn(word, "'")] == '\'')) {
        size_t part = strcspn(word, "'");
        hm_put_html_bytes(o, word, part);
        if (word[part]) hm_put(o, "&#39;\\&#39;&#39;");
    }
    hm_put(o, "&#39;");
}

void hm_html_stack(struct hm_output *o, const char *class_name, const uint64_t status[HM_TOKEN_STATUSES])
{
    uint64_t all = 0;
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++) all += status[i];
    hm_putf(o, "<div class=\"%s\" role=\"img\" aria-label=\"", class_name);
    for (size_t i = 0, n = 0; i < HM_TOKEN_STATUSES; i++)
        if (status[i])
            hm_putf(o, "%s%s %s", n++ ? ", " : "", hm_html_status_text((unsigned)i),
                    hm_number_percent(status[i], all).text);
    hm_put(o, "\">");
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++)
        if (status[i]) hm_putf(o, "<i class=\"s%zu\" style=\"flex:%llu\"></i>", i, (unsigned long long)status[i]);
    hm_put(o, "</div>");
}

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
    hm_putf(o, "<div class=\"tile\"><dt>Certified</dt><dd><div class=\"value\">%s</div>",
            hm_number_share(f->certified_any, f->with_draft, f->status[HM_TOKEN_VACUOUS]).text);
    hm_html_stack(o, "stack", f->status);
    hm_putf(o, "<div class=\"about\">%s of %s with a draft row; covered: %s</div></dd></div>\n",
            hm_number_count(f->certified_any).text,
            hm_number_of(f->with_draft, hm_report_audit(r) ? "row" : "step").text,
            hm_number_share(f->covered[HM_YES], f->with_draft, f->status[HM_TOKEN_VACUOUS]).text);
}

static void put_speed_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    hm_putf(o,
            "<div class=\"tile\"><dt>Speed</dt><dd><div class=\"value\">%s<small>tokens per round</small></div>"
            "<div class=\"about\">%s of them accepted draft tokens; %s of %s nodes</div></dd></div>\n",
            hm_number_ratio(a->emitted, a->rounds, 2).text, hm_number_ratio(a->accepted, a->rounds, 2).text,
            hm_number_of(a->rounds, "round").text, hm_number_ratio(a->verified, a->rounds, 1).text);
}

static void put_cost_tile(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    hm_put(o, "<div class=\"tile\"><dt>Cost of relaxation</dt><dd>");
    if (s->standard.count)
        hm_putf(o,
                "<div class=\"value\">%s<small>total variation where relaxed, mean at most</small></div><div "
                "class=\"about\">in force at %s of %s",
                s->e.count ? hm_number_up(hm_sum_mean_upper(&s->e), 3).text : "0", hm_number_count(s->in_force).text,
                hm_number_of(s->positions, "position").text);
    else if (s->positions)
        hm_put(o, "<div class=\"value\">none<small>nothing was relaxed</small></div><div class=\"about\">standard "
                  "speculative sampling: every token has the target\xe2\x80\x99s law");
    else if (r->regret.count)
        hm_putf(o,
                "<div class=\"value\">%s<small>nats per token, at most</small></div><div class=\"about\">%s of %s "
                "accepted tokens are not the target\xe2\x80\x99s first",
                hm_number_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most), 3).text,
                hm_number_count(r->accepted_not_first).text, hm_number_count(r->accepted_known).text);
    else
        hm_put(o, "<div class=\"value\">none<small>nothing was relaxed</small></div><div class=\"about\">every token "
                  "is the target\xe2\x80\x99s own (match)");
    hm_put(o, "</div></dd></div>\n");
}

static void put_undecided_tile(struct hm_output *o, const struct hm_report *r)
{
    hm_putf(o,
            "<div class=\"tile\"><dt>Undecided</dt><dd><div class=\"value\">%s<small>open questions</small></div><div "
            "class=\"about\">%s</div></dd></div>\n",
            hm_number_count(r->undecided).text,
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
    if (!hm_report_audit(r)) {
        put_speed_tile(o, r);
        put_cost_tile(o, r);
    }
    put_undecided_tile(o, r);
    hm_put(o, "</dl>\n");
    put_verify(o, r);
    hm_put(o, "</header>\n");
}

void hm_html_navigation(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<nav class=\"bar\" aria-label=\"Sections\"><div><a href=\"#claims\">");
    hm_put(o, hm_report_has_draft_rows(r) ? "Certified" : "Requirement");
    hm_put(o, hm_report_audit(r) ? "</a><a href=\"#cost\">Distance</a><a href=\"#theory\">Bounds and laws</a>"
                                 : "</a><a href=\"#text\">Text</a>"
                                   "<a href=\"#acceptance\">Acceptance</a>");
    if (!hm_report_audit(r)) {
        if (r->speculative.positions || hm_report_budget(r)) hm_put(o, "<a href=\"#speculative\">Speculation</a>");
        hm_put(o, "<a href=\"#cost\">Distance and cost</a><a href=\"#theory\">Bounds and laws</a><a "
                  "href=\"#closest\">Closest</a>");
    }
    hm_put(o, "<a href=\"#run\">Run</a><a href=\"#how\">Method</a>");
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
