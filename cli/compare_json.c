// `hallmark compare --json`: one object a line, as docs/compare.md "What it prints" lists them.
#include "cli/command.h"
#include "cli/compare_run.h"
#include "cli/print.h"
#include "reports/number.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

// ---- fields

static void add_id(cJSON *to, const char *key, int32_t id)
{
    if (id >= 0) cJSON_AddNumberToObject(to, key, id);
    else cJSON_AddNullToObject(to, key);
}

static void add_ival_if(cJSON *to, const char *key, bool known, struct hm_ival x)
{
    if (known) hm_json_add_ival(to, key, x);
    else cJSON_AddNullToObject(to, key);
}

static cJSON *begin(const char *kind)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", kind);
    return object;
}

static void add_prompt(cJSON *to, const struct hm_spool_prompt *prompt)
{
    cJSON_AddNumberToObject(to, "prompt", prompt->number);
    hm_json_add_text(to, "id", prompt->id);
}

// ---- records

static void add_fork_side(cJSON *to, const char *key, const struct hm_fork_side *side)
{
    cJSON *object = cJSON_AddObjectToObject(to, key);
    add_id(object, "token", side->token);
    hm_json_add_text(object, "text", side->token_text);
    add_id(object, "first", side->first);
    hm_json_add_text(object, "first_text", side->first_text);
    add_id(object, "second", side->second);
    hm_json_add_text(object, "second_text", side->second_text);
    add_ival_if(object, "gap", side->has_row, side->gap);
    add_ival_if(object, "radius", side->has_row, side->radius);
    if (side->lacks) cJSON_AddStringToObject(object, "missing", hm_missing_name(side->missing));
}

static cJSON *fork_object(const struct hm_compare_judged *j)
{
    const struct hm_fork *fork = &j->record->fork.fork;
    cJSON *object = begin("fork");
    add_prompt(object, j->prompt);
    hm_json_add_text(object, "category", j->prompt->category);
    if (j->record->fork.width > 0) cJSON_AddNumberToObject(object, "width", j->record->fork.width);
    else cJSON_AddNullToObject(object, "width");
    cJSON_AddNumberToObject(object, "t", fork->t);
    cJSON_AddStringToObject(object, "class", hm_fork_class_name(fork->kind));
    cJSON_AddStringToObject(object, "why", fork->why);
    hm_json_add_ival(object, "needs", fork->needs);
    add_ival_if(object, "noise", fork->has_noise, fork->noise);
    add_ival_if(object, "level", fork->has_level, fork->level);
    add_fork_side(object, "a", &fork->a);
    add_fork_side(object, "b", &fork->b);
    return object;
}

static cJSON *position_object(const char *kind, const struct hm_compare_judged *j)
{
    const struct hm_spool_position *p = &j->record->position;
    cJSON *object = begin(kind);
    add_prompt(object, j->prompt);
    cJSON_AddNumberToObject(object, "t", p->t);
    if (p->of_prompt) cJSON_AddTrueToObject(object, "of_prompt");
    hm_json_add_ival(object, "noise", p->noise.nats);
    hm_json_add_ival(object, "ulps", p->noise.ulps);
    if (strcmp(kind, "outlier") == 0) hm_json_add_ival(object, "level", j->level);
    hm_json_add_count(object, "shared", p->noise.shared);
    add_id(object, "most", p->noise.most);
    add_id(object, "least", p->noise.least);
    return object;
}

static cJSON *finding_object(const struct hm_spool_finding *f)
{
    char side[2] = {f->side, 0};
    cJSON *object = begin("finding");
    hm_json_add_finding(object, &f->finding, side);
    return object;
}

static hm_status print_record(void *user, const struct hm_compare_judged *j, struct hm_error *err)
{
    const struct hm_compare_run *run = user;
    hm_status rc = HM_OK;
    switch (j->record->kind) {
    case HM_SPOOL_FORK: return hm_cli_print_json(fork_object(j), err);
    case HM_SPOOL_FINDING: return hm_cli_print_json(finding_object(&j->record->finding), err);
    case HM_SPOOL_POSITION:
        if (run->options->positions) rc = hm_cli_print_json(position_object("position", j), err);
        return rc || !j->outlier ? rc : hm_cli_print_json(position_object("outlier", j), err);
    default: return HM_OK;
    }
}

// ---- the whole run

static void add_side(cJSON *to, const char *key, const struct hm_compare_side *side)
{
    if (!side->path) {
        cJSON_AddNullToObject(to, key);
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(to, key);
    hm_json_add_text(object, "file", side->path);
    cJSON_AddStringToObject(object, "format", hm_format_name(side->format));
    cJSON_AddStringToObject(object, "decided_by", side->decided_by);
}

static hm_status print_head(const struct hm_compare_run *run, struct hm_error *err)
{
    cJSON *object = begin("compare");
    add_side(object, "a", &run->side[0]);
    add_side(object, "b", &run->side[1]);
    if (run->model_name) hm_json_add_text(object, "model", run->model_name);
    else cJSON_AddNullToObject(object, "model");
    return hm_cli_print_json(object, err);
}

static hm_status print_missing(const struct hm_compare_run *run, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (int s = 0; s < 2; s++)
        for (int m = 0; m < HM_MISSINGS && !rc; m++) {
            if (!run->missing[s][m]) continue;
            cJSON *object = begin("missing");
            cJSON_AddStringToObject(object, "side", s ? "B" : "A");
            cJSON_AddStringToObject(object, "field", hm_missing_name((enum hm_missing)m));
            cJSON_AddStringToObject(object, "flag", hm_format_flag(run->side[s].format, (enum hm_missing)m));
            hm_json_add_count(object, "places", run->missing[s][m]);
            rc = hm_cli_print_json(object, err);
        }
    return rc;
}

static hm_status print_temperatures(const struct hm_compare_run *run, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (int s = 0; s < 2 && !rc; s++) {
        const struct hm_likelihood *l = &run->likelihood[s];
        if (!*run->claimed[s]) continue;
        cJSON *object = begin("temperature");
        cJSON_AddStringToObject(object, "side", s ? "B" : "A");
        cJSON_AddStringToObject(object, "claimed", run->claimed[s]);
        hm_json_add_count(object, "tokens", l->tokens);
        hm_json_add_count(object, "first", l->first);
        hm_json_add_count(object, "open", l->open);
        hm_json_add_count(object, "without", l->without);
        cJSON_AddRawToObject(object, "p_value", hm_number_json_up(hm_likelihood_p_value(l)).text);
        cJSON_AddBoolToObject(object, "refuted", run->refuted[s]);
        rc = hm_cli_print_json(object, err);
    }
    return rc;
}

static void add_histogram(cJSON *to, const struct hm_histogram *h)
{
    cJSON *list = cJSON_AddArrayToObject(to, "histogram");
    char text[HM_NUMBER_SIZE + 32];
    for (size_t i = 0; i <= HM_HISTOGRAM_BINS + 1; i++) {
        uint64_t count = i == 0 ? h->below : i <= HM_HISTOGRAM_BINS ? h->bin[i - 1] : h->above;
        double edge = i == 0 ? 0 : hm_histogram_edge(i - 1);
        if (!count) continue;
        snprintf(text, sizeof text, "[%s,%llu]", hm_number_json_down(edge).text, (unsigned long long)count);
        cJSON_AddItemToArray(list, cJSON_CreateRaw(text));
    }
}

static hm_status print_noise(const struct hm_compare_run *run, struct hm_error *err)
{
    struct hm_noise_quantile quantile[HM_NOISE_QUANTILES];
    cJSON *object = begin("noise");
    hm_json_add_count(object, "positions", run->noise.lower.count);
    cJSON_AddStringToObject(object, "type", hm_number_type_name(run->type));
    cJSON *all = cJSON_AddObjectToObject(object, "quantiles");
    hm_compare_quantiles(&run->noise, quantile);
    for (int i = 0; i < HM_NOISE_QUANTILES; i++) add_ival_if(all, quantile[i].name, run->noise.lower.count > 0, quantile[i].nats);
    add_histogram(object, &run->noise.upper);
    return hm_cli_print_json(object, err);
}

static hm_status print_groups(const struct hm_compare_run *run, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; i < run->groups && !rc; i++) {
        const struct hm_compare_group *g = run->group[i];
        struct hm_noise_quantile quantile[HM_NOISE_QUANTILES];
        cJSON *object = begin("group");
        cJSON_AddStringToObject(object, "by", g->of_width ? "width" : "category");
        if (g->of_width) cJSON_AddNumberToObject(object, "name", g->width);
        else hm_json_add_text(object, "name", g->name);
        hm_json_add_count(object, "prompts", g->prompts);
        hm_json_add_count(object, "forks", g->forks);
        hm_json_add_count(object, "unexplained", g->unexplained);
        hm_json_add_count(object, "positions", g->noise.lower.count);
        hm_compare_quantiles(&g->noise, quantile);
        add_ival_if(object, "noise_99.9", g->noise.lower.count > 0, quantile[3].nats);
        rc = hm_cli_print_json(object, err);
    }
    return rc;
}

static hm_status print_summary(const struct hm_compare_run *run, struct hm_error *err)
{
    cJSON *object = begin("summary");
    hm_json_add_count(object, "prompts", run->prompts);
    hm_json_add_count(object, "identical", run->identical);
    hm_json_add_count(object, "alone", run->pairs.alone);
    hm_json_add_count(object, "tokens", run->tokens);
    for (int c = HM_FORK_TIE; c < HM_FORK_CLASSES; c++)
        hm_json_add_count(object, hm_fork_class_name((enum hm_fork_class)c), run->classes[c]);
    hm_json_add_count(object, "outliers", run->outliers);
    hm_json_add_count(object, "findings", run->findings);
    cJSON_AddBoolToObject(object, "foreign", run->foreign);
    cJSON_AddNumberToObject(object, "shared_prefix", hm_compare_median(run));
    cJSON_AddNumberToObject(object, "exit", run->exit);
    return hm_cli_print_json(object, err);
}

hm_status hm_compare_print_json(struct hm_compare_run *run, struct hm_error *err)
{
    hm_status rc = print_head(run, err);
    if (!rc) rc = hm_compare_each(run, print_record, run, err);
    if (!rc) rc = print_missing(run, err);
    if (!rc) rc = print_temperatures(run, err);
    if (!rc) rc = print_noise(run, err);
    if (!rc) rc = print_groups(run, err);
    return rc ? rc : print_summary(run, err);
}
