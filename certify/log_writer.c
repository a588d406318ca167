// The log file: see log_writer.h.
#include "certify/log_writer.h"

#include "base/memory.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct hm_log_writer {
    int fd;
    char *path;
    char chain[HM_SHA256_HEX]; // of the last line; "" before the first
    uint64_t lines;
    off_t size; // of the complete lines
};

// Takes the lock. File systems without locks (some network ones) are served without it.
static hm_status lock(struct hm_log_writer *writer, struct hm_error *err)
{
    while (flock(writer->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return HM_OK;
        return hm_fail(err, HM_IO, "%s: another process is writing this log; give this run a log of its own",
                       writer->path);
    }
    return HM_OK;
}

static hm_status open_file(struct hm_log_writer *writer, struct hm_error *err)
{
    // O_NONBLOCK: a named pipe must be refused, not waited for. O_TRUNC would empty a log that someone else is writing.
    struct stat st;
    writer->fd = open(writer->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (writer->fd < 0) return hm_fail(err, HM_IO, "%s: cannot create the log: %s", writer->path, strerror(errno));
    if (fstat(writer->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return hm_fail(err, HM_IO, "%s: expected a regular file for the log", writer->path);
    hm_status rc = lock(writer, err);
    if (rc) return rc;
    if (ftruncate(writer->fd, 0) != 0)
        return hm_fail(err, HM_IO, "%s: cannot empty the old log: %s", writer->path, strerror(errno));
    return HM_OK;
}

hm_status hm_log_writer_open(const char *path, struct hm_log_writer **out, struct hm_error *err)
{
    *out = NULL;
    struct hm_log_writer *writer = hm_calloc(1, sizeof *writer);
    if (!writer) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    writer->fd = -1;
    writer->path = strdup(path);
    hm_status rc = writer->path ? open_file(writer, err) : hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    if (rc) hm_log_writer_close(writer, NULL);
    else *out = writer;
    return rc;
}

static hm_status extend_chain(struct hm_log_writer *writer, const struct hm_line *line, struct hm_error *err)
{
    struct hm_sha256 *hash;
    uint8_t digest[HM_SHA256_BYTES];
    hm_status rc = hm_sha256_open(&hash, err);
    if (!rc) rc = hm_sha256_add(hash, writer->chain, strlen(writer->chain), err);
    if (!rc) rc = hm_sha256_add(hash, line->text, line->size, err);
    if (!rc) rc = hm_sha256_finish(hash, digest, err);
    if (!rc) hm_sha256_hex(digest, writer->chain);
    hm_sha256_close(hash);
    return rc;
}

// One write; only when the system takes less than the whole line (a full disk, mostly) is there a second.
static hm_status write_line(struct hm_log_writer *writer, const struct hm_line *line, struct hm_error *err)
{
    for (size_t done = 0; done < line->size;) {
        ssize_t n = write(writer->fd, line->text + done, line->size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int reason = n < 0 ? errno : ENOSPC;
            // Best effort: readers also recognise half a line, as a truncated log.
            if (ftruncate(writer->fd, writer->size) != 0) errno = reason;
            return hm_fail(err, HM_IO, "%s: line %llu: cannot write %zu bytes: %s; the lines before it are kept",
                           writer->path, (unsigned long long)writer->lines + 1, line->size, strerror(reason));
        }
        done += (size_t)n;
    }
    return HM_OK;
}

hm_status hm_log_writer_append(struct hm_log_writer *writer, struct hm_line *line, struct hm_error *err)
{
    hm_status rc = hm_line_check(line, writer->path, err);
    if (!rc) rc = extend_chain(writer, line, err);
    if (rc) return rc;
    hm_line_format(line, ",\"chain\":\"%s\"}\n", writer->chain);
    rc = hm_line_check(line, writer->path, err);
    if (!rc) rc = write_line(writer, line, err);
    if (rc) return rc;
    writer->lines++;
    writer->size += (off_t)line->size;
    return HM_OK;
}

hm_status hm_log_writer_close(struct hm_log_writer *writer, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (!writer) return HM_OK;
    if (writer->fd >= 0 && close(writer->fd) != 0 && errno != EINTR)
        rc = hm_fail(err, HM_IO, "%s: cannot close the log: %s", writer->path, strerror(errno));
    free(writer->path);
    free(writer);
    return rc;
}
