// Reading a part: see parts_file.h.
#include "cli/parts_file.h"

#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct hm_part {
    char *path;
    FILE *file;  // NULL: paused
    long offset; // of the next line
    size_t line; // lines read so far
    char *text;  // of the line at hand
    size_t capacity, size;
    cJSON *json;            // of the line at hand
    struct hm_sha256 *hash; // of the lines before it
    struct hm_part_header header;
    char *version, *command, **arguments;
    size_t done; // inputs whose result was read
};

// HM_FORMAT "FILE: line 7: ...".
static hm_status wrong(const struct hm_part *p, struct hm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static hm_status wrong(const struct hm_part *p, struct hm_error *err, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return hm_fail(err, HM_FORMAT, "%s: line %zu: %s", p->path, p->line, what);
}

static hm_status no_memory(const struct hm_part *p, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory", p->path);
}

// ---- lines

static hm_status reopen(struct hm_part *p, struct hm_error *err)
{
    struct stat status;
    if (p->file) return HM_OK;
    if (stat(p->path, &status) == 0 && !S_ISREG(status.st_mode)) // a pipe would block
        return hm_fail(err, HM_IO, "%s: expected a regular file", p->path);
    p->file = fopen(p->path, "rbe");
    if (p->file && fseek(p->file, p->offset, SEEK_SET) == 0) return HM_OK;
    return hm_fail(err, HM_IO, "%s: cannot open: %s", p->path, strerror(errno));
}

void hm_part_pause(struct hm_part *p)
{
    if (p->file) fclose(p->file);
    cJSON_Delete(p->json);
    free(p->text);
    p->file = NULL;
    p->json = NULL;
    p->text = NULL;
    p->capacity = 0;
}

// The next line with its newline into p->text [p->size]; size 0 at the end of the file.
static hm_status read_line(struct hm_part *p, struct hm_error *err)
{
    int c = 0;
    hm_status rc = reopen(p, err);
    if (rc) return rc;
    p->size = 0;
    p->line++;
    while (c != '\n' && (c = getc_unlocked(p->file)) != EOF) {
        if (p->size == HM_PART_LONGEST_LINE)
            return wrong(p, err, "expected at most %d bytes, found more", HM_PART_LONGEST_LINE);
        void *text = p->text;
        bool room = hm_grow(&text, &p->capacity, p->size + 1, 1);
        p->text = text;
        if (!room) return no_memory(p, err);
        p->text[p->size++] = (char)c;
    }
    if (ferror(p->file)) return hm_fail(err, HM_IO, "%s: cannot read: %s", p->path, strerror(errno));
    if (c == EOF && p->size > 0) return wrong(p, err, "expected a whole line, found one that is cut");
    p->offset += (long)p->size;
    return HM_OK;
}

// The next line as a JSON object in p->json.
static hm_status read_object(struct hm_part *p, struct hm_error *err)
{
    char where[64];
    hm_status rc = read_line(p, err);
    if (rc) return rc;
    if (p->size == 0)
        return wrong(p, err, "expected %s, found the end of the file", p->line == 1 ? "a header" : "an end line");
    snprintf(where, sizeof where, "line %zu", p->line);
    cJSON_Delete(p->json);
    rc = hm_json_parse(where, p->text, p->size - 1, &p->json, err);
    if (rc) {
        p->json = NULL;
        return err ? hm_fail_prefix(err, p->path) : rc;
    }
    return cJSON_IsObject(p->json) ? HM_OK : wrong(p, err, "expected an object, found %s", hm_json_kind(p->json));
}

// ---- fields

static hm_status read_count(struct hm_part *p, const cJSON *in, const char *key, size_t least, size_t most, size_t *out,
                            struct hm_error *err)
{
    const cJSON *value = hm_json_find(in, key);
    double d = cJSON_IsNumber(value) ? value->valuedouble : -1;
    if (d >= (double)least && d <= (double)most && d == (double)(size_t)d) {
        *out = (size_t)d;
        return HM_OK;
    }
    if (cJSON_IsNumber(value))
        return wrong(p, err, "%s: expected a whole number from %zu to %zu, found %.17g", key, least, most, d);
    return wrong(p, err, "%s: expected a whole number, found %s", key, hm_json_kind(value));
}

// The bytes that a string stands for, written over it: they are never longer.
static hm_status read_bytes(struct hm_part *p, cJSON *value, const char *key, const char **out, size_t *size,
                            struct hm_error *err)
{
    if (!cJSON_IsString(value)) return wrong(p, err, "%s: expected a text, found %s", key, hm_json_kind(value));
    unsigned char *to = (unsigned char *)value->valuestring;
    *out = value->valuestring;
    for (const unsigned char *from = to; *from; from++) {
        if (*from < 0x80) {
            *to++ = *from;
        } else if (*from <= 0xc3) { // the UTF-8 of U+0080 to U+00FF, known to be well-formed
            *to++ = (unsigned char)((*from & 3) << 6 | (from[1] & 0x3f));
            from++;
        } else {
            return wrong(p, err, "%s: expected characters to U+00FF, one for a byte, found another", key);
        }
    }
    *to = 0;
    *size = (size_t)((char *)to - value->valuestring);
    return HM_OK;
}

static hm_status read_copy(struct hm_part *p, cJSON *value, const char *key, char **out, struct hm_error *err)
{
    const char *text;
    size_t size;
    hm_status rc = read_bytes(p, value, key, &text, &size, err);
    if (rc) return rc;
    *out = strdup(text);
    return *out ? HM_OK : no_memory(p, err);
}

static cJSON *member(struct hm_part *p, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(p->json, key);
}

static hm_status read_hash(struct hm_part *p, const char *key, char out[HM_SHA256_HEX], struct hm_error *err)
{
    const cJSON *value = member(p, key);
    const char *hex = cJSON_IsString(value) ? value->valuestring : "";
    if (strlen(hex) != HM_SHA256_HEX - 1 || strspn(hex, "0123456789abcdef") != HM_SHA256_HEX - 1)
        return wrong(p, err, "%s: expected 64 hexadecimal digits, found %s", key,
                     cJSON_IsString(value) ? "another text" : hm_json_kind(value));
    memcpy(out, hex, HM_SHA256_HEX);
    return HM_OK;
}

// ---- the header

static hm_status read_arguments(struct hm_part *p, struct hm_error *err)
{
    const cJSON *array = member(p, "arguments");
    if (!cJSON_IsArray(array)) return wrong(p, err, "arguments: expected an array, found %s", hm_json_kind(array));
    p->arguments = hm_calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *p->arguments);
    if (!p->arguments) return no_memory(p, err);
    hm_status rc = HM_OK;
    for (cJSON *value = array->child; value && !rc; value = value->next) {
        rc = read_copy(p, value, "arguments", &p->arguments[p->header.argument_count], err);
        if (!rc) p->header.argument_count++;
    }
    return rc;
}

static hm_status read_header(struct hm_part *p, struct hm_error *err)
{
    struct hm_part_header *h = &p->header;
    size_t format;
    hm_status rc = read_object(p, err);
    if (!rc && !member(p, "hallmark_part"))
        rc = wrong(p, err, "expected a header with hallmark_part, found no such key");
    if (!rc) rc = read_count(p, p->json, "hallmark_part", HM_PART_VERSION, HM_PART_VERSION, &format, err);
    if (!rc) rc = read_copy(p, member(p, "version"), "version", &p->version, err);
    if (!rc) rc = read_copy(p, member(p, "command"), "command", &p->command, err);
    if (!rc) rc = read_arguments(p, err);
    if (!rc) rc = read_count(p, p->json, "shards", 1, HM_SHARDS_MOST, &h->shards.count, err);
    if (!rc) rc = read_count(p, p->json, "shard", 1, h->shards.count, &h->shards.index, err);
    if (!rc) rc = read_count(p, p->json, "inputs", 0, (size_t)1 << 53, &h->inputs, err);
    if (!rc) rc = read_hash(p, "inputs_sha256", h->inputs_sha256, err);
    if (!rc) rc = hm_sha256_add(p->hash, p->text, p->size, err);
    h->version = p->version;
    h->command = p->command;
    h->arguments = p->arguments;
    return rc;
}

hm_status hm_part_open(const char *path, struct hm_part **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_part *p = hm_calloc(1, sizeof *p);
    if (!p) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    p->path = strdup(path);
    hm_status rc = p->path ? hm_sha256_open(&p->hash, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    if (!rc) rc = read_header(p, err);
    if (rc)
        hm_part_close(p);
    else
        *out = p;
    return rc;
}

void hm_part_close(struct hm_part *p)
{
    if (!p) return;
    hm_part_pause(p);
    hm_sha256_close(p->hash);
    for (size_t i = 0; i < p->header.argument_count; i++) free(p->arguments[i]);
    free(p->arguments);
    free(p->version);
    free(p->command);
    free(p->path);
    free(p);
}

const struct hm_part_header *hm_part_header(const struct hm_part *p)
{
    return &p->header;
}

const char *hm_part_name(const struct hm_part *p)
{
    return p->path;
}

// ---- records

// The bytes of the part are those that were written: the end line closes with the hash of all that stands before it.
static hm_status check_hash(struct hm_part *p, struct hm_error *err)
{
    static const size_t tail = sizeof ",\"sha256\":\"\"}\n" - 1 + HM_SHA256_HEX - 1;
    uint8_t digest[HM_SHA256_BYTES];
    char expected[HM_SHA256_HEX], found[HM_SHA256_HEX];
    hm_status rc = read_hash(p, "sha256", found, err);
    if (!rc && (p->size < tail || memcmp(p->text + p->size - tail, ",\"sha256\":\"", 11) != 0))
        rc = wrong(p, err, "expected sha256 at the end of the line, found it elsewhere");
    if (!rc) rc = hm_sha256_add(p->hash, p->text, p->size - tail, err);
    if (!rc) rc = hm_sha256_finish(p->hash, digest, err);
    if (rc) return rc;
    hm_sha256_hex(digest, expected);
    if (strcmp(expected, found) == 0) return HM_OK;
    return wrong(p, err, "sha256: expected %s of all that stands before, found %s", expected, found);
}

// The end line: all inputs were there, and nothing follows.
static hm_status read_end(struct hm_part *p, const cJSON *end, struct hm_error *err)
{
    size_t share = hm_part_share(p->header.shards, p->header.inputs), inputs, code;
    if (p->done != share)
        return wrong(p, err, "expected the results of %zu inputs before the end, found %zu", share, p->done);
    hm_status rc = read_count(p, end, "inputs", share, share, &inputs, err);
    if (!rc) rc = read_count(p, end, "exit", 0, 255, &code, err);
    if (!rc) rc = check_hash(p, err);
    if (!rc) rc = read_line(p, err);
    if (!rc && p->size > 0) rc = wrong(p, err, "expected nothing after the end line, found more");
    return rc;
}

static hm_status read_record(struct hm_part *p, struct hm_part_record *out, struct hm_error *err)
{
    struct hm_shards shards = p->header.shards;
    size_t share = hm_part_share(shards, p->header.inputs), input;
    size_t next = shards.index + p->done * shards.count; // from 1
    if (p->done == share) return wrong(p, err, "expected the end line after %zu inputs, found another record", share);
    hm_status rc = read_count(p, p->json, "input", 1, p->header.inputs, &input, err);
    if (rc) return rc;
    if (input != next) return wrong(p, err, "input: expected %zu, found %zu", next, input);
    rc = hm_sha256_add(p->hash, p->text, p->size, err);
    if (rc) return rc;
    if (member(p, "text")) {
        out->kind = HM_PART_TEXT;
        return read_bytes(p, member(p, "text"), "text", &out->text, &out->size, err);
    }
    out->kind = HM_PART_RESULT;
    out->result = member(p, "result");
    rc = read_bytes(p, member(p, "name"), "name", &out->text, &out->size, err);
    if (!rc && !cJSON_IsObject(out->result))
        rc = wrong(p, err, "result: expected an object, found %s", hm_json_kind(out->result));
    p->done++;
    return rc;
}

hm_status hm_part_next(struct hm_part *p, struct hm_part_record *out, struct hm_error *err)
{
    hm_status rc = read_object(p, err);
    if (rc) return rc;
    const cJSON *end = hm_json_find(p->json, "end");
    *out = (struct hm_part_record){.kind = HM_PART_END, .line = p->line};
    return end ? read_end(p, end, err) : read_record(p, out, err);
}
