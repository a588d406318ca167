// Results of audits and their summary: see audit_result.h.
#include "cli/audit_result.h"

#include "base/json.h"
#include "base/memory.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIGURES = 6 }; // of struct hm_audit_counts

int hm_audit_worse(int a, int b)
{
    static const int badness[4] = {[HM_EXIT_OK] = 0, [HM_EXIT_UNDECIDED] = 1, [HM_EXIT_FINDING] = 2, [HM_EXIT_USAGE] = 3};
    return badness[a & 3] >= badness[b & 3] ? a : b;
}

static void counts_to_array(const struct hm_audit_counts *c, uint64_t out[FIGURES])
{
    const uint64_t all[FIGURES] = {c->yes, c->no, c->open, c->judged, c->certified, c->uncertain};
    memcpy(out, all, sizeof all);
}

cJSON *hm_audit_result_json(const struct hm_audit_result *r, size_t claims)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "exit", r->exit);
    cJSON_AddNumberToObject(object, "sequences", (double)r->sequences);
    cJSON_AddNumberToObject(object, "tokens", (double)r->tokens);
    cJSON_AddNumberToObject(object, "with_row", (double)r->with_row);
    cJSON_AddNumberToObject(object, "findings", (double)r->findings);
    cJSON_AddNumberToObject(object, "undecided", (double)r->undecided);
    cJSON *list = cJSON_AddArrayToObject(object, "claims");
    bool good = list != NULL;
    for (size_t i = 0; i < claims && good; i++) {
        uint64_t figure[FIGURES];
        cJSON *counts = cJSON_CreateArray();
        counts_to_array(&r->claim[i], figure);
        for (int j = 0; j < FIGURES; j++) cJSON_AddItemToArray(counts, cJSON_CreateNumber((double)figure[j]));
        good = cJSON_GetArraySize(counts) == FIGURES && cJSON_AddItemToArray(list, counts);
    }
    if (good && cJSON_GetArraySize(object) == 7) return object;
    cJSON_Delete(object);
    return NULL;
}

// ---- the summary

struct summary {
    size_t inputs, taken, clean;
    struct hm_audit_result total;
    size_t rules, ms;
    const char *rule[HM_MOST_RULES], *m[HM_MOST_M]; // in `words`
    char *words;
    bool json;
};

// Copies the value of "--flag=value" to where the copies end.
static char *value_of(const char *argument, const char *flag, char **end)
{
    size_t n = strlen(flag);
    if (strncmp(argument, flag, n) != 0) return NULL;
    char *copy = *end;
    *end = stpcpy(copy, argument + n) + 1;
    return copy;
}

static hm_status summary_open(char *const *arguments, size_t count, size_t inputs, void **out, struct hm_error *err)
{
    size_t size = 1;
    for (size_t i = 0; i < count; i++) size += strlen(arguments[i]) + 1;
    struct summary *s = *out = hm_calloc(1, sizeof *s);
    if (s) s->words = malloc(size);
    if (!s || !s->words) return hm_fail(err, HM_MEMORY, "out of memory for a summary");
    char *end = s->words, *value;
    s->inputs = inputs;
    for (size_t i = 0; i < count; i++) {
        if (s->rules < HM_MOST_RULES && (value = value_of(arguments[i], "--rule=", &end))) s->rule[s->rules++] = value;
        else if (s->ms < HM_MOST_M && (value = value_of(arguments[i], "--m=", &end))) s->m[s->ms++] = value;
        s->json = s->json || strcmp(arguments[i], "--json") == 0;
    }
    if (s->rules && s->ms) return HM_OK;
    return hm_fail(err, HM_USAGE, "expected the arguments of an audit, found none with --rule and --m");
}

static hm_status read_count(const cJSON *in, const char *key, uint64_t *sum, struct hm_error *err)
{
    int64_t value = 0;
    hm_status rc = hm_json_integer("result", in, key, 0, (int64_t)1 << 53, &value, err);
    *sum += (uint64_t)value;
    return rc;
}

// [yes, no, open, judged, certified, uncertain]
static hm_status add_counts(const cJSON *array, struct hm_audit_counts *sum, struct hm_error *err)
{
    uint64_t *const into[FIGURES] = {&sum->yes, &sum->no, &sum->open, &sum->judged, &sum->certified, &sum->uncertain};
    const cJSON *item = cJSON_IsArray(array) && cJSON_GetArraySize(array) == FIGURES ? array->child : NULL;
    if (!item) return hm_fail(err, HM_FORMAT, "key \"claims\": expected arrays of %d counts", FIGURES);
    for (int i = 0; i < FIGURES; i++, item = item->next) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53))
            return hm_fail(err, HM_FORMAT, "key \"claims\": expected counts, found %s", hm_json_kind(item));
        *into[i] += (uint64_t)item->valuedouble;
    }
    return HM_OK;
}

static hm_status summary_add(void *summary, const char *input, const cJSON *result, struct hm_error *err)
{
    struct summary *s = summary;
    struct hm_audit_result *t = &s->total;
    int64_t code = 0;
    const cJSON *claims = NULL;
    (void)input;
    hm_status rc = hm_json_integer("result", result, "exit", 0, 3, &code, err);
    if (!rc) rc = read_count(result, "sequences", &t->sequences, err);
    if (!rc) rc = read_count(result, "tokens", &t->tokens, err);
    if (!rc) rc = read_count(result, "with_row", &t->with_row, err);
    if (!rc) rc = read_count(result, "findings", &t->findings, err);
    if (!rc) rc = read_count(result, "undecided", &t->undecided, err);
    if (!rc) rc = hm_json_array("result", result, "claims", &claims, err);
    if (!rc && (size_t)cJSON_GetArraySize(claims) != s->rules * s->ms)
        rc = hm_fail(err, HM_FORMAT, "key \"claims\": expected %zu entries, found %d", s->rules * s->ms,
                     cJSON_GetArraySize(claims));
    const cJSON *claim = rc ? NULL : claims->child;
    for (size_t i = 0; claim && !rc; claim = claim->next) rc = add_counts(claim, &t->claim[i++], err);
    t->exit = s->taken++ ? hm_audit_worse(t->exit, (int)code) : (int)code;
    s->clean += code == HM_EXIT_OK;
    return rc;
}

static void print_claim(const struct summary *s, size_t i, FILE *to)
{
    const struct hm_audit_counts *c = &s->total.claim[i];
    fprintf(to, "%s, m = %s:", s->rule[i / s->ms], s->m[i % s->ms]);
    if (c->yes + c->no + c->open)
        fprintf(to, " accepts %" PRIu64 " of %" PRIu64 " tokens, %" PRIu64 " undecided", c->yes, c->yes + c->no + c->open,
                c->open);
    if (c->judged)
        fprintf(to, "%s certified %" PRIu64 " of %" PRIu64, c->yes + c->no + c->open ? ";" : "", c->certified, c->judged);
    if (!(c->yes + c->no + c->open + c->judged)) fputs(" no emitted token and no draft to judge", to);
    fputc('\n', to);
}

static int summary_finish(void *summary, FILE *to)
{
    struct summary *s = summary;
    const struct hm_audit_result *t = &s->total;
    if (to && s->json) {
        fprintf(to, "{\"kind\":\"end\",\"inputs\":%zu,\"tokens\":%" PRIu64 ",\"findings\":%" PRIu64 ",\"exit\":%d}\n",
                s->taken, t->tokens, t->findings, t->exit);
    } else if (to && s->inputs > 1) {
        fprintf(to, "\ninputs     %zu; %zu with nothing to say about\n", s->taken, s->clean);
        fprintf(to, "tokens     %" PRIu64 ", %" PRIu64 " with evidence; %" PRIu64 " finding%s\n", t->tokens, t->with_row,
                t->findings, t->findings == 1 ? "" : "s");
        for (size_t i = 0; i < s->rules * s->ms; i++) print_claim(s, i, to);
    }
    return t->exit;
}

static void summary_close(void *summary)
{
    struct summary *s = summary;
    if (s) free(s->words);
    free(s);
}

const struct hm_parts_summary hm_audit_summary = {"audit", summary_open, summary_add, summary_finish, summary_close};
