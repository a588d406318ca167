// The JSON report on findings (findings.h).
#include "reports/json.h"
#include "reports/number.h"

static unsigned long long count(uint64_t n)
{
    return n;
}

static void put_number(struct hm_output *o, const char *key, const struct hm_finding_number *n, const char *after)
{
    hm_json_ends(o, key, n->has, (struct hm_ival){n->lo, n->hi}, after);
}

static void put_id(struct hm_output *o, const char *key, int64_t id, const char *after)
{
    if (id >= 0)
        hm_putf(o, "\"%s\":%lld%s", key, (long long)id, after);
    else
        hm_putf(o, "\"%s\":null%s", key, after);
}

static void put_file(struct hm_output *o, const struct hm_findings_file *f)
{
    hm_put(o, "{");
    hm_json_text(o, "file", f->path, ",");
    hm_putf(o, "\"kind\":\"%s\",\"complete\":%s,\"agrees\":%s,\"lines\":%llu,\"unknown_lines\":%llu,",
            f->comparison ? "comparison" : "audit", f->has_summary ? "true" : "false",
            hm_findings_doubtful(f) ? "false" : "true", count(f->lines), count(f->unknown));
    hm_json_text(o, "a", f->comparison ? f->a : NULL, ",");
    hm_json_text(o, "b", f->comparison ? f->b : NULL, ",");
    hm_putf(o, "\"prompts\":%llu,\"identical\":%llu,\"sequences\":%llu,\"tokens\":%llu,\"with_row\":%llu}",
            count(f->prompts), count(f->identical), count(f->sequences), count(f->tokens), count(f->with_row));
}

static void put_side(struct hm_output *o, const char *key, const struct hm_fork_side_shown *s, const char *after)
{
    hm_putf(o, "\"%s\":{", key);
    put_id(o, "token", s->token, ",");
    hm_json_text(o, "text", s->token_text, ",");
    put_id(o, "first", s->first, ",");
    hm_json_text(o, "first_text", s->first_text, ",");
    put_id(o, "second", s->second, ",");
    hm_json_text(o, "second_text", s->second_text, ",");
    put_number(o, "gap", &s->gap, ",");
    put_number(o, "radius", &s->radius, "}");
    hm_put(o, after);
}

static void put_forks(struct hm_output *o, const struct hm_findings *f)
{
    bool any = false;
    hm_put(o, "\"forks\":{");
    for (size_t c = 0; c < HM_FORK_WORDS; c++)
        hm_putf(o, "%s\"%s\":%llu", c ? "," : "", hm_fork_word((enum hm_fork_word)c), count(f->forks[c]));
    hm_put(o, "},\n\"fork_list\":[");
    for (size_t c = 0; c < HM_FORK_WORDS; c++)
        for (size_t i = 0; i < f->fork_listed[c]; i++) {
            const struct hm_fork_shown *k = &f->fork[c][i];
            hm_put(o, any ? ",\n{" : "{");
            any = true;
            hm_json_text(o, "file", f->file[k->file].path, ",");
            hm_putf(o, "\"class\":\"%s\",", hm_fork_word((enum hm_fork_word)c));
            put_id(o, "prompt", k->prompt, ",");
            hm_json_text(o, "id", k->id, ",");
            hm_json_text(o, "category", k->category, ",");
            put_id(o, "t", k->t, ",");
            put_number(o, "needs", &k->needs, ",");
            put_number(o, "noise", &k->noise, ",");
            put_number(o, "level", &k->level, ",");
            put_side(o, "a", &k->a, ",");
            put_side(o, "b", &k->b, ",");
            hm_json_text(o, "why", k->why, "}");
        }
    hm_put(o, "],\n");
}

static void put_kinds(struct hm_output *o, const struct hm_findings *f)
{
    bool any = false;
    hm_put(o, "\"kinds\":[");
    for (size_t i = 0; i < f->kinds; i++) {
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "finding", f->kind[i].name, ",");
        hm_putf(o, "\"count\":%llu}", count(f->kind[i].count));
    }
    hm_put(o, "],\n\"finding_list\":[");
    for (size_t i = 0; i < f->kinds; i++)
        for (size_t k = 0; k < f->kind[i].listed; k++) {
            const struct hm_finding_shown *s = &f->kind[i].list[k];
            hm_put(o, any ? ",\n{" : "{");
            any = true;
            hm_json_text(o, "file", f->file[s->file].path, ",");
            hm_json_text(o, "finding", f->kind[i].name, ",");
            hm_json_text(o, "side", s->side, ",");
            put_id(o, "input", s->input, ",");
            put_id(o, "sequence", s->sequence, ",");
            put_id(o, "t", s->t, ",");
            hm_json_text(o, "where", s->where, ",");
            hm_json_text(o, "message", s->message, "}");
        }
    hm_put(o, "],\n");
}

static void put_noise(struct hm_output *o, const struct hm_findings *f)
{
    static const char *const names[] = {"q50", "q90", "q99", "q999", "max"};
    hm_put(o, "\"noise\":[");
    for (size_t i = 0; i < f->noises; i++) {
        const struct hm_noise_shown *n = &f->noise[i];
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "file", f->file[n->file].path, ",");
        hm_json_text(o, "type", n->type, ",");
        hm_putf(o, "\"positions\":%llu,", count(n->positions));
        for (size_t q = 0; q < 5; q++) put_number(o, names[q], &n->quantile[q], ",");
        hm_put(o, "\"histogram\":[");
        for (size_t b = 0; b < n->bins; b++)
            hm_putf(o, "%s{\"from\":%s,\"count\":%llu}", b ? "," : "", hm_number_json_down(n->bin[b].edge).text,
                    count(n->bin[b].count));
        hm_put(o, "]}");
    }
    hm_put(o, "],\n");
}

static void put_rest(struct hm_output *o, const struct hm_findings *f)
{
    hm_put(o, "\"outlier_list\":[");
    for (size_t i = 0; i < f->outliers_listed; i++) {
        const struct hm_outlier_shown *k = &f->outlier[i];
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "file", f->file[k->file].path, ",");
        put_id(o, "prompt", k->prompt, ",");
        hm_json_text(o, "id", k->id, ",");
        put_id(o, "t", k->t, ",");
        put_number(o, "noise", &k->noise, ",");
        put_number(o, "ulps", &k->ulps, ",");
        put_number(o, "level", &k->level, "}");
    }
    hm_put(o, "],\n\"temperatures\":[");
    for (size_t i = 0; i < f->temperatures; i++) {
        const struct hm_finding_temperature *t = &f->temperature[i];
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "side", t->side, ",");
        hm_json_text(o, "claimed", t->claimed, ",");
        hm_putf(o, "\"tokens\":%llu,\"first\":%llu,\"p_value_upper\":%s,\"refuted\":%s}", count(t->tokens), count(t->first),
                t->p_value.has ? hm_number_json_up(t->p_value.hi).text : "null", t->refuted ? "true" : "false");
    }
    hm_put(o, "],\n\"groups\":[");
    for (size_t i = 0; i < f->groups; i++) {
        const struct hm_finding_group *g = &f->group[i];
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "by", g->by, ",");
        hm_json_text(o, "name", g->name, ",");
        hm_putf(o, "\"prompts\":%llu,\"forks\":%llu,\"unexplained\":%llu,\"positions\":%llu,", count(g->prompts),
                count(g->forks), count(g->unexplained), count(g->positions));
        put_number(o, "noise", &g->noise, "}");
    }
    hm_put(o, "],\n\"missing\":[");
    for (size_t i = 0; i < f->missings; i++) {
        hm_put(o, i ? ",{" : "{");
        hm_json_text(o, "field", f->missing[i].field, ",");
        hm_json_text(o, "flag", f->missing[i].flag, ",");
        hm_putf(o, "\"tokens\":%llu}", count(f->missing[i].tokens));
    }
    hm_put(o, "]}");
}

void hm_json_findings(struct hm_output *o, const struct hm_findings *f)
{
    if (!f->files) {
        hm_put(o, "\"findings\":null");
        return;
    }
    hm_putf(o, "\"findings\":{\"compared\":%s,\"unexplained\":%llu,\"undecided\":%llu,\"outliers\":%llu,\"findings\":%llu,"
               "\"refuted\":%llu,\n\"files\":[",
            hm_findings_compared(f) ? "true" : "false", count(hm_findings_unexplained(f)), count(hm_findings_undecided(f)),
            count(f->outliers), count(f->findings), count(f->refuted));
    for (size_t i = 0; i < f->files; i++) {
        if (i) hm_put(o, ",");
        put_file(o, &f->file[i]);
    }
    hm_put(o, "],\n");
    put_forks(o, f);
    put_kinds(o, f);
    put_noise(o, f);
    put_rest(o, f);
}
