// The flags of `hallmark audit`: see audit_options.h.
#include "cli/audit_options.h"

#include "base/memory.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char hm_audit_help[] =
    "hallmark audit answers.jsonl --rule additive:1/10 --rule nucleus:0.9\n"
    "hallmark audit target.npy --draft draft.npy --rule topm:2 --m 1 --m 4\n\n"
    "Says what can be proved from what another engine logged: its log-probabilities,\n"
    "however few, or whole rows of logits.\n\n"
    "Usage: hallmark audit [options] FILE...\n"
    "FILE is a response of OpenAI's kind (JSON, JSON Lines or a stream), of vLLM,\n"
    "SGLang or llama.cpp's server, a base file of llama-perplexity, a certificate\n"
    "log, or rows of logits [rows, vocabulary] in .safetensors or .npy.\n"
    "      --draft FILE      the draft's rows at the same contexts (one for each\n"
    "                        FILE, in order)\n"
    "      --format NAME     openai-chat, openai-completions, vllm, sglang,\n"
    "                        llama.cpp-server, llama.cpp-kld, hallmark or rows, when\n"
    "                        the file does not say\n"
    "Lists of log-probabilities\n"
    "      --vocab N         tokens in the vocabulary\n"
    "      --printing P      rounded (default: half a unit of the last digit either\n"
    "                        side), or round-trip (shortest digits of a float)\n"
    "      --allowance A     for the engine's own rounding: A (1 + |l|/8) nats,\n"
    "                        default 2^-18; 0 takes numbers as printed\n"
    "      --processed       they were taken after temperature, top-k or top-p\n"
    "      --claim-temperature T   test the claim that tokens were sampled at T\n"
    "Rows of logits\n"
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
    "  and for rows of logits\n"
    "      --margin          add certificates from the gap alone and from the\n"
    "                        rule's parameter alone\n"
    "      --divergence D    also renyi:A, renyi-reverse:A, hellinger, chi2,\n"
    "                        chi2-reverse, max, spread (repeatable)\n"
    "      --law iid|topk    the law of the emitted token, drafts drawn or taken in\n"
    "                        order (repeatable)\n"
    "Output\n"
    "      --log FILE        write a log that `hallmark verify` proves (one FILE)\n"
    "      --keep-rows       with the rows beside it: 4 bytes a logit\n"
    "      --json            one JSON object a line instead of tables\n"
    "      --shard i/n       this process's share of the FILEs, or auto; with\n"
    "      --parts DIR       where its result goes: hallmark merge DIR\n"
    "  -t, --threads N       for rows of logits; default: one per core\n"
    HM_FLAG_RULES_HELP
    "\nExit codes: 0 nothing found, 1 findings, 2 unreadable or wrong usage,\n"
    "3 undecided: not enough evidence for something that was asked.\n";

enum flag {
    DRAFT = 256, FORMAT, VOCAB, PRINTING, ALLOWANCE, PROCESSED, CLAIM, TENSOR, VOCABULARY, RULE, M, TEMPERATURE, MARGIN,
    DIVERGENCE, LAW, LOG, KEEP_ROWS, JSON, SHARD, PARTS
};

static const struct option flags[] = {
    {"draft", required_argument, NULL, DRAFT},
    {"format", required_argument, NULL, FORMAT},
    {"vocab", required_argument, NULL, VOCAB},
    {"printing", required_argument, NULL, PRINTING},
    {"allowance", required_argument, NULL, ALLOWANCE},
    {"processed", no_argument, NULL, PROCESSED},
    {"claim-temperature", required_argument, NULL, CLAIM},
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
    {"shard", required_argument, NULL, SHARD},
    {"parts", required_argument, NULL, PARTS},
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

static hm_status add_draft(char *path, struct hm_audit_options *o, struct hm_error *err)
{
    void *drafts = o->drafts;
    if (!hm_grow(&drafts, &o->draft_room, o->draft_count + 1, sizeof *o->drafts))
        return hm_fail(err, HM_MEMORY, "out of memory for file names");
    o->drafts = drafts;
    o->drafts[o->draft_count++] = path;
    return HM_OK;
}

// From 0 to 1 nat; rounded up, so that the allowance is not smaller than was asked for.
static hm_status parse_allowance(const char *text, struct hm_audit_options *o, struct hm_error *err)
{
    struct hm_rational value;
    hm_rational_init(&value);
    hm_status rc = hm_flag_rational("allowance", text, false, 1, &value, err);
    if (!rc) {
        o->allowance = hm_rational_double(&value);
        if (hm_rational_sign(&value) > 0) o->allowance = nextafter(o->allowance, INFINITY);
    }
    hm_rational_clear(&value);
    return rc;
}

static hm_status parse_claimed(const char *text, struct hm_audit_options *o, struct hm_error *err)
{
    o->claims_temperature = true;
    return hm_flag_temperature("claim-temperature", text, true, &o->claimed, err);
}

static hm_status apply(int flag, char *text, struct hm_audit_options *o, struct hm_error *err)
{
    switch (flag) {
    case DRAFT: return add_draft(text, o, err);
    case FORMAT: return hm_flag_format("format", text, &o->format, err);
    case VOCAB: return hm_flag_size("vocab", text, 2, INT32_MAX, &o->vocab, err);
    case PRINTING: return hm_flag_printing(text, &o->printing, err);
    case ALLOWANCE: return parse_allowance(text, o, err);
    case PROCESSED: o->processed = true; return HM_OK;
    case CLAIM: return parse_claimed(text, o, err);
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
    case SHARD: return hm_shards_parse(text, environ, &o->shards, err);
    case PARTS: o->parts = text; return HM_OK;
    default: return hm_flag_size("threads", text, 1, 256, &o->threads, err);
    }
}

// Files, combinations and defaults.
static hm_status settle(int count, char **files, struct hm_audit_options *o, struct hm_error *err)
{
    if (count < 1) return hm_fail(err, HM_USAGE, "audit: expected a FILE, found none (hallmark audit --help)");
    o->inputs = files;
    o->input_count = (size_t)count;
    if (o->draft_count && o->draft_count != o->input_count)
        return hm_fail(err, HM_USAGE, "--draft: expected one for each of the %d FILEs, in their order, found %zu", count,
                       o->draft_count);
    if (!o->drafts && o->vocabulary) return hm_fail(err, HM_USAGE, "--draft-vocab: expected --draft FILE as well");
    if (!o->drafts && (o->law_iid || o->law_topk)) return hm_fail(err, HM_USAGE, "--law: expected --draft FILE as well");
    if (o->keep_rows && !o->log) return hm_fail(err, HM_USAGE, "--keep-rows writes beside a log: expected --log FILE");
    if (o->log && count > 1) return hm_fail(err, HM_USAGE, "--log: expected one FILE, found %d", count);
    if (o->log && o->shards.count) return hm_fail(err, HM_USAGE, "--log and --shard do not go together");
    if (!o->shards.count != !o->parts) return hm_fail(err, HM_USAGE, "--shard and --parts go together");
    if (o->m_count == 0) o->m[o->m_count++] = 1;
    return o->rule_count ? HM_OK : hm_flag_add_rule("rule", "greedy", o->rule, &o->rule_count, err);
}

hm_status hm_audit_options_parse(int argc, char **argv, struct hm_audit_options *out, bool *help, struct hm_error *err)
{
    int flag;
    *out = (struct hm_audit_options){.allowance = HM_ALLOWANCE_DEFAULT};
    hm_rational_init(&out->temperature);
    hm_rational_init(&out->claimed);
    hm_rational_set_int(&out->temperature, 1, 1);
    *help = false;
    opterr = 0;
    optind = 1;
    while ((flag = getopt_long(argc, argv, ":t:h", flags, NULL)) != -1) {
        if (flag == 'h') *help = true;
        if (flag == 'h') return HM_OK;
        hm_status rc = hm_flag_refuse(flag, argv, "audit", err);
        if (!rc) rc = apply(flag, optarg, out, err);
        if (rc) return rc;
    }
    return settle(argc - optind, argv + optind, out, err);
}

void hm_audit_options_clear(struct hm_audit_options *o)
{
    hm_rational_clear(&o->temperature);
    hm_rational_clear(&o->claimed);
    for (size_t i = 0; i < o->rule_count; i++) hm_rule_clear(&o->rule[i]);
    for (size_t i = 0; i < o->divergence_count; i++) hm_divergence_clear(&o->divergence[i]);
    free(o->drafts);
}
