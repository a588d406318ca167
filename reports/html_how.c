// The last HTML section: how every figure was computed, and the commands that do it again: this page, one figure of it, the
// counts from the log alone without this program, one step, and the proof.
#include "reports/html.h"
#include "reports/number.h"

#include <string.h>

static const struct {
    const char *term, *meaning;
    const char *path; // what jq takes out of the JSON report; NULL: nothing alone
    bool decoder;     // nothing an audit has
} HOW[] = {
    {"Certified",
     "One of KLf &lt; KLf*, KLr &lt; KLr*, TV &lt; TV*, where KLf is KL(p\xe2\x80\x96q), KLr is KL(q\xe2\x80\x96p) and "
     "TV is total variation: then, whatever else is true of the draft q, at least one of its first m tokens is "
     "accepted by the rule on the target\xe2\x80\x99s row p. The log\xe2\x80\x99s verdicts are counted as they stand.",
     ".claims[] | {rule, m, certified, with_draft, verdicts}", false},
    {"Covered",
     "At least one proposed token lies in A, the set of tokens the rule accepts. Certified implies covered; "
     "the reverse does not hold.",
     ".claims[] | {rule, m, covered}", false},
    {"No draft row",
     "No distribution q of the draft belongs to this step: the token came from the prompt\xe2\x80\x99s last row, no "
     "draft was made at its node, or the drafter has no distribution (n-gram proposes tokens, but only copies them). "
     "What a draft would have to reach is known all the same; there is nothing to hold against it.",
     NULL, false},
    {"Vacuous", "Fewer than m tokens are rejected, so coverage cannot fail for any draft. Counted apart.", NULL, false},
    {"Inapplicable",
     "m is the number of the node\xe2\x80\x99s children, and these are not the draft\xe2\x80\x99s "
     "first m tokens, so the claim does not speak of them. Counted apart.",
     NULL, false},
    {"Undecided", "Exact arithmetic with 4,096 bits did not settle the question. Counted apart, never as certified.",
     ".totals.undecided", false},
    {"Bounds",
     "Every real number in a log is an enclosure. What a draft must stay below is shown by its lower end, "
     "rounded down; what a draft has is shown by its upper end, rounded up.",
     NULL, false},
    {"Quantiles",
     "Values are counted in bins of 1/32 octave (at most 3.2 % wide); a quantile of a lower bound is the "
     "lower edge of its bin, of an upper bound the upper edge. Least and largest are exact.",
     ".claims[] | {klf, klr, tv, radius}", false},
    {"Acceptance",
     "A round\xe2\x80\x99s accepted tokens are its steps with source <code>accepted</code>. Rounds cut "
     "off by truncation are left out; rounds cut by the end of a sequence count as they are: only "
     "emitted tokens are accepted tokens. Fully accepted are rounds whose emitted accepted path is as "
     "deep as their tree. Expected accepted is what the log says of the round before such a cut. By depth: rounds with at "
     "least d accepted tokens, of all rounds, of those with d \xe2\x88\x92 1, of those with a node at depth d, and per "
     "verified node there.",
     ".acceptance", true},
    {"Speculative sampling",
     "Acceptance, standard acceptance, E<sub>N</sub> and e are the log\xe2\x80\x99s enclosures, summed with outward "
     "rounding over the steps at which children were looked at. A budget charges the upper end of e wherever the "
     "relaxation is in force, whatever happens there.",
     ".speculative, .fidelity_budget", true},
    {"Distance of the draft", "The log\xe2\x80\x99s enclosures of KLf, KLr and TV; sums with outward rounding.",
     ".draft_distance", false},
    {"Whole sequences",
     "S is the sum of a sequence\xe2\x80\x99s e, w the product of its p(x)/o(x). The mean of (1 \xe2\x88\x92 w)<sup>+</sup> "
     "over finished sequences estimates an upper bound on the total variation; Hoeffding\xe2\x80\x99s and the empirical "
     "Bernstein inequality make it one, each at half of a risk of 5 %. S is never clipped before it is averaged. A bound "
     "that is not below 1 is called vacuous.",
     ".theory.fidelity, .course, .sequences", true},
    {"Regret",
     "ln(p<sub>(1)</sub>/p<sub>token</sub>) at the certified temperature, summed with outward rounding; "
     "logged only when acceptance is relaxed.",
     ".relaxation", true},
    {"Stability radius",
     "The largest noise in the logits that cannot change whether the rule accepts the token (lower bound).",
     ".closest", false},
    {"Blocks of older tokens",
     "The newest tokens are shown one by one; of the others each block of consecutive tokens has its counts, the least "
     "noise that could turn one of its steps, and the largest regret.",
     ".blocks", true}};

static void put_logs(struct hm_output *o, const struct hm_report *r)
{
    for (size_t i = 0; i < r->log_count; i++) {
        hm_put(o, " ");
        hm_html_shell_word(o, r->logs[i].path);
    }
}

static void put_command(struct hm_output *o, const char *term)
{
    hm_putf(o, "<dt>%s</dt><dd class=\"command\"><code>", term);
}

static void end_command(struct hm_output *o)
{
    hm_put(o, "</code><button class=\"copy js-only\" type=\"button\">Copy</button></dd>\n");
}

static void put_report(struct hm_output *o, const struct hm_report *r)
{
    put_command(o, "This page, its figures, and its tables");
    hm_put(o, "hallmark report");
    put_logs(o, r);
    for (size_t i = 0; i < r->findings.files; i++) {
        hm_put(o, " --findings ");
        hm_html_shell_word(o, r->findings.file[i].path);
    }
    hm_put(o, " -o report.html --json report.json --csv tables");
    end_command(o);
}

// Counts from the log's own lines: records by kind, steps by source; and the certified steps of the lead claim.
static void put_counts(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_claim_figures *f = &r->claims[r->lead];
    const char *kind = hm_report_audit(r) ? "row" : "step";
    char m[24];
    put_command(o, "Counts from the log alone, without hallmark");
    hm_put(o, "jq -n &#39;reduce inputs as $r ({}; .[$r.kind] += 1 | if $r.source then .[$r.source] += 1 else . end)&#39;");
    put_logs(o, r);
    end_command(o);
    put_command(o, "Certified and drafted steps of the first screen, likewise");
    hm_put(o, "jq -n --arg rule ");
    hm_html_shell_word(o, f->rule);
    hm_putf(o, " &#39;reduce (inputs | select(.kind == \"%s\").claims[] | select(.rule == $rule and .m_from == \"%s\"", kind,
            f->m == HM_M_TREE ? "tree" : "fixed");
    if (f->m != HM_M_TREE) hm_putf(o, " and .m == %s", hm_m_text(f->m, m));
    hm_put(o, ") | .certified | select(.)) as $c ([0, 0]; .[1] += 1 | if any($c[]; . == \"yes\") then .[0] += 1 else . "
              "end)&#39;");
    put_logs(o, r);
    end_command(o);
}

static void put_proof(struct hm_output *o, const struct hm_report *r)
{
    put_command(o, "The proof of every number, from the rows");
    hm_put(o, "hallmark verify");
    put_logs(o, r);
    end_command(o);
    put_command(o, hm_report_audit(r) ? "One row" : "One step");
    hm_put(o, "hallmark inspect ");
    hm_html_shell_word(o, r->logs[0].path);
    hm_put(o, hm_report_audit(r) ? " --row 0" : " --step 0:0");
    end_command(o);
}

static void put_comparison(struct hm_output *o, const struct hm_report *r)
{
    for (size_t i = 0; i < r->findings.files; i++) {
        const struct hm_findings_file *f = &r->findings.file[i];
        if (!f->comparison || !f->a[0] || !f->b[0]) continue;
        put_command(o, "Forks and noise");
        hm_put(o, "hallmark compare ");
        hm_html_shell_word(o, f->a);
        hm_put(o, " ");
        hm_html_shell_word(o, f->b);
        hm_put(o, " --json &gt; ");
        hm_html_shell_word(o, f->path);
        end_command(o);
    }
}

void hm_html_how(struct hm_output *o, const struct hm_report *r)
{
    bool audit = hm_report_audit(r);
    hm_put(o, "<section id=\"how\"><h2>How every figure was computed, and how to do it again</h2>\n<dl class=\"how\">");
    put_report(o, r);
    if (r->log_count) put_counts(o, r);
    if (r->log_count) put_proof(o, r);
    put_comparison(o, r);
    hm_put(o, "</dl>\n");
    if (r->log_count) {
        hm_put(o, "<p class=\"note\">Every figure stands in <code>report.json</code>, under the names of docs/report.md; "
                  "mathematics: docs/theory.md.</p>\n<div class=\"scroll\"><table class=\"how\"><thead><tr><th>Figure</th><th "
                  "class=\"left\">how</th><th class=\"left\">again</th></tr></thead><tbody>\n");
        for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
            if (HOW[i].decoder && audit) continue;
            hm_putf(o, "<tr><th scope=\"row\">%s</th><td class=\"left wrap soft\">%s</td><td class=\"left\">", HOW[i].term,
                    HOW[i].meaning);
            if (HOW[i].path) hm_putf(o, "<code class=\"look\">jq &#39;%s&#39; report.json</code>", HOW[i].path);
            hm_put(o, "</td></tr>\n");
        }
        hm_put(o, "</tbody></table></div>\n");
    }
    hm_put(o, "</section>\n");
}
