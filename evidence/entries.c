// Collecting the entries of a row: see entries.h. What they mean together is entries_finish.c.
#include "evidence/entries.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_NUMBER = 64 }; // a number that is written as a string

// Below any log-probability of float32 rows: llama.cpp writes the lowest float for a probability of 0.
static const double LOWEST = -1e30;

void hm_entries_init(struct hm_entries *entries, const struct hm_source_options *options)
{
    *entries = (struct hm_entries){.options = options};
}

void hm_entries_clear(struct hm_entries *entries)
{
    free(entries->entry);
    free(entries->note);
    free(entries->text);
    *entries = (struct hm_entries){0};
}

hm_status hm_entries_begin(struct hm_entries *e, size_t bytes, struct hm_error *err)
{
    e->count = e->text_size = e->sentinels = 0;
    e->not_a_number = e->bad_id = e->has_emitted = e->has_own = e->own_sentinel = e->unmeasured = false;
    e->emitted = (struct hm_name){.id = -1};
    if (!hm_grow((void **)&e->text, &e->text_room, bytes, 1))
        return hm_fail(err, HM_MEMORY, "out of memory for the texts of a row");
    return HM_OK;
}

// ---- Names ----

static bool put_bytes(struct hm_entries *e, struct hm_json_text bytes, struct hm_name *out)
{
    size_t at = e->text_size;
    int64_t value;
    if (hm_json_text_kind(bytes) != HM_JSON_ARRAY) return false;
    for (struct hm_json_text b = hm_json_text_first(bytes, NULL); b.at; b = hm_json_text_next(bytes, b, NULL)) {
        if (!hm_json_text_integer(b, &value) || value < 0 || value > 255 || at == e->text_room) return false;
        e->text[at++] = (char)value;
    }
    *out = (struct hm_name){.id = out->id, .text = e->text + e->text_size, .size = at - e->text_size, .exact = true};
    e->text_size = at;
    return true;
}

static void put_text(struct hm_entries *e, struct hm_json_text text, struct hm_name *out)
{
    size_t room = e->text_room - e->text_size;
    if (hm_json_text_kind(text) != HM_JSON_STRING || !e->text) return;
    size_t size = hm_json_text_string(text, e->text + e->text_size, room);
    out->text = e->text + e->text_size;
    out->size = size < room ? size : room;
    e->text_size += out->size;
}

// "token_id:9", vLLM's way of giving ids instead of texts.
static bool is_id_text(const struct hm_name *name, int32_t *id)
{
    static const char prefix[] = "token_id:";
    size_t n = sizeof prefix - 1;
    int64_t value = 0;
    if (!name->text || name->size <= n || name->size > n + 10 || memcmp(name->text, prefix, n) != 0) return false;
    for (size_t i = n; i < name->size; i++) {
        if (name->text[i] < '0' || name->text[i] > '9') return false;
        value = 10 * value + (name->text[i] - '0');
    }
    *id = (int32_t)value;
    return value <= INT32_MAX;
}

int32_t hm_entries_id(struct hm_entries *e, struct hm_json_text id)
{
    int64_t value;
    bool told = hm_json_text_kind(id) == HM_JSON_NUMBER;
    if (!told) return -1;
    bool is_id = hm_json_text_integer(id, &value) && value >= 0 && value <= INT32_MAX;
    bool in_range = is_id && (e->options->vocab == 0 || (uint64_t)value < e->options->vocab);
    if (!in_range && !e->bad_id)
        snprintf(e->bad, sizeof e->bad, "%.*s", (int)(id.end - id.at < 40 ? id.end - id.at : 40), id.at);
    e->bad_id = e->bad_id || !in_range;
    return is_id ? (int32_t)value : -1;
}

struct hm_name hm_entries_name(struct hm_entries *e, struct hm_json_text id, struct hm_json_text text,
                               struct hm_json_text bytes)
{
    struct hm_name name = {.id = hm_entries_id(e, id)};
    int32_t told;
    put_text(e, text, &name);
    if (is_id_text(&name, &told)) {
        name = (struct hm_name){.id = told};
        put_bytes(e, bytes, &name);
        return is_id_text(&name, &told) ? (struct hm_name){.id = told} : name;
    }
    put_bytes(e, bytes, &name);
    return name;
}

// ---- Numbers ----

struct number {
    bool told, sentinel;
    struct hm_ival printed, value;
};

static bool is_sentinel(const char *text, size_t size, struct hm_ival value)
{
    static const char word[] = "-9999";
    size_t n = sizeof word - 1;
    if (value.hi < LOWEST) return true;
    if (size < n || memcmp(text, word, n) != 0) return false;
    if (size > n && text[n++] != '.') return false;
    while (n < size && text[n] == '0') n++;
    return n == size;
}

static hm_status read_number(struct hm_entries *e, enum hm_entry_unit unit, struct hm_json_text value,
                             struct number *out, struct hm_error *err)
{
    char buffer[STRING_NUMBER];
    const char *text = value.at;
    size_t size = (size_t)(value.end - value.at);
    enum hm_json_text_kind json = hm_json_text_kind(value);
    enum hm_decimal_kind kind;
    *out = (struct number){.told = true};
    if (json == HM_JSON_STRING) {
        text = buffer;
        size = hm_json_text_string(value, buffer, sizeof buffer);
        if (size > sizeof buffer) return hm_fail(err, HM_FORMAT, "expected a number, found a long string");
    } else if (json != HM_JSON_NUMBER) {
        return hm_fail(err, HM_FORMAT, "expected a number, found %s", hm_json_text_kind_name(value));
    }
    hm_status rc = hm_decimal_read(text, size, e->options->printing, &kind, &out->printed, err);
    if (rc) return rc;
    if (kind == HM_DECIMAL_NAN || kind == HM_DECIMAL_INFINITE) {
        e->not_a_number = true;
        snprintf(e->bad_number, sizeof e->bad_number, "%s", kind == HM_DECIMAL_NAN ? "NaN" : "+infinity");
        return HM_OK;
    }
    if (kind == HM_DECIMAL_MINUS_INFINITE) {
        out->printed = out->value = (struct hm_ival){-INFINITY, -INFINITY};
        return HM_OK;
    }
    out->sentinel = unit == HM_ENTRY_LOG_PROBABILITY && is_sentinel(text, size, out->printed);
    if (unit == HM_ENTRY_PROBABILITY) out->printed = hm_decimal_log(out->printed);
    out->value = hm_decimal_widen(out->printed, e->options->allowance);
    if (out->sentinel) out->value = (struct hm_ival){-9999, -9999};
    return HM_OK;
}

hm_status hm_entries_push(struct hm_entries *e, struct hm_evidence_entry entry, struct hm_entry_note note,
                          struct hm_error *err)
{
    size_t room = e->capacity;
    if (!hm_grow((void **)&e->entry, &room, e->count + 1, sizeof *e->entry) ||
        !hm_grow((void **)&e->note, &e->capacity, e->count + 1, sizeof *e->note))
        return hm_fail(err, HM_MEMORY, "out of memory for the entries of a row");
    e->entry[e->count] = entry;
    e->note[e->count++] = note;
    return HM_OK;
}

hm_status hm_entries_add(struct hm_entries *e, struct hm_name name, enum hm_entry_unit unit, struct hm_json_text value,
                         int64_t rank, struct hm_error *err)
{
    struct number number;
    if (hm_json_text_kind(value) == HM_JSON_NULL) { // how some encoders write NaN
        e->not_a_number = true;
        snprintf(e->bad_number, sizeof e->bad_number, "null");
        return HM_OK;
    }
    hm_status rc = read_number(e, unit, value, &number, err);
    if (rc) return rc;
    e->sentinels += number.sentinel;
    return hm_entries_push(
        e, (struct hm_evidence_entry){.id = name.id, .text = name.text, .text_size = name.size, .value = number.value},
        (struct hm_entry_note){
            .printed = number.printed, .rank = rank, .sentinel = number.sentinel, .exact = name.exact},
        err);
}

hm_status hm_entries_emitted(struct hm_entries *e, struct hm_name name, enum hm_entry_unit unit,
                             struct hm_json_text value, struct hm_error *err)
{
    struct number number = {0};
    enum hm_json_text_kind kind = hm_json_text_kind(value);
    hm_status rc = kind == HM_JSON_NONE || kind == HM_JSON_NULL ? HM_OK : read_number(e, unit, value, &number, err);
    e->emitted = name;
    e->has_emitted = true;
    e->has_own = number.told && !number.sentinel;
    e->own_sentinel = number.sentinel;
    e->own = number.value;
    e->own_printed = number.printed;
    return rc;
}

// The id that a key names, which is a string of digits.
static hm_status key_id(struct hm_entries *e, struct hm_json_text key, int32_t *id, struct hm_error *err)
{
    struct hm_json_text digits = {key.at + 1, key.end - 1};
    int64_t value;
    if (digits.at == digits.end || !hm_json_text_integer((struct hm_json_text){digits.at, digits.end}, &value))
        return hm_fail(err, HM_FORMAT, "expected a token id as key, found %.*s",
                       (int)(key.end - key.at < 40 ? key.end - key.at : 40), key.at);
    *id = hm_entries_id(e, digits);
    return HM_OK;
}

hm_status hm_entries_add_ids(struct hm_entries *e, struct hm_json_text object, struct hm_error *err)
{
    struct hm_json_text key, none = {0};
    hm_status rc = HM_OK;
    for (struct hm_json_text v = hm_json_text_first(object, &key); v.at && !rc;
         v = hm_json_text_next(object, v, &key)) {
        int64_t rank = 0;
        int32_t id = -1;
        rc = key_id(e, key, &id, err);
        if (rc) break;
        struct hm_name name = hm_entries_name(e, none, hm_json_text_find(v, "decoded_token"), none);
        name.id = id;
        hm_json_text_integer(hm_json_text_find(v, "rank"), &rank);
        bool bare = hm_json_text_kind(v) != HM_JSON_OBJECT; // {"374": -0.41}
        rc = hm_entries_add(e, name, HM_ENTRY_LOG_PROBABILITY, bare ? v : hm_json_text_find(v, "logprob"), rank, err);
    }
    return rc;
}
