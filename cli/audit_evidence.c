// An audit of what another engine logged (docs/evidence.md): see audit.h.
#include "cli/audit.h"
#include "cli/audit_table.h"
#include "cli/audit_token.h"
#include "cli/command.h"
#include "cli/print.h"

#include "base/clock.h"
#include "base/memory.h"
#include "evidence/compare.h"
#include "evidence/sanity.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct audit {
    struct hm_audit_run *run;
    const struct hm_audit_options *options;
    struct hm_source_file *source, *draft;  // draft NULL: none was given, or it came to its end
    struct hm_audit_table *table;
    struct hm_audit_claim *claims;     // of the token at hand [rule_count * m_count]
    struct hm_histogram seen;          // lower ends of the listed mass
    struct hm_likelihood likelihood;
    uint64_t of_kind[HM_FINDINGS], missing[HM_MISSINGS], with_draft, least_listed, most_listed;
    double started, shown;
};

// ---- findings

static hm_status find(struct audit *a, const struct hm_finding *f, const char *side, struct hm_error *err)
{
    return hm_audit_print_finding(a->run, f, side, a->of_kind[f->kind]++, err);
}

// What is wrong with the row itself; *usable: there is a distribution to ask about.
static hm_status check_row(struct audit *a, const struct hm_source_token *token, const char *side, bool *usable,
                           struct hm_error *err)
{
    struct hm_finding finding[HM_SANITY_MOST];
    size_t count = hm_sanity_check(&token->row, finding, usable);
    hm_status rc = HM_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        finding[i].sequence = token->sequence;
        finding[i].t = token->t;
        snprintf(finding[i].where, sizeof finding[i].where, "%s", token->where ? token->where : "");
        rc = find(a, &finding[i], side, err);
    }
    return rc;
}

// ---- the draft's row at the same context

// The next token of the draft's file, its findings reported; NULL at its end.
static hm_status next_of_draft(struct audit *a, const struct hm_source_token **out, struct hm_error *err)
{
    struct hm_event event;
    *out = NULL;
    for (;;) {
        hm_status rc = hm_source_next(a->draft, &event, err);
        if (!rc && event.kind == HM_EVENT_FINDING) rc = find(a, event.finding, "draft", err);
        if (rc || event.kind == HM_EVENT_END) return rc;
        if (event.kind != HM_EVENT_TOKEN || event.token->of_prompt) continue;
        *out = event.token;
        return HM_OK;
    }
}

static hm_status stop_draft(struct audit *a, const struct hm_source_token *target, const struct hm_source_token *found,
                            struct hm_error *err)
{
    struct hm_finding f = {.kind = HM_FINDING_LENGTH, .sequence = target->sequence, .t = target->t};
    int n = snprintf(f.what, sizeof f.what, "expected a row for this token, found ");
    if (found)
        snprintf(f.what + n, sizeof f.what - (size_t)n, "one for sequence %u, token %u; no more of it is used",
                 found->sequence, found->t);
    else
        snprintf(f.what + n, sizeof f.what - (size_t)n, "the end of the file");
    hm_source_close(a->draft);
    a->draft = NULL;
    return find(a, &f, "draft", err);
}

// The draft's evidence beside the target's token; NULL: none that can be used. A certificate log has its own.
static hm_status draft_row(struct audit *a, const struct hm_source_token *token, struct hm_evidence *own,
                           const struct hm_evidence **out, struct hm_error *err)
{
    const struct hm_source_token *beside;
    bool usable = false;
    *out = NULL;
    if (token->draft_logits && token->row.logits) {
        *own = (struct hm_evidence){.unit = HM_UNIT_LOGIT,
                                    .emitted = HM_UNSEEN,
                                    .vocab = token->row.vocab,
                                    .logits = token->draft_logits};
        *out = own;
    }
    if (!a->draft) return HM_OK;
    hm_status rc = next_of_draft(a, &beside, err);
    if (rc) return rc;
    if (!beside || beside->sequence != token->sequence || beside->t != token->t) return stop_draft(a, token, beside, err);
    if (beside->has_row) rc = check_row(a, beside, "draft", &usable, err);
    if (usable) *out = &beside->row;
    else a->missing[HM_MISSING_DRAFT]++;
    return rc;
}

// ---- one token

static void count_missing(struct audit *a, const struct hm_source_token *token, const struct hm_audit_answers *answers)
{
    for (int i = 0; i < HM_MISSINGS; i++) a->missing[i] += answers->missing[i];
    if (token->token < 0 && !token->text && !token->row.logits) a->missing[HM_MISSING_IDS]++;
}

static hm_status audit_row(struct audit *a, const struct hm_source_token *token, struct hm_error *err)
{
    struct hm_audit_answers answers;
    const struct hm_evidence *draft;
    struct hm_evidence own;
    size_t listed = token->row.logits ? token->row.vocab : token->row.count;
    hm_status rc = draft_row(a, token, &own, &draft, err);
    if (!rc) rc = hm_audit_ask(a->options, token, draft, a->claims, &answers, err);
    if (!rc && a->options->claims_temperature) rc = hm_likelihood_add(&a->likelihood, &token->row, &a->options->claimed, err);
    if (rc) return rc;
    a->run->result.with_row++;
    a->run->result.undecided += answers.undecided;
    a->with_draft += draft != NULL;
    a->least_listed = a->run->result.with_row == 1 || listed < a->least_listed ? listed : a->least_listed;
    a->most_listed = listed > a->most_listed ? listed : a->most_listed;
    hm_histogram_add(&a->seen, answers.seen.lo);
    count_missing(a, token, &answers);
    hm_audit_table_add_token(a->table, a->claims);
    if (!a->options->json) return HM_OK;
    return hm_audit_print_json(a->run, hm_audit_token_json(a->options, a->run->number, token, draft, a->claims, &answers), err);
}

static hm_status audit_token(struct audit *a, const struct hm_source_token *token, struct hm_error *err)
{
    bool usable = false;
    a->run->result.tokens++;
    if (token->of_prompt) return HM_OK;
    if (!token->has_row) a->missing[token->missing]++;
    hm_status rc = token->has_row ? check_row(a, token, "target", &usable, err) : HM_OK;
    if (!rc && usable) return audit_row(a, token, err);
    a->likelihood.without++;
    if (rc || !a->draft) return rc;
    const struct hm_source_token *skipped; // keeps step
    return next_of_draft(a, &skipped, err);
}

// ---- the whole

static void show_progress(struct audit *a)
{
    double at = hm_now();
    if (!a->run->shows_progress || at - a->started < 2 || at - a->shown < 0.5) return;
    uint64_t tokens = a->run->result.tokens;
    fprintf(stderr, "\r\033[K%s: %" PRIu64 " tokens, %.0f/s", a->options->target, tokens, (double)tokens / (at - a->started));
    a->shown = at;
}

static hm_status walk(struct audit *a, struct hm_error *err)
{
    struct hm_event event;
    for (;;) {
        hm_status rc = hm_source_next(a->source, &event, err);
        if (rc || event.kind == HM_EVENT_END) return rc;
        a->run->result.sequences += event.kind == HM_EVENT_SEQUENCE;
        if (event.kind == HM_EVENT_TOKEN) rc = audit_token(a, event.token, err);
        if (event.kind == HM_EVENT_FINDING) rc = find(a, event.finding, "target", err);
        if (rc) return rc;
        show_progress(a);
    }
}

static void print_head(const struct audit *a)
{
    FILE *to = a->run->to;
    const struct hm_audit_options *o = a->options;
    fprintf(to, "input      %s\n", o->target);
    fprintf(to, "format     %s (%s)\n", hm_format_name(hm_source_format(a->source)), hm_source_decided_by(a->source));
    if (a->draft) fprintf(to, "draft      %s, %s\n", o->draft, hm_format_name(hm_source_format(a->draft)));
    if (hm_source_format(a->source) == HM_FORMAT_HALLMARK) return; // floats as they are
    fprintf(to, "assumed    each number %s,\n           and the engine's rounding of l within %.3g (1 + |l|/8) nats%s\n",
            hm_source_format(a->source) == HM_FORMAT_LLAMA_KLD ? "rounded to its level of 65,536"
            : o->printing == HM_PRINTING_ROUNDED              ? "rounded to its last digit"
                                                              : "printed so that it reads back the same",
            o->allowance, o->processed ? "; processed rows" : "");
}

static void print_findings(const struct audit *a)
{
    for (int i = 0; i < HM_FINDINGS; i++)
        if (a->of_kind[i] > HM_AUDIT_FINDINGS_SHOWN)
            fprintf(a->run->to, "finding    %s: %" PRIu64 " in all (--json lists them)\n",
                    hm_finding_name((enum hm_finding_kind)i), a->of_kind[i]);
}

static void print_read(const struct audit *a)
{
    const struct hm_audit_result *r = &a->run->result;
    FILE *to = a->run->to;
    fprintf(to, "read       %" PRIu64 " sequence%s, %" PRIu64 " token%s; %" PRIu64 " with evidence", r->sequences,
            hm_plural(r->sequences), r->tokens, hm_plural(r->tokens), r->with_row);
    if (r->with_row && a->least_listed == a->most_listed) fprintf(to, ", %" PRIu64 " entries each", a->most_listed);
    else if (r->with_row) fprintf(to, ", %" PRIu64 " to %" PRIu64 " entries", a->least_listed, a->most_listed);
    fputc('\n', to);
    if (!r->with_row) return;
    fprintf(to, "listed     mass of the entries at least %.4g at 99%% of these tokens,\n           %.4g at half of them\n",
            hm_histogram_lower(&a->seen, hm_histogram_rank(&a->seen, 1, 100)),
            hm_histogram_lower(&a->seen, hm_histogram_rank(&a->seen, 50, 100)));
}

static void print_missing(const struct audit *a)
{
    static const char *const names[HM_MISSINGS] = {
        [HM_MISSING_LOGPROBS] = "no log-probabilities",
        [HM_MISSING_MEASURED] = "not measured, though others are",
        [HM_MISSING_TOP] = "no list of the likeliest tokens",
        [HM_MISSING_MORE_TOP] = "the list is too short to decide",
        [HM_MISSING_IDS] = "no token ids",
        [HM_MISSING_PROMPT] = "no prompt ids",
        [HM_MISSING_VOCABULARY] = "the size of the vocabulary",
        [HM_MISSING_RAW] = "raw values: these are processed",
        [HM_MISSING_DRAFT] = "no draft row",
        [HM_MISSING_FLOOR] = "no floor under unseen tokens",
    };
    bool any = false;
    for (int i = 0; i < HM_MISSINGS; i++) {
        if (!a->missing[i]) continue;
        if (!any) fputs("\nNot enough evidence\n", a->run->to);
        any = true;
        fprintf(a->run->to, "  %-34s at %" PRIu64 " token%s\n", names[i], a->missing[i], hm_plural(a->missing[i]));
        hm_print_folded(a->run->to, 6, hm_format_flag(hm_source_format(a->source), (enum hm_missing)i));
    }
}

static hm_status print_missing_json(const struct audit *a, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (int i = 0; i < HM_MISSINGS && !rc; i++) {
        if (!a->missing[i]) continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", "missing");
        cJSON_AddNumberToObject(object, "input", (double)a->run->number);
        cJSON_AddStringToObject(object, "field", hm_missing_name((enum hm_missing)i));
        cJSON_AddStringToObject(object, "flag", hm_format_flag(hm_source_format(a->source), (enum hm_missing)i));
        cJSON_AddNumberToObject(object, "tokens", (double)a->missing[i]);
        rc = hm_audit_print_json(a->run, object, err);
    }
    return rc;
}

static hm_status print_all(const struct audit *a, struct hm_error *err)
{
    if (a->options->json) {
        hm_status rc = print_missing_json(a, err);
        return rc ? rc : hm_audit_print_temperature(a->run, &a->likelihood, err);
    }
    print_findings(a);
    print_read(a);
    hm_audit_table_print(a->table, a->run->to);
    print_missing(a);
    return hm_audit_print_temperature(a->run, &a->likelihood, err);
}

static void sum_up(struct audit *a)
{
    struct hm_audit_result *r = &a->run->result;
    bool refuted = hm_audit_temperature_refuted(&a->likelihood);
    bool open = r->undecided || r->with_row < r->tokens;
    hm_audit_table_counts(a->table, r->claim);
    r->exit = r->findings || refuted ? HM_EXIT_FINDING : open ? HM_EXIT_UNDECIDED : HM_EXIT_OK;
}

hm_status hm_audit_evidence(struct hm_audit_run *run, struct hm_source_file *source, struct hm_error *err)
{
    const struct hm_audit_options *o = run->options;
    struct hm_source_options source_options = hm_audit_source_options(o);
    struct audit a = {.run = run, .options = o, .source = source, .started = hm_now()};
    a.claims = hm_calloc(o->rule_count * o->m_count, sizeof *a.claims);
    hm_status rc = a.claims ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for claims");
    source_options.format = NULL; // --format speaks of the FILE
    if (!rc && o->draft) rc = hm_source_open(o->draft, &source_options, &a.draft, err);
    bool given = hm_source_format(source) == HM_FORMAT_LLAMA_KLD; // a text that was scored
    if (!rc) rc = hm_audit_table_open(o, "token", given ? "token of the text" : "emitted token", &a.table, err);
    if (!rc && !o->json) print_head(&a);
    if (!rc) rc = walk(&a, err);
    if (a.shown > 0) fputs("\r\033[K", stderr);
    if (!rc) rc = print_all(&a, err);
    if (!rc) sum_up(&a);
    hm_source_close(source);
    hm_source_close(a.draft);
    hm_audit_table_close(a.table);
    free(a.claims);
    return rc;
}
