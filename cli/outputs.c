// Outputs that would destroy what is read: see outputs.h.
#include "cli/outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool hm_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0) return strcmp(a, "-") != 0;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// A .npy file has a magic, a .safetensors file the length of a header (below 2^40) that begins with a brace.
static bool holds_rows(const char *path)
{
    char head[9];
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    FILE *file = fopen(path, "rbe");
    size_t size = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    if (size >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) return true;
    return size == sizeof head && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{';
}

hm_status hm_output_check(const char *out, const char *const *inputs, size_t count, const char *what, struct hm_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (hm_same_file(out, inputs[i])) return hm_fail(err, HM_USAGE, "%s: this would replace %s", out, what);
    if (!holds_rows(out)) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: this would replace a file of rows; expected another name", out);
}
