// The last lines of `hallmark verify`: see verify_summary.h.
#include "cli/verify_summary.h"

#include "base/json.h"
#include "base/memory.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct summary {
    size_t inputs; // of all shards
    bool json, quiet, replay;
    bool any, audits, reads_draft; // a result was seen; all are of audits; one read its draft's rows
    struct hm_check_result worst;
    char *worst_path;
    uint64_t claims;
};

// ---- results

static const char *const kinds[] = {"proved", "consistent", "refuted", "undecided", "unreadable"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool add_number(cJSON *object, const char *key, uint64_t value)
{
    return cJSON_AddNumberToObject(object, key, (double)value) != NULL;
}

cJSON *hm_verify_result(const struct hm_check_result *check, bool audit, bool reads_draft)
{
    char message[sizeof check->message];
    cJSON *object = cJSON_CreateObject();
    memcpy(message, check->message, sizeof message);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?'; // messages are ASCII; whatever else a log may hold, a result is JSON
    if (object && cJSON_AddStringToObject(object, "result", kinds[check->kind]) &&
        add_number(object, "exit", (uint64_t)check->exit_code) && add_number(object, "claims", check->claims) &&
        add_number(object, "line", check->line) && cJSON_AddBoolToObject(object, "audit", audit) &&
        cJSON_AddBoolToObject(object, "reads_draft", reads_draft) &&
        cJSON_AddStringToObject(object, "message", message))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static hm_status read_result(const cJSON *in, struct hm_check_result *out, bool *audit, bool *reads_draft,
                             struct hm_error *err)
{
    static const int64_t most = INT64_C(1) << 53;
    const char *kind = "", *message = "";
    int64_t code = 0, claims = 0, line = 0;
    *out = (struct hm_check_result){0};
    hm_status rc = hm_json_string("verify", in, "result", &kind, err);
    if (!rc) rc = hm_json_integer("verify", in, "exit", 0, HM_EXIT_UNDECIDED, &code, err);
    if (!rc) rc = hm_json_integer("verify", in, "claims", 0, most, &claims, err);
    if (!rc) rc = hm_json_integer("verify", in, "line", 0, most, &line, err);
    if (!rc) rc = hm_json_bool("verify", in, "audit", audit, err);
    if (!rc) rc = hm_json_bool("verify", in, "reads_draft", reads_draft, err);
    if (!rc) rc = hm_json_string("verify", in, "message", &message, err);
    if (rc) return rc;
    int k = 0;
    while (k < KINDS && strcmp(kinds[k], kind) != 0) k++;
    if (k == KINDS)
        return hm_fail(err, HM_FORMAT,
                       "verify: result: expected proved, consistent, refuted, undecided or "
                       "unreadable, found \"%s\"",
                       kind);
    if (strlen(message) >= sizeof out->message)
        return hm_fail(err, HM_FORMAT, "verify: message: expected less than %zu bytes, found %zu", sizeof out->message,
                       strlen(message));
    out->kind = (enum hm_check_kind)k;
    out->exit_code = (int)code;
    out->claims = (uint64_t)claims;
    out->line = (uint64_t)line;
    strcpy(out->message, message);
    return HM_OK;
}

// ---- the summary

static hm_status open_summary(char *const *arguments, size_t count, size_t inputs, void **out, struct hm_error *err)
{
    struct summary *s = hm_calloc(1, sizeof *s);
    *out = s;
    if (!s) return hm_fail(err, HM_MEMORY, "verify: out of memory");
    s->inputs = inputs;
    s->audits = true;
    const struct {
        const char *name;
        bool *value; // NULL: of no influence on the summary
        bool has_value;
    } known[] = {{"--allow-truncated", NULL, false},
                 {"--allow-absent-rows", NULL, false},
                 {"--checker", NULL, true},
                 {"--replay", &s->replay, false},
                 {"--model", NULL, true},
                 {"--draft", NULL, true},
                 {"--json", &s->json, false},
                 {"--quiet", &s->quiet, false}};
    enum { KNOWN = sizeof known / sizeof *known };
    for (size_t i = 0, k; i < count; i += 1 + known[k].has_value) {
        for (k = 0; k < KNOWN && strcmp(arguments[i], known[k].name) != 0;) k++;
        if (k == KNOWN || (known[k].has_value && i + 1 == count))
            return hm_fail(err, HM_USAGE, "verify: expected arguments of this command, found \"%s\"", arguments[i]);
        if (known[k].value) *known[k].value = true;
    }
    return HM_OK;
}

static void close_summary(void *summary)
{
    struct summary *s = summary;
    if (s) free(s->worst_path);
    free(s);
}

// Refuted or unreadable beats undecided beats proved; 2 > 1 > 3 > 0, and a consistent log is worse than a proved one.
static int badness(const struct hm_check_result *r)
{
    static const int of_exit[4] = {0, 3, 4, 2};
    return 2 * of_exit[r->exit_code & 3] + (r->kind != HM_CHECK_PROVED);
}

static hm_status add(void *summary, const char *input, const cJSON *json, struct hm_error *err)
{
    struct summary *s = summary;
    struct hm_check_result result;
    bool audit = false, reads_draft = false;
    hm_status rc = read_result(json, &result, &audit, &reads_draft, err);
    if (rc) return rc;
    s->claims += result.claims;
    s->audits = s->audits && audit;
    s->reads_draft = s->reads_draft || reads_draft;
    if (s->any && badness(&result) <= badness(&s->worst)) return HM_OK;
    s->any = true;
    s->worst = result;
    free(s->worst_path);
    s->worst_path = strdup(input);
    return s->worst_path ? HM_OK : hm_fail(err, HM_MEMORY, "verify: out of memory");
}

// What the last line does not say: what a proof leaves out, how rows that are absent can be had.
static void print_remark(const struct summary *s, FILE *to)
{
    enum hm_check_kind kind = s->worst.kind;
    if (s->reads_draft)
        fputs(
            "rows of an EAGLE-3 draft are not computed again: read where they were kept, not bound to their contexts\n",
            to);
    if (kind == HM_CHECK_PROVED && s->replay)
        fputs("proved from the models; asserted only: names, tokenizer, text (docs/log.md)\n", to);
    else if (kind == HM_CHECK_PROVED && s->audits)
        fputs("proved from the rows; asserted only: names and hashes of files (docs/log.md)\n", to);
    else if (kind == HM_CHECK_PROVED)
        fputs("proved from the rows; asserted only: model names and hashes, prompt, text (docs/log.md)\n", to);
    else if (kind == HM_CHECK_CONSISTENT && !s->audits && !s->replay)
        fputs("rows recomputed from the models: verify --replay --model DIR [--draft DIR] LOG\n", to);
}

// The line that scripts read. path: the log it speaks of, NULL where that is plain.
static void print_last_line(const struct hm_check_result *worst, uint64_t claims, const char *path, FILE *to)
{
    if (worst->kind == HM_CHECK_PROVED) {
        fprintf(to, "hallmark: PROVED %" PRIu64 " claims\n", claims);
        return;
    }
    if (worst->kind == HM_CHECK_CONSISTENT) {
        fprintf(to, "hallmark: CONSISTENT %" PRIu64 " claims (rows absent)\n", claims);
        return;
    }
    fprintf(to, "hallmark: %s", worst->message);
    if (path) {
        fputs(" (", to);
        for (; *path; path++) putc((unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path, to);
        putc(')', to);
    }
    putc('\n', to);
}

static int finish(void *summary, FILE *to)
{
    const struct summary *s = summary;
    bool of_a_line = s->worst.kind == HM_CHECK_REFUTED || s->worst.kind == HM_CHECK_UNREADABLE;
    bool name_it = of_a_line && (s->inputs > 1 || s->worst.line == 0); // line 0: the file itself
    if (to && !s->json && !s->quiet) print_remark(s, to);
    if (to && !s->json) print_last_line(&s->worst, s->claims, name_it ? s->worst_path : NULL, to);
    return s->worst.exit_code;
}

const struct hm_parts_summary hm_verify_summary = {"verify", open_summary, add, finish, close_summary};
