// Helpers of the checker's tests: logs in memory, changed and chained again, written to a folder and checked.
#ifndef HM_TESTS_TEST_CHECK_SUPPORT_H
#define HM_TESTS_TEST_CHECK_SUPPORT_H

#include "certify/check/check.h"

#include <cjson/cJSON.h>
#include <stddef.h>

struct test_log {
    char *name;   // "greedy"
    size_t count; // lines
    cJSON **line; // without their chain
    char **body;  // each printed, without its closing brace
};

extern const char *const test_logs[]; // names of the golden logs, then NULL
extern const int test_log_count;

struct test_log *test_log_read(const char *name); // from tests/data/logs/good; fails the test when it cannot
void test_log_free(struct test_log *log);
void test_log_refresh(struct test_log *log, size_t line); // after changing line[line]
// Writes the log with a fresh chain; skip: a line to leave out, or -1.
void test_log_write(const struct test_log *log, const char *path, long skip);
void test_write_long(const char *path, size_t size); // a line of that many bytes that is an object
void test_write(const char *path, const void *bytes, size_t size);
char *test_read(const char *path, size_t *size);
const char *test_folder(void); // made once
void test_copy_rows(void);     // the golden shards into test_folder()
void test_drop_rows(void);
void test_drop_folder(void);
const char *test_path(const char *name); // in test_folder(); a static buffer
const char *test_kind(enum hm_check_kind kind);

#endif
