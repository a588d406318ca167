// `hallmark audit`: certificates for rows of logits that another program saved (docs/audit.md).
//
// All rows are looked at before the first is certified, so that findings stand at the top whatever the threads do.
#include "cli/audit_input.h"
#include "cli/audit_table.h"
#include "cli/command.h"
#include "cli/stamping.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FINDINGS_SHOWN = 20, LOG_VOCAB_MOST = 1 << 20 }; // the latter is that of the log's readers

struct audit {
    struct hm_audit_options options;
    struct hm_audit_input input;
    struct hm_audit_table *table; // NULL with --json
    struct hm_stamper *stamper;
    uint64_t findings;
    bool shows_progress;
};

// ---- findings

static hm_status cannot_write(struct hm_error *err)
{
    return hm_fail(err, HM_IO, "cannot write to standard output: %s", strerror(errno));
}

static hm_status print_finding_json(const struct hm_audit_finding *f, struct hm_error *err)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", "finding");
    if (f->row >= 0) cJSON_AddNumberToObject(object, "row", (double)f->row);
    else cJSON_AddNullToObject(object, "row");
    cJSON_AddStringToObject(object, "side", f->side);
    if (f->logit >= 0) cJSON_AddNumberToObject(object, "logit", (double)f->logit);
    else cJSON_AddNullToObject(object, "logit");
    cJSON_AddStringToObject(object, "message", f->what);
    return hm_cli_print_json(object, err);
}

static hm_status report(struct audit *a, const struct hm_audit_finding *f, struct hm_error *err)
{
    a->findings++;
    if (a->options.json) return print_finding_json(f, err);
    if (a->findings == FINDINGS_SHOWN + 1) puts("finding    and more (--json lists them all)");
    if (a->findings > FINDINGS_SHOWN) return HM_OK;
    printf("finding    ");
    if (f->row >= 0) printf("row %lld, ", (long long)f->row);
    printf("%s", f->side);
    if (f->logit >= 0) printf(", logit %lld", (long long)f->logit);
    printf(": %s\n", f->what);
    return HM_OK;
}

static hm_status look_at_rows(struct audit *a, struct hm_error *err)
{
    struct hm_audit_finding finding;
    hm_status rc = HM_OK;
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
    return a->options.log ? hm_row_file_hash(file, out->sha256, err) : HM_OK;
}

// ---- certifying

// Row records as they are completed, from the stamper's thread; header and end are the log's own.
static hm_status on_line(void *user, const char *json, size_t size, struct hm_error *err)
{
    static const char row[] = "{\"kind\":\"row\"";
    struct audit *a = user;
    if (size < sizeof row - 1 || memcmp(json, row, sizeof row - 1) != 0) return HM_OK;
    if (a->table) return hm_audit_table_add(a->table, json, size, err);
    return fwrite(json, 1, size, stdout) == size && putchar('\n') != EOF ? HM_OK : cannot_write(err);
}

static unsigned default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 256 ? 256 : (unsigned)cores;
}

static hm_status open_stamper(struct audit *a, struct hm_error *err)
{
    const struct hm_audit_options *o = &a->options;
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
    if (a->shows_progress && done % 64 == 0) fprintf(stderr, "\r\033[Kcertifying row %zu of %zu", done, a->input.rows);
}

static hm_status certify(struct audit *a, struct hm_stamp_summary *summary, struct hm_error *err)
{
    struct hm_audit_finding finding; // reported before
    struct hm_error late;
    hm_status rc = open_stamper(a, err);
    for (size_t i = 0; i < a->input.rows && !rc; i++) {
        show_progress(a, i);
        if (!hm_audit_input_read(&a->input, i, &finding)) continue;
        struct hm_log_row row = {
            .index = i, .token = -1, .target_row = a->input.target_row, .draft_row = a->input.draft_row};
        rc = hm_stamper_row(a->stamper, &row, err);
    }
    hm_status closed = hm_stamper_close(a->stamper, summary, &late);
    if (a->shows_progress) fputs("\r\033[K", stderr);
    if (rc || !closed) return rc;
    *err = late;
    return closed;
}

// ---- the whole

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_head(const struct audit *a)
{
    const struct hm_row_file_info *t = &a->input.target_info, *d = &a->input.draft_info;
    char *temperature = hm_rational_text(&a->options.temperature);
    printf("target     %s: %zu row%s of %zu logits, %s,\n           at temperature %s\n", t->name, t->rows, plural(t->rows),
           t->vocab, t->type, temperature ? temperature : "?");
    if (d->name)
        printf("draft      %s: %zu row%s of %zu logits, %s\n", d->name, d->rows, plural(d->rows), d->vocab, d->type);
    free(temperature);
}

static void print_tail(const struct audit *a, const struct hm_stamp_summary *summary)
{
    size_t all = a->input.target_info.rows;
    printf("\nrows       %llu ", (unsigned long long)summary->rows);
    if (summary->rows != all) printf("of %zu ", all);
    printf("read");
    if (a->findings) printf("; %llu finding%s", (unsigned long long)a->findings, plural(a->findings));
    if (summary->undecided)
        printf("; %llu question%s undecided at 4096 bits", (unsigned long long)summary->undecided,
               plural(summary->undecided));
    putchar('\n');
    if (a->options.log)
        printf("log        %s: hallmark verify %s%s\n", a->options.log, a->options.keep_rows ? "" : "--allow-absent-rows ",
               a->options.log);
}

static int run(struct audit *a, struct hm_error *err)
{
    struct hm_stamp_summary summary = {0};
    bool text = !a->options.json;
    hm_status rc = hm_audit_input_open(&a->options, &a->input, err);
    if (!rc) rc = check_log(&a->options, a->input.target_info.vocab, err);
    if (!rc && text) rc = hm_audit_table_open(&a->options, &a->table, err);
    if (!rc && text) print_head(a);
    if (!rc) rc = look_at_rows(a, err);
    if (!rc && a->input.rows > 0) rc = certify(a, &summary, err);
    if (!rc && text) {
        hm_audit_table_print(a->table, stdout);
        print_tail(a, &summary);
    }
    if (!rc && (fflush(stdout) != 0 || ferror(stdout))) rc = cannot_write(err);
    uint64_t undecided = summary.undecided;
    hm_stamp_summary_clear(&summary);
    if (rc) return hm_cli_fail(err);
    return a->findings ? HM_EXIT_FINDING : undecided ? HM_EXIT_UNDECIDED : HM_EXIT_OK;
}

int hm_cmd_audit(int argc, char **argv)
{
    struct hm_error err;
    struct audit a = {.shows_progress = isatty(STDERR_FILENO)};
    bool help;
    int code = HM_EXIT_OK;
    if (hm_audit_options_parse(argc, argv, &a.options, &help, &err)) code = hm_cli_fail(&err);
    else if (help) fputs(hm_audit_help, stdout);
    else code = run(&a, &err);
    hm_audit_table_close(a.table);
    hm_audit_input_close(&a.input);
    hm_audit_options_clear(&a.options);
    return code;
}
