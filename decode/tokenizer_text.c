// Text helpers of the tokenizer: see tokenizer_text.h.
#include "decode/tokenizer_text.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

bool hm_bytes_add(struct hm_bytes *bytes, const void *data, size_t size)
{
    size_t need;
    if (!hm_add_size(bytes->count, size, &need)) return false;
    void *grown = bytes->data;
    if (!hm_grow(&grown, &bytes->capacity, need ? need : 1, 1)) return false;
    bytes->data = grown;
    if (size) memcpy(bytes->data + bytes->count, data, size);
    bytes->count = need;
    return true;
}

bool hm_ids_add(struct hm_ids *ids, int32_t id)
{
    void *grown = ids->data;
    if (!hm_grow(&grown, &ids->capacity, ids->count + 1, sizeof *ids->data)) return false;
    ids->data = grown;
    ids->data[ids->count++] = id;
    return true;
}

size_t hm_text_next(const uint8_t *text, size_t size, int32_t *point)
{
    if (size == 0) return 0;
    if (text[0] < 0x80) {
        *point = text[0];
        return 1;
    }
    utf8proc_int32_t decoded;
    utf8proc_ssize_t n = utf8proc_iterate(text, (utf8proc_ssize_t)(size < 4 ? size : 4), &decoded);
    if (n <= 0) return 0;
    *point = decoded;
    return (size_t)n;
}

size_t hm_text_valid(const uint8_t *text, size_t size)
{
    size_t at = 0;
    int32_t point;
    for (size_t n; (n = hm_text_next(text + at, size - at, &point)) > 0;) at += n;
    return at;
}

bool hm_text_is_space(int32_t point)
{
    if (point < 0x80) return point == ' ' || (point >= 0x09 && point <= 0x0d);
    return point == 0x85 || point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
           point == 0x2028 || point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

bool hm_text_is_numeric(int32_t point)
{
    // Assigned in Unicode 16 and 17, which older versions of utf8proc do not know.
    static const int32_t later[][2] = {{0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9},
                                       {0x11de0, 0x11de9}, {0x16130, 0x16139}, {0x16d70, 0x16d79},
                                       {0x16ff4, 0x16ff6}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa}};
    if (point < 0x80) return point >= '0' && point <= '9';
    utf8proc_category_t category = utf8proc_category(point);
    if (category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO)
        return true;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (point >= later[i][0] && point <= later[i][1]) return true;
    return false;
}

size_t hm_text_leading_space(const uint8_t *text, size_t size)
{
    size_t at = 0;
    int32_t point;
    for (size_t n; (n = hm_text_next(text + at, size - at, &point)) > 0 && hm_text_is_space(point);) at += n;
    return at;
}

size_t hm_text_trailing_space(const uint8_t *text, size_t size)
{
    size_t end = size;
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && (text[start] & 0xc0) == 0x80) start--;
        int32_t point = 0;
        if (hm_text_next(text + start, end - start, &point) != end - start || !hm_text_is_space(point)) break;
        end = start;
    }
    return size - end;
}

// ---- the byte alphabet

// The printable bytes of Latin-1 spell themselves; the other 68 are U+0100, U+0101, ... in order.
static bool is_printable(int byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

int hm_text_alphabet(int32_t point)
{
    if (point < 0) return -1;
    if (point < 0x100) return is_printable((int)point) ? (int)point : -1;
    point -= 0x100;
    if (point <= 0x20) return (int)point;                      // 0x00 to 0x20
    if (point <= 0x20 + 34) return (int)(point - 0x21 + 0x7f); // 0x7f to 0xa0
    return point == 0x43 ? 0xad : -1;
}

bool hm_text_unspell(const char *text, size_t size, uint8_t *out, size_t *out_size)
{
    size_t count = 0;
    int32_t point;
    for (size_t at = 0, n; at < size; at += n) {
        n = hm_text_next((const uint8_t *)text + at, size - at, &point);
        int byte = n ? hm_text_alphabet(point) : -1;
        if (byte < 0) return false;
        out[count++] = (uint8_t)byte;
    }
    *out_size = count;
    return true;
}

const char *hm_text_show(const void *text, size_t size, char out[HM_TEXT_SHOWN])
{
    const uint8_t *bytes = text;
    size_t used = 0, at = 0;
    out[used++] = '"';
    for (size_t n; at < size && at < 40; at += n) {
        int32_t point;
        n = hm_text_next(bytes + at, size - at, &point);
        if (n == 0 || point < 0x20 || point == 0x7f) {
            n = 1;
            used += (size_t)snprintf(out + used, HM_TEXT_SHOWN - used, "\\x%02x", bytes[at]);
        } else {
            memcpy(out + used, bytes + at, n);
            used += n;
        }
    }
    snprintf(out + used, HM_TEXT_SHOWN - used, at < size ? "...\"" : "\"");
    return out;
}

struct hm_shown hm_text_quote(const char *text)
{
    struct hm_shown shown;
    hm_text_show(text, strlen(text), shown.text);
    return shown;
}

uint64_t hm_text_hash(const uint8_t *text, size_t size)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ size;
    while (size > 0) {
        uint64_t chunk = 0;
        size_t n = size < 8 ? size : 8;
        memcpy(&chunk, text, n);
        hash = (hash ^ chunk) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        text += n;
        size -= n;
    }
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ (hash >> 29);
}
