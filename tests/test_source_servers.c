// Readers of servers' answers (chat, completions, llama.cpp): samples with the text of all their events beside them,
// what real servers wrote, and hostile variations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/seed.h"
#include "tests/source_dump.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/data/evidence/"

static const char *const formats[] = {"openai-chat", "openai-completions", "llama.cpp-server"};
enum { FORMATS = sizeof formats / sizeof formats[0], SAMPLES_MOST = 200 };

static struct hm_source_options options_of(const char *format)
{
    struct hm_source_options options = test_source_options();
    options.prompt_tokens = true;
    options.format = format;
    return options;
}

// The samples of a format, in fresh memory, by name; every file that has a text beside it or should have one.
static size_t list_samples(const char *format, char *out[SAMPLES_MOST])
{
    char folder[256];
    struct dirent *entry;
    size_t count = 0;
    snprintf(folder, sizeof folder, FOLDER "%s", format);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || (n > 4 && strcmp(entry->d_name + n - 4, ".txt") == 0)) continue;
        assert_true(count < SAMPLES_MOST);
        assert_true(asprintf(&out[count++], "%s/%s", folder, entry->d_name) > 0);
    }
    closedir(dir);
    return count;
}

static bool begins_with(const char *path, const char *prefix)
{
    return strncmp(strrchr(path, '/') + 1, prefix, strlen(prefix)) == 0;
}

static void samples_give_their_events(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        char *path[SAMPLES_MOST], expected[300];
        size_t count = list_samples(formats[f], path);
        assert_true(count >= 6);
        for (size_t i = 0; i < count; i++) {
            struct hm_source_options options = options_of(begins_with(path[i], "unknown-") ? NULL : formats[f]);
            snprintf(expected, sizeof expected, "%s.txt", path[i]);
            test_source_compare(path[i], expected, &options);
            free(path[i]);
        }
    }
}

// Every good sample says what it is; one that does not is refused with the file's name.
static void formats_are_found(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        char *path[SAMPLES_MOST];
        size_t count = list_samples(formats[f], path);
        for (size_t i = 0; i < count; i++) {
            struct hm_source_options options = options_of(NULL);
            char *text = test_source_dump(path[i], &options, 1);
            if (begins_with(path[i], "unknown-")) {
                char error[300];
                snprintf(error, sizeof error, "error %s: ", strrchr(path[i], '/') + 1);
                assert_int_equal(strncmp(text, error, strlen(error)), 0);
            } else if (!begins_with(path[i], "bad-")) {
                assert_int_equal(strncmp(text, formats[f], strlen(formats[f])), 0);
                assert_int_equal(strncmp(text + strlen(formats[f]), " by the field ", 14), 0);
            }
            free(text);
            free(path[i]);
        }
    }
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
    return count;
}

// Answers that servers sent: what was asked for is all there, and what cannot be there is told.
static void answers_of_real_servers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t sequences, tokens, without, findings;
    } answers[] = {
        {"plain-completion.jsonl", 2, 12, 4, 1},
        {"plain-completion.sse", 2, 12, 4, 1},
        {"plain-completion-post.jsonl", 2, 12, 4, 1},
        {"plain-completion-warm.jsonl", 2, 12, 4, 1},
        {"plain-completion-warm-post.jsonl", 2, 12, 4, 1},
        {"plain-chat.jsonl", 2, 8, 0, 2},
        {"plain-chat.sse", 2, 8, 0, 1},
        {"plain-completions.jsonl", 2, 8, 0, 2},
        {"plain-completions.sse", 2, 8, 0, 1},
        {"draft-completion.jsonl", 2, 12, 11, 4},
        {"draft-completion.sse", 2, 12, 11, 4},
        {"draft-completion-post.jsonl", 2, 12, 11, 4},
        {"draft-chat.jsonl", 2, 8, 7, 5},
        {"ngram-completion.jsonl", 2, 12, 4, 1},
        {"python-chat.jsonl", 2, 12, 0, 0},
        {"python-completions.jsonl", 2, 12, 0, 0},
    };
    struct hm_source_options options = options_of(NULL);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, FOLDER "engines/llama.cpp/%s", answers[i].name);
        char *text = test_source_dump(path, &options, 24);
        assert_int_equal(count_of(text, "\nsequence "), answers[i].sequences);
        assert_int_equal(count_of(text, "\ntoken "), answers[i].tokens);
        assert_int_equal(count_of(text, " without row: measured"), answers[i].without);
        assert_int_equal(count_of(text, "\nfinding "), answers[i].findings);
        assert_int_equal(count_of(text, "\nerror "), 0);
        free(text);
    }
}

// What the caller tells: ids beyond the vocabulary, values after the filters.
static void options_reach_the_rows(void **state)
{
    (void)state;
    struct hm_source_options options = options_of(NULL);
    options.vocab = 20;
    test_source_compare(FOLDER "llama.cpp-server/stream.sse", FOLDER "llama.cpp-server/stream.sse.vocab-20.txt",
                        &options);
    options.vocab = 0;
    options.processed = true;
    options.prompt_tokens = false;
    test_source_compare(FOLDER "openai-chat/findings.jsonl", FOLDER "openai-chat/findings.jsonl.processed.txt",
                        &options);
    test_source_compare(FOLDER "openai-chat/vllm.jsonl", FOLDER "openai-chat/vllm.jsonl.processed.txt", &options);
    options.format = "openai";
    struct hm_source_file *source;
    struct hm_error err;
    assert_int_equal(hm_source_open(FOLDER "openai-chat/good.json", &options, &source, &err), HM_USAGE);
    assert_string_equal(err.message,
                        "--format: expected one of openai-chat, openai-completions, vllm, llama.cpp-server, sglang, "
                        "llama.cpp-kld, rows, hallmark, found \"openai\"");
    assert_int_equal(hm_source_open(FOLDER "no such file", &options, &source, &err), HM_IO);
    assert_null(source);
}

// ---- Hostile files ----

static char path[] = "/tmp/test-source-servers-XXXXXX";

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static void save(const char *text, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static size_t vary(char *text, size_t size, uint64_t *seed)
{
    static const char letters[] = "[]{},:\"0123456789.-eEnulNaI \\\n\xff";
    for (size_t changes = 1 + test_below(seed, 3); changes-- > 0 && size > 0;) {
        size_t at = test_below(seed, size), n = 1 + test_below(seed, 8);
        if (n > size - at) n = size - at;
        switch (test_below(seed, 4)) {
        case 0: text[at] = letters[test_below(seed, sizeof letters - 1)]; break;
        case 1: memmove(text + at, text + at + n, size - at - n), size -= n; break;
        case 2: memmove(text + at, text + test_below(seed, size - n + 1), n); break;
        default:
            if (test_below(seed, 4) == 0) size = at;
        }
    }
    return size;
}

// Events or an error, nothing else, and the same again.
static void hostile_variations_do_no_harm(void **state)
{
    (void)state;
    uint64_t seed = test_seed("hostile");
    char *names[FORMATS][SAMPLES_MOST], *text;
    size_t counts[FORMATS], size;
    for (size_t f = 0; f < FORMATS; f++) counts[f] = list_samples(formats[f], names[f]);
    for (size_t round = 0, rounds = test_count(300, 4000, 100000); round < rounds; round++) {
        size_t f = test_below(&seed, FORMATS);
        struct hm_source_options options = options_of(test_below(&seed, 4) ? formats[f] : NULL);
        options.printing = test_below(&seed, 2) ? HM_PRINTING_ROUNDED : HM_PRINTING_ROUND_TRIP;
        assert_int_equal(hm_file_read(names[f][test_below(&seed, counts[f])], 1 << 20, &text, &size, NULL), HM_OK);
        size = vary(text, size, &seed);
        save(text, size);
        char *first = test_source_dump(path, &options, 4), *second = test_source_dump(path, &options, 4);
        assert_string_equal(first, second);
        free(first);
        free(second);
        free(text);
    }
    for (size_t f = 0; f < FORMATS; f++)
        for (size_t i = 0; i < counts[f]; i++) free(names[f][i]);
}

// A stream may leave only so many sequences unfinished.
static void unfinished_sequences_are_bounded(void **state)
{
    (void)state;
    struct hm_source_options options = options_of("openai-chat");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 1025; i++) fprintf(f, "data: {\"id\":\"%d\",\"choices\":[{\"delta\":{}}]}\n", i);
    assert_int_equal(fclose(f), 0);
    char *text = test_source_dump(path, &options, 1);
    assert_int_equal(count_of(text, "\nsequence "), 1024);
    assert_non_null(strstr(text, ": line 1025: expected at most 1024 unfinished sequences\n"));
    free(text);
}

// An error stays.
static void an_error_is_given_again(void **state)
{
    (void)state;
    struct hm_source_options options = options_of("openai-chat");
    static const char bad[] = "{\"choices\":[]}\n{";
    struct hm_source_file *source;
    struct hm_event event;
    struct hm_error err;
    save(bad, sizeof bad - 1);
    assert_int_equal(hm_source_open(path, &options, &source, &err), HM_OK);
    for (int i = 0; i < 3; i++) {
        err.message[0] = '\0';
        assert_int_equal(hm_source_next(source, &event, &err), HM_FORMAT);
        assert_non_null(strstr(err.message, ": line 2: byte 1: expected a key, found the end"));
        assert_int_equal(hm_source_next(source, &event, NULL), HM_FORMAT);
    }
    hm_source_close(source);
    hm_source_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_give_their_events),        cmocka_unit_test(formats_are_found),
        cmocka_unit_test(answers_of_real_servers_are_read), cmocka_unit_test(options_reach_the_rows),
        cmocka_unit_test(hostile_variations_do_no_harm),    cmocka_unit_test(unfinished_sequences_are_bounded),
        cmocka_unit_test(an_error_is_given_again),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
