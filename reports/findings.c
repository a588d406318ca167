// Reads files of findings line by line: findings.h.
#include "reports/findings.h"

#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hm_fork_word(enum hm_fork_word word)
{
    static const char *const names[HM_FORK_WORDS] = {"unexplained", "undecided", "explained", "tie"};
    return names[word];
}

struct lines {
    FILE *in;
    char *text;
    size_t size, capacity;
};

enum { END = -1, TOO_LONG = -2, NO_MEMORY = -3 };

// The next line without its end: its size, or one of the above.
static long next_line(struct lines *l)
{
    int c;
    l->size = 0;
    while ((c = getc(l->in)) != EOF && c != '\n') {
        if (l->size == HM_FINDINGS_LONGEST_LINE) return TOO_LONG;
        if (l->size == l->capacity) {
            size_t room = l->capacity ? 2 * l->capacity : 1 << 12;
            char *grown = realloc(l->text, room);
            if (!grown) return NO_MEMORY;
            l->text = grown;
            l->capacity = room;
        }
        l->text[l->size++] = (char)c;
    }
    return c == EOF && l->size == 0 ? END : (long)l->size;
}

static bool blank(const struct lines *l)
{
    for (size_t i = 0; i < l->size; i++)
        if (!strchr(" \t\r", l->text[i]) || !l->text[i]) return false;
    return true;
}

static hm_status read_lines(struct hm_findings *f, size_t file, struct lines *l, struct hm_error *err)
{
    const char *path = f->file[file].path;
    for (unsigned long long number = 1;; number++) {
        long size = next_line(l);
        char where[600];
        cJSON *line = NULL;
        if (size == END) break;
        snprintf(where, sizeof where, "%.500s: line %llu", path, number);
        if (size == NO_MEMORY) return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
        if (size == TOO_LONG)
            return hm_fail(err, HM_FORMAT, "%s: expected at most %d bytes, found more", where, HM_FINDINGS_LONGEST_LINE);
        f->file[file].lines++;
        if (blank(l)) continue;
        hm_status rc = hm_json_parse(where, l->text, l->size, &line, err);
        if (!rc) rc = hm_findings_line(f, file, line, where, err);
        cJSON_Delete(line);
        if (rc) return rc;
    }
    if (ferror(l->in)) return hm_fail(err, HM_IO, "%s: cannot read: %s", path, strerror(errno));
    if (!f->file[file].comparison && !f->file[file].audit)
        return hm_fail(err, HM_FORMAT,
                       "%s: expected the lines of `hallmark compare --json` or `hallmark audit --json`, found none", path);
    return HM_OK;
}

hm_status hm_findings_add(struct hm_findings *f, const char *path, struct hm_error *err)
{
    struct lines l = {0};
    if (f->files == HM_FINDINGS_FILES)
        return hm_fail(err, HM_USAGE, "%s: expected at most %d files of findings", path, HM_FINDINGS_FILES);
    l.in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    if (!l.in) return hm_fail(err, HM_IO, "%s: cannot open: %s", path, strerror(errno));
    size_t file = f->files++;
    f->file[file].path = strdup(path);
    hm_status rc = f->file[file].path ? read_lines(f, file, &l, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    if (l.in != stdin) fclose(l.in);
    free(l.text);
    return rc;
}

void hm_findings_clear(struct hm_findings *f)
{
    for (size_t i = 0; i < f->files; i++) free(f->file[i].path);
    for (size_t i = 0; i < HM_FORK_WORDS; i++) free(f->fork[i]);
    for (size_t i = 0; i < f->kinds; i++) free(f->kind[i].list);
}

uint64_t hm_findings_unexplained(const struct hm_findings *f)
{
    return f->forks[HM_FORK_WORD_UNEXPLAINED] + f->outliers + f->refuted + f->findings;
}

uint64_t hm_findings_undecided(const struct hm_findings *f)
{
    return f->forks[HM_FORK_WORD_UNDECIDED];
}

bool hm_findings_compared(const struct hm_findings *f)
{
    for (size_t i = 0; i < f->files; i++)
        if (f->file[i].comparison) return true;
    return false;
}

bool hm_findings_doubtful(const struct hm_findings_file *file)
{
    bool differs = file->says && file->outliers != file->said_outliers;
    for (size_t i = 0; i < HM_FORK_WORDS; i++) differs |= file->says && file->forks[i] != file->said[i];
    return !file->has_summary || differs;
}
