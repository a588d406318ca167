// Rows of logits with the tokens, sequences and prompts beside them: what the source gives, and what it refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evidence/source.h"
#include "tests/source_dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Four rows of three logits; row i has its largest at i % 3.
enum { ROWS = 4, VOCAB = 3 };

struct part {
    const char *name, *type; // type: "I64", "I32", or another that is to be refused
    size_t count;
    int64_t value[8];
};

static char path[] = "/tmp/test-source-rows-tokens-XXXXXX";

static void put_number(uint8_t *to, const char *type, int64_t value)
{
    int32_t narrow = (int32_t)value;
    if (strcmp(type, "I32") == 0) memcpy(to, &narrow, 4);
    else memcpy(to, &value, 8);
}

// Writes the rows and the parts up to the first without a name.
static void write_file(const struct part *part)
{
    char header[1024];
    uint8_t data[1024];
    float logits[ROWS * VOCAB] = {0};
    for (size_t i = 0; i < ROWS; i++) logits[i * VOCAB + i % 3] = 1;
    size_t bytes = sizeof logits;
    memcpy(data, logits, bytes);
    int n = snprintf(header, sizeof header, "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]}", ROWS,
                     VOCAB, bytes);
    for (; part->name; part++) {
        size_t item = strcmp(part->type, "I32") == 0 || strcmp(part->type, "F32") == 0 ? 4 : 8, end = bytes + item * part->count;
        n += snprintf(header + n, sizeof header - (size_t)n,
                      ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}", part->name, part->type,
                      part->count, bytes, end);
        for (size_t i = 0; i < part->count; i++) put_number(data + bytes + i * item, part->type, part->value[i]);
        bytes = end;
    }
    n += snprintf(header + n, sizeof header - (size_t)n, "}");
    uint64_t length = (uint64_t)n;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(&length, 1, 8, f), 8);
    assert_int_equal(fwrite(header, 1, length, f), length);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

// All events in a line: "[prompt]" for a sequence, "t:token" for a token; '*' when that token is its row's emitted one.
static void tell(char *text, size_t size)
{
    struct hm_source_options options = test_source_options();
    struct hm_source_file *source;
    struct hm_event event = {.kind = HM_EVENT_FINDING};
    struct hm_error err;
    size_t n = 0;
    if (hm_source_open(path, &options, &source, &err)) {
        snprintf(text, size, "%s", err.message);
        return;
    }
    text[0] = 0;
    while (hm_source_next(source, &event, NULL) == HM_OK && event.kind != HM_EVENT_END && n < size) {
        if (event.kind == HM_EVENT_SEQUENCE) {
            n += (size_t)snprintf(text + n, size - n, "%u[", event.sequence->number);
            for (size_t i = 0; i < event.sequence->prompt_length && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, " %d", event.sequence->prompt[i]);
            n += (size_t)snprintf(text + n, size - n, " ] ");
        } else if (event.kind == HM_EVENT_TOKEN) {
            const struct hm_source_token *t = event.token;
            bool named = t->token >= 0 && t->row.emitted == (size_t)t->token;
            n += (size_t)snprintf(text + n, size - n, "%u:%u:%d%s ", t->sequence, t->t, t->token, named ? "*" : "");
        }
    }
    hm_source_close(source);
}

static void tokens_and_sequences_are_told(void **state)
{
    (void)state;
    static const struct {
        struct part part[5];
        const char *expected;
    } files[] = {
        {{{0}}, "0[ ] 0:0:-1 0:1:-1 0:2:-1 0:3:-1 "},
        {{{"tokens", "I64", 4, {0, 1, 2, 0}}}, "0[ ] 0:0:0* 0:1:1* 0:2:2* 0:3:0* "},
        {{{"tokens", "I32", 4, {2, 1, 0, 0}}, {"first", "I32", 2, {0, 3}}}, "0[ ] 0:0:2* 0:1:1* 0:2:0* 1[ ] 1:0:0* "},
        {{{"tokens", "I64", 4, {0, 0, 0, 0}}, {"prompt", "I64", 2, {1, 2}}}, "0[ 1 2 ] 0:0:0* 0:1:0* 0:2:0* 0:3:0* "},
        {{{"tokens", "I64", 4, {0, 0, 0, 0}}, {"first", "I64", 3, {0, 1, 2}}, {"prompt", "I32", 3, {1, 2, 0}},
          {"prompt_first", "I64", 3, {0, 2, 2}}}, "0[ 1 2 ] 0:0:0* 1[ ] 1:0:0* 2[ 0 ] 2:0:0* 2:1:0* "},
        {{{"first", "I64", 2, {0, 9}}, {"prompt", "F32", 1, {0}}}, "0[ ] 0:0:-1 0:1:-1 0:2:-1 0:3:-1 "}, // only beside tokens
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[1200];
        write_file(files[i].part);
        tell(text, sizeof text);
        assert_string_equal(text, files[i].expected);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct part part[5];
        const char *expected;
    } files[] = {
        {{{"tokens", "F32", 4, {0}}}, "tensor \"tokens\": expected I64 or I32 in one dimension, found F32 [4]"},
        {{{"tokens", "I64", 3, {0}}}, "tensor \"tokens\": expected 4, one for each row, found 3"},
        {{{"tokens", "I64", 4, {0, 1, 3, 0}}}, "tensor \"tokens\": [2]: expected an id below 3, found 3"},
        {{{"tokens", "I64", 4, {0, -1, 0, 0}}}, "tensor \"tokens\": [1]: expected an id below 3, found -1"},
        {{{"tokens", "I64", 4, {0}}, {"first", "I64", 2, {1, 2}}}, "tensor \"first\": [0]: expected 0 to 0, found 1"},
        {{{"tokens", "I64", 4, {0}}, {"first", "I64", 2, {0, 0}}}, "tensor \"first\": [1]: expected 1 to 3, found 0"},
        {{{"tokens", "I64", 4, {0}}, {"first", "I64", 2, {0, 4}}}, "tensor \"first\": [1]: expected 1 to 3, found 4"},
        {{{"tokens", "I64", 4, {0}}, {"first", "I64", 2, {0, INT64_MIN}}},
         "tensor \"first\": [1]: expected 1 to 3, found -9223372036854775808"},
        {{{"tokens", "I64", 4, {0}}, {"first", "I64", 0, {0}}}, "tensor \"first\": expected at least one sequence, found none"},
        {{{"tokens", "I64", 4, {0}}, {"prompt", "I64", 1, {3}}}, "tensor \"prompt\": [0]: expected an id below 3, found 3"},
        {{{"tokens", "I64", 4, {0}}, {"prompt", "I64", 1, {0}}, {"prompt_first", "I64", 2, {0, 1}}},
         "expected as many prompts as sequences (1; tensors \"first\" and \"prompt_first\"), found 2"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[1200], expected[512];
        write_file(files[i].part);
        tell(text, sizeof text);
        snprintf(expected, sizeof expected, "%s: %s", path, files[i].expected);
        assert_string_equal(text, expected);
    }
}

static int make_file(void **state)
{
    (void)state;
    int f = mkstemp(path);
    return f < 0 ? -1 : close(f);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_sequences_are_told),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("source_rows_tokens", tests, make_file, remove_file);
}
