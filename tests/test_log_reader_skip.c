// A reader that passes over records gives the others as one that reads them all, holds them to the same order and ends
// alike.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "certify/log_reader.h"
#include "tests/seed.h"
#include "tests/temporary.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One record as text: its kind, line number and bytes, and what was read from them.
static char *describe(const struct hm_log_reader *reader, const struct hm_record *r)
{
    char *text;
    size_t size;
    const char *line = hm_log_reader_line(reader, &size);
    const struct hm_record_step *s = r->step;
    bool none = r->kind == HM_RECORD_NONE; // the last line and its chain may have been passed over
    if (none) size = 0;
    assert_true(asprintf(&text, "%d %zu %.*s %lld %lld %lld %s", (int)r->kind, r->line, (int)size, line,
                         s ? (long long)s->round : -2, s ? (long long)s->node : -2,
                         r->round ? (long long)r->round->nodes : -2, none ? "" : hm_log_reader_chain(reader)) > 0);
    return text;
}

struct record {
    char *text;
    enum hm_record_kind kind;
    int64_t sequence, t; // of a step, node or round: the last token before or at it; of a row: -1 and its index
};

static size_t read_all(const char *log, struct record *records, size_t most, enum hm_log_state *state)
{
    struct hm_log_reader *reader;
    struct hm_record r = {.kind = HM_RECORD_SEQUENCE};
    size_t n = 0;
    int64_t sequence = -1, t = -1;
    assert_int_equal(hm_log_reader_open(log, &reader, NULL), HM_OK);
    for (; r.kind != HM_RECORD_NONE; n++) {
        assert_true(n < most);
        assert_int_equal(hm_log_reader_next(reader, &r, NULL), HM_OK);
        if (r.kind == HM_RECORD_SEQUENCE) sequence = r.sequence->sequence, t = -1;
        if (r.kind == HM_RECORD_STEP) t = r.step->t;
        if (r.kind == HM_RECORD_ROW) t = r.step->index;
        records[n] =
            (struct record){describe(reader, &r), r.kind, sequence, r.kind == HM_RECORD_ROUND ? r.round->t : t};
    }
    *state = hm_log_reader_state(reader);
    hm_log_reader_close(reader);
    return n;
}

// Reads with a target; every record that comes must be the next of those read before, none may lack that must come.
static void compare(const char *log, const struct record *records, size_t count, enum hm_log_state state,
                    int64_t sequence, int64_t t, size_t *passed)
{
    struct hm_log_reader *reader;
    struct hm_record r = {.kind = HM_RECORD_SEQUENCE};
    size_t at = 0;
    int64_t round = -1;
    assert_int_equal(hm_log_reader_open(log, &reader, NULL), HM_OK);
    hm_log_reader_pass_until(reader, sequence, t);
    while (r.kind != HM_RECORD_NONE) {
        struct hm_error err = {0};
        if (hm_log_reader_next(reader, &r, &err))
            fail_msg("%s, until %lld:%lld: %s", log, (long long)sequence, (long long)t, err.message);
        char *text = describe(reader, &r);
        for (; at < count && strcmp(records[at].text, text) != 0; at++, ++*passed) {
            const struct record *missed = &records[at];
            bool before = missed->sequence < sequence || (missed->sequence == sequence && missed->t < t);
            if (!before || missed->kind == HM_RECORD_SEQUENCE || missed->kind == HM_RECORD_END)
                fail_msg("%s, until %lld:%lld: expected %.200s\nfound %.200s", log, (long long)sequence, (long long)t,
                         missed->text, text);
        }
        assert_true(at < count);
        at++;
        if (r.kind == HM_RECORD_SEQUENCE) round = -1;
        if (r.kind == HM_RECORD_ROUND) round = r.round->round;
        if (r.kind == HM_RECORD_STEP) assert_int_equal(r.step->round, round); // its round came before it
        free(text);
    }
    assert_int_equal(at, count);
    assert_int_equal(hm_log_reader_state(reader), state);
    hm_log_reader_close(reader);
}

static size_t check_log(const char *log)
{
    enum { MOST = 4096 };
    static struct record records[MOST];
    enum hm_log_state state;
    size_t count = read_all(log, records, MOST, &state), passed = 0;
    for (size_t i = 0; i < count; i++) {
        compare(log, records, count, state, records[i].sequence, records[i].t, &passed);
        compare(log, records, count, state, records[i].sequence, records[i].t + 1, &passed);
    }
    compare(log, records, count, state, 1000, 0, &passed);
    for (size_t i = 0; i < count; i++) free(records[i].text);
    return passed;
}

static void the_same_records(void **state)
{
    (void)state;
    glob_t logs;
    assert_int_equal(glob("tests/data/logs/good/*.jsonl", 0, NULL, &logs), 0);
    size_t passed = 0;
    for (size_t i = 0; i < logs.gl_pathc; i++) passed += check_log(logs.gl_pathv[i]);
    printf("%zu logs, %zu records passed over\n", logs.gl_pathc, passed);
    assert_true(passed > 10000);
    globfree(&logs);
}

// The same of logs that are cut anywhere.
static void the_same_of_cut_logs(void **state)
{
    (void)state;
    uint64_t random = test_seed("cut logs");
    char line[1 << 16];
    for (size_t turn = 0; turn < test_count(5, 40, 400); turn++) {
        FILE *from =
            fopen(turn % 2 ? "tests/data/logs/good/divergences.jsonl" : "tests/data/logs/good/audit.jsonl", "rb");
        FILE *to = fopen(path, "wb");
        assert_true(from && to);
        size_t whole = 1 + test_below(&random, 7);
        for (size_t i = 0; i < whole && fgets(line, sizeof line, from); i++) fputs(line, to);
        if (fgets(line, sizeof line, from)) fwrite(line, 1, test_below(&random, strlen(line) + 1), to);
        fclose(from);
        assert_int_equal(fclose(to), 0);
        check_log(path);
    }
}

// Writes a log without its line `dropped`, and its line `twice` two times; 0: no line. Its end record counts what is
// there, so it is left out. Returns how many lines there were without it.
static int write_changed(const char *log, int dropped, int twice)
{
    static char line[1 << 20];
    FILE *from = fopen(log, "rb"), *to = fopen(path, "wb");
    int n = 0;
    assert_true(from && to);
    while (fgets(line, sizeof line, from) && strncmp(line, "{\"kind\":\"end\"", 13) != 0) {
        n++;
        if (n != dropped) fputs(line, to);
        if (n == twice) fputs(line, to);
    }
    fclose(from);
    assert_int_equal(fclose(to), 0);
    return n;
}

static bool is_readable(bool passing)
{
    struct hm_log_reader *reader;
    struct hm_record r = {.kind = HM_RECORD_SEQUENCE};
    hm_status rc = hm_log_reader_open(path, &reader, NULL);
    if (!rc && passing) hm_log_reader_pass_until(reader, 1000, 0);
    while (!rc && r.kind != HM_RECORD_NONE) rc = hm_log_reader_next(reader, &r, NULL);
    hm_log_reader_close(reader);
    return rc == HM_OK;
}

// Records out of order are found even if they are passed over.
static void order_is_kept(void **state)
{
    (void)state;
    glob_t logs;
    assert_int_equal(glob("tests/data/logs/good/*.jsonl", 0, NULL, &logs), 0);
    for (size_t i = 0; i < logs.gl_pathc; i++)
        for (int n = 1, lines = write_changed(logs.gl_pathv[i], 0, 0); n <= 2 * lines; n++) {
            write_changed(logs.gl_pathv[i], n <= lines ? n : 0, n <= lines ? 0 : n - lines);
            if (is_readable(false) != is_readable(true))
                fail_msg("%s, change %d of %d lines", logs.gl_pathv[i], n, lines);
        }
    globfree(&logs);
}

// So is a step after the last.
static void finish_is_seen(void **state)
{
    (void)state;
    static const char log[] = "tests/data/logs/good/eos.jsonl";
    static char line[1 << 16];
    for (int after = 0; after < 2; after++) {
        FILE *from = fopen(log, "rb"), *to = fopen(path, "wb");
        assert_true(from && to);
        while (fgets(line, sizeof line, from) && !strstr(line, "\"finish\":\"")) fputs(line, to);
        fputs(line, to);
        const char *t = strstr(line, "\"t\":");
        assert_non_null(t);
        if (after)
            fprintf(to, "%.*s\"t\":%d%s", (int)(t - line), line, atoi(t + 4) + 1, t + 4 + strspn(t + 4, "0123456789"));
        fclose(from);
        assert_int_equal(fclose(to), 0);
        assert_int_equal(is_readable(false), !after);
        assert_int_equal(is_readable(true), !after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_records), cmocka_unit_test(the_same_of_cut_logs),
                                       cmocka_unit_test(order_is_kept), cmocka_unit_test(finish_is_seen)};
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
