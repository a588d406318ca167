// A conversation as the model sees it: see conversation.h.
#include "cli/conversation.h"

#include <stdlib.h>
#include <string.h>

static hm_status add_message(struct hm_conversation *c, const char *role, const char *text, size_t size,
                             struct hm_error *err)
{
    struct hm_chat_message *grown = realloc(c->message, (c->count + 1) * sizeof *grown);
    if (grown) c->message = grown;
    char *copy = grown ? malloc(size + 1) : NULL;
    if (!copy) return hm_fail(err, HM_MEMORY, "out of memory for a message of %zu bytes", size);
    memcpy(copy, text, size);
    copy[size] = 0;
    c->message[c->count++] = (struct hm_chat_message){.role = role, .content = copy, .size = size};
    return HM_OK;
}

static hm_status extend(struct hm_conversation *c, const int32_t *ids, size_t count, struct hm_error *err)
{
    int32_t *grown = realloc(c->context, (c->length + count + 1) * sizeof *grown);
    if (!grown) return hm_fail(err, HM_MEMORY, "out of memory for a context of %zu tokens", c->length + count);
    c->context = grown;
    if (count) memcpy(grown + c->length, ids, count * sizeof *ids);
    c->length += count;
    return HM_OK;
}

static hm_status encode(struct hm_conversation *c, const char *text, size_t size, struct hm_error *err)
{
    int32_t *ids;
    size_t count;
    hm_status rc = hm_tokenizer_encode(c->tokenizer, text, size, HM_SPECIAL_PARSE, &ids, &count, err);
    if (rc) return rc;
    rc = extend(c, ids, count, err);
    free(ids);
    return rc;
}

static hm_status ask_plain(struct hm_conversation *c, const char *text, struct hm_error *err)
{
    size_t count;
    if (c->length == 0) {
        const int32_t *prefix = hm_tokenizer_prefix(c->tokenizer, &count);
        hm_status rc = extend(c, prefix, count, err);
        return rc ? rc : encode(c, text, strlen(text), err);
    }
    size_t size = strlen(text);
    char *line = malloc(size + 1);
    if (!line) return hm_fail(err, HM_MEMORY, "out of memory for a prompt");
    line[0] = '\n';
    memcpy(line + 1, text, size);
    hm_status rc = encode(c, line, size + 1, err);
    free(line);
    return rc;
}

hm_status hm_conversation_system(struct hm_conversation *c, const char *text, struct hm_error *err)
{
    return add_message(c, "system", text, strlen(text), err);
}

hm_status hm_conversation_ask(struct hm_conversation *c, const char *text, struct hm_error *err)
{
    if (!c->chat) return ask_plain(c, text, err);
    hm_status rc = add_message(c, "user", text, strlen(text), err);
    free(c->context);
    c->context = NULL;
    c->length = 0;
    if (!rc) rc = hm_chat_render(c->tokenizer, c->format, c->message, c->count, &c->context, &c->length, err);
    return rc;
}

hm_status hm_conversation_answer(struct hm_conversation *c, const int32_t *ids, size_t count, const char *text, size_t size,
                                 struct hm_error *err)
{
    return c->chat ? add_message(c, "assistant", text, size, err) : extend(c, ids, count, err);
}

void hm_conversation_clear(struct hm_conversation *c)
{
    for (size_t i = 0; i < c->count; i++) free((void *)(uintptr_t)c->message[i].content);
    free(c->message);
    free(c->context);
    c->message = NULL;
    c->context = NULL;
    c->count = c->length = 0;
}
