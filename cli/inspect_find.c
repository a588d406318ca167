// Finds the steps or rows that were asked for: see inspect.h. The log is read record by record, in memory that does not
// grow with it, and no further than needed.
#include "cli/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finder {
    const struct hm_inspect_options *options;
    const struct hm_record_header *header;
    struct hm_log_reader *reader;
    struct hm_inspect_tree tree;
    bool in_round, tree_wanted; // the tree is that of the step at hand; a step of it was printed
    char *round_line;           // the bytes of its record, with --json
    int64_t *found;             // [ranges] records found so far, in order and so the first of each range
    int64_t sequence, last;     // of the record at hand; -1: none yet
    int64_t *reached;           // [ranges] the last record in the range's sequence, -1: none
    bool printed;
};

// ---- what is wanted

static bool wants(struct finder *f, int64_t sequence, int64_t number)
{
    const struct hm_inspect_options *o = f->options;
    bool wanted = false;
    for (size_t i = 0; i < o->ranges; i++) {
        if (o->range[i].sequence != sequence) continue;
        if (number < o->range[i].first || number > o->range[i].last) continue;
        f->found[i]++;
        wanted = true;
    }
    return wanted;
}

// Can no later record be wanted?
static bool is_past_all(const struct finder *f)
{
    const struct hm_inspect_options *o = f->options;
    for (size_t i = 0; i < o->ranges; i++) {
        const struct hm_inspect_range *r = &o->range[i];
        if (r->sequence > f->sequence || (r->sequence == f->sequence && r->last > f->last)) return false;
    }
    return true;
}

// Lets the reader pass over what is not wanted; not over a few steps before, which may be of the same round.
static void pass_over(struct finder *f)
{
    enum { BEFORE = 64 };
    const struct hm_inspect_options *o = f->options;
    int64_t sequence = INT64_MAX, t = 0;
    for (size_t i = 0; i < o->ranges; i++) {
        const struct hm_inspect_range *r = &o->range[i];
        bool here = r->sequence == f->sequence;
        if (r->sequence < f->sequence || (here && r->last <= f->last)) continue;
        int64_t first = here && r->first <= f->last ? f->last + 1 : r->first;
        if (r->sequence > sequence || (r->sequence == sequence && first >= t)) continue;
        sequence = r->sequence;
        t = first;
    }
    bool none = f->tree_wanted || sequence == INT64_MAX;
    hm_log_reader_pass_until(f->reader, none ? 0 : sequence, none || t < BEFORE ? 0 : t - BEFORE);
}

static const char *how_it_ends(const struct finder *f)
{
    enum hm_log_state state = hm_log_reader_state(f->reader);
    return state == HM_LOG_NO_END || state == HM_LOG_CUT_LINE ? " (it is truncated)" : "";
}

static hm_status missing_step(const struct finder *f, size_t i, struct hm_error *err)
{
    const struct hm_inspect_range *r = &f->options->range[i];
    const char *path = f->options->path, *end = how_it_ends(f);
    int64_t first = r->first + f->found[i];
    if (f->sequence < 0)
        return hm_fail(err, HM_USAGE, "%s: step %" PRId64 ":%" PRId64 ": the log has no step%s", path, r->sequence,
                       first, end);
    if (f->reached[i] < 0 && r->sequence <= f->sequence)
        return hm_fail(err, HM_USAGE, "%s: step %" PRId64 ":%" PRId64 ": the log has no step of sequence %" PRId64 "%s",
                       path, r->sequence, first, r->sequence, end);
    if (f->reached[i] < 0)
        return hm_fail(err, HM_USAGE, "%s: step %" PRId64 ":%" PRId64 ": the log has sequences up to %" PRId64 "%s",
                       path, r->sequence, first, f->sequence, end);
    return hm_fail(err, HM_USAGE,
                   "%s: step %" PRId64 ":%" PRId64 ": the log has sequence %" PRId64 " up to %" PRId64 ":%" PRId64 "%s",
                   path, r->sequence, first, r->sequence, r->sequence, f->reached[i], end);
}

// Rows may be left out of a log, so only that none was found in a range is an error.
static hm_status check_found(const struct finder *f, struct hm_error *err)
{
    const struct hm_inspect_options *o = f->options;
    for (size_t i = 0; i < o->ranges; i++) {
        const struct hm_inspect_range *r = &o->range[i];
        if (f->found[i] > (o->rows ? 0 : r->last - r->first)) continue;
        if (!o->rows) return missing_step(f, i, err);
        if (f->reached[i] < r->first)
            return hm_fail(err, HM_USAGE, "%s: row %" PRId64 ": the log has rows up to %" PRId64 "%s", o->path,
                           r->first, f->last, how_it_ends(f));
        return hm_fail(err, HM_USAGE, "%s: row %" PRId64 ": expected a record, found none: it could not be certified",
                       o->path, r->first);
    }
    return HM_OK;
}

// ---- printing

static void print_line(const struct finder *f)
{
    size_t size;
    const char *line = hm_log_reader_line(f->reader, &size);
    fwrite(line, 1, size, stdout);
    putchar('\n');
}

static void begin_section(struct finder *f)
{
    if (f->printed) putchar('\n');
    f->printed = true;
}

static hm_status end_round(struct finder *f, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (f->in_round && f->tree_wanted && !f->options->json) {
        begin_section(f);
        rc = hm_inspect_tree_print(&f->tree, err);
    }
    f->in_round = f->tree_wanted = false;
    return rc;
}

static hm_status begin_round(struct finder *f, const struct hm_record *record, struct hm_error *err)
{
    f->in_round = true;
    if (!f->options->json) return hm_inspect_tree_take(&f->tree, record, err);
    size_t size;
    const char *line = hm_log_reader_line(f->reader, &size);
    free(f->round_line);
    f->round_line = strndup(line, size);
    return f->round_line ? HM_OK : hm_fail(err, HM_MEMORY, "%s: out of memory", f->options->path);
}

// How far the sequence goes, records that were passed over included.
static void reach(struct finder *f, int64_t number)
{
    if (number > f->last) f->last = number;
    for (size_t i = 0; i < f->options->ranges; i++)
        if (f->options->range[i].sequence == f->sequence && number > f->reached[i]) f->reached[i] = number;
}

static void take_step(struct finder *f, const struct hm_record *record)
{
    const struct hm_record_step *s = record->step;
    bool row = record->kind == HM_RECORD_ROW;
    f->sequence = s->sequence;
    reach(f, row ? s->index : s->t);
    if (f->in_round && !f->options->json) hm_inspect_tree_mark(&f->tree, s);
    if (!wants(f, f->sequence, f->last)) return;
    if (f->options->json) {
        if (f->in_round && !f->tree_wanted) puts(f->round_line);
        print_line(f);
    } else {
        begin_section(f);
        hm_inspect_step(f->header, record);
    }
    f->tree_wanted = f->in_round;
}

static hm_status take_record(struct finder *f, const struct hm_record *record, struct hm_error *err)
{
    hm_status rc = HM_OK;
    reach(f, record->before);
    if (record->kind != HM_RECORD_STEP && record->kind != HM_RECORD_NODE) rc = end_round(f, err);
    if (rc) return rc;
    if (record->kind == HM_RECORD_ROUND) return begin_round(f, record, err);
    if (record->kind == HM_RECORD_SEQUENCE) f->sequence = record->sequence->sequence, f->last = -1;
    if (record->kind == HM_RECORD_STEP || record->kind == HM_RECORD_ROW) take_step(f, record);
    return HM_OK;
}

// Until the last record that is wanted, and for the tree until the end of its round.
static hm_status read_records(struct finder *f, struct hm_error *err)
{
    struct hm_record record = {.kind = HM_RECORD_SEQUENCE};
    hm_status rc = HM_OK;
    while (!rc && record.kind != HM_RECORD_NONE && !(is_past_all(f) && (f->options->json || !f->tree_wanted))) {
        pass_over(f);
        rc = hm_log_reader_next(f->reader, &record, err);
        if (!rc) rc = take_record(f, &record, err);
    }
    return rc ? rc : check_found(f, err);
}

static hm_status check_kind(const struct finder *f, struct hm_error *err)
{
    const struct hm_inspect_options *o = f->options;
    if (f->header->audit == o->rows) return HM_OK;
    if (o->rows) return hm_fail(err, HM_USAGE, "--row: %s is the log of a decode: expected --step S:T", o->path);
    return hm_fail(err, HM_USAGE, "--step: %s is the log of an audit: expected --row N", o->path);
}

hm_status hm_inspect_find(const struct hm_inspect_options *o, struct hm_error *err)
{
    struct finder f = {.options = o, .sequence = -1, .last = -1};
    hm_status rc = hm_log_reader_open(o->path, &f.reader, err);
    if (rc) return rc;
    f.header = hm_log_reader_header(f.reader);
    f.found = calloc(2 * o->ranges, sizeof *f.found);
    f.reached = f.found ? f.found + o->ranges : NULL;
    for (size_t i = 0; f.found && i < o->ranges; i++) f.reached[i] = -1;
    rc = f.found ? check_kind(&f, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", o->path);
    if (!rc) rc = read_records(&f, err);
    hm_inspect_tree_clear(&f.tree);
    free(f.round_line);
    free(f.found);
    hm_log_reader_close(f.reader);
    return rc;
}
