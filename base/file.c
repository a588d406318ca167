// Reading files whole: see file.h.
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static hm_status open_regular(const char *path, int *fd, size_t *size, struct hm_error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return hm_fail(err, HM_IO, "%s: cannot open: %s", path, strerror(errno));
    struct stat st;
    if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        bool folder = S_ISDIR(st.st_mode);
        close(*fd);
        return hm_fail(err, HM_IO, "%s: not a regular file%s", path, folder ? " but a folder" : "");
    }
    *size = (size_t)st.st_size;
    return HM_OK;
}

hm_status hm_map_open(const char *path, struct hm_map *out, struct hm_error *err)
{
    int fd;
    size_t size;
    *out = (struct hm_map){0};
    hm_status rc = open_regular(path, &fd, &size, err);
    if (rc) return rc;
    if (size > 0) {
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) rc = hm_fail(err, HM_IO, "%s: cannot map %zu bytes: %s", path, size, strerror(errno));
        else *out = (struct hm_map){.data = data, .size = size};
    }
    close(fd);
    return rc;
}

void hm_map_close(struct hm_map *map)
{
    if (map->data) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (struct hm_map){0};
}

void hm_map_release(const void *begin, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)begin + page - 1) / page * page;
    uintptr_t last = ((uintptr_t)begin + size) / page * page;
    if (last > first) madvise((void *)first, last - first, MADV_DONTNEED);
}

static hm_status read_all(int fd, const char *path, char *text, size_t size, struct hm_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, text + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return hm_fail(err, HM_IO, "%s: cannot read: %s", path, strerror(errno));
        if (n == 0) return hm_fail(err, HM_IO, "%s: expected %zu bytes, found %zu", path, size, done);
        done += (size_t)n;
    }
    return HM_OK;
}

hm_status hm_file_read(const char *path, size_t limit, char **text, size_t *size, struct hm_error *err)
{
    int fd;
    *text = NULL;
    hm_status rc = open_regular(path, &fd, size, err);
    if (rc) return rc;
    if (*size > limit) {
        rc = hm_fail(err, HM_RANGE, "%s: expected at most %zu bytes, found %zu", path, limit, *size);
        goto out;
    }
    *text = hm_calloc(*size + 1, 1);
    if (!*text) {
        rc = hm_fail(err, HM_MEMORY, "%s: out of memory reading %zu bytes", path, *size);
        goto out;
    }
    rc = read_all(fd, path, *text, *size, err);
    if (rc) {
        free(*text);
        *text = NULL;
    }
out:
    close(fd);
    return rc;
}

bool hm_file_may_replace(const char *path, const void *magic, size_t size)
{
    char head[64];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    ssize_t n = size <= sizeof head ? read(fd, head, size) : -1;
    close(fd);
    return n == 0 || (n == (ssize_t)size && memcmp(head, magic, size) == 0);
}

char *hm_path_join(const char *dir, const char *name)
{
    size_t a = strlen(dir), b = strlen(name);
    while (a > 1 && dir[a - 1] == '/') a--;
    char *path = hm_calloc(a + b + 2, 1);
    if (!path) return NULL;
    memcpy(path, dir, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b);
    return path;
}
