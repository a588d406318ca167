// hallmark inspect: what is in a log, a checkpoint or a file of rows (docs/log.md), for people to read. Nothing is
// proved here.
#include "cli/inspect.h"

#include "base/memory.h"
#include "cli/command.h"
#include "decode/row_file.h"
#include "evidence/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void usage(FILE *to)
{
    fputs("Shows what is in a certificate log, a checkpoint or a file of rows.\n\n"
          "  hallmark inspect run.jsonl               what the log is, if it is complete\n"
          "  hallmark inspect run.jsonl --step 0:17   a step in full: sequence 0, token 17\n"
          "  hallmark inspect audit.jsonl --row 5     one row of an audit\n"
          "  hallmark inspect models/tiny-qwen3       a checkpoint's shapes and types\n"
          "  hallmark inspect target.npy              a file of logits\n\n"
          "Usage: hallmark inspect [options] FILE-OR-FOLDER\n"
          "  --step S:T[-U]     a step, or steps T to U, of sequence S, then the tree of\n"
          "                     each round; may be given more than once\n"
          "  --row N[-M]        the same for rows of an audit\n"
          "  --json             records as they stand in the log, bit for bit, a line\n"
          "                     each: a round's before its steps. Without --step: the\n"
          "                     header's line, then counts; of other files, one object\n"
          "  --hashes           compute SHA-256 of a checkpoint's or file's bytes\n"
          "  --tensor NAME      of a .safetensors file of rows; else logits\n\n"
          "Enclosures are printed with six digits, rounded outward. Exit codes: 0 shown,\n"
          "2 wrong usage, a file that cannot be read, a step that is not there.\n",
          to);
}

// ---- the command line

static bool read_number(const char **text, int64_t *out)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits < 1 || digits > 15) return false;
    *out = strtoll(*text, NULL, 10);
    *text += digits;
    return true;
}

// "3:17", "3:17-20"; of rows "17", "17-20".
static hm_status add_range(struct hm_inspect_options *o, const char *flag, const char *text, bool rows,
                           struct hm_error *err)
{
    struct hm_inspect_range r = {.sequence = -1};
    const char *rest = text;
    bool good = rows || (read_number(&rest, &r.sequence) && *rest++ == ':');
    good = good && read_number(&rest, &r.first);
    r.last = r.first;
    if (good && *rest == '-') good = (rest++, read_number(&rest, &r.last));
    if (!good || *rest || r.last < r.first)
        return hm_fail(err, HM_USAGE, "inspect: %s: expected %s, found \"%s\"", flag,
                       rows ? "N or N-M" : "S:T or S:T-U", text);
    if (o->ranges > 0 && o->rows != rows)
        return hm_fail(err, HM_USAGE, "inspect: expected --step or --row, found both");
    struct hm_inspect_range *grown = realloc(o->range, (o->ranges + 1) * sizeof *grown);
    if (!grown) return hm_fail(err, HM_MEMORY, "inspect: out of memory");
    o->range = grown;
    o->range[o->ranges++] = r;
    o->rows = rows;
    return HM_OK;
}

static hm_status apply(struct hm_inspect_options *o, const char *flag, const char *value, bool *used,
                       struct hm_error *err)
{
    bool step = strcmp(flag, "--step") == 0, row = strcmp(flag, "--row") == 0, tensor = strcmp(flag, "--tensor") == 0;
    *used = step || row || tensor;
    if (*used && !value) return hm_fail(err, HM_USAGE, "inspect: %s: expected a value after it", flag);
    if (step || row) return add_range(o, flag, value, row, err);
    if (tensor)
        o->tensor = value;
    else if (strcmp(flag, "--json") == 0)
        o->json = true;
    else if (strcmp(flag, "--hashes") == 0)
        o->hashes = true;
    else
        return hm_fail(err, HM_USAGE, "inspect: unknown option \"%s\" (hallmark inspect --help)", flag);
    return HM_OK;
}

static hm_status parse(int argc, char **argv, struct hm_inspect_options *o, struct hm_error *err)
{
    bool flags = true;
    for (int i = 1; i < argc; i++) {
        bool used = false;
        hm_status rc = HM_OK;
        if (flags && strcmp(argv[i], "--") == 0)
            flags = false;
        else if (flags && argv[i][0] == '-' && argv[i][1])
            rc = apply(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used, err);
        else if (o->path)
            rc = hm_fail(err, HM_USAGE, "inspect: expected one file or folder, found \"%s\" and \"%s\"", o->path,
                         argv[i]);
        else
            o->path = argv[i];
        if (rc) return rc;
        i += used;
    }
    return o->path ? HM_OK
                   : hm_fail(err, HM_USAGE,
                             "inspect: expected a log, a checkpoint or a file of rows (hallmark inspect --help)");
}

// ---- what is it?

enum kind { LOG, CHECKPOINT, ROWS };

static enum kind tell(const char *path)
{
    struct stat status;
    if (strcmp(path, "-") == 0 || stat(path, &status) != 0) return LOG; // whose reader has the words for it
    if (S_ISDIR(status.st_mode)) return CHECKPOINT;
    return hm_row_file_begins(path) ? ROWS : LOG;
}

// A log of another engine is what `hallmark audit` reads.
static hm_status check_engine(const char *path, struct hm_error *err)
{
    struct hm_source_options options = {.format = NULL};
    struct hm_source_file *source;
    struct stat status;
    if (strcmp(path, "-") == 0 || stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return HM_OK;
    if (hm_source_open(path, &options, &source, NULL)) return HM_OK; // the log's reader has the words for it
    enum hm_format format = hm_source_format(source);
    hm_source_close(source);
    if (format == HM_FORMAT_HALLMARK) return HM_OK;
    return hm_fail(err, HM_FORMAT, "%s: expected a certificate log, found one of %s: hallmark audit reads it", path,
                   hm_format_name(format));
}

static hm_status inspect(const struct hm_inspect_options *o, struct hm_error *err)
{
    enum kind kind = tell(o->path);
    const char *const what[] = {"a log", "a folder", "a file of rows"};
    if (o->ranges && kind != LOG)
        return hm_fail(err, HM_USAGE, "%s: expected a log with %s, found %s", o->path, o->rows ? "--row" : "--step",
                       what[kind]);
    if ((o->hashes && kind == LOG) || (o->tensor && kind != ROWS))
        return hm_fail(err, HM_USAGE, "%s: expected %s with %s, found %s", o->path,
                       o->tensor ? "a file of rows" : "a checkpoint or a file of rows",
                       o->tensor ? "--tensor" : "--hashes", what[kind]);
    if (kind == CHECKPOINT) return hm_inspect_checkpoint(o, err);
    if (kind == ROWS) return hm_inspect_rows(o, err);
    hm_status rc = check_engine(o->path, err);
    if (rc) return rc;
    return o->ranges ? hm_inspect_find(o, err) : hm_inspect_log(o, err);
}

int hm_cmd_inspect(int argc, char **argv)
{
    struct hm_inspect_options options = {0};
    struct hm_error err;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        usage(stdout);
        return HM_EXIT_OK;
    }
    hm_status rc = parse(argc, argv, &options, &err);
    if (!rc) rc = inspect(&options, &err);
    if (!rc) rc = hm_cli_flush(&err);
    free(options.range);
    return rc ? hm_cli_fail(&err) : HM_EXIT_OK;
}
