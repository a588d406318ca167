// `hallmark select`: what every selection and traversal would have gained, from recordings of pools (docs/study.md).
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/select_print.h"
#include "base/memory.h"
#include "study/study.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "hallmark select run.pool\n"
    "    reads what `hallmark decode --record-pool run.pool` recorded and says what\n"
    "    every way to choose and walk a draft tree would have gained: exact\n"
    "    expectations, no model needed\n"
    "\n"
    "usage: hallmark select [options] FILE...\n"
    "\n"
    "  FILE...            recordings; those of one target, drafter, temperature and\n"
    "                     pool size are put together, their tasks weighted equally\n"
    "  --budget B         nodes verified besides the root; may be repeated\n"
    "                     (default 8 and 59)\n"
    "  --group N          only these tables; may be repeated (default all but 4)\n"
    "                       1 traversal and coverage    2 selection\n"
    "                       3 budgets that match        4 tools/cross_fit.py\n"
    "                       5 rows at other addresses   6 by task; late rounds\n"
    "  --greedy           the target takes its likeliest token, also where the\n"
    "                     decode drew\n"
    "  --late T           rounds that begin when T tokens are out are late\n"
    "                     (default 64)\n"
    "  --resamples N      of prompts, for 95 % intervals (default 1000)\n"
    "  --seed S           of the resamples (default 0)\n"
    "  --format F         md, csv or json (default md)\n"
    "  --candidates       instead of tables every recorded candidate, as CSV\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit codes: 0 printed; 2 usage, or a file that cannot be read.\n";

enum { RESAMPLES_MOST = 100000, BUDGET_MOST = HM_RECORDING_CANDIDATES_MOST };
enum { OPTION_BUDGET = 256, OPTION_GROUP, OPTION_GREEDY, OPTION_LATE, OPTION_RESAMPLES, OPTION_SEED, OPTION_FORMAT,
       OPTION_CANDIDATES };
enum format { MARKDOWN, CSV, JSON };

struct options {
    struct hm_study_options study;
    bool groups_named, candidates, help;
    enum format format;
};

static const struct option longs[] = {
    {"budget", required_argument, NULL, OPTION_BUDGET},   {"group", required_argument, NULL, OPTION_GROUP},
    {"greedy", no_argument, NULL, OPTION_GREEDY},         {"late", required_argument, NULL, OPTION_LATE},
    {"resamples", required_argument, NULL, OPTION_RESAMPLES}, {"seed", required_argument, NULL, OPTION_SEED},
    {"format", required_argument, NULL, OPTION_FORMAT},   {"candidates", no_argument, NULL, OPTION_CANDIDATES},
    {"help", no_argument, NULL, 'h'},                     {NULL, 0, NULL, 0}};

static hm_status add_budget(const char *text, struct hm_study_options *s, struct hm_error *err)
{
    size_t budget = 0;
    hm_status rc = hm_flag_size("budget", text, 1, BUDGET_MOST, &budget, err);
    for (size_t i = 0; i < s->budgets && !rc; i++)
        if (s->budget[i] == budget) rc = hm_fail(err, HM_USAGE, "--budget: \"%s\" was given twice", text);
    if (!rc && s->budgets == HM_STUDY_BUDGETS)
        rc = hm_fail(err, HM_USAGE, "--budget: expected at most %d budgets", HM_STUDY_BUDGETS);
    if (!rc) s->budget[s->budgets++] = budget;
    return rc;
}

static hm_status add_group(const char *text, struct options *o, struct hm_error *err)
{
    size_t group = 0;
    hm_status rc = hm_flag_size("group", text, 1, HM_STUDY_GROUPS, &group, err);
    if (!rc && group == 4)
        rc = hm_fail(err, HM_USAGE,
                     "--group 4: baselines fitted to recordings are made by tools/cross_fit.py from the output of --candidates");
    if (rc) return rc;
    o->groups_named = true;
    o->study.group[group] = true;
    return HM_OK;
}

static hm_status set_option(int option, const char *text, struct options *o, struct hm_error *err)
{
    static const char *const formats[] = {"md", "csv", "json", NULL};
    size_t late = 0;
    hm_status rc = HM_OK;
    switch (option) {
    case OPTION_BUDGET: return add_budget(text, &o->study, err);
    case OPTION_GROUP: return add_group(text, o, err);
    case OPTION_GREEDY: o->study.greedy = true; return HM_OK;
    case OPTION_LATE:
        rc = hm_flag_size("late", text, 1, UINT32_MAX, &late, err);
        o->study.late = (uint32_t)late;
        return rc;
    case OPTION_RESAMPLES: return hm_flag_size("resamples", text, 0, RESAMPLES_MOST, &o->study.resamples, err);
    case OPTION_SEED: return hm_flag_count("seed", text, 0, UINT64_MAX, &o->study.seed, err);
    case OPTION_FORMAT:
        rc = hm_flag_one_of("format", text, formats, err);
        for (int i = 0; formats[i] && !rc; i++)
            if (strcmp(text, formats[i]) == 0) o->format = (enum format)i;
        return rc;
    case OPTION_CANDIDATES: o->candidates = true; return HM_OK;
    default: o->help = true; return HM_OK;
    }
}

static hm_status parse_options(int argc, char **argv, struct options *o, struct hm_error *err)
{
    int option;
    *o = (struct options){.study = {.late = 64, .resamples = 1000}};
    optind = 0; // start afresh, whatever the main program has parsed
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (option == ':' || option == '?')
            return hm_fail(err, HM_USAGE, "select: %s: %s (hallmark select --help)",
                           option == ':' ? "this option needs a value" : "unknown option", argv[optind - 1]);
        hm_status rc = set_option(option, optarg, o, err);
        if (rc) return rc;
    }
    if (o->help) return HM_OK;
    if (optind >= argc) return hm_fail(err, HM_USAGE, "select: expected a recording of pools (hallmark select --help)");
    if (o->study.budgets == 0) {
        o->study.budget[0] = 8;
        o->study.budget[1] = 59;
        o->study.budgets = 2;
    }
    for (int i = 1; i <= HM_STUDY_GROUPS && !o->groups_named; i++) o->study.group[i] = i != 4;
    return HM_OK;
}

// ---- recordings, put together by what they are about

struct studies {
    struct hm_study **study;
    size_t count, capacity;
};

static hm_status study_for(struct studies *s, const struct hm_study_options *options,
                           const struct hm_recording_header *header, struct hm_study **out, struct hm_error *err)
{
    for (size_t i = 0; i < s->count; i++)
        if (hm_study_takes(s->study[i], header)) {
            *out = s->study[i];
            return HM_OK;
        }
    void *grown = s->study;
    if (!hm_grow(&grown, &s->capacity, s->count + 1, sizeof *s->study))
        return hm_fail(err, HM_MEMORY, "out of memory for a study");
    s->study = grown;
    hm_status rc = hm_study_open(options, out, err);
    if (!rc) s->study[s->count++] = *out;
    return rc;
}

static hm_status add_file(struct studies *s, const struct options *o, const char *path, struct hm_error *err)
{
    struct hm_recording *recording = NULL;
    struct hm_study *study = NULL;
    hm_status rc = hm_recording_open(path, &recording, err);
    if (rc) return rc;
    if (o->candidates) rc = hm_select_candidates(recording, err);
    else rc = study_for(s, &o->study, hm_recording_head(recording), &study, err);
    if (!rc && study) rc = hm_study_add(study, recording, err);
    if (!rc && hm_recording_truncated(recording))
        fprintf(stderr, "hallmark: warning: %s: truncated: only what was written whole is read\n", path);
    hm_recording_close(recording);
    return rc;
}

static hm_status print_study(struct hm_study *study, enum format format, cJSON *json, struct hm_error *err)
{
    const struct hm_study_cell *cell;
    size_t count;
    hm_status rc = hm_study_finish(study, &cell, &count, err);
    if (rc) return rc;
    struct hm_study_summary summary = hm_study_describe(study);
    if (format == JSON) return hm_select_json(&summary, cell, count, json, err);
    if (format == CSV) hm_select_csv(&summary, cell, count);
    else hm_select_markdown(&summary, cell, count);
    return HM_OK;
}

static hm_status print_all(const struct studies *s, enum format format, struct hm_error *err)
{
    cJSON *json = format == JSON ? cJSON_CreateObject() : NULL;
    cJSON *list = json ? cJSON_AddArrayToObject(json, "studies") : NULL;
    hm_status rc = format == JSON && !list ? hm_fail(err, HM_MEMORY, "out of memory for JSON") : HM_OK;
    if (format == CSV) hm_select_csv_head();
    if (format == MARKDOWN && s->count) hm_select_markdown_head();
    for (size_t i = 0; i < s->count && !rc; i++) rc = print_study(s->study[i], format, list, err);
    if (!rc && format == JSON) return hm_cli_print_json(json, err);
    cJSON_Delete(json);
    return rc;
}

int hm_cmd_select(int argc, char **argv)
{
    struct options options;
    struct studies studies = {0};
    struct hm_error err;
    hm_status rc = parse_options(argc, argv, &options, &err);
    if (!rc && options.help) {
        fputs(HELP, stdout);
        return HM_EXIT_OK;
    }
    if (!rc && options.candidates) hm_select_candidates_head();
    for (int i = optind; i < argc && !rc; i++) rc = add_file(&studies, &options, argv[i], &err);
    if (!rc && !options.candidates) rc = print_all(&studies, options.format, &err);
    if (!rc) rc = hm_cli_flush(&err);
    for (size_t i = 0; i < studies.count; i++) hm_study_close(studies.study[i]);
    free(studies.study);
    return rc ? hm_cli_fail(&err) : HM_EXIT_OK;
}
