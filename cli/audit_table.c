// The table of an audit: see audit_table.h. Quantiles come from histograms whose edges are on the honest side: a drafter
// that stays below a printed bound is certain to cover at least that share of the rows.
#include "cli/audit_table.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LAWS = 2, THREE = 3 };
static const char *const level_key[THREE] = {"klf", "klr", "tv"};
static const char *const distance_name[THREE] = {"KL(p||q)", "KL(q||p)", "TV"};
static const char *const law_key[LAWS] = {"iid", "topk"};

// How large a distance must be before coverage can fail, over the rows.
struct bound {
    struct hm_histogram lower; // of lower ends
    double sum;                // of the middles of finite ones
    uint64_t finite;
    uint64_t certified;        // rows certified by this distance
};

struct section { // one rule and m
    uint64_t yes, no, open;                      // the emitted token is accepted, is not, undecided
    uint64_t counted;                            // tokens whose k is decided
    uint64_t judged, certified, uncertain;       // rows with a draft; certified by any of KL and TV; open which
    uint64_t covered, covered_known;             // of the latter, where it was asked
    uint64_t vacuous;                            // of the rows judged
    uint64_t restricted, restricted_certified;   // rows whose draft lacks tokens, by docs/theory.md §4
    struct bound *bound;                         // [THREE + divergences]
    uint64_t laws[LAWS];                         // rows with the law
    double accept[LAWS], e[LAWS];                // sums
};

struct hm_audit_table {
    const struct hm_audit_options *options;
    const char *noun, *tokens;
    size_t sections, bounds;
    struct section *section; // [rule_count * m_count], rules outer
    char *divergence[HM_MOST_DIVERGENCES];
    uint64_t rows;
};

hm_status hm_audit_table_open(const struct hm_audit_options *options, const char *noun, const char *tokens,
                              struct hm_audit_table **out, struct hm_error *err)
{
    struct hm_audit_table *t = *out = hm_calloc(1, sizeof *t);
    bool good = t != NULL;
    if (good) {
        t->options = options;
        t->noun = noun;
        t->tokens = tokens;
        t->bounds = THREE + options->divergence_count;
        t->section = hm_calloc(options->rule_count * options->m_count, sizeof *t->section);
        good = t->section != NULL;
    }
    for (size_t i = 0; good && i < options->divergence_count; i++)
        good = (t->divergence[i] = hm_divergence_text(&options->divergence[i])) != NULL;
    while (good && t->sections < options->rule_count * options->m_count)
        good = (t->section[t->sections++].bound = hm_calloc(t->bounds, sizeof(struct bound))) != NULL;
    if (good) return HM_OK;
    hm_audit_table_close(t);
    *out = NULL;
    return hm_fail(err, HM_MEMORY, "out of memory for a table");
}

void hm_audit_table_close(struct hm_audit_table *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->sections; i++) free(t->section[i].bound);
    for (size_t i = 0; i < HM_MOST_DIVERGENCES; i++) free(t->divergence[i]);
    free(t->section);
    free(t);
}

// ---- gathering

// An enclosure's ends; false when there is none.
static bool read_ival(const cJSON *in, const char *key, struct hm_ival *out)
{
    const cJSON *v = in ? hm_json_find(in, key) : NULL;
    if (cJSON_GetArraySize(v) != 2 || !cJSON_IsString(v->child) || !cJSON_IsString(v->child->next)) return false;
    *out = (struct hm_ival){strtod(v->child->valuestring, NULL), strtod(v->child->next->valuestring, NULL)};
    return true;
}

static bool says(const cJSON *in, const char *key, const char *word)
{
    const cJSON *v = in ? hm_json_find(in, key) : NULL;
    return cJSON_IsString(v) && strcmp(v->valuestring, word) == 0;
}

static bool is_yes(const cJSON *in, const char *key)
{
    return says(in, key, "yes");
}

static bool any_yes(const cJSON *certified)
{
    return is_yes(certified, level_key[0]) || is_yes(certified, level_key[1]) || is_yes(certified, level_key[2]);
}

static void add_level(struct bound *b, struct hm_ival level, bool certified)
{
    hm_histogram_add(&b->lower, level.lo);
    b->certified += certified;
    if (level.hi > 1e300) return;
    b->sum += level.lo + (level.hi - level.lo) / 2;
    b->finite++;
}

static void add_bound(struct bound *b, const cJSON *in, const char *key, const cJSON *certified, const char *verdict)
{
    struct hm_ival level;
    if (read_ival(in, key, &level)) add_level(b, level, is_yes(certified, verdict));
}

static void add_claim(struct hm_audit_table *t, struct section *s, const cJSON *claim)
{
    const cJSON *certified = hm_json_find(claim, "certified"), *restricted = hm_json_find(claim, "restricted");
    const cJSON *divergences = hm_json_find(claim, "divergences"), *laws = hm_json_find(claim, "laws");
    for (int i = 0; i < THREE; i++) add_bound(&s->bound[i], claim, level_key[i], certified, level_key[i]);
    for (size_t i = 0; i < t->options->divergence_count; i++) {
        const cJSON *d = divergences ? hm_json_find(divergences, t->divergence[i]) : NULL;
        add_bound(&s->bound[THREE + i], d, "star", d, "certified");
    }
    s->yes += is_yes(claim, "accepts");
    s->no += says(claim, "accepts", "no");
    s->open += says(claim, "accepts", "undecided");
    s->counted++;
    s->judged += cJSON_IsObject(certified);
    s->certified += any_yes(certified);
    s->vacuous += says(certified, level_key[0], "vacuous"); // all three are, or none
    s->covered += is_yes(claim, "covered");
    s->covered_known += hm_json_find(claim, "covered") != NULL;
    s->restricted += restricted != NULL;
    if (restricted) s->restricted_certified += any_yes(hm_json_find(restricted, "certified"));
    for (int i = 0; i < LAWS; i++) {
        struct hm_ival accept, e;
        const cJSON *law = laws ? hm_json_find(laws, law_key[i]) : NULL;
        if (!read_ival(law, "accept", &accept) || !read_ival(law, "e", &e)) continue;
        s->accept[i] += accept.lo;
        s->e[i] += e.hi;
        s->laws[i]++;
    }
}

hm_status hm_audit_table_add(struct hm_audit_table *t, const char *json, size_t size, struct hm_error *err)
{
    cJSON *record;
    size_t i = 0;
    hm_status rc = hm_json_parse("row record", json, size, &record, err);
    if (rc) return rc;
    t->rows++;
    const cJSON *claims = hm_json_find(record, "claims");
    for (const cJSON *claim = claims ? claims->child : NULL; claim && i < t->sections; claim = claim->next)
        add_claim(t, &t->section[i++], claim);
    cJSON_Delete(record);
    return HM_OK;
}

static void add_verdicts(struct section *s, const enum hm_certified certified[THREE])
{
    bool any = false, open = false;
    for (int i = 0; i < THREE; i++) {
        any = any || certified[i] == HM_CERT_YES;
        open = open || certified[i] == HM_CERT_UNDECIDED;
    }
    s->judged++;
    s->certified += any;
    s->uncertain += open && !any;
    s->vacuous += certified[0] == HM_CERT_VACUOUS;
}

void hm_audit_table_add_token(struct hm_audit_table *t, const struct hm_audit_claim *claims)
{
    t->rows++;
    for (size_t i = 0; i < t->sections; i++) {
        const struct hm_audit_claim *c = &claims[i];
        struct section *s = &t->section[i];
        const struct hm_ival level[THREE] = {c->level.klf, c->level.klr, c->level.tv};
        for (int j = 0; j < THREE; j++) add_level(&s->bound[j], level[j], c->judged && c->certified[j] == HM_CERT_YES);
        s->yes += c->asked && c->accepts == HM_YES;
        s->no += c->asked && c->accepts == HM_NO;
        s->open += c->asked && c->accepts == HM_UNDECIDED;
        s->counted += c->k.least == c->k.most;
        if (c->judged) add_verdicts(s, c->certified);
    }
}

void hm_audit_table_counts(const struct hm_audit_table *t, struct hm_audit_counts *out)
{
    for (size_t i = 0; i < t->sections; i++) {
        const struct section *s = &t->section[i];
        out[i] = (struct hm_audit_counts){s->yes, s->no, s->open, s->judged, s->certified, s->uncertain};
    }
}

// ---- printing

enum { NUMBER_TEXT = 32 };

// A share in percent, rounded down: 100.0% is all of them.
static const char *percent(uint64_t part, uint64_t whole, char out[NUMBER_TEXT])
{
    uint64_t tenths = whole ? part * 1000 / whole : 0;
    snprintf(out, NUMBER_TEXT, "%llu.%llu%%", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10));
    return out;
}

// A number >= 0 with this many digits, not above (up: not below) what it stands for.
static const char *rounded(double value, int digits, bool up, char out[NUMBER_TEXT])
{
    double shrink = pow(10, -digits), v = value;
    for (;; v *= up ? 1 + shrink : 1 - shrink) { // at least a tenth of the last digit's unit
        snprintf(out, NUMBER_TEXT, "%.*g", digits, v);
        double printed = strtod(out, NULL);
        if (isnan(value) || (up ? printed >= value : printed <= value)) return out;
    }
}

static void print_number(FILE *to, double value)
{
    char text[NUMBER_TEXT];
    if (isinf(value)) fprintf(to, "%12s", "any");
    else if (value == 0) fprintf(to, "%12s", "none");
    else fprintf(to, "%12s", rounded(value, 3, false, text));
}

// The value that at least the share of the rows reach, by a bin's lower edge.
static double reached_by(const struct hm_histogram *h, unsigned share)
{
    return hm_histogram_lower(h, hm_histogram_rank(h, 100 - share, 100));
}

// A line that has a verdict only.
static void print_share(FILE *to, const char *label, uint64_t part, uint64_t whole)
{
    char text[NUMBER_TEXT];
    fprintf(to, "  %-65s%10s\n", label, percent(part, whole, text));
}

static void print_bounds(const struct hm_audit_table *t, const struct section *s, FILE *to)
{
    static const unsigned shares[] = {90, 50, 10};
    char text[NUMBER_TEXT];
    fprintf(to, "  to cover at least%*s%%%*s%%%*s%%%12s%s\n", 11, "90", 11, "50", 11, "10", "mean",
            s->judged ? "  certified" : "");
    for (size_t i = 0; i < t->bounds; i++) {
        const struct bound *b = &s->bound[i];
        if (b->lower.count == 0) continue;
        fprintf(to, "  %-18s", i < THREE ? distance_name[i] : t->divergence[i - THREE]);
        for (int j = 0; j < 3; j++) print_number(to, reached_by(&b->lower, shares[j]));
        if (b->finite) print_number(to, b->sum / (double)b->finite);
        else fprintf(to, "%12s", "");
        if (s->judged) fprintf(to, "%11s", percent(b->certified, s->judged, text));
        fputc('\n', to);
    }
}

static void print_verdicts(const struct section *s, FILE *to)
{
    char label[80], accept[NUMBER_TEXT], e[NUMBER_TEXT];
    print_share(to, "any of the first three", s->certified, s->judged);
    snprintf(label, sizeof label, "on the draft's own tokens, of %llu row%s where it lacks some",
             (unsigned long long)s->restricted, s->restricted == 1 ? "" : "s");
    if (s->restricted) print_share(to, label, s->restricted_certified, s->restricted);
    if (s->uncertain) print_share(to, "left open by the evidence", s->uncertain, s->judged);
    if (s->covered_known) print_share(to, "covered", s->covered, s->judged);
    if (s->vacuous) print_share(to, "vacuous: too few tokens to reject, covered by any draft", s->vacuous, s->judged);
    for (int i = 0; i < LAWS; i++)
        if (s->laws[i])
            fprintf(to, "  law %s: accepts at least %s, at most %s from the target's in TV (means)\n", law_key[i],
                    rounded(s->accept[i] / (double)s->laws[i], 4, false, accept),
                    rounded(s->e[i] / (double)s->laws[i], 3, true, e));
}

// What evidence says of emitted tokens.
static void print_acceptance(const struct section *s, const char *tokens, uint64_t rows, FILE *to)
{
    uint64_t asked = s->yes + s->no + s->open;
    if (!asked) return;
    fprintf(to, "  %s accepted: %llu yes, %llu no, %llu undecided", tokens, (unsigned long long)s->yes,
            (unsigned long long)s->no, (unsigned long long)s->open);
    if (s->counted < rows) fprintf(to, "; k known at %llu of %llu", (unsigned long long)s->counted, (unsigned long long)rows);
    fputc('\n', to);
}

void hm_audit_table_print(const struct hm_audit_table *t, FILE *to)
{
    if (t->rows == 0) return;
    fprintf(to, "\nWhatever else is true of it, a drafter whose distance stays below these bounds\n"
                "at every %s proposes an accepted token at that share of the %ss:\n", t->noun, t->noun);
    for (size_t i = 0; i < t->sections; i++) {
        char *rule = hm_rule_text(&t->options->rule[i / t->options->m_count]);
        fprintf(to, "\n%s, m = %u\n", rule ? rule : "?", t->options->m[i % t->options->m_count]);
        free(rule);
        print_acceptance(&t->section[i], t->tokens, t->rows, to);
        print_bounds(t, &t->section[i], to);
        if (t->section[i].judged) print_verdicts(&t->section[i], to);
    }
}
