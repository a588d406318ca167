// `hallmark bench`: finds what is to be measured (bench.h).
#include "cli/bench.h"

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "Measures speed as ratios within one run: absolute figures move with the\n"
    "neighbours on a shared machine.\n\n"
    "  hallmark bench decode --model models/tiny-qwen3\n"
    "  hallmark bench rows\n\n"
    "  decode   passes of a model beside the machine's ceilings\n"
    "  rows     certificates of row pairs: double enclosures beside plain MPFR\n\n"
    "Each has --help.\n";

int hm_cmd_bench(int argc, char **argv)
{
    struct hm_error err;
    int word = 0; // flags may come before the word
    for (int i = 1; i < argc && !word; i++)
        if (strcmp(argv[i], "decode") == 0 || strcmp(argv[i], "rows") == 0) word = i;
    if (!word) {
        if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
            fputs(help, stdout);
            return HM_EXIT_OK;
        }
        hm_fail(&err, HM_USAGE, "bench: expected what to measure: hallmark bench decode --model DIR, or hallmark bench rows");
        return hm_cli_fail(&err);
    }
    char *name = argv[word];
    memmove(&argv[2], &argv[1], (size_t)(word - 1) * sizeof *argv); // the word first, then what stood before it
    argv[1] = name;
    return strcmp(name, "decode") == 0 ? hm_bench_decode(argc - 1, argv + 1) : hm_bench_rows(argc - 1, argv + 1);
}
