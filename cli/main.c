// The command line: finds the command and hands over.
#include "cli/command.h"

#include "bounds/arithmetic.h"
#include "cli/shortened.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
    const char *name, *does;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"decode", "decode with a draft tree, a certificate for every token", hm_cmd_decode},
    {"verify", "prove a certificate log, or refute it", hm_cmd_verify},
    {"merge", "put together what shards of many inputs found", hm_cmd_merge},
    {"audit", "prove what the log of another engine allows", hm_cmd_audit},
    {"inspect", "show a step of a log, a checkpoint, a file of rows", hm_cmd_inspect},
    {"compare", "tell noise from bug where two runs part", hm_cmd_compare},
    {"report", "turn logs into a page to read", hm_cmd_report},
    {"select", "compare ways to choose a draft tree on recorded pools", hm_cmd_select},
    {"bench", "measure speed beside the machine's ceilings", hm_cmd_bench},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void usage(FILE *to)
{
    fputs("hallmark decodes with draft trees and stamps every token with a certificate\n"
          "that anybody can check.\n\n"
          "  hallmark decode --model models/tiny-qwen3 --draft models/tiny-qwen3-draft \\\n"
          "      --prompt \"In the beginning\" --log run.jsonl --keep-rows\n"
          "  hallmark verify run.jsonl\n"
          "  hallmark report run.jsonl -o report.html\n\n"
          "Commands (each has --help):\n",
          to);
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].does);
}

int hm_cli_fail(const struct hm_error *err)
{
    fflush(stdout);
    fprintf(stderr, "hallmark: %s\n", err->message);
    return HM_EXIT_USAGE;
}

hm_status hm_cli_flush(struct hm_error *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return HM_OK;
    return hm_fail(err, HM_IO, "cannot write to standard output: %s", strerror(errno));
}

hm_status hm_cli_print_json(struct cJSON *object, struct hm_error *err)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) return hm_fail(err, HM_MEMORY, "out of memory for JSON");
    bool good = puts(text) >= 0 && fflush(stdout) == 0;
    int code = errno;
    free(text);
    return good ? HM_OK : hm_fail(err, HM_IO, "cannot write to standard output: %s", strerror(code));
}

// A standard stream that was closed would be replaced by the next file opened, and text would land in a log. It is made
// a descriptor on which reading or writing fails.
static void keep_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(HM_EXIT_USAGE);
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    signal(SIGPIPE, SIG_IGN); // a closed pipe and a size limit are write errors with a message, not a silent death
    signal(SIGXFSZ, SIG_IGN);
    hm_watch_for_shortened_files();
    if (!hm_arithmetic_is_ieee()) { // a preloaded library may have changed it; no enclosure would hold
        fputs("hallmark: floating point: expected IEEE doubles rounded to nearest with subnormals, found another mode\n",
              stderr);
        return HM_EXIT_USAGE;
    }
    if (argc < 2) {
        usage(stderr);
        return HM_EXIT_USAGE;
    }
    if (argc > 2 && strcmp(argv[1], "help") == 0) { // hallmark help decode = hallmark decode --help
        static char flag[] = "--help";
        argv[1] = argv[2];
        argv[2] = flag;
        argc = 3;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return HM_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("hallmark " HM_VERSION);
        return HM_EXIT_OK;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "hallmark: unknown command \"%s\"; expected decode, verify, merge, audit, inspect, compare, report, select or bench (hallmark --help)\n",
            argv[1]);
    return HM_EXIT_USAGE;
}
