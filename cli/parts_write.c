// Writing a part: see parts_file.h.
#include "cli/parts_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[] = "{\"hallmark_part\":";

struct hm_part_writer {
    char *path, *temporary; // temporary NULL: there is no such file (any more)
    FILE *file, *text;
    struct hm_sha256 *hash;
    size_t input;            // at hand, from 0: records of text name it
    size_t step, done;       // between inputs of the share; results written
    struct hm_error failure; // of writing text, where stdio has no words for it
};

size_t hm_part_share(struct hm_shards shards, size_t inputs)
{
    return inputs / shards.count + (shards.index <= inputs % shards.count);
}

hm_status hm_part_hash_names(char *const *names, size_t count, char hex[HM_SHA256_HEX], struct hm_error *err)
{
    struct hm_sha256 *hash;
    uint8_t digest[HM_SHA256_BYTES];
    hm_status rc = hm_sha256_open(&hash, err);
    for (size_t i = 0; i < count && !rc; i++) rc = hm_sha256_add(hash, names[i], strlen(names[i]) + 1, err);
    if (!rc) rc = hm_sha256_finish(hash, digest, err);
    if (!rc) hm_sha256_hex(digest, hex);
    hm_sha256_close(hash);
    return rc;
}

static hm_status no_memory(const struct hm_part_writer *w, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory for a line", w->path);
}

static hm_status cannot(const struct hm_part_writer *w, const char *verb, struct hm_error *err)
{
    return hm_fail(err, HM_IO, "%s: cannot %s: %s", w->path, verb, strerror(errno));
}

// Bytes as a JSON string: a byte from 0x80 becomes the character of that number.
static cJSON *make_bytes(const char *bytes, size_t size)
{
    char *text = hm_calloc(2 * size + 1, 1);
    cJSON *string = NULL;
    if (!text) return NULL;
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x80) text[n++] = (char)(0xc0 | c >> 6);
        text[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    string = cJSON_CreateString(text);
    free(text);
    return string;
}

// Puts a member into an object; both may be NULL when memory ran out. The object, or NULL: then nothing is left.
static cJSON *with(cJSON *object, const char *key, cJSON *value)
{
    if (object && value && cJSON_AddItemToObject(object, key, value)) return object;
    cJSON_Delete(object);
    cJSON_Delete(value);
    return NULL;
}

// Writes a line; deletes the object, which is NULL when memory ran out.
static hm_status write_line(struct hm_part_writer *w, cJSON *object, struct hm_error *err)
{
    char *line = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!line) return no_memory(w, err);
    size_t size = strlen(line);
    line[size++] = '\n'; // in place of the terminating zero
    hm_status rc = size <= HM_PART_LONGEST_LINE
                       ? hm_sha256_add(w->hash, line, size, err)
                       : hm_fail(err, HM_RANGE, "%s: expected lines of at most %d bytes, found %zu: too many arguments",
                                 w->path, HM_PART_LONGEST_LINE, size);
    if (!rc && fwrite(line, 1, size, w->file) != size) rc = cannot(w, "write", err);
    free(line);
    return rc;
}

static hm_status write_header(struct hm_part_writer *w, const struct hm_part_header *h, struct hm_error *err)
{
    cJSON *o = cJSON_CreateObject(), *arguments = cJSON_CreateArray();
    for (size_t i = 0; i < h->argument_count && arguments; i++) {
        cJSON *argument = make_bytes(h->arguments[i], strlen(h->arguments[i]));
        if (argument && cJSON_AddItemToArray(arguments, argument)) continue;
        cJSON_Delete(argument);
        cJSON_Delete(arguments);
        arguments = NULL;
    }
    o = with(o, "hallmark_part", cJSON_CreateNumber(HM_PART_VERSION));
    o = with(o, "version", cJSON_CreateString(h->version));
    o = with(o, "command", cJSON_CreateString(h->command));
    o = with(o, "arguments", arguments);
    o = with(o, "shard", cJSON_CreateNumber((double)h->shards.index));
    o = with(o, "shards", cJSON_CreateNumber((double)h->shards.count));
    o = with(o, "inputs", cJSON_CreateNumber((double)h->inputs));
    o = with(o, "inputs_sha256", cJSON_CreateString(h->inputs_sha256));
    return write_line(w, o, err);
}

// ---- text

// A piece of text that stdio hands over. Returns size, or 0 after a failure.
static ssize_t take_text(void *cookie, const char *bytes, size_t size)
{
    struct hm_part_writer *w = cookie;
    hm_status rc = w->failure.code;
    if (!rc && memchr(bytes, 0, size))
        rc = hm_fail(&w->failure, HM_RANGE, "%s: expected text, found a zero byte", w->path);
    for (size_t done = 0; done < size && !rc;) {
        size_t piece = size - done < HM_PART_PIECE ? size - done : HM_PART_PIECE;
        cJSON *o = with(cJSON_CreateObject(), "input", cJSON_CreateNumber((double)w->input + 1));
        rc = write_line(w, with(o, "text", make_bytes(bytes + done, piece)), &w->failure);
        done += piece;
    }
    if (!rc) return (ssize_t)size;
    errno = EIO;
    return 0;
}

static hm_status flush_text(struct hm_part_writer *w, struct hm_error *err)
{
    bool good = fflush(w->text) == 0 && !ferror(w->text);
    if (w->failure.code) return hm_fail(err, w->failure.code, "%s", w->failure.message);
    return good ? HM_OK : cannot(w, "write", err);
}

FILE *hm_part_text(struct hm_part_writer *w)
{
    return w->text;
}

hm_status hm_part_result(struct hm_part_writer *w, size_t input, const char *name, cJSON *result, struct hm_error *err)
{
    hm_status rc = flush_text(w, err);
    char *text = result && !rc ? cJSON_PrintUnformatted(result) : NULL;
    if (!rc && text && strlen(text) > HM_PART_RESULT_MOST)
        rc = hm_fail(err, HM_RANGE, "%s: expected a result of at most %d bytes, found %zu", w->path,
                     HM_PART_RESULT_MOST, strlen(text));
    free(text);
    if (rc) {
        cJSON_Delete(result);
        return rc;
    }
    cJSON *o = with(cJSON_CreateObject(), "input", cJSON_CreateNumber((double)input + 1));
    o = with(o, "name", make_bytes(name, strlen(name)));
    rc = write_line(w, with(o, "result", result), err);
    w->input = input + w->step;
    w->done++;
    return rc;
}

// ---- the file

// Opens a temporary file beside the part, with the permissions that any other output has.
static hm_status open_temporary(struct hm_part_writer *w, const char *folder, const char *name, struct hm_error *err)
{
    char hidden[96];
    snprintf(hidden, sizeof hidden, ".%s.XXXXXX", name);
    w->temporary = hm_path_join(folder, hidden);
    if (!w->temporary) return no_memory(w, err);
    int fd = mkostemp(w->temporary, O_CLOEXEC);
    if (fd < 0) {
        free(w->temporary);
        w->temporary = NULL;
        return cannot(w, "create", err);
    }
    mode_t mask = umask(0);
    umask(mask);
    w->file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "wb") : NULL;
    if (w->file) return HM_OK;
    hm_status rc = cannot(w, "create", err);
    close(fd);
    return rc;
}

static hm_status open_streams(struct hm_part_writer *w, const char *folder, const char *name, struct hm_error *err)
{
    static const cookie_io_functions_t functions = {.write = take_text};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return hm_fail(err, HM_IO, "%s: cannot make this folder: %s", folder, strerror(errno));
    if (!hm_file_may_replace(w->path, MAGIC, sizeof MAGIC - 1))
        return hm_fail(err, HM_USAGE, "%s: expected no file or an older part to replace, found another kind of file",
                       w->path);
    hm_status rc = open_temporary(w, folder, name, err);
    if (!rc) rc = hm_sha256_open(&w->hash, err);
    if (rc) return rc;
    w->text = fopencookie(w, "w", functions);
    return w->text && setvbuf(w->text, NULL, _IOFBF, HM_PART_PIECE) == 0 ? HM_OK : no_memory(w, err);
}

hm_status hm_part_create(const char *folder, const struct hm_part_header *header, struct hm_part_writer **out,
                         struct hm_error *err)
{
    char name[64];
    *out = NULL;
    struct hm_part_writer *w = hm_calloc(1, sizeof *w);
    if (!w) return hm_fail(err, HM_MEMORY, "%s: out of memory", folder);
    snprintf(name, sizeof name, "part-%05zu-of-%05zu.jsonl", header->shards.index, header->shards.count);
    w->path = hm_path_join(folder, name);
    w->input = header->shards.index - 1;
    w->step = header->shards.count;
    hm_status rc = w->path ? open_streams(w, folder, name, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", folder);
    if (!rc) rc = write_header(w, header, err);
    if (rc)
        hm_part_discard(w);
    else
        *out = w;
    return rc;
}

const char *hm_part_path(const struct hm_part_writer *w)
{
    return w->path;
}

void hm_part_discard(struct hm_part_writer *w)
{
    if (!w) return;
    if (w->text) fclose(w->text);
    if (w->file) fclose(w->file);
    if (w->temporary) unlink(w->temporary);
    hm_sha256_close(w->hash);
    free(w->temporary);
    free(w->path);
    free(w);
}

// The hash covers what stands before it, in this line too.
static hm_status write_end(struct hm_part_writer *w, int exit_code, struct hm_error *err)
{
    uint8_t digest[HM_SHA256_BYTES];
    char end[96], hex[HM_SHA256_HEX];
    int size = snprintf(end, sizeof end, "{\"end\":{\"inputs\":%zu,\"exit\":%d}", w->done, exit_code);
    hm_status rc = hm_sha256_add(w->hash, end, (size_t)size, err);
    if (!rc) rc = hm_sha256_finish(w->hash, digest, err);
    if (rc) return rc;
    hm_sha256_hex(digest, hex);
    return fprintf(w->file, "%s,\"sha256\":\"%s\"}\n", end, hex) > 0 ? HM_OK : cannot(w, "write", err);
}

// The name appears when the bytes are on the disk.
hm_status hm_part_finish(struct hm_part_writer *w, int exit_code, struct hm_error *err)
{
    hm_status rc = flush_text(w, err);
    if (!rc) rc = write_end(w, exit_code, err);
    if (rc) return rc;
    bool good = fflush(w->file) == 0 && fsync(fileno(w->file)) == 0;
    FILE *file = w->file;
    w->file = NULL;
    if (fclose(file) != 0 || !good) return cannot(w, "write", err);
    if (rename(w->temporary, w->path) != 0) return cannot(w, "replace", err);
    free(w->temporary);
    w->temporary = NULL;
    return HM_OK;
}
