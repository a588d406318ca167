// Bytes of tokens to text: see hm_utf8_stream in tokenizer.h.
//
// A byte that cannot continue the character in hand ends it: one U+FFFD stands for all its bytes (the "maximal
// subpart" practice of the Unicode standard, which is what Rust, and so the `tokenizers` library, does).
#include "decode/tokenizer.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// Bytes of the character that a lead byte opens; 0 when no character opens with it.
static size_t length_of(uint8_t lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) return 3;
    return lead < 0xf5 ? 4 : 0;
}

// May `byte` follow the bytes held? Only the second byte depends on the first (no overlong forms, no surrogates).
static bool continues(const struct hm_utf8_stream *s, uint8_t byte)
{
    uint8_t least = 0x80, most = 0xbf;
    if (s->count == 1) {
        if (s->held[0] == 0xe0) least = 0xa0;
        if (s->held[0] == 0xed) most = 0x9f;
        if (s->held[0] == 0xf0) least = 0x90;
        if (s->held[0] == 0xf4) most = 0x8f;
    }
    return byte >= least && byte <= most;
}

static size_t put_replacement(char *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}

size_t hm_utf8_flush(struct hm_utf8_stream *stream, char *out)
{
    size_t held = stream->count;
    stream->count = 0;
    return held ? put_replacement(out) : 0;
}

size_t hm_utf8_push(struct hm_utf8_stream *stream, const uint8_t *bytes, size_t size, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        if (stream->count > 0 && !continues(stream, bytes[i])) used += hm_utf8_flush(stream, out + used);
        if (stream->count == 0 && length_of(bytes[i]) == 0) {
            used += put_replacement(out + used);
            continue;
        }
        stream->held[stream->count++] = bytes[i];
        if (stream->count == length_of(stream->held[0])) {
            memcpy(out + used, stream->held, stream->count);
            used += stream->count;
            stream->count = 0;
        }
    }
    return used;
}

hm_status hm_tokenizer_decode(const struct hm_tokenizer *tokenizer, const int32_t *ids, size_t count, char **text,
                              size_t *size, struct hm_error *err)
{
    struct hm_utf8_stream stream = {0};
    size_t capacity = 0;
    void *out = NULL;
    *text = NULL;
    *size = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t length = 0, room;
        const uint8_t *bytes = i < count ? hm_tokenizer_bytes(tokenizer, ids[i], &length) : NULL;
        bool ok = hm_mul_size(length + 1, 3, &room) && hm_add_size(room, *size + 1, &room);
        if (!ok || !hm_grow(&out, &capacity, room, 1)) {
            free(out);
            *size = 0;
            return hm_fail(err, HM_MEMORY, "out of memory decoding %zu tokens", count);
        }
        char *end = (char *)out + *size;
        if (bytes)
            *size += hm_utf8_push(&stream, bytes, length, end);
        else if (i == count)
            *size += hm_utf8_flush(&stream, end);
    }
    *text = out;
    (*text)[*size] = 0;
    return HM_OK;
}
