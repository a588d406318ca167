// The JSON report: the figures under stable names (docs/report.md). Bounds keep their direction: `lower` is rounded
// down, `upper` up.
#include "reports/json.h"
#include "reports/number.h"
#include "reports/report.h"

#include <math.h>

static const char *const DIVERGENCE[] = {"klf", "klr", "tv"};
static const struct {
    const char *name;
    unsigned numerator, denominator;
} QUANTILES[] = {{"q01", 1, 100},  {"q05", 5, 100},  {"q25", 25, 100}, {"q50", 50, 100},
                 {"q75", 75, 100}, {"q90", 90, 100}, {"q95", 95, 100}, {"q99", 99, 100}, {"q999", 999, 1000}};

static unsigned long long count(uint64_t n)
{
    return n;
}

static void put_share(struct hm_output *o, const char *key, uint64_t part, uint64_t whole, const char *after)
{
    hm_putf(o, "\"%s\":", key);
    if (whole)
        hm_put(o, hm_number_near((double)part / (double)whole, 17).text);
    else
        hm_put(o, "null");
    hm_put(o, after);
}

void hm_json_sum(struct hm_output *o, const char *key, const struct hm_sum *sum, const char *after)
{
    if (!sum->count) {
        hm_putf(o, "\"%s\":null%s", key, after);
        return;
    }
    hm_putf(o, "\"%s\":{\"count\":%llu,\"sum_lower\":%s,\"sum_upper\":%s,\"mean_lower\":%s,\"mean_upper\":%s}%s", key,
            count(sum->count), hm_number_json_down(sum->lo).text, hm_number_json_up(sum->hi).text,
            hm_number_json_down(hm_sum_mean_lower(sum)).text, hm_number_json_up(hm_sum_mean_upper(sum)).text, after);
}

enum side { LOWER, UPPER };

static void put_histogram(struct hm_output *o, const char *key, const struct hm_histogram *h, enum side side,
                          const char *after)
{
    if (!h->count) {
        hm_putf(o, "\"%s\":null%s", key, after);
        return;
    }
    hm_putf(o, "\"%s\":{\"count\":%llu,\"bound\":\"%s\",\"min\":%s", key, count(h->count),
            side == LOWER ? "lower" : "upper",
            side == LOWER ? hm_number_json_down(h->least).text : hm_number_json_up(h->least).text);
    for (size_t i = 0; i < sizeof QUANTILES / sizeof *QUANTILES; i++) {
        uint64_t rank = hm_histogram_rank(h, QUANTILES[i].numerator, QUANTILES[i].denominator);
        hm_putf(o, ",\"%s\":%s", QUANTILES[i].name,
                side == LOWER ? hm_number_json_down(hm_histogram_lower(h, rank)).text
                              : hm_number_json_up(hm_histogram_upper(h, rank)).text);
    }
    hm_putf(o, ",\"max\":%s}%s", side == LOWER ? hm_number_json_down(h->most).text : hm_number_json_up(h->most).text,
            after);
}

static void put_model(struct hm_output *o, const char *key, const struct hm_record_model *m)
{
    if (!m->name) {
        hm_putf(o, "\"%s\":null,", key);
        return;
    }
    hm_putf(o, "\"%s\":{", key);
    hm_json_text(o, "name", m->name, ",");
    hm_json_text(o, "sha256", m->sha256, ",");
    hm_putf(o, "\"vocab\":%lld,", (long long)m->vocab);
    hm_json_text(o, "architecture", m->architecture, "},");
}

static void put_log(struct hm_output *o, const struct hm_report *r, size_t index)
{
    static const char *const states[] = {"open", "complete", "no_end_record", "cut_line"};
    const struct hm_report_log *log = &r->logs[index];
    const struct hm_record_header *h = &log->header;
    const struct hm_report_group *g = &r->by_log[index];
    hm_put(o, "{");
    hm_json_text(o, "file", log->path, ",");
    hm_putf(o, "\"state\":\"%s\",\"lines\":%zu,\"chain\":\"%s\",\"unfinished_sequences\":%llu,", states[log->state],
            log->lines, log->chain, count(log->unfinished));
    put_model(o, "target", &h->target);
    put_model(o, "draft", &h->draft);
    hm_json_text(o, "tokenizer_sha256", h->tokenizer_sha256, ",");
    hm_json_text(o, "acceptance", h->acceptance, ",");
    hm_json_text(o, "temperature", h->temperature, ",");
    hm_json_text(o, "certify_temperature", h->certify_temperature, ",");
    hm_putf(o, "\"top_k\":%lld,", (long long)h->top_k);
    hm_json_text(o, "top_p", h->top_p, ",");
    hm_json_text(o, "drafter", h->drafter, ",");
    hm_putf(o, "\"width\":%lld,\"depth\":%lld,\"budget\":%lld,", (long long)h->width, (long long)h->depth,
            (long long)h->budget);
    hm_json_text(o, "selection", h->selection, ",");
    hm_json_text(o, "traversal", h->traversal, ",");
    hm_json_text(o, "proposal", h->proposal, ",");
    hm_json_text(o, "score", h->score, ",");
    hm_json_text(o, "fidelity_kind", h->budget_kind, ",");
    hm_json_text(o, "fidelity_limit", h->budget_limit, ",");
    hm_json_text(o, "weights", h->weights, ",");
    hm_json_text(o, "backend", h->backend, ",");
    hm_json_text(o, "version", h->version, ",");
    hm_putf(o,
            "\"sequences\":%llu,\"steps\":%llu,\"rounds\":%llu,\"accepted\":%llu,\"emitted\":%llu,\"with_draft\":%llu,"
            "\"certified\":%llu,",
            count(g->sequences), count(g->steps), count(g->rounds), count(g->accepted), count(g->emitted),
            count(g->with_draft), count(g->certified));
    hm_json_course_group(o, &g->course);
    hm_put(o, "}");
}

static void put_acceptance(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    const struct hm_report_speculative *s = &r->speculative;
    hm_putf(o,
            "\"acceptance\":{\"rounds\":%llu,\"rounds_cut_off\":%llu,\"accepted\":%llu,\"emitted\":%llu,\"verified_"
            "nodes\":%llu,\"pool\":%llu,",
            count(a->rounds), count(a->cut), count(a->accepted), count(a->emitted), count(a->verified), count(a->pool));
    put_share(o, "mean_accepted", a->accepted, a->rounds, ",");
    put_share(o, "tokens_per_round", a->emitted, a->rounds, ",");
    put_share(o, "acceptance_rate", a->accepted, a->verified, ",");
    put_share(o, "tokens_per_target_pass", a->emitted + r->prefill, a->rounds + r->prefill, ",");
    put_share(o, "verified_per_round", a->verified, a->rounds, ",");
    put_share(o, "pool_per_round", a->pool, a->rounds, ",");
    hm_putf(o, "\"rounds_with_tree\":%llu,\"fully_accepted\":%llu,", count(a->with_tree), count(a->full));
    hm_putf(o, "\"rounds_first_drawn\":%llu,\"scored_nodes\":%llu,\"rounds_scored\":%llu,", count(s->first_drawn),
            count(s->scored), count(s->with_scored));
    hm_putf(o, "\"rounds_continued\":%llu,\"rounds_covered\":%llu,", count(s->continued), count(s->covered));
    hm_json_sum(o, "expected_accept", &a->expected, ",");
    hm_putf(o, "\"expected_accept_measured\":%llu,\"per_depth\":[", count(a->expected_accepted));
    for (size_t d = 1; d < HM_REPORT_DEPTHS && a->offered[d]; d++) {
        hm_putf(o, "%s{\"depth\":%zu,\"offered\":%llu,\"reached\":%llu,\"nodes\":%llu,", d > 1 ? "," : "", d,
                count(a->offered[d]), count(a->reach[d]), count(a->nodes[d]));
        put_share(o, "of_offered", a->reach[d], a->offered[d], ",");
        put_share(o, "acceptance_rate", a->reach[d], a->nodes[d], ",");
        put_share(o, "share", a->reach[d], a->rounds, ",");
        put_share(o, "conditional", a->reach[d], a->reach[d - 1], "}");
    }
    hm_put(o, "]},\n");
}

static void put_bands(struct hm_output *o, const char *by, const double edges[HM_REPORT_BANDS],
                      const struct hm_known *bands)
{
    hm_putf(o, "\"bands\":{\"by\":\"%s\",\"band\":[", by);
    for (size_t i = 0; i < HM_REPORT_BANDS; i++) {
        hm_putf(o, "%s{\"from\":%s,\"steps\":%llu,\"certified\":%llu,", i ? "," : "", hm_number_json_down(edges[i]).text,
                count(bands[i].steps), count(bands[i].yes[HM_FROM_ROW][HM_BY_ANY]));
        hm_json_known(o, &bands[i]);
        hm_put(o, "}");
    }
    hm_put(o, "]}}");
}

static void put_claim(struct hm_output *o, const struct hm_report *r, const struct hm_claim_figures *f)
{
    char m[24];
    hm_put(o, "{");
    hm_json_text(o, "rule", f->rule, ",");
    if (f->m == HM_M_TREE)
        hm_put(o, "\"m\":\"tree\",");
    else
        hm_putf(o, "\"m\":%s,", hm_m_text(f->m, m));
    hm_putf(o, "\"steps\":%llu,\"with_draft\":%llu,\"certified\":%llu,", count(r->steps), count(f->with_draft),
            count(f->certified_any));
    put_share(o, "certified_share", f->certified_any, f->with_draft, ",");
    put_share(o, "coverage_share", f->covered[HM_YES], f->with_draft, ",");
    hm_put(o, "\"status\":{");
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++)
        hm_putf(o, "%s\"%s\":%llu", i ? "," : "", HM_JSON_STATUS[i], count(f->status[i]));
    hm_putf(o,
            "},\"covered\":{\"no\":%llu,\"yes\":%llu,\"undecided\":%llu},\"accepts\":{\"no\":%llu,\"yes\":%llu,"
            "\"undecided\":%llu},\"verdicts\":{",
            count(f->covered[0]), count(f->covered[1]), count(f->covered[2]), count(f->accepts[0]),
            count(f->accepts[1]), count(f->accepts[2]));
    for (size_t d = 0; d < 3; d++) {
        hm_putf(o, "%s\"%s\":{", d ? "," : "", DIVERGENCE[d]);
        for (size_t v = 0; v < HM_CERT_VERDICTS; v++) hm_putf(o, "%s\"%s\":%llu", v ? "," : "", hm_certified_names[v], count(f->verdict[d][v]));
        hm_put(o, "}");
    }
    hm_put(o, "},");
    put_histogram(o, "klf", &f->klf, LOWER, ",");
    put_histogram(o, "klr", &f->klr, LOWER, ",");
    put_histogram(o, "tv", &f->tv, LOWER, ",");
    put_histogram(o, "draft_kl_pq", &f->draft, UPPER, ",");
    put_histogram(o, "radius", &f->radius, LOWER, ",");
    hm_put(o, "\"theory\":");
    hm_json_claim_theory(o, r, f);
    hm_put(o, ",");
    hm_json_claim_requirement(o, f);
    hm_put(o, ",");
    if (f->gap_steps)
        put_bands(o, "margin.gap", HM_GAP_EDGES, f->gap);
    else
        put_bands(o, "edge_logits", HM_LOGIT_EDGES, f->logit);
}

static void put_categories(struct hm_output *o, const struct hm_report *r)
{
    hm_put(o, "\"categories\":[");
    for (size_t i = 0; i < r->category_count; i++) {
        const struct hm_report_group *g = &r->categories[i];
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "name", g->name, ",");
        hm_putf(o,
                "\"sequences\":%llu,\"steps\":%llu,\"rounds\":%llu,\"accepted\":%llu,\"emitted\":%llu,\"with_draft\":%"
                "llu,\"certified\":%llu,",
                count(g->sequences), count(g->steps), count(g->rounds), count(g->accepted), count(g->emitted),
                count(g->with_draft), count(g->certified));
        hm_json_course_group(o, &g->course);
        hm_put(o, "}");
    }
    hm_put(o, "],\n");
}

static void put_run_times(struct hm_output *o, const struct hm_report *r)
{
    const struct hm_acceptance *a = &r->acceptance;
    hm_putf(o, "\"run\":{\"timed_rounds\":%llu,\"draft_seconds\":%s,\"verify_seconds\":%s,\"certify_seconds\":%s}\n}\n",
            count(a->timed), a->timed ? hm_number_near(a->draft_seconds, 9).text : "null",
            a->timed ? hm_number_near(a->verify_seconds, 9).text : "null",
            r->certify_seconds >= 0 ? hm_number_near(r->certify_seconds, 9).text : "null");
}

static void put_lists(struct hm_output *o, const struct hm_report *r)
{
    hm_json_course(o, r);
    hm_put(o, ",\n");
    hm_json_sequences(o, r);
    hm_put(o, ",\n");
    hm_json_blocks(o, r);
    hm_put(o, ",\n");
    hm_json_missed(o, r);
    hm_put(o, ",\n");
    hm_json_closest(o, r);
    hm_put(o, ",\n");
    hm_json_trees(o, r);
    hm_put(o, ",\n");
}

void hm_json_report(struct hm_output *o, const struct hm_report *r)
{
    if (!r->log_count) {
        hm_put(o, "{\n\"hallmark_report\":1,\"truncated\":false,\n\"logs\":[],\n");
        hm_json_findings(o, &r->findings);
        hm_put(o, "\n}\n");
        return;
    }
    hm_putf(o, "{\n\"hallmark_report\":1,\"truncated\":%s,\n\"logs\":[", hm_report_truncated(r) ? "true" : "false");
    for (size_t i = 0; i < r->log_count; i++) {
        if (i) hm_put(o, ",\n");
        put_log(o, r, i);
    }
    hm_putf(o,
            "],\n\"totals\":{\"sequences\":%llu,\"steps\":%llu,\"prefill\":%llu,\"continuations\":%llu,\"audit_rows\":%"
            "llu,\"node_"
            "records\":%llu,\"undecided\":%llu},\n",
            count(r->sequences), count(r->steps), count(r->prefill), count(r->continuations), count(r->rows),
            count(r->nodes), count(r->undecided));
    put_acceptance(o, r);
    hm_putf(o, "\"lead_claim\":%zu,\n\"claims\":[", r->lead);
    for (size_t i = 0; i < r->claim_count; i++) {
        if (i) hm_put(o, ",\n");
        put_claim(o, r, &r->claims[i]);
    }
    hm_put(o, "],\n\"relaxation\":{");
    hm_json_sum(o, "regret", &r->regret, ",");
    hm_json_sum(o, "regret_accepted", &r->regret_accepted, ",");
    hm_putf(o, "\"regret_mean_upper\":%s,",
            r->regret.count ? hm_number_json_up(fmin(hm_sum_mean_upper(&r->regret), r->regret_most)).text : "null");
    hm_putf(o, "\"regret_max_upper\":%s,\"accepted_not_first\":%llu,\"accepted_known\":%llu},\n\"draft_distance\":{",
            r->regret.count ? hm_number_json_up(r->regret_most).text : "null", count(r->accepted_not_first),
            count(r->accepted_known));
    hm_json_sum(o, "kl_pq_mean", &r->sum_kl_pq, ",");
    hm_json_sum(o, "kl_qp_mean", &r->sum_kl_qp, ",");
    hm_json_sum(o, "tv_mean", &r->sum_tv, ",");
    put_histogram(o, "kl_pq", &r->kl_pq, UPPER, ",");
    put_histogram(o, "kl_qp", &r->kl_qp, UPPER, ",");
    put_histogram(o, "tv", &r->tv, UPPER, "},\n");
    hm_json_speculative(o, r);
    hm_put(o, ",\n\"theory\":");
    hm_json_theory(o, r);
    hm_put(o, ",\n\"example\":");
    hm_json_examples(o, r);
    hm_put(o, ",\n");
    put_categories(o, r);
    put_lists(o, r);
    hm_json_findings(o, &r->findings);
    hm_put(o, ",\n");
    put_run_times(o, r);
}

hm_status hm_report_write_json(const struct hm_report *r, const char *path, struct hm_error *err)
{
    struct hm_output *o;
    hm_status rc = hm_output_open(path, &o, err);
    if (rc) return rc;
    hm_json_report(o, r);
    return hm_output_close(o, err);
}
