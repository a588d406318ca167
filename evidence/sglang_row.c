// Rows of SGLang: see sglang_row.h.
#include "evidence/sglang_row.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// ---- Lists ----

static hm_status open_list(struct hm_json_text meta, const char *name, struct hm_cursor *out, struct hm_error *err)
{
    struct hm_json_text list = hm_json_text_find(meta, name);
    *out = hm_cursor_at(list);
    if (hm_json_text_empty(list) || hm_json_text_kind(list) == HM_JSON_ARRAY) return HM_OK;
    return hm_fail(err, HM_FORMAT, "meta_info.%s: expected an array or null, found %s", name, hm_json_text_kind_name(list));
}

hm_status hm_sglang_lists_open(struct hm_json_text meta, bool input, struct hm_sglang_lists *out, struct hm_error *err)
{
    *out = (struct hm_sglang_lists){0};
    hm_status rc = open_list(meta, input ? "input_token_logprobs" : "output_token_logprobs", &out->own, err);
    if (!rc) rc = open_list(meta, input ? "input_top_logprobs" : "output_top_logprobs", &out->top, err);
    if (!rc) rc = open_list(meta, input ? "input_token_ids_logprobs" : "output_token_ids_logprobs", &out->chosen, err);
    return rc;
}

void hm_sglang_lists_next(struct hm_sglang_lists *l)
{
    hm_cursor_advance(&l->own);
    hm_cursor_advance(&l->top);
    hm_cursor_advance(&l->chosen);
    l->index++;
}

// ---- Entries ----

struct triple {
    struct hm_json_text value, id, text;
};

static hm_status read_triple(struct hm_json_text entry, struct triple *out, struct hm_error *err)
{
    struct hm_cursor c = hm_cursor_at(entry);
    int32_t id;
    out->value = c.element;
    hm_cursor_advance(&c);
    out->id = c.element;
    hm_cursor_advance(&c);
    out->text = c.element;
    if (hm_json_text_id(out->id, &id)) return HM_OK;
    return hm_fail(err, HM_FORMAT, "expected [logprob, id, text], found %s",
                   hm_json_text_kind(entry) == HM_JSON_ARRAY ? "another array" : hm_json_text_kind_name(entry));
}

static hm_status add_triple(struct hm_entries *e, const struct triple *triple, int64_t rank, struct hm_error *err)
{
    struct hm_name name = hm_entries_name(e, triple->id, triple->text, (struct hm_json_text){0});
    return hm_entries_add(e, name, HM_ENTRY_LOG_PROBABILITY, triple->value, rank, err);
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

hm_status hm_sglang_id(struct hm_json_text entry, struct hm_json_text *out, struct hm_error *err)
{
    struct triple triple;
    hm_status rc = read_triple(entry, &triple, err);
    *out = triple.id;
    return rc;
}

// The k largest, with their ranks.
static hm_status add_top(struct hm_entries *e, struct hm_sglang_ids *ids, struct hm_json_text list, size_t *count,
                         struct hm_error *err)
{
    struct triple triple;
    hm_status rc = HM_OK;
    *count = 0;
    for (struct hm_cursor c = hm_cursor_at(list); c.element.at && !rc; hm_cursor_advance(&c)) {
        void *grown = ids->id;
        rc = read_triple(c.element, &triple, err);
        if (!rc && !hm_grow(&grown, &ids->room, *count + 1, sizeof *ids->id))
            rc = hm_fail(err, HM_MEMORY, "out of memory for %zu ids", *count + 1);
        ids->id = grown;
        if (rc) break;
        hm_json_text_id(triple.id, &ids->id[(*count)++]);
        rc = add_triple(e, &triple, (int64_t)*count, err);
    }
    if (*count) qsort(ids->id, *count, sizeof *ids->id, compare_ids);
    return rc;
}

// Those asked for by id that are not among the `count` largest: no rank is known.
static hm_status add_chosen(struct hm_entries *e, const struct hm_sglang_ids *ids, struct hm_json_text list, size_t count,
                            struct hm_error *err)
{
    struct triple triple;
    hm_status rc = HM_OK;
    for (struct hm_cursor c = hm_cursor_at(list); c.element.at && !rc; hm_cursor_advance(&c)) {
        int32_t id = -1;
        rc = read_triple(c.element, &triple, err);
        if (rc) break;
        hm_json_text_id(triple.id, &id);
        bool again = count && bsearch(&id, ids->id, count, sizeof id, compare_ids);
        if (!again) rc = add_triple(e, &triple, INT64_MAX, err);
    }
    return rc;
}

// The emitted token itself, where neither list has it: the lists have the largest, and those asked for.
static hm_status add_own(struct hm_entries *e, const struct triple *own, struct hm_error *err)
{
    int32_t id = -1;
    hm_json_text_id(own->id, &id);
    if (hm_json_text_empty(own->value)) return HM_OK;
    for (size_t i = 0; i < e->count; i++)
        if (e->entry[i].id == id) return HM_OK;
    return add_triple(e, own, INT64_MAX, err);
}

// ---- The token ----

// What the other fields say of the emitted token. told: its id in output_ids.
static void look_at_token(struct hm_events *events, bool has_own, struct hm_json_text told)
{
    const struct hm_evidence *row = &events->token.row;
    int32_t id;
    if (has_own && hm_json_text_id(told, &id) && id != events->token.token)
        hm_events_token_finding(events, HM_FINDING_TOKEN_DIFFERS, "output_ids has the token %" PRId32, id);
    if (events->token.has_row && row->emitted != HM_UNSEEN && row->ranked > 0 && row->emitted >= row->ranked &&
        row->entry[row->emitted].value.lo > row->entry[row->ranked - 1].value.hi)
        hm_events_token_finding(events, HM_FINDING_TOKEN_ABSENT,
                                "the emitted token is above the least of the %zu largest, which are listed without it",
                                row->ranked);
}

static size_t length_of(struct hm_json_text value)
{
    return value.at ? (size_t)(value.end - value.at) : 0;
}

hm_status hm_sglang_give(const struct hm_sglang_lists *l, struct hm_json_text told, struct hm_entries *e,
                         struct hm_sglang_ids *ids, struct hm_track *track, struct hm_events *events, struct hm_error *err)
{
    struct triple own = {.id = told};
    struct hm_name name = {.id = -1};
    size_t count = 0, bytes = 2 * length_of(l->own.element) + length_of(l->top.element) + length_of(l->chosen.element);
    bool has_own = l->own.element.at != NULL;
    int32_t id;
    hm_status rc = has_own ? read_triple(l->own.element, &own, err) : HM_OK;
    if (!rc && !hm_json_text_id(own.id, &id))
        rc = hm_fail(err, HM_FORMAT, "expected a token id, found %s", hm_json_text_kind_name(own.id));
    if (!rc) rc = hm_entries_begin(e, bytes, err);
    if (!rc) rc = add_top(e, ids, l->top.element, &count, err);
    if (!rc) rc = add_chosen(e, ids, l->chosen.element, count, err);
    if (!rc) rc = add_own(e, &own, err);
    if (!rc) name = hm_entries_name(e, own.id, own.text, (struct hm_json_text){0});
    if (!rc) rc = hm_entries_emitted(e, name, HM_ENTRY_LOG_PROBABILITY, own.value, err);
    if (!rc) rc = hm_entries_finish(e, HM_ORDER_RANKS, track, events, err);
    if (!rc) look_at_token(events, has_own, told);
    return rc;
}
