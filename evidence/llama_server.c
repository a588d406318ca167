// llama.cpp's server: answers of /completion with n_probs, whole or as a stream.
//
// completion_probabilities (once called probs) lists tokens with their ids. A token that leaves a character incomplete
// is not listed, and the one that completes it is listed with the text of all; so a place in the list is no place among
// the tokens. Where `tokens` gives all ids, the list is laid along them; an entry that fits several places is left out.
// In a stream tokens_predicted counts the tokens so far: those that were not shown are given without text.
#include "evidence/source_state.h"

#include "base/memory.h"
#include "evidence/responses.h"

#include <inttypes.h>
#include <stdlib.h>

// More tokens than a character has: a count that is farther off is wrong.
enum { HIDDEN_MOST = 16 };

struct server {
    struct hm_json_text list, item; // entries and the next one
    struct hm_json_text ids, id;    // tokens, likewise
    struct hm_json_text text;       // of a chunk without either
    size_t index, place;            // of item, of id
    uint64_t hidden;                // tokens that were predicted before this chunk's, and not shown
    bool laid;                      // entries are laid along the ids:
    size_t *first, *last;           // earliest and latest place of each entry [room]; owned
    int32_t *token, *entry;         // ids [room]; owned
    size_t room;
};

static int64_t integer(struct hm_json_text value, int64_t otherwise)
{
    hm_json_text_integer(value, &otherwise);
    return otherwise;
}

static int32_t id_of(struct hm_json_text value)
{
    int64_t id = integer(value, -1);
    return id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

// The earliest and latest places of the m entries among the n tokens, in order; false when they do not fit.
static bool lay(struct server *s, size_t n, size_t m)
{
    size_t at = 0;
    for (size_t j = 0; j < m; j++, at++) {
        while (at < n && s->token[at] != s->entry[j]) at++;
        if (at >= n || s->entry[j] < 0) return false;
        s->first[j] = at;
    }
    at = n;
    for (size_t j = m; j-- > 0;) {
        do at--;
        while (s->token[at] != s->entry[j]);
        s->last[j] = at;
    }
    return true;
}

static hm_status read_ids(struct hm_responses *r, size_t n, size_t m, struct hm_error *err)
{
    struct server *s = r->state;
    size_t most = n > m ? n : m, i = 0;
    struct hm_array arrays[] = {
        {(void **)&s->first, sizeof *s->first},
        {(void **)&s->last, sizeof *s->last},
        {(void **)&s->token, sizeof *s->token},
        {(void **)&s->entry, sizeof *s->entry},
    };
    if (most > s->room) {
        if (!hm_grow_together(arrays, 4, most))
            return hm_fail(err, HM_MEMORY, "%s: out of memory for token ids", r->documents.path);
        s->room = most;
    }
    for (struct hm_json_text v = s->id; v.at; v = hm_json_text_next(s->ids, v, NULL)) s->token[i++] = id_of(v);
    i = 0;
    for (struct hm_json_text v = s->item; v.at; v = hm_json_text_next(s->list, v, NULL))
        s->entry[i++] = id_of(hm_json_text_find(v, "id"));
    return HM_OK;
}

// Lays the entries along the ids, says what does not fit.
static hm_status align(struct hm_responses *r, size_t n, size_t m, struct hm_error *err)
{
    struct server *s = r->state;
    size_t open = 0;
    hm_status rc = read_ids(r, n, m, err);
    if (rc) return rc;
    uint32_t number = hm_responses_track(r)->number;
    hm_responses_place(r, "", 0);
    s->laid = lay(s, n, m);
    if (!s->laid) {
        hm_events_finding(&r->events, HM_FINDING_LENGTH, number, -1, r->events.where,
                          "the %zu tokens are not those of the %zu entries: t counts entries", n, m);
        s->id = s->ids = (struct hm_json_text){0};
        return HM_OK;
    }
    hm_responses_track(r)->aligned = true;
    for (size_t j = 0; j < m; j++) open += s->first[j] != s->last[j];
    if (open > 0)
        hm_events_finding(&r->events, HM_FINDING_LENGTH, number, -1, r->events.where,
                          "%zu of %zu entries fit more than one of the %zu tokens and are left out", open, m, n);
    return HM_OK;
}

// Tokens that were counted, but not shown.
static void count_hidden(struct hm_responses *r, size_t shown)
{
    struct server *s = r->state;
    struct hm_track *track = hm_responses_track(r);
    int64_t predicted = integer(r->member[HM_CHOICE_PREDICTED], -1),
            hidden = predicted - (int64_t)track->tokens - (int64_t)shown;
    if (hidden <= 0 || track->miscounted) return;
    if (!r->whole && hidden <= HIDDEN_MOST) {
        s->hidden = (uint64_t)hidden;
        track->aligned = true;
        return;
    }
    track->miscounted = true;
    hm_responses_place(r, "", 0);
    hm_events_finding(&r->events, HM_FINDING_LENGTH, track->number, -1, r->events.where,
                      "%" PRId64 " tokens were predicted, %" PRId64 " are listed", predicted, predicted - hidden);
}

static hm_status begin(struct hm_responses *r, struct hm_error *err)
{
    struct server *s = r->state;
    struct hm_json_text listed = r->member[HM_CHOICE_PROBABILITIES], none = {0};
    if (!listed.at) listed = r->member[HM_CHOICE_PROBS];
    hm_status rc = hm_responses_array(r, "completion_probabilities", listed, &s->list, err);
    if (!rc) rc = hm_responses_array(r, "tokens", r->member[HM_CHOICE_TOKENS], &s->ids, err);
    if (rc) return rc;
    s->item = hm_json_text_first(s->list, NULL);
    s->id = hm_json_text_first(s->ids, NULL);
    s->text = s->item.at || s->id.at ? none : r->member[HM_CHOICE_CONTENT];
    if (hm_json_text_kind(s->text) != HM_JSON_STRING || s->text.end - s->text.at <= 2) s->text = none;
    s->index = s->place = s->hidden = 0;
    s->laid = false;
    size_t n = hm_json_text_count(s->ids), m = hm_json_text_count(s->list);
    count_hidden(r, n > 0 ? n : s->text.at ? 1 : m);
    return n > 0 && m > 0 ? align(r, n, m, err) : HM_OK;
}

static hm_status listed_token(struct hm_responses *r, struct hm_json_text id, struct hm_error *err)
{
    struct server *s = r->state;
    struct hm_json_text item = s->item;
    hm_responses_place(r, "completion_probabilities", s->index++);
    s->item = hm_json_text_next(s->list, item, NULL);
    hm_status rc = hm_responses_listed_token(r, item, id, err);
    // A list that is shorter than what was asked for is all that the samplers left.
    struct hm_evidence *row = &r->events.token.row;
    int64_t asked = integer(hm_json_text_find(r->response[HM_RESPONSE_SETTINGS], "n_probs"), -1);
    if (!rc && row->processed && asked > 0 && row->ranked > 0 && row->ranked == row->count &&
        (int64_t)row->count < asked)
        row->support = row->count;
    return rc;
}

static hm_status token(struct hm_responses *r, bool *more, struct hm_error *err)
{
    struct server *s = r->state;
    struct hm_json_text none = {0}, id = s->id, text = s->text;
    *more = true;
    if (s->hidden > 0) {
        s->hidden--;
        hm_responses_place(r, "", 0);
        return hm_responses_bare_token(r, none, none, HM_MISSING_MEASURED, err);
    }
    if (!id.at) {
        s->text = none;
        hm_responses_place(r, "", 0);
        *more = s->item.at || text.at;
        return s->item.at ? listed_token(r, none, err)
               : text.at  ? hm_responses_bare_token(r, none, text, HM_MISSING_LOGPROBS, err)
                          : HM_OK;
    }
    s->id = hm_json_text_next(s->ids, id, NULL);
    while (s->item.at && s->first[s->index] != s->last[s->index] && s->first[s->index] <= s->place) {
        s->item = hm_json_text_next(s->list, s->item, NULL);
        s->index++;
    }
    bool here = s->item.at && s->first[s->index] == s->place && s->last[s->index] == s->place;
    size_t place = s->place++;
    if (here) return listed_token(r, id, err);
    enum hm_missing missing = s->laid || hm_responses_track(r)->listed ? HM_MISSING_MEASURED : HM_MISSING_LOGPROBS;
    hm_responses_place(r, "tokens", place);
    return hm_responses_bare_token(r, id, none, missing, err);
}

static void clear(void *state)
{
    struct server *s = state;
    free(s->first);
    free(s->last);
    free(s->token);
    free(s->entry);
}

hm_status hm_llama_server_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                               struct hm_reader *out, struct hm_error *err)
{
    static const struct hm_responses_format format = {
        .state = sizeof(struct server),
        .has_choices = false,
        .begin = begin,
        .token = token,
        .clear = clear,
    };
    return hm_responses_open(path, map, options, &format, out, err);
}
