// Certificates for rows of logits that another program saved (docs/audit.md): see audit.h.
//
// All rows are looked at before the first is certified, so that findings stand at the top whatever the threads do.
#include "cli/audit.h"
#include "cli/audit_input.h"
#include "cli/audit_table.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/stamping.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_VOCAB_MOST = 1 << 20 }; // that of the log's readers

struct audit {
    struct hm_audit_run *run;
    const struct hm_audit_options *options;
    struct hm_audit_input input;
    struct hm_audit_table *table;
    struct hm_stamper *stamper;
    struct hm_source_file *source; // the same rows with the tokens that stand beside them
    bool has_tokens;
    struct hm_likelihood likelihood;
    uint64_t of_kind[HM_FINDINGS];
};

// ---- findings

static hm_status cannot_write(struct hm_error *err)
{
    return hm_fail(err, HM_IO, "cannot write to standard output: %s", strerror(errno));
}

static hm_status report(struct audit *a, const struct hm_audit_finding *f, struct hm_error *err)
{
    struct hm_finding finding = {.kind = f->kind, .sequence = -1, .t = f->row};
    if (f->logit >= 0) snprintf(finding.where, sizeof finding.where, "logit %lld", (long long)f->logit);
    snprintf(finding.what, sizeof finding.what, "%s", f->what);
    return hm_audit_print_finding(a->run, &finding, f->side, a->of_kind[f->kind]++, err);
}

// The token at the source's next row, -1 at its end; what is wrong with the file on the way, if that is to be told.
static hm_status next_token(struct audit *a, bool tell, int32_t *token, struct hm_error *err)
{
    struct hm_event event = {.kind = HM_EVENT_SEQUENCE};
    hm_status rc = HM_OK;
    *token = -1;
    while (!rc && event.kind != HM_EVENT_TOKEN && event.kind != HM_EVENT_END) {
        rc = hm_source_next(a->source, &event, err);
        if (rc) return rc;
        if (event.kind == HM_EVENT_SEQUENCE) a->run->result.sequences += tell;
        if (event.kind == HM_EVENT_TOKEN) *token = event.token->token;
        if (event.kind == HM_EVENT_FINDING && tell && event.finding->kind != HM_FINDING_LENGTH) // told with the shapes
            rc = hm_audit_print_finding(a->run, event.finding, "target", a->of_kind[event.finding->kind]++, err);
    }
    return rc;
}

static hm_status look_at_rows(struct audit *a, struct hm_error *err)
{
    struct hm_audit_finding finding;
    int32_t token;
    hm_status rc = next_token(a, true, &token, err);
    a->has_tokens = token >= 0;
    if (!rc && !a->has_tokens && a->options->claims_temperature)
        rc = hm_fail(err, HM_USAGE, "%s: --claim-temperature: expected tokens beside the rows, found none", a->options->target);
    for (size_t i = 0; i < a->input.findings && !rc; i++) rc = report(a, &a->input.finding[i], err);
    for (size_t i = 0; i < a->input.rows && !rc; i++)
        if (!hm_audit_input_read(&a->input, i, &finding)) rc = report(a, &finding, err);
    return rc;
}

// ---- the log

// Is it the name of a row shard of a log of this name, such as run.jsonl.draft-00000.safetensors?
static bool is_shard(const char *name, const char *log_name)
{
    size_t n = strlen(log_name);
    return strncmp(name, log_name, n) == 0 &&
           (strncmp(name + n, ".target-", 8) == 0 || strncmp(name + n, ".draft-", 7) == 0);
}

// A log's shards replace files named after it, which may be the very rows to certify, whatever names they go by here.
static hm_status check_shards(const char *log, const char *input, struct hm_error *err)
{
    struct stat rows, other;
    const char *slash = strrchr(log, '/'), *name = slash ? slash + 1 : log;
    if (!input || stat(input, &rows) != 0) return HM_OK;
    char *path = slash ? strndup(log, (size_t)(slash - log) + 1) : strdup("."); // hm_stamper_open reports its absence
    if (!path) return hm_fail(err, HM_MEMORY, "%s: out of memory", log);
    DIR *folder = opendir(path);
    free(path);
    bool clash = false;
    for (const struct dirent *entry; folder && !clash && (entry = readdir(folder));)
        clash = is_shard(entry->d_name, name) && fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 &&
                other.st_dev == rows.st_dev && other.st_ino == rows.st_ino;
    if (folder) closedir(folder);
    if (!clash) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected another name for the log: %s may be one of its row shards", log, input);
}

static hm_status check_log(const struct hm_audit_options *o, size_t vocab, struct hm_error *err)
{
    if (!o->log) return HM_OK;
    if (vocab > LOG_VOCAB_MOST)
        return hm_fail(err, HM_USAGE, "--log: expected a vocabulary of at most %d, found %zu", LOG_VOCAB_MOST, vocab);
    hm_status rc = hm_stamping_check_path(o->log, err);
    const char *const inputs[] = {o->target, o->draft, o->vocabulary};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0] && !rc; i++) rc = check_shards(o->log, inputs[i], err);
    return rc;
}

static hm_status describe(const struct audit *a, const struct hm_row_file *file, struct hm_log_model *out,
                          struct hm_error *err)
{
    *out = (struct hm_log_model){
        .name = hm_row_file_info(file).name, .vocab = a->input.target_info.vocab, .architecture = "rows"};
    return a->options->log ? hm_row_file_hash(file, out->sha256, err) : HM_OK;
}

// ---- certifying

// Row records as they are completed, from the stamper's thread; header and end are the log's own.
static hm_status on_line(void *user, const char *json, size_t size, struct hm_error *err)
{
    static const char row[] = "{\"kind\":\"row\"";
    struct audit *a = user;
    if (size < sizeof row - 1 || memcmp(json, row, sizeof row - 1) != 0) return HM_OK;
    hm_status rc = hm_audit_table_add(a->table, json, size, err);
    if (rc || !a->options->json) return rc;
    return fwrite(json, 1, size, a->run->to) == size && fputc('\n', a->run->to) != EOF ? HM_OK : cannot_write(err);
}

static unsigned default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 256 ? 256 : (unsigned)cores;
}

static hm_status open_stamper(struct audit *a, struct hm_error *err)
{
    const struct hm_audit_options *o = a->options;
    struct hm_log_model target, draft;
    struct hm_rational zero;
    hm_status rc = describe(a, a->input.target, &target, err);
    if (!rc && a->input.has_draft) rc = describe(a, a->input.draft, &draft, err);
    if (rc) return rc;
    hm_rational_init(&zero);
    struct hm_log_header header = {
        .rules = o->rule,
        .rule_count = o->rule_count,
        .m = o->m,
        .m_count = o->m_count,
        .margin = o->margin,
        .universal = o->margin,
        .divergences = o->divergence,
        .divergence_count = o->divergence_count,
        .law_iid = o->law_iid,
        .law_topk = o->law_topk,
        .audit = true,
        .temperature = &zero,
        .certify_temperature = &o->temperature,
        .top = 8,
        .target = &target,
        .draft = a->input.has_draft ? &draft : NULL,
        .tokenizer_sha256 = "",
        .weights_dtype = a->input.target_info.type,
        .accumulate = "unknown",
        .backend = "unknown",
        .row_source = "file",
    };
    struct hm_stamp_options stamp = {
        .path = o->log,
        .keep_rows = o->keep_rows,
        .hash_rows = o->log != NULL,
        .threads = o->threads ? (unsigned)o->threads : default_threads(),
        .line = on_line,
        .line_user = a,
    };
    rc = hm_stamper_open(&stamp, &header, &a->stamper, err);
    hm_rational_clear(&zero);
    return rc;
}

static void show_progress(const struct audit *a, size_t done)
{
    if (a->run->shows_progress && done % 64 == 0) fprintf(stderr, "\r\033[Kcertifying row %zu of %zu", done, a->input.rows);
}

static hm_status weigh_claim(struct audit *a, int32_t token, struct hm_error *err)
{
    struct hm_evidence row = {.unit = HM_UNIT_LOGIT,
                              .emitted = (size_t)token,
                              .vocab = a->input.target_info.vocab,
                              .logits = a->input.target_row};
    return hm_likelihood_add(&a->likelihood, &row, &a->options->claimed, err);
}

static hm_status certify(struct audit *a, struct hm_stamp_summary *summary, struct hm_error *err)
{
    struct hm_audit_finding finding; // reported before
    struct hm_error late;
    struct hm_source_options source_options = hm_audit_source_options(a->options);
    int32_t token = -1;
    hm_status rc = open_stamper(a, err);
    hm_source_close(a->source); // from its start again
    a->source = NULL;
    if (!rc && a->has_tokens) rc = hm_source_open(a->options->target, &source_options, &a->source, err);
    for (size_t i = 0; i < a->input.rows && !rc; i++) {
        show_progress(a, i);
        if (a->has_tokens) rc = next_token(a, false, &token, err);
        if (rc) break;
        if (!hm_audit_input_read(&a->input, i, &finding)) {
            a->likelihood.without += token >= 0;
            continue;
        }
        struct hm_log_row row = {
            .index = i, .token = token, .target_row = a->input.target_row, .draft_row = a->input.draft_row};
        rc = hm_stamper_row(a->stamper, &row, err);
        if (!rc && token >= 0 && a->options->claims_temperature) rc = weigh_claim(a, token, err);
    }
    hm_status closed = hm_stamper_close(a->stamper, summary, &late);
    if (a->run->shows_progress) fputs("\r\033[K", stderr);
    if (rc || !closed) return rc;
    *err = late;
    return closed;
}

// ---- the whole

static void print_head(const struct audit *a)
{
    const struct hm_row_file_info *t = &a->input.target_info, *d = &a->input.draft_info;
    char *temperature = hm_rational_text(&a->options->temperature);
    fprintf(a->run->to, "target     %s: %zu row%s of %zu logits, %s,\n           at temperature %s\n", t->name, t->rows,
            hm_plural(t->rows), t->vocab, t->type, temperature ? temperature : "?");
    if (d->name)
        fprintf(a->run->to, "draft      %s: %zu row%s of %zu logits, %s\n", d->name, d->rows, hm_plural(d->rows), d->vocab,
                d->type);
    free(temperature);
}

static void print_tail(const struct audit *a, const struct hm_stamp_summary *summary)
{
    FILE *to = a->run->to;
    size_t all = a->input.target_info.rows;
    fprintf(to, "\nrows       %llu ", (unsigned long long)summary->rows);
    if (summary->rows != all) fprintf(to, "of %zu ", all);
    fprintf(to, "read");
    if (a->run->result.findings)
        fprintf(to, "; %llu finding%s", (unsigned long long)a->run->result.findings, hm_plural(a->run->result.findings));
    if (summary->undecided)
        fprintf(to, "; %llu question%s undecided at 4096 bits", (unsigned long long)summary->undecided,
                hm_plural(summary->undecided));
    fputc('\n', to);
    if (a->options->log)
        fprintf(to, "log        %s: hallmark verify %s%s\n", a->options->log,
                a->options->keep_rows ? "" : "--allow-absent-rows ", a->options->log);
}

static void sum_up(struct audit *a, const struct hm_stamp_summary *summary)
{
    struct hm_audit_result *r = &a->run->result;
    r->tokens = a->input.target_info.rows;
    r->with_row = summary->rows;
    r->undecided = summary->undecided;
    hm_audit_table_counts(a->table, r->claim);
    bool refuted = hm_audit_temperature_refuted(&a->likelihood);
    r->exit = r->findings || refuted ? HM_EXIT_FINDING : summary->undecided ? HM_EXIT_UNDECIDED : HM_EXIT_OK;
}

hm_status hm_audit_rows(struct hm_audit_run *run, struct hm_source_file *source, struct hm_error *err)
{
    struct hm_stamp_summary summary = {0};
    struct audit a = {.run = run, .options = run->options, .source = source};
    bool text = !run->options->json;
    hm_status rc = hm_audit_input_open(run->options, &a.input, err);
    if (!rc) rc = check_log(run->options, a.input.target_info.vocab, err);
    if (!rc) rc = hm_audit_table_open(run->options, "row", "emitted token", &a.table, err);
    if (!rc && text) print_head(&a);
    if (!rc) rc = look_at_rows(&a, err);
    if (!rc && a.input.rows > 0) rc = certify(&a, &summary, err);
    if (!rc && text) {
        hm_audit_table_print(a.table, run->to);
        print_tail(&a, &summary);
    }
    if (!rc && a.has_tokens) rc = hm_audit_print_temperature(run, &a.likelihood, err);
    if (!rc && (fflush(run->to) != 0 || ferror(run->to))) rc = cannot_write(err);
    if (!rc) sum_up(&a, &summary);
    hm_stamp_summary_clear(&summary);
    hm_audit_table_close(a.table);
    hm_audit_input_close(&a.input);
    hm_source_close(a.source);
    return rc;
}
