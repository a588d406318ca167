// Conversations as token ids: see chat.h.
#include "decode/chat.h"

#include "decode/tokenizer_text.h"

#include <stdlib.h>
#include <string.h>

static const char SMOLLM_SYSTEM[] = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

struct rendering {
    const struct hm_tokenizer *tokenizer;
    struct hm_ids ids;
    struct hm_bytes text; // what lies between two control tokens
    struct hm_error *err;
};

static bool has(const struct hm_tokenizer *tokenizer, const char *token)
{
    return hm_tokenizer_is_special(tokenizer, hm_tokenizer_find(tokenizer, token));
}

hm_status hm_chat_detect(const struct hm_tokenizer *tokenizer, enum hm_chat_format *out, struct hm_error *err)
{
    if (has(tokenizer, "<|start_header_id|>") && has(tokenizer, "<|end_header_id|>") && has(tokenizer, "<|eot_id|>"))
        *out = HM_CHAT_LLAMA3;
    else if (has(tokenizer, "<|im_start|>") && has(tokenizer, "<|im_end|>"))
        *out = has(tokenizer, "<jupyter_start>") && has(tokenizer, "<empty_output>") ? HM_CHAT_SMOLLM : HM_CHAT_CHATML;
    else
        return hm_fail(
            err, HM_UNSUPPORTED,
            "the tokenizer has the control tokens of no known chat format: expected \"<|im_start|>\" and "
            "\"<|im_end|>\" (ChatML), or \"<|start_header_id|>\", \"<|end_header_id|>\" and \"<|eot_id|>\" (Llama-3)");
    return HM_OK;
}

const char *hm_chat_name(enum hm_chat_format format)
{
    switch (format) {
    case HM_CHAT_CHATML: return "ChatML";
    case HM_CHAT_SMOLLM: return "ChatML (SmolLM2)";
    case HM_CHAT_LLAMA3: return "Llama-3";
    }
    return "unknown";
}

int32_t hm_chat_end(const struct hm_tokenizer *tokenizer, enum hm_chat_format format)
{
    return hm_tokenizer_find(tokenizer, format == HM_CHAT_LLAMA3 ? "<|eot_id|>" : "<|im_end|>");
}

static hm_status put_token(struct rendering *r, const char *token)
{
    int32_t id = hm_tokenizer_find(r->tokenizer, token);
    if (id < 0) return hm_fail(r->err, HM_UNSUPPORTED, "the tokenizer has no token \"%s\"", token);
    return hm_ids_add(&r->ids, id) ? HM_OK : hm_fail(r->err, HM_MEMORY, "out of memory for token ids");
}

// Encodes what add_text has gathered since the last control token, in one piece: words may span its parts.
static hm_status put_text(struct rendering *r)
{
    int32_t *ids;
    size_t count;
    hm_status rc = hm_tokenizer_encode(r->tokenizer, (const char *)r->text.data, r->text.count, HM_SPECIAL_PLAIN, &ids,
                                       &count, r->err);
    if (rc) return rc;
    for (size_t i = 0; i < count && !rc; i++)
        if (!hm_ids_add(&r->ids, ids[i])) rc = hm_fail(r->err, HM_MEMORY, "out of memory for token ids");
    free(ids);
    r->text.count = 0;
    return rc;
}

static hm_status add_text(struct rendering *r, const char *text, size_t size)
{
    return hm_bytes_add(&r->text, text, size) ? HM_OK : hm_fail(r->err, HM_MEMORY, "out of memory for a message");
}

static hm_status open_turn(struct rendering *r, enum hm_chat_format format, const char *role)
{
    bool llama = format == HM_CHAT_LLAMA3;
    hm_status rc = put_token(r, llama ? "<|start_header_id|>" : "<|im_start|>");
    if (!rc) rc = add_text(r, role, strlen(role));
    if (!rc && llama) rc = put_text(r);
    if (!rc && llama) rc = put_token(r, "<|end_header_id|>");
    if (!rc) rc = add_text(r, "\n\n", llama ? 2 : 1);
    return rc;
}

static hm_status put_turn(struct rendering *r, enum hm_chat_format format, const struct hm_chat_message *message)
{
    const char *content = message->content;
    size_t size = message->size;
    if (format == HM_CHAT_LLAMA3) {
        size -= hm_text_trailing_space((const uint8_t *)content, size);
        size_t leading = hm_text_leading_space((const uint8_t *)content, size);
        content += leading;
        size -= leading;
    }
    hm_status rc = open_turn(r, format, message->role);
    if (!rc) rc = add_text(r, content, size);
    if (!rc) rc = put_text(r);
    if (!rc) rc = put_token(r, format == HM_CHAT_LLAMA3 ? "<|eot_id|>" : "<|im_end|>");
    if (!rc && format != HM_CHAT_LLAMA3) rc = add_text(r, "\n", 1);
    if (!rc) rc = put_text(r);
    return rc;
}

static hm_status check_messages(const struct hm_chat_message *messages, size_t count, struct hm_error *err)
{
    if (count == 0) return hm_fail(err, HM_USAGE, "a conversation needs at least one message");
    for (size_t i = 0; i < count; i++) {
        bool system = strcmp(messages[i].role, "system") == 0;
        if (!system && strcmp(messages[i].role, "user") != 0 && strcmp(messages[i].role, "assistant") != 0)
            return hm_fail(err, HM_USAGE, "message %zu: role: expected system, user or assistant, found \"%.40s\"", i,
                           messages[i].role);
        if (system && i > 0) return hm_fail(err, HM_USAGE, "message %zu: a system message must be the first", i);
    }
    return HM_OK;
}

static hm_status put_conversation(struct rendering *r, enum hm_chat_format format,
                                  const struct hm_chat_message *messages, size_t count)
{
    hm_status rc = HM_OK;
    size_t prefix;
    if (format == HM_CHAT_LLAMA3) {
        const int32_t *ids = hm_tokenizer_prefix(r->tokenizer, &prefix);
        for (size_t i = 0; i < prefix && !rc; i++)
            if (!hm_ids_add(&r->ids, ids[i])) rc = hm_fail(r->err, HM_MEMORY, "out of memory for token ids");
        if (!prefix && has(r->tokenizer, "<|begin_of_text|>")) rc = put_token(r, "<|begin_of_text|>");
    }
    if (!rc && format == HM_CHAT_SMOLLM && strcmp(messages[0].role, "system") != 0) {
        struct hm_chat_message system = {.role = "system", .content = SMOLLM_SYSTEM, .size = sizeof SMOLLM_SYSTEM - 1};
        rc = put_turn(r, format, &system);
    }
    for (size_t i = 0; i < count && !rc; i++) rc = put_turn(r, format, &messages[i]);
    if (!rc) rc = open_turn(r, format, "assistant");
    return rc ? rc : put_text(r);
}

hm_status hm_chat_render(const struct hm_tokenizer *tokenizer, enum hm_chat_format format,
                         const struct hm_chat_message *messages, size_t messages_count, int32_t **ids, size_t *count,
                         struct hm_error *err)
{
    struct rendering r = {.tokenizer = tokenizer, .err = err};
    *ids = NULL;
    *count = 0;
    hm_status rc = check_messages(messages, messages_count, err);
    if (!rc) rc = put_conversation(&r, format, messages, messages_count);
    free(r.text.data);
    if (rc) {
        free(r.ids.data);
        return rc;
    }
    *ids = r.ids.data;
    *count = r.ids.count;
    return HM_OK;
}
