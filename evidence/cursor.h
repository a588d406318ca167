// An array of a JSON document and the element in it that is looked at. Private to evidence/.
#ifndef HM_EVIDENCE_CURSOR_H
#define HM_EVIDENCE_CURSOR_H

#include "base/json_text.h"

struct hm_cursor {
    struct hm_json_text array, element; // element: no value behind the last
};

// At the first element; what is no array has none.
static inline struct hm_cursor hm_cursor_at(struct hm_json_text array)
{
    bool walks = hm_json_text_kind(array) == HM_JSON_ARRAY;
    return (struct hm_cursor){array, walks ? hm_json_text_first(array, NULL) : (struct hm_json_text){0}};
}

static inline void hm_cursor_advance(struct hm_cursor *c)
{
    if (c->element.at) c->element = hm_json_text_next(c->array, c->element, NULL);
}

// No value, or null.
static inline bool hm_json_text_empty(struct hm_json_text value)
{
    enum hm_json_text_kind kind = hm_json_text_kind(value);
    return kind == HM_JSON_NONE || kind == HM_JSON_NULL;
}

// A token id; a negative number, which engines write for "none", is -1. False for anything else.
static inline bool hm_json_text_id(struct hm_json_text value, int32_t *out)
{
    int64_t id;
    if (!hm_json_text_integer(value, &id) || id > INT32_MAX) return false;
    *out = id < 0 ? -1 : (int32_t)id;
    return true;
}

#endif
