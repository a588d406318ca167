// What the tests of reports share: a report on logs, and what a writer makes of it.
#ifndef HM_TESTS_REPORT_SUPPORT_H
#define HM_TESTS_REPORT_SUPPORT_H

#include "reports/figures.h"
#include "reports/report.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Sanitizers keep what was freed, so that memory tells nothing there.
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static char scratch[] = "/tmp/hallmark-report-XXXXXX";

static inline int make_scratch(void **state)
{
    (void)state;
    int fd = mkstemp(scratch);
    return fd < 0 ? -1 : close(fd);
}

static inline int remove_scratch(void **state)
{
    (void)state;
    return unlink(scratch);
}

static inline struct hm_report *report_on(const char *first, const char *second)
{
    struct hm_report *report;
    struct hm_error err;
    if (hm_report_open(&report, &err) || hm_report_add(report, first, &err) ||
        (second && hm_report_add(report, second, &err)))
        fail_msg("%s", err.message);
    return report;
}

typedef hm_status writer(const struct hm_report *, const char *, struct hm_error *);

// What a writer makes of the report; the caller frees it.
static inline char *written(writer *write, const struct hm_report *report)
{
    char *text = NULL;
    size_t size;
    struct hm_error err;
    if (write(report, scratch, &err) || hm_file_read(scratch, 64 << 20, &text, &size, &err))
        fail_msg("%s", err.message);
    return text;
}

#endif
