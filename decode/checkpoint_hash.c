// The hash of a checkpoint's weight files and where it is remembered: see checkpoint.h.
//
// A remembered hash is a file named after the SHA-256 of everything that must not have changed: format, and for each
// weight file its real path, size, inode and times. It holds the 64 digits. Nothing in it is trusted further than the
// user's own cache folder; weights changed a moment ago are not remembered, because their times may not tell.
#include "decode/checkpoint.h"

#include "base/file.h"
#include "base/sha256.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEX_DIGITS = 64, SETTLED_SECONDS = 10 };
static const size_t STEP = 64u << 20; // bytes hashed between looks at anything else

// The name under which the hash is remembered; false when there is no telling (a file vanished, changed just now).
static bool cache_key(const struct hm_checkpoint *c, char hex[HM_SHA256_HEX])
{
    struct hm_sha256 *hash;
    if (hm_sha256_open(&hash, NULL)) return false;
    bool known = true;
    for (size_t i = 0; i < hm_checkpoint_files(c) && known; i++) {
        struct stat st;
        char *path = realpath(hm_safetensors_path(hm_checkpoint_file(c, i)), NULL);
        known = path && stat(path, &st) == 0 && time(NULL) - st.st_mtim.tv_sec > SETTLED_SECONDS &&
                time(NULL) - st.st_ctim.tv_sec > SETTLED_SECONDS;
        if (known) {
            int64_t facts[] = {1,
                               (int64_t)st.st_size,
                               (int64_t)st.st_ino,
                               (int64_t)st.st_mtim.tv_sec,
                               (int64_t)st.st_mtim.tv_nsec,
                               (int64_t)st.st_ctim.tv_sec,
                               (int64_t)st.st_ctim.tv_nsec};
            known =
                !hm_sha256_add(hash, path, strlen(path) + 1, NULL) && !hm_sha256_add(hash, facts, sizeof facts, NULL);
        }
        free(path);
    }
    uint8_t digest[HM_SHA256_BYTES];
    if (known) known = !hm_sha256_finish(hash, digest, NULL);
    if (known) hm_sha256_hex(digest, hex);
    hm_sha256_close(hash);
    return known;
}

// The cache folder in fresh memory, or NULL for none.
static char *cache_folder(void)
{
    const char *own = getenv("HALLMARK_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own) return strcmp(own, "off") == 0 ? NULL : strdup(own);
    if (xdg && xdg[0] == '/') return hm_path_join(xdg, "hallmark");
    return home && home[0] == '/' ? hm_path_join(home, ".cache/hallmark") : NULL;
}

static bool is_hash(const char *text, size_t size)
{
    return size == HEX_DIGITS + 1 && text[HEX_DIGITS] == '\n' && strspn(text, "0123456789abcdef") == HEX_DIGITS;
}

static bool recall(const char *folder, const char *key, char hex[HM_SHA256_HEX])
{
    char *path = hm_path_join(folder, key), *text = NULL;
    size_t size;
    bool found = path && !hm_file_read(path, 4096, &text, &size, NULL) && is_hash(text, size);
    if (found) {
        memcpy(hex, text, HEX_DIGITS);
        hex[HEX_DIGITS] = 0;
    }
    free(text);
    free(path);
    return found;
}

// Makes the folder and those above it, as far as it can.
static void make_folder(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            (void)mkdir(path, 0777);
            *p = '/';
        }
    (void)mkdir(path, 0777);
}

// Written beside and renamed, so that a reader sees the whole line or nothing.
static void remember(char *folder, const char *key, const char *hex)
{
    char *path = hm_path_join(folder, key), *fresh = hm_path_join(folder, "new-XXXXXX");
    if (path && fresh) {
        make_folder(folder);
        int fd = mkstemp(fresh);
        if (fd >= 0) {
            bool good = dprintf(fd, "%s\n", hex) == HEX_DIGITS + 1;
            good = close(fd) == 0 && good;
            if (!good || rename(fresh, path) != 0) (void)unlink(fresh);
        }
    }
    free(fresh);
    free(path);
}

static hm_status hash_files(const struct hm_checkpoint *c, char hex[HM_SHA256_HEX], struct hm_error *err)
{
    struct hm_sha256 *hash;
    uint8_t digest[HM_SHA256_BYTES];
    hm_status rc = hm_sha256_open(&hash, err);
    if (rc) return rc;
    for (size_t i = 0; i < hm_checkpoint_files(c) && !rc; i++) {
        size_t size;
        const uint8_t *bytes = hm_safetensors_bytes(hm_checkpoint_file(c, i), &size);
        for (size_t at = 0; at < size && !rc; at += STEP)
            rc = hm_sha256_add(hash, bytes + at, size - at < STEP ? size - at : STEP, err);
    }
    if (!rc) rc = hm_sha256_finish(hash, digest, err);
    if (!rc) hm_sha256_hex(digest, hex);
    hm_sha256_close(hash);
    return rc;
}

hm_status hm_checkpoint_hash(const struct hm_checkpoint *c, char hex[65], struct hm_error *err)
{
    char key[HM_SHA256_HEX], after[HM_SHA256_HEX];
    char *folder = cache_folder();
    bool known = folder && cache_key(c, key);
    hm_status rc = HM_OK;
    if (!known || !recall(folder, key, hex)) {
        rc = hash_files(c, hex, err);
        // Not remembered when the files changed while they were read.
        if (!rc && known && cache_key(c, after) && strcmp(key, after) == 0) remember(folder, key, hex);
    }
    free(folder);
    return rc;
}
