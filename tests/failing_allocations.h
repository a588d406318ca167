// Shared by the tests of short memory: the n-th allocation from now on fails. For programs linked with --wrap for the
// allocation functions.
#ifndef HM_TESTS_FAILING_ALLOCATIONS_H
#define HM_TESTS_FAILING_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

static long countdown = -1; // allocations left before one fails; negative: none fails

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

#endif
