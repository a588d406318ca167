// `hallmark bench`: finds what is to be measured (bench.h).
#include "cli/bench.h"

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "Measures speed as ratios within one run: absolute figures move with the\n"
    "neighbours on a shared machine.\n\n"
    "  hallmark bench decode --model models/tiny-qwen3\n"
    "  hallmark bench trees --model models/tiny-qwen3 --prompts FILE \\\n"
    "      --with '--draft models/tiny-qwen3-draft'\n"
    "  hallmark bench rows\n\n"
    "  decode   passes of a model beside the machine's ceilings\n"
    "  trees    ways to decode beside plain decoding\n"
    "  rows     certificates of row pairs: double enclosures beside plain MPFR\n\n"
    "Each has --help.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} benches[] = {{"decode", hm_bench_decode}, {"trees", hm_bench_trees}, {"rows", hm_bench_rows}};

int hm_cmd_bench(int argc, char **argv)
{
    struct hm_error err;
    int word = 0; // flags may come before the word
    int (*run)(int, char **) = NULL;
    for (int i = 1; i < argc && !word; i++)
        for (size_t j = 0; j < sizeof benches / sizeof benches[0] && !word; j++)
            if (strcmp(argv[i], benches[j].name) == 0) word = i, run = benches[j].run;
    if (!word) {
        if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
            fputs(help, stdout);
            return HM_EXIT_OK;
        }
        hm_fail(&err, HM_USAGE, "bench: expected what to measure: decode, trees or rows (hallmark bench --help)");
        return hm_cli_fail(&err);
    }
    char *name = argv[word];
    memmove(&argv[2], &argv[1], (size_t)(word - 1) * sizeof *argv); // the word first, then what stood before it
    argv[1] = name;
    return run(argc - 1, argv + 1);
}
