// Runs of the stamper as a whole: the chain, the same bytes for any number of threads, a bounded queue, counts, and what
// is left of a log when something goes wrong.
#include "base/file.h"
#include "base/sha256.h"
#include "tests/test_stamp_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void the_chain_holds(void **unused)
{
    (void)unused;
    char previous[HM_SHA256_HEX] = "";
    log_run(&decode_plain, &(struct hm_stamp_options){.path = log_path, .threads = 2}, NULL);
    struct log_text text = log_read(log_path);
    for (size_t i = 0; i < text.lines; i++) {
        char *line = text.start[i], hex[HM_SHA256_HEX];
        uint8_t digest[HM_SHA256_BYTES];
        size_t body = strlen(line) - strlen(",\"chain\":\"\"}") - 64;
        struct hm_sha256 *hash;
        assert_int_equal(hm_sha256_open(&hash, NULL), HM_OK);
        assert_int_equal(hm_sha256_add(hash, previous, strlen(previous), NULL), HM_OK);
        assert_int_equal(hm_sha256_add(hash, line, body, NULL), HM_OK);
        assert_int_equal(hm_sha256_finish(hash, digest, NULL), HM_OK);
        hm_sha256_close(hash);
        hm_sha256_hex(digest, hex);
        assert_memory_equal(line + body, ",\"chain\":\"", 10);
        assert_memory_equal(line + body + 10, hex, 64);
        assert_string_equal(line + body + 74, "\"}");
        memcpy(previous, hex, sizeof previous);
    }
    log_free(&text);
}

// A line without its `run` and `chain`, which always stand last.
static void strip(char *line)
{
    char *run_at = strstr(line, ",\"run\":{"), *chain_at = strstr(line, ",\"chain\":\"");
    if (run_at) *run_at = 0;
    else if (chain_at) *chain_at = 0;
}

static void check_same_shards(const char *a, const char *b, const char *side, int shards)
{
    for (int i = 0; i < shards; i++) {
        char name[2][512];
        struct hm_map map[2];
        snprintf(name[0], sizeof name[0], "%s.%s-%05d.safetensors", a, side, i);
        snprintf(name[1], sizeof name[1], "%s.%s-%05d.safetensors", b, side, i);
        for (int j = 0; j < 2; j++) assert_int_equal(hm_map_open(name[j], &map[j], NULL), HM_OK);
        assert_int_equal(map[0].size, map[1].size);
        assert_memory_equal(map[0].data, map[1].data, map[0].size);
        for (int j = 0; j < 2; j++) hm_map_close(&map[j]);
    }
}

static void threads_do_not_change_a_byte(void **unused)
{
    (void)unused;
    char command[256], copy[128];
    struct hm_stamp_options options = {
        .path = log_path, .keep_rows = true, .threads = 1, .shard_bytes = 4096 + 17 * 4 * 20};
    log_run(&decode_rich, &options, NULL);
    struct log_text a = log_read(log_path);
    snprintf(command, sizeof command, "mkdir %s/one && mv %s/run.jsonl* %s/one", log_folder, log_folder, log_folder);
    assert_int_equal(system(command), 0);
    options.threads = 4;
    options.queue_rows = 5;
    log_run(&decode_rich, &options, NULL);
    struct log_text b = log_read(log_path);
    assert_int_equal(a.lines, b.lines);
    for (size_t i = 0; i < a.lines; i++) {
        strip(a.start[i]);
        strip(b.start[i]);
        assert_string_equal(a.start[i], b.start[i]);
    }
    snprintf(copy, sizeof copy, "%s/one/run.jsonl", log_folder);
    check_same_shards(log_path, copy, "target", 4);
    check_same_shards(log_path, copy, "draft", 1);
    log_free(&a);
    log_free(&b);
}

static void the_queue_is_bounded(void **unused)
{
    (void)unused;
    for (size_t rows = 1; rows <= 9; rows += 4) {
        struct hm_stamp_summary summary;
        log_run(&decode_plain, &(struct hm_stamp_options){.path = log_path, .threads = 2, .queue_rows = rows},
                &summary);
        assert_true(summary.most_rows <= (rows < 2 ? 2 : rows)); // a step with its draft row is let in alone
        assert_true(summary.most_rows >= 1);
        hm_stamp_summary_clear(&summary);
    }
}

// Rounds that keep rows count in the same bound: at most as many as there are nodes with children.
static void the_queue_is_bounded_with_rows_of_rounds(void **unused)
{
    (void)unused;
    struct decode decode = decode_plain;
    decode.temperature = "7/10";
    decode.all_nodes = true;
    for (size_t rows = 6; rows <= 12; rows += 6) { // a root and up to 4 inner nodes
        struct hm_stamp_summary summary;
        log_run(&decode, &(struct hm_stamp_options){.path = log_path, .threads = 2, .queue_rows = rows}, &summary);
        assert_in_range(summary.most_rows, 4, rows);
        hm_stamp_summary_clear(&summary);
    }
}

static void the_summary_counts(void **unused)
{
    (void)unused;
    struct hm_stamp_summary with, without;
    log_run(&decode_rich, &(struct hm_stamp_options){.path = log_path, .threads = 2}, &with);
    assert_int_equal(with.counts, 12);
    assert_int_equal(with.sequences, 3);
    assert_true(with.steps > 3 && with.rounds > 0 && with.nodes > 0 && with.seconds > 0);
    for (size_t i = 0; i < with.counts; i++) {
        uint64_t verdicts = 0;
        for (int v = 0; v < 5; v++) verdicts += with.count[i].verdict[0][v];
        assert_true(verdicts > 0 && verdicts <= with.count[i].claims);
        assert_true(with.count[i].claims <= with.steps);
        if (i % 4) assert_int_equal(with.count[i].claims, with.steps); // a fixed m speaks of every step
        assert_true(with.count[i].certified <= verdicts && with.count[i].covered <= verdicts);
    }
    // Without a log the counts are the same.
    log_run(&decode_rich, &(struct hm_stamp_options){.threads = 1, .keep_rows = true}, &without);
    assert_int_equal(without.steps, with.steps);
    assert_memory_equal(without.count, with.count, with.counts * sizeof *with.count);
    hm_stamp_summary_clear(&with);
    hm_stamp_summary_clear(&without);
}

static void hashed_rows_need_not_be_kept(void **unused)
{
    (void)unused;
    log_run(&decode_plain, &(struct hm_stamp_options){.path = log_path, .hash_rows = true}, NULL);
    struct log_text text = log_read(log_path);
    assert_non_null(strstr(text.start[0], ",\"rows\":{\"target\":null,\"draft\":null,\"hashed\":true}"));
    assert_non_null(strstr(text.start[2], ",\"row\":{\"why\":\"not kept\",\"sha256\":\""));
    assert_non_null(strstr(text.start[2], ",\"draft_row\":{\"why\":\"prefill\"}"));
    log_free(&text);
    char shard[300];
    snprintf(shard, sizeof shard, "%s.target-00000.safetensors", log_path);
    assert_int_not_equal(access(shard, F_OK), 0); // and those of the logs before are gone
}

static void logs_without_a_draft_model(void **unused)
{
    (void)unused;
    struct decode decode = decode_plain;
    decode.no_draft = true;
    log_run(&decode, &(struct hm_stamp_options){.path = log_path, .keep_rows = true}, NULL);
    struct log_text text = log_read(log_path);
    assert_non_null(strstr(text.start[0], ",\"draft\":null,\"tokenizer_sha256\""));
    assert_non_null(strstr(text.start[0], ",\"draft\":null,\"hashed\":true}"));
    for (size_t i = 0; i < text.lines; i++) {
        if (!strstr(text.start[i], "\"kind\":\"step\"")) continue;
        assert_null(strstr(text.start[i], "kl_pq"));
        bool prefill = strstr(text.start[i], "\"source\":\"prefill\"") != NULL;
        assert_non_null(strstr(text.start[i], prefill ? "\"certified\":null,\"why\":\"prefill\""
                                                      : "\"certified\":null,\"why\":\"no "));
    }
    log_free(&text);
}

// ---- what goes wrong

static hm_status failing(const struct decode *decode, const char *path, bool keep_rows, struct hm_error *err)
{
    err->message[0] = 0;
    return decode_run(decode, &(struct hm_stamp_options){.path = path, .keep_rows = keep_rows, .threads = 2}, NULL,
                      err);
}

static void logs_that_cannot_be_created(void **unused)
{
    (void)unused;
    struct hm_error err;
    char name[300], expected[400];
    assert_int_equal(failing(&decode_plain, "/nowhere/run.jsonl", false, &err), HM_IO);
    assert_string_equal(err.message, "/nowhere/run.jsonl: cannot create the log: No such file or directory");
    assert_int_equal(failing(&decode_plain, log_folder, false, &err), HM_IO);
    assert_non_null(strstr(err.message, ": cannot create the log: Is a directory"));
    snprintf(name, sizeof name, "%s/pipe", log_folder);
    assert_int_equal(mkfifo(name, 0600), 0);
    int reader = open(name, O_RDONLY | O_NONBLOCK);
    assert_int_equal(failing(&decode_plain, name, false, &err), HM_IO);
    snprintf(expected, sizeof expected, "%s: expected a regular file for the log", name);
    assert_string_equal(err.message, expected);
    close(reader);
    assert_int_equal(failing(&decode_plain, "/dev/full", false, &err), HM_IO);
    assert_string_equal(err.message, "/dev/full: expected a regular file for the log");
    snprintf(name, sizeof name, "%s/50%%.jsonl", log_folder);
    assert_int_equal(failing(&decode_plain, name, true, &err), HM_USAGE);
    assert_int_not_equal(access(name, F_OK), 0);
    assert_int_equal(failing(&decode_plain, name, false, &err), HM_OK); // fine without shards
}

// Two writers of one log: the second is refused and the first's file and shards are left alone.
static void a_log_has_one_writer(void **unused)
{
    (void)unused;
    struct hm_error err;
    struct hm_stamper *first;
    struct hm_rational zero, one;
    struct hm_rule rule = {.kind = HM_RULE_GREEDY};
    hm_rational_init(&zero);
    hm_rational_init(&one);
    hm_rational_init(&rule.a);
    hm_rational_init(&rule.b);
    hm_rational_set_int(&one, 1, 1);
    struct hm_log_model model = {.name = "x", .vocab = 24, .architecture = "x"};
    struct hm_log_header header = {.rules = &rule,
                                   .rule_count = 1,
                                   .m = (uint32_t[]){1},
                                   .m_count = 1,
                                   .temperature = &zero,
                                   .certify_temperature = &one,
                                   .target = &model,
                                   .tokenizer_sha256 = "",
                                   .drafter = "none",
                                   .selection = "draft",
                                   .traversal = "exhaustive",
                                   .proposal = "none",
                                   .weights_dtype = "F32",
                                   .backend = "none",
                                   .row_source = "verify"};
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){.path = log_path}, &header, &first, &err), HM_OK);
    assert_int_equal(failing(&decode_plain, log_path, true, &err), HM_IO);
    assert_non_null(strstr(err.message, "run.jsonl: another process is writing this log; "));
    struct log_text text = log_read(log_path);
    assert_int_equal(text.lines, 1); // still the first one's header
    log_free(&text);
    assert_int_equal(hm_stamper_close(first, NULL, &err), HM_OK);
    text = log_read(log_path);
    assert_int_equal(text.lines, 2);
    assert_non_null(strstr(text.start[1], "\"sequences\":0"));
    log_free(&text);
    assert_int_equal(failing(&decode_plain, log_path, true, &err), HM_OK); // the lock is gone
    hm_rational_clear(&zero);
    hm_rational_clear(&one);
    hm_rule_clear(&rule);
}

// The lines of `part` are the first lines of `whole`, and there is no end record.
static void check_prefix(const struct log_text *whole, const char *path)
{
    struct log_text part = log_read(path);
    assert_true(part.lines >= 1 && part.lines < whole->lines);
    for (size_t i = 0; i < part.lines; i++) {
        strip(part.start[i]);
        assert_string_equal(part.start[i], whole->start[i]);
    }
    log_free(&part);
}

static struct log_text whole_log(const struct decode *decode)
{
    log_run(decode, &(struct hm_stamp_options){.path = log_path}, NULL);
    struct log_text text = log_read(log_path);
    for (size_t i = 0; i < text.lines; i++) strip(text.start[i]);
    return text;
}

static void a_full_disk_keeps_what_was_written(void **unused)
{
    (void)unused;
    struct rlimit before, small;
    struct log_text whole = whole_log(&decode_plain);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 1; limit < 20000; limit += 3331) {
        struct hm_error err;
        small = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        hm_status rc = failing(&decode_plain, log_path, false, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(rc, HM_IO);
        assert_non_null(strstr(err.message, "run.jsonl: line "));
        assert_non_null(strstr(err.message, "File too large; the lines before it are kept"));
        struct stat st;
        assert_int_equal(stat(log_path, &st), 0);
        assert_true(limit < 1000 ? st.st_size == 0 : st.st_size > 0 && st.st_size <= (off_t)limit);
        if (st.st_size) check_prefix(&whole, log_path);
    }
    log_free(&whole);
}

static void a_bad_row_is_named(void **unused)
{
    (void)unused;
    struct log_text whole = whole_log(&decode_plain);
    for (size_t spoil = 1; spoil <= 9; spoil += 4) {
        struct decode decode = decode_plain;
        struct hm_error err;
        char expected[64];
        decode.spoil = spoil;
        assert_int_equal(failing(&decode, log_path, false, &err), HM_RANGE);
        snprintf(expected, sizeof expected, "sequence 0, step %zu: target row: logit 3: ", spoil - 1);
        assert_memory_equal(err.message, expected, strlen(expected));
        check_prefix(&whole, log_path);
        char step[32];
        struct log_text part = log_read(log_path);
        snprintf(step, sizeof step, "\"t\":%zu,", spoil - 2);
        if (spoil > 1) {
            size_t last = part.lines - 1;
            if (strstr(part.start[last], "\"kind\":\"round\"")) last--;
            assert_non_null(strstr(part.start[last], step)); // every step before it is there
        }
        log_free(&part);
    }
    log_free(&whole);
}

// An interrupted decode closes its log in order: no failure, no end record.
static void an_abandoned_sequence_leaves_no_end(void **unused)
{
    (void)unused;
    struct log_text whole = whole_log(&decode_plain);
    struct decode decode = decode_plain;
    struct hm_stamp_summary summary;
    decode.abandon = 7;
    log_run(&decode, &(struct hm_stamp_options){.path = log_path, .threads = 3}, &summary);
    assert_int_equal(summary.steps, 7);
    hm_stamp_summary_clear(&summary);
    check_prefix(&whole, log_path);
    log_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chain_holds),
        cmocka_unit_test(threads_do_not_change_a_byte), cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(the_queue_is_bounded_with_rows_of_rounds),
        cmocka_unit_test(the_summary_counts),           cmocka_unit_test(hashed_rows_need_not_be_kept),
        cmocka_unit_test(logs_without_a_draft_model),   cmocka_unit_test(logs_that_cannot_be_created),
        cmocka_unit_test(a_log_has_one_writer),         cmocka_unit_test(a_full_disk_keeps_what_was_written),
        cmocka_unit_test(a_bad_row_is_named),           cmocka_unit_test(an_abandoned_sequence_leaves_no_end),
    };
    return cmocka_run_group_tests(tests, log_set_up, log_tear_down);
}
