// A file that appears complete or not at all: see output.h.
#include "reports/output.h"

#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

struct hm_output {
    char *path, *temporary; // temporary NULL: written directly
    FILE *file;
    int failure;            // errno of the first failure
    FILE *unfolded;         // with hm_output_fold: file collects the text below, this is where it goes; else NULL
    char *text;
    size_t text_size, most, written; // of what is folded: bytes allowed, bytes so far
    char **memory;          // with hm_output_open_memory: whose text it becomes
    size_t *memory_size;
};

static hm_status open_temporary(struct hm_output *o, struct hm_error *err)
{
    size_t size = strlen(o->path) + 16;
    struct stat st;
    if (strcmp(o->path, "-") == 0) {
        int copy = dup(STDOUT_FILENO);
        o->file = copy < 0 ? NULL : fdopen(copy, "wb");
        return o->file ? HM_OK : hm_fail(err, HM_IO, "standard output: cannot write: %s", strerror(errno));
    }
    bool exists = stat(o->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return hm_fail(err, HM_IO, "%s: cannot write: it is a folder", o->path);
    if (exists && !S_ISREG(st.st_mode)) {
        o->file = fopen(o->path, "wbe");
        return o->file ? HM_OK : hm_fail(err, HM_IO, "%s: cannot write: %s", o->path, strerror(errno));
    }
    o->temporary = hm_calloc(size, 1);
    if (!o->temporary) return hm_fail(err, HM_MEMORY, "%s: out of memory", o->path);
    snprintf(o->temporary, size, "%s.XXXXXX", o->path);
    int fd = mkstemp(o->temporary);
    if (fd < 0) {
        hm_fail(err, HM_IO, "%s: cannot write: %s", o->path, strerror(errno));
        free(o->temporary);
        o->temporary = NULL;
        return HM_IO;
    }
    mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(fd, exists ? st.st_mode & 0777 : 0666 & ~mask); // mkstemp gives 0600; a report is meant to be read
    o->file = fdopen(fd, "wb");
    if (!o->file) close(fd);
    return o->file ? HM_OK : hm_fail(err, HM_MEMORY, "%s: out of memory", o->path);
}

void hm_output_abandon(struct hm_output *o)
{
    if (o->file) fclose(o->file);
    if (o->unfolded) fclose(o->unfolded);
    free(o->text);
    if (o->temporary) unlink(o->temporary);
    free(o->temporary);
    free(o->path);
    free(o);
}

hm_status hm_output_open(const char *path, struct hm_output **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_output *o = hm_calloc(1, sizeof *o);
    if (!o) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    o->path = strdup(path);
    hm_status rc = o->path ? open_temporary(o, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    if (rc) hm_output_abandon(o);
    else *out = o;
    return rc;
}

hm_status hm_output_open_memory(char **text, size_t *size, struct hm_output **out, struct hm_error *err)
{
    *text = NULL;
    *size = 0;
    struct hm_output *o = *out = hm_calloc(1, sizeof *o);
    if (o) {
        o->memory = text;
        o->memory_size = size;
        o->file = open_memstream(&o->text, &o->text_size);
        o->path = strdup("memory");
    }
    if (o && o->file && o->path) return HM_OK;
    if (o) hm_output_abandon(o);
    *out = NULL;
    return hm_fail(err, HM_MEMORY, "out of memory for a report");
}

hm_status hm_output_fold(struct hm_output *o, size_t most, struct hm_error *err)
{
    o->most = most;
    FILE *collects = open_memstream(&o->text, &o->text_size);
    if (!collects) return hm_fail(err, HM_MEMORY, "%s: out of memory", o->path);
    o->unfolded = o->file;
    o->file = collects;
    return HM_OK;
}

enum { FOLD_COLUMNS = 80 };

// May a line of Markdown begin with this word without becoming a list, a quotation, a table or a heading?
static bool may_begin_line(const char *word, const char *end)
{
    const char *c = word;
    if (c == end || strchr(" >-+=#|~", *c) || (*c == '*' && (c + 1 == end || c[1] != '*'))) return false;
    while (c < end && *c >= '0' && *c <= '9') c++;
    bool numbers = c > word && c < end && (*c == '.' || *c == ')') && (c + 1 == end || c[1] == ' ');
    return !numbers;
}

// Where the line that begins at text is folded: at the last space that leaves at most 80 columns, or failing that at the
// first one after it. Code keeps its spaces. column: what already stands in the line. NULL: it is not.
static const char *fold_at(const char *text, const char *end, size_t column)
{
    const char *fold = NULL;
    bool code = false;
    for (const char *c = text; c < end; c++) {
        code ^= *c == '`';
        if (*c == ' ' && !code && c > text + 1 && may_begin_line(c + 1, end)) {
            if (column > FOLD_COLUMNS && fold) return fold;
            fold = c;
        }
        column += ((unsigned char)*c & 0xc0) != 0x80; // of characters, not of bytes
    }
    return column > FOLD_COLUMNS ? fold : NULL;
}

static const char CUT[] = "\n\n*Cut here: an issue takes no more. `--json` and `-o` have everything.*\n";

static void put_folded(struct hm_output *o, const char *text, size_t size)
{
    for (const char *end = text + size, *line; text < end; text = line) {
        const char *stop = memchr(text, '\n', (size_t)(end - text)), *fold;
        line = stop ? stop + 1 : end;
        size_t needs = (size_t)(line - text), folds = needs / (FOLD_COLUMNS / 2) + 1; // a fold adds two bytes at most
        if (o->written + needs + 2 * folds + sizeof CUT > o->most) {
            hm_put(o, CUT);
            return;
        }
        o->written += needs + 2 * folds;
        const char *next = *text == '>' ? "\n> " : "\n";
        bool prose = *text != '|' && *text != '#';
        for (size_t column = 0; prose && (fold = fold_at(text, stop ? stop : end, column)); text = fold + 1) {
            hm_put_bytes(o, text, (size_t)(fold - text));
            hm_put(o, next);
            column = strlen(next) - 1;
        }
        hm_put_bytes(o, text, (size_t)(line - text));
    }
}

hm_status hm_output_close(struct hm_output *o, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (o->unfolded) {
        if (fclose(o->file) != 0 && !o->failure) o->failure = errno;
        o->file = o->unfolded;
        o->unfolded = NULL;
        put_folded(o, o->text, o->text_size);
    }
    if (fflush(o->file) != 0 && !o->failure) o->failure = errno;
    if (o->temporary && !o->failure && fsync(fileno(o->file)) != 0) o->failure = errno;
    if (fclose(o->file) != 0 && !o->failure) o->failure = errno;
    o->file = NULL;
    if (!o->failure && o->temporary && rename(o->temporary, o->path) != 0) o->failure = errno;
    if (!o->failure && o->memory) {
        *o->memory = o->text;
        *o->memory_size = o->text_size;
        o->text = NULL;
    }
    if (o->failure) rc = hm_fail(err, HM_IO, "%s: cannot write: %s", o->path, strerror(o->failure));
    else {
        free(o->temporary);
        o->temporary = NULL;
    }
    hm_output_abandon(o);
    return rc;
}

void hm_put_bytes(struct hm_output *o, const void *bytes, size_t size)
{
    if (o->failure || size == 0) return;
    if (fwrite(bytes, 1, size, o->file) != size) o->failure = errno ? errno : EIO;
}

void hm_put(struct hm_output *o, const char *text)
{
    hm_put_bytes(o, text, strlen(text));
}

void hm_putf(struct hm_output *o, const char *format, ...)
{
    va_list arguments;
    if (o->failure) return;
    va_start(arguments, format);
    if (vfprintf(o->file, format, arguments) < 0) o->failure = errno ? errno : EIO;
    va_end(arguments);
}

// The next character of text; a byte that is no UTF-8 counts as U+FFFD.
static size_t next_character(const char *text, size_t size, utf8proc_int32_t *point)
{
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, point);
    if (n > 0) return (size_t)n;
    *point = 0xfffd;
    return 1;
}

// Characters that reorder or hide what stands beside them; shown as their code.
static bool is_treacherous(utf8proc_int32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x061c ||
           c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f) || (c >= 0x80 && c <= 0x9f);
}

static void put_character(struct hm_output *o, utf8proc_int32_t c)
{
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = c == 0x7f ? 0x2421 : 0x2400 + c; // a control picture
    if (is_treacherous(c)) {
        hm_putf(o, "[U+%04X]", (unsigned)c);
        return;
    }
    utf8proc_uint8_t bytes[4];
    hm_put_bytes(o, bytes, (size_t)utf8proc_encode_char(c, bytes));
}

void hm_put_html_bytes(struct hm_output *o, const char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        utf8proc_int32_t c;
        i += next_character(text + i, size - i, &c);
        switch (c) {
        case '&': hm_put(o, "&amp;"); break;
        case '<': hm_put(o, "&lt;"); break;
        case '>': hm_put(o, "&gt;"); break;
        case '"': hm_put(o, "&quot;"); break;
        case '\'': hm_put(o, "&#39;"); break;
        default: put_character(o, c);
        }
    }
}

void hm_put_html(struct hm_output *o, const char *text)
{
    hm_put_html_bytes(o, text, strlen(text));
}

void hm_put_markdown(struct hm_output *o, const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size;) {
        utf8proc_int32_t c;
        i += next_character(text + i, size - i, &c);
        if (c == '\n' || c == '\t') c = c == '\n' ? 0x21b5 : ' ';
        // Entities for what starts markup, links, mentions or issue references; a backslash would not stop HTML or "@".
        if (c < 0x80 && c > 0 && strchr("&<>|`*_[]#@~\\!$", (int)c)) hm_putf(o, "&#%d;", (int)c);
        else put_character(o, c);
    }
}

void hm_put_json_bytes(struct hm_output *o, const char *text, size_t size)
{
    hm_put(o, "\"");
    for (size_t i = 0; i < size;) {
        utf8proc_int32_t c;
        size_t n = next_character(text + i, size - i, &c);
        bool plain = c >= 0x20 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && c != '\'' && c != 0x7f &&
                     c != 0x2028 && c != 0x2029;
        if (plain && c != 0xfffd) hm_put_bytes(o, text + i, n);
        else if (c == '"' || c == '\\') hm_putf(o, "\\%c", (int)c);
        else hm_putf(o, "\\u%04x", (unsigned)c);
        i += n;
    }
    hm_put(o, "\"");
}

void hm_put_json(struct hm_output *o, const char *text)
{
    hm_put_json_bytes(o, text, strlen(text));
}
