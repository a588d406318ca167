// Prints the ids of a text, one a line: `tokenize FOLDER [-p] < text`. With -p special tokens in the text are parsed.
// A helper of tools/check_qwen_vocabulary; the time goes to the standard error.
#include "decode/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static char *read_all(FILE *in, size_t *size)
{
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    *size = 0;
    for (size_t n; text && (n = fread(text + *size, 1, capacity - *size, in)) > 0;) {
        *size += n;
        if (*size < capacity) continue;
        char *grown = realloc(text, capacity *= 2);
        if (!grown) free(text);
        text = grown;
    }
    return text;
}

int main(int argc, char **argv)
{
    struct hm_tokenizer *tokenizer = NULL;
    struct hm_error err;
    int32_t *ids = NULL;
    size_t size, count;
    char *text = read_all(stdin, &size);
    if (argc < 2 || !text) return 2;
    enum hm_special specials = argc > 2 && strcmp(argv[2], "-p") == 0 ? HM_SPECIAL_PARSE : HM_SPECIAL_PLAIN;
    double start = seconds();
    hm_status rc = hm_tokenizer_open(argv[1], &tokenizer, &err);
    double opened = seconds();
    if (!rc) rc = hm_tokenizer_encode(tokenizer, text, size, specials, &ids, &count, &err);
    double encoded = seconds();
    if (rc) fprintf(stderr, "tokenize: %s\n", err.message);
    else fprintf(stderr, "open %.3f s, encode %.3f s, %zu bytes, %zu ids\n", opened - start, encoded - opened, size, count);
    for (size_t i = 0; !rc && i < count; i++) printf("%d\n", (int)ids[i]);
    free(ids);
    free(text);
    hm_tokenizer_close(tokenizer);
    return rc ? 1 : 0;
}
