// Row shards: see shard.h.
#include "certify/shard.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are stored as they are in memory: little-endian");

struct hm_shard_writer {
    char *stem;             // "folder/LOG.target-"
    char *pattern;          // "LOG.target-%05d.safetensors"
    char *path;             // of the open shard
    size_t vocab, row_size; // floats, bytes
    uint64_t capacity;      // rows per shard
    int fd;                 // -1 when no shard is open
    uint64_t shard, count;  // the next or open shard, rows in it
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *shard_path(const char *stem, uint64_t shard)
{
    char *path = NULL;
    return asprintf(&path, "%s%05llu.safetensors", stem, (unsigned long long)shard) < 0 ? NULL : path;
}

static hm_status check_name(const char *log_path, struct hm_error *err)
{
    const char *name = base_name(log_path);
    if (strchr(name, '%') || strchr(name, '\\') || name[0] == '.')
        return hm_fail(err, HM_USAGE, "%s: a log that keeps its rows cannot have a '%%' or '\\' in its name or begin with '.'",
                       log_path);
    if (strlen(name) > 220)
        return hm_fail(err, HM_USAGE, "%s: a log that keeps its rows needs a name of at most 220 bytes, found %zu", log_path,
                       strlen(name));
    for (const utf8proc_uint8_t *c = (const utf8proc_uint8_t *)name; *c;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t n = utf8proc_iterate(c, -1, &point);
        if (n <= 0) return hm_fail(err, HM_USAGE, "%s: the name of a log that keeps its rows must be UTF-8", log_path);
        c += n;
    }
    return HM_OK;
}

hm_status hm_shard_open(const char *log_path, const char *side, size_t vocab, uint64_t limit,
                        struct hm_shard_writer **out, struct hm_error *err)
{
    *out = NULL;
    hm_status rc = check_name(log_path, err);
    if (rc) return rc;
    struct hm_shard_writer *writer = hm_calloc(1, sizeof *writer);
    if (!writer) return hm_fail(err, HM_MEMORY, "%s: out of memory", log_path);
    writer->fd = -1;
    writer->vocab = vocab;
    // A quarter of the address space: offsets then never overflow, whatever the capacity.
    if (vocab == 0 || !hm_mul_size(vocab, sizeof(float), &writer->row_size) || writer->row_size > INT64_MAX / 2) {
        rc = hm_fail(err, HM_RANGE, "%s: rows of %zu logits cannot be stored", log_path, vocab);
        goto out;
    }
    writer->capacity = limit > HM_SHARD_HEADER ? (limit - HM_SHARD_HEADER) / writer->row_size : 0;
    if (writer->capacity == 0) writer->capacity = 1;
    if (asprintf(&writer->stem, "%s.%s-", log_path, side) < 0) writer->stem = NULL;
    if (asprintf(&writer->pattern, "%s.%s-%%05d.safetensors", base_name(log_path), side) < 0) writer->pattern = NULL;
    if (!writer->stem || !writer->pattern) rc = hm_fail(err, HM_MEMORY, "%s: out of memory", log_path);
out:
    if (rc) hm_shard_close(writer, NULL);
    else *out = writer;
    return rc;
}

const char *hm_shard_pattern(const struct hm_shard_writer *writer)
{
    return writer->pattern;
}

uint64_t hm_shard_capacity(const struct hm_shard_writer *writer)
{
    return writer->capacity;
}

static hm_status write_at(const struct hm_shard_writer *writer, const void *data, size_t size, uint64_t offset,
                          struct hm_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(writer->fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return hm_fail(err, HM_IO, "%s: row %llu: cannot write %zu bytes: %s", writer->path,
                           (unsigned long long)writer->count, size, strerror(n < 0 ? errno : ENOSPC));
        done += (size_t)n;
    }
    return HM_OK;
}

// The header has the same length for every count: its rows start at the same offset before and after finishing.
static hm_status write_header(const struct hm_shard_writer *writer, uint64_t rows, struct hm_error *err)
{
    char header[HM_SHARD_HEADER];
    uint64_t length = sizeof header - sizeof length;
    memset(header, ' ', sizeof header);
    memcpy(header, &length, sizeof length);
    int n = snprintf(header + sizeof length, sizeof header - sizeof length,
                     "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%llu,%zu],\"data_offsets\":[0,%llu]}}",
                     (unsigned long long)rows, writer->vocab, (unsigned long long)(rows * writer->row_size));
    header[sizeof length + (size_t)n] = ' '; // the terminating zero
    return write_at(writer, header, sizeof header, 0, err);
}

static hm_status set_size(const struct hm_shard_writer *writer, uint64_t rows, struct hm_error *err)
{
    uint64_t size = HM_SHARD_HEADER + rows * writer->row_size;
    while (ftruncate(writer->fd, (off_t)size) != 0)
        if (errno != EINTR)
            return hm_fail(err, HM_IO, "%s: cannot set the size to %llu bytes: %s", writer->path,
                           (unsigned long long)size, strerror(errno));
    return HM_OK;
}

static hm_status start_shard(struct hm_shard_writer *writer, struct hm_error *err)
{
    free(writer->path);
    writer->path = shard_path(writer->stem, writer->shard);
    if (!writer->path) return hm_fail(err, HM_MEMORY, "%s: out of memory", writer->stem);
    // A new file rather than an emptied one: somebody may still have the old one mapped.
    if (unlink(writer->path) != 0 && errno != ENOENT)
        return hm_fail(err, HM_IO, "%s: cannot replace: %s", writer->path, strerror(errno));
    writer->count = 0;
    writer->fd = open(writer->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->fd < 0) return hm_fail(err, HM_IO, "%s: cannot create: %s", writer->path, strerror(errno));
    hm_status rc = set_size(writer, writer->capacity, err);
    return rc ? rc : write_header(writer, writer->capacity, err);
}

// A full shard already says what it holds.
static hm_status finish_shard(struct hm_shard_writer *writer, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (writer->fd < 0) return HM_OK;
    if (writer->count < writer->capacity) {
        rc = write_header(writer, writer->count, err);
        if (!rc) rc = set_size(writer, writer->count, err);
    }
    if (close(writer->fd) != 0 && errno != EINTR && !rc)
        rc = hm_fail(err, HM_IO, "%s: cannot close: %s", writer->path, strerror(errno));
    writer->fd = -1;
    return rc;
}

hm_status hm_shard_append(struct hm_shard_writer *writer, const float *row, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (writer->fd >= 0 && writer->count == writer->capacity) {
        rc = finish_shard(writer, err);
        writer->shard++;
    }
    if (!rc && writer->fd < 0) rc = start_shard(writer, err);
    if (!rc) rc = write_at(writer, row, writer->row_size, HM_SHARD_HEADER + writer->count * writer->row_size, err);
    if (!rc) writer->count++;
    return rc;
}

hm_status hm_shard_close(struct hm_shard_writer *writer, struct hm_error *err)
{
    if (!writer) return HM_OK;
    hm_status rc = finish_shard(writer, err);
    free(writer->stem);
    free(writer->pattern);
    free(writer->path);
    free(writer);
    return rc;
}

hm_status hm_shard_remove(const char *log_path, const char *side, struct hm_error *err)
{
    char *stem = NULL;
    hm_status rc = HM_OK;
    if (asprintf(&stem, "%s.%s-", log_path, side) < 0) return hm_fail(err, HM_MEMORY, "%s: out of memory", log_path);
    for (uint64_t shard = 0; !rc; shard++) {
        char *path = shard_path(stem, shard);
        bool missing = path && unlink(path) != 0;
        if (!path) rc = hm_fail(err, HM_MEMORY, "%s: out of memory", log_path);
        else if (missing && errno != ENOENT && errno != ENAMETOOLONG)
            rc = hm_fail(err, HM_IO, "%s: cannot remove the shard of an older log: %s", path, strerror(errno));
        free(path);
        if (missing) break;
    }
    free(stem);
    return rc;
}
