// hallmark report: pages from certificate logs (docs/report.md).
#include "reports/report.h"
#include "cli/command.h"
#include "cli/outputs.h"

#include "base/file.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] = "hallmark report run.jsonl -o report.html --md report.md\n"
                           "    reads the certificate log run.jsonl and writes a page to open in a browser,\n"
                           "    and tables to paste into an issue\n"
                           "\n"
                           "usage: hallmark report [LOG...] [--findings FILE]... [-o FILE.html] [--md FILE]\n"
                           "       [--json FILE] [--csv DIR]\n"
                           "\n"
                           "  LOG...            one or more logs that claim the same rules;\n"
                           "                    - reads standard input\n"
                           "      --findings FILE   what `hallmark compare --json` or `hallmark audit\n"
                           "                    --json` wrote (repeatable): beside the logs, or alone\n"
                           "  -o, --html FILE   one self-contained HTML page\n"
                           "      --md FILE     Markdown tables\n"
                           "      --json FILE   every figure, for programs\n"
                           "      --csv DIR     the same as tables, one file each; DIR is made\n"
                           "  -q, --quiet       no summary on standard error\n"
                           "  -h, --help        this text\n"
                           "\n"
                           "Without an output option the Markdown goes to standard output. A report\n"
                           "summarises what a log says; to prove it: hallmark verify LOG. A truncated log\n"
                           "is reported as far as it goes, with a warning.\n"
                           "\n"
                           "Exit codes: 0 written; 2 usage, or a log that cannot be read, or a file that\n"
                           "cannot be written.\n";

enum { MOST_FINDINGS = 64 };

struct options {
    const char *html, *markdown, *json, *csv;
    const char *findings[MOST_FINDINGS];
    int finding_count, quiet;
};

static int usage(const char *message, const char *what)
{
    fprintf(stderr, "hallmark: report: %s%s%s (hallmark report --help)\n", message, what ? ": " : "",
            what ? what : "");
    return HM_EXIT_USAGE;
}

// 0: go on; otherwise an exit code plus one, so that --help (0) can end the command too.
static int parse_options(int argc, char **argv, struct options *out)
{
    static const struct option longs[] = {{"html", required_argument, NULL, 'o'},  {"md", required_argument, NULL, 'm'},
                                          {"json", required_argument, NULL, 'j'},  {"csv", required_argument, NULL, 'c'},
                                          {"findings", required_argument, NULL, 'f'}, {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    int option;
    optind = 0; // start afresh, whatever the main program has parsed
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:qh", longs, NULL)) != -1) {
        switch (option) {
        case 'o': out->html = optarg; break;
        case 'm': out->markdown = optarg; break;
        case 'j': out->json = optarg; break;
        case 'c': out->csv = optarg; break;
        case 'f':
            if (out->finding_count == MOST_FINDINGS) return 1 + usage("too many files of findings", optarg);
            out->findings[out->finding_count++] = optarg;
            break;
        case 'q': out->quiet = 1; break;
        case 'h': fputs(HELP, stdout); return 1;
        case ':': return 1 + usage("this option needs a file name", argv[optind - 1]);
        default: return 1 + usage("unknown option", argv[optind - 1]);
        }
    }
    if (optind >= argc && !out->finding_count) return 1 + usage("expected a log to report on, or --findings", NULL);
    return 0;
}

// No output may replace a file that is read, nor another output.
static hm_status check_output(const char *out, const struct options *o, char **logs, int count, struct hm_error *err)
{
    hm_status rc = hm_output_check(out, (const char *const *)logs, (size_t)count, "this log", err);
    if (rc) return rc;
    return hm_output_check(out, o->findings, (size_t)o->finding_count, "these findings", err);
}

static hm_status check_tables(const struct options *o, char **logs, int count, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; o->csv && hm_report_csv_name(i) && !rc; i++) {
        char *path = hm_path_join(o->csv, hm_report_csv_name(i));
        rc = path ? check_output(path, o, logs, count, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", o->csv);
        const char *const others[] = {o->html, o->markdown, o->json};
        for (int k = 0; k < 3 && !rc; k++)
            if (others[k]) rc = hm_output_check(path, &others[k], 1, "another output", err);
        free(path);
    }
    return rc;
}

static hm_status check_outputs(const struct options *o, char **logs, int count, struct hm_error *err)
{
    const char *out[] = {o->html, o->markdown, o->json};
    hm_status rc = check_tables(o, logs, count, err);
    for (int i = 0; i < 3 && !rc; i++) {
        if (out[i]) rc = check_output(out[i], o, logs, count, err);
        for (int j = 0; out[i] && j < i && !rc; j++)
            if (out[j] && hm_same_file(out[i], out[j])) rc = hm_fail(err, HM_USAGE, "%s: two outputs have this name", out[i]);
    }
    return rc;
}

static hm_status write_all(const struct hm_report *report, const struct options *o, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (o->html) rc = hm_report_write_html(report, o->html, err);
    if (!rc && o->json) rc = hm_report_write_json(report, o->json, err);
    if (!rc && o->csv) rc = hm_report_write_csv(report, o->csv, err);
    if (!rc && o->markdown) rc = hm_report_write_markdown(report, o->markdown, err);
    if (!rc && !o->html && !o->json && !o->csv && !o->markdown) rc = hm_report_write_markdown(report, "-", err);
    return rc;
}

int hm_cmd_report(int argc, char **argv)
{
    struct options options = {0};
    struct hm_report *report = NULL;
    struct hm_error err;
    int stop = parse_options(argc, argv, &options);
    if (stop) return stop - 1;
    hm_status rc = check_outputs(&options, argv + optind, argc - optind, &err);
    if (!rc) rc = hm_report_open(&report, &err);
    for (int i = optind; i < argc && !rc; i++) rc = hm_report_add(report, argv[i], &err);
    for (int i = 0; i < options.finding_count && !rc; i++) rc = hm_report_add_findings(report, options.findings[i], &err);
    if (!rc) rc = write_all(report, &options, &err);
    if (!rc && hm_report_truncated(report))
        fprintf(stderr, "hallmark: warning: truncated log: the report covers the part that was written\n");
    if (!rc && !options.quiet) {
        const char *files[] = {options.html, options.markdown, options.json, options.csv};
        for (int i = 0; i < 4; i++)
            if (files[i]) fprintf(stderr, "wrote %s\n", files[i]);
    }
    hm_report_close(report);
    return rc ? hm_cli_fail(&err) : HM_EXIT_OK;
}
