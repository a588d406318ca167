// The report object: its life, its claims and groups, and small facts about records (figures.h).
#include "reports/gather.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void hm_sum_add(struct hm_sum *sum, struct hm_ival value)
{
    sum->lo = sum->count ? nextafter(sum->lo + value.lo, -INFINITY) : value.lo;
    sum->hi = sum->count ? nextafter(sum->hi + value.hi, INFINITY) : value.hi;
    sum->count++;
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
    size_t size = strlen(text);
    bool cut = size > limit;
    if (cut) {
        size = limit;
        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80) size--; // not inside a character
    }
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
enum { HEADER_TEXTS = 23 };
static void header_texts(struct hm_record_header *h, const char **out[HEADER_TEXTS])
{
    const char **texts[HEADER_TEXTS] = {
        &h->acceptance,       &h->temperature, &h->certify_temperature, &h->top_p,           &h->proposal, &h->rng,
        &h->target.name,      &h->target.sha256, &h->target.architecture, &h->draft.name,    &h->draft.sha256,
        &h->draft.architecture, &h->tokenizer_sha256, &h->drafter,      &h->selection,       &h->traversal,
        &h->weights,          &h->accumulate,  &h->backend,             &h->row_source,      &h->version,  &h->date,
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
    for (size_t i = 0; i < HM_LOG_MOST_RULES; i++) to->claims[i] = NULL; // the report's claims carry them
    return good;
}

void hm_report_log_clear(struct hm_report_log *log)
{
    const char **texts[HEADER_TEXTS];
    header_texts(&log->header, texts);
    for (size_t i = 0; i < HEADER_TEXTS; i++) free((void *)(uintptr_t)*texts[i]);
    free(log->path);
}

static hm_status make_claims(struct hm_gather *g, const struct hm_record_header *h)
{
    struct hm_report *r = g->report;
    r->claim_count = h->claim_count * h->m_count;
    r->claims = hm_calloc(r->claim_count, sizeof *r->claims);
    bool good = r->claims != NULL;
    for (size_t i = 0; good && i < r->claim_count; i++) {
        r->claims[i].rule = hm_clip(h->claims[i / h->m_count], HM_REPORT_LONGEST_NAME);
        r->claims[i].m = h->m[i % h->m_count];
        good = r->claims[i].rule != NULL;
        if (r->lead == 0 && good && strcmp(h->claims[i / h->m_count], h->acceptance) == 0) r->lead = i;
    }
    r->token_limit = HM_REPORT_MOST_CLAIMS / r->claim_count;
    if (r->token_limit > HM_REPORT_MOST_TOKENS) r->token_limit = HM_REPORT_MOST_TOKENS;
    return good ? HM_OK : hm_fail(g->err, HM_MEMORY, "out of memory for %zu claims", r->claim_count);
}

static hm_status compare_claims(struct hm_gather *g, const char *path, const struct hm_record_header *h)
{
    const struct hm_report *r = g->report;
    const char *first = r->logs[0].path;
    if (h->claim_count * h->m_count != r->claim_count || h->m_count != r->logs[0].header.m_count)
        return hm_fail(g->err, HM_SHAPE, "%s: line 1: claims: expected %zu rules for %zu values of m, as in %s, found %zu for %zu",
                       path, r->logs[0].header.claim_count, r->logs[0].header.m_count, first, h->claim_count, h->m_count);
    for (size_t i = 0; i < r->claim_count; i++) {
        const char *rule = h->claims[i / h->m_count];
        char *clipped = hm_clip(rule, HM_REPORT_LONGEST_NAME), expected[24], found[24];
        bool same = clipped && strcmp(clipped, r->claims[i].rule) == 0 && h->m[i % h->m_count] == r->claims[i].m;
        free(clipped);
        if (!same)
            return hm_fail(g->err, HM_SHAPE, "%s: line 1: claims: expected %.100s with m = %s, as in %s, found %.100s with m = %s",
                           path, r->claims[i].rule, hm_m_text(r->claims[i].m, expected), first, rule,
                           hm_m_text(h->m[i % h->m_count], found));
    }
    return HM_OK;
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
    return HM_OK;
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
    free(r->tokens);
    free(r->token_claims);
    free(r->text);
    free(r);
}

bool hm_report_truncated(const struct hm_report *report)
{
    for (size_t i = 0; i < report->log_count; i++)
        if (report->logs[i].state != HM_LOG_COMPLETE) return true;
    return false;
}
