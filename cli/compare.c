// `hallmark compare`: where two runs part, and whether rounding explains it (docs/compare.md).
#include "cli/command.h"
#include "cli/compare_run.h"
#include "cli/outputs.h"
#include "decode/row_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a row file says its numbers are; of logs nothing is known but that log-probabilities are float32.
static hm_status type_of_file(const struct hm_compare_side *side, const char *tensor, enum hm_number_type *type,
                              struct hm_error *err)
{
    struct hm_row_file *file;
    *type = HM_TYPE_F32;
    if (!side->path || side->format != HM_FORMAT_ROWS) return HM_OK;
    hm_status rc = hm_row_file_open(side->path, tensor, &file, err);
    if (rc) return rc;
    const char *name = hm_row_file_info(file).type;
    *type = strcmp(name, "BF16") == 0 ? HM_TYPE_BF16 : strcmp(name, "F16") == 0 ? HM_TYPE_F16 : HM_TYPE_F32;
    hm_row_file_close(file);
    return HM_OK;
}

// The narrower of the two: of fewer digits.
static hm_status choose_type(struct hm_compare_run *run, struct hm_error *err)
{
    static const int digits[HM_TYPES] = {[HM_TYPE_F32] = 24, [HM_TYPE_BF16] = 8, [HM_TYPE_F16] = 11};
    enum hm_number_type type[2];
    run->type = run->options->type;
    if (run->options->has_type) return HM_OK;
    for (int s = 0; s < 2; s++) {
        hm_status rc = type_of_file(&run->side[s], run->options->tensor, &type[s], err);
        if (rc) return rc;
    }
    run->type = digits[type[0]] <= digits[type[1]] ? type[0] : type[1];
    return HM_OK;
}

static hm_status open_sides(struct hm_compare_run *run, struct hm_error *err)
{
    const struct hm_compare_options *o = run->options;
    hm_status rc = HM_OK;
    for (int s = 0; s < 2 && !rc; s++) {
        struct hm_compare_side *side = &run->side[s];
        side->letter = s ? 'B' : 'A';
        side->path = o->file[s];
        side->options = (struct hm_source_options){
            .format = o->format[s], .tensor = o->tensor, .printing = o->printing, .prompt_tokens = !o->model};
        if (side->path) rc = hm_side_open(side, err);
    }
    if (!rc && o->model) rc = hm_rescore_open(o->model, (unsigned)o->threads, &run->rescore, err);
    if (!rc) rc = choose_type(run, err);
    run->model_name = o->model;
    run->pairs = (struct hm_compare_pairs){.a = &run->side[0], .b = o->model ? NULL : &run->side[1]};
    return rc;
}

static int run_all(struct hm_compare_run *run, struct hm_error *err)
{
    const struct hm_compare_options *o = run->options;
    hm_status rc = HM_OK;
    if (o->markdown) rc = hm_output_check(o->markdown, o->file, o->file[1] ? 2 : 1, "a run that is read", err);
    if (!rc) rc = open_sides(run, err);
    if (!rc) rc = hm_spool_open(&run->spool, err);
    if (!rc) rc = hm_compare_walk(run, err);
    if (!rc) rc = hm_compare_judge(run, err);
    if (!rc) rc = run->options->json ? hm_compare_print_json(run, err) : hm_compare_print_text(run, err);
    if (!rc && run->options->markdown) rc = hm_compare_print_markdown(run, err);
    return rc ? hm_cli_fail(err) : run->exit;
}

int hm_cmd_compare(int argc, char **argv)
{
    struct hm_error err;
    struct hm_compare_options options;
    bool help;
    int code = HM_EXIT_OK;
    struct hm_compare_run *run = calloc(1, sizeof *run);
    hm_status rc = hm_compare_options_parse(argc, argv, &options, &help, &err);
    if (!run && !rc) rc = hm_fail(&err, HM_MEMORY, "out of memory for a comparison");
    if (rc) code = hm_cli_fail(&err);
    else if (help) fputs(hm_compare_help, stdout);
    else {
        run->options = &options;
        code = run_all(run, &err);
        hm_pairs_clear(&run->pairs);
        hm_spool_close(&run->spool);
        hm_rescore_close(run->rescore);
        for (int s = 0; s < 2; s++) hm_side_close(&run->side[s]);
        for (size_t i = 0; i < run->groups; i++) free(run->group[i]);
        free(run->prefix);
    }
    free(run);
    hm_compare_options_clear(&options);
    return code;
}
