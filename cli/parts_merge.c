// Merging parts: see parts.h. All of them are read twice: to check everything before a byte is printed, then to print.
// Neither memory nor open files grow with the number of inputs or with what they print.
#include "cli/parts.h"

#include "base/file.h"
#include "base/memory.h"
#include "cli/parts_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPEN_MOST = 100 }; // files held open at a time

struct set {
    struct hm_part **part; // [count] by share, from 0
    size_t count;
    const struct hm_parts_summary *summary; // of the command that wrote them
};

static void close_set(struct set *set)
{
    for (size_t i = 0; i < set->count; i++) hm_part_close(set->part[i]);
    free(set->part);
    *set = (struct set){0};
}

// ---- do they belong together?

// Arguments as one line, cut where it gets long.
static void join(const struct hm_part_header *h, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < h->argument_count && n + 1 < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "", h->arguments[i]);
    if (h->argument_count == 0) snprintf(out, size, "none");
}

static bool same_arguments(const struct hm_part_header *a, const struct hm_part_header *b)
{
    bool same = a->argument_count == b->argument_count;
    for (size_t i = 0; i < a->argument_count && same; i++) same = strcmp(a->arguments[i], b->arguments[i]) == 0;
    return same;
}

static hm_status check_same_run(const struct hm_part *first, const struct hm_part *part, struct hm_error *err)
{
    const struct hm_part_header *a = hm_part_header(first), *b = hm_part_header(part);
    char expected[256], found[256];
    const char *what = NULL;
    if (strcmp(a->version, b->version) != 0) {
        what = "version";
        snprintf(expected, sizeof expected, "%s", a->version);
        snprintf(found, sizeof found, "%s", b->version);
    } else if (strcmp(a->command, b->command) != 0) {
        what = "command";
        snprintf(expected, sizeof expected, "%s", a->command);
        snprintf(found, sizeof found, "%s", b->command);
    } else if (!same_arguments(a, b)) {
        what = "arguments";
        join(a, expected, sizeof expected);
        join(b, found, sizeof found);
    } else if (a->shards.count != b->shards.count || a->inputs != b->inputs) {
        bool shards = a->shards.count != b->shards.count;
        what = shards ? "shards" : "inputs";
        snprintf(expected, sizeof expected, "%zu", shards ? a->shards.count : a->inputs);
        snprintf(found, sizeof found, "%zu", shards ? b->shards.count : b->inputs);
    } else if (strcmp(a->inputs_sha256, b->inputs_sha256) != 0) {
        what = "list of inputs";
        snprintf(expected, sizeof expected, "SHA-256 %.16s...", a->inputs_sha256);
        snprintf(found, sizeof found, "%.16s...", b->inputs_sha256);
    }
    if (!what) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: expected a part of the same run as %s; %s: expected %s, found %s",
                   hm_part_name(part), hm_part_name(first), what, expected, found);
}

static hm_status find_summary(const struct hm_part *part, const struct hm_parts_summary *const *summaries, size_t count,
                              struct set *set, struct hm_error *err)
{
    const struct hm_part_header *h = hm_part_header(part);
    for (size_t i = 0; i < count; i++)
        if (strcmp(summaries[i]->command, h->command) == 0) set->summary = summaries[i];
    if (!set->summary)
        return hm_fail(err, HM_FORMAT, "%s: line 1: command: expected one that has parts, found \"%s\"",
                       hm_part_name(part), h->command);
    if (strcmp(h->version, HM_VERSION) != 0) // another one may print other words
        return hm_fail(err, HM_USAGE, "%s: expected a part that hallmark %s wrote, which this is, found %s",
                       hm_part_name(part), HM_VERSION, h->version);
    set->count = h->shards.count;
    set->part = hm_calloc(set->count, sizeof(struct hm_part *));
    return set->part ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory for %zu parts", set->count);
}

// Puts a part in its place; it is the set's then.
static hm_status place(struct set *set, const struct hm_part *first, struct hm_part *part, struct hm_error *err)
{
    hm_status rc = check_same_run(first, part, err);
    if (rc) return rc;
    struct hm_part **slot = &set->part[hm_part_header(part)->shards.index - 1];
    if (*slot)
        return hm_fail(err, HM_USAGE, "%s: shard %zu of %zu is there twice: also in %s", hm_part_name(part),
                       hm_part_header(part)->shards.index, set->count, hm_part_name(*slot));
    *slot = part;
    hm_part_pause(part);
    return HM_OK;
}

// Names the first shards that are missing.
static hm_status check_complete(const struct set *set, const char *folder, struct hm_error *err)
{
    enum { NAMED = 8 };
    char names[NAMED * 8 + 8] = "";
    size_t missing = 0, n = 0, first = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->part[i]) continue;
        if (++missing == 1) first = i + 1;
        if (missing <= NAMED) n += (size_t)snprintf(names + n, sizeof names - n, "%s%zu", n ? ", " : "", i + 1);
    }
    if (missing == 0) return HM_OK;
    const char *more = missing > NAMED ? ", ..." : "";
    return hm_fail(err, HM_USAGE, "%s%sexpected %zu parts, missing shard%s %s%s of %zu (part-%05zu-of-%05zu.jsonl%s)",
                   folder ? folder : "", folder ? ": " : "", set->count, missing > 1 ? "s" : "", names, more,
                   set->count, first, set->count, missing > 1 ? ", ..." : "");
}

static hm_status open_set(char *const *paths, size_t count, const char *folder,
                          const struct hm_parts_summary *const *summaries, size_t summary_count, struct set *set,
                          struct hm_error *err)
{
    const struct hm_part *first = NULL;
    hm_status rc = HM_OK;
    *set = (struct set){0};
    for (size_t i = 0; i < count && !rc; i++) {
        struct hm_part *part;
        rc = hm_part_open(paths[i], &part, err);
        if (rc) break;
        if (!first) rc = find_summary(part, summaries, summary_count, set, err);
        if (!first) first = part;
        if (!rc) rc = place(set, first, part, err);
        if (rc) hm_part_close(part);
    }
    if (!rc) rc = check_complete(set, folder, err);
    if (rc) close_set(set);
    return rc;
}

// ---- reading in order of inputs

// The text and result of input j.
static hm_status take_input(struct hm_part *part, void *summary, const struct set *set, FILE *to,
                            struct hm_sha256 *names, struct hm_error *err)
{
    struct hm_part_record record;
    hm_status rc = hm_part_next(part, &record, err);
    for (; !rc && record.kind == HM_PART_TEXT; rc = hm_part_next(part, &record, err))
        if (to && fwrite(record.text, 1, record.size, to) != record.size) break; // ferror is looked at in the end
    if (rc || record.kind != HM_PART_RESULT) return rc;
    rc = hm_sha256_add(names, record.text, record.size + 1, err); // with its terminating zero
    if (!rc && set->summary->add(summary, record.text, record.result, err)) {
        char where[1100];
        snprintf(where, sizeof where, "%.1000s: line %zu: result", hm_part_name(part), record.line);
        rc = err ? hm_fail_prefix(err, where) : HM_FORMAT;
    }
    return rc;
}

// Names of inputs are those that the header's hash is about.
static hm_status check_names(const struct hm_part *part, struct hm_sha256 *names, struct hm_error *err)
{
    uint8_t digest[HM_SHA256_BYTES];
    char hex[HM_SHA256_HEX];
    hm_status rc = hm_sha256_finish(names, digest, err);
    if (rc) return rc;
    hm_sha256_hex(digest, hex);
    const char *expected = hm_part_header(part)->inputs_sha256;
    if (strcmp(hex, expected) == 0) return HM_OK;
    return hm_fail(err, HM_FORMAT, "%s: line 1: inputs_sha256: expected %s of the names in all parts, found %s",
                   hm_part_name(part), hex, expected);
}

// Reads all parts to their ends. to NULL: they are only checked.
static hm_status go_through(const struct set *set, FILE *to, int *exit_code, struct hm_error *err)
{
    const struct hm_part_header *h = hm_part_header(set->part[0]);
    struct hm_part_record record;
    void *summary = NULL;
    struct hm_sha256 *names = NULL;
    hm_status rc = set->summary->open(h->arguments, h->argument_count, h->inputs, &summary, err);
    if (rc) {
        if (err) hm_fail_prefix(err, hm_part_name(set->part[0]));
        return rc;
    }
    rc = hm_sha256_open(&names, err);
    for (size_t j = 0; j < h->inputs && !rc && !(to && ferror(to)); j++) {
        struct hm_part *part = set->part[j % set->count];
        rc = take_input(part, summary, set, to, names, err);
        if (set->count > OPEN_MOST) hm_part_pause(part);
    }
    for (size_t i = 0; i < set->count && !rc && !(to && ferror(to)); i++) rc = hm_part_next(set->part[i], &record, err);
    if (!rc && !to) rc = check_names(set->part[0], names, err);
    if (!rc) *exit_code = set->summary->finish(summary, to);
    if (!rc && to && (fflush(to) != 0 || ferror(to))) rc = hm_fail(err, HM_IO, "cannot write the result");
    set->summary->close(summary);
    hm_sha256_close(names);
    return rc;
}

// ---- paths

static int is_part(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return strncmp(entry->d_name, "part-", 5) == 0 && strstr(entry->d_name, "-of-") && n > 6 &&
           strcmp(entry->d_name + n - 6, ".jsonl") == 0;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void free_paths(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
}

static hm_status list(const char *folder, char ***out, size_t *count, struct hm_error *err)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, is_part, alphasort);
    *out = NULL;
    *count = 0;
    if (n < 0) return hm_fail(err, HM_IO, "%s: cannot read this folder: %s", folder, strerror(errno));
    char **paths = hm_calloc((size_t)n, sizeof *paths);
    for (int i = 0; i < n; i++) {
        if (paths && (paths[*count] = hm_path_join(folder, entry[i]->d_name))) ++*count;
        free(entry[i]);
    }
    free(entry);
    *out = paths;
    if (n == 0)
        return hm_fail(err, HM_USAGE, "%s: expected parts (part-00001-of-00004.jsonl and so on), found none", folder);
    return *count == (size_t)n ? HM_OK : hm_fail(err, HM_MEMORY, "%s: out of memory", folder);
}

hm_status hm_parts_merge(char *const *paths, size_t path_count, const struct hm_parts_summary *const *summaries,
                         size_t summary_count, FILE *to, int *exit_code, struct hm_error *err)
{
    const char *folder = path_count == 1 && is_folder(paths[0]) ? paths[0] : NULL;
    char **listed = NULL;
    size_t listed_count = 0;
    hm_status rc = folder ? list(folder, &listed, &listed_count, err) : HM_OK;
    char *const *all = folder ? listed : paths;
    size_t count = folder ? listed_count : path_count;
    for (int pass = 0; pass < 2 && !rc; pass++) {
        struct set set;
        rc = open_set(all, count, folder, summaries, summary_count, &set, err);
        if (!rc) rc = go_through(&set, pass ? to : NULL, exit_code, err);
        close_set(&set);
    }
    free_paths(listed, listed_count);
    return rc;
}
