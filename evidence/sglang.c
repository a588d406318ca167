// SGLang's answers to /generate: output_ids, and meta_info with lists of log-probabilities, of the prompt's tokens too.
//
// What they say of a token: sglang_row.h. A stream says everything again in each document, or only what is new: what
// completion_tokens counts tells which. Names of the counters of speculation changed over versions: all are read.
#include "evidence/documents.h"
#include "evidence/sglang_row.h"
#include "evidence/source_state.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sglang {
    const char *path; // the source's
    const struct hm_source_options *options;
    struct hm_documents documents;
    struct hm_document document;
    struct hm_events events;
    struct hm_track track;
    struct hm_entries entries;
    enum { DOCUMENT, PROMPT, TOKEN, END } stage;
    bool open;               // a sequence is
    uint32_t sequences;
    char id[HM_TRACK_ID];
    int32_t *prompt;         // [prompt_length]
    size_t prompt_length, prompt_room;
    size_t prompt_first;     // place in the prompt of the first of the input lists
    struct hm_sglang_ids listed;
    struct hm_sglang_lists input, output;
    struct hm_cursor ids;    // output_ids
    int64_t prompt_tokens, completion_tokens; // as meta_info says, -1: absent
    int64_t verified, histogram_steps, histogram_accepted; // likewise
    size_t own_count, top_count, ids_count;   // of the last document
};

static hm_status expected(struct sglang *s, const char *place, const char *what, struct hm_json_text found, struct hm_error *err)
{
    return hm_document_expected(&s->documents, &s->document, place, what, found, err);
}

static hm_status placed(struct sglang *s, hm_status rc, struct hm_error *err)
{
    char prefix[1024];
    snprintf(prefix, sizeof prefix, "%.800s: %s", s->path, s->events.where);
    return rc ? hm_fail_prefix(err, prefix) : rc;
}

// ---- A document ----

// The first of three names that meta_info has as a whole number, else -1.
static int64_t read_count(struct hm_json_text meta, const char *name, const char *second, const char *third)
{
    const char *const names[] = {name, second, third};
    int64_t value;
    for (size_t i = 0; i < 3; i++)
        if (names[i] && hm_json_text_integer(hm_json_text_find(meta, names[i]), &value)) return value;
    return -1;
}

// Element j: verification steps that accepted j drafted tokens.
static void read_histogram(struct sglang *s, struct hm_json_text meta)
{
    int64_t steps = 0, accepted = 0, count, j = 0;
    struct hm_json_text list = hm_json_text_find(meta, "spec_accept_histogram");
    if (!list.at) list = hm_json_text_find(meta, "spec_correct_drafts_histogram");
    s->histogram_steps = s->histogram_accepted = -1;
    struct hm_cursor c = hm_cursor_at(list);
    if (!c.element.at) return;
    for (; c.element.at; hm_cursor_advance(&c), j++) {
        bool whole = hm_json_text_integer(c.element, &count) && count >= 0;
        if (!whole || j > 1 << 20 || count > INT32_MAX || steps > INT32_MAX) return; // nobody counts so far
        steps += count;
        accepted += j * count;
    }
    s->histogram_steps = steps;
    s->histogram_accepted = accepted;
}

static void read_counters(struct sglang *s, struct hm_json_text meta)
{
    s->prompt_tokens = read_count(meta, "prompt_tokens", NULL, NULL);
    s->completion_tokens = read_count(meta, "completion_tokens", NULL, NULL);
    s->verified = read_count(meta, "spec_verify_ct", NULL, NULL);
    s->track.drafted = read_count(meta, "spec_draft_token_num", "spec_num_proposed_drafts", "spec_proposed_drafts");
    s->track.accepted = read_count(meta, "spec_accept_token_num", "spec_num_correct_drafts", "spec_accepted_drafts");
    read_histogram(s, meta);
}

static hm_status add_prompt_id(struct sglang *s, struct hm_json_text id, struct hm_error *err)
{
    void *grown = s->prompt;
    if (!hm_grow(&grown, &s->prompt_room, s->prompt_length + 1, sizeof *s->prompt))
        return hm_fail(err, HM_MEMORY, "%s: out of memory for a prompt of %zu tokens", s->path, s->prompt_length);
    s->prompt = grown;
    if (hm_json_text_id(id, &s->prompt[s->prompt_length++])) return HM_OK;
    return expected(s, "prompt", "token ids", id, err);
}

// The prompt's ids: as such, or from input_token_logprobs when these cover all of it.
static hm_status read_prompt(struct sglang *s, struct hm_json_text meta, struct hm_error *err)
{
    struct hm_json_text ids = hm_json_text_find(s->document.value, "prompt_token_ids");
    size_t covered = s->input.own.element.at ? hm_json_text_count(s->input.own.array) : 0;
    hm_status rc = HM_OK;
    if (!ids.at) ids = hm_json_text_find(meta, "prompt_token_ids");
    s->prompt_length = 0;
    s->prompt_first = s->prompt_tokens > (int64_t)covered ? (size_t)s->prompt_tokens - covered : 0;
    struct hm_cursor c = hm_cursor_at(ids);
    for (; c.element.at && !rc; hm_cursor_advance(&c)) rc = add_prompt_id(s, c.element, err);
    if (s->prompt_length || s->prompt_tokens != (int64_t)covered) return rc;
    for (c = s->input.own; c.element.at && !rc; hm_cursor_advance(&c)) {
        snprintf(s->events.where, sizeof s->events.where, "line %zu: meta_info.input_token_logprobs", s->document.line);
        rc = placed(s, hm_sglang_id(c.element, &ids, err), err);
        if (!rc) rc = add_prompt_id(s, ids, err);
    }
    return rc;
}

static void check_lengths(struct sglang *s)
{
    struct hm_events *events = &s->events;
    const struct hm_track *track = &s->track;
    const struct {
        const char *name;
        int64_t found;
    } lists[] = {{"output_top_logprobs", s->top_count ? (int64_t)s->top_count : -1},
                 {"output_ids", s->ids_count ? (int64_t)s->ids_count : -1}};
    for (size_t i = 0; i < 2; i++)
        if (s->own_count && lists[i].found >= 0 && lists[i].found != (int64_t)s->own_count)
            hm_events_finding(events, HM_FINDING_LENGTH, track->number, -1, track->where,
                              "expected %s for each of the %zu output_token_logprobs, found %" PRId64, lists[i].name,
                              s->own_count, lists[i].found);
    if (s->completion_tokens >= 0 && s->completion_tokens != (int64_t)track->tokens)
        hm_events_finding(events, HM_FINDING_LENGTH, track->number, -1, track->where,
                          "expected %" PRId64 " tokens as completion_tokens says, found %" PRIu32, s->completion_tokens,
                          track->tokens);
}

static void check_counters(struct sglang *s)
{
    const struct hm_track *track = &s->track;
    if (s->histogram_steps >= 0 && s->verified >= 0 && s->histogram_steps != s->verified)
        hm_events_finding(&s->events, HM_FINDING_COUNTERS, track->number, -1, track->where,
                          "expected a histogram of %" PRId64 " steps as spec_verify_ct says, found %" PRId64, s->verified,
                          s->histogram_steps);
    if (s->histogram_accepted >= 0 && track->accepted >= 0 && s->histogram_accepted != track->accepted)
        hm_events_finding(&s->events, HM_FINDING_COUNTERS, track->number, -1, track->where,
                          "expected a histogram of %" PRId64 " accepted tokens, found %" PRId64, track->accepted,
                          s->histogram_accepted);
}

static void end_sequence(struct sglang *s)
{
    if (!s->open) return;
    s->open = false;
    check_lengths(s);
    check_counters(s);
    hm_track_end(&s->track, &s->events);
}

// How many tokens of the document were given already: all of the sequence so far when it says everything again.
static size_t known_tokens(const struct sglang *s, size_t count)
{
    size_t done = s->track.tokens;
    if (s->completion_tokens == (int64_t)count) return done < count ? done : count;
    if (s->completion_tokens == (int64_t)(done + count)) return 0;
    return done <= count ? done : 0;
}

static void begin_sequence(struct sglang *s, const char *id, struct hm_json_text meta)
{
    char where[32];
    snprintf(where, sizeof where, "line %zu", s->document.line);
    hm_track_begin(&s->track, s->sequences++, where);
    read_counters(s, meta);
    s->open = true;
    memcpy(s->id, id, sizeof s->id);
}

static void push_sequence(struct sglang *s)
{
    s->events.sequence = (struct hm_source_sequence){.number = s->track.number, .id = s->id, .model = "", .category = "",
                                                     .prompt = s->prompt_length ? s->prompt : NULL,
                                                     .prompt_length = s->prompt_length, .draft_tokens = s->track.drafted,
                                                     .accepted_tokens = s->track.accepted};
    hm_events_push(&s->events, HM_EVENT_SEQUENCE);
}

static hm_status begin_document(struct sglang *s, struct hm_error *err)
{
    char id[HM_TRACK_ID] = "";
    hm_status rc = hm_documents_next(&s->documents, &s->document, err);
    if (rc) return rc;
    if (!s->document.value.at) {
        end_sequence(s);
        s->stage = END;
        return HM_OK;
    }
    struct hm_json_text meta = hm_json_text_find(s->document.value, "meta_info");
    struct hm_json_text ids = hm_json_text_find(s->document.value, "output_ids");
    if (hm_json_text_kind(meta) != HM_JSON_OBJECT) return expected(s, "meta_info", "an object", meta, err);
    if (!hm_json_text_empty(ids) && hm_json_text_kind(ids) != HM_JSON_ARRAY)
        return expected(s, "output_ids", "an array or null", ids, err);
    if (hm_json_text_kind(hm_json_text_find(meta, "id")) == HM_JSON_STRING)
        hm_json_text_string(hm_json_text_find(meta, "id"), id, sizeof id - 1);
    bool again = s->open && s->documents.streamed && id[0] && strcmp(id, s->id) == 0;
    if (!again) {
        end_sequence(s);
        begin_sequence(s, id, meta);
    } else {
        read_counters(s, meta);
    }
    snprintf(s->events.where, sizeof s->events.where, "line %zu", s->document.line);
    rc = hm_sglang_lists_open(meta, true, &s->input, err);
    if (!rc) rc = hm_sglang_lists_open(meta, false, &s->output, err);
    rc = placed(s, rc, err);
    if (!rc && !again) rc = read_prompt(s, meta, err);
    if (rc) return rc;
    if (!again) push_sequence(s);
    s->ids = hm_cursor_at(ids);
    s->own_count = s->output.own.element.at ? hm_json_text_count(s->output.own.array) : 0;
    s->top_count = s->output.top.element.at ? hm_json_text_count(s->output.top.array) : 0;
    s->ids_count = s->ids.element.at ? hm_json_text_count(ids) : 0;
    size_t skip = again ? known_tokens(s, s->own_count ? s->own_count : s->ids_count) : 0;
    for (size_t i = 0; i < skip; i++) {
        hm_sglang_lists_next(&s->output);
        hm_cursor_advance(&s->ids);
    }
    s->stage = !again && s->options->prompt_tokens ? PROMPT : TOKEN;
    return HM_OK;
}

static hm_status give_token(struct sglang *s, struct hm_sglang_lists *lists, bool of_prompt, struct hm_error *err)
{
    struct hm_json_text told = of_prompt ? (struct hm_json_text){0} : s->ids.element;
    const char *outputs = s->own_count ? "meta_info.output_token_logprobs" : "output_ids";
    const char *list = of_prompt ? "meta_info.input_token_logprobs" : outputs;
    snprintf(s->events.where, sizeof s->events.where, "line %zu: %s[%zu]", s->document.line, list, lists->index);
    s->events.token = (struct hm_source_token){.of_prompt = of_prompt, .t = (uint32_t)(s->prompt_first + lists->index)};
    hm_status rc = hm_sglang_give(lists, told, &s->entries, &s->listed, &s->track, &s->events, err);
    hm_sglang_lists_next(lists);
    if (!of_prompt) hm_cursor_advance(&s->ids);
    return placed(s, rc, err);
}

// A token of the prompt that has a number.
static hm_status next_of_prompt(struct sglang *s, struct hm_error *err)
{
    while (s->input.own.element.at && hm_json_text_empty(hm_cursor_at(s->input.own.element).element))
        hm_sglang_lists_next(&s->input);
    if (!s->input.own.element.at) {
        s->stage = TOKEN;
        return HM_OK;
    }
    return give_token(s, &s->input, true, err);
}

static hm_status next_of_output(struct sglang *s, struct hm_error *err)
{
    bool more = s->own_count ? s->output.own.element.at != NULL : s->ids.element.at != NULL;
    if (!more) {
        s->stage = DOCUMENT;
        return HM_OK;
    }
    return give_token(s, &s->output, false, err);
}

// ---- The reader ----

static hm_status next_event(void *state, struct hm_event *out, struct hm_error *err)
{
    struct sglang *s = state;
    hm_status rc = HM_OK;
    while (!rc && !hm_events_take(&s->events, out)) {
        switch (s->stage) {
        case DOCUMENT: rc = begin_document(s, err); break;
        case PROMPT: rc = next_of_prompt(s, err); break;
        case TOKEN: rc = next_of_output(s, err); break;
        case END: *out = (struct hm_event){.kind = HM_EVENT_END}; return HM_OK;
        }
    }
    return rc;
}

static void close_reader(void *state)
{
    struct sglang *s = state;
    hm_entries_clear(&s->entries);
    free(s->prompt);
    free(s->listed.id);
    free(s);
}

hm_status hm_sglang_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                         struct hm_reader *out, struct hm_error *err)
{
    struct sglang *s = hm_calloc(1, sizeof *s);
    if (!s) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    s->path = path;
    s->options = options;
    hm_entries_init(&s->entries, options);
    hm_status rc = hm_documents_open(&s->documents, path, map, err);
    if (rc) {
        close_reader(s);
        return rc;
    }
    *out = (struct hm_reader){.state = s, .next = next_event, .close = close_reader};
    return HM_OK;
}
