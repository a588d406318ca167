// Conversations as token ids, for the two chat formats that hallmark knows: ChatML (Qwen, SmolLM2) and Llama-3.
//
// The format is chosen by the special tokens that the tokenizer has; there is no template engine. Control tokens are
// put in as ids, and everything a person wrote is encoded as plain text, so a message cannot forge a turn.
#ifndef HM_DECODE_CHAT_H
#define HM_DECODE_CHAT_H

#include "decode/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hm_chat_format {
    HM_CHAT_CHATML, // <|im_start|>role\ncontent<|im_end|>\n; no system message unless one is given
    HM_CHAT_SMOLLM, // ChatML with SmolLM2's default system message
    HM_CHAT_LLAMA3  // <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>, content trimmed
};

struct hm_chat_message {
    const char *role; // "system" (first message only), "user" or "assistant"
    const char *content;
    size_t size; // bytes of content
};

// Which format the tokenizer's special tokens are for. HM_UNSUPPORTED when they are for neither.
hm_status hm_chat_detect(const struct hm_tokenizer *tokenizer, enum hm_chat_format *out, struct hm_error *err);
const char *hm_chat_name(enum hm_chat_format format); // "ChatML", "ChatML (SmolLM2)", "Llama-3"

// The ids of a conversation followed by the opening of an assistant's turn. The caller frees *ids. HM_USAGE for an
// unknown role, a system message that is not the first, or no message at all.
hm_status hm_chat_render(const struct hm_tokenizer *tokenizer, enum hm_chat_format format,
                         const struct hm_chat_message *messages, size_t messages_count, int32_t **ids, size_t *count,
                         struct hm_error *err);

// The token that ends an assistant's turn in this format ("<|im_end|>", "<|eot_id|>").
int32_t hm_chat_end(const struct hm_tokenizer *tokenizer, enum hm_chat_format format);

#ifdef __cplusplus
}
#endif

#endif
