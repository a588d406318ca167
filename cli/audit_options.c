// The flags of `hallmark audit`: see audit_options.h.
#include "cli/audit_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char hm_audit_help[] =
    "hallmark audit target.npy draft.npy --rule additive:1/10 --m 1 --m 4\n\n"
    "Certifies rows of logits that another program saved: what a drafter must reach\n"
    "at each target row, and with draft rows whether this one did.\n\n"
    "Usage: hallmark audit [options] TARGET [DRAFT]\n"
    "TARGET and DRAFT are .safetensors or .npy files of shape [rows, vocabulary]:\n"
    "F32, F16 or BF16.\n"
    "      --tensor NAME     in .safetensors files, default logits\n"
    "      --draft-vocab FILE   target ids of the draft's columns: a JSON array,\n"
    "                        .npy integers, or the d2t of an EAGLE-3 checkpoint\n"
    "Certificates\n"
    "      --rule RULE       what counts as accepted (repeatable), see below;\n"
    "                        default greedy\n"
    "      --m M             how many tokens the draft proposes (repeatable),\n"
    "                        default 1\n"
    "      --temperature T   of both distributions, default 1; numbers are exact,\n"
    "                        0.8 is 4/5\n"
    "      --margin          add certificates from the gap alone and from the\n"
    "                        rule's parameter alone\n"
    "      --divergence D    also renyi:A, renyi-reverse:A, hellinger, chi2,\n"
    "                        chi2-reverse, max, spread (repeatable)\n"
    "      --law iid|topk    the law of the emitted token, drafts drawn or taken in\n"
    "                        order (repeatable)\n"
    "Output\n"
    "      --log FILE        write a log that `hallmark verify` proves\n"
    "      --keep-rows       with the rows beside it: 4 bytes a logit\n"
    "      --json            one JSON object a row instead of the table\n"
    "  -t, --threads N       default: one per core\n"
    HM_FLAG_RULES_HELP
    "\nExit codes: 0 no finding, 1 findings (rows that are none, shapes that do not\n"
    "fit), 2 unreadable or wrong usage, 3 undecided.\n";

enum flag { TENSOR = 256, VOCABULARY, RULE, M, TEMPERATURE, MARGIN, DIVERGENCE, LAW, LOG, KEEP_ROWS, JSON };

static const struct option flags[] = {
    {"tensor", required_argument, NULL, TENSOR},
    {"draft-vocab", required_argument, NULL, VOCABULARY},
    {"rule", required_argument, NULL, RULE},
    {"m", required_argument, NULL, M},
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"margin", no_argument, NULL, MARGIN},
    {"divergence", required_argument, NULL, DIVERGENCE},
    {"law", required_argument, NULL, LAW},
    {"log", required_argument, NULL, LOG},
    {"keep-rows", no_argument, NULL, KEEP_ROWS},
    {"json", no_argument, NULL, JSON},
    {"threads", required_argument, NULL, 't'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static hm_status add_rule(const char *text, struct hm_audit_options *o, struct hm_error *err)
{
    hm_status rc = hm_flag_add_rule("rule", text, o->rule, &o->rule_count, err);
    if (!rc) hm_flag_warn_of_swapped("rule", text, &o->rule[o->rule_count - 1]);
    return rc;
}

static hm_status apply(int flag, const char *text, struct hm_audit_options *o, struct hm_error *err)
{
    switch (flag) {
    case TENSOR: o->tensor = text; return HM_OK;
    case VOCABULARY: o->vocabulary = text; return HM_OK;
    case RULE: return add_rule(text, o, err);
    case M: return hm_flag_add_m(text, false, o->m, &o->m_count, err);
    case TEMPERATURE: return hm_flag_temperature("temperature", text, true, &o->temperature, err);
    case MARGIN: o->margin = true; return HM_OK;
    case DIVERGENCE: return hm_flag_add_divergence(text, o->divergence, &o->divergence_count, err);
    case LAW: return hm_flag_law(text, &o->law_iid, &o->law_topk, err);
    case LOG: o->log = text; return HM_OK;
    case KEEP_ROWS: o->keep_rows = true; return HM_OK;
    case JSON: o->json = true; return HM_OK;
    default: return hm_flag_size("threads", text, 1, 256, &o->threads, err);
    }
}

// Files, combinations and defaults.
static hm_status settle(int count, char **files, struct hm_audit_options *o, struct hm_error *err)
{
    if (count < 1 || count > 2)
        return hm_fail(err, HM_USAGE,
                       "audit: expected TARGET and at most one DRAFT, found %d files (hallmark audit --help)", count);
    o->target = files[0];
    o->draft = count == 2 ? files[1] : NULL;
    if (!o->draft && o->vocabulary) return hm_fail(err, HM_USAGE, "--draft-vocab: expected DRAFT as well");
    if (!o->draft && (o->law_iid || o->law_topk)) return hm_fail(err, HM_USAGE, "--law: expected DRAFT as well");
    if (o->keep_rows && !o->log) return hm_fail(err, HM_USAGE, "--keep-rows writes beside a log: expected --log FILE");
    if (o->m_count == 0) o->m[o->m_count++] = 1;
    return o->rule_count ? HM_OK : hm_flag_add_rule("rule", "greedy", o->rule, &o->rule_count, err);
}

hm_status hm_audit_options_parse(int argc, char **argv, struct hm_audit_options *out, bool *help, struct hm_error *err)
{
    int flag;
    *out = (struct hm_audit_options){0};
    hm_rational_init(&out->temperature);
    hm_rational_set_int(&out->temperature, 1, 1);
    *help = false;
    opterr = 0;
    optind = 1;
    while ((flag = getopt_long(argc, argv, ":t:h", flags, NULL)) != -1) {
        const char *word = argv[optind - 1];
        char letter[3] = {'-', (char)optopt, 0};
        if (flag == 'h') *help = true;
        if (flag == 'h') return HM_OK;
        if (flag == ':') return hm_fail(err, HM_USAGE, "%s: expected a value after it", word);
        if (flag == '?')
            return hm_fail(err, HM_USAGE, "unknown or ambiguous flag \"%s\" (hallmark audit --help)",
                           optopt ? letter : word);
        hm_status rc = apply(flag, optarg, out, err);
        if (rc) return rc;
    }
    return settle(argc - optind, argv + optind, out, err);
}

void hm_audit_options_clear(struct hm_audit_options *o)
{
    hm_rational_clear(&o->temperature);
    for (size_t i = 0; i < o->rule_count; i++) hm_rule_clear(&o->rule[i]);
    for (size_t i = 0; i < o->divergence_count; i++) hm_divergence_clear(&o->divergence[i]);
}
