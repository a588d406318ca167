// The commands of `hallmark`, one file each. Each takes its own arguments (argv[0] is the command's name) and returns the
// process's exit code (docs/log.md, "Checking").
#ifndef HM_CLI_COMMAND_H
#define HM_CLI_COMMAND_H

#include "base/error.h"

enum { HM_EXIT_OK = 0, HM_EXIT_FINDING = 1, HM_EXIT_USAGE = 2, HM_EXIT_UNDECIDED = 3 };

int hm_cmd_audit(int argc, char **argv);
int hm_cmd_bench(int argc, char **argv);
int hm_cmd_compare(int argc, char **argv);
int hm_cmd_decode(int argc, char **argv);
int hm_cmd_inspect(int argc, char **argv);
int hm_cmd_merge(int argc, char **argv);
int hm_cmd_report(int argc, char **argv);
int hm_cmd_select(int argc, char **argv);
int hm_cmd_verify(int argc, char **argv);

// One line of JSON on standard output; deletes the object (NULL: memory ran out while it was made).
struct cJSON;
hm_status hm_cli_print_json(struct cJSON *object, struct hm_error *err);

// Flushes standard output; HM_IO when anything written there was lost.
hm_status hm_cli_flush(struct hm_error *err);

// Prints "hallmark: message" on standard error and returns HM_EXIT_USAGE.
int hm_cli_fail(const struct hm_error *err);

#endif
