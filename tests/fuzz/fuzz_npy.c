// Fuzz target: the bytes of a file of rows, .npy or .safetensors.
//
// An accepted file must keep the promises of decode/row_file.h: each row can be read, the first and the last among them,
// and lies in the file; a refused one has a message of one line.
#include "decode/row_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
    if (!promise) abort();
}

static void check_rows(struct hm_row_file *file, size_t size)
{
    struct hm_row_file_info info = hm_row_file_info(file);
    char hex[HM_SHA256_HEX];
    must(info.vocab >= 2 && info.rows <= size / 2 / info.vocab);
    float *row = malloc((info.rows ? info.vocab : 1) * sizeof *row); // a row is in the file, so this is not large
    must(row != NULL);
    for (size_t i = 0; i < info.rows; i += info.rows > 16 ? info.rows / 16 : 1) hm_row_file_read(file, i, row);
    if (info.rows) hm_row_file_read(file, info.rows - 1, row);
    must(hm_row_file_hash(file, hex, NULL) == HM_OK);
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hm_row_file *file;
    struct hm_error err = {0};
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size == 0 || write(fd, data, size) == (ssize_t)size) {
        if (hm_row_file_open(path, NULL, &file, &err) == HM_OK) check_rows(file, size);
        else must(file == NULL && err.message[0] && !strchr(err.message, '\n'));
        hm_row_file_close(file);
    }
    close(fd);
    return 0;
}
