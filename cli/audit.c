// `hallmark audit`: what can be proved from what another program logged (docs/audit.md, docs/evidence.md).
#include "cli/audit.h"
#include "cli/command.h"
#include "cli/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hm_source_options hm_audit_source_options(const struct hm_audit_options *o)
{
    return (struct hm_source_options){.format = o->format,
                                      .tensor = o->tensor,
                                      .vocab = o->vocab,
                                      .printing = o->printing,
                                      .allowance = o->allowance,
                                      .exact_sums = o->allowance == 0,
                                      .processed = o->processed};
}

hm_status hm_audit_print_json(struct hm_audit_run *run, cJSON *object, struct hm_error *err)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) return hm_fail(err, HM_MEMORY, "out of memory for JSON");
    bool good = fprintf(run->to, "%s\n", text) >= 0;
    free(text);
    return good ? HM_OK : hm_fail(err, HM_IO, "cannot write to standard output: %s", strerror(errno));
}

hm_status hm_audit_print_input(struct hm_audit_run *run, enum hm_format format, const char *decided_by, struct hm_error *err)
{
    const struct hm_audit_options *o = run->options;
    if (!o->json) return HM_OK;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", "input");
    cJSON_AddNumberToObject(object, "input", (double)run->number);
    cJSON_AddStringToObject(object, "file", o->target);
    if (o->draft) cJSON_AddStringToObject(object, "draft", o->draft);
    cJSON_AddStringToObject(object, "format", hm_format_name(format));
    cJSON_AddStringToObject(object, "decided_by", decided_by);
    cJSON_AddNumberToObject(object, "allowance", format == HM_FORMAT_ROWS ? 0 : o->allowance);
    return hm_audit_print_json(run, object, err);
}

static cJSON *finding_json(const struct hm_audit_run *run, const struct hm_finding *f, const char *side)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", "finding");
    cJSON_AddNumberToObject(object, "input", (double)run->number);
    hm_json_add_finding(object, f, side);
    return object;
}

static void print_finding_text(FILE *to, const struct hm_finding *f, bool of_draft)
{
    enum { LINE = 79 };
    char head[LINE + 1], line[sizeof head + HM_FINDING_WHERE + HM_FINDING_WHAT];
    int n = snprintf(head, sizeof head, "finding    %s%s", hm_finding_name(f->kind), of_draft ? ", draft" : "");
    if (f->sequence >= 0) n += snprintf(head + n, sizeof head - (size_t)n, ", sequence %lld", (long long)f->sequence);
    if (f->t >= 0)
        n += snprintf(head + n, sizeof head - (size_t)n, ", %s %lld", f->sequence >= 0 ? "token" : "row", (long long)f->t);
    int all = snprintf(line, sizeof line, "%s%s%s: %s", head, f->where[0] ? ", " : "", f->where, f->what);
    if (all <= LINE) {
        fprintf(to, "%s\n", line);
        return;
    }
    fprintf(to, "%s:\n", head);
    snprintf(line, sizeof line, "at %s:", f->where);
    if (f->where[0]) hm_print_folded(to, 11, line);
    hm_print_folded(to, 11, f->what);
}

hm_status hm_audit_print_finding(struct hm_audit_run *run, const struct hm_finding *f, const char *side,
                                 uint64_t shown_of_kind, struct hm_error *err)
{
    run->result.findings++;
    if (run->options->json) return hm_audit_print_json(run, finding_json(run, f, side), err);
    if (shown_of_kind < HM_AUDIT_FINDINGS_SHOWN) print_finding_text(run->to, f, strcmp(side, "draft") == 0);
    return HM_OK;
}

// ---- one input

static hm_status audit_input(struct hm_audit_run *run, struct hm_error *err)
{
    const struct hm_audit_options *o = run->options;
    struct hm_source_options source_options = hm_audit_source_options(o);
    struct hm_source_file *source;
    hm_status rc = hm_source_open(o->target, &source_options, &source, err);
    if (rc) return rc;
    enum hm_format format = hm_source_format(source);
    rc = hm_audit_print_input(run, format, hm_source_decided_by(source), err);
    bool rows = format == HM_FORMAT_ROWS;
    if (!rc && !rows && (o->log || o->vocabulary || o->margin || o->divergence_count || o->law_iid || o->law_topk))
        rc = hm_fail(err, HM_USAGE,
                     "%s: expected rows of logits for --log, --draft-vocab, --margin, --divergence and --law, found %s",
                     o->target, hm_format_name(format));
    if (!rc) return rows ? hm_audit_rows(run, source, err) : hm_audit_evidence(run, source, err);
    hm_source_close(source);
    return rc;
}

static hm_status print_summary_line(struct hm_audit_run *run, cJSON *result, struct hm_error *err)
{
    if (!run->options->json) return HM_OK;
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "kind", "summary");
    cJSON_AddNumberToObject(line, "input", (double)run->number);
    for (const cJSON *item = result ? result->child : NULL; item; item = item->next)
        cJSON_AddItemToObject(line, item->string, cJSON_Duplicate(item, true));
    return hm_audit_print_json(run, line, err);
}

// Audits input j; what cannot be read is an outcome, not an end, where there are other inputs.
static hm_status audit_one(struct hm_audit_options *o, struct hm_parts_run *parts, size_t j, struct hm_error *err)
{
    struct hm_audit_run run = {
        .options = o, .number = j + 1, .to = hm_parts_text(parts), .shows_progress = isatty(STDERR_FILENO)};
    struct hm_error wrong;
    o->target = o->inputs[j];
    o->draft = o->drafts ? o->drafts[j] : NULL;
    if (j > 0 && !o->json) fputc('\n', run.to);
    hm_status rc = audit_input(&run, &wrong);
    if (rc && rc != HM_MEMORY && o->input_count > 1) {
        fprintf(stderr, "hallmark: %s\n", wrong.message);
        if (!o->json) fputs("unreadable\n", run.to);
        if (!o->json) hm_print_folded(run.to, 11, wrong.message);
        run.result = (struct hm_audit_result){.exit = HM_EXIT_USAGE};
    } else if (rc) {
        *err = wrong;
        return rc;
    }
    cJSON *result = hm_audit_result_json(&run.result, o->rule_count * o->m_count);
    rc = print_summary_line(&run, result, err);
    if (!rc) return hm_parts_result(parts, j, result, err);
    cJSON_Delete(result);
    return rc;
}

static hm_status audit(struct hm_audit_options *o, int *code, struct hm_error *err)
{
    struct hm_parts_setup setup = {.summary = &hm_audit_summary,
                                   .inputs = o->inputs,
                                   .input_count = o->input_count,
                                   .shards = o->shards,
                                   .folder = o->parts};
    char **arguments;
    struct hm_parts_run *parts = NULL;
    hm_status rc = hm_audit_arguments(o, &arguments, &setup.argument_count, err);
    setup.arguments = arguments;
    if (!rc) rc = hm_parts_open(&setup, &parts, err);
    for (size_t j = 0; j < o->input_count && !rc; j++)
        if (hm_parts_take(parts, j)) rc = audit_one(o, parts, j, err);
    if (!rc) rc = hm_parts_finish(parts, code, err);
    hm_parts_close(parts);
    hm_audit_arguments_free(arguments, setup.argument_count);
    return rc;
}

int hm_cmd_audit(int argc, char **argv)
{
    struct hm_error err;
    struct hm_audit_options options;
    bool help;
    int code = HM_EXIT_OK;
    if (hm_audit_options_parse(argc, argv, &options, &help, &err)) code = hm_cli_fail(&err);
    else if (help) fputs(hm_audit_help, stdout);
    else if (audit(&options, &code, &err)) code = hm_cli_fail(&err);
    hm_audit_options_clear(&options);
    return code;
}
