// OpenAI's completions shape: choices[].text, with choices[].logprobs one of
//   {"tokens": [...], "token_logprobs": [...], "top_logprobs": [{text: number}, ...]}, the original; the map has the
//       emitted token too, which may be one more than the largest, and one entry for all tokens with one text;
//   the same with ids as tokens and [[id, number], ...] as lists (MLX);
//   {"content": [...]} as in the chat shape (llama.cpp).
// echo gives the prompt's tokens first, without a number for the first; usage.prompt_tokens tells how many they are.
#include "evidence/source_state.h"

#include "evidence/responses.h"

enum { CONTENT, TOKENS, NUMBERS, LISTS, MEMBERS };
static const char *const keys[MEMBERS] = {"content", "tokens", "token_logprobs", "top_logprobs"};

struct completion {
    struct hm_json_text list[MEMBERS], at[MEMBERS]; // and the next element of each
    struct hm_json_text ids, id;                    // vLLM's token_ids
    size_t index, prompt;                           // tokens that are of the prompt
    struct hm_json_text text;                       // of a choice of which nothing else is known
};

// How many of the tokens are the prompt's.
static size_t echoed(const struct hm_responses *r, const struct completion *c, size_t tokens)
{
    int64_t prompt;
    if (hm_json_text_kind(c->at[NUMBERS]) != HM_JSON_NULL || r->documents.streamed) return 0;
    if (hm_json_text_integer(hm_json_text_find(r->response[HM_RESPONSE_USAGE], "prompt_tokens"), &prompt) &&
        prompt >= 0 && (uint64_t)prompt <= tokens)
        return (size_t)prompt;
    return 0;
}

static void lengths(struct hm_responses *r, struct completion *c)
{
    size_t count[MEMBERS], ids = hm_json_text_count(c->ids);
    for (int i = 0; i < MEMBERS; i++) count[i] = hm_json_text_count(c->list[i]);
    c->prompt = echoed(r, c, count[TOKENS]);
    hm_responses_place(r, "", 0);
    uint32_t number = hm_responses_track(r)->number;
    if ((c->list[NUMBERS].at && count[NUMBERS] != count[TOKENS]) ||
        (c->list[LISTS].at && count[LISTS] != count[TOKENS]))
        hm_events_finding(&r->events, HM_FINDING_LENGTH, number, -1, r->events.where,
                          "%zu tokens, but %zu token_logprobs and %zu top_logprobs", count[TOKENS], count[NUMBERS],
                          count[LISTS]);
    size_t listed = c->list[CONTENT].at ? count[CONTENT] : count[TOKENS] - c->prompt;
    if (ids == 0 || listed == 0 || ids == listed) return;
    hm_events_finding(&r->events, HM_FINDING_LENGTH, number, -1, r->events.where,
                      "%zu token ids, but %zu tokens with log-probabilities", ids, listed);
    c->id = c->ids = (struct hm_json_text){0};
}

static hm_status begin(struct hm_responses *r, struct hm_error *err)
{
    struct completion *c = r->state;
    struct hm_json_text logprobs = r->member[HM_CHOICE_LOGPROBS], member[MEMBERS];
    enum hm_json_text_kind kind = hm_json_text_kind(logprobs);
    *c = (struct completion){0};
    if (kind != HM_JSON_NONE && kind != HM_JSON_NULL && kind != HM_JSON_OBJECT)
        return hm_document_expected(&r->documents, &r->document, "choices[].logprobs", "an object", logprobs, err);
    hm_json_text_find_all(logprobs, keys, MEMBERS, member);
    for (int i = 0; i < MEMBERS; i++) {
        hm_status rc = hm_responses_array(r, keys[i], member[i], &c->list[i], err);
        if (rc) return rc;
        c->at[i] = hm_json_text_first(c->list[i], NULL);
    }
    hm_status rc = hm_responses_array(r, "token_ids", r->member[HM_CHOICE_TOKEN_IDS], &c->ids, err);
    if (rc) return rc;
    c->id = hm_json_text_first(c->ids, NULL);
    lengths(r, c);
    c->text = r->member[HM_CHOICE_TEXT];
    if (c->at[CONTENT].at || c->at[TOKENS].at || c->id.at || c->text.end - c->text.at <= 2)
        c->text = (struct hm_json_text){0};
    return HM_OK;
}

// An element of MLX's lists: [id, number], or an object with id and logprob.
static hm_status add_pair(struct hm_entries *e, struct hm_json_text pair, struct hm_error *err)
{
    struct hm_json_text none = {0}, id = hm_json_text_first(pair, NULL), number;
    if (hm_json_text_kind(pair) == HM_JSON_OBJECT) {
        static const char *const names[] = {"id", "token", "logprob"};
        struct hm_json_text m[3];
        hm_json_text_find_all(pair, names, 3, m);
        return hm_entries_add(e, hm_entries_name(e, m[0], m[1], none), HM_ENTRY_LOG_PROBABILITY, m[2], 0, err);
    }
    number = hm_json_text_next(pair, id, NULL);
    return hm_entries_add(e, hm_entries_name(e, id, none, none), HM_ENTRY_LOG_PROBABILITY, number, 0, err);
}

static hm_status add_list(struct hm_entries *e, struct hm_json_text list, struct hm_error *err)
{
    struct hm_json_text key, none = {0};
    enum hm_json_text_kind kind = hm_json_text_kind(list);
    hm_status rc = HM_OK;
    if (kind == HM_JSON_NONE || kind == HM_JSON_NULL) return HM_OK;
    if (kind != HM_JSON_OBJECT && kind != HM_JSON_ARRAY)
        return hm_fail(err, HM_FORMAT, "expected top_logprobs to hold maps, found %s", hm_json_text_kind_name(list));
    for (struct hm_json_text v = hm_json_text_first(list, &key); v.at && !rc; v = hm_json_text_next(list, v, &key))
        rc = kind == HM_JSON_ARRAY
                 ? add_pair(e, v, err)
                 : hm_entries_add(e, hm_entries_name(e, none, key, none), HM_ENTRY_LOG_PROBABILITY, v, 0, err);
    return rc;
}

static size_t length(struct hm_json_text value)
{
    return (size_t)(value.end - value.at);
}

// A token of the three lists.
static hm_status parallel_token(struct hm_responses *r, struct hm_json_text id, size_t index,
                                const struct hm_json_text at[MEMBERS], struct hm_error *err)
{
    struct completion *c = r->state;
    struct hm_entries *e = &r->entries;
    struct hm_json_text none = {0};
    bool number_is_id = hm_json_text_kind(at[TOKENS]) == HM_JSON_NUMBER;
    hm_status rc = hm_entries_begin(e, length(at[TOKENS]) + length(at[LISTS]), err);
    if (!rc) rc = add_list(e, at[LISTS], err);
    if (!rc) {
        struct hm_name name =
            hm_entries_name(e, number_is_id ? at[TOKENS] : id, number_is_id ? none : at[TOKENS], none);
        rc = hm_entries_emitted(e, name, HM_ENTRY_LOG_PROBABILITY, at[NUMBERS], err);
    }
    if (rc) return hm_responses_fail(r, err);
    bool of_prompt = index < c->prompt;
    if (of_prompt && (!r->options.prompt_tokens || hm_json_text_kind(at[NUMBERS]) == HM_JSON_NULL)) return HM_OK;
    r->events.token = (struct hm_source_token){.of_prompt = of_prompt, .t = (uint32_t)index};
    return hm_entries_finish(e, HM_ORDER_MAP, hm_responses_track(r), &r->events, err);
}

static hm_status token(struct hm_responses *r, bool *more, struct hm_error *err)
{
    struct completion *c = r->state;
    struct hm_json_text at[MEMBERS], id = {0}, none = {0}, text = c->text;
    size_t index = c->index++;
    *more = true;
    if (index >= c->prompt) {
        id = c->id;
        c->id = hm_json_text_next(c->ids, id, NULL);
    }
    for (int i = 0; i < MEMBERS; i++) {
        at[i] = c->at[i];
        c->at[i] = hm_json_text_next(c->list[i], at[i], NULL);
    }
    if (at[CONTENT].at) {
        hm_responses_place(r, "logprobs.content", index);
        return hm_responses_listed_token(r, at[CONTENT], id, err);
    }
    if (at[TOKENS].at) {
        hm_responses_place(r, "logprobs.tokens", index);
        return parallel_token(r, id, index, at, err);
    }
    hm_responses_place(r, id.at ? "token_ids" : "", index);
    c->text = none;
    if (id.at || text.at) return hm_responses_bare_token(r, id, text, HM_MISSING_LOGPROBS, err);
    *more = false;
    return HM_OK;
}

hm_status hm_openai_completions_open(const char *path, const struct hm_map *map,
                                     const struct hm_source_options *options, struct hm_reader *out,
                                     struct hm_error *err)
{
    static const struct hm_responses_format format = {
        .state = sizeof(struct completion),
        .has_choices = true,
        .begin = begin,
        .token = token,
    };
    return hm_responses_open(path, map, options, &format, out, err);
}
