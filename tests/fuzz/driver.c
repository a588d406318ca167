// Replays inputs through a fuzz target without a fuzzer: `fuzz_NAME FILE...`. A fault ends the program.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "%s: cannot open\n", path);
        if (file) fclose(file);
        return 1;
    }
    long size = ftell(file);
    uint8_t *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    int rc = 1;
    rewind(file);
    if (data && fread(data, 1, (size_t)size, file) == (size_t)size) {
        LLVMFuzzerTestOneInput(data, (size_t)size);
        rc = 0;
    } else {
        fprintf(stderr, "%s: cannot read\n", path);
    }
    free(data);
    fclose(file);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;
    for (int i = 1; i < argc; i++) rc |= replay(argv[i]);
    return rc;
}
