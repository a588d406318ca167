// Canonical composition (NFC) as the `tokenizers` library does it: by the tables of Unicode 9.
//
// What later versions of Unicode gave a combining class or a composition is inert: nothing moves across it or joins
// with it. The tables of everything else have not changed since, so utf8proc's serve, whatever its version.
#include "decode/tokenizer_text.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static const int32_t inert[][2] = {
    {0x07fd, 0x07fd},   {0x0897, 0x089f},   {0x08ca, 0x08d3},   {0x09fe, 0x09fe},   {0x0c3c, 0x0c3c},
    {0x0d3b, 0x0d3c},   {0x0eba, 0x0eba},   {0x1715, 0x1715},   {0x1abf, 0x1add},   {0x1ae0, 0x1aeb},
    {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x105c0, 0x105f3}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d},
    {0x10eab, 0x10eac}, {0x10efa, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070},
    {0x1133b, 0x1133b}, {0x11380, 0x113e2}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930},
    {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11b60, 0x11b67}, {0x11d42, 0x11d42},
    {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16100, 0x16139}, {0x16d40, 0x16d79},
    {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef}, {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6f5}};

static bool is_inert(int32_t point)
{
    size_t low = 0, high = sizeof inert / sizeof inert[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point < inert[middle][0])
            high = middle;
        else if (point > inert[middle][1])
            low = middle + 1;
        else
            return true;
    }
    return false;
}

struct points {
    utf8proc_int32_t *data;
    size_t count, capacity;
};

static bool points_reserve(struct points *points, size_t more)
{
    void *grown = points->data;
    if (!hm_grow(&grown, &points->capacity, points->count + more, sizeof *points->data)) return false;
    points->data = grown;
    return true;
}

static int combining_class(utf8proc_int32_t point)
{
    return point < 0x300 ? 0 : (int)utf8proc_get_property(point)->combining_class;
}

// One counting sort for each run of combining marks. utf8proc sorts them by exchange, which is quadratic in the run.
static bool order_marks(struct points *points)
{
    utf8proc_int32_t *sorted = NULL;
    size_t capacity = 0;
    bool ok = true;
    for (size_t start = 0; start < points->count && ok;) {
        size_t end = start, counts[256] = {0};
        bool ordered = true;
        if (combining_class(points->data[start]) == 0) {
            start++;
            continue;
        }
        for (int before = 0; end < points->count; end++) {
            int class = combining_class(points->data[end]);
            if (class == 0) break;
            ordered = ordered && before <= class;
            before = class;
            counts[class]++;
        }
        if (!ordered) {
            void *grown = sorted;
            ok = hm_grow(&grown, &capacity, end - start, sizeof *sorted);
            sorted = grown;
            if (!ok) break;
            size_t position = 0, places[256];
            for (int class = 0; class < 256; class ++) {
                places[class] = position;
                position += counts[class];
            }
            for (size_t i = start; i < end; i++) sorted[places[combining_class(points->data[i])]++] = points->data[i];
            memcpy(points->data + start, sorted, (end - start) * sizeof *sorted);
        }
        start = end;
    }
    free(sorted);
    return ok;
}

static bool decompose(int32_t point, struct points *out)
{
    enum { LONGEST = 32 }; // the longest canonical decomposition of one character is 4
    int boundary = 0;
    if (!points_reserve(out, LONGEST)) return false;
    utf8proc_ssize_t n = utf8proc_decompose_char(point, out->data + out->count, LONGEST,
                                                 UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &boundary);
    if (n < 0 || n > LONGEST) return false;
    out->count += (size_t)n;
    return true;
}

// Appends the composition of decomposed points, which are then spent.
static bool compose(struct points *points, struct hm_bytes *out)
{
    if (points->count == 0) return true;
    if (!order_marks(points)) return false;
    utf8proc_ssize_t n =
        utf8proc_normalize_utf32(points->data, (utf8proc_ssize_t)points->count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        utf8proc_uint8_t encoded[4];
        utf8proc_ssize_t length = utf8proc_encode_char(points->data[i], encoded);
        if (!hm_bytes_add(out, encoded, (size_t)length)) return false;
    }
    points->count = 0;
    return true;
}

hm_status hm_text_nfc(const uint8_t *text, size_t size, struct hm_bytes *out, struct hm_error *err)
{
    struct points points = {0};
    bool ok = true;
    size_t plain = 0;
    out->count = 0;
    while (plain < size && text[plain] < 0xcc) plain++; // below U+0300 everything is composed already
    if (plain == size) {
        ok = hm_bytes_add(out, text, size);
    } else {
        int32_t point;
        for (size_t at = 0, n; ok && (n = hm_text_next(text + at, size - at, &point)) > 0; at += n)
            ok = is_inert(point) ? compose(&points, out) && hm_bytes_add(out, text + at, n) : decompose(point, &points);
        ok = ok && compose(&points, out);
    }
    free(points.data);
    return ok ? HM_OK : hm_fail(err, HM_MEMORY, "out of memory normalising %zu bytes", size);
}
