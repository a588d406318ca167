// A conversation as the model sees it: the ids of everything said so far.
#ifndef HM_CLI_CONVERSATION_H
#define HM_CLI_CONVERSATION_H

#include "decode/chat.h"

#include <stdbool.h>

// Starts as {.tokenizer = ..., .chat = ..., .format = ...}; cleared with hm_conversation_clear.
struct hm_conversation {
    const struct hm_tokenizer *tokenizer;
    bool chat;                       // in the chat format; otherwise plain text
    enum hm_chat_format format;
    struct hm_chat_message *message; // owned [count], only with chat
    size_t count;
    int32_t *context;                // owned: the ids to continue [length]
    size_t length;
};

// Sets the system message; before the first turn, with chat only.
hm_status hm_conversation_system(struct hm_conversation *c, const char *text, struct hm_error *err);

// Adds a turn of the user: context then ends where the answer begins. Plain text: the first turn follows the tokenizer's
// prefix (a beginning-of-text token), a later one stands on a new line after the answer before it.
hm_status hm_conversation_ask(struct hm_conversation *c, const char *text, struct hm_error *err);

// Adds the answer: its ids in plain text, its text (without special tokens) with chat.
hm_status hm_conversation_answer(struct hm_conversation *c, const int32_t *ids, size_t count, const char *text, size_t size,
                                 struct hm_error *err);

void hm_conversation_clear(struct hm_conversation *c);

#endif
