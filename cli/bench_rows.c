// `hallmark bench rows`: what a certificate costs, by double enclosures and by plain MPFR, side by side in one run.
//
// The rows are made up, with the shape of a language model's: a bulk of unlikely tokens and a head of likely ones, from
// flat to peaked; the draft is the target with noise. One core does everything; the best of the repetitions counts,
// so the rows are in the cache, as a decoder that has just written them leaves them.
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/timing.h"

#include "base/clock.h"
#include "base/memory.h"
#include "certify/certificate.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "hallmark bench rows --vocab 151936\n\n"
    "Measures the certificate of one pair of rows (target and draft) on one core:\n"
    "log-sum-exp and entropy, KL(p||q), KL(q||p) and TV, the leading entries, and\n"
    "the claims of seven rules with margins and radii; by double enclosures with\n"
    "MPFR behind them, and by MPFR alone from 128 bits on. Rows are made up, once\n"
    "with logits of bf16 values and once with full float32; medians over pairs.\n\n"
    "      --vocab N        logits of a row, default 151936\n"
    "      --pairs N        different pairs, default 9\n"
    "      --repeat N       times each is measured in a row, default 15; the best\n"
    "                       counts, so rows are in the cache\n"
    "      --m N            proposed tokens a claim is about, default 4\n"
    "      --no-mpfr        leave out the slow half\n"
    "      --json           one object\n";

static const char *const rule_texts[] = {"greedy",       "additive:1/10",  "multiplicative:3/10", "topm:4",
                                         "entropy:9/100,3/10", "nucleus:9/10", "topk-delta:4,1/10"};
enum { RULES = sizeof rule_texts / sizeof *rule_texts, TOP = 8, MOST_PAIRS = HM_MOST_SAMPLES };

// The parts of one certificate, in seconds.
enum part { PART_ROWS, PART_DISTANCE, PART_CLAIMS, PARTS };
static const char *const part_names[PARTS] = {"rows: order, sums, entropy", "pair: KL both ways, TV", "claims, seven rules"};

struct bench {
    size_t vocab, pairs, repeats, m;
    bool mpfr, json;
    struct hm_rule rule[RULES];
    size_t rules;
    struct hm_rational temperature;
    float *target, *draft; // [pairs * vocab] each
    double filter[2][PARTS + 1][MOST_PAIRS], mpfr_seconds[2][MOST_PAIRS]; // by bf16 or not; the last part is the whole
    double share[2][MOST_PAIRS];                                         // mpfr over filter, pair by pair
    uint64_t answered, undecided;
};

// ---- rows

static double uniform(uint64_t *state) // splitmix64
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double gauss(uint64_t *state)
{
    double u = uniform(state), v = uniform(state);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static float rounded(double x, bool bf16)
{
    float value = (float)x;
    uint32_t bits;
    if (!bf16) return value;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void make_pairs(struct bench *b, bool bf16)
{
    uint64_t state = 20261129;
    for (size_t pair = 0; pair < b->pairs; pair++) {
        float *p = b->target + pair * b->vocab, *q = b->draft + pair * b->vocab;
        double peak = 8.0 * (double)pair / (double)b->pairs; // how far the likeliest token stands out
        for (size_t i = 0; i < b->vocab; i++) {
            double x = 2.3 * gauss(&state) - 5.5;
            p[i] = rounded(x, bf16);
            q[i] = rounded(x + 0.4 * gauss(&state), bf16);
        }
        for (size_t n = 0; n < 256; n++) {
            size_t i = (size_t)(uniform(&state) * (double)b->vocab);
            double x = 11 - 1.1 * log(1 + (double)n) - 3 * uniform(&state) + (n == 0 ? peak : 0);
            p[i] = rounded(x, bf16);
            q[i] = rounded(x + 0.7 * gauss(&state), bf16);
        }
    }
}

// ---- measuring

static hm_status claims(struct bench *b, struct hm_row *p, struct hm_row *q, const struct hm_row_distance *distance,
                        struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; i < b->rules && !rc; i++) {
        struct hm_claim claim;
        struct hm_claim_query query = {.rule = &b->rule[i], .target = p, .draft = q, .distance = distance,
                                       .token = hm_row_token(q, 0), .m = b->m, .margin = true, .universal = true};
        rc = hm_claim_make(&query, &claim, err);
    }
    return rc;
}

// One certificate; seconds [PARTS + 1].
static hm_status certify(struct bench *b, size_t pair, bool exact_only, double *seconds, struct hm_error *err)
{
    struct hm_row *p = NULL, *q = NULL;
    struct hm_row_distance distance;
    struct hm_ival value;
    double start = hm_now();
    hm_status rc = hm_row_open(b->target + pair * b->vocab, b->vocab, &b->temperature, &p, err);
    if (!rc) rc = hm_row_open(b->draft + pair * b->vocab, b->vocab, &b->temperature, &q, err);
    if (!rc && exact_only) hm_row_exact_only(p), hm_row_exact_only(q);
    for (size_t rank = 0; !rc && rank < TOP; rank++) (void)hm_row_token(p, rank);
    if (!rc) rc = hm_row_lse(p, &value, err);
    if (!rc) rc = hm_row_entropy(p, &value, err);
    double rows = hm_now();
    if (!rc) rc = hm_row_distance(p, q, &distance, err);
    double pairs = hm_now();
    if (!rc) rc = claims(b, p, q, &distance, err);
    double end = hm_now();
    seconds[PART_ROWS] = rows - start;
    seconds[PART_DISTANCE] = pairs - rows;
    seconds[PART_CLAIMS] = end - pairs;
    seconds[PARTS] = end - start;
    if (!rc && !exact_only) {
        struct hm_row_questions of_p = hm_row_questions(p), of_q = hm_row_questions(q);
        b->answered += of_p.answered + of_q.answered;
        b->undecided += of_p.undecided + of_q.undecided;
    }
    hm_row_close(q);
    hm_row_close(p);
    return rc;
}

static hm_status measure(struct bench *b, bool bf16, struct hm_error *err)
{
    double seconds[PARTS + 1];
    hm_status rc = HM_OK;
    make_pairs(b, bf16);
    for (size_t pair = 0; pair < b->pairs && !rc; pair++)
        for (size_t repeat = 0; repeat < b->repeats && !rc; repeat++) {
            rc = certify(b, pair, false, seconds, err);
            for (size_t i = 0; i <= PARTS; i++)
                if (repeat == 0 || seconds[i] < b->filter[bf16][i][pair]) b->filter[bf16][i][pair] = seconds[i];
        }
    for (size_t pair = 0; pair < b->pairs && !rc && b->mpfr; pair++) {
        rc = certify(b, pair, true, seconds, err);
        b->mpfr_seconds[bf16][pair] = seconds[PARTS];
        b->share[bf16][pair] = seconds[PARTS] / b->filter[bf16][PARTS][pair];
    }
    return rc;
}

// ---- printing

static void print_table(const struct bench *b)
{
    printf("one pair of rows, %zu logits each, m = %zu, one core; medians of %zu pairs\n\n", b->vocab, b->m, b->pairs);
    printf("%-34s %14s %14s\n", "", "bf16 values", "float32");
    for (size_t i = 0; i <= PARTS; i++)
        printf("%-34s %11.1f us %11.1f us\n", i < PARTS ? part_names[i] : "the certificate",
               1e6 * hm_median(b->filter[1][i], b->pairs), 1e6 * hm_median(b->filter[0][i], b->pairs));
    if (b->mpfr) {
        printf("%-34s %11.1f ms %11.1f ms\n", "the same in MPFR, 128 bits and up",
               1e3 * hm_median(b->mpfr_seconds[1], b->pairs), 1e3 * hm_median(b->mpfr_seconds[0], b->pairs));
        printf("%-34s %13.0fx %13.0fx\n", "ratio", hm_median(b->share[1], b->pairs), hm_median(b->share[0], b->pairs));
    }
    printf("\nquestions left to MPFR: %llu of %llu\n", (unsigned long long)b->undecided,
           (unsigned long long)(b->answered + b->undecided));
}

static hm_status print_json(const struct bench *b, struct hm_error *err)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "vocab", (double)b->vocab);
    cJSON_AddNumberToObject(object, "m", (double)b->m);
    cJSON_AddNumberToObject(object, "pairs", (double)b->pairs);
    for (int bf16 = 1; bf16 >= 0; bf16--) {
        static const char *const keys[PARTS] = {"rows_us", "pair_us", "claims_us"};
        cJSON *side = cJSON_AddObjectToObject(object, bf16 ? "bf16" : "f32");
        for (size_t i = 0; i < PARTS; i++)
            cJSON_AddNumberToObject(side, keys[i], 1e6 * hm_median(b->filter[bf16][i], b->pairs));
        cJSON_AddNumberToObject(side, "filter_us", 1e6 * hm_median(b->filter[bf16][PARTS], b->pairs));
        if (!b->mpfr) continue;
        cJSON_AddNumberToObject(side, "mpfr128_us", 1e6 * hm_median(b->mpfr_seconds[bf16], b->pairs));
        cJSON_AddNumberToObject(side, "ratio_mpfr128", hm_median(b->share[bf16], b->pairs));
    }
    cJSON_AddNumberToObject(object, "decisions", (double)(b->answered + b->undecided));
    cJSON_AddNumberToObject(object, "undecided", (double)b->undecided);
    return hm_cli_print_json(object, err);
}

// ---- the command

static hm_status parse(int argc, char **argv, struct bench *b, bool *wants_help, struct hm_error *err)
{
    static const struct option flags[] = {{"vocab", required_argument, NULL, 'v'},  {"pairs", required_argument, NULL, 'p'},
                                          {"repeat", required_argument, NULL, 'n'}, {"m", required_argument, NULL, 'm'},
                                          {"no-mpfr", no_argument, NULL, 'x'},      {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int flag;
    hm_status rc = HM_OK;
    opterr = 0;
    optind = 1;
    while (!rc && (flag = getopt_long(argc, argv, ":h", flags, NULL)) != -1) {
        switch (flag) {
        case 'v': rc = hm_flag_size("vocab", optarg, 2, 1 << 22, &b->vocab, err); break;
        case 'p': rc = hm_flag_size("pairs", optarg, 1, MOST_PAIRS, &b->pairs, err); break;
        case 'n': rc = hm_flag_size("repeat", optarg, 1, 1000, &b->repeats, err); break;
        case 'm': rc = hm_flag_size("m", optarg, 1, 1000000, &b->m, err); break;
        case 'x': b->mpfr = false; break;
        case 'j': b->json = true; break;
        case 'h': *wants_help = true; return HM_OK;
        case ':': return hm_fail(err, HM_USAGE, "%s: expected a value after it", argv[optind - 1]);
        default: return hm_fail(err, HM_USAGE, "unknown flag \"%s\" (hallmark bench rows --help)", argv[optind - 1]);
        }
    }
    if (!rc && optind != argc) return hm_fail(err, HM_USAGE, "expected flags only, found \"%s\"", argv[optind]);
    return rc;
}

static hm_status prepare(struct bench *b, struct hm_error *err)
{
    hm_status rc = HM_OK;
    size_t logits;
    hm_rational_set_int(&b->temperature, 1, 1);
    for (; b->rules < RULES && !rc; b->rules += !rc) rc = hm_rule_parse(rule_texts[b->rules], &b->rule[b->rules], err);
    if (rc) return rc;
    if (hm_mul_size(b->pairs, b->vocab, &logits)) b->target = hm_calloc(logits, sizeof *b->target);
    if (b->target) b->draft = hm_calloc(logits, sizeof *b->draft);
    return b->draft ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for %zu pairs of %zu logits", b->pairs, b->vocab);
}

static void close_bench(struct bench *b)
{
    for (size_t i = 0; i < b->rules; i++) hm_rule_clear(&b->rule[i]);
    hm_rational_clear(&b->temperature);
    free(b->target);
    free(b->draft);
    free(b);
}

int hm_bench_rows(int argc, char **argv)
{
    struct hm_error err;
    bool wants_help = false;
    struct bench *b = hm_calloc(1, sizeof *b);
    if (!b) {
        hm_fail(&err, HM_MEMORY, "out of memory");
        return hm_cli_fail(&err);
    }
    b->vocab = 151936, b->pairs = 9, b->repeats = 15, b->m = 4, b->mpfr = true;
    hm_rational_init(&b->temperature);
    hm_status rc = parse(argc, argv, b, &wants_help, &err);
    if (wants_help) {
        fputs(help, stdout);
    } else {
        if (!rc) rc = prepare(b, &err);
        if (!rc) rc = measure(b, true, &err);
        if (!rc) rc = measure(b, false, &err);
        if (!rc && b->json) rc = print_json(b, &err);
        else if (!rc) print_table(b);
    }
    close_bench(b);
    return rc ? hm_cli_fail(&err) : HM_EXIT_OK;
}
