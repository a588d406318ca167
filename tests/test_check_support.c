// See test_check_support.h.
#include "tests/test_check_support.h"

#include "base/sha256.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>

static const char good[] = "tests/data/logs/good";
const char *const test_logs[] = {"greedy",
                                 "rules",
                                 "sampled",
                                 "processed",
                                 "relaxed",
                                 "relaxed-sampled",
                                 "special",
                                 "reordered",
                                 "eos",
                                 "stopped",
                                 "hashed",
                                 "levels",
                                 "lenient",
                                 "divergences",
                                 "restricted",
                                 "audit",
                                 "audit-target",
                                 "ties",
                                 "standard",
                                 "standard-iid",
                                 "nucleus",
                                 "nucleus-one",
                                 "nucleus-iid",
                                 "tv-budget",
                                 "tv-budget-topk",
                                 "regret-budget",
                                 "root-draw",
                                 "pearl",
                                 "covering",
                                 "scored",
                                 "leaf-stop",
                                 NULL};
const int test_log_count = sizeof test_logs / sizeof test_logs[0] - 1;

char *test_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: cannot open", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

void test_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("%s: cannot write", path);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void test_log_refresh(struct test_log *log, size_t line)
{
    cJSON_free(log->body[line]);
    log->body[line] = cJSON_PrintUnformatted(log->line[line]);
    assert_non_null(log->body[line]);
    log->body[line][strlen(log->body[line]) - 1] = '\0';
}

struct test_log *test_log_read(const char *name)
{
    char path[256];
    size_t size;
    struct test_log *log = calloc(1, sizeof *log);
    snprintf(path, sizeof path, "%s/%s.jsonl", good, name);
    char *bytes = test_read(path, &size), *rest = bytes, *text;
    log->name = strdup(name);
    log->line = calloc(size, sizeof *log->line);
    log->body = calloc(size, sizeof *log->body);
    while ((text = strsep(&rest, "\n")) && *text) {
        cJSON *line = cJSON_Parse(text);
        assert_non_null(line);
        cJSON_DeleteItemFromObjectCaseSensitive(line, "chain");
        log->line[log->count] = line;
        test_log_refresh(log, log->count++);
    }
    free(bytes);
    return log;
}

void test_log_free(struct test_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        cJSON_Delete(log->line[i]);
        cJSON_free(log->body[i]);
    }
    free(log->name);
    free(log->line);
    free(log->body);
    free(log);
}

void test_log_write(const struct test_log *log, const char *path, long skip)
{
    char chain[65] = "";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < log->count; i++) {
        if ((long)i == skip) continue;
        unsigned char hash[32];
        EVP_MD_CTX *sha = EVP_MD_CTX_new();
        EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
        EVP_DigestUpdate(sha, chain, strlen(chain));
        EVP_DigestUpdate(sha, log->body[i], strlen(log->body[i]));
        EVP_DigestFinal_ex(sha, hash, NULL);
        EVP_MD_CTX_free(sha);
        for (int j = 0; j < 32; j++) snprintf(chain + 2 * j, 3, "%02x", hash[j]);
        fprintf(file, "%s,\"chain\":\"%s\"}\n", log->body[i], chain);
    }
    assert_int_equal(fclose(file), 0);
}

const char *test_folder(void)
{
    static char folder[] = "/tmp/hm-check-XXXXXX";
    static int made;
    if (!made++) assert_non_null(mkdtemp(folder));
    return folder;
}

const char *test_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static void each(const char *folder, void (*act)(const char *name))
{
    struct dirent *entry;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') act(entry->d_name);
    closedir(dir);
}

static void copy_shard(const char *name)
{
    char from[512];
    size_t size;
    if (!strstr(name, ".safetensors")) return;
    snprintf(from, sizeof from, "%s/%s", good, name);
    char *bytes = test_read(from, &size);
    test_write(test_path(name), bytes, size);
    free(bytes);
}

static void drop_shard(const char *name)
{
    if (strstr(name, ".safetensors")) unlink(test_path(name));
}

static void drop_any(const char *name)
{
    unlink(test_path(name));
}

void test_copy_rows(void)
{
    each(good, copy_shard);
}

void test_drop_rows(void)
{
    each(test_folder(), drop_shard);
}

void test_drop_folder(void)
{
    each(test_folder(), drop_any);
    rmdir(test_folder());
}

const char *test_kind(enum hm_check_kind kind)
{
    static const char *const names[] = {"PROVED", "CONSISTENT", "REFUTED", "UNDECIDED", "UNREADABLE"};
    return names[kind];
}

void test_write_long(const char *path, size_t size)
{
    char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    memset(bytes, ' ', size);
    bytes[0] = '{';
    bytes[size - 1] = '}';
    bytes[size] = '\n';
    test_write(path, bytes, size + 1);
    free(bytes);
}
