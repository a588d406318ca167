// Commands over many inputs (verify, audit), run by one process or by several, with the same bytes in the end.
//
// Such a command does two things with an input: it prints text, and it makes a `result`, a JSON object. When all inputs
// are done, its summary (last lines, exit code) is computed from the results alone, in the order of inputs. One process
// prints the text at once. A shard (`--shard i/n --parts DIR`) takes each n-th input and writes text and results into a
// file instead, a part; `hallmark merge` reads n parts, prints the texts in order of inputs, computes the summary from
// the results by the same code, and so ends with the bytes and the exit code of one process. The file is described in
// docs/scale.md.
//
// A command written for this:
//
//     hm_parts_open(&setup, &run, err)
//     for each input j, from 0, of which hm_parts_take(run, j):
//         fprintf(hm_parts_text(run), ...)                   as often as it likes
//         hm_parts_result(run, j, result, err)
//     hm_parts_finish(run, &exit_code, err)
//     hm_parts_close(run)                                    always; before finish, nothing is left behind
//
// and one line in the table of cli/merge.c. What the text and the result of an input say may depend on the arguments,
// the number of inputs and the input itself, never on other inputs.
#ifndef HM_CLI_PARTS_H
#define HM_CLI_PARTS_H

#include "base/error.h"
#include "cli/shards.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// How a command sums up. The functions own what they keep in `summary`; nothing they are given lives longer than the
// call.
struct hm_parts_summary {
    const char *command; // "verify"
    // Begins a summary over `inputs` inputs. arguments: hm_parts_setup's. A merge gives those of the parts, which are
    // not to be trusted: HM_USAGE when they are none of this command's.
    hm_status (*open)(char *const *arguments, size_t argument_count, size_t inputs, void **summary,
                      struct hm_error *err);
    // Takes the result of the next input. It may come from a part: HM_FORMAT "key "exit": expected ..., found ...".
    hm_status (*add)(void *summary, const char *input, const cJSON *result, struct hm_error *err);
    // Prints what stands after the texts of all inputs (to NULL: nothing is printed) and returns the exit code. Called
    // once; in a shard the summary has seen the shard's inputs only. Failed writing is for the caller to find (ferror).
    int (*finish)(void *summary, FILE *to);
    void (*close)(void *summary); // NULL is allowed
};

struct hm_parts_setup {
    const struct hm_parts_summary *summary;
    char *const
        *arguments; // [argument_count] what decides about the output, in one fixed spelling and order: no input, no
    size_t argument_count; // shard, no default, nothing without influence on the output (--threads)
    char *const *inputs;   // [input_count] paths as given
    size_t input_count;
    struct hm_shards shards; // count 0: one process
    const char *folder;      // where parts go, made if it is not there; NULL with count 0
};

struct hm_parts_run;

// Everything in setup is borrowed until hm_parts_close. HM_USAGE when the part's file exists and is no part.
hm_status hm_parts_open(const struct hm_parts_setup *setup, struct hm_parts_run **out, struct hm_error *err);
void hm_parts_close(struct hm_parts_run *run); // NULL is allowed

// Is input j, from 0, this process's?
bool hm_parts_take(const struct hm_parts_run *run, size_t j);

// Where the text of the input at hand goes: standard output or the part. Any bytes but zero; as long as it likes (it is
// not held in memory). The stream is the run's.
FILE *hm_parts_text(struct hm_parts_run *run);

// Ends input j, the next that is taken. Takes result (at most 1 MiB as text; NULL: memory ran out while it was made).
hm_status hm_parts_result(struct hm_parts_run *run, size_t j, cJSON *result, struct hm_error *err);

// Prints the summary and flushes standard output, or completes the part and prints one line about it. All inputs must
// be done. *exit_code: what the process ends with.
hm_status hm_parts_finish(struct hm_parts_run *run, int *exit_code, struct hm_error *err);

// ---- merging

// Prints on `to` what one process would have printed. paths: parts, or one folder whose files part-*-of-*.jsonl are
// taken. summaries: of the commands that may have written them [count]. All parts are checked before the first byte is
// printed. Errors: a shard that is missing, one that is there twice, parts of different runs (and in what they differ),
// a part that is damaged ("FILE: line 7: ...").
hm_status hm_parts_merge(char *const *paths, size_t path_count, const struct hm_parts_summary *const *summaries,
                         size_t summary_count, FILE *to, int *exit_code, struct hm_error *err);

#endif
