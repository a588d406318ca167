// The flags of `hallmark compare`: see compare_options.h.
#include "cli/compare_options.h"

#include "cli/flags.h"

#include <getopt.h>
#include <string.h>

const char hm_compare_help[] =
    "hallmark compare plain.jsonl speculative.jsonl\n\n"
    "Where two runs of the same prompts part, and whether rounding explains it\n"
    "(docs/compare.md). A and B are logs of engines, files of rows or certificate\n"
    "logs, of any two formats.\n\n"
    "Usage: hallmark compare [options] A B\n"
    "       hallmark compare [options] A --model DIR\n"
    "      --model DIR       score A's own tokens again with this model\n"
    "      --format F        of both; --format-a F, --format-b F of one: openai-chat,\n"
    "                        openai-completions, vllm, llama.cpp-server, sglang,\n"
    "                        llama.cpp-kld, rows, hallmark; default: by its fields\n"
    "      --tensor NAME     in .safetensors files, default logits\n"
    "      --same-path       rows without tokens are of one path (one was given to\n"
    "                        both), not of two runs that may part\n"
    "      --printing rounded|round-trip   what a printed number stands for,\n"
    "                        default rounded\n"
    "      --type f32|bf16|f16   what the rows were computed in: the unit of noise\n"
    "      --claim-temperature T   both sides say that they sample at T: can it be?\n"
    "      --alpha A         refute that at a p-value of at most A, default 1/1000\n"
    "Output\n"
    "      --positions       every position's noise (with --json)\n"
    "      --json            one JSON object a line\n"
    "      --md FILE         also tables in Markdown, to paste into an issue\n"
    "      --quiet           no blocks, only the counts\n"
    "  -t, --threads N       of the model; default: one per core\n"
    "\nExit codes: 0 nothing unexplained, 1 something unexplained (a fork, an outlier,\n"
    "a row that is none, a refuted temperature), 2 unreadable or wrong usage,\n"
    "3 undecided.\n";

enum flag {
    MODEL = 256, FORMAT, FORMAT_A, FORMAT_B, TENSOR, SAME_PATH, PRINTING, TYPE, CLAIM, ALPHA, POSITIONS, JSON, MARKDOWN, QUIET
};

static const struct option flags[] = {
    {"model", required_argument, NULL, MODEL},
    {"format", required_argument, NULL, FORMAT},
    {"format-a", required_argument, NULL, FORMAT_A},
    {"format-b", required_argument, NULL, FORMAT_B},
    {"tensor", required_argument, NULL, TENSOR},
    {"same-path", no_argument, NULL, SAME_PATH},
    {"printing", required_argument, NULL, PRINTING},
    {"type", required_argument, NULL, TYPE},
    {"claim-temperature", required_argument, NULL, CLAIM},
    {"alpha", required_argument, NULL, ALPHA},
    {"positions", no_argument, NULL, POSITIONS},
    {"json", no_argument, NULL, JSON},
    {"md", required_argument, NULL, MARKDOWN},
    {"quiet", no_argument, NULL, QUIET},
    {"threads", required_argument, NULL, 't'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static hm_status parse_type(const char *text, struct hm_compare_options *o, struct hm_error *err)
{
    const char *names[HM_TYPES + 1] = {NULL};
    for (int i = 0; i < HM_TYPES; i++) {
        names[i] = hm_number_type_name((enum hm_number_type)i);
        if (strcmp(names[i], text) == 0) o->type = (enum hm_number_type)i;
    }
    o->has_type = true;
    return hm_flag_one_of("type", text, names, err);
}

static hm_status apply(int flag, char *text, struct hm_compare_options *o, struct hm_error *err)
{
    hm_status rc;
    switch (flag) {
    case MODEL: o->model = text; return HM_OK;
    case FORMAT:
        rc = hm_flag_format("format", text, &o->format[0], err);
        o->format[1] = o->format[0];
        return rc;
    case FORMAT_A: return hm_flag_format("format-a", text, &o->format[0], err);
    case FORMAT_B: return hm_flag_format("format-b", text, &o->format[1], err);
    case TENSOR: o->tensor = text; return HM_OK;
    case SAME_PATH: o->same_path = true; return HM_OK;
    case PRINTING: return hm_flag_printing(text, &o->printing, err);
    case TYPE: return parse_type(text, o, err);
    case CLAIM: o->claims = true; return hm_flag_temperature("claim-temperature", text, true, &o->claimed, err);
    case ALPHA: return hm_flag_rational("alpha", text, true, 1, &o->alpha, err);
    case POSITIONS: o->positions = true; return HM_OK;
    case JSON: o->json = true; return HM_OK;
    case MARKDOWN: o->markdown = text; return HM_OK;
    case QUIET: o->quiet = true; return HM_OK;
    default: return hm_flag_size("threads", text, 1, 256, &o->threads, err);
    }
}

static hm_status settle(int count, char **files, struct hm_compare_options *o, struct hm_error *err)
{
    if (count < 1 || count > 2 || (count == 1 && !o->model))
        return hm_fail(err, HM_USAGE, "compare: expected two files, or one and --model, found %d (hallmark compare --help)",
                       count);
    if (count == 2 && o->model)
        return hm_fail(err, HM_USAGE, "--model: expected one file, A: the model takes B's place");
    if (o->positions && !o->json) return hm_fail(err, HM_USAGE, "--positions: expected --json as well");
    for (int i = 0; i < count; i++) o->file[i] = files[i];
    return HM_OK;
}

hm_status hm_compare_options_parse(int argc, char **argv, struct hm_compare_options *out, bool *help, struct hm_error *err)
{
    int flag;
    *out = (struct hm_compare_options){0};
    hm_rational_init(&out->claimed);
    hm_rational_init(&out->alpha);
    hm_rational_set_int(&out->alpha, 1, 1000);
    *help = false;
    opterr = 0;
    optind = 0;
    while ((flag = getopt_long(argc, argv, ":t:h", flags, NULL)) != -1) {
        if (flag == 'h') *help = true;
        if (flag == 'h') return HM_OK;
        hm_status rc = hm_flag_refuse(flag, argv, "compare", err);
        if (!rc) rc = apply(flag, optarg, out, err);
        if (rc) return rc;
    }
    return settle(argc - optind, argv + optind, out, err);
}

void hm_compare_options_clear(struct hm_compare_options *o)
{
    hm_rational_clear(&o->claimed);
    hm_rational_clear(&o->alpha);
}
