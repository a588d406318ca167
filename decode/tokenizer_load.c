// Reads a tokenizer.json, but for its model (tokenizer_model.c). Every id, size and reference is checked, and every
// setting that would change ids and that hallmark does not implement is refused by name.
#include "decode/tokenizer_state.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hm_status out_of_memory(const char *where, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
}

hm_status hm_load_id(const char *where, const char *what, const char *token, const cJSON *value, int32_t *out,
                     struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    if (!cJSON_IsNumber(value))
        return hm_fail(err, HM_FORMAT, "%s: %s %s: expected an id, found %s", where, what,
                       hm_text_show(token, strlen(token), shown), hm_json_kind(value));
    double id = value->valuedouble;
    if (!(id >= 0 && id < HM_TOKENIZER_MOST_IDS) || id != floor(id))
        return hm_fail(err, HM_RANGE, "%s: %s %s: expected an id from 0 to %d, found %.17g", where, what,
                       hm_text_show(token, strlen(token), shown), HM_TOKENIZER_MOST_IDS - 1, id);
    *out = (int32_t)id;
    return HM_OK;
}

hm_status hm_load_flag(const char *where, const cJSON *in, const char *key, bool *out, struct hm_error *err)
{
    *out = false;
    return hm_json_find(in, key) ? hm_json_bool(where, in, key, out, err) : HM_OK;
}

// ---- normalizer

static hm_status read_normalizer(const char *where, const cJSON *value, struct hm_tokenizer *t, struct hm_error *err)
{
    const char *type;
    if (!value) return HM_OK;
    hm_status rc = hm_json_string(where, value, "type", &type, err);
    if (rc) return rc;
    if (strcmp(type, "NFC") == 0) {
        t->nfc = true;
        return HM_OK;
    }
    if (strcmp(type, "Sequence") != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: normalizer %s is not supported; hallmark knows NFC and none", where,
                       hm_text_quote(type).text);
    const cJSON *list;
    rc = hm_json_array(where, value, "normalizers", &list, err);
    for (const cJSON *c = rc ? NULL : list->child; c && !rc; c = c->next) rc = read_normalizer(where, c, t, err);
    return rc;
}

// ---- added tokens

// The entry of the model's vocabulary with the same text, or -1. Its bytes must be the text itself.
static hm_status find_in_model(const char *where, const struct hm_added_token *token, const struct hm_vocabulary *v,
                               int32_t *out, struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    uint8_t bytes[HM_ADDED_LONGEST];
    size_t size;
    bool spelled = hm_text_unspell((const char *)token->text, token->size, bytes, &size);
    *out = spelled ? hm_vocabulary_find(v, bytes, size, HM_TOKEN_SPELLED)
                   : hm_vocabulary_find(v, token->text, token->size, 0);
    if (*out < 0 || !spelled || (size == token->size && memcmp(bytes, token->text, size) == 0)) return HM_OK;
    return hm_fail(err, HM_UNSUPPORTED, "%s: added token %s: its text spells other bytes in the vocabulary", where,
                   hm_text_show(token->text, token->size, shown));
}

// An added token may repeat an entry of the model's vocabulary, with the same id.
static hm_status place_added(const char *where, const struct hm_added_token *token, bool special,
                             struct hm_tokenizer *t, struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    struct hm_vocabulary *v = &t->vocabulary;
    uint8_t flags = (uint8_t)(HM_TOKEN_ADDED | (special ? HM_TOKEN_SPECIAL : 0));
    int32_t known;
    hm_status rc = find_in_model(where, token, v, &known, err);
    if (rc) return rc;
    hm_text_show(token->text, token->size, shown);
    if (known >= 0 && known != token->id)
        return hm_fail(err, HM_FORMAT, "%s: added token %s: expected id %d as in the vocabulary, found %d", where,
                       shown, known, token->id);
    if (known >= 0) {
        v->tokens[known].flags |= flags;
        return HM_OK;
    }
    if (hm_vocabulary_flags(v, token->id))
        return hm_fail(err, HM_FORMAT, "%s: added token %s: id %d belongs to another token", where, shown, token->id);
    return hm_vocabulary_set(v, token->id, token->text, token->size, flags) ? HM_OK : out_of_memory(where, err);
}

static hm_status append_added(const char *where, const struct hm_added_token *token, bool normalized,
                              struct hm_tokenizer *t, struct hm_error *err)
{
    if (!hm_added_append(&t->added, token)) return out_of_memory(where, err);
    if (!normalized) return hm_added_append(&t->raw, token) ? HM_OK : out_of_memory(where, err);
    struct hm_added_token copy = *token;
    struct hm_bytes composed = {0};
    hm_status rc = HM_OK;
    if (t->nfc) {
        rc = hm_text_nfc(token->text, token->size, &composed, err);
        copy.text = composed.data;
        copy.size = composed.count;
    }
    if (!rc && !hm_added_append(&t->normalized, &copy)) rc = out_of_memory(where, err);
    free(composed.data);
    return rc;
}

static hm_status read_added_token(const char *where, const cJSON *value, struct hm_tokenizer *t, struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    const char *content;
    int64_t id;
    struct hm_added_token token = {0};
    bool special, normalized, single_word;
    hm_status rc = hm_json_string(where, value, "content", &content, err);
    if (!rc) rc = hm_json_integer(where, value, "id", 0, HM_TOKENIZER_MOST_IDS - 1, &id, err);
    if (!rc) rc = hm_load_flag(where, value, "special", &special, err);
    if (!rc) rc = hm_load_flag(where, value, "single_word", &single_word, err);
    if (!rc) rc = hm_load_flag(where, value, "lstrip", &token.left_strip, err);
    if (!rc) rc = hm_load_flag(where, value, "rstrip", &token.right_strip, err);
    normalized = !rc && !special; // the library's default
    if (!rc && hm_json_find(value, "normalized")) rc = hm_json_bool(where, value, "normalized", &normalized, err);
    if (rc) return rc;
    size_t size = strlen(content);
    hm_text_show(content, size, shown);
    if (size == 0 || size > HM_ADDED_LONGEST)
        return hm_fail(err, HM_RANGE, "%s: added token %s: expected 1 to %d bytes, found %zu", where, shown,
                       HM_ADDED_LONGEST, size);
    if (single_word)
        return hm_fail(err, HM_UNSUPPORTED, "%s: added token %s: single_word is not supported", where, shown);
    token.text = (uint8_t *)(uintptr_t)content;
    token.size = size;
    token.id = (int32_t)id;
    rc = place_added(where, &token, special, t, err);
    return rc ? rc : append_added(where, &token, normalized, t, err);
}

static hm_status read_added(const char *where, const cJSON *list, struct hm_tokenizer *t, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (const cJSON *c = list ? list->child : NULL; c && !rc; c = c->next) rc = read_added_token(where, c, t, err);
    if (rc) return rc;
    const struct hm_added_token *twice = hm_added_sort(&t->added);
    if (!twice) twice = hm_added_sort(&t->raw);
    if (!twice) twice = hm_added_sort(&t->normalized);
    if (!twice) return HM_OK;
    char shown[HM_TEXT_SHOWN];
    return hm_fail(err, HM_FORMAT, "%s: added token %s appears twice", where,
                   hm_text_show(twice->text, twice->size, shown));
}

// ---- post-processor

static hm_status read_template_token(const char *where, const cJSON *processor, const cJSON *piece,
                                     struct hm_tokenizer *t, struct hm_error *err)
{
    const cJSON *tokens, *token, *ids;
    const char *name;
    hm_status rc = hm_json_string(where, piece, "id", &name, err);
    if (!rc) rc = hm_json_object(where, processor, "special_tokens", &tokens, err);
    if (!rc) rc = hm_json_object(where, tokens, name, &token, err);
    if (!rc) rc = hm_json_array(where, token, "ids", &ids, err);
    for (const cJSON *c = rc ? NULL : ids->child; c && !rc; c = c->next) {
        int32_t id;
        rc = hm_load_id(where, "post_processor token", name, c, &id, err);
        if (!rc && !hm_vocabulary_flags(&t->vocabulary, id))
            rc = hm_fail(err, HM_FORMAT, "%s: post_processor token %s: id %d is not a token", where,
                         hm_text_quote(name).text, id);
        if (!rc && !hm_ids_add(&t->prefix, id)) rc = out_of_memory(where, err);
    }
    return rc;
}

static hm_status read_template(const char *where, const cJSON *processor, struct hm_tokenizer *t, struct hm_error *err)
{
    const cJSON *pieces;
    bool text_seen = false;
    if (t->prefix.count)
        return hm_fail(err, HM_UNSUPPORTED, "%s: post_processor: two templates are not supported", where);
    hm_status rc = hm_json_array(where, processor, "single", &pieces, err);
    for (const cJSON *c = rc ? NULL : pieces->child; c && !rc; c = c->next) {
        const cJSON *special = hm_json_find(c, "SpecialToken");
        if (!special && !hm_json_find(c, "Sequence"))
            rc = hm_fail(err, HM_FORMAT, "%s: post_processor: expected SpecialToken or Sequence in \"single\"", where);
        else if (special && text_seen)
            rc = hm_fail(err, HM_UNSUPPORTED, "%s: post_processor: a token after the text is not supported", where);
        else if (special)
            rc = read_template_token(where, processor, special, t, err);
        else
            text_seen = true;
    }
    return rc;
}

static hm_status read_processor(const char *where, const cJSON *value, struct hm_tokenizer *t, struct hm_error *err)
{
    const char *type;
    if (!value) return HM_OK;
    hm_status rc = hm_json_string(where, value, "type", &type, err);
    if (rc) return rc;
    if (strcmp(type, "ByteLevel") == 0) return HM_OK; // moves offsets, never ids
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(where, value, t, err);
    if (strcmp(type, "Sequence") != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: post_processor %s is not supported", where, hm_text_quote(type).text);
    const cJSON *list;
    rc = hm_json_array(where, value, "processors", &list, err);
    for (const cJSON *c = rc ? NULL : list->child; c && !rc; c = c->next) rc = read_processor(where, c, t, err);
    return rc;
}

static hm_status check_decoder(const char *where, const cJSON *root, struct hm_error *err)
{
    const cJSON *decoder;
    const char *type;
    hm_status rc = hm_json_object(where, root, "decoder", &decoder, err);
    if (!rc) rc = hm_json_string(where, decoder, "type", &type, err);
    if (!rc && strcmp(type, "ByteLevel") != 0)
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: decoder: expected \"ByteLevel\", found %s", where,
                     hm_text_quote(type).text);
    return rc;
}

// cJSON ends a string at "\u0000", which would make another token of it.
static hm_status refuse_zero(const char *where, const char *json, size_t size, struct hm_error *err)
{
    for (size_t i = 0; i + 5 < size; i++)
        if (json[i] == '\\') {
            if (memcmp(json + i + 1, "u0000", 5) == 0)
                return hm_fail(err, HM_UNSUPPORTED, "%s: byte %zu: the character U+0000 in a string is not supported",
                               where, i);
            i++;
        }
    return HM_OK;
}

hm_status hm_tokenizer_load(const char *where, const char *json, size_t size, struct hm_tokenizer *t,
                            struct hm_error *err)
{
    cJSON *root = NULL;
    hm_status rc = refuse_zero(where, json, size, err);
    if (!rc) rc = hm_json_parse(where, json, size, &root, err);
    if (!rc && !cJSON_IsObject(root))
        rc = hm_fail(err, HM_FORMAT, "%s: expected an object, found %s", where, hm_json_kind(root));
    if (!rc) rc = hm_sha256(json, size, t->sha256, err);
    if (!rc) rc = hm_load_model(where, root, t, err);
    if (!rc) rc = read_normalizer(where, hm_json_find(root, "normalizer"), t, err);
    if (!rc) rc = hm_pretokenizer_read(where, hm_json_find(root, "pre_tokenizer"), &t->pretokenizer, err);
    if (!rc) rc = check_decoder(where, root, err);
    if (!rc) rc = read_added(where, hm_json_find(root, "added_tokens"), t, err);
    if (!rc) rc = read_processor(where, hm_json_find(root, "post_processor"), t, err);
    cJSON_Delete(root);
    return rc;
}
