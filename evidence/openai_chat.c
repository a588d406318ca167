// OpenAI's chat shape: choices[].message or choices[].delta, whose tokens stand in choices[].logprobs.content.
//
// Lists beside it are read too: reasoning_content before (ROCm ATOM), refusal after. vLLM's choices[].token_ids give
// the ids of the tokens. A choice without log-probabilities gives its ids one by one, or else its text as if it were
// one token.
#include "evidence/source_state.h"

#include "evidence/responses.h"

enum { LISTS = 3 };
static const char *const list_name[LISTS] = {"reasoning_content", "content", "refusal"};
static const char *const place_name[LISTS] = {"logprobs.reasoning_content", "logprobs.content", "logprobs.refusal"};

struct chat {
    struct hm_json_text list[LISTS];
    int at;                   // the list that is read
    size_t index;             // in it
    struct hm_json_text item; // the next token
    struct hm_json_text ids, id;
    size_t id_index;
    struct hm_json_text text[2]; // of a choice of which nothing else is known: thought and said
};

// The first item of the next list that has one.
static void next_list(struct chat *c)
{
    c->index = 0;
    while (!c->item.at && c->at + 1 < LISTS) c->item = hm_json_text_first(c->list[++c->at], NULL);
}

static bool has_text(struct hm_json_text text)
{
    return hm_json_text_kind(text) == HM_JSON_STRING && text.end - text.at > 2;
}

static hm_status begin(struct hm_responses *r, struct hm_error *err)
{
    struct chat *c = r->state;
    struct hm_json_text logprobs = r->member[HM_CHOICE_LOGPROBS], message = r->member[HM_CHOICE_MESSAGE];
    size_t listed = 0;
    *c = (struct chat){.at = -1};
    if (!message.at) message = r->member[HM_CHOICE_DELTA];
    enum hm_json_text_kind kind = hm_json_text_kind(logprobs);
    if (kind != HM_JSON_NONE && kind != HM_JSON_NULL && kind != HM_JSON_OBJECT)
        return hm_document_expected(&r->documents, &r->document, "choices[].logprobs", "an object", logprobs, err);
    for (int i = 0; i < LISTS; i++) {
        hm_status rc =
            hm_responses_array(r, place_name[i], hm_json_text_find(logprobs, list_name[i]), &c->list[i], err);
        if (rc) return rc;
        listed += hm_json_text_count(c->list[i]);
    }
    hm_status rc = hm_responses_array(r, "token_ids", r->member[HM_CHOICE_TOKEN_IDS], &c->ids, err);
    if (rc) return rc;
    next_list(c);
    size_t ids = hm_json_text_count(c->ids);
    if (listed > 0 && ids > 0 && ids != listed) {
        hm_responses_place(r, "", 0);
        hm_events_finding(&r->events, HM_FINDING_LENGTH, hm_responses_track(r)->number, -1, r->events.where,
                          "%zu token ids, but %zu tokens with log-probabilities", ids, listed);
        c->ids = (struct hm_json_text){0};
    }
    c->id = hm_json_text_first(c->ids, NULL);
    if (listed > 0 || ids > 0) return HM_OK;
    static const char *const said[] = {"reasoning_content", "reasoning", "content"};
    struct hm_json_text text[3];
    hm_json_text_find_all(message, said, 3, text);
    c->text[0] = has_text(text[0]) ? text[0] : text[1];
    c->text[1] = text[2];
    return HM_OK;
}

static hm_status token(struct hm_responses *r, bool *more, struct hm_error *err)
{
    struct chat *c = r->state;
    struct hm_json_text item = c->item, id = c->id, none = {0};
    *more = true;
    c->id = hm_json_text_next(c->ids, id, NULL);
    if (item.at) {
        hm_responses_place(r, place_name[c->at], c->index++);
        c->item = hm_json_text_next(c->list[c->at], item, NULL);
        if (!c->item.at) next_list(c);
        return hm_responses_listed_token(r, item, id, err);
    }
    if (id.at) {
        hm_responses_place(r, "token_ids", c->id_index++);
        return hm_responses_bare_token(r, id, none, HM_MISSING_LOGPROBS, err);
    }
    hm_responses_place(r, "", 0);
    for (int i = 0; i < 2; i++) {
        struct hm_json_text text = c->text[i];
        c->text[i] = none;
        if (has_text(text)) return hm_responses_bare_token(r, none, text, HM_MISSING_LOGPROBS, err);
    }
    *more = false;
    return HM_OK;
}

hm_status hm_openai_chat_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                              struct hm_reader *out, struct hm_error *err)
{
    static const struct hm_responses_format format = {
        .state = sizeof(struct chat),
        .has_choices = true,
        .begin = begin,
        .token = token,
    };
    return hm_responses_open(path, map, options, &format, out, err);
}
