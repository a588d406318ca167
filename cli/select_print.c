// Markdown, CSV and JSON of a study: see select_print.h. Names come from recordings, which nobody vouches for: control
// characters are shown as '?'.
#include "cli/select_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Markdown

static void put_text(const char *text, bool in_table)
{
    for (const char *c = text; *c; c++) {
        if (in_table && *c == '|') putchar('\\');
        putchar((unsigned char)*c < 32 || *c == 127 ? '?' : *c);
    }
}

static void put_number(double value, int digits)
{
    if (isnan(value)) fputs("-", stdout);
    else if (isinf(value)) fputs("never", stdout);
    else printf("%.*f", digits, value);
}

static const struct hm_study_cell *find(const struct hm_study_cell *cell, size_t count, const char *row, const char *column)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(cell[i].row, row) == 0 && strcmp(cell[i].column, column) == 0) return &cell[i];
    return NULL;
}

// Is this the first cell of its row, or of its column?
static bool opens_row(const struct hm_study_cell *cell, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(cell[j].row, cell[i].row) == 0) return false;
    return true;
}

static bool opens_column(const struct hm_study_cell *cell, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(cell[j].column, cell[i].column) == 0) return false;
    return true;
}

static void put_table(const struct hm_study_cell *cell, size_t count)
{
    printf("\n**%s**\n\n| |", cell->table);
    for (size_t i = 0; i < count; i++)
        if (opens_column(cell, i)) printf(" %s |", cell[i].column);
    fputs("\n|---|", stdout);
    for (size_t i = 0; i < count; i++)
        if (opens_column(cell, i)) fputs("---|", stdout);
    for (size_t i = 0; i < count; i++) {
        if (!opens_row(cell, i)) continue;
        fputs("\n| ", stdout);
        put_text(cell[i].row, true);
        fputs(" |", stdout);
        for (size_t j = 0; j < count; j++) {
            if (!opens_column(cell, j)) continue;
            const struct hm_study_cell *c = find(cell, count, cell[i].row, cell[j].column);
            putchar(' ');
            if (c) {
                put_number(c->value, c->digits);
                fputs(" [", stdout);
                put_number(c->low, c->digits);
                fputs(", ", stdout);
                put_number(c->high, c->digits);
                putchar(']');
            }
            fputs(" |", stdout);
        }
    }
    putchar('\n');
}

void hm_select_markdown_head(void)
{
    fputs("Means over recorded rounds, in brackets their 95 % intervals over prompts;\n"
          "docs/study.md says how each is computed.\n\n"
          "- E[A]: draft tokens accepted in a round, expected\n"
          "- Pr(C): how often a round is covered: its next context is the address of a\n"
          "  scored node, so the next round needs no pass for its root\n"
          "- E[L_T - A]: accepted tokens given up, of the L_T that an exhaustive walk of\n"
          "  the tree accepts\n"
          "- draft, root, depth:D, oracle: the tree is chosen by the draft's factors\n"
          "  alone, with the target's for the first 1 or D tokens, or with all of its\n"
          "- root-draw, pearl: the target's first token is drawn before the tree is\n"
          "  chosen, or after, and the tree keeps what is below it; pearl-equal: pearl\n"
          "  at root-draw's mean size\n"
          "- over draft: what is gained over the draft's choice\n"
          "- cache, same token, preceding: another row in place of the root's exact one:\n"
          "  the newest that ends in the same token, that one if it is of the round\n"
          "  before, the one that the root was drawn from; where available: at the\n"
          "  rounds that have such a row\n"
          "- B: nodes verified besides the root; -: no value; never: at no budget\n",
          stdout);
}

enum { FEW_PROMPTS = 10 };

static void put_warning(const struct hm_study_cell *cell, size_t count)
{
    size_t intervals = 0, few = 0, fewest = FEW_PROMPTS;
    for (size_t i = 0; i < count; i++) {
        if (isnan(cell[i].low)) continue;
        intervals++;
        if (cell[i].prompts >= FEW_PROMPTS) continue;
        few++;
        if (cell[i].prompts < fewest) fewest = cell[i].prompts;
    }
    if (few)
        printf("\n> **Few prompts:** %zu of the %zu intervals below rest on fewer than %d prompts\n"
               "> (the fewest: %zu); intervals over so few are too short.\n",
               few, intervals, FEW_PROMPTS, fewest);
}

// What the target's factors are.
static void put_temperature(const struct hm_study_summary *s)
{
    fputs("Decoded at temperature ", stdout);
    put_text(s->temperature, false);
    if (s->greedy) {
        fputs(strcmp(s->temperature, "0") == 0 ? "" : ", studied greedily", stdout);
        fputs(": the target takes its\nlikeliest token, so its factors are 0 or 1; total variations are those of rows\n"
              "at temperature ", stdout);
    } else fputs(": the target's factors are its probabilities\nat temperature ", stdout);
    put_text(s->probability_temperature, false);
    puts(".");
}

void hm_select_markdown(const struct hm_study_summary *s, const struct hm_study_cell *cell, size_t count)
{
    fputs("\n## ", stdout);
    put_text(s->target, false);
    fputs(", drafter ", stdout);
    put_text(s->drafter, false);
    printf(", %s\n\n", s->greedy ? "greedy" : "drawn");
    put_temperature(s);
    printf("%zu task%s, %zu prompt%s, %zu rounds, %.1f candidates in a pool.\n", s->tasks, s->tasks == 1 ? "" : "s",
           s->prompts, s->prompts == 1 ? "" : "s", s->rounds, s->candidates);
    put_warning(cell, count);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(cell[i].table, cell[i + n].table) == 0; n++) {}
        put_table(cell + i, n);
    }
}

// ---- CSV

static void put_field(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++) {
        if (*c == '"') putchar('"');
        putchar((unsigned char)*c < 32 || *c == 127 ? '?' : *c);
    }
    fputs("\",", stdout);
}

void hm_select_csv_head(void)
{
    puts("target,drafter,temperature,choice,group,table,row,column,value,low,high");
}

void hm_select_csv(const struct hm_study_summary *s, const struct hm_study_cell *cell, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_field(s->target);
        put_field(s->drafter);
        put_field(s->temperature);
        printf("%s,%d,", s->greedy ? "greedy" : "drawn", cell[i].group);
        put_field(cell[i].table);
        put_field(cell[i].row);
        put_field(cell[i].column);
        printf("%.17g,%.17g,%.17g\n", cell[i].value, cell[i].low, cell[i].high);
    }
}

static void put_substitute(const struct hm_substitute *s, int32_t token, int64_t level)
{
    if (s->address == HM_ADDRESS_NONE || level < 0) {
        fputs(",,,,,", stdout);
        return;
    }
    printf(",%d,%" PRIu32 ",%.17g,%.17g,%d", (int)s->address, s->age, s->tv, s->p[level], s->argmax == token);
}

void hm_select_candidates_head(void)
{
    puts("target,drafter,task,temperature,prompt,category,turn,sequence,round,t,length,candidate,parent,token,logq,p,"
         "likeliest,"
         "cached,cached_age,cached_tv,cached_p,cached_likeliest,"
         "preceding,preceding_age,preceding_tv,preceding_p,preceding_likeliest");
}

hm_status hm_select_candidates(struct hm_recording *recording, struct hm_error *err)
{
    const struct hm_recording_header *h = hm_recording_head(recording);
    const struct hm_recording_sequence *s;
    const struct hm_recording_round *r;
    for (;;) {
        hm_status rc = hm_recording_next(recording, &s, &r, err);
        if (rc || !r) return rc;
        int64_t level = 0;
        for (size_t i = 0; i < r->count; i++) {
            const char *const texts[] = {h->target, h->drafter, h->task, h->temperature, s->id, s->category};
            for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) put_field(texts[j]);
            printf("%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%zu,%" PRId32 ",%" PRId32 ",%.9g,%.17g,%d",
                   s->turn, r->sequence, r->round, r->t, r->length, i, r->parent[i], r->token[i], (double)r->logq[i],
                   r->p[i], r->argmax[r->parent[i] + 1] == r->token[i]);
            int64_t place = r->parent[i] < 0 ? level++ : -1;
            put_substitute(&r->cached, r->token[i], place);
            put_substitute(&r->preceding, r->token[i], place);
            putchar('\n');
        }
    }
}

// ---- JSON

static bool add_number(cJSON *object, const char *key, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, key, value) != NULL
                           : cJSON_AddNullToObject(object, key) != NULL;
}

static bool add_cell(cJSON *cells, const struct hm_study_cell *c)
{
    cJSON *cell = cJSON_CreateObject();
    if (!cell || !cJSON_AddItemToArray(cells, cell)) return false;
    return cJSON_AddNumberToObject(cell, "group", c->group) && cJSON_AddStringToObject(cell, "table", c->table) &&
           cJSON_AddStringToObject(cell, "row", c->row) && cJSON_AddStringToObject(cell, "column", c->column) &&
           add_number(cell, "value", c->value) && add_number(cell, "low", c->low) && add_number(cell, "high", c->high);
}

hm_status hm_select_json(const struct hm_study_summary *s, const struct hm_study_cell *cell, size_t count,
                         cJSON *studies, struct hm_error *err)
{
    cJSON *study = cJSON_CreateObject();
    bool good = study && cJSON_AddItemToArray(studies, study) && cJSON_AddStringToObject(study, "target", s->target) &&
                cJSON_AddStringToObject(study, "drafter", s->drafter) &&
                cJSON_AddStringToObject(study, "temperature", s->temperature) &&
                cJSON_AddStringToObject(study, "probability_temperature", s->probability_temperature) &&
                cJSON_AddStringToObject(study, "choice", s->greedy ? "greedy" : "drawn") &&
                cJSON_AddNumberToObject(study, "tasks", (double)s->tasks) &&
                cJSON_AddNumberToObject(study, "prompts", (double)s->prompts) &&
                cJSON_AddNumberToObject(study, "rounds", (double)s->rounds) &&
                cJSON_AddNumberToObject(study, "candidates", s->candidates);
    cJSON *cells = good ? cJSON_AddArrayToObject(study, "figures") : NULL;
    for (size_t i = 0; i < count && cells; i++)
        if (!add_cell(cells, &cell[i])) cells = NULL;
    return cells ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for JSON");
}
