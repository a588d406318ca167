// The checker as a program of its own: hallmark-check [--allow-truncated] [--allow-absent-rows] LOG.
#include "simple.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    bool truncated = false, absent = false;
    struct hm_simple_result result;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        truncated = truncated || strcmp(argv[i], "--allow-truncated") == 0;
        absent = absent || strcmp(argv[i], "--allow-absent-rows") == 0;
    }
    if (i + 1 != argc) fputs("usage: hallmark-check [--allow-truncated] [--allow-absent-rows] LOG\n", stderr);
    if (i + 1 != argc) return 2;
    hm_check_simple(argv[i], truncated, absent, &result);
    printf("hallmark: %s\n", result.message);
    return result.exit_code;
}
