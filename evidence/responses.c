// Responses of servers: see responses.h.
#include "evidence/responses.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sequences that may be unfinished at one time, so that memory stays bounded.
enum { OPEN_MOST = 1024 };

struct hm_track *hm_responses_track(struct hm_responses *r)
{
    return &r->open[r->current].track;
}

void hm_responses_place(struct hm_responses *r, const char *list, size_t index)
{
    char choice[48] = "";
    if (r->format->has_choices) snprintf(choice, sizeof choice, "choices[%zu]", r->number);
    int at = snprintf(r->events.where, sizeof r->events.where, "line %zu%s%s", r->document.line,
                      *choice || *list ? ": " : "", choice);
    if (*list && at > 0 && (size_t)at < sizeof r->events.where)
        snprintf(r->events.where + at, sizeof r->events.where - (size_t)at, "%s%s[%zu]", *choice ? "." : "", list,
                 index);
}

hm_status hm_responses_fail(struct hm_responses *r, struct hm_error *err)
{
    char prefix[512];
    if (!err) return HM_FORMAT;
    snprintf(prefix, sizeof prefix, "%s: %s", r->documents.path, r->events.where);
    return hm_fail_prefix(err, prefix);
}

hm_status hm_responses_array(struct hm_responses *r, const char *key, struct hm_json_text value,
                             struct hm_json_text *out, struct hm_error *err)
{
    *out = value;
    enum hm_json_text_kind kind = hm_json_text_kind(*out);
    if (kind == HM_JSON_NULL) *out = (struct hm_json_text){0};
    if (kind == HM_JSON_NONE || kind == HM_JSON_NULL || kind == HM_JSON_ARRAY) return HM_OK;
    return hm_document_expected(&r->documents, &r->document, key, "an array", *out, err);
}

// ---- Sequences ----

static bool same_id(struct hm_json_text a, struct hm_json_text b)
{
    size_t n = (size_t)(a.end - a.at);
    if (!a.at || !b.at) return a.at == b.at;
    return n == (size_t)(b.end - b.at) && memcmp(a.at, b.at, n) == 0;
}

static struct hm_json_text response_id(const struct hm_responses *r)
{
    struct hm_json_text id = r->response[HM_RESPONSE_ID], none = {0};
    return hm_json_text_kind(id) == HM_JSON_STRING ? id : none;
}

// Terminated; cut at a character border.
static void copy_string(struct hm_json_text string, char *out, size_t size)
{
    memset(out, 0, size);
    hm_json_text_string(string, out, size - 1);
}

static void copy_temperature(struct hm_responses *r)
{
    struct hm_json_text t = hm_json_text_find(r->response[HM_RESPONSE_SETTINGS], "temperature");
    if (!t.at) t = r->response[HM_RESPONSE_TEMPERATURE];
    size_t n = (size_t)(t.end - t.at);
    r->temperature[0] = '\0';
    if (hm_json_text_kind(t) != HM_JSON_NUMBER || n >= sizeof r->temperature) return;
    memcpy(r->temperature, t.at, n);
    r->temperature[n] = '\0';
}

// vLLM tells the prompt's ids in the choice or in the response.
static hm_status copy_prompt(struct hm_responses *r, struct hm_error *err)
{
    struct hm_json_text list;
    hm_status rc = hm_responses_array(r, "prompt_token_ids", r->member[HM_CHOICE_PROMPT_IDS], &list, err);
    if (!rc && !list.at)
        rc = hm_responses_array(r, "prompt_token_ids", r->response[HM_RESPONSE_PROMPT_IDS], &list, err);
    r->prompt_length = 0;
    for (struct hm_json_text e = hm_json_text_first(list, NULL); e.at && !rc; e = hm_json_text_next(list, e, NULL)) {
        int64_t id;
        if (!hm_json_text_integer(e, &id) || id < 0 || id > INT32_MAX)
            return hm_document_expected(&r->documents, &r->document, "prompt_token_ids", "token ids", e, err);
        if (!hm_grow((void **)&r->prompt, &r->prompt_room, r->prompt_length + 1, sizeof *r->prompt))
            return hm_fail(err, HM_MEMORY, "%s: out of memory for a prompt", r->documents.path);
        r->prompt[r->prompt_length++] = (int32_t)id;
    }
    return rc;
}

static void read_counter(struct hm_json_text object, const char *key, int64_t *out)
{
    int64_t value;
    if (hm_json_text_integer(hm_json_text_find(object, key), &value)) *out = value;
}

// What a response says of its speculation: llama.cpp's timings.
static void read_counters(const struct hm_responses *r, struct hm_track *track)
{
    struct hm_json_text timings = r->response[HM_RESPONSE_TIMINGS];
    read_counter(timings, "draft_n", &track->drafted);
    read_counter(timings, "draft_n_accepted", &track->accepted);
    read_counter(timings, "predicted_n", &track->predicted);
}

static hm_status begin_sequence(struct hm_responses *r, int64_t index, struct hm_error *err)
{
    if (r->count == OPEN_MOST)
        return hm_fail(err, HM_RANGE, "%s: line %zu: expected at most %d unfinished sequences", r->documents.path,
                       r->document.line, OPEN_MOST);
    if (!hm_grow((void **)&r->open, &r->room, r->count + 1, sizeof *r->open))
        return hm_fail(err, HM_MEMORY, "%s: out of memory for sequences", r->documents.path);
    r->current = r->count++;
    r->open[r->current] = (struct hm_open_sequence){.id = response_id(r), .index = index};
    hm_responses_place(r, "", 0);
    struct hm_track *track = hm_responses_track(r);
    hm_track_begin(track, r->sequences++, r->events.where);
    read_counters(r, track);
    copy_string(r->response[HM_RESPONSE_ID], r->id, sizeof r->id);
    copy_string(r->response[HM_RESPONSE_MODEL], r->model, sizeof r->model);
    copy_string(r->response[HM_RESPONSE_CATEGORY], r->category, sizeof r->category);
    copy_temperature(r);
    hm_status rc = copy_prompt(r, err);
    if (!rc) rc = hm_responses_array(r, "prompt_logprobs", r->member[HM_CHOICE_PROMPT_LOGPROBS], &r->prompt_list, err);
    if (!rc && !r->prompt_list.at)
        rc = hm_responses_array(r, "prompt_logprobs", r->response[HM_RESPONSE_PROMPT_LOGPROBS], &r->prompt_list, err);
    if (rc) return rc;
    r->prompt_at = r->options.prompt_tokens ? hm_json_text_first(r->prompt_list, NULL) : (struct hm_json_text){0};
    r->prompt_index = 0;
    r->events.sequence = (struct hm_source_sequence){
        .number = track->number,
        .id = r->id,
        .model = r->model,
        .category = r->category,
        .prompt = r->prompt_length ? r->prompt : NULL,
        .prompt_length = r->prompt_length,
        .temperature = r->temperature[0] ? r->temperature : NULL,
        .draft_tokens = track->drafted,
        .accepted_tokens = track->accepted,
    };
    hm_events_push(&r->events, HM_EVENT_SEQUENCE);
    return HM_OK;
}

static void end_sequence(struct hm_responses *r, size_t at)
{
    hm_track_end(&r->open[at].track, &r->events);
    memmove(r->open + at, r->open + at + 1, (r->count - at - 1) * sizeof *r->open);
    r->count--;
}

// ---- Choices ----

static enum hm_json_text_kind kind_of(const struct hm_responses *r, enum hm_choice_member member)
{
    return hm_json_text_kind(r->member[member]);
}

// Is a choice one of several pieces of its sequence?  Answers in a stream and deltas are; so is one that says by null
// that it has not finished, if it has a name to be continued by.
static bool is_chunk(const struct hm_responses *r)
{
    if (!r->format->has_choices) return r->documents.streamed || kind_of(r, HM_CHOICE_STOP) == HM_JSON_FALSE;
    if (kind_of(r, HM_CHOICE_MESSAGE) != HM_JSON_NONE) return false;
    if (kind_of(r, HM_CHOICE_DELTA) != HM_JSON_NONE || r->documents.streamed) return true;
    return kind_of(r, HM_CHOICE_FINISH_REASON) == HM_JSON_NULL && response_id(r).at;
}

static bool is_last_chunk(const struct hm_responses *r)
{
    if (!r->format->has_choices) return kind_of(r, HM_CHOICE_STOP) == HM_JSON_TRUE;
    return kind_of(r, HM_CHOICE_FINISH_REASON) == HM_JSON_STRING;
}

static size_t find_open(const struct hm_responses *r, int64_t index)
{
    struct hm_json_text id = response_id(r);
    for (size_t i = r->count; i-- > 0;)
        if (!r->open[i].finished && r->open[i].index == index && same_id(r->open[i].id, id)) return i;
    return r->count;
}

static hm_status begin_choice(struct hm_responses *r, struct hm_error *err)
{
    static const char *const keys[HM_CHOICE_MEMBERS] = {
        "index",
        "message",
        "delta",
        "text",
        "logprobs",
        "finish_reason",
        "prompt_token_ids",
        "prompt_logprobs",
        "token_ids",
        "stop",
        "content",
        "tokens",
        "completion_probabilities",
        "probs",
        "tokens_predicted",
    };
    int64_t index = 0;
    if (hm_json_text_kind(r->choice) != HM_JSON_OBJECT)
        return hm_document_expected(&r->documents, &r->document, "choices", "objects", r->choice, err);
    hm_json_text_find_all(r->choice, keys, HM_CHOICE_MEMBERS, r->member);
    hm_json_text_integer(r->member[HM_CHOICE_INDEX], &index);
    bool chunk = is_chunk(r), named = response_id(r).at || !r->format->has_choices; // the last chunk may look whole
    r->current = chunk || named ? find_open(r, index) : r->count;
    r->whole = r->current == r->count && !chunk;
    hm_status rc = HM_OK;
    r->prompt_at = (struct hm_json_text){0};
    if (r->current == r->count) rc = begin_sequence(r, index, err);
    if (!rc) rc = r->format->begin(r, err);
    r->stage = HM_PROMPT;
    return rc;
}

// A prompt's token: vLLM's map of ids, the actual token first; null for the first place.
static hm_status prompt_token(struct hm_responses *r, struct hm_error *err)
{
    struct hm_json_text row = r->prompt_at, key = {0}, none = {0};
    size_t place = r->prompt_index++;
    r->prompt_at = hm_json_text_next(r->prompt_list, row, NULL);
    if (hm_json_text_kind(row) == HM_JSON_NULL) return HM_OK;
    hm_responses_place(r, "prompt_logprobs", place);
    hm_status rc = hm_entries_begin(&r->entries, (size_t)(row.end - row.at), err);
    if (!rc) rc = hm_entries_add_ids(&r->entries, row, err);
    struct hm_name actual = {.id = -1};
    if (place < r->prompt_length)
        actual.id = r->prompt[place];
    else if (hm_json_text_first(row, &key).at && r->entries.count > 0)
        actual.id = r->entries.entry[0].id;
    for (size_t i = 0; i < r->entries.count; i++)
        if (r->entries.entry[i].id == actual.id)
            actual.text = r->entries.entry[i].text, actual.size = r->entries.entry[i].text_size;
    if (!rc) rc = hm_entries_emitted(&r->entries, actual, HM_ENTRY_LOG_PROBABILITY, none, err);
    if (rc) return hm_responses_fail(r, err);
    r->events.token = (struct hm_source_token){.of_prompt = true, .t = (uint32_t)place};
    return hm_entries_finish(&r->entries, HM_ORDER_RANKS, hm_responses_track(r), &r->events, err);
}

// More tokens were counted than are listed: what usage says of the only choice.
static void compare_usage(struct hm_responses *r, const struct hm_track *track)
{
    int64_t counted = -1, thought = 0;
    struct hm_json_text usage = r->response[HM_RESPONSE_USAGE];
    read_counter(usage, "completion_tokens", &counted);
    read_counter(hm_json_text_find(usage, "completion_tokens_details"), "reasoning_tokens", &thought);
    bool only = r->number == 0 && !hm_json_text_next(r->response[HM_RESPONSE_CHOICES], r->choice, NULL).at;
    if (!r->format->has_choices || !only || !track->listed || counted - thought <= track->tokens) return;
    hm_events_finding(&r->events, HM_FINDING_LENGTH, track->number, -1, track->where,
                      "usage tells %" PRId64 " tokens, %" PRIu32 " are listed", counted - thought, track->tokens);
}

static void end_choice(struct hm_responses *r)
{
    struct hm_open_sequence *open = &r->open[r->current];
    read_counters(r, &open->track);
    r->stage = HM_NEXT_CHOICE;
    if (r->whole) {
        compare_usage(r, &open->track);
        end_sequence(r, r->current);
    } else if (is_last_chunk(r)) {
        open->finished = true;
        if (!open->id.at) end_sequence(r, r->current);
    }
}

// ---- Documents ----

// Its members; batch files wrap a response with its status.
static void find_response(struct hm_responses *r, struct hm_json_text document)
{
    static const char *const keys[HM_RESPONSE_MEMBERS] = {
        "id",
        "model",
        "category",
        "choices",
        "timings",
        "usage",
        "error",
        "temperature",
        "generation_settings",
        "prompt_token_ids",
        "prompt_logprobs",
        "response",
    };
    hm_json_text_find_all(document, keys, HM_RESPONSE_MEMBERS, r->response);
    struct hm_json_text body = hm_json_text_find(r->response[HM_RESPONSE_RESPONSE], "body");
    if (r->response[HM_RESPONSE_CHOICES].at || !body.at) return;
    hm_json_text_find_all(body, keys, HM_RESPONSE_MEMBERS, r->response);
}

static hm_status begin_document(struct hm_responses *r, struct hm_error *err)
{
    hm_status rc = hm_documents_next(&r->documents, &r->document, err);
    if (rc) return rc;
    r->stage = r->document.value.at ? HM_CLOSE_FINISHED : HM_CLOSE_ALL;
    if (!r->document.value.at) return HM_OK;
    if (hm_json_text_kind(r->document.value) != HM_JSON_OBJECT)
        return hm_document_expected(&r->documents, &r->document, "the document", "an object", r->document.value, err);
    find_response(r, r->document.value);
    r->choice = (struct hm_json_text){0};
    r->number = 0;
    return HM_OK;
}

// Sequences whose last chunk was read end when a document of another response comes; one of the same has counters.
static void close_finished(struct hm_responses *r)
{
    struct hm_json_text id = response_id(r);
    for (size_t i = 0; i < r->count; i++) {
        if (!r->open[i].finished) continue;
        if (!same_id(r->open[i].id, id)) {
            end_sequence(r, i);
            return;
        }
        read_counters(r, &r->open[i].track);
    }
    r->stage = HM_NEXT_CHOICE;
}

static hm_status next_choice(struct hm_responses *r, struct hm_error *err)
{
    struct hm_json_text list = r->response[HM_RESPONSE_CHOICES], before = r->choice,
                        error = r->response[HM_RESPONSE_ERROR];
    char message[128] = "no message";
    if (hm_json_text_kind(error) == HM_JSON_OBJECT && !before.at && !list.at) {
        struct hm_json_text text = hm_json_text_find(error, "message");
        if (text.at) copy_string(text, message, sizeof message);
        hm_responses_place(r, "", 0);
        hm_events_finding(&r->events, HM_FINDING_NO_LOGPROBS, -1, -1, r->events.where,
                          "the server answered with an error: %s", message);
        r->stage = HM_NEXT_DOCUMENT;
        return HM_OK;
    }
    if (!r->format->has_choices) {
        r->choice = before.at ? (struct hm_json_text){0} : r->document.value;
    } else {
        if (hm_json_text_kind(list) != HM_JSON_ARRAY)
            return hm_document_expected(&r->documents, &r->document, "choices", "an array", list, err);
        r->number = before.at ? r->number + 1 : 0;
        r->choice = before.at ? hm_json_text_next(list, before, NULL) : hm_json_text_first(list, NULL);
    }
    if (r->choice.at) return begin_choice(r, err);
    r->stage = HM_NEXT_DOCUMENT;
    return HM_OK;
}

static hm_status tokens(struct hm_responses *r, struct hm_error *err)
{
    bool more;
    hm_status rc = r->format->token(r, &more, err);
    if (!rc && !more) end_choice(r);
    return rc;
}

static hm_status step(struct hm_responses *r, struct hm_error *err)
{
    switch (r->stage) {
    case HM_NEXT_DOCUMENT: return begin_document(r, err);
    case HM_CLOSE_FINISHED: close_finished(r); return HM_OK;
    case HM_NEXT_CHOICE: return next_choice(r, err);
    case HM_PROMPT:
        if (r->prompt_at.at) return prompt_token(r, err);
        r->stage = HM_TOKENS;
        return HM_OK;
    case HM_TOKENS: return tokens(r, err);
    case HM_CLOSE_ALL:
        if (r->count > 0)
            end_sequence(r, 0);
        else
            r->stage = HM_ENDED;
        return HM_OK;
    case HM_ENDED: break;
    }
    hm_events_push(&r->events, HM_EVENT_END);
    return HM_OK;
}

static hm_status next(void *state, struct hm_event *out, struct hm_error *err)
{
    struct hm_responses *r = state;
    while (!hm_events_take(&r->events, out)) {
        hm_status rc = step(r, err);
        if (rc) return rc;
    }
    return HM_OK;
}

static void close_responses(void *state)
{
    struct hm_responses *r = state;
    hm_entries_clear(&r->entries);
    if (r->format && r->format->clear) r->format->clear(r->state);
    free(r->state);
    free(r->open);
    free(r->prompt);
    free(r);
}

hm_status hm_responses_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                            const struct hm_responses_format *format, struct hm_reader *out, struct hm_error *err)
{
    struct hm_responses *r = hm_calloc(1, sizeof *r);
    if (r) r->state = hm_calloc(1, format->state);
    if (!r || !r->state) {
        free(r);
        return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    }
    r->format = format;
    r->options = *options;
    hm_entries_init(&r->entries, &r->options);
    hm_status rc = hm_documents_open(&r->documents, path, map, err);
    if (rc)
        close_responses(r);
    else
        *out = (struct hm_reader){.state = r, .next = next, .close = close_responses};
    return rc;
}
