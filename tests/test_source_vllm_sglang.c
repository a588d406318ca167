// Readers of vLLM's and SGLang's JSON: samples with the text of all their events beside them, and hostile variations of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/seed.h"
#include "tests/source_dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/data/evidence/"

static const struct sample {
    const char *folder, *name;
    bool prompt;  // the prompt's tokens too
    size_t vocab; // as the caller says
} samples[] = {
    {"vllm", "good.jsonl", true, 0},       {"vllm", "flat.json", true, 0},       {"vllm", "wrong-sums.jsonl", false, 0},
    {"vllm", "lengths.jsonl", true, 0},    {"vllm", "values.jsonl", false, 32},  {"vllm", "no-outputs.json", false, 0},
    {"vllm", "no-token-ids.json", false, 0}, {"vllm", "not-an-output.json", false, 0}, {"vllm", "bad-prompt.json", false, 0},
    {"vllm", "bad-token.json", false, 0},  {"vllm", "bad-key.json", false, 0},   {"vllm", "bad-value.json", false, 0},
    {"vllm", "bad-position.json", false, 0}, {"vllm", "bad-logprobs.json", false, 0}, {"vllm", "flat-list.json", false, 0},
    {"vllm", "flat-start.json", false, 0}, {"vllm", "flat-end.json", false, 0},  {"vllm", "flat-back.json", false, 0},
    {"vllm", "flat-short.json", false, 0}, {"vllm", "cut.json", false, 0},
    {"sglang", "good.json", true, 0},      {"sglang", "forms.jsonl", true, 0},   {"sglang", "again.sse", true, 0},
    {"sglang", "only-new.sse", false, 0},  {"sglang", "wrong.jsonl", false, 0},  {"sglang", "no-object.json", false, 0},
    {"sglang", "not-a-list.json", false, 0}, {"sglang", "not-an-entry.json", false, 0},
    {"sglang", "not-a-top-entry.json", false, 0}, {"sglang", "not-an-id.json", false, 0},
    {"sglang", "ids-not-a-list.json", false, 0}, {"sglang", "not-a-number.json", false, 0}, {"sglang", "bad-input.json", false, 0},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static struct hm_source_options options_of(const struct sample *s)
{
    struct hm_source_options options = test_source_options();
    options.format = s->folder;
    options.prompt_tokens = s->prompt;
    options.vocab = s->vocab;
    return options;
}

static void samples_give_their_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        char path[256], expected[300];
        struct hm_source_options options = options_of(&samples[i]);
        snprintf(path, sizeof path, FOLDER "%s/%s", samples[i].folder, samples[i].name);
        snprintf(expected, sizeof expected, "%s.txt", path);
        test_source_compare(path, expected, &options);
    }
}

// The field that only one format has decides.
static void formats_are_found(void **state)
{
    (void)state;
    struct hm_source_options options = test_source_options();
    const char *const paths[] = {FOLDER "vllm/good.jsonl", FOLDER "vllm/flat.json", FOLDER "sglang/good.json", FOLDER "sglang/again.sse"};
    const char *const by[] = {"vllm by the fields outputs and prompt_token_ids", "vllm by the fields outputs and prompt_token_ids",
                              "sglang by the field meta_info", "sglang by the field meta_info"};
    for (size_t i = 0; i < 4; i++) {
        char *text = test_source_dump(paths[i], &options, 1);
        assert_int_equal(strncmp(text, by[i], strlen(by[i])), 0);
        free(text);
    }
}

// Samples with bytes changed, left out, doubled or cut off: events or an error, nothing else, and the same again.
static void hostile_variations_do_no_harm(void **state)
{
    (void)state;
    uint64_t seed = test_seed("hostile");
    static const char letters[] = "[]{},:\"0123456789.-eEnulNaI \\\n\xff";
    char path[] = "/tmp/test-source-json-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t round = 0, rounds = test_count(300, 3000, 60000); round < rounds; round++) {
        const struct sample *s = &samples[test_below(&seed, SAMPLES)];
        struct hm_source_options options = options_of(s);
        char from[256], *text;
        size_t size;
        snprintf(from, sizeof from, FOLDER "%s/%s", s->folder, s->name);
        assert_int_equal(hm_file_read(from, 1 << 20, &text, &size, NULL), HM_OK);
        for (size_t changes = 1 + test_below(&seed, 3); changes-- > 0 && size > 0;) {
            size_t at = test_below(&seed, size), n = 1 + test_below(&seed, 8);
            if (n > size - at) n = size - at;
            switch (test_below(&seed, 4)) {
            case 0: text[at] = letters[test_below(&seed, sizeof letters - 1)]; break;
            case 1: memmove(text + at, text + at + n, size - at - n), size -= n; break;
            case 2: memmove(text + at, text + test_below(&seed, size - n + 1), n); break;
            case 3: if (test_below(&seed, 4) == 0) size = at; break;
            }
        }
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(text, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
        char *first = test_source_dump(path, &options, 4), *second = test_source_dump(path, &options, 4);
        assert_string_equal(first, second);
        free(first);
        free(second);
        free(text);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_give_their_events),
        cmocka_unit_test(formats_are_found),
        cmocka_unit_test(hostile_variations_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
