// Reads the "model" of a tokenizer.json: the settings of BPE, the vocabulary, the merges.
#include "decode/tokenizer_state.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static hm_status out_of_memory(const char *where, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
}

static size_t count_children(const cJSON *list)
{
    size_t count = 0;
    for (const cJSON *c = list->child; c; c = c->next) count++;
    return count;
}

static hm_status refuse_text(const char *where, const cJSON *model, const char *key, struct hm_error *err)
{
    const cJSON *value = hm_json_find(model, key);
    if (!value || (cJSON_IsString(value) && value->valuestring[0] == 0)) return HM_OK;
    return hm_fail(err, HM_UNSUPPORTED, "%s: model: %s is not supported", where, key);
}

static hm_status read_settings(const char *where, const cJSON *model, struct hm_tokenizer *t, struct hm_error *err)
{
    const char *type;
    hm_status rc = hm_json_string(where, model, "type", &type, err);
    if (rc) return rc;
    if (strcmp(type, "BPE") != 0)
        return hm_fail(err, HM_UNSUPPORTED, "%s: model type: expected \"BPE\", found %s", where,
                       hm_text_quote(type).text);
    bool byte_fallback;
    rc = hm_load_flag(where, model, "byte_fallback", &byte_fallback, err);
    if (!rc && byte_fallback)
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: model: byte_fallback is not supported, only byte-level BPE", where);
    if (!rc) rc = refuse_text(where, model, "continuing_subword_prefix", err);
    if (!rc) rc = refuse_text(where, model, "end_of_word_suffix", err);
    const cJSON *dropout = hm_json_find(model, "dropout");
    if (!rc && dropout && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: model: dropout is not supported: the ids of a text must be certain",
                     where);
    return rc ? rc : hm_load_flag(where, model, "ignore_merges", &t->bpe.ignore_merges, err);
}

// The bytes of a token that is spelled in the byte alphabet, else its text as it is.
static hm_status token_bytes(const char *where, const char *token, struct hm_bytes *out, uint8_t *spelled,
                             struct hm_error *err)
{
    size_t size = strlen(token), unspelled = 0;
    out->count = 0;
    if (!hm_bytes_add(out, token, size)) return out_of_memory(where, err);
    struct hm_bytes bytes = {0};
    if (!hm_bytes_add(&bytes, token, size)) return out_of_memory(where, err);
    *spelled = hm_text_unspell(token, size, bytes.data, &unspelled) ? HM_TOKEN_SPELLED : 0;
    if (*spelled) {
        memcpy(out->data, bytes.data, unspelled);
        out->count = unspelled;
    }
    free(bytes.data);
    return HM_OK;
}

static hm_status read_token(const char *where, const cJSON *entry, struct hm_tokenizer *t, struct hm_bytes *bytes,
                            struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    int32_t id;
    uint8_t spelled = 0;
    hm_status rc = hm_load_id(where, "vocabulary entry", entry->string, entry, &id, err);
    if (!rc && entry->string[0] == 0)
        rc = hm_fail(err, HM_FORMAT, "%s: vocabulary entry of id %d: expected text, found none", where, id);
    if (!rc) rc = token_bytes(where, entry->string, bytes, &spelled, err);
    if (rc) return rc;
    if (hm_vocabulary_flags(&t->vocabulary, id))
        return hm_fail(err, HM_FORMAT, "%s: vocabulary entry %s: id %d belongs to another entry", where,
                       hm_text_show(entry->string, strlen(entry->string), shown), id);
    if (!hm_vocabulary_set(&t->vocabulary, id, bytes->data, bytes->count, (uint8_t)(HM_TOKEN_MODEL | spelled)))
        return out_of_memory(where, err);
    return HM_OK;
}

// One past the largest id of the vocabulary and the added tokens.
static hm_status count_ids(const char *where, const cJSON *vocabulary, const cJSON *added, int32_t *out,
                           struct hm_error *err)
{
    int32_t id, most = -1;
    hm_status rc = HM_OK;
    for (const cJSON *c = vocabulary->child; c && !rc; c = c->next) {
        rc = hm_load_id(where, "vocabulary entry", c->string, c, &id, err);
        if (!rc && id > most) most = id;
    }
    for (const cJSON *c = added ? added->child : NULL; c && !rc; c = c->next) {
        int64_t number;
        rc = hm_json_integer(where, c, "id", 0, HM_TOKENIZER_MOST_IDS - 1, &number, err);
        if (!rc && number > most) most = (int32_t)number;
    }
    *out = most + 1;
    return rc;
}

static hm_status read_vocabulary(const char *where, const cJSON *vocabulary, const cJSON *added, struct hm_tokenizer *t,
                                 struct hm_error *err)
{
    int32_t count;
    struct hm_bytes bytes = {0};
    hm_status rc = count_ids(where, vocabulary, added, &count, err);
    if (rc) return rc;
    if (!hm_vocabulary_init(&t->vocabulary, count, count_children(vocabulary))) return out_of_memory(where, err);
    for (const cJSON *c = vocabulary->child; c && !rc; c = c->next) rc = read_token(where, c, t, &bytes, err);
    free(bytes.data);
    return rc;
}

// The two halves of a merge: "a b", or ["a", "b"].
static hm_status split_merge(const char *where, size_t index, const cJSON *merge, const char *half[2], size_t sizes[2],
                             struct hm_error *err)
{
    if (cJSON_IsString(merge)) {
        const char *space = strchr(merge->valuestring, ' ');
        if (space && !strchr(space + 1, ' ')) {
            half[0] = merge->valuestring;
            half[1] = space + 1;
            sizes[0] = (size_t)(space - merge->valuestring);
            sizes[1] = strlen(space + 1);
            return HM_OK;
        }
    } else if (cJSON_IsArray(merge) && cJSON_IsString(merge->child) && cJSON_IsString(merge->child->next) &&
               !merge->child->next->next) {
        half[0] = merge->child->valuestring;
        half[1] = merge->child->next->valuestring;
        sizes[0] = strlen(half[0]);
        sizes[1] = strlen(half[1]);
        return HM_OK;
    }
    return hm_fail(err, HM_FORMAT, "%s: merge %zu: expected \"left right\" or [\"left\", \"right\"]", where, index);
}

// The token spelled by text; -1 when the vocabulary lacks it. Appends its bytes to `bytes`.
static int32_t find_spelled(const struct hm_vocabulary *v, const char *text, size_t size, struct hm_bytes *bytes)
{
    size_t start = bytes->count, length = 0;
    if (size == 0 || !hm_bytes_add(bytes, text, size)) return -1;
    if (!hm_text_unspell(text, size, bytes->data + start, &length)) return -1;
    bytes->count = start + length;
    return hm_vocabulary_find(v, bytes->data + start, length, HM_TOKEN_SPELLED);
}

static hm_status read_merge(const char *where, size_t index, const cJSON *merge, struct hm_tokenizer *t,
                            struct hm_bytes *bytes, struct hm_error *err)
{
    char shown[HM_TEXT_SHOWN];
    const char *half[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    int32_t ids[2];
    hm_status rc = split_merge(where, index, merge, half, sizes, err);
    if (rc) return rc;
    bytes->count = 0;
    for (int side = 0; side < 2; side++) {
        ids[side] = find_spelled(&t->vocabulary, half[side], sizes[side], bytes);
        if (ids[side] < 0)
            return hm_fail(err, HM_FORMAT, "%s: merge %zu: %s is not in the vocabulary", where, index,
                           hm_text_show(half[side], sizes[side], shown));
    }
    int32_t result = hm_vocabulary_find(&t->vocabulary, bytes->data, bytes->count, HM_TOKEN_SPELLED);
    if (result < 0)
        return hm_fail(err, HM_FORMAT, "%s: merge %zu: its result %s is not in the vocabulary", where, index,
                       hm_text_show(bytes->data, bytes->count, shown));
    if (!hm_bpe_add(&t->bpe, ids[0], ids[1], result))
        return hm_fail(err, HM_FORMAT, "%s: merge %zu: %s and the token after it have a merge already", where, index,
                       hm_text_show(half[0], sizes[0], shown));
    return HM_OK;
}

hm_status hm_load_model(const char *where, const cJSON *root, struct hm_tokenizer *t, struct hm_error *err)
{
    const cJSON *model, *vocabulary, *merges, *added = hm_json_find(root, "added_tokens");
    struct hm_bytes bytes = {0};
    hm_status rc = hm_json_object(where, root, "model", &model, err);
    if (!rc) rc = read_settings(where, model, t, err);
    if (!rc) rc = hm_json_object(where, model, "vocab", &vocabulary, err);
    if (!rc) rc = hm_json_array(where, model, "merges", &merges, err);
    if (!rc && added) rc = hm_json_array(where, root, "added_tokens", &added, err);
    if (!rc) rc = read_vocabulary(where, vocabulary, added, t, err);
    if (!rc && !hm_bpe_init(&t->bpe, &t->vocabulary, count_children(merges))) rc = out_of_memory(where, err);
    size_t index = 0;
    for (const cJSON *c = rc ? NULL : merges->child; c && !rc; c = c->next)
        rc = read_merge(where, index++, c, t, &bytes, err);
    free(bytes.data);
    return rc;
}
