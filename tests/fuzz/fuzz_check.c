// Fuzz target: the bytes of a certificate log, beside the rows of the golden logs. The checker must end with one of its
// five results, with the exit code that belongs to it.
//
// The first byte chooses whether the chain of every line is made good first, so that what lies behind it is reached.
#include "certify/check/check.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TAIL = 10 + 64 + 2 }; // ,"chain":"<64 digits>"}

// Recomputes the chain of each complete line that has one.
static void repair(char *text, size_t size)
{
    char chain[65] = "";
    for (char *line = text, *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
        if (end - line < TAIL || memcmp(end - TAIL, ",\"chain\":\"", 10) != 0) return;
        unsigned char hash[32];
        EVP_MD_CTX *sha = EVP_MD_CTX_new();
        if (!sha) return;
        EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
        EVP_DigestUpdate(sha, chain, strlen(chain));
        EVP_DigestUpdate(sha, line, (size_t)(end - line) - TAIL);
        EVP_DigestFinal_ex(sha, hash, NULL);
        EVP_MD_CTX_free(sha);
        for (int i = 0; i < 32; i++) snprintf(chain + 2 * i, 3, "%02x", hash[i]);
        memcpy(end - TAIL + 10, chain, 64);
    }
}

// A folder of links to the golden shards, so that the rows of a golden log are found; removed at the end.
static char folder[] = "/tmp/hm-fuzz-XXXXXX", path[64];

static void remove_folder(void)
{
    char name[512];
    struct dirent *entry;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(name);
    }
    if (dir) closedir(dir);
    rmdir(folder);
}

static void make_folder(void)
{
    char from[4400], to[512], *good = realpath("tests/data/logs/good", NULL);
    struct dirent *entry;
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    DIR *dir = good ? opendir(good) : NULL;
    while (dir && (entry = readdir(dir))) {
        if (!strstr(entry->d_name, ".safetensors")) continue;
        snprintf(from, sizeof from, "%.4000s/%s", good, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", folder, entry->d_name);
        if (symlink(from, to) != 0) abort();
    }
    if (dir) closedir(dir);
    free(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int exits[] = {0, 3, 1, 3, 2};
    struct hm_check_result result;
    if (size == 0) return 0;
    if (!path[0]) make_folder();
    char *text = malloc(size);
    FILE *file = fopen(path, "wb");
    if (!text || !file) abort();
    memcpy(text, data + 1, size - 1);
    if (data[0] & 1) repair(text, size - 1);
    if (fwrite(text, 1, size - 1, file) != size - 1 || fclose(file) != 0) abort();
    int code = hm_check_log(path, NULL, &result);
    if (code != result.exit_code || code != exits[result.kind] || !result.message[0]) abort();
    free(text);
    return 0;
}
