// hallmark verify: proves certificate logs, or refutes them (docs/log.md "Checking"). A thin front of the independent
// checker in certify/check/; the last line of output is always one of the five that page lists (verify_summary.c), but
// for a shard of many logs, whose part `hallmark merge` reads (docs/scale.md).
#include "cli/command.h"
#include "cli/replay.h"
#include "cli/verify_summary.h"

#include "base/clock.h"
#include "base/json.h"
#include "certify/check/check.h"
#include "certify/check/simple/simple.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct arguments {
    struct hm_check_options options;
    bool json, quiet, simple, replay;
    const char *model, *draft; // of --replay
    struct hm_shards shards;
    const char *parts; // the folder
};

struct watch { // progress on a terminal, once a run has taken two seconds
    const char *path;
    double started, shown;
    bool any;
};

static void show_progress(void *user, uint64_t bytes, uint64_t total, uint64_t steps)
{
    struct watch *w = user;
    double at = hm_now();
    if (at - w->started < 2 || at - w->shown < 0.5) return;
    double share = total ? 100.0 * (double)bytes / (double)total : 0;
    fprintf(stderr, "\r%s: %.0f %%, %" PRIu64 " steps", w->path, share, steps);
    w->shown = at;
    w->any = true;
}

static void usage(FILE *to)
{
    fputs("Proves every claim of a certificate log from the rows beside it, or refutes it.\n\n"
          "  hallmark verify run.jsonl\n"
          "  hallmark: PROVED 1536 claims\n\n"
          "Usage: hallmark verify [options] LOG...\n"
          "  --allow-truncated    a log cut by a crash is no failure when what is there\n"
          "                       holds\n"
          "  --allow-absent-rows  nor is a log whose row shards are gone; it is checked\n"
          "                       for consistency\n"
          "  --threads N          cores to use; all when absent\n"
          "  --checker NAME       fast (the default), or simple: short, for those who want\n"
          "                       to read what they trust; naive and slow, seconds a step\n"
          "                       at large vocabularies, on one core, without progress,\n"
          "                       and it does not replay\n"
          "  --replay             compute rows again from the models instead of reading\n"
          "                       them, which also proves the prompt, with\n"
          "    --model DIR        the target's folder and\n"
          "    --draft DIR        the draft's, for logs that name a draft model\n"
          "  --json               one JSON object a log instead of text\n"
          "  --quiet              the last line only\n"
          "  --shard i/n          check each n-th log only, beginning with the i-th, and\n"
          "    --parts DIR        write what there is to say into DIR, for hallmark merge;\n"
          "                       --shard auto asks Slurm, MPI or Kubernetes for i and n\n\n"
          "Exit codes: 0 proved, 1 refuted, 2 unreadable or wrong usage, 3 undecided,\n"
          "truncated or rows absent.\n",
          to);
}

// A JSON string; the checker's messages are printable ASCII, a path may be anything.
static void print_string(const char *s, FILE *to)
{
    putc('"', to);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else
            putc(c, to);
    }
    putc('"', to);
}

// Does the log end before its end record?  A checker that stopped at a line has not seen the end.
static bool is_cut(const struct hm_check_result *r)
{
    return r->truncated && r->kind != HM_CHECK_REFUTED && r->kind != HM_CHECK_UNREADABLE;
}

static void print_json(const char *path, const struct hm_check_result *r, FILE *to)
{
    static const char *const kinds[] = {"proved", "consistent", "refuted", "undecided", "unreadable"};
    fprintf(to, "{\"log\":");
    print_string(path, to);
    fprintf(to,
            ",\"result\":\"%s\",\"exit\":%d,\"claims\":%" PRIu64 ",\"undecided\":%" PRIu64 ",\"steps\":%" PRIu64
            ",\"truncated\":%s,\"line\":",
            kinds[r->kind], r->exit_code, r->claims, r->undecided, r->steps, is_cut(r) ? "true" : "false");
    if (r->line)
        fprintf(to, "%" PRIu64, r->line);
    else
        fprintf(to, "null");
    fprintf(to, ",\"message\":");
    print_string(r->message, to);
    fputs("}\n", to);
}

// A log lies in a folder with its row shards. Anything but a regular file (standard input, a pipe that would block, a
// folder) is refused before it is opened.
static bool is_log_file(const char *path, struct hm_check_result *result)
{
    const char *found = NULL;
    struct stat status;
    if (strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0)
        found = "standard input or another open file";
    else if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return true; // a file that is not there is the checker's to report
    else
        found = S_ISDIR(status.st_mode) ? "a folder" : S_ISFIFO(status.st_mode) ? "a pipe" : "a device or socket";
    *result = (struct hm_check_result){.kind = HM_CHECK_UNREADABLE, .exit_code = HM_EXIT_USAGE};
    snprintf(result->message, sizeof result->message, "UNREADABLE line 0: file: expected a regular file, found %s",
             found);
    return false;
}

static void check_simply(const char *path, const struct arguments *a, struct hm_check_result *result)
{
    struct hm_simple_result r;
    hm_check_simple(path, a->options.allow_truncated, a->options.allow_absent_rows, &r);
    *result = (struct hm_check_result){
        (enum hm_check_kind)r.kind, r.exit_code, r.claims, r.undecided, r.steps, r.line, r.truncated, ""};
    memcpy(result->message, r.message, sizeof result->message);
}

static void check(const char *path, const struct arguments *a, struct hm_check_result *result)
{
    struct hm_check_options options = a->options;
    struct watch watch = {.path = path, .started = hm_now()};
    if (!is_log_file(path, result)) return;
    if (a->simple) {
        check_simply(path, a, result);
        return;
    }
    options.user = &watch;
    if (isatty(STDERR_FILENO) && !a->quiet) options.progress = show_progress;
    hm_check_log(path, &options, result);
    if (watch.any) fputs("\r\033[K", stderr);
}

// Is it a log of an audit?  Such a log has no decoder. Only words depend on the answer.
static bool is_audit(const char *path)
{
    enum { HEADER_MOST = 1 << 20 };
    FILE *file = fopen(path, "re");
    char *line = malloc(HEADER_MOST);
    cJSON *header = NULL;
    if (file && line && fgets(line, HEADER_MOST, file) && hm_json_parse(path, line, strlen(line), &header, NULL))
        header = NULL;
    bool audit = header && cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(header, "decoder"));
    cJSON_Delete(header);
    free(line);
    if (file) fclose(file);
    return audit;
}

static void print_log(const char *path, const struct hm_check_result *result, int count, const struct arguments *a,
                      FILE *to)
{
    if (a->json)
        print_json(path, result, to);
    else if (count > 1 && !a->quiet)
        fprintf(to, "%s: %s\n", path, result->message);
}

// What decides about the output, in one order (parts.h). Returns how many there are.
static size_t list_arguments(const struct arguments *a, char *list[12])
{
    const struct {
        bool given;
        const char *flag, *value;
    } all[] = {
        {a->options.allow_truncated, "--allow-truncated", NULL},
        {a->options.allow_absent_rows, "--allow-absent-rows", NULL},
        {a->simple, "--checker", "simple"},
        {a->replay, "--replay", NULL},
        {a->model, "--model", a->model},
        {a->draft, "--draft", a->draft},
        {a->json, "--json", NULL},
        {a->quiet, "--quiet", NULL},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].given) continue;
        list[count++] = (char *)all[i].flag; // read only, as everything in hm_parts_setup
        if (all[i].value) list[count++] = (char *)all[i].value;
    }
    return count;
}

static hm_status check_all(char **paths, int count, const struct arguments *a, struct hm_parts_run *run,
                           struct hm_error *err)
{
    struct hm_check_result result;
    hm_status rc = HM_OK;
    for (int i = 0; i < count && !rc; i++) {
        if (!hm_parts_take(run, (size_t)i)) continue;
        check(paths[i], a, &result);
        print_log(paths[i], &result, count, a, hm_parts_text(run));
        bool of_use = result.kind == HM_CHECK_PROVED || result.kind == HM_CHECK_CONSISTENT; // hence a file
        bool reads_draft = a->replay && a->options.replay->reads_draft;
        cJSON *json = hm_verify_result(&result, of_use && is_audit(paths[i]), reads_draft);
        rc = hm_parts_result(run, (size_t)i, json, err);
    }
    return rc;
}

static int verify(char **paths, int count, const struct arguments *a)
{
    struct hm_parts_run *run;
    struct hm_error err;
    char *list[12];
    int code = HM_EXIT_USAGE;
    const struct hm_parts_setup setup = {
        .summary = &hm_verify_summary,
        .arguments = list,
        .argument_count = list_arguments(a, list),
        .inputs = paths,
        .input_count = (size_t)count,
        .shards = a->shards,
        .folder = a->parts,
    };
    hm_status rc = hm_parts_open(&setup, &run, &err);
    if (!rc) rc = check_all(paths, count, a, run, &err);
    if (!rc) rc = hm_parts_finish(run, &code, &err);
    hm_parts_close(run);
    return rc ? hm_cli_fail(&err) : code;
}

// Loads the models, checks the logs with them.
static int verify_with_models(char **paths, int count, struct arguments *a)
{
    struct hm_replay *replay;
    struct hm_error err;
    bool shown = isatty(STDERR_FILENO) && !a->quiet;
    if (shown) fprintf(stderr, "loading %s", a->model);
    hm_status rc = hm_replay_open(a->model, a->draft, a->options.threads, &replay, &err);
    if (shown) fputs("\r\033[K", stderr);
    if (rc) return hm_cli_fail(&err);
    a->options.replay = hm_replay_source(replay);
    int code = verify(paths, count, a);
    hm_replay_close(replay);
    return code;
}

static bool usage_error(const char *message)
{
    fprintf(stderr, "hallmark: verify: %s (hallmark verify --help)\n", message);
    return false;
}

// A flag that stands alone; false when it is none of them.
static bool apply_switch(const char *flag, struct arguments *a)
{
    const struct {
        const char *name;
        bool *value;
    } switches[] = {
        {"--allow-truncated", &a->options.allow_truncated},
        {"--allow-absent-rows", &a->options.allow_absent_rows},
        {"--replay", &a->replay},
        {"--json", &a->json},
        {"--quiet", &a->quiet},
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(switches[i].name, flag) == 0) return *switches[i].value = true;
    return false;
}

static bool takes_value(const char *flag)
{
    static const char *const flags[] = {"--checker", "--threads", "--model", "--draft", "--shard", "--parts"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i], flag) == 0) return true;
    return false;
}

// A flag with its value ("nothing" at the end of the line); false with a message when it has no such value.
static bool apply_value(const char *flag, const char *value, struct arguments *a)
{
    if (strcmp(flag, "--model") == 0 || strcmp(flag, "--draft") == 0) {
        *(strcmp(flag, "--model") == 0 ? &a->model : &a->draft) = value;
    } else if (strcmp(flag, "--parts") == 0) {
        a->parts = value;
    } else if (strcmp(flag, "--shard") == 0) {
        struct hm_error err;
        if (!hm_shards_parse(value, environ, &a->shards, &err)) return true;
        fprintf(stderr, "hallmark: verify: %s\n", err.message);
        return false;
    } else if (strcmp(flag, "--checker") == 0) {
        a->simple = strcmp(value, "simple") == 0;
        if (a->simple || strcmp(value, "fast") == 0) return true;
        fprintf(stderr, "hallmark: verify: --checker: expected fast or simple, found %s\n", value);
        return false;
    } else {
        size_t digits = strspn(value, "0123456789");
        a->options.threads = (unsigned)strtoul(value, NULL, 10);
        if (digits > 0 && digits <= 3 && !value[digits] && a->options.threads > 0) return true;
        fprintf(stderr, "hallmark: verify: --threads: expected a number from 1 to 999, found %s\n", value);
        return false;
    }
    return true;
}

// Reads the command line; the logs are gathered at the front of argv. False: *code is the exit code.
static bool parse(int argc, char **argv, struct arguments *a, int *count, int *code)
{
    bool options_over = false;
    *code = HM_EXIT_USAGE;
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        if (options_over || s[0] != '-') {
            argv[(*count)++] = argv[i];
        } else if (strcmp(s, "--") == 0) {
            options_over = true;
        } else if (strcmp(s, "--help") == 0 || strcmp(s, "-h") == 0) {
            usage(stdout);
            *code = HM_EXIT_OK;
            return false;
        } else if (takes_value(s)) {
            bool there = i + 1 < argc;
            if (!there && (strcmp(s, "--model") == 0 || strcmp(s, "--draft") == 0 || strcmp(s, "--parts") == 0))
                return usage_error("expected a folder after --model, --draft and --parts");
            if (!apply_value(s, there ? argv[++i] : "nothing", a)) return false;
        } else if (strcmp(s, "-") == 0) {
            fputs("hallmark: verify: expected a log file, found \"-\": a log is read with the row shards beside it\n",
                  stderr);
            return false;
        } else if (!apply_switch(s, a)) {
            fprintf(stderr, "hallmark: verify: unknown option \"%s\" (hallmark verify --help)\n", s);
            return false;
        }
    }
    if (*count == 0) return usage_error("expected a log, found none");
    if (a->replay && !a->model) return usage_error("--replay: expected --model DIR as well");
    if (a->replay && a->simple) return usage_error("--replay: only the fast checker replays");
    if (!a->replay && (a->model || a->draft)) return usage_error("--model and --draft go with --replay");
    if (a->shards.count && !a->parts) return usage_error("--shard: expected --parts DIR as well");
    if (a->parts && !a->shards.count) return usage_error("--parts goes with --shard i/n");
    return true;
}

int hm_cmd_verify(int argc, char **argv)
{
    struct arguments a = {0};
    int count = 0, code;
    if (!parse(argc, argv, &a, &count, &code)) return code;
    return a.replay ? verify_with_models(argv, count, &a) : verify(argv, count, &a);
}
