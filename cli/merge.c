// hallmark merge: what one process would have printed, from the parts that several wrote (docs/scale.md).
#include "cli/audit_result.h"
#include "cli/command.h"
#include "cli/parts.h"
#include "cli/verify_summary.h"

#include <stdio.h>
#include <string.h>

// Commands that have parts.
static const struct hm_parts_summary *const summaries[] = {&hm_audit_summary, &hm_verify_summary};

static void usage(FILE *to)
{
    fputs("Puts the parts of a run over many inputs together: prints what one process\n"
          "would have printed and ends with the same exit code.\n\n"
          "  hallmark verify --shard 1/2 --parts parts logs/*.jsonl   # on one machine\n"
          "  hallmark verify --shard 2/2 --parts parts logs/*.jsonl   # on another\n"
          "  hallmark merge parts\n\n"
          "Usage: hallmark merge DIR\n"
          "       hallmark merge PART...\n\n"
          "DIR is the folder of --parts; all its files part-*-of-*.jsonl are taken. Every\n"
          "part is checked before the first line is printed: a shard that is missing or\n"
          "there twice, parts of different runs, a damaged part are errors (exit code 2).\n"
          "docs/scale.md has scripts for Slurm, MPI and Kubernetes.\n",
          to);
}

int hm_cmd_merge(int argc, char **argv)
{
    struct hm_error err;
    int first = 1, code = HM_EXIT_USAGE;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return HM_EXIT_OK;
    }
    if (argc > 1 && strcmp(argv[1], "--") == 0) {
        first++;
    } else if (argc > 1 && argv[1][0] == '-') {
        fprintf(stderr, "hallmark: merge: unknown option \"%s\" (hallmark merge --help)\n", argv[1]);
        return HM_EXIT_USAGE;
    }
    if (first >= argc) {
        fputs("hallmark: merge: expected a folder of parts, or parts, found none (hallmark merge --help)\n", stderr);
        return HM_EXIT_USAGE;
    }
    hm_status rc = hm_parts_merge(argv + first, (size_t)(argc - first), summaries, sizeof summaries / sizeof *summaries,
                                  stdout, &code, &err);
    return rc ? hm_cli_fail(&err) : code;
}
