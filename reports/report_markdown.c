// The Markdown report: tables for an issue or a pull request, small enough to be read there.
#include "reports/markdown.h"
#include "reports/number.h"
#include "reports/report.h"

#include <math.h>
#include <string.h>

static void put_warnings(struct hm_output *o, const struct hm_report *r)
{
    for (size_t i = 0; i < r->log_count; i++) {
        const struct hm_report_log *log = &r->logs[i];
        if (log->state != HM_LOG_COMPLETE) {
            hm_put(o, "> **Truncated:** ");
            hm_put_markdown(o, log->path);
            hm_putf(o, " ends without its end record, after line %zu. The figures cover what was written.\n\n",
                    log->lines);
        } else if (log->unfinished) {
            hm_put(o, "> **Unfinished:** ");
            hm_put_markdown(o, log->path);
            hm_putf(o, " has %s without a last step.\n\n", hm_number_of(log->unfinished, "sequence").text);
        }
    }
}

static void put_certified(struct hm_output *o, const struct hm_report *r)
{
    char m[24];
    hm_put(o, "### Certified\n\n| rule | m | certified | by KLf | by KLr | by TV | covered | vacuous | inapplicable | "
              "undecided | no draft row |\n"
              "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < r->claim_count && i < HM_MARKDOWN_CLAIMS; i++) {
        const struct hm_claim_figures *f = &r->claims[i];
        uint64_t vacuous = f->status[HM_TOKEN_VACUOUS];
        hm_put(o, "| ");
        hm_put_markdown(o, f->rule);
        hm_putf(o, " | %s | **%s** (%llu of %llu) ", hm_m_text(f->m, m),
                hm_number_share(f->certified_any, f->with_draft, vacuous).text, (unsigned long long)f->certified_any,
                (unsigned long long)f->with_draft);
        for (int d = 0; d < 3; d++)
            hm_putf(o, "| %s ", hm_number_share(f->verdict[d][HM_CERT_YES], f->with_draft, vacuous).text);
        hm_putf(o, "| %s | %llu | %llu | %llu | %llu |\n",
                hm_number_share(f->covered[HM_YES], f->with_draft, vacuous).text,
                (unsigned long long)f->status[HM_TOKEN_VACUOUS], (unsigned long long)f->status[HM_TOKEN_INAPPLICABLE],
                (unsigned long long)f->status[HM_TOKEN_UNDECIDED], (unsigned long long)f->status[HM_TOKEN_NO_DRAFT]);
    }
    if (r->claim_count > HM_MARKDOWN_CLAIMS) hm_putf(o, "\nThe first %d of %zu claims.\n", HM_MARKDOWN_CLAIMS, r->claim_count);
    hm_put(o, "\nShares are of the steps with a draft row; a step is certified when at least one of the three "
              "distances lies below its limit. "
              "Vacuous, inapplicable and undecided steps are never counted as certified. KLf is KL(p,q), KLr is "
              "KL(q,p).\n\n");
}

// What a draft must stay below, known whether or not there was one.
static void put_requirement(struct hm_output *o, const struct hm_report *r)
{
    static const unsigned percent[] = {5, 25, 50, 75, 95};
    char m[24];
    hm_put(o, "### What a draft must reach\n\nNo draft distribution to certify: no step has a draft row. Any drafter "
              "would need KLf, the KL(p,q) of a step, "
              "below that step's KLf* (lower bounds, nats):\n\n| rule | m | least | 5% | 25% | median | 75% | 95% | "
              "steps |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct hm_claim_figures *f = &r->claims[i];
        if (!f->klf.count) continue;
        hm_put(o, "| ");
        hm_put_markdown(o, f->rule);
        hm_putf(o, " | %s | %s ", hm_m_text(f->m, m), hm_number_down(f->klf.least, 3).text);
        for (size_t q = 0; q < sizeof percent / sizeof *percent; q++)
            hm_putf(o, "| %s ",
                    hm_number_down(hm_histogram_lower(&f->klf, hm_histogram_rank(&f->klf, percent[q], 100)), 3).text);
        hm_putf(o, "| %llu |\n", (unsigned long long)f->klf.count);
    }
    hm_put(o, "\n");
}

// Trees chosen after a draw, nodes only scored, and whether the next root's row is at hand; expectation beside outcome.
static void put_coverage(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_report_speculative *s = &r->speculative;
    const struct hm_acceptance *a = &r->acceptance;
    if (s->first_drawn)
        hm_putf(o, "First token drawn before the tree was chosen: %s of %s.\n", hm_number_count(s->first_drawn).text,
                hm_number_of(a->rounds, "round").text);
    if (s->scored)
        hm_putf(o, "Only scored: %s in %s.\n", hm_number_of(s->scored, "node").text,
                hm_number_of(s->with_scored, "round").text);
    hm_putf(o, "Next context the address of a node: after %s of %s.\n", hm_number_count(s->covered).text,
            hm_number_of(s->continued, "round").text);
    if (a->expected.count)
        hm_putf(o, "Expected accepted per round: at least %s; emitted there: %s.\n",
                hm_number_down(hm_sum_mean_lower(&a->expected), 4).text,
                hm_number_ratio(a->expected_accepted, a->expected.count, 3).text);
    hm_put(o, "\n");
}

static void put_acceptance(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    hm_put(o, "### Acceptance\n\n| figure | value | formula |\n|---|---:|---|\n");
    hm_putf(o, "| mean accepted A | %s | %llu accepted / %llu rounds |\n",
            hm_number_ratio(a->accepted, a->rounds, 3).text, (unsigned long long)a->accepted,
            (unsigned long long)a->rounds);
    hm_putf(o, "| tokens per round | %s | %llu emitted in rounds / rounds |\n",
            hm_number_ratio(a->emitted, a->rounds, 3).text, (unsigned long long)a->emitted);
    hm_putf(o, "| draft acceptance rate | %s | accepted / %llu verified nodes |\n",
            hm_number_ratio(a->accepted, a->verified, 3).text, (unsigned long long)a->verified);
    hm_putf(o, "| tokens per target pass | %s | (emitted + prefill) / (rounds + prefills) |\n",
            hm_number_ratio(a->emitted + r->prefill, a->rounds + r->prefill, 3).text);
    hm_putf(o, "| verified nodes, pool per round | %s, %s | |\n", hm_number_ratio(a->verified, a->rounds, 2).text,
            hm_number_ratio(a->pool, a->rounds, 2).text);
    hm_putf(o, "| fully accepted | %s | %llu of %llu rounds with a tree emit an accepted path as deep as it |\n\n",
            hm_number_percent(a->full, a->with_tree).text, (unsigned long long)a->full,
            (unsigned long long)a->with_tree);
    if (hm_report_has_coverage(r)) put_coverage(o, r);
    if (!a->offered[1]) return;
    hm_put(o, "| depth | offered | reached | of all rounds | of the depth before | of those offered | per node "
              "|\n|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t d = 1; d < HM_REPORT_DEPTHS && a->offered[d]; d++)
        hm_putf(o, "| %zu | %llu | %llu | %s | %s | %s | %s |\n", d, (unsigned long long)a->offered[d],
                (unsigned long long)a->reach[d], hm_number_percent(a->reach[d], a->rounds).text,
                hm_number_percent(a->reach[d], a->reach[d - 1]).text, hm_number_percent(a->reach[d], a->offered[d]).text,
                hm_number_ratio(a->reach[d], a->nodes[d], 3).text);
    hm_put(o, "\n");
}

static void put_distance_row(struct hm_output *o, const char *name, const struct hm_sum *sum,
                             const struct hm_histogram *h)
{
    static const unsigned percent[] = {50, 90, 95, 99};
    hm_putf(o, "| %s | %s ", name, hm_number_up(fmin(hm_sum_mean_upper(sum), h->most), 4).text);
    for (size_t i = 0; i < 4; i++)
        hm_putf(o, "| %s ", hm_number_up(hm_histogram_upper(h, hm_histogram_rank(h, percent[i], 100)), 4).text);
    hm_putf(o, "| %s |\n", hm_number_up(h->most, 4).text);
}

static void put_distances(struct hm_output *o, const struct hm_report *r)
{
    if (r->kl_pq.count) {
        hm_put(
            o,
            "### Distance of the draft from the target (upper bounds)\n\n| | mean | median | 90% | 95% | 99% | max |\n"
            "|---|---:|---:|---:|---:|---:|---:|\n");
        put_distance_row(o, "KLf, nats", &r->sum_kl_pq, &r->kl_pq);
        put_distance_row(o, "KLr, nats", &r->sum_kl_qp, &r->kl_qp);
        put_distance_row(o, "TV", &r->sum_tv, &r->tv);
        hm_put(o, "\n");
        if (hm_report_infinite(r).text[0])
            hm_putf(o,
                    "KLf is infinite at %s: there the draft's vocabulary lacks tokens that the target can choose; see "
                    "\"Reduced draft vocabulary\".\n\n",
                    hm_report_infinite(r).text);
    }
    if (r->regret.count)
        hm_putf(o,
                "**%s:** regret ln(p(1)/p(token)) sums to at most %s nats over %s (mean at "
                "most %s, largest at most %s); "
                "%llu of %llu accepted tokens are not the row's first.\n\n",
                r->speculative.standard.count || r->theory.fidelity.sequences ? "Regret, draws of the target included"
                                                                                : "Cost of relaxation",
                hm_number_up(r->regret.hi, 5).text, hm_number_of(r->regret.count, "token").text,
                hm_number_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most), 4).text,
                hm_number_up(r->regret_most, 4).text, (unsigned long long)r->accepted_not_first,
                (unsigned long long)r->accepted_known);
}

static void put_groups(struct hm_output *o, const char *title, const char *first, const struct hm_report_group *groups,
                       size_t n)
{
    hm_putf(o, "### %s\n\n| %s | sequences | tokens | tokens per round | certified |\n|---|---:|---:|---:|---:|\n",
            title, first);
    for (size_t i = 0; i < n; i++) {
        hm_put(o, "| ");
        hm_put_markdown(o, groups[i].name);
        hm_putf(o, " | %llu | %llu | %s | %s |\n", (unsigned long long)groups[i].sequences,
                (unsigned long long)groups[i].steps, hm_number_ratio(groups[i].emitted, groups[i].rounds, 2).text,
                groups[i].with_draft
                    ? hm_number_share(groups[i].certified, groups[i].with_draft, groups[i].vacuous).text
                    : "no draft row");
    }
    hm_put(o, "\n");
}

static void put_run_row(struct hm_output *o, const char *name, const char *value)
{
    if (!value) return;
    hm_putf(o, "| %s | ", name);
    hm_put_markdown(o, value);
    hm_put(o, " |\n");
}

// What an audit does not have.
static void put_decoder(struct hm_output *o, const struct hm_record_header *h)
{
    put_run_row(o, "tokenizer sha256", h->tokenizer_sha256);
    put_run_row(o, "acceptance", h->acceptance);
    put_run_row(o, "temperature", h->temperature);
    hm_putf(o, "| tree | width %lld, depth %lld, budget %lld |\n", (long long)h->width, (long long)h->depth,
            (long long)h->budget);
    put_run_row(o, "drafter", h->drafter);
    put_run_row(o, "proposal", h->proposal);
    put_run_row(o, "selection", h->selection);
    put_run_row(o, "traversal", h->traversal);
    put_run_row(o, "scored", h->score);
    if (h->budget_kind) hm_putf(o, "| fidelity budget | %s, limit %s |\n", h->budget_kind, h->budget_limit);
    put_run_row(o, "backend", h->backend);
}

static void put_run(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "### What was run\n\nAs the log says, not proved.\n\n");
    for (size_t i = 0; i < r->log_count && i < HM_MARKDOWN_LOGS; i++) {
        const struct hm_report_log *log = &r->logs[i];
        const struct hm_record_header *h = &log->header;
        hm_put(o, "| log | ");
        hm_put_markdown(o, log->path);
        hm_put(o, " |\n|---|---|\n");
        put_run_row(o, "target", h->target.name);
        put_run_row(o, "target sha256", h->target.sha256);
        put_run_row(o, "draft", h->draft.name);
        put_run_row(o, "draft sha256", h->draft.sha256);
        if (!h->audit) put_decoder(o, h);
        put_run_row(o, "certified at temperature", h->certify_temperature);
        put_run_row(o, "hallmark", h->version);
        put_run_row(o, "last chain value", log->chain);
        hm_put(o, "\n");
    }
}

hm_status hm_report_write_markdown(const struct hm_report *r, const char *path, struct hm_error *err)
{
    struct hm_output *o;
    hm_status rc = hm_output_open(path, &o, err);
    if (rc) return rc;
    rc = hm_output_fold(o, HM_MARKDOWN_MOST, err);
    if (rc) {
        hm_output_abandon(o);
        return rc;
    }
    hm_put(o, "## hallmark report\n\n");
    put_warnings(o, r);
    hm_markdown_answers(o, r);
    if (!r->log_count) {
        hm_markdown_findings(o, r);
        hm_markdown_again(o, r);
        return hm_output_close(o, err);
    }
    bool audit = hm_report_audit(r);
    if (r->steps > r->rows || !audit)
        hm_putf(o, "%s in %s%s", hm_number_of(r->steps - r->rows, "token").text,
                hm_number_of(r->sequences, "sequence").text, r->rows ? ", " : "");
    if (r->rows || audit) hm_putf(o, "%s audited", hm_number_of(r->rows, "row").text);
    hm_putf(o, "; undecided questions: %llu.\n\n", (unsigned long long)r->undecided);
    hm_put(o, audit ? "A report proves nothing; `hallmark verify LOG` proves numbers and rows. Model names are the "
                      "writer's word.\n\n"
                    : "A report proves nothing; `hallmark verify LOG` proves numbers, rows and the walk. "
                      "Model names, prompt and text are the writer's word.\n\n");
    hm_markdown_findings(o, r);
    if (hm_report_has_draft_rows(r))
        put_certified(o, r);
    else
        put_requirement(o, r);
    hm_markdown_missed(o, r);
    if (!audit) put_acceptance(o, r);
    if (!audit) hm_markdown_speculative(o, r);
    put_distances(o, r);
    hm_markdown_requirement(o, r);
    hm_markdown_theory(o, r);
    if (!audit && r->category_count > 1) hm_markdown_course(o, r);
    if (r->category_count > 1) put_groups(o, "By category", "category", r->categories, r->category_count);
    if (r->log_count > 1) put_groups(o, "By log", "log", r->by_log, r->log_count < HM_MARKDOWN_LOGS ? r->log_count : HM_MARKDOWN_LOGS);
    put_run(o, r);
    hm_markdown_again(o, r);
    return hm_output_close(o, err);
}
