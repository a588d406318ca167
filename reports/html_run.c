// The last HTML sections: what was run, as the headers say, and how every figure is computed.
#include "reports/html.h"
#include "reports/number.h"

#include <stdio.h>
#include <string.h>

// A row of the table: what a header says in text. NULL: the log does not say.
struct run_row {
    const char *name;
    const char *(*text)(const struct hm_report_log *log, char buffer[64]);
    bool decoder; // an audit has none
};

#define HEADER_ROW(function, expression)                                                                               \
    static const char *function(const struct hm_report_log *log, char buffer[64])                                      \
    {                                                                                                                  \
        (void)buffer;                                                                                                  \
        return log->header.expression;                                                                                 \
    }
HEADER_ROW(target_name, target.name)
HEADER_ROW(target_hash, target.sha256)
HEADER_ROW(target_architecture, target.architecture)
HEADER_ROW(draft_name, draft.name)
HEADER_ROW(draft_hash, draft.sha256)
HEADER_ROW(tokenizer_hash, tokenizer_sha256)
HEADER_ROW(acceptance, acceptance)
HEADER_ROW(temperature, temperature)
HEADER_ROW(certify_temperature, certify_temperature)
HEADER_ROW(top_p, top_p)
HEADER_ROW(drafter, drafter)
HEADER_ROW(selection, selection)
HEADER_ROW(traversal, traversal)
HEADER_ROW(proposal, proposal)
HEADER_ROW(weights, weights)
HEADER_ROW(backend, backend)
HEADER_ROW(version, version)
HEADER_ROW(date, date)

static const char *top_k(const struct hm_report_log *log, char buffer[64])
{
    snprintf(buffer, 64, "%lld", (long long)log->header.top_k);
    return buffer;
}

static const char *score(const struct hm_report_log *log, char buffer[64])
{
    (void)buffer;
    return log->header.score ? log->header.score : "nothing further";
}

static const char *fidelity_budget(const struct hm_report_log *log, char buffer[64])
{
    const struct hm_record_header *h = &log->header;
    if (!h->budget_kind) return "none";
    snprintf(buffer, 64, "%.10s, limit %.40s", h->budget_kind, h->budget_limit);
    return buffer;
}

static const char *tree(const struct hm_report_log *log, char buffer[64])
{
    const struct hm_record_header *h = &log->header;
    snprintf(buffer, 64, "width %lld, depth %lld, budget %lld", (long long)h->width, (long long)h->depth,
             (long long)h->budget);
    return buffer;
}

static const char *vocab(const struct hm_report_log *log, char buffer[64])
{
    snprintf(buffer, 64, "%lld", (long long)log->header.target.vocab);
    return buffer;
}

static const char *rows(const struct hm_report_log *log, char buffer[64])
{
    (void)buffer;
    return log->header.has_rows      ? "kept in shards beside the log"
           : log->header.rows_hashed ? "hashed, not kept"
                                     : "not kept";
}

static const char *state(const struct hm_report_log *log, char buffer[64])
{
    if (log->state == HM_LOG_COMPLETE)
        snprintf(buffer, 64, "complete, %zu lines", log->lines);
    else
        snprintf(buffer, 64, "truncated after line %zu", log->lines);
    return buffer;
}

static const char *chain(const struct hm_report_log *log, char buffer[64])
{
    (void)buffer;
    return log->chain;
}

static const struct run_row ROWS[] = {{"target", target_name, false},
                                      {"target sha256", target_hash, false},
                                      {"architecture", target_architecture, false},
                                      {"vocabulary", vocab, false},
                                      {"draft", draft_name, false},
                                      {"draft sha256", draft_hash, false},
                                      {"tokenizer sha256", tokenizer_hash, true},
                                      {"acceptance", acceptance, true},
                                      {"temperature", temperature, true},
                                      {"certified at temperature", certify_temperature, false},
                                      {"top-k (0: off)", top_k, true},
                                      {"top-p (1: off)", top_p, true},
                                      {"tree", tree, true},
                                      {"drafter", drafter, true},
                                      {"selection", selection, true},
                                      {"traversal", traversal, true},
                                      {"proposal", proposal, true},
                                      {"scored", score, true},
                                      {"fidelity budget", fidelity_budget, true},
                                      {"weights", weights, true},
                                      {"backend", backend, true},
                                      {"target rows", rows, false},
                                      {"hallmark version", version, false},
                                      {"date", date, false},
                                      {"log", state, false},
                                      {"last chain value", chain, false}};

static void put_row(struct hm_output *o, const struct hm_report *r, const struct run_row *row)
{
    char first[64], buffer[64];
    const char *shared = row->text(&r->logs[0], first);
    bool differs = false;
    for (size_t i = 1; i < r->log_count; i++) {
        const char *text = row->text(&r->logs[i], buffer);
        differs |= (text == NULL) != (shared == NULL) || (text && shared && strcmp(text, shared) != 0);
    }
    hm_putf(o, "<tr%s><th scope=\"row\">%s</th>", differs ? " class=\"differs\"" : "", row->name);
    for (size_t i = 0; i < r->log_count; i++) {
        const char *text = row->text(&r->logs[i], buffer);
        hm_putf(o, "<td class=\"left wrap\">%s", text && strlen(text) == 64 ? "<code>" : "");
        hm_put_html(o, text ? text : "not in the log");
        hm_putf(o, "%s</td>", text && strlen(text) == 64 ? "</code>" : "");
    }
    hm_put(o, "</tr>\n");
}

void hm_html_run(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"run\"><h2>What was run</h2>\n<p class=\"note\">As the log says. Names, hashes, versions "
              "and dates are the writer\xe2\x80\x99s word, not proved; ");
    hm_put(o, hm_report_audit(r) ? "rules and the temperature are what <code>hallmark verify</code> checks.</p>\n"
                                 : "rules, temperatures, seeds and the walk are what <code>hallmark verify</code> "
                                   "checks.</p>\n");
    hm_put(o, "<div class=\"scroll\"><table><thead><tr><th></th>");
    for (size_t i = 0; i < r->log_count; i++) {
        hm_put(o, "<th class=\"left\">");
        hm_put_html(o, r->logs[i].path);
        hm_put(o, "</th>");
    }
    hm_put(o, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!ROWS[i].decoder || !hm_report_audit(r)) put_row(o, r, &ROWS[i]);
    hm_put(o, "</tbody></table></div>\n</section>\n");
}

static const struct {
    const char *term, *meaning;
    bool decoder; // nothing an audit has
} HOW[] = {
    {"Certified",
     "One of KLf &lt; KLf*, KLr &lt; KLr*, TV &lt; TV*, where KLf is KL(p\xe2\x80\x96q), KLr is KL(q\xe2\x80\x96p) and "
     "TV is total variation: then, whatever else is true of the draft q, at least one of its first m tokens is "
     "accepted by the rule on the target\xe2\x80\x99s row p. The log\xe2\x80\x99s verdicts are counted as they stand.",
     false},
    {"Covered",
     "At least one proposed token lies in A, the set of tokens the rule accepts. Certified implies covered; "
     "the reverse does not hold.",
     false},
    {"No draft row",
     "No distribution q of the draft belongs to this step: the token came from the prompt\xe2\x80\x99s last row, no "
     "draft was made at its node, or the drafter has no distribution (n-gram proposes tokens, but only copies them). "
     "What a draft would have to reach is known all the same; there is nothing to hold against it.",
     false},
    {"Vacuous", "Fewer than m tokens are rejected, so coverage cannot fail for any draft. Counted apart.", false},
    {"Inapplicable",
     "m is the number of the node\xe2\x80\x99s children, and these are not the draft\xe2\x80\x99s "
     "first m tokens, so the claim does not speak of them. Counted apart.",
     false},
    {"Undecided", "Exact arithmetic with 4,096 bits did not settle the question. Counted apart, never as certified.",
     false},
    {"Bounds",
     "Every real number in a log is an enclosure. What a draft must stay below is shown by its lower end, "
     "rounded down; what a draft has is shown by its upper end, rounded up.",
     false},
    {"Quantiles",
     "Values are counted in bins of 1/32 octave (at most 3.2 % wide); a quantile of a lower bound is the "
     "lower edge of its bin, of an upper bound the upper edge. Least and largest are exact.",
     false},
    {"Acceptance",
     "A round\xe2\x80\x99s accepted tokens are its steps with source <code>accepted</code>. Rounds cut "
     "off by truncation are left out; rounds cut by the end of a sequence count as they are: only "
     "emitted tokens are accepted tokens. Fully accepted are rounds whose emitted accepted path is as "
     "deep as their tree. Expected accepted is what the log says of the round before such a cut.",
     true},
    {"Speculative sampling",
     "Acceptance, standard acceptance, E<sub>N</sub> and e are the log\xe2\x80\x99s enclosures, summed with outward "
     "rounding over the steps at which children were looked at. A budget charges the upper end of e wherever the "
     "relaxation is in force, whatever happens there.",
     true},
    {"Stability radius",
     "The largest noise in the logits that cannot change whether the rule accepts the token (lower bound).", false},
    {"Regret",
     "ln(p<sub>(1)</sub>/p<sub>token</sub>) at the certified temperature, summed with outward rounding; "
     "logged only when acceptance is relaxed.",
     true}};

void hm_html_how(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "<section id=\"how\"><h2>How every figure is computed</h2>\n<dl class=\"how\">");
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++)
        if (!HOW[i].decoder || !hm_report_audit(r)) hm_putf(o, "<dt>%s</dt><dd>%s</dd>\n", HOW[i].term, HOW[i].meaning);
    hm_put(o, "<dt>To redo this page</dt><dd class=\"command\"><code>hallmark report");
    for (size_t i = 0; i < r->log_count; i++) {
        hm_put(o, " ");
        hm_html_shell_word(o, r->logs[i].path);
    }
    hm_put(o, " -o report.html</code></dd></dl>\n</section>\n");
}
