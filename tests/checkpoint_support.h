// Shared by the tests that make checkpoint folders: a temporary folder, files in it, and safetensors files of zeros.
#ifndef HM_TESTS_CHECKPOINT_SUPPORT_H
#define HM_TESTS_CHECKPOINT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64]; // of the running test

static inline const char *in_folder(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/hallmark-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline void empty_folder(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.' || strlen(e->d_name) > 2) (void)unlink(in_folder(e->d_name));
    if (d) closedir(d);
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static inline void write_text(const char *name, const char *text)
{
    (void)unlink(in_folder(name)); // it may be a link to a file of the source tree
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

// A safetensors file of `bytes` zeros under the given header.
static inline void write_tensors(const char *name, const char *header, size_t bytes)
{
    (void)unlink(in_folder(name));
    FILE *f = fopen(in_folder(name), "wb");
    uint64_t length = strlen(header);
    assert_non_null(f);
    fwrite(&length, sizeof length, 1, f);
    fputs(header, f);
    while (bytes--) fputc(0, f);
    assert_int_equal(fclose(f), 0);
}

// The file `name` of a folder of the source tree, to be seen in the test's folder too.
static inline void link_file(const char *from, const char *name)
{
    char *whole = realpath(from, NULL), target[4200];
    assert_non_null(whole);
    snprintf(target, sizeof target, "%s/%s", whole, name);
    (void)unlink(in_folder(name));
    assert_int_equal(symlink(target, in_folder(name)), 0);
    free(whole);
}

// The message must be exactly this, "DIR" standing for the test's folder.
static inline void expect_message(const char *what, const struct hm_error *err, const char *message)
{
    char expected[2048];
    size_t n = 0;
    for (const char *p = message; *p && n + sizeof folder < sizeof expected;) {
        if (strncmp(p, "DIR", 3) == 0) {
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%s", folder);
            p += 3;
        } else {
            expected[n++] = *p++;
        }
    }
    expected[n] = 0;
    if (strcmp(err->message, expected) != 0) fail_msg("%s\nexpected: %s\nfound:    %s", what, expected, err->message);
}

#endif
