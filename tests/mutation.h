// Shared by the tests of damaged checkpoints: random changes of JSON texts, and files put together from pieces.
#ifndef HM_TESTS_MUTATION_H
#define HM_TESTS_MUTATION_H

#include "tests/model_support.h"

#include "tests/checkpoint_support.h"

enum { SIZE_MOST = 1 << 16 };

// Words that mean something to the readers.
static const char *const words[] = {
    "0",
    "1",
    "-1",
    "2",
    "16",
    "36",
    "97",
    "4294967296",
    "9007199254740993",
    "1e308",
    "1e-308",
    "0.5",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "[1,2]",
    "\"F16\"",
    "\"BF16\"",
    "\"I64\"",
    "\"F4\"",
    "[0,0]",
    "\"llama3\"",
    "\"yarn\"",
    "{\"type\":\"llama3\"}",
    "\"../x\"",
    "\"Qwen2ForCausalLM\"",
    "\"LlamaForCausalLM\"",
    "\"silu\"",
    "[[[[[[[[",
    "}",
    ",",
    "\\u0000",
    "\xff",
};

// One to four changes: a byte set, bytes removed, a value replaced by a word, a piece repeated.
static inline size_t mutate(char *text, size_t size, uint64_t *seed)
{
    for (uint32_t changes = 1 + draw(seed, 4); changes && size > 1; changes--) {
        size_t at = draw(seed, (uint32_t)size), end;
        const char *word = words[draw(seed, sizeof words / sizeof *words)];
        switch (draw(seed, 4)) {
        case 0: text[at] = (char)draw(seed, 256); continue;
        case 1:
            word = "";
            end = at + 1 + draw(seed, 8);
            break;
        case 2:
            while (at < size && text[at] != ':') at++;
            at += at < size;
            for (end = at; end < size && !strchr(",}\n", text[end]);) end++;
            break;
        default: end = at; break;
        }
        if (end > size) end = size;
        size_t n = strlen(word);
        if (size - (end - at) + n >= SIZE_MOST) continue;
        memmove(text + at + n, text + end, size - end);
        memcpy(text + at, word, n);
        size = size - (end - at) + n;
    }
    return size;
}

static inline void write_bytes(const char *name, const void *head, size_t head_size, const void *text, size_t size,
                        const void *tail, size_t tail_size)
{
    (void)unlink(in_folder(name));
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    fwrite(head, 1, head_size, f);
    fwrite(text, 1, size, f);
    fwrite(tail, 1, tail_size, f);
    assert_int_equal(fclose(f), 0);
}

#endif
