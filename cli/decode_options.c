// The flags of `hallmark decode`: see decode_options.h.
#include "cli/decode_options.h"

#include "certify/stamp.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum flag {
    MODEL = 256, DRAFT, DRAFTER, PROMPT, PROMPT_FILE, PROMPTS, LIMIT, MAX_TOKENS, CONTEXT, TEMPERATURE, TOP_K, TOP_P, SEED,
    STOP, TREE_BUDGET, TREE_WIDTH, TREE_DEPTH, DECODER, SELECT, TRAVERSE, SCORE_TOP, SCORE_FRONTIER, SERIAL, DRAFT_THREADS,
    DRAFT_ROPE_THETA, ACCEPT, PROPOSAL, TV_BUDGET, REGRET_BUDGET, RECORD_POOL, CERTIFY, M, MARGIN, CERTIFY_TEMPERATURE,
    CERTIFY_NODES, DIVERGENCE, LAW, CERTIFY_THREADS, LOG, KEEP_ROWS, HASH_ROWS, THREADS, DEVICE, CHAT, SYSTEM, CHECK, JSON, QUIET, IGNORE_EOS, HELP
};

static const struct option flags[] = {
    {"model", required_argument, NULL, MODEL},
    {"draft", required_argument, NULL, DRAFT},
    {"drafter", required_argument, NULL, DRAFTER},
    {"prompt", required_argument, NULL, PROMPT},
    {"prompt-file", required_argument, NULL, PROMPT_FILE},
    {"prompts", required_argument, NULL, PROMPTS},
    {"limit", required_argument, NULL, LIMIT},
    {"max-tokens", required_argument, NULL, MAX_TOKENS},
    {"context", required_argument, NULL, CONTEXT},
    {"temperature", required_argument, NULL, TEMPERATURE},
    {"top-k", required_argument, NULL, TOP_K},
    {"top-p", required_argument, NULL, TOP_P},
    {"seed", required_argument, NULL, SEED},
    {"stop", required_argument, NULL, STOP},
    {"tree-budget", required_argument, NULL, TREE_BUDGET},
    {"tree-width", required_argument, NULL, TREE_WIDTH},
    {"tree-depth", required_argument, NULL, TREE_DEPTH},
    {"decoder", required_argument, NULL, DECODER},
    {"select", required_argument, NULL, SELECT},
    {"traverse", required_argument, NULL, TRAVERSE},
    {"score-top", required_argument, NULL, SCORE_TOP},
    {"score-frontier", required_argument, NULL, SCORE_FRONTIER},
    {"serial", no_argument, NULL, SERIAL},
    {"draft-threads", required_argument, NULL, DRAFT_THREADS},
    {"draft-rope-theta", required_argument, NULL, DRAFT_ROPE_THETA},
    {"accept", required_argument, NULL, ACCEPT},
    {"proposal", required_argument, NULL, PROPOSAL},
    {"tv-budget", required_argument, NULL, TV_BUDGET},
    {"regret-budget", required_argument, NULL, REGRET_BUDGET},
    {"record-pool", required_argument, NULL, RECORD_POOL},
    {"certify", required_argument, NULL, CERTIFY},
    {"m", required_argument, NULL, M},
    {"margin", no_argument, NULL, MARGIN},
    {"certify-temperature", required_argument, NULL, CERTIFY_TEMPERATURE},
    {"certify-nodes", required_argument, NULL, CERTIFY_NODES},
    {"divergence", required_argument, NULL, DIVERGENCE},
    {"law", required_argument, NULL, LAW},
    {"certify-threads", required_argument, NULL, CERTIFY_THREADS},
    {"log", required_argument, NULL, LOG},
    {"keep-rows", no_argument, NULL, KEEP_ROWS},
    {"hash-rows", no_argument, NULL, HASH_ROWS},
    {"threads", required_argument, NULL, THREADS},
    {"device", required_argument, NULL, DEVICE},
    {"chat", no_argument, NULL, CHAT},
    {"system", required_argument, NULL, SYSTEM},
    {"check", no_argument, NULL, CHECK},
    {"json", no_argument, NULL, JSON},
    {"quiet", no_argument, NULL, QUIET},
    {"ignore-eos", no_argument, NULL, IGNORE_EOS},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static const char *const selections[] = {"draft", "root", "root-draw", "pearl", NULL}; // enum hm_selection

static hm_status parse_traverse(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    o->cap = 0;
    o->traverse_given = true;
    o->leaf_stop = strcmp(text, "leaf-stop") == 0;
    if (o->leaf_stop || strcmp(text, "exhaustive") == 0) return HM_OK;
    if (strncmp(text, "cap:", 4) == 0) return hm_flag_size("traverse cap:N", text + 4, 1, 1000, &o->cap, err);
    return hm_fail(err, HM_USAGE, "--traverse: expected exhaustive, cap:N or leaf-stop, found \"%s\"", text);
}

static hm_status parse_select(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    for (size_t i = 0; selections[i]; i++)
        if (strcmp(text, selections[i]) == 0) o->selection = (enum hm_selection)i;
    return hm_flag_one_of("select", text, selections, err);
}

static hm_status parse_decoder(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    static const char *const decoders[] = {"tree", "covering", NULL};
    o->covering = strcmp(text, "covering") == 0;
    return hm_flag_one_of("decoder", text, decoders, err);
}

static hm_status parse_accept(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    if (hm_decode_rule(o)) hm_rule_clear(&o->acceptance);
    o->accept = strcmp(text, "standard") == 0 ? HM_ACCEPT_STANDARD : HM_ACCEPT_MATCH;
    if (o->accept == HM_ACCEPT_STANDARD || strcmp(text, "match") == 0) return HM_OK;
    hm_status rc = hm_flag_rule("accept", text, &o->acceptance, err);
    if (rc) return rc;
    o->accept = o->acceptance.kind == HM_RULE_NUCLEUS ? HM_ACCEPT_NUCLEUS : HM_ACCEPT_RULE;
    hm_flag_warn_of_swapped("accept", text, &o->acceptance);
    return HM_OK;
}

static hm_status parse_proposal(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    static const char *const proposals[] = {"topk", "iid", NULL};
    o->proposal = strcmp(text, "iid") == 0 ? HM_PROPOSAL_IID : HM_PROPOSAL_TOPK;
    return hm_flag_one_of("proposal", text, proposals, err);
}

static hm_status parse_budget(const char *flag, enum hm_budget_kind kind, long most, const char *text,
                              struct hm_decode_options *o, struct hm_error *err)
{
    if (o->fidelity && o->fidelity != kind)
        return hm_fail(err, HM_USAGE, "--tv-budget and --regret-budget bound different rules: expected one of them");
    o->fidelity = kind;
    return hm_flag_rational(flag, text, false, most, &o->fidelity_limit, err);
}

static hm_status parse_frontier(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    o->score_frontier = SIZE_MAX;
    return strcmp(text, "all") == 0 ? HM_OK : hm_flag_size("score-frontier", text, 1, 100000, &o->score_frontier, err);
}

static hm_status parse_theta(const char *text, double *theta, struct hm_error *err)
{
    char *end;
    *theta = strtod(text, &end);
    if (*text && !*end && *theta >= 1 && *theta <= 1e12) return HM_OK;
    return hm_fail(err, HM_USAGE, "--draft-rope-theta: expected a number from 1 to 1e12, found \"%s\"", text);
}

static hm_status add_claim(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    o->certified = true;
    hm_status rc = hm_flag_add_rule("certify", text, o->certify, &o->certify_count, err);
    if (!rc) hm_flag_warn_of_swapped("certify", text, &o->certify[o->certify_count - 1]);
    return rc;
}

static hm_status add_stop(const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    if (!*text) return hm_fail(err, HM_USAGE, "--stop: expected some text, found none");
    if (o->stop_count == HM_MOST_STOPS) return hm_fail(err, HM_USAGE, "--stop: expected at most %d texts", HM_MOST_STOPS);
    o->stop[o->stop_count++] = text;
    return HM_OK;
}

// Flags of the model, the prompt and the sampling.
static hm_status apply_decoding(int flag, const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    static const char *const drafters[] = {"standalone", "eagle3", "ngram", "none", NULL};
    static const char *const devices[] = {"cpu", NULL};
    switch (flag) {
    case MODEL: o->model = text; return HM_OK;
    case DRAFT: o->draft = text; return HM_OK;
    case DRAFTER: o->drafter = text; return hm_flag_one_of("drafter", text, drafters, err);
    case PROMPT: o->prompt = text; return HM_OK;
    case PROMPT_FILE: o->prompt_file = text; return HM_OK;
    case PROMPTS: o->prompts = text; return HM_OK;
    case LIMIT: return hm_flag_size("limit", text, 1, 1000000000, &o->limit, err);
    case MAX_TOKENS: return hm_flag_size("max-tokens", text, 1, 10000000, &o->max_tokens, err);
    case CONTEXT: return hm_flag_size("context", text, 2, 10000000, &o->context, err);
    case TEMPERATURE: return hm_flag_temperature("temperature", text, false, &o->temperature, err);
    case TOP_K: return hm_flag_size("top-k", text, 0, 100000000, &o->top_k, err);
    case TOP_P: o->has_top_p = true; return hm_flag_rational("top-p", text, true, 1, &o->top_p, err);
    case SEED: return hm_flag_count("seed", text, 0, UINT64_MAX, &o->seed, err);
    case STOP: return add_stop(text, o, err);
    case TREE_BUDGET: return hm_flag_size("tree-budget", text, 0, 4096, &o->budget, err);
    case TREE_WIDTH: return hm_flag_size("tree-width", text, 1, 64, &o->width, err);
    case TREE_DEPTH: return hm_flag_size("tree-depth", text, 0, 64, &o->depth, err);
    case DECODER: return parse_decoder(text, o, err);
    case SELECT: return parse_select(text, o, err);
    case TRAVERSE: return parse_traverse(text, o, err);
    case SCORE_TOP: return hm_flag_size("score-top", text, 1, 100000, &o->score_top, err);
    case SCORE_FRONTIER: return parse_frontier(text, o, err);
    case SERIAL: o->serial = true; return HM_OK;
    case DRAFT_THREADS: return hm_flag_size("draft-threads", text, 1, 256, &o->draft_threads, err);
    case DRAFT_ROPE_THETA: return parse_theta(text, &o->draft_rope_theta, err);
    case ACCEPT: return parse_accept(text, o, err);
    case PROPOSAL: return parse_proposal(text, o, err);
    case TV_BUDGET: return parse_budget("tv-budget", HM_BUDGET_TV, 1, text, o, err);
    case REGRET_BUDGET: return parse_budget("regret-budget", HM_BUDGET_REGRET, 1000000, text, o, err);
    case DEVICE: return hm_flag_one_of("device", text, devices, err);
    case THREADS: return hm_flag_size("threads", text, 1, 256, &o->threads, err);
    case CHAT: o->chat = true; return HM_OK;
    case SYSTEM: o->system = text; return HM_OK;
    case IGNORE_EOS: o->ignore_eos = true; return HM_OK;
    default: return hm_fail(err, HM_USAGE, "unknown flag");
    }
}

// Flags of certificates and output; the rest goes to apply_decoding.
static hm_status apply(int flag, const char *text, struct hm_decode_options *o, struct hm_error *err)
{
    static const char *const nodes[] = {"path", "all", NULL};
    switch (flag) {
    case CERTIFY: return add_claim(text, o, err);
    case M: o->certified = true; return hm_flag_add_m(text, true, o->m, &o->m_count, err);
    case MARGIN: o->certified = o->margin = true; return HM_OK;
    case DIVERGENCE: o->certified = true; return hm_flag_add_divergence(text, o->divergence, &o->divergence_count, err);
    case LAW: o->certified = true; return hm_flag_law(text, &o->law_iid, &o->law_topk, err);
    case CERTIFY_THREADS: return hm_flag_size("certify-threads", text, 1, 256, &o->certify_threads, err);
    case CERTIFY_TEMPERATURE: return hm_flag_temperature("certify-temperature", text, true, &o->certify_temperature, err);
    case CERTIFY_NODES: o->all_nodes = strcmp(text, "all") == 0; return hm_flag_one_of("certify-nodes", text, nodes, err);
    case LOG: o->certified = true; o->log = text; return HM_OK;
    case RECORD_POOL: o->record_pool = text; return HM_OK;
    case KEEP_ROWS: o->keep_rows = true; return HM_OK;
    case HASH_ROWS: o->hash_rows = true; return HM_OK;
    case CHECK: o->check = true; return HM_OK;
    case JSON: o->json = true; return HM_OK;
    case QUIET: o->quiet = true; return HM_OK;
    default: return apply_decoding(flag, text, o, err);
    }
}

static void set_defaults(struct hm_decode_options *o)
{
    *o = (struct hm_decode_options){
        .max_tokens = 128, .width = SIZE_MAX, .depth = SIZE_MAX, .budget = SIZE_MAX, .certify_threads = 1};
    hm_rational_init(&o->temperature);
    hm_rational_init(&o->top_p);
    hm_rational_init(&o->certify_temperature);
    hm_rational_init(&o->fidelity_limit);
}

hm_status hm_decode_options_parse(int argc, char **argv, struct hm_decode_options *out, enum hm_parsed *what,
                                  struct hm_error *err)
{
    int flag;
    set_defaults(out);
    *what = HM_PARSED_RUN;
    opterr = 0;
    optind = 1;
    while ((flag = getopt_long(argc, argv, ":m:p:f:n:c:s:t:h", flags, NULL)) != -1) {
        static const struct { int letter; enum flag flag; } letters[] = {
            {'m', MODEL}, {'p', PROMPT}, {'f', PROMPT_FILE}, {'n', MAX_TOKENS}, {'c', CONTEXT},
            {'s', SEED}, {'t', THREADS}, {'h', HELP}};
        for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
            if (flag == letters[i].letter) flag = (int)letters[i].flag;
        if (flag == HELP) {
            *what = HM_PARSED_HELP;
            return HM_OK;
        }
        hm_status rc = hm_flag_refuse(flag, argv, "decode", err);
        if (!rc) rc = apply(flag, optarg, out, err);
        if (rc) return rc;
    }
    if (optind < argc)
        return hm_fail(err, HM_USAGE, "expected flags only, found \"%s\" (a prompt goes with --prompt)", argv[optind]);
    return hm_decode_options_settle(out, err);
}
