// One line of findings into the counts and lists of findings.h. Every field is untrusted: what has another type than the
// contracts say is an error that names it; what is absent or null is shown as not said; kinds that are not known count as
// unknown.
#include "reports/findings.h"

#include "reports/number.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    struct hm_findings *f;
    size_t file;
    const cJSON *json;
    const char *where;
    struct hm_error *err;
};

static hm_status bad(const struct line *l, const char *key, const char *expected, const cJSON *found)
{
    return hm_fail(l->err, HM_FORMAT, "%s: %s: expected %s, found %s", l->where, key, expected, hm_json_kind(found));
}

// Text cut at a character border to what fits; integers as their digits; "" when absent.
static hm_status get_text(const struct line *l, const cJSON *in, const char *key, char *out, size_t size)
{
    const cJSON *value = hm_json_find(in, key);
    out[0] = 0;
    if (!value) return HM_OK;
    if (!cJSON_IsString(value) && !cJSON_IsNumber(value)) return bad(l, key, "text", value);
    struct hm_number number = hm_number_near(value->valuedouble, 16);
    const char *text = cJSON_IsString(value) ? value->valuestring : number.text;
    hm_text_copy(out, size, text, strlen(text));
    return HM_OK;
}

static hm_status get_integer(const struct line *l, const cJSON *in, const char *key, int64_t *out)
{
    const cJSON *value = hm_json_find(in, key);
    *out = -1;
    if (!value) return HM_OK;
    if (!cJSON_IsNumber(value) || value->valuedouble != floor(value->valuedouble) || fabs(value->valuedouble) > 0x1p53)
        return bad(l, key, "an integer", value);
    *out = (int64_t)value->valuedouble;
    return HM_OK;
}

static hm_status get_count(const struct line *l, const cJSON *in, const char *key, uint64_t *out)
{
    int64_t value;
    hm_status rc = get_integer(l, in, key, &value);
    *out = value > 0 ? (uint64_t)value : 0;
    return rc;
}

static bool as_number(const cJSON *value, double *out)
{
    if (cJSON_IsNumber(value) && !isnan(value->valuedouble)) {
        *out = value->valuedouble;
        return true;
    }
    if (!cJSON_IsString(value)) return false;
    *out = value->valuestring[0] == '-' ? -INFINITY : INFINITY;
    return strcmp(value->valuestring, "inf") == 0 || strcmp(value->valuestring, "-inf") == 0;
}

// A number, or an enclosure as [lower, upper]; "inf" and "-inf" stand for infinities.
static hm_status number_of(const struct line *l, const cJSON *value, const char *key, struct hm_finding_number *out)
{
    *out = (struct hm_finding_number){0};
    if (!value || cJSON_IsNull(value)) return HM_OK;
    bool two = cJSON_IsArray(value) && cJSON_GetArraySize(value) == 2, good;
    if (two)
        good = as_number(cJSON_GetArrayItem(value, 0), &out->lo) && as_number(cJSON_GetArrayItem(value, 1), &out->hi) &&
               out->lo <= out->hi;
    else {
        good = as_number(value, &out->lo);
        out->hi = out->lo;
    }
    out->has = good;
    return good ? HM_OK : bad(l, key, "a number, \"inf\" or [lower, upper]", value);
}

static hm_status get_number(const struct line *l, const cJSON *in, const char *key, struct hm_finding_number *out)
{
    return number_of(l, hm_json_find(in, key), key, out);
}

static hm_status get_side(const struct line *l, const char *key, struct hm_fork_side_shown *out)
{
    const cJSON *side = hm_json_find(l->json, key);
    *out = (struct hm_fork_side_shown){.token = -1, .first = -1, .second = -1};
    if (!side) return HM_OK;
    if (!cJSON_IsObject(side)) return bad(l, key, "an object", side);
    hm_status rc = get_integer(l, side, "token", &out->token);
    if (!rc) rc = get_integer(l, side, "first", &out->first);
    if (!rc) rc = get_integer(l, side, "second", &out->second);
    if (!rc) rc = get_text(l, side, "text", out->token_text, sizeof out->token_text);
    if (!rc) rc = get_text(l, side, "first_text", out->first_text, sizeof out->first_text);
    if (!rc) rc = get_text(l, side, "second_text", out->second_text, sizeof out->second_text);
    if (!rc) rc = get_number(l, side, "gap", &out->gap);
    if (!rc) rc = get_number(l, side, "radius", &out->radius);
    return rc;
}

// A text that one place of a fork has and another of the same token lacks.
static void share_texts(struct hm_fork_shown *k)
{
    struct {
        int64_t id;
        char *text;
    } all[] = {{k->a.token, k->a.token_text}, {k->b.token, k->b.token_text}, {k->a.first, k->a.first_text},
               {k->b.first, k->b.first_text}, {k->a.second, k->a.second_text}, {k->b.second, k->b.second_text}};
    enum { ALL = sizeof all / sizeof *all };
    for (size_t i = 0; i < ALL; i++)
        for (size_t j = 0; j < ALL; j++)
            if (all[i].id >= 0 && all[i].id == all[j].id && all[i].text[0] && !all[j].text[0])
                memcpy(all[j].text, all[i].text, HM_FINDINGS_TEXT);
}

static hm_status add_fork(const struct line *l)
{
    char word[HM_FINDINGS_NAME];
    hm_status rc = get_text(l, l->json, "class", word, sizeof word);
    size_t class = 0;
    while (class < HM_FORK_WORDS && strcmp(word, hm_fork_word((enum hm_fork_word)class)) != 0) class++;
    if (!rc && class == HM_FORK_WORDS)
        rc = hm_fail(l->err, HM_FORMAT, "%s: class: expected unexplained, undecided, explained or tie, found \"%.40s\"",
                     l->where, word);
    if (rc) return rc;
    struct hm_findings *f = l->f;
    f->forks[class]++;
    f->file[l->file].forks[class]++;
    struct hm_fork_shown fork = {.file = l->file};
    rc = get_integer(l, l->json, "prompt", &fork.prompt);
    if (!rc) rc = get_integer(l, l->json, "t", &fork.t);
    if (!rc) rc = get_text(l, l->json, "id", fork.id, sizeof fork.id);
    if (!rc) rc = get_text(l, l->json, "category", fork.category, sizeof fork.category);
    if (!rc) rc = get_text(l, l->json, "why", fork.why, sizeof fork.why);
    if (!rc) rc = get_number(l, l->json, "needs", &fork.needs);
    if (!rc) rc = get_number(l, l->json, "noise", &fork.noise);
    if (!rc) rc = get_number(l, l->json, "level", &fork.level);
    if (!rc) rc = get_side(l, "a", &fork.a);
    if (!rc) rc = get_side(l, "b", &fork.b);
    if (rc || f->fork_listed[class] == HM_FINDINGS_FORKS) return rc;
    share_texts(&fork);
    if (!f->fork[class]) f->fork[class] = hm_calloc(HM_FINDINGS_FORKS, sizeof *f->fork[class]);
    if (!f->fork[class]) return hm_fail(l->err, HM_MEMORY, "%s: out of memory", l->where);
    f->fork[class][f->fork_listed[class]++] = fork;
    return HM_OK;
}

static hm_status add_outlier(const struct line *l)
{
    struct hm_outlier_shown out = {.file = l->file};
    hm_status rc = get_integer(l, l->json, "prompt", &out.prompt);
    if (!rc) rc = get_integer(l, l->json, "t", &out.t);
    if (!rc) rc = get_integer(l, l->json, "most", &out.most);
    if (!rc) rc = get_integer(l, l->json, "least", &out.least);
    if (!rc) rc = get_text(l, l->json, "id", out.id, sizeof out.id);
    if (!rc) rc = get_number(l, l->json, "noise", &out.noise);
    if (!rc) rc = get_number(l, l->json, "ulps", &out.ulps);
    if (!rc) rc = get_number(l, l->json, "level", &out.level);
    l->f->outliers++;
    l->f->file[l->file].outliers++;
    if (!rc && l->f->outliers_listed < HM_FINDINGS_OUTLIERS) l->f->outlier[l->f->outliers_listed++] = out;
    return rc;
}

static hm_status add_finding(const struct line *l)
{
    struct hm_findings *f = l->f;
    struct hm_finding_shown out = {.file = l->file};
    char name[HM_FINDINGS_NAME];
    hm_status rc = get_text(l, l->json, "finding", name, sizeof name);
    if (!rc) rc = get_integer(l, l->json, "input", &out.input);
    if (!rc) rc = get_integer(l, l->json, "sequence", &out.sequence);
    if (!rc) rc = get_integer(l, l->json, "t", &out.t);
    if (!rc) rc = get_text(l, l->json, "side", out.side, sizeof out.side);
    if (!rc) rc = get_text(l, l->json, "where", out.where, sizeof out.where);
    if (!rc) rc = get_text(l, l->json, "message", out.message, sizeof out.message);
    if (!rc && !name[0]) rc = bad(l, "finding", "a name", hm_json_find(l->json, "finding"));
    if (rc) return rc;
    size_t i = 0;
    while (i < f->kinds && strcmp(f->kind[i].name, name) != 0) i++;
    if (i == f->kinds && i == HM_FINDINGS_KINDS) i--;
    if (i == f->kinds) {
        struct hm_finding_shown *list = hm_calloc(HM_FINDINGS_LISTED, sizeof *list);
        if (!list) return hm_fail(l->err, HM_MEMORY, "%s: out of memory", l->where);
        f->kind[f->kinds++].list = list;
        snprintf(f->kind[i].name, sizeof f->kind[i].name, "%s", i + 1 == HM_FINDINGS_KINDS ? "other" : name);
    }
    f->findings++;
    f->kind[i].count++;
    if (f->kind[i].listed < HM_FINDINGS_LISTED) f->kind[i].list[f->kind[i].listed++] = out;
    return HM_OK;
}

// A histogram of [edge, count] in ascending edges, joined in groups of equal size where it has too many.
static hm_status add_bins(const struct line *l, const cJSON *bins, struct hm_noise_shown *noise)
{
    size_t n = (size_t)cJSON_GetArraySize(bins), per = (n + HM_FINDINGS_BINS - 1) / HM_FINDINGS_BINS, i = 0;
    const cJSON *bin;
    double before = -INFINITY;
    cJSON_ArrayForEach(bin, bins)
    {
        double edge, count;
        bool good = cJSON_IsArray(bin) && cJSON_GetArraySize(bin) == 2 && as_number(cJSON_GetArrayItem(bin, 0), &edge) &&
                    as_number(cJSON_GetArrayItem(bin, 1), &count) && count >= 0 && count <= 0x1p53 && edge >= before;
        if (!good) return bad(l, "histogram", "[edge, count] in ascending edges", bin);
        before = edge;
        if (i % per == 0) noise->bin[noise->bins++].edge = edge;
        noise->bin[noise->bins - 1].count += (uint64_t)count;
        if (noise->bin[noise->bins - 1].count > noise->most) noise->most = noise->bin[noise->bins - 1].count;
        i++;
    }
    return HM_OK;
}

static hm_status add_noise(const struct line *l)
{
    static const char *const names[] = {"50", "90", "99", "99.9", "100"};
    const cJSON *quantiles = hm_json_find(l->json, "quantiles"), *bins = hm_json_find(l->json, "histogram");
    if (quantiles && !cJSON_IsObject(quantiles)) return bad(l, "quantiles", "an object", quantiles);
    if (bins && !cJSON_IsArray(bins)) return bad(l, "histogram", "an array", bins);
    struct hm_noise_shown noise = {.file = l->file};
    hm_status rc = get_count(l, l->json, "positions", &noise.positions);
    if (!rc) rc = get_text(l, l->json, "type", noise.type, sizeof noise.type);
    for (size_t i = 0; i < 5 && !rc && quantiles; i++) rc = get_number(l, quantiles, names[i], &noise.quantile[i]);
    if (!rc && bins) rc = add_bins(l, bins, &noise);
    if (!rc && l->f->noises < HM_FINDINGS_NOISES) l->f->noise[l->f->noises++] = noise;
    return rc;
}

static hm_status add_group(const struct line *l)
{
    struct hm_finding_group g = {.file = l->file};
    hm_status rc = get_text(l, l->json, "by", g.by, sizeof g.by);
    if (!rc) rc = get_text(l, l->json, "name", g.name, sizeof g.name);
    if (!rc) rc = get_count(l, l->json, "prompts", &g.prompts);
    if (!rc) rc = get_count(l, l->json, "forks", &g.forks);
    if (!rc) rc = get_count(l, l->json, "unexplained", &g.unexplained);
    if (!rc) rc = get_count(l, l->json, "positions", &g.positions);
    if (!rc) rc = get_number(l, l->json, "noise_99.9", &g.noise);
    if (!rc && l->f->groups < HM_FINDINGS_GROUPS) l->f->group[l->f->groups++] = g;
    return rc;
}

static hm_status add_temperature(const struct line *l)
{
    struct hm_finding_temperature t = {.file = l->file};
    const cJSON *refuted = hm_json_find(l->json, "refuted");
    if (refuted && !cJSON_IsBool(refuted)) return bad(l, "refuted", "true or false", refuted);
    t.refuted = cJSON_IsTrue(refuted);
    hm_status rc = get_text(l, l->json, "side", t.side, sizeof t.side);
    if (!rc) rc = get_text(l, l->json, "claimed", t.claimed, sizeof t.claimed);
    if (!rc) rc = get_count(l, l->json, "tokens", &t.tokens);
    if (!rc) rc = get_count(l, l->json, "first", &t.first);
    if (!rc) rc = get_number(l, l->json, "p_value", &t.p_value);
    l->f->refuted += t.refuted;
    if (!rc && l->f->temperatures < HM_FINDINGS_TEMPERATURES) l->f->temperature[l->f->temperatures++] = t;
    return rc;
}

static hm_status add_missing(const struct line *l)
{
    struct hm_finding_missing m = {.file = l->file};
    hm_status rc = get_text(l, l->json, "field", m.field, sizeof m.field);
    if (!rc) rc = get_text(l, l->json, "flag", m.flag, sizeof m.flag);
    if (!rc) rc = get_count(l, l->json, l->f->file[l->file].comparison ? "places" : "tokens", &m.tokens);
    if (rc) return rc;
    if (l->f->missings < HM_FINDINGS_MISSING) l->f->missing[l->f->missings++] = m;
    else l->f->missing_more++;
    return HM_OK;
}

// The last name of a path, so that two long ones can be told apart.
static hm_status get_name(const struct line *l, const char *side, char *out)
{
    const cJSON *object = hm_json_find(l->json, side);
    char path[1024];
    if (object && !cJSON_IsObject(object)) return bad(l, side, "an object", object);
    hm_status rc = object ? get_text(l, object, "file", path, sizeof path) : HM_OK;
    if (rc || !object) return rc;
    const char *name = strrchr(path, '/');
    snprintf(out, HM_FINDINGS_NAME, "%.*s", HM_FINDINGS_NAME - 1, name && name[1] ? name + 1 : path);
    return HM_OK;
}

static hm_status add_summary(const struct line *l)
{
    struct hm_findings_file *file = &l->f->file[l->file];
    uint64_t sequences = 0, tokens = 0, with_row = 0;
    hm_status rc;
    file->has_summary = true;
    if (!file->comparison) {
        rc = get_count(l, l->json, "sequences", &sequences);
        if (!rc) rc = get_count(l, l->json, "tokens", &tokens);
        if (!rc) rc = get_count(l, l->json, "with_row", &with_row);
        file->sequences += sequences;
        file->tokens += tokens;
        file->with_row += with_row;
        return rc;
    }
    file->says = true;
    rc = get_count(l, l->json, "prompts", &file->prompts);
    if (!rc) rc = get_count(l, l->json, "identical", &file->identical);
    for (size_t i = 0; i < HM_FORK_WORDS && !rc; i++)
        rc = get_count(l, l->json, hm_fork_word((enum hm_fork_word)i), &file->said[i]);
    if (!rc) rc = get_count(l, l->json, "outliers", &file->said_outliers);
    if (!rc) rc = get_number(l, l->json, "shared_prefix", &file->shared_prefix);
    return rc;
}

hm_status hm_findings_line(struct hm_findings *f, size_t file, const cJSON *json, const char *where, struct hm_error *err)
{
    struct line l = {f, file, json, where, err};
    char kind[32];
    if (!cJSON_IsObject(json)) return hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", where, hm_json_kind(json));
    hm_status rc = get_text(&l, json, "kind", kind, sizeof kind);
    if (rc) return rc;
    if (!strcmp(kind, "compare")) {
        f->file[file].comparison = true;
        rc = get_name(&l, "a", f->file[file].a);
        return rc ? rc : get_name(&l, "b", f->file[file].b);
    }
    if (!strcmp(kind, "input")) {
        f->file[file].audit = true;
        return HM_OK;
    }
    if (!strcmp(kind, "fork")) return add_fork(&l);
    if (!strcmp(kind, "outlier")) return add_outlier(&l);
    if (!strcmp(kind, "finding")) return add_finding(&l);
    if (!strcmp(kind, "noise")) return add_noise(&l);
    if (!strcmp(kind, "group")) return add_group(&l);
    if (!strcmp(kind, "temperature")) return add_temperature(&l);
    if (!strcmp(kind, "missing")) return add_missing(&l);
    if (!strcmp(kind, "summary")) return add_summary(&l);
    if (strcmp(kind, "position") != 0 && strcmp(kind, "token") != 0) f->file[file].unknown++;
    return HM_OK;
}
