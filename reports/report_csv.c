// The CSV report: the JSON report as tables, so that the two cannot disagree. figures.csv has every figure that is not an
// element of a list below, as path and value; the other files have one list each, with fixed columns (docs/report.md).
#include "reports/json.h"
#include "reports/number.h"
#include "reports/report.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct table {
    const char *file, *list;       // the list's path in the JSON report
    const char *columns;           // paths in its elements, separated by commas
};

#define STATUSES "certified,covered_not_certified,not_covered,no_draft,vacuous,inapplicable,undecided"
#define COURSE                                                                                                         \
    "course.sequences,course.shortfall_mean_lower,course.shortfall_mean_upper,course.bound_upper,course.vacuous,"      \
    "course.e_sum_mean_lower,course.e_sum_mean_upper,course.e_sum_vacuous,course.regret.count,"                        \
    "course.regret.mean_lower,course.regret.mean_upper,course.regret_max_upper"
#define SIDE(s)                                                                                                        \
    s ".token," s ".text," s ".first," s ".first_text," s ".second," s ".second_text," s ".gap_lower," s ".gap_upper," \
    s ".radius_lower," s ".radius_upper"

static const struct table TABLES[] = {
    {"logs.csv", "logs",
     "file,state,lines,chain,unfinished_sequences,target.name,target.sha256,draft.name,draft.sha256,acceptance,"
     "temperature,certify_temperature,top_k,top_p,drafter,width,depth,budget,selection,traversal,proposal,score,"
     "fidelity_kind,fidelity_limit,sequences,steps,rounds,accepted,emitted,with_draft,certified," COURSE},
    {"claims.csv", "claims",
     "rule,m,steps,with_draft,certified,certified_share,coverage_share,status.certified,status.covered_not_certified,"
     "status.not_covered,status.no_draft,status.vacuous,status.inapplicable,status.undecided,verdicts.klf.yes,"
     "verdicts.klr.yes,verdicts.tv.yes,klf.min,klf.q01,klf.q05,klf.q50,klr.min,klr.q50,tv.min,tv.q50,radius.min,"
     "radius.q01,radius.q50,theory.failures,theory.failures_upper.klf,theory.failures_upper.klr,"
     "theory.failures_upper.tv,theory.failure_share_upper"},
    {"depths.csv", "acceptance.per_depth", "depth,offered,reached,nodes,share,conditional,of_offered,acceptance_rate"},
    {"categories.csv", "categories",
     "name,sequences,steps,rounds,accepted,emitted,with_draft,certified," COURSE},
    {"sequences.csv", "sequences",
     "log,sequence,id,category,turn,steps,finish," STATUSES
     ",e_sum_lower,e_sum_upper,w_lower,w_upper,shortfall_lower,shortfall_upper,regret_lower,regret_upper"},
    {"blocks.csv", "blocks",
     "log,sequence,t,tokens,listed," STATUSES ",noise_lower,closest_t,regret_max_upper"},
    {"course.csv", "course.points", "tokens,shortfall_mean_upper,e_sum_mean_upper,regret_mean_upper"},
    {"not_certified.csv", "not_certified",
     "log,line,sequence,t,row,token,text,status,k,m,kl_pq_upper,klf_lower,by_klf,kl_qp_upper,klr_lower,by_klr,tv_upper,"
     "tv_limit_lower,by_tv"},
    {"closest.csv", "closest",
     "log,line,sequence,t,token,text,by,noise_lower,first,first_logit,second,second_logit,status"},
    {"trees.csv", "trees",
     "log,why,line,sequence,round,t,accepted,emitted,nodes,scored,depth,continuation,continues"},
    {"forks.csv", "findings.fork_list",
     "file,class,prompt,id,category,t,needs_lower,needs_upper,noise_lower,noise_upper,level_lower,level_upper," SIDE(
         "a") "," SIDE("b") ",why"},
    {"findings.csv", "findings.finding_list", "file,finding,side,input,sequence,t,where,message"},
    {"outliers.csv", "findings.outlier_list",
     "file,prompt,id,t,noise_lower,noise_upper,ulps_lower,ulps_upper,level_lower,level_upper"},
};
static const char FIGURES[] = "figures.csv"; // what stands in none of them
enum { TABLE_COUNT = sizeof TABLES / sizeof *TABLES };

// The value at a path of member names separated by dots, `length` characters of it; NULL where there is none.
static const cJSON *at(const cJSON *json, const char *path, size_t length)
{
    while (json && length) {
        const char *dot = memchr(path, '.', length);
        size_t part = dot ? (size_t)(dot - path) : length;
        const cJSON *member = cJSON_IsObject(json) ? json->child : NULL;
        while (member && (strlen(member->string) != part || memcmp(member->string, path, part) != 0)) member = member->next;
        json = member;
        path += part + (dot != NULL);
        length -= part + (dot != NULL);
    }
    return json;
}

// A cell: quoted where it has to be. A text that a spreadsheet would take for a formula gets a ' before it.
static void put_text(struct hm_output *o, const char *text)
{
    bool formula = *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        hm_put(o, text);
        return;
    }
    hm_put(o, formula ? "\"'" : "\"");
    for (; *text; text++) hm_putf(o, *text == '"' ? "\"\"" : "%c", *text);
    hm_put(o, "\"");
}

// name [length]: bounds keep their direction through the decimals.
static void put_cell(struct hm_output *o, const cJSON *value, const char *name, size_t length)
{
    if (cJSON_IsString(value) && (!strcmp(value->valuestring, "inf") || !strcmp(value->valuestring, "-inf")))
        hm_put(o, value->valuestring);
    else if (cJSON_IsString(value))
        put_text(o, value->valuestring);
    else if (cJSON_IsBool(value))
        hm_put(o, cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsNumber(value) && fabs(value->valuedouble) < 0x1p53 && value->valuedouble == floor(value->valuedouble))
        hm_putf(o, "%lld", (long long)value->valuedouble);
    else if (cJSON_IsNumber(value) && memmem(name, length, "lower", 5))
        hm_put(o, hm_number_json_down(value->valuedouble).text);
    else if (cJSON_IsNumber(value) && memmem(name, length, "upper", 5))
        hm_put(o, hm_number_json_up(value->valuedouble).text);
    else if (cJSON_IsNumber(value))
        hm_put(o, hm_number_near(value->valuedouble, 17).text); // read back it is the same double
}

static void put_table(struct hm_output *o, const struct table *t, const cJSON *list)
{
    const cJSON *row;
    for (const char *c = t->columns; *c; c++) hm_putf(o, "%c", *c == '.' ? '_' : *c);
    hm_put(o, "\n");
    cJSON_ArrayForEach(row, list)
    {
        for (const char *c = t->columns; *c;) {
            size_t length = strcspn(c, ",");
            put_cell(o, at(row, c, length), c, length);
            c += length;
            if (*c) hm_putf(o, "%c", *c++);
        }
        hm_put(o, "\n");
    }
}

// Is this list one of the tables?
static bool has_table(const char *path)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (strcmp(TABLES[i].list, path) == 0) return true;
    return false;
}

enum { LONGEST_PATH = 256, DEEPEST_PATH = 16 };

// Every figure below `json`, whose path is path[0 .. length): objects by name, elements by place.
static void put_figures(struct hm_output *o, const cJSON *json, char path[LONGEST_PATH], size_t length, int depth)
{
    size_t place = 0;
    path[length] = 0;
    if (cJSON_IsArray(json) && has_table(path) && strcmp(path, "claims") != 0) return;
    if (!json->child || depth == DEEPEST_PATH) {
        if (cJSON_IsArray(json) || cJSON_IsObject(json)) return;
        put_text(o, path);
        hm_put(o, ",");
        put_cell(o, json, path, length);
        hm_put(o, "\n");
        return;
    }
    for (const cJSON *child = json->child; child; child = child->next, place++) {
        char number[24];
        const char *name = child->string;
        if (cJSON_IsArray(json)) snprintf(number, sizeof number, "%zu", place), name = number;
        size_t size = strlen(name);
        if (length + size + 2 > LONGEST_PATH) continue;
        if (length) path[length] = '.';
        memcpy(path + length + (length > 0), name, size);
        put_figures(o, child, path, length + (length > 0) + size, depth + 1);
    }
}

// One file of the folder; table NULL: the figures.
static hm_status write_file(const char *folder, const char *name, const struct table *table, const cJSON *json,
                            struct hm_error *err)
{
    struct hm_output *o;
    char key[LONGEST_PATH];
    char *path = hm_path_join(folder, name);
    if (!path) return hm_fail(err, HM_MEMORY, "%s: out of memory", folder);
    hm_status rc = hm_output_open(path, &o, err);
    free(path);
    if (rc) return rc;
    if (table) {
        put_table(o, table, at(json, table->list, strlen(table->list)));
    } else {
        hm_put(o, "path,value\n");
        put_figures(o, json, key, 0, 0);
    }
    return hm_output_close(o, err);
}

const char *hm_report_csv_name(size_t i)
{
    return i < TABLE_COUNT ? TABLES[i].file : i == TABLE_COUNT ? FIGURES : NULL;
}

hm_status hm_report_write_csv(const struct hm_report *r, const char *folder, struct hm_error *err)
{
    struct hm_output *o;
    char *text;
    size_t size;
    cJSON *json = NULL;
    hm_status rc = hm_output_open_memory(&text, &size, &o, err);
    if (rc) return rc;
    hm_json_report(o, r);
    rc = hm_output_close(o, err);
    if (!rc) rc = hm_json_parse("report", text, size, &json, err);
    free(text);
    if (!rc && mkdir(folder, 0777) != 0 && errno != EEXIST)
        rc = hm_fail(err, HM_IO, "%s: cannot make this folder: %s", folder, strerror(errno));
    if (!rc) rc = write_file(folder, FIGURES, NULL, json, err);
    for (size_t i = 0; i < TABLE_COUNT && !rc; i++) rc = write_file(folder, TABLES[i].file, &TABLES[i], json, err);
    cJSON_Delete(json);
    return rc;
}
