// Fuzz target: the bytes of a safetensors file.
//
// An accepted file must keep the promises of decode/safetensors.h: tensors in order of their names, each inside the
// file and as large as its shape says, all of them together as large as the data; a refused one has a message of one
// line.
#include "decode/safetensors.h"

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

// Reads the first and the last byte, so that a range outside the mapping is a fault.
static void touch(const struct hm_tensor *t)
{
    volatile uint8_t byte;
    if (t->bytes == 0) return;
    byte = t->data[0];
    byte = t->data[t->bytes - 1];
    (void)byte;
}

static void check_tensors(const struct hm_safetensors *file, size_t size)
{
    size_t total = 0, whole;
    const uint8_t *bytes = hm_safetensors_bytes(file, &whole);
    must(whole == size);
    for (size_t i = 0; i < hm_safetensors_count(file); i++) {
        const struct hm_tensor *t = hm_safetensors_at(file, i);
        char text[HM_TENSOR_SHAPE_TEXT];
        enum hm_dtype dtype;
        must(i == 0 || strcmp(hm_safetensors_at(file, i - 1)->name, t->name) < 0);
        must(hm_safetensors_find(file, t->name) == t);
        must(t->data >= bytes + 8 && t->bytes <= (size_t)(bytes + size - t->data));
        if (hm_tensor_dtype(t, "file", &dtype, NULL) == HM_OK) {
            size_t count = hm_dtype_bytes(dtype);
            for (size_t d = 0; d < t->rank; d++) count *= t->shape[d];
            must(count == t->bytes);
        }
        hm_shape_text(t->rank, t->shape, text);
        touch(t);
        total += t->bytes;
    }
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    must(total == size - 8 - header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hm_safetensors *file;
    struct hm_error err = {0};
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size == 0 || write(fd, data, size) == (ssize_t)size) {
        if (hm_safetensors_open(path, &file, &err) == HM_OK)
            check_tensors(file, size);
        else
            must(file == NULL && err.message[0] && !strchr(err.message, '\n'));
        hm_safetensors_close(file);
    }
    close(fd);
    return 0;
}
