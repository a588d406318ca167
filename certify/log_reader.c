// The lines of a log and their order: see log_reader.h. What is inside a record is read by log_reader_records.c,
// log_reader_step.c and log_reader_claim.c.
#include "certify/log_reader_private.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

hm_status hm_log_reuse(const struct hm_place *place, struct hm_reused *array, size_t count, size_t size, void *out)
{
    if (!hm_grow(&array->data, &array->capacity, count ? count : 1, size))
        return hm_fail(place->err, HM_MEMORY, "%s: line %zu: out of memory for %zu entries", place->file, place->line,
                       count);
    memcpy(out, &array->data, sizeof array->data);
    return HM_OK;
}

// Reads up to the next newline, which is dropped; *whole is false when the file ended before one.
static hm_status read_line(struct hm_log_reader *r, size_t *size, bool *whole, struct hm_error *err)
{
    *size = 0;
    *whole = false;
    while (!*whole) {
        if (r->chunk_at == r->chunk_size) {
            r->chunk_at = 0;
            r->chunk_size = fread(r->chunk, 1, sizeof r->chunk, r->file);
            if (r->chunk_size == 0) break;
        }
        const char *from = r->chunk + r->chunk_at;
        size_t left = r->chunk_size - r->chunk_at;
        const char *newline = memchr(from, '\n', left);
        size_t take = newline ? (size_t)(newline - from) : left;
        if (take > HM_LOG_LONGEST_LINE - *size)
            return hm_fail(err, HM_RANGE, "%s: line %zu: expected at most %d bytes, found more", r->path,
                           r->line_number + 1, HM_LOG_LONGEST_LINE);
        if (!hm_grow(&r->line.data, &r->line.capacity, *size + take + 1, 1))
            return hm_fail(err, HM_MEMORY, "%s: line %zu: out of memory", r->path, r->line_number + 1);
        memcpy((char *)r->line.data + *size, from, take);
        *size += take;
        r->chunk_at += take + (newline != NULL);
        *whole = newline != NULL;
    }
    if (ferror(r->file)) return hm_fail(err, HM_IO, "%s: cannot read: %s", r->path, strerror(errno));
    return HM_OK;
}

// The next line that is not passed over; before it the round it may belong to.
static hm_status next_line(struct hm_log_reader *r, struct hm_error *err)
{
    if (r->delivering) {
        hm_log_swap_held(r);
        return HM_OK;
    }
    while (true) {
        hm_status rc = read_line(r, &r->line_size, &r->line_whole, err);
        if (rc) return rc;
        if (!hm_log_pass_over(r)) break;
        r->line_number++;
    }
    if (r->held_size > 0) hm_log_swap_held(r);
    return HM_OK;
}

// Parses the next line into *out, or leaves it NULL at the end of the file or at a line cut short.
static hm_status next_json(struct hm_log_reader *r, cJSON **out, struct hm_error *err)
{
    char where[64];
    *out = NULL;
    hm_status rc = next_line(r, err);
    if (rc) return rc;
    bool whole = r->line_whole || r->delivering;
    if (!whole && r->line_size == 0) {
        r->state = HM_LOG_NO_END;
        return HM_OK;
    }
    snprintf(where, sizeof where, "line %zu", r->delivering ? r->held_line : r->line_number + 1);
    rc = hm_json_parse(where, r->line.data, r->line_size, out, err);
    if (rc && !whole) { // no part of a record is a record, so only a line that lost nothing but its newline parses
        r->state = HM_LOG_CUT_LINE;
        return HM_OK;
    }
    if (rc) return err ? hm_fail_prefix(err, r->path) : rc;
    if (!r->delivering) r->line_number++;
    return HM_OK;
}

static hm_status parse_record(struct hm_log_reader *r, const struct hm_place *place, enum hm_record_kind kind)
{
    switch (kind) {
    case HM_RECORD_SEQUENCE: return hm_log_parse_sequence(r, place);
    case HM_RECORD_ROUND: return r->delivering ? hm_log_parse_held(r, place) : hm_log_parse_round(r, place);
    case HM_RECORD_STEP:
    case HM_RECORD_NODE: return hm_log_parse_step(r, place, kind);
    case HM_RECORD_ROW: return hm_log_parse_row(r, place);
    default: return hm_log_parse_end(r, place);
    }
}

static hm_status take_chain(struct hm_log_reader *r, const struct hm_place *place, const cJSON *json)
{
    const char *chain;
    hm_status rc = hm_field_hash(place, json, "chain", &chain);
    if (!rc) memcpy(r->chain, chain, sizeof r->chain);
    return rc;
}

static hm_status next_record(struct hm_log_reader *r, struct hm_record *out, struct hm_error *err)
{
    static const char *const kinds[] = {"sequence", "round", "step", "node", "row", "end"};
    int kind = HM_RECORD_NONE;
    *out = (struct hm_record){.kind = HM_RECORD_NONE, .line = r->line_number};
    if (r->state == HM_LOG_NO_END || r->state == HM_LOG_CUT_LINE) return HM_OK;
    cJSON_Delete(r->json);
    bool ended = r->state == HM_LOG_COMPLETE;
    hm_status rc = next_json(r, &r->json, err);
    if (rc) return rc;
    out->line = r->line_number;
    out->before = r->header.audit ? r->index : r->t;
    if (ended && r->state == HM_LOG_NO_END) { // the file ends right after its end record, as it should
        r->state = HM_LOG_COMPLETE;
        return HM_OK;
    }
    size_t line = r->delivering ? r->held_line : r->line_number + (r->json == NULL);
    const struct hm_place place = {.file = r->path, .line = line, .err = err};
    if (ended) return hm_place_fail(&place, "kind", HM_FORMAT, "nothing after the end record", "another line");
    if (!r->json) return HM_OK;
    if (!cJSON_IsObject(r->json)) return hm_place_mismatch(&place, "record", "an object", r->json);
    rc = hm_field_choice(&place, r->json, "kind", kinds, 6, &kind);
    if (!rc) rc = take_chain(r, &place, r->json);
    if (!rc) rc = parse_record(r, &place, (enum hm_record_kind)kind);
    if (rc) return rc;
    out->kind = (enum hm_record_kind)kind;
    out->line = line;
    if (kind == HM_RECORD_SEQUENCE) out->sequence = &r->sequence_record;
    if (kind == HM_RECORD_ROUND) out->round = &r->round_record;
    if (kind == HM_RECORD_STEP || kind == HM_RECORD_NODE || kind == HM_RECORD_ROW) out->step = &r->step_record;
    if (kind == HM_RECORD_END) {
        out->end = &r->end_record;
        r->state = HM_LOG_COMPLETE;
    }
    return HM_OK;
}

hm_status hm_log_reader_next(struct hm_log_reader *r, struct hm_record *out, struct hm_error *err)
{
    if (!r->failure.code) {
        hm_status rc = next_record(r, out, &r->failure);
        if (!rc) return HM_OK;
        r->failure.code = rc;
    }
    *out = (struct hm_record){.kind = HM_RECORD_NONE, .line = r->line_number};
    return hm_fail(err, r->failure.code, "%s", r->failure.message);
}

static hm_status read_header(struct hm_log_reader *r, struct hm_error *err)
{
    hm_status rc = next_json(r, &r->header_json, err);
    const struct hm_place place = {.file = r->path, .line = 1, .err = err};
    if (rc) return rc;
    if (!r->header_json)
        return hm_place_fail(&place, "kind", HM_FORMAT, "a header record",
                             r->state == HM_LOG_NO_END ? "an empty file" : "an incomplete line");
    if (!cJSON_IsObject(r->header_json)) return hm_place_mismatch(&place, "record", "an object", r->header_json);
    rc = hm_log_parse_header(r, &place);
    if (!rc) rc = take_chain(r, &place, r->header_json);
    return rc;
}

hm_status hm_log_reader_open(const char *path, struct hm_log_reader **out, struct hm_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    *out = NULL;
    struct hm_log_reader *r = hm_calloc(1, sizeof *r);
    if (!r) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    r->sequence = r->t = r->round = r->index = -1;
    r->finished = true;
    r->path = strdup(standard ? "standard input" : path);
    r->file = standard ? stdin : fopen(path, "rbe");
    hm_status rc = HM_OK;
    if (!r->path) rc = hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    else if (!r->file) rc = hm_fail(err, HM_IO, "%s: cannot open: %s", path, strerror(errno));
    else rc = read_header(r, err);
    if (rc) hm_log_reader_close(r);
    else *out = r;
    return rc;
}

void hm_log_reader_close(struct hm_log_reader *r)
{
    if (!r) return;
    if (r->file && r->file != stdin) fclose(r->file);
    cJSON_Delete(r->header_json);
    cJSON_Delete(r->json);
    struct hm_reused *arrays[] = {&r->line, &r->held, &r->prompt, &r->parent, &r->token, &r->depth, &r->logq, &r->top, &r->claims};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]->data);
    free(r->path);
    free(r);
}

const struct hm_record_header *hm_log_reader_header(const struct hm_log_reader *r)
{
    return &r->header;
}

enum hm_log_state hm_log_reader_state(const struct hm_log_reader *r)
{
    return r->state;
}

const char *hm_log_reader_line(const struct hm_log_reader *r, size_t *size)
{
    *size = r->line_size;
    return r->line.data;
}

const char *hm_log_reader_chain(const struct hm_log_reader *r)
{
    return r->chain;
}
