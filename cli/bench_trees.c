// `hallmark bench trees`: ways to decode beside plain decoding, in one run.
//
// Each way is a set of flags of `hallmark decode`. All answer the same prompts (first turns) by turns, repetition by
// repetition, and each speed is divided by that of plain decoding in the same repetition, so that a drifting machine
// cancels. Tokens per round and nodes are counts and do not depend on the machine.
#include "cli/bench.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/decode_models.h"
#include "cli/prompts.h"
#include "cli/timing.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "hallmark bench trees --model models/tiny-qwen3 --prompts FILE -n 64 \\\n"
    "    --with '--draft models/tiny-qwen3-draft' \\\n"
    "    --with '--draft models/tiny-qwen3-draft --select root-draw'\n\n"
    "Decodes the first turns of the prompts in each way given, and plainly, and\n"
    "prints a Markdown table: tokens per round, nodes, tokens/s and how many times\n"
    "as fast as plain decoding, the median over repetitions and its range.\n\n"
    "With fidelity budgets: at which share of the positions that could be relaxed\n"
    "the relaxation was in force.\n\n"
    "      --with FLAGS     one way: flags of hallmark decode (repeatable)\n"
    "      --repeat N       interleaved repetitions, default 3\n"
    "      --json           one object\n"
    "All other flags are those of hallmark decode and hold for every way.\n";

enum { MOST_WAYS = 32, MOST_WORDS = 128 };

struct way {
    const char *name;                 // the flags as given; "plain"
    char *text;                       // owned copy, cut into words
    struct hm_decode_options options;
    bool parsed;
    struct hm_decode_models models;
    struct hm_session *session;
    struct hm_session_counts counts;  // of all repetitions
    double tokens_per_second[HM_MOST_SAMPLES];
};

struct bench {
    struct way way[MOST_WAYS];
    size_t ways, repeats;
    char *shared[MOST_WORDS];         // flags for every way, borrowed
    size_t shared_count;
    struct hm_prompts prompts;
    bool json;
};

// ---- flags

static hm_status add_way(struct bench *b, const char *flags, struct hm_error *err)
{
    if (b->ways == MOST_WAYS) return hm_fail(err, HM_USAGE, "--with: expected at most %d ways", MOST_WAYS - 1);
    b->way[b->ways++].name = flags;
    return HM_OK;
}

static hm_status parse(int argc, char **argv, struct bench *b, bool *wants_help, struct hm_error *err)
{
    hm_status rc = add_way(b, "", err); // plain
    for (int i = 1; i < argc && !rc; i++) {
        bool valued = strcmp(argv[i], "--with") == 0 || strcmp(argv[i], "--repeat") == 0;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) *wants_help = true;
        else if (strcmp(argv[i], "--json") == 0) b->json = true;
        else if (valued && i + 1 == argc) rc = hm_fail(err, HM_USAGE, "%s: expected a value after it", argv[i]);
        else if (strcmp(argv[i], "--with") == 0) rc = add_way(b, argv[++i], err);
        else if (valued) rc = hm_flag_size("repeat", argv[++i], 1, HM_MOST_SAMPLES, &b->repeats, err);
        else if (b->shared_count == MOST_WORDS) rc = hm_fail(err, HM_USAGE, "expected at most %d words", MOST_WORDS);
        else b->shared[b->shared_count++] = argv[i];
    }
    if (!rc && !*wants_help && b->ways == 1)
        rc = hm_fail(err, HM_USAGE, "--with: expected at least one way to decode (hallmark bench trees --help)");
    return rc;
}

// The options of one way: the shared flags, then its own.
static hm_status parse_way(struct bench *b, struct way *way, struct hm_error *err)
{
    char *words[2 * MOST_WORDS + 1] = {(char[]){"decode"}};
    int count = 1;
    enum hm_parsed what;
    for (size_t i = 0; i < b->shared_count; i++) words[count++] = b->shared[i];
    way->text = strdup(way->name);
    if (!way->text) return hm_fail(err, HM_MEMORY, "out of memory");
    char *rest = way->text;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word) continue;
        if (count == 2 * MOST_WORDS) return hm_fail(err, HM_USAGE, "--with: expected at most %d words", MOST_WORDS);
        words[count++] = word;
    }
    way->parsed = true;
    hm_status rc = hm_decode_options_parse(count, words, &way->options, &what, err);
    const struct hm_decode_options *o = &way->options;
    if (!rc && (o->certified || o->check || o->record_pool))
        rc = hm_fail(err, HM_USAGE, "this measures decoding alone: expected no --log, --certify, --check, --record-pool");
    if (!rc && !o->prompts) rc = hm_fail(err, HM_USAGE, "--prompts: expected a file of prompts");
    return rc;
}

// ---- running

static hm_status open_way(struct bench *b, struct way *way, struct hm_error *err)
{
    hm_status rc = parse_way(b, way, err);
    struct hm_session_options options = hm_decode_session_options(&way->options, &way->models);
    if (!rc) rc = hm_session_legal(&options, err);
    if (!rc) rc = hm_decode_models_open(&way->options, NULL, &way->models, err);
    options = hm_decode_session_options(&way->options, &way->models);
    if (!rc) rc = hm_session_open(&options, &way->session, err);
    if (rc && *way->name) hm_fail_prefix(err, way->name);
    return rc;
}

static hm_status answer(struct way *way, const struct hm_prompt *prompt, uint32_t sequence, struct hm_session_counts *counts,
                        struct hm_error *err)
{
    const struct hm_decode_options *o = &way->options;
    struct hm_conversation c = {.tokenizer = way->models.tokenizer, .chat = o->chat, .format = way->models.chat};
    struct hm_listener nobody = {0};
    int32_t *token = NULL;
    size_t count;
    hm_status rc = o->system ? hm_conversation_system(&c, o->system, err) : HM_OK;
    if (!rc) rc = hm_conversation_ask(&c, prompt->turn[0], err);
    if (!rc)
        rc = hm_session_run(way->session, sequence, c.context, c.length, o->max_tokens, &nobody, counts, &token, &count, err);
    free(token);
    hm_conversation_clear(&c);
    return rc;
}

static hm_status run_way(struct bench *b, struct way *way, size_t repetition, struct hm_error *err)
{
    struct hm_session_counts counts = {0};
    hm_status rc = HM_OK;
    for (size_t i = 0; i < b->prompts.count && !rc; i++) rc = answer(way, &b->prompts.prompt[i], (uint32_t)i, &counts, err);
    way->counts = counts; // but for the seconds the same in every repetition
    way->tokens_per_second[repetition] = counts.seconds > 0 ? (double)counts.tokens / counts.seconds : 0;
    return rc;
}

static hm_status measure(struct bench *b, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; i < b->ways && !rc; i++) rc = open_way(b, &b->way[i], err);
    const struct hm_decode_options *o = &b->way[0].options;
    if (!rc) rc = hm_prompts_from_jsonl(o->prompts, o->limit, &b->prompts, err);
    for (size_t r = 0; r < b->repeats && !rc; r++)
        for (size_t i = 0; i < b->ways && !rc; i++) rc = run_way(b, &b->way[i], r, err);
    return rc;
}

// ---- printing

struct figures {
    double tokens_per_round, drafted, nodes, tokens_per_second, ratio, least, most, relaxed;
};

static double part(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static struct figures figures_of(const struct bench *b, const struct way *way)
{
    const struct hm_session_counts *c = &way->counts;
    double rounds = (double)c->rounds, ratio[HM_MOST_SAMPLES];
    struct figures f = {.tokens_per_round = part((double)(c->tokens - c->prefills), rounds),
                        .drafted = part((double)c->drafted, rounds),
                        .nodes = part((double)(c->verified + c->scored), rounds),
                        .tokens_per_second = hm_median(way->tokens_per_second, b->repeats),
                        .least = INFINITY,
                        .relaxed = c->charged ? (double)c->relaxed / (double)c->charged : NAN};
    for (size_t r = 0; r < b->repeats; r++) {
        ratio[r] = part(way->tokens_per_second[r], b->way[0].tokens_per_second[r]);
        f.least = fmin(f.least, ratio[r]);
        f.most = fmax(f.most, ratio[r]);
    }
    f.ratio = hm_median(ratio, b->repeats);
    return f;
}

static void print_table(const struct bench *b)
{
    const struct hm_model_info *info = hm_model_info(b->way[0].models.target);
    printf("%s, %zu prompts, %llu tokens, %zu repetitions; %s\n\n", info->name, b->prompts.count,
           (unsigned long long)b->way[0].counts.tokens, b->repeats, b->way[0].models.device->detail);
    bool budgets = false;
    for (size_t i = 0; i < b->ways; i++) budgets = budgets || b->way[i].counts.charged;
    printf("| decoding | tokens/round | drafted | nodes |%s tokens/s | x plain | range |\n|---|---|---|---|%s---|---|---|\n",
           budgets ? " relaxed |" : "", budgets ? "---|" : "");
    for (size_t i = 0; i < b->ways; i++) {
        struct figures f = figures_of(b, &b->way[i]);
        char relaxed[16] = "";
        if (budgets) snprintf(relaxed, sizeof relaxed, "  |");
        if (!isnan(f.relaxed)) snprintf(relaxed, sizeof relaxed, " %.1f%% |", 100 * f.relaxed);
        printf("| %s | %.3f | %.1f | %.1f |%s %.1f | %.2f | %.2f-%.2f |\n", i ? b->way[i].name : "plain", f.tokens_per_round,
               f.drafted, f.nodes, relaxed, f.tokens_per_second, f.ratio, f.least, f.most);
    }
}

static hm_status print_json(const struct bench *b, struct hm_error *err)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "model", hm_model_info(b->way[0].models.target)->name);
    cJSON_AddNumberToObject(object, "prompts", (double)b->prompts.count);
    cJSON_AddNumberToObject(object, "repetitions", (double)b->repeats);
    cJSON_AddStringToObject(object, "device", b->way[0].models.device->detail);
    cJSON *ways = cJSON_AddArrayToObject(object, "ways");
    for (size_t i = 0; i < b->ways; i++) {
        struct figures f = figures_of(b, &b->way[i]);
        cJSON *way = cJSON_CreateObject();
        cJSON_AddStringToObject(way, "flags", b->way[i].name);
        cJSON_AddNumberToObject(way, "tokens", (double)b->way[i].counts.tokens);
        cJSON_AddNumberToObject(way, "tokens_per_round", f.tokens_per_round);
        cJSON_AddNumberToObject(way, "drafted", f.drafted);
        cJSON_AddNumberToObject(way, "nodes", f.nodes);
        cJSON_AddNumberToObject(way, "tokens_per_second", f.tokens_per_second);
        cJSON_AddNumberToObject(way, "ratio", f.ratio);
        cJSON_AddNumberToObject(way, "ratio_least", f.least);
        cJSON_AddNumberToObject(way, "ratio_most", f.most);
        if (!isnan(f.relaxed)) cJSON_AddNumberToObject(way, "relaxed", f.relaxed);
        cJSON_AddItemToArray(ways, way);
    }
    return hm_cli_print_json(object, err);
}

static void close_bench(struct bench *b)
{
    for (size_t i = 0; i < b->ways; i++) {
        hm_session_close(b->way[i].session);
        hm_decode_models_close(&b->way[i].models);
        if (b->way[i].parsed) hm_decode_options_clear(&b->way[i].options);
        free(b->way[i].text);
    }
    hm_prompts_clear(&b->prompts);
    free(b);
}

int hm_bench_trees(int argc, char **argv)
{
    struct hm_error err;
    bool wants_help = false;
    int code = HM_EXIT_OK;
    struct bench *b = calloc(1, sizeof *b);
    if (!b) {
        hm_fail(&err, HM_MEMORY, "out of memory");
        return hm_cli_fail(&err);
    }
    b->repeats = 3;
    hm_status rc = parse(argc, argv, b, &wants_help, &err);
    if (wants_help) {
        fputs(help, stdout);
    } else {
        if (!rc) rc = measure(b, &err);
        if (!rc && b->json) rc = print_json(b, &err);
        else if (!rc) print_table(b);
        if (rc) code = hm_cli_fail(&err);
    }
    close_bench(b);
    return code;
}
