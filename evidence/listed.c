// Tokens as answers of servers list them: see responses.h.
#include "evidence/responses.h"

#include <string.h>

// Members of an item and of an entry of its list.
enum { ID, TOKEN, BYTES, LOGPROB, PROB, TOP_LOGPROBS, TOP_PROBS, PROBS, CONTENT, TOK_STR, MEMBERS };
static const char *const keys[MEMBERS] = {
    "id", "token", "bytes", "logprob", "prob", "top_logprobs", "top_probs", "probs", "content", "tok_str",
};

static size_t length(struct hm_json_text value)
{
    return (size_t)(value.end - value.at);
}

static struct hm_json_text either(struct hm_json_text a, struct hm_json_text b)
{
    return a.at ? a : b;
}

// llama.cpp adds up the vocabulary's weights one after the other in float32: the sum, and with it every probability of the
// row, is off by a factor of at most 1 + V 2^-24 or so. V is not in its logs.
static double sequential_sum(size_t vocab)
{
    enum { LARGEST_KNOWN = 1 << 18 };
    return (double)(vocab ? vocab : LARGEST_KNOWN) * 0x1.08p-24;
}

// An entry of a list: a token with its number.
static hm_status add_entry(struct hm_entries *e, struct hm_json_text entry, struct hm_error *err)
{
    struct hm_json_text m[MEMBERS];
    if (hm_json_text_kind(entry) != HM_JSON_OBJECT)
        return hm_fail(err, HM_FORMAT, "expected objects in the list of tokens, found %s",
                       hm_json_text_kind_name(entry));
    hm_json_text_find_all(entry, keys, MEMBERS, m);
    struct hm_name name = hm_entries_name(e, m[ID], either(m[TOKEN], m[TOK_STR]), m[BYTES]);
    bool probability = !m[LOGPROB].at && m[PROB].at;
    return hm_entries_add(e, name, probability ? HM_ENTRY_PROBABILITY : HM_ENTRY_LOG_PROBABILITY,
                          probability ? m[PROB] : m[LOGPROB], 0, err);
}

hm_status hm_responses_listed_token(struct hm_responses *r, struct hm_json_text item, struct hm_json_text id,
                                    struct hm_error *err)
{
    struct hm_entries *e = &r->entries;
    struct hm_json_text m[MEMBERS];
    if (hm_json_text_kind(item) != HM_JSON_OBJECT) {
        hm_fail(err, HM_FORMAT, "expected an object, found %s", hm_json_text_kind_name(item));
        return hm_responses_fail(r, err);
    }
    hm_json_text_find_all(item, keys, MEMBERS, m);
    struct hm_json_text list = either(m[TOP_LOGPROBS], either(m[TOP_PROBS], m[PROBS]));
    enum hm_json_text_kind kind = hm_json_text_kind(list);
    hm_status rc = hm_entries_begin(e, length(item), err);
    if (!rc && kind != HM_JSON_NONE && kind != HM_JSON_NULL && kind != HM_JSON_ARRAY)
        rc = hm_fail(err, HM_FORMAT, "expected an array of tokens, found %s", hm_json_text_kind_name(list));
    for (struct hm_json_text v = hm_json_text_first(list, NULL); v.at && !rc; v = hm_json_text_next(list, v, NULL))
        rc = add_entry(e, v, err);
    bool probability = !m[LOGPROB].at && m[PROB].at;
    if (!rc) {
        struct hm_name name = hm_entries_name(e, either(id, m[ID]), either(m[TOKEN], m[CONTENT]), m[BYTES]);
        rc = hm_entries_emitted(e, name, probability ? HM_ENTRY_PROBABILITY : HM_ENTRY_LOG_PROBABILITY,
                                probability ? m[PROB] : m[LOGPROB], err);
    }
    if (rc) return hm_responses_fail(r, err);
    // llama.cpp gives ids, and its lists are the largest; others put the emitted token first.
    bool ranked = m[ID].at || m[PROBS].at;
    r->events.token = (struct hm_source_token){0};
    rc = hm_entries_finish(e, ranked ? HM_ORDER_TOP : HM_ORDER_CHAT, hm_responses_track(r), &r->events, err);
    if (ranked && !e->options->exact_sums) r->events.token.row.shift = sequential_sum(e->options->vocab);
    // Probabilities are of what the samplers left, and so are the older lists.
    if (probability || m[TOP_PROBS].at || m[PROBS].at) r->events.token.row.processed = true;
    return rc;
}

hm_status hm_responses_bare_token(struct hm_responses *r, struct hm_json_text id, struct hm_json_text text,
                                  enum hm_missing missing, struct hm_error *err)
{
    struct hm_json_text none = {0};
    hm_status rc = hm_entries_begin(&r->entries, length(text), err);
    if (rc) return hm_responses_fail(r, err);
    r->entries.unmeasured = missing == HM_MISSING_MEASURED;
    hm_entries_emitted(&r->entries, hm_entries_name(&r->entries, id, text, none), HM_ENTRY_LOG_PROBABILITY, none, err);
    r->events.token = (struct hm_source_token){0};
    return hm_entries_finish(&r->entries, HM_ORDER_TOP, hm_responses_track(r), &r->events, err);
}
