// Fuzz target: the bytes of a tokenizer.json, then texts through it.
//
// The input is a file, a zero byte, and a text; without a zero byte the text is the file itself. When the file is
// accepted, encoding and decoding must keep their promises: ids in range, streamed pieces equal to the whole.
//
//   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_tokenizer.c ... -o fuzz_tokenizer
//   ./fuzz_tokenizer -max_len=16384 -timeout=20 -dict=tests/fuzz/tokenizer.dict WORK tests/data/tokenizer/bad
#include "decode/chat.h"
#include "decode/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stream(const struct hm_tokenizer *t, const int32_t *ids, size_t count)
{
    char *whole = NULL;
    size_t size = 0, used = 0;
    if (hm_tokenizer_decode(t, ids, count, &whole, &size, NULL)) abort();
    char *pieces = malloc(size + 1);
    struct hm_utf8_stream stream = {0};
    if (!pieces) abort();
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const uint8_t *bytes = hm_tokenizer_bytes(t, ids[i], &length);
        if (!bytes) abort();
        char *piece = malloc(HM_UTF8_ROOM(length));
        if (!piece) abort();
        size_t wrote = hm_utf8_push(&stream, bytes, length, piece);
        if (wrote > size - used) abort();
        memcpy(pieces + used, piece, wrote);
        used += wrote;
        free(piece);
    }
    if (stream.count > 0 && size - used < 3) abort();
    used += hm_utf8_flush(&stream, pieces + used);
    if (used != size || memcmp(pieces, whole, size) != 0) abort();
    free(pieces);
    free(whole);
}

static void check_text(const struct hm_tokenizer *t, const char *text, size_t size, enum hm_special specials)
{
    struct hm_error err;
    int32_t *ids;
    size_t count;
    if (hm_tokenizer_encode(t, text, size, specials, &ids, &count, &err)) {
        if (ids || strlen(err.message) == 0) abort();
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= hm_tokenizer_size(t)) abort();
    check_stream(t, ids, count);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t json_size = zero ? (size_t)(zero - data) : size;
    const char *text = (const char *)(zero ? zero + 1 : data);
    size_t text_size = zero ? size - json_size - 1 : size;
    struct hm_error err = {0};
    struct hm_tokenizer *t;
    char *json = malloc(json_size + 1); // its own block: reads past its end are seen
    if (!json) return 0;
    if (json_size) memcpy(json, data, json_size);
    json[json_size] = 0;
    hm_status rc = hm_tokenizer_parse("fuzz", json, json_size, &t, &err);
    free(json);
    if (rc) {
        if (t || strlen(err.message) == 0) abort();
        return 0;
    }
    if (hm_tokenizer_same_text(t, hm_tokenizer_size(t), t, hm_tokenizer_size(t), NULL)) abort();
    check_text(t, text, text_size, HM_SPECIAL_PARSE);
    check_text(t, text, text_size, HM_SPECIAL_PLAIN);
    check_text(t, "It's 12\xcc\x81 <x>\xff\n\n  aab", 21, HM_SPECIAL_PARSE);
    enum hm_chat_format format;
    if (!hm_chat_detect(t, &format, NULL)) {
        struct hm_chat_message message = {.role = "user", .content = text, .size = text_size};
        int32_t *ids;
        size_t count;
        if (!hm_chat_render(t, format, &message, 1, &ids, &count, NULL)) free(ids);
    }
    hm_tokenizer_close(t);
    return 0;
}
