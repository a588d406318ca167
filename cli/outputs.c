// Outputs that would destroy what is read: see outputs.h.
#include "cli/outputs.h"

#include "decode/row_file.h"

#include <string.h>
#include <sys/stat.h>

bool hm_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0) return strcmp(a, "-") != 0;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

hm_status hm_output_check(const char *out, const char *const *inputs, size_t count, const char *what, struct hm_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (hm_same_file(out, inputs[i])) return hm_fail(err, HM_USAGE, "%s: this would replace %s", out, what);
    if (!hm_row_file_begins(out)) return HM_OK;
    return hm_fail(err, HM_USAGE, "%s: this would replace a file of rows; expected another name", out);
}
