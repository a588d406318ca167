// The report object: its life, its claims and groups, and small facts about records (figures.h).
#include "reports/gather.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIMS_TEXT = 300 }; // bytes of a list of rules in an error: two fit beside two file names

const double HM_GAP_EDGES[HM_REPORT_BANDS] = {0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8};
const double HM_LOGIT_EDGES[HM_REPORT_BANDS] = {0, 0.125, 0.25, 0.5, 1, 2, 4, 8};

enum hm_token_status hm_token_status(const struct hm_record_claim *claim)
{
    if (!claim->has_verdicts) return HM_TOKEN_NO_DRAFT;
    bool vacuous = false, inapplicable = false, undecided = claim->covered == HM_UNDECIDED;
    for (int i = 0; i < 3; i++) {
        if (claim->certified[i] == HM_CERT_YES) return HM_TOKEN_CERTIFIED;
        vacuous |= claim->certified[i] == HM_CERT_VACUOUS;
        inapplicable |= claim->certified[i] == HM_CERT_INAPPLICABLE;
        undecided |= claim->certified[i] == HM_CERT_UNDECIDED;
    }
    if (undecided) return HM_TOKEN_UNDECIDED;
    if (inapplicable) return HM_TOKEN_INAPPLICABLE;
    if (vacuous) return HM_TOKEN_VACUOUS;
    return claim->covered == HM_YES ? HM_TOKEN_COVERED : HM_TOKEN_UNCOVERED;
}

bool hm_report_has_draft_rows(const struct hm_report *report)
{
    for (size_t i = 0; i < report->claim_count; i++)
        if (report->claims[i].with_draft) return true;
    return false;
}

bool hm_report_audit(const struct hm_report *report)
{
    for (size_t i = 0; i < report->log_count; i++)
        if (!report->logs[i].header.audit) return false;
    return true;
}

bool hm_report_has_restricted(const struct hm_report *report)
{
    for (size_t i = 0; i < report->claim_count; i++)
        if (report->claims[i].theory.restricted) return true;
    return false;
}

struct hm_number hm_report_infinite(const struct hm_report *report)
{
    struct hm_number where = {""};
    uint64_t infinite = report->kl_pq.infinite, all = report->kl_pq.count;
    struct hm_number steps = hm_number_of(all, hm_report_audit(report) ? "row" : "step");
    if (!infinite || !hm_report_has_restricted(report)) return where;
    if (infinite == all) snprintf(where.text, sizeof where.text, "all %.40s", steps.text);
    else snprintf(where.text, sizeof where.text, "%.26s of %.25s", hm_number_count(infinite).text, steps.text);
    return where;
}

const char *hm_report_noun(const struct hm_report *report)
{
    return hm_report_audit(report) ? "row" : report->rows ? "token or row" : "token";
}

const struct hm_record_header *hm_report_budget(const struct hm_report *report)
{
    for (size_t i = 0; i < report->log_count; i++)
        if (report->logs[i].header.budget_kind) return &report->logs[i].header;
    return NULL;
}

bool hm_report_has_coverage(const struct hm_report *report)
{
    bool stops = false;
    for (size_t i = 0; i < report->log_count; i++) {
        const char *traversal = report->logs[i].header.traversal; // NULL in an audit
        stops = stops || (traversal && strcmp(traversal, "exhaustive") != 0);
    }
    return stops || report->speculative.first_drawn || report->speculative.scored;
}

const char *hm_m_text(int64_t m, char buffer[24])
{
    if (m == HM_M_TREE) return "tree";
    snprintf(buffer, 24, "%lld", (long long)m);
    return buffer;
}

const char *hm_source_text(unsigned source)
{
    static const char *const names[] = {"prefill", "accepted", "continuation"};
    return source < 3 ? names[source] : "";
}

char *hm_clip(const char *text, size_t limit)
{
    size_t whole = strlen(text), size = hm_text_cut(text, whole, limit);
    bool cut = size < whole;
    char *copy = hm_calloc(size + 4, 1);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    if (cut) memcpy(copy + size, "...", 3);
    return copy;
}

struct hm_report_group *hm_report_category(struct hm_report *report, const char *name)
{
    char *clipped = hm_clip(name[0] ? name : "(none)", HM_REPORT_LONGEST_NAME);
    if (!clipped) return NULL;
    size_t i = 0;
    while (i < report->category_count && strcmp(report->categories[i].name, clipped) != 0) i++;
    if (i < report->category_count || i == HM_REPORT_MOST_GROUPS) {
        free(clipped);
        return &report->categories[i < report->category_count ? i : HM_REPORT_MOST_GROUPS - 1];
    }
    if (i == HM_REPORT_MOST_GROUPS - 1) {
        free(clipped);
        clipped = hm_clip("other", HM_REPORT_LONGEST_NAME);
        if (!clipped) return NULL;
    }
    report->category_count++;
    report->categories[i].name = clipped;
    return &report->categories[i];
}

// Every text of a header, so that copying and freeing cannot disagree. Returns how many there are.
enum { HEADER_TEXTS = 26 };
static void header_texts(struct hm_record_header *h, const char **out[HEADER_TEXTS])
{
    const char **texts[HEADER_TEXTS] = {&h->acceptance,
                                        &h->temperature,
                                        &h->certify_temperature,
                                        &h->top_p,
                                        &h->proposal,
                                        &h->rng,
                                        &h->target.name,
                                        &h->target.sha256,
                                        &h->target.architecture,
                                        &h->draft.name,
                                        &h->draft.sha256,
                                        &h->draft.architecture,
                                        &h->tokenizer_sha256,
                                        &h->drafter,
                                        &h->selection,
                                        &h->traversal,
                                        &h->score,
                                        &h->budget_kind,
                                        &h->budget_limit,
                                        &h->weights,
                                        &h->accumulate,
                                        &h->backend,
                                        &h->row_source,
                                        &h->version,
                                        &h->date,
                                        &h->host};
    memcpy(out, texts, sizeof texts);
}

static bool copy_header(const struct hm_record_header *from, struct hm_record_header *to)
{
    const char **texts[HEADER_TEXTS];
    bool good = true;
    *to = *from;
    header_texts(to, texts);
    for (size_t i = 0; i < HEADER_TEXTS; i++)
        if (*texts[i]) {
            *texts[i] = hm_clip(*texts[i], HM_REPORT_LONGEST_NAME);
            good &= *texts[i] != NULL;
        }
    for (size_t i = 0; i < from->claim_count; i++) {
        to->claims[i] = strdup(from->claims[i]); // whole: two rules may differ beyond what is shown
        good &= to->claims[i] != NULL;
    }
    for (size_t i = 0; i < from->divergence_count; i++) {
        to->divergences[i] = strdup(from->divergences[i]);
        good &= to->divergences[i] != NULL;
    }
    return good;
}

void hm_report_log_clear(struct hm_report_log *log)
{
    const char **texts[HEADER_TEXTS];
    header_texts(&log->header, texts);
    for (size_t i = 0; i < HEADER_TEXTS; i++) free((void *)(uintptr_t)*texts[i]);
    for (size_t i = 0; i < log->header.claim_count; i++) free((void *)(uintptr_t)log->header.claims[i]);
    for (size_t i = 0; i < log->header.divergence_count; i++) free((void *)(uintptr_t)log->header.divergences[i]);
    free(log->path);
}

static hm_status make_claims(struct hm_gather *g, const struct hm_record_header *h)
{
    struct hm_report *r = g->report;
    r->claim_count = h->claim_count * h->m_count;
    r->claims = hm_calloc(r->claim_count, sizeof *r->claims);
    bool good = r->claims != NULL, found = false; // found: the first claim of the acceptance rule
    for (size_t i = 0; good && i < r->claim_count; i++) {
        r->claims[i].rule = hm_clip(h->claims[i / h->m_count], HM_REPORT_LONGEST_NAME);
        r->claims[i].m = h->m[i % h->m_count];
        good = r->claims[i].rule != NULL;
        if (found || strcmp(h->claims[i / h->m_count], h->acceptance) != 0) continue;
        r->lead = i;
        found = true;
    }
    r->token_limit = HM_REPORT_MOST_CLAIMS / r->claim_count;
    if (r->token_limit > HM_REPORT_MOST_TOKENS) r->token_limit = HM_REPORT_MOST_TOKENS;
    r->block_tokens = HM_REPORT_BLOCK;
    return good ? HM_OK : hm_fail(g->err, HM_MEMORY, "out of memory for %zu claims", r->claim_count);
}

// "greedy, topk:2 for m = tree, 1"; a list that does not fit ends in "...".
static void claims_text(const struct hm_record_header *h, char *out, size_t size)
{
    size_t at = 0;
    char m[24];
    out[0] = 0;
    for (size_t i = 0; i < h->claim_count + h->m_count && at + 4 < size; i++) {
        bool rule = i < h->claim_count;
        const char *before = i == 0 ? "" : i == h->claim_count ? " for m = " : ", ";
        const char *text = rule ? h->claims[i] : hm_m_text(h->m[i - h->claim_count], m);
        int length = snprintf(out + at, size - at, "%s%.*s", before, HM_REPORT_LONGEST_NAME, text);
        at = length > 0 && (size_t)length < size - at ? at + (size_t)length : size;
    }
    if (at + 4 >= size) memcpy(out + size - 4, "...", 4);
}

static bool same_claims(const struct hm_record_header *a, const struct hm_record_header *b)
{
    bool same = a->claim_count == b->claim_count && a->m_count == b->m_count;
    for (size_t i = 0; same && i < a->claim_count; i++) same = strcmp(a->claims[i], b->claims[i]) == 0;
    for (size_t i = 0; same && i < a->m_count; i++) same = a->m[i] == b->m[i];
    return same;
}

static bool same_divergences(const struct hm_record_header *a, const struct hm_record_header *b)
{
    bool same = a->divergence_count == b->divergence_count;
    for (size_t i = 0; same && i < a->divergence_count; i++) same = strcmp(a->divergences[i], b->divergences[i]) == 0;
    return same;
}

static hm_status compare_claims(struct hm_gather *g, const char *path, const struct hm_record_header *h)
{
    const struct hm_report_log *first = &g->report->logs[0];
    char expected[CLAIMS_TEXT], found[CLAIMS_TEXT];
    if (same_claims(&first->header, h)) {
        if (same_divergences(&first->header, h)) return HM_OK;
        return hm_fail(g->err, HM_SHAPE, "%s: line 1: divergences: expected those of %s, found others", path,
                       first->path);
    }
    claims_text(&first->header, expected, sizeof expected);
    claims_text(h, found, sizeof found);
    return hm_fail(g->err, HM_SHAPE, "%s: line 1: claims: expected %s, as in %s, found %s", path, expected, first->path,
                   found);
}

hm_status hm_report_begin_log(struct hm_gather *g, const char *path)
{
    struct hm_report *r = g->report;
    const struct hm_record_header *h = hm_log_reader_header(g->reader);
    hm_status rc = r->log_count ? compare_claims(g, path, h) : make_claims(g, h);
    if (rc) return rc;
    void *logs = r->logs;
    struct hm_report_group *groups = realloc(r->by_log, (r->log_count + 1) * sizeof *groups);
    if (groups) r->by_log = groups;
    bool good = groups && hm_grow(&logs, &r->log_capacity, r->log_count + 1, sizeof *r->logs);
    r->logs = logs;
    if (!good) return hm_fail(g->err, HM_MEMORY, "%s: out of memory", path);
    g->log = r->log_count++;
    r->by_log[g->log] = (struct hm_report_group){0};
    struct hm_report_log *log = &r->logs[g->log];
    *log = (struct hm_report_log){.path = strdup(path)};
    good = copy_header(h, &log->header) && log->path;
    r->by_log[g->log].name = log->path;
    return good ? HM_OK : hm_fail(g->err, HM_MEMORY, "%s: out of memory", path);
}

hm_status hm_report_open(struct hm_report **out, struct hm_error *err)
{
    *out = hm_calloc(1, sizeof **out);
    if (!*out) return hm_fail(err, HM_MEMORY, "out of memory for a report");
    (*out)->certify_seconds = -1;
    hm_status rc = hm_examples_make((*out)->example, err);
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

hm_status hm_report_add_findings(struct hm_report *report, const char *path, struct hm_error *err)
{
    return hm_findings_add(&report->findings, path, err);
}

void hm_report_close(struct hm_report *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->log_count; i++) hm_report_log_clear(&r->logs[i]);
    for (size_t i = 0; r->claims && i < r->claim_count; i++) free(r->claims[i].rule);
    for (size_t i = 0; i < r->category_count; i++) free(r->categories[i].name);
    for (size_t i = 0; i < r->kept_count; i++) {
        free(r->kept[i].id);
        free(r->kept[i].category);
    }
    free(r->logs);
    free(r->by_log);
    free(r->claims);
    free(r->kept);
    for (size_t i = 0; i < r->block_count; i++) hm_block_clear(&r->block[i]);
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++) free(r->missed[i]);
    free(r->block);
    hm_rounds_clear(&r->rounds);
    hm_findings_clear(&r->findings);
    free(r);
}

bool hm_report_truncated(const struct hm_report *report)
{
    for (size_t i = 0; i < report->log_count; i++)
        if (report->logs[i].state != HM_LOG_COMPLETE) return true;
    return false;
}
