// One temporary file for all tests of a program: setup and teardown of a CMocka group.
#ifndef HM_TESTS_TEMPORARY_H
#define HM_TESTS_TEMPORARY_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static int make_path(void **state)
{
    (void)state;
    strcpy(path, "/tmp/hallmark-test-XXXXXX");
    int file = mkstemp(path);
    return file < 0 || close(file);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

#endif
