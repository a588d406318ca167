// Documents of a file: see documents.h.
#include "evidence/documents.h"

#include <stdio.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct hm_documents *d)
{
    while (d->at < d->size && is_space(d->text[d->at])) d->at++;
}

static bool begins_with(const struct hm_documents *d, size_t at, const char *word)
{
    size_t n = strlen(word);
    return d->size - at >= n && memcmp(d->text + at, word, n) == 0;
}

// What stands at d->at, for messages.
static void describe(const struct hm_documents *d, char *out, size_t size)
{
    unsigned char byte = d->at < d->size ? (unsigned char)d->text[d->at] : 0;
    if (d->at == d->size)
        snprintf(out, size, "the end");
    else if (byte > 0x20 && byte < 0x7f)
        snprintf(out, size, "'%c'", byte);
    else
        snprintf(out, size, "byte 0x%02x", byte);
}

hm_status hm_documents_open(struct hm_documents *out, const char *path, const struct hm_map *map, struct hm_error *err)
{
    static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};
    *out = (struct hm_documents){.path = path, .text = (const char *)map->data, .size = map->size, .line = 1};
    if (begins_with(out, 0, "\xef\xbb\xbf")) out->at = 3;
    if (begins_with(out, 0, "\xff\xfe") || begins_with(out, 0, "\xfe\xff"))
        return hm_fail(err, HM_FORMAT, "%s: expected UTF-8, found a byte order mark of UTF-16", path);
    skip_space(out);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && !out->streamed; i++)
        out->streamed = begins_with(out, out->at, fields[i]);
    if (out->at == out->size)
        return hm_fail(err, HM_FORMAT, "%s: expected JSON or server-sent events, found an empty file", path);
    if (out->streamed || out->text[out->at] == '{' || out->text[out->at] == '[') return HM_OK;
    char found[16];
    describe(out, found, sizeof found);
    return hm_fail(err, HM_FORMAT, "%s: expected JSON or server-sent events, found %s", path, found);
}

// The line of byte `at`, counted on from the place that was asked for last.
static size_t line_of(struct hm_documents *d, size_t at)
{
    while (d->counted < at) {
        const char *newline = memchr(d->text + d->counted, '\n', at - d->counted);
        if (!newline) break;
        d->line++;
        d->counted = (size_t)(newline - d->text) + 1;
    }
    if (d->counted < at) d->counted = at;
    return d->line;
}

// What the check found, with its place in the file instead of in the document.
static hm_status faulty(struct hm_documents *d, size_t fault, struct hm_error *err)
{
    struct hm_error found = *err;
    size_t start = fault;
    while (start > 0 && d->text[start - 1] != '\n') start--;
    const char *what = strstr(found.message, ": ");
    return hm_fail(err, found.code, "%s: line %zu: byte %zu: %s", d->path, line_of(d, fault), fault - start,
                   what ? what + 2 : found.message);
}

// A document at d->at that ends before `end`.
static hm_status take(struct hm_documents *d, size_t end, struct hm_document *out, struct hm_error *err)
{
    size_t used;
    struct hm_error local; // err may be NULL
    out->line = line_of(d, d->at);
    hm_status rc = hm_json_text_check(d->text + d->at, end - d->at, &out->value, &used, &local);
    if (rc) {
        rc = faulty(d, d->at + used, &local);
        if (err) *err = local;
    }
    d->at += used;
    return rc;
}

static hm_status unexpected(struct hm_documents *d, const char *what, struct hm_error *err)
{
    char found[16];
    struct hm_error local;
    describe(d, found, sizeof found);
    hm_fail(&local, HM_FORMAT, ": expected %s, found %s", what, found);
    hm_status rc = faulty(d, d->at, &local);
    if (err) *err = local;
    return rc;
}

// Documents one after the other; the elements of an array count as such.
static hm_status next_document(struct hm_documents *d, struct hm_document *out, struct hm_error *err)
{
    for (;;) {
        skip_space(d);
        if (!d->in_array) {
            if (d->at == d->size) return HM_OK;
            if (d->text[d->at] != '[') return take(d, d->size, out, err);
            d->at++;
            d->in_array = true;
            d->comma = false;
            continue;
        }
        bool closes = d->at < d->size && d->text[d->at] == ']';
        if (closes) {
            d->at++;
            d->in_array = false;
            continue;
        }
        if (!d->comma) {
            d->comma = true;
            return take(d, d->size, out, err);
        }
        if (d->at == d->size || d->text[d->at] != ',') return unexpected(d, "',' or ']'", err);
        d->at++;
        skip_space(d);
        return take(d, d->size, out, err);
    }
}

// The document of the next `data:` line.
static hm_status next_data(struct hm_documents *d, struct hm_document *out, struct hm_error *err)
{
    while (d->at < d->size) {
        const char *newline = memchr(d->text + d->at, '\n', d->size - d->at);
        size_t end = newline ? (size_t)(newline - d->text) : d->size, next = newline ? end + 1 : end;
        while (d->at < end && is_space(d->text[d->at])) d->at++;
        bool data = begins_with(d, d->at, "data:");
        if (data) {
            d->at += strlen("data:");
            while (d->at < end && is_space(d->text[d->at])) d->at++;
        }
        if (!data || d->at == end || begins_with(d, d->at, "[DONE]")) {
            d->at = next;
            continue;
        }
        hm_status rc = take(d, end, out, err);
        if (!rc && d->at < end) rc = unexpected(d, "the end of the line", err);
        d->at = next;
        return rc;
    }
    return HM_OK;
}

hm_status hm_documents_next(struct hm_documents *d, struct hm_document *out, struct hm_error *err)
{
    enum { RELEASED_AT_ONCE = 16 << 20 };
    *out = (struct hm_document){0};
    if (d->at - d->released >= RELEASED_AT_ONCE) { // a long file does not fill the memory
        hm_map_release(d->text + d->released, d->at - d->released);
        d->released = d->at;
    }
    return d->streamed ? next_data(d, out, err) : next_document(d, out, err);
}

hm_status hm_document_expected(const struct hm_documents *documents, const struct hm_document *document,
                               const char *place, const char *what, struct hm_json_text found, struct hm_error *err)
{
    return hm_fail(err, HM_FORMAT, "%s: line %zu: %s: expected %s, found %s", documents->path, document->line, place,
                   what, hm_json_text_kind_name(found));
}
