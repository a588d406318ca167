// The HTML section on what was run, as the headers say.
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
