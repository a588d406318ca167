// Reading files whole: mapped (checkpoints) or copied (configurations).
#ifndef HM_BASE_FILE_H
#define HM_BASE_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A file mapped read-only. A mapping of an empty file has data == NULL and size == 0.
struct hm_map {
    const uint8_t *data;
    size_t size;
};

// Maps a regular file. HM_IO names the path and the system's reason.
hm_status hm_map_open(const char *path, struct hm_map *out, struct hm_error *err);
void hm_map_close(struct hm_map *map);

// Bytes from `begin` on, of a map, will hardly be looked at again: they stop counting as this process's memory. They may be
// read all the same, from the file.
void hm_map_release(const void *begin, size_t size);

// Reads a regular file of at most `limit` bytes into memory, with a terminating zero byte that is not counted in
// *size. The caller frees *text. HM_IO when it cannot be read, HM_RANGE when it is larger than the limit.
hm_status hm_file_read(const char *path, size_t limit, char **text, size_t *size, struct hm_error *err);

// Would writing over `path` lose nothing but a file of our own kind?  True for no file, an empty one, one that begins with
// magic [size], and whatever is refused when it is opened (a directory, a file without permission).
bool hm_file_may_replace(const char *path, const void *magic, size_t size);

// "dir/name" in fresh memory (the caller frees it), or NULL when memory is short.
char *hm_path_join(const char *dir, const char *name);

#ifdef __cplusplus
}
#endif

#endif
