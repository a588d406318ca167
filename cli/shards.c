// Which share of the inputs a process takes: see shards.h. Each engine that starts many copies of one command tells
// each copy its number in variables of its own.
#include "cli/shards.h"

#include <stdio.h>
#include <string.h>

struct engine {
    const char *name, *index, *count; // variables
    const char *first, *step;         // and of an array's least number and distance; NULL: 0 and 1
};

static const struct engine engines[] = {
    {"Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", NULL, NULL}, // only outside of arrays
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, NULL},
    {"Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", NULL, NULL},
};
enum { ARRAY, PROCESS, ENGINES = sizeof engines / sizeof *engines };

bool hm_shards_take(struct hm_shards shards, size_t j)
{
    return shards.count == 0 || j % shards.count == shards.index - 1;
}

// The digits at *text as a number of at most `most`, which *text is moved behind; false when there is none.
static bool read_number(const char **text, size_t most, size_t *out)
{
    size_t value = 0, digits = strspn(*text, "0123456789");
    for (size_t i = 0; i < digits; i++) {
        value = 10 * value + (size_t)((*text)[i] - '0');
        if (value > most) return false;
    }
    *text += digits;
    *out = value;
    return digits > 0;
}

static const char *look_up(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') return *environment + n + 1;
    return NULL;
}

// The number a variable holds. *found false and no error: it is not set, or set to nothing, as engines that make
// templates do.
static hm_status read_variable(char *const *environment, const char *name, bool *found, size_t *out,
                               struct hm_error *err)
{
    enum { LARGEST = 1000000000 }; // ids of an array may be larger than counts
    const char *value = look_up(environment, name), *rest = value;
    *found = value && *value;
    if (!*found || (read_number(&rest, LARGEST, out) && !*rest)) return HM_OK;
    return hm_fail(err, HM_USAGE, "--shard auto: %s: expected a number, found \"%s\"", name, value);
}

// What one engine says. out->count 0: nothing. said: how many shares there are according to --shard, or 0.
static hm_status ask(const struct engine *e, char *const *environment, size_t said, struct hm_shards *out,
                     const char **missing, struct hm_error *err)
{
    bool has_index, has_count, has_first = false, has_step = false;
    size_t index = 0, count = 0, first = 0, step = 1;
    *out = (struct hm_shards){0};
    hm_status rc = read_variable(environment, e->index, &has_index, &index, err);
    if (!rc && has_index) rc = read_variable(environment, e->count, &has_count, &count, err);
    if (!rc && has_index && e->first) rc = read_variable(environment, e->first, &has_first, &first, err);
    if (!rc && has_index && e->step) rc = read_variable(environment, e->step, &has_step, &step, err);
    if (rc || !has_index) return rc;
    const char *lacks = e->first && !has_first ? e->first : !has_count && !said ? e->count : NULL;
    if (lacks) {
        *missing = lacks;
        return HM_OK;
    }
    if (!has_count) count = said;
    if (said && count != said)
        return hm_fail(err, HM_USAGE, "--shard auto/%zu: expected %s=%zu, found %zu", said, e->count, said, count);
    if (count < 1 || count > HM_SHARDS_MOST)
        return hm_fail(err, HM_USAGE, "--shard auto: %s: expected a number from 1 to %d, found %zu", e->count,
                       HM_SHARDS_MOST, count);
    if (step == 0 || index < first || (index - first) % step != 0 || (index - first) / step >= count)
        return hm_fail(err, HM_USAGE,
                       "--shard auto: %s: expected one of %zu numbers from %zu in steps of %zu, found %zu", e->index,
                       count, first, step, index);
    *out = (struct hm_shards){(index - first) / step + 1, count};
    return HM_OK;
}

static hm_status nothing_found(const char *missing, struct hm_error *err)
{
    if (missing && strcmp(missing, "JOB_COMPLETIONS") == 0)
        return hm_fail(err, HM_USAGE,
                       "--shard auto: JOB_COMPLETION_INDEX is set, but not how many there are: expected "
                       "--shard auto/N, or JOB_COMPLETIONS in the job's manifest");
    if (missing) return hm_fail(err, HM_USAGE, "--shard auto: expected %s to be set as well, found none", missing);
    return hm_fail(
        err, HM_USAGE,
        "--shard auto: expected one of SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK and "
        "JOB_COMPLETION_INDEX to be set, found none (or give --shard i/n)");
}

// A task of an array runs one process; a second one inside it would do the same share again.
static hm_status check_array_task(char *const *environment, struct hm_error *err)
{
    bool found;
    size_t process = 0;
    hm_status rc = read_variable(environment, engines[PROCESS].index, &found, &process, err);
    if (rc || !found || process == 0) return rc;
    return hm_fail(
        err, HM_USAGE,
        "--shard auto: expected one process in each task of the array, found SLURM_PROCID=%zu (--ntasks=1, or "
        "give --shard i/n)",
        process);
}

// An engine that started one process decides only where nothing else does: a single step of Slurm may hold an MPI run.
static hm_status find(char *const *environment, size_t said, struct hm_shards *out, struct hm_error *err)
{
    const struct engine *by = NULL;
    const char *missing = NULL;
    bool in_array = look_up(environment, engines[ARRAY].index) != NULL;
    hm_status rc = in_array ? check_array_task(environment, err) : HM_OK;
    for (const struct engine *e = engines; e < engines + ENGINES && !rc; e++) {
        struct hm_shards found;
        if (in_array && e == &engines[PROCESS]) continue;
        rc = ask(e, environment, said, &found, &missing, err);
        if (rc) return rc;
        if (found.count == 0 || (by && found.count == 1)) continue;
        if (by && out->count > 1 && (found.index != out->index || found.count != out->count))
            return hm_fail(err, HM_USAGE,
                           "--shard auto: %s and %s disagree: %s=%s of %zu, %s=%s of %zu (give --shard i/n)", by->name,
                           e->name, by->index, look_up(environment, by->index), out->count, e->index,
                           look_up(environment, e->index), found.count);
        by = e;
        *out = found;
    }
    return rc || by ? rc : nothing_found(missing, err);
}

static hm_status find_automatically(const char *text, char *const *environment, struct hm_shards *out,
                                    struct hm_error *err)
{
    const char *rest = text + strlen("auto");
    size_t said = 0;
    if (*rest && (*rest++ != '/' || !read_number(&rest, HM_SHARDS_MOST, &said) || *rest || said == 0))
        return hm_fail(err, HM_USAGE, "--shard: expected auto/N with N from 1 to %d, found \"%s\"", HM_SHARDS_MOST,
                       text);
    hm_status rc = find(environment, said, out, err);
    if (rc) *out = (struct hm_shards){0};
    return rc;
}

hm_status hm_shards_parse(const char *text, char *const *environment, struct hm_shards *out, struct hm_error *err)
{
    const char *rest = text;
    *out = (struct hm_shards){0};
    if (strncmp(text, "auto", 4) == 0) return find_automatically(text, environment, out, err);
    if (read_number(&rest, HM_SHARDS_MOST, &out->index) && *rest == '/' &&
        (rest++, read_number(&rest, HM_SHARDS_MOST, &out->count)) && !*rest && out->index >= 1 &&
        out->index <= out->count)
        return HM_OK;
    *out = (struct hm_shards){0};
    return hm_fail(err, HM_USAGE, "--shard: expected i/n with i from 1 to n and n to %d, or auto, found \"%s\"",
                   HM_SHARDS_MOST, text);
}
