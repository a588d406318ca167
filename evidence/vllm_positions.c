// Positions of vLLM's log-probabilities: see vllm_positions.h.
#include "evidence/vllm_positions.h"

#include <stdio.h>

static hm_status expected(const char *place, const char *what, struct hm_json_text found, struct hm_error *err)
{
    return hm_fail(err, HM_FORMAT, "%s: expected %s, found %s", place, what, hm_json_text_kind_name(found));
}

hm_status hm_positions_open(const char *name, struct hm_json_text value, struct hm_positions *out, struct hm_error *err)
{
    static const char *const lists[] = {"start_indices", "end_indices", "token_ids", "logprobs", "ranks", "decoded_tokens"};
    struct hm_cursor cursors[6];
    char place[HM_FINDING_WHERE];
    *out = (struct hm_positions){.name = name};
    if (hm_json_text_empty(value)) return HM_OK;
    if (hm_json_text_kind(value) == HM_JSON_ARRAY) {
        out->row = hm_cursor_at(value);
        return HM_OK;
    }
    if (hm_json_text_kind(value) != HM_JSON_OBJECT) return expected(name, "an array, flat lists or null", value, err);
    for (size_t i = 0; i < 6; i++) {
        struct hm_json_text list = hm_json_text_find(value, lists[i]);
        snprintf(place, sizeof place, "%s.%s", name, lists[i]);
        if (hm_json_text_kind(list) != HM_JSON_ARRAY) return expected(place, "an array", list, err);
        cursors[i] = hm_cursor_at(list);
    }
    out->flat = true;
    out->start = cursors[0], out->end = cursors[1];
    out->id = cursors[2], out->value = cursors[3], out->rank = cursors[4], out->text = cursors[5];
    return HM_OK;
}

bool hm_positions_has(const struct hm_positions *p)
{
    return p->flat ? p->start.element.at != NULL : p->row.element.at != NULL;
}

bool hm_positions_empty(const struct hm_positions *p)
{
    int64_t from, to;
    if (!p->flat) return hm_json_text_empty(p->row.element);
    return hm_json_text_integer(p->start.element, &from) && hm_json_text_integer(p->end.element, &to) && from == to;
}

void hm_positions_next(struct hm_positions *p)
{
    hm_cursor_advance(&p->start);
    hm_cursor_advance(&p->end);
    hm_cursor_advance(&p->row);
    p->index++;
}

size_t hm_positions_bytes(const struct hm_positions *p)
{
    struct hm_cursor text = p->text;
    int64_t from, to;
    if (!p->flat) return p->row.element.at ? (size_t)(p->row.element.end - p->row.element.at) : 0;
    if (!hm_json_text_integer(p->start.element, &from) || !hm_json_text_integer(p->end.element, &to)) return 0;
    const char *begin = text.element.at, *end = text.element.end;
    for (int64_t at = (int64_t)p->at; at < to && text.element.at; at++, hm_cursor_advance(&text)) end = text.element.end;
    return begin ? (size_t)(end - begin) : 0;
}

static void next_place(struct hm_positions *p)
{
    hm_cursor_advance(&p->id);
    hm_cursor_advance(&p->value);
    hm_cursor_advance(&p->rank);
    hm_cursor_advance(&p->text);
    p->at++;
}

// Moves on to the position's first place; *end is behind its last.
static hm_status find_range(struct hm_positions *p, size_t *end, struct hm_error *err)
{
    int64_t from, to;
    char place[HM_FINDING_WHERE];
    snprintf(place, sizeof place, "%s.start_indices[%zu]", p->name, p->index);
    if (!hm_json_text_integer(p->start.element, &from) || from < (int64_t)p->at)
        return expected(place, "a place behind the position before", p->start.element, err);
    snprintf(place, sizeof place, "%s.end_indices[%zu]", p->name, p->index);
    if (!hm_json_text_integer(p->end.element, &to) || to < from)
        return expected(place, "a place that is not before start_indices", p->end.element, err);
    while (p->at < (size_t)from && p->id.element.at) next_place(p);
    *end = (size_t)to;
    return HM_OK;
}

// Does the token at the place come again before `end`?
static bool repeats(const struct hm_positions *p, size_t end)
{
    int32_t first, other;
    struct hm_cursor id = p->id;
    if (!hm_json_text_id(id.element, &first)) return false;
    for (size_t at = p->at + 1; at < end; at++) {
        hm_cursor_advance(&id);
        if (!id.element.at) return false;
        if (hm_json_text_id(id.element, &other) && other == first) return true;
    }
    return false;
}

static hm_status add_place(struct hm_positions *p, int32_t id, struct hm_entries *entries, struct hm_own *own,
                           struct hm_error *err)
{
    int64_t rank = 0;
    int32_t listed;
    char place[HM_FINDING_WHERE];
    snprintf(place, sizeof place, "%s.token_ids[%zu]", p->name, p->at);
    if (!hm_json_text_id(p->id.element, &listed) || listed < 0) return expected(place, "a token id", p->id.element, err);
    struct hm_name name = hm_entries_name(entries, p->id.element, p->text.element, (struct hm_json_text){0});
    if (!hm_json_text_integer(p->rank.element, &rank) || rank < 0) rank = 0;
    if (listed == id) *own = (struct hm_own){p->value.element, p->text.element};
    hm_status rc = hm_entries_add(entries, name, HM_ENTRY_LOG_PROBABILITY, p->value.element, rank, err);
    snprintf(place, sizeof place, "%s.logprobs[%zu]", p->name, p->at);
    if (rc) hm_fail_prefix(err, place);
    return rc;
}

static hm_status add_flat(struct hm_positions *p, int32_t id, struct hm_entries *entries, struct hm_own *own,
                          struct hm_error *err)
{
    size_t end = 0;
    hm_status rc = find_range(p, &end, err);
    if (!rc && p->at < end && repeats(p, end)) next_place(p); // the sampled token, once more among the largest
    for (; !rc && p->at < end; next_place(p)) rc = add_place(p, id, entries, own, err);
    return rc;
}

hm_status hm_positions_add(struct hm_positions *p, int32_t id, struct hm_entries *entries, struct hm_own *own,
                           struct hm_error *err)
{
    char key[16];
    *own = (struct hm_own){0};
    if (p->flat) return add_flat(p, id, entries, own, err);
    if (hm_positions_empty(p)) return HM_OK;
    if (hm_json_text_kind(p->row.element) != HM_JSON_OBJECT) return expected(p->name, "an object or null", p->row.element, err);
    snprintf(key, sizeof key, "%d", id);
    struct hm_json_text entry = hm_json_text_find(p->row.element, key);
    bool bare = hm_json_text_kind(entry) != HM_JSON_OBJECT; // {"374":-0.41}
    own->value = bare ? entry : hm_json_text_find(entry, "logprob");
    own->text = hm_json_text_find(entry, "decoded_token");
    return hm_entries_add_ids(entries, p->row.element, err);
}
