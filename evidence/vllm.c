// vLLM's RequestOutput as JSON: prompt_token_ids, prompt_logprobs and outputs, each of them with token_ids and logprobs.
//
// Each output is a sequence; the prompt's tokens, where they are asked for, come with the first. What a position of logprobs
// looks like: vllm_positions.h.
#include "evidence/documents.h"
#include "evidence/source_state.h"
#include "evidence/vllm_positions.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vllm {
    const char *path; // the source's
    const struct hm_source_options *options;
    struct hm_documents documents;
    struct hm_document document;
    struct hm_events events;
    struct hm_track track;
    struct hm_entries entries;
    enum { DOCUMENT, OUTPUT, PROMPT, TOKEN, END } stage;
    uint32_t sequences;
    int32_t *prompt; // [prompt_length]
    size_t prompt_length, prompt_room;
    char id[HM_TRACK_ID], temperature[64]; // "": not told
    struct hm_cursor output, token, prompt_token;
    size_t output_index;
    struct hm_positions rows, prompt_rows;
    struct hm_ival sum; // of the emitted tokens' log-probabilities
    bool summed;        // every one of them had a number
};

static hm_status expected(struct vllm *v, const char *place, const char *what, struct hm_json_text found, struct hm_error *err)
{
    return hm_document_expected(&v->documents, &v->document, place, what, found, err);
}

// Puts file and place before the message of something that does not know them.
static hm_status placed(struct vllm *v, hm_status rc, const char *place, struct hm_error *err)
{
    char prefix[1024];
    snprintf(prefix, sizeof prefix, "%.800s: %s", v->path, place);
    return rc ? hm_fail_prefix(err, prefix) : rc;
}

// ---- Tokens ----

// The token of a position: listed there or not, with a position or without.
static hm_status give_token(struct vllm *v, struct hm_positions *p, struct hm_json_text token, bool of_prompt, struct hm_own *own,
                            struct hm_error *err)
{
    struct hm_events *events = &v->events;
    struct hm_json_text none = {0};
    int32_t id;
    events->token = (struct hm_source_token){.of_prompt = of_prompt, .t = (uint32_t)p->index};
    if (of_prompt)
        snprintf(events->where, sizeof events->where, "line %zu: prompt_logprobs[%zu]", v->document.line, p->index);
    else
        snprintf(events->where, sizeof events->where, "line %zu: outputs[%zu].token_ids[%" PRIu32 "]", v->document.line,
                 v->output_index, v->track.tokens);
    if (!hm_json_text_id(token, &id))
        return placed(v, hm_fail(err, HM_FORMAT, "expected a token id, found %s", hm_json_text_kind_name(token)), events->where,
                      err);
    bool listed = hm_positions_has(p);
    *own = (struct hm_own){0};
    hm_status rc = hm_entries_begin(&v->entries, 2 * hm_positions_bytes(p), err); // the token's own text comes twice
    if (!rc && listed) rc = hm_positions_add(p, id, &v->entries, own, err);
    struct hm_name name = {.id = -1};
    if (!rc) name = hm_entries_name(&v->entries, token, own->text, none);
    if (!rc) rc = hm_entries_emitted(&v->entries, name, HM_ENTRY_LOG_PROBABILITY, none, err);
    if (!rc) rc = hm_entries_finish(&v->entries, HM_ORDER_RANKS, &v->track, events, err);
    if (listed) hm_positions_next(p);
    return placed(v, rc, events->where, err);
}

// ---- A document ----

static hm_status read_prompt(struct vllm *v, struct hm_error *err)
{
    struct hm_json_text ids = hm_json_text_find(v->document.value, "prompt_token_ids");
    v->prompt_length = 0;
    if (hm_json_text_empty(ids)) return HM_OK;
    if (hm_json_text_kind(ids) != HM_JSON_ARRAY) return expected(v, "prompt_token_ids", "an array or null", ids, err);
    for (struct hm_cursor c = hm_cursor_at(ids); c.element.at; hm_cursor_advance(&c)) {
        void *grown = v->prompt;
        if (!hm_grow(&grown, &v->prompt_room, v->prompt_length + 1, sizeof *v->prompt))
            return hm_fail(err, HM_MEMORY, "%s: out of memory for a prompt of %zu tokens", v->path, v->prompt_length);
        v->prompt = grown;
        if (!hm_json_text_id(c.element, &v->prompt[v->prompt_length++]))
            return expected(v, "prompt_token_ids", "token ids", c.element, err);
    }
    return HM_OK;
}

// A text, cut to fit, or a number as it is written; "" for anything else.
static void read_text(struct hm_json_text value, char *out, size_t size)
{
    memset(out, 0, size);
    if (hm_json_text_kind(value) == HM_JSON_NUMBER && (size_t)(value.end - value.at) < size)
        memcpy(out, value.at, (size_t)(value.end - value.at));
    else if (hm_json_text_kind(value) == HM_JSON_STRING)
        hm_json_text_string(value, out, size - 1);
}

static hm_status begin_document(struct vllm *v, struct hm_error *err)
{
    hm_status rc = hm_documents_next(&v->documents, &v->document, err);
    if (rc) return rc;
    if (!v->document.value.at) {
        v->stage = END;
        return HM_OK;
    }
    struct hm_json_text document = v->document.value, outputs = hm_json_text_find(document, "outputs");
    if (hm_json_text_kind(outputs) != HM_JSON_ARRAY) return expected(v, "outputs", "an array", outputs, err);
    read_text(hm_json_text_find(document, "request_id"), v->id, sizeof v->id);
    read_text(hm_json_text_find(hm_json_text_find(document, "sampling_params"), "temperature"), v->temperature,
              sizeof v->temperature);
    if (v->temperature[0] < '0' || v->temperature[0] > '9') v->temperature[0] = '\0'; // a text, or NaN
    v->prompt_token = hm_cursor_at(hm_json_text_find(document, "prompt_token_ids"));
    v->output = hm_cursor_at(outputs);
    v->output_index = 0;
    v->stage = OUTPUT;
    rc = read_prompt(v, err);
    snprintf(v->events.where, sizeof v->events.where, "line %zu", v->document.line);
    if (!rc)
        rc = placed(v, hm_positions_open("prompt_logprobs", hm_json_text_find(document, "prompt_logprobs"), &v->prompt_rows, err),
                    v->events.where, err);
    return rc;
}

// What was counted of speculation: num_draft_tokens, and num_accepted_draft_tokens or a histogram of accepted tokens.
static void read_counters(struct vllm *v)
{
    struct hm_json_text metrics = hm_json_text_find(v->output.element, "spec_decode_metrics");
    int64_t count, accepted = 0, most = INT64_C(1) << 53;
    size_t j = 0;
    if (hm_json_text_integer(hm_json_text_find(metrics, "num_draft_tokens"), &count)) v->track.drafted = count;
    if (hm_json_text_integer(hm_json_text_find(metrics, "num_accepted_draft_tokens"), &v->track.accepted)) return;
    struct hm_cursor c = hm_cursor_at(hm_json_text_find(metrics, "histogram"));
    if (!c.element.at) return;
    for (; c.element.at; hm_cursor_advance(&c), j++) {
        if (!hm_json_text_integer(c.element, &count) || count < 0 || (j && count > (most - accepted) / (int64_t)j)) return;
        accepted += count * (int64_t)j;
    }
    v->track.accepted = accepted;
}

static hm_status begin_output(struct vllm *v, struct hm_error *err)
{
    char where[HM_FINDING_WHERE];
    if (!v->output.element.at) {
        v->stage = DOCUMENT;
        return HM_OK;
    }
    struct hm_json_text output = v->output.element, ids = hm_json_text_find(output, "token_ids");
    snprintf(where, sizeof where, "outputs[%zu]", v->output_index);
    if (hm_json_text_kind(output) != HM_JSON_OBJECT) return expected(v, where, "an object", output, err);
    snprintf(where, sizeof where, "outputs[%zu].token_ids", v->output_index);
    if (hm_json_text_kind(ids) != HM_JSON_ARRAY) return expected(v, where, "an array", ids, err);
    snprintf(where, sizeof where, "line %zu: outputs[%zu]", v->document.line, v->output_index);
    hm_status rc = hm_positions_open("logprobs", hm_json_text_find(output, "logprobs"), &v->rows, err);
    if (rc) return placed(v, rc, where, err);
    v->token = hm_cursor_at(ids);
    v->sum = (struct hm_ival){0, 0};
    v->summed = true;
    hm_track_begin(&v->track, v->sequences++, where);
    read_counters(v);
    v->events.sequence = (struct hm_source_sequence){.number = v->track.number, .id = v->id, .model = "", .category = "",
                                                     .prompt = v->prompt_length ? v->prompt : NULL,
                                                     .prompt_length = v->prompt_length,
                                                     .temperature = v->temperature[0] ? v->temperature : NULL,
                                                     .draft_tokens = v->track.drafted, .accepted_tokens = v->track.accepted};
    hm_events_push(&v->events, HM_EVENT_SEQUENCE);
    v->stage = v->output_index == 0 && v->options->prompt_tokens ? PROMPT : TOKEN;
    return HM_OK;
}

// A token of the prompt, or what is wrong with their number. The first one has no log-probability.
static hm_status give_prompt(struct vllm *v, struct hm_error *err)
{
    struct hm_positions *p = &v->prompt_rows;
    struct hm_own own;
    for (; hm_positions_has(p) && hm_positions_empty(p) && v->prompt_token.element.at; hm_cursor_advance(&v->prompt_token))
        hm_positions_next(p);
    if (hm_positions_has(p) && v->prompt_token.element.at) {
        struct hm_json_text token = v->prompt_token.element;
        hm_cursor_advance(&v->prompt_token);
        return give_token(v, p, token, true, &own, err);
    }
    for (; hm_positions_has(p); hm_positions_next(p)) continue;
    if (p->index && p->index != v->prompt_length)
        hm_events_finding(&v->events, HM_FINDING_LENGTH, v->track.number, -1, v->track.where,
                          "expected prompt_logprobs for each of the %zu tokens of the prompt, found %zu", v->prompt_length,
                          p->index);
    v->stage = TOKEN;
    return HM_OK;
}

// Adds a token's own number to the sum.
static void add_to_sum(struct vllm *v, struct hm_json_text own)
{
    enum hm_decimal_kind kind;
    struct hm_ival x;
    bool number = hm_json_text_kind(own) == HM_JSON_NUMBER &&
                  hm_decimal_read(own.at, (size_t)(own.end - own.at), v->options->printing, &kind, &x, NULL) == HM_OK &&
                  kind == HM_DECIMAL_FINITE;
    v->summed = v->summed && number;
    if (!v->summed) return;
    v->sum.lo = nextafter(v->sum.lo + x.lo, -INFINITY); // the engine's own sum in doubles is rounded less
    v->sum.hi = nextafter(v->sum.hi + x.hi, INFINITY);
}

static hm_status give_emitted(struct vllm *v, struct hm_error *err)
{
    struct hm_own own;
    hm_status rc = give_token(v, &v->rows, v->token.element, false, &own, err);
    if (!rc) add_to_sum(v, own.value);
    hm_cursor_advance(&v->token);
    return rc;
}

static void end_output(struct vllm *v)
{
    struct hm_json_text output = v->output.element, logged = hm_json_text_find(output, "cumulative_logprob");
    enum hm_decimal_kind kind;
    struct hm_ival sum;
    for (; hm_positions_has(&v->rows); hm_positions_next(&v->rows)) continue;
    if (v->rows.index && v->rows.index != v->track.tokens)
        hm_events_finding(&v->events, HM_FINDING_LENGTH, v->track.number, -1, v->track.where,
                          "expected logprobs for each of the %" PRIu32 " tokens, found %zu", v->track.tokens, v->rows.index);
    if (v->summed && v->track.tokens && hm_json_text_kind(logged) == HM_JSON_NUMBER &&
        hm_decimal_read(logged.at, (size_t)(logged.end - logged.at), v->options->printing, &kind, &sum, NULL) == HM_OK &&
        (kind != HM_DECIMAL_FINITE || sum.lo > v->sum.hi || sum.hi < v->sum.lo))
        hm_events_finding(&v->events, HM_FINDING_COUNTERS, v->track.number, -1, v->track.where,
                          "expected a cumulative_logprob in [%.9g, %.9g], the sum of the tokens' logprobs, found %.*s", v->sum.lo,
                          v->sum.hi, (int)(logged.end - logged.at < 40 ? logged.end - logged.at : 40), logged.at);
    hm_track_end(&v->track, &v->events);
    hm_cursor_advance(&v->output);
    v->output_index++;
    v->stage = OUTPUT;
}

// ---- The reader ----

static hm_status next_event(void *state, struct hm_event *out, struct hm_error *err)
{
    struct vllm *v = state;
    hm_status rc = HM_OK;
    while (!rc && !hm_events_take(&v->events, out)) {
        switch (v->stage) {
        case DOCUMENT: rc = begin_document(v, err); break;
        case OUTPUT: rc = begin_output(v, err); break;
        case PROMPT: rc = give_prompt(v, err); break;
        case TOKEN:
            if (v->token.element.at) rc = give_emitted(v, err);
            else end_output(v);
            break;
        case END: *out = (struct hm_event){.kind = HM_EVENT_END}; return HM_OK;
        }
    }
    return rc;
}

static void close_reader(void *state)
{
    struct vllm *v = state;
    hm_entries_clear(&v->entries);
    free(v->prompt);
    free(v);
}

hm_status hm_vllm_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                       struct hm_reader *out, struct hm_error *err)
{
    struct vllm *v = hm_calloc(1, sizeof *v);
    if (!v) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    v->path = path;
    v->options = options;
    hm_entries_init(&v->entries, options);
    hm_status rc = hm_documents_open(&v->documents, path, map, err);
    if (rc) {
        close_reader(v);
        return rc;
    }
    *out = (struct hm_reader){.state = v, .next = next_event, .close = close_reader};
    return HM_OK;
}
