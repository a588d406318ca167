// Memory does not grow with the length of a log: verify, inspect and report take as much for a log of a million steps
// (HM_LONG) as for one of ten thousand. Peak resident memory is that of a process of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "certify/stamp.h"
#include "tests/seed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOCAB = 8, ALLOWED = 4 << 10 }; // KiB: what one log may take more than the other

static char short_log[64], long_log[64];
static uint32_t short_steps, long_steps;

// ---- a log of any length

static bool write_steps(struct hm_stamper *s, uint32_t steps, struct hm_error *err)
{
    static const float row[VOCAB] = {0, 1, 2, 3, 4, 5, 6, 7.5f};
    static const int32_t prompt[] = {1}, parent[] = {-1}, token[] = {VOCAB - 1};
    static const float logq[] = {0};
    const struct hm_log_sequence sequence = {
        .id = "", .category = "", .prompt = prompt, .prompt_length = 1, .seed = 1, .max_tokens = steps};
    bool good = hm_stamper_sequence(s, &sequence, err) == HM_OK;
    for (uint32_t t = 0; t < steps && good; t++) {
        const struct hm_log_round round = {
            .round = t - 1, .t = t, .nodes = 1, .parent = parent, .token = token, .logq = logq};
        const struct hm_log_step step = {.t = t,
                                         .round = (int64_t)t - 1,
                                         .token = VOCAB - 1,
                                         .source = t ? HM_SOURCE_CONTINUATION : HM_SOURCE_PREFILL,
                                         .child = -1,
                                         .support = VOCAB,
                                         .target_row = row,
                                         .draft_why = "no draft model",
                                         .finish = t + 1 == steps ? HM_FINISH_LENGTH : HM_FINISH_NONE,
                                         .text = "word ",
                                         .text_size = 5};
        good = (t == 0 || hm_stamper_round(s, &round, err) == HM_OK) && hm_stamper_step(s, &step, err) == HM_OK;
    }
    return good;
}

static bool write_log(const char *path, uint32_t steps, bool hash_rows, struct hm_error *err)
{
    struct hm_rule rule;
    struct hm_rational zero, one;
    const uint32_t m[] = {1};
    struct hm_log_model target = {.name = "made", .vocab = VOCAB, .architecture = "none"};
    memset(target.sha256, '0', sizeof target.sha256 - 1);
    hm_rational_init(&zero);
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    if (hm_rule_parse("greedy", &rule, err)) return false;
    const struct hm_log_header header = {.rules = &rule,
                                         .rule_count = 1,
                                         .m = m,
                                         .m_count = 1,
                                         .temperature = &zero,
                                         .certify_temperature = &one,
                                         .top = 4,
                                         .target = &target,
                                         .tokenizer_sha256 = target.sha256,
                                         .drafter = "none",
                                         .selection = "draft",
                                         .traversal = "exhaustive",
                                         .proposal = "none",
                                         .weights_dtype = "F32",
                                         .backend = "made",
                                         .row_source = "made"};
    const struct hm_stamp_options options = {.path = path, .hash_rows = hash_rows, .threads = 2};
    struct hm_stamper *s;
    bool good = hm_stamper_open(&options, &header, &s, err) == HM_OK;
    good = good && write_steps(s, steps, err);
    if (good) good = hm_stamper_close(s, NULL, err) == HM_OK;
    hm_rule_clear(&rule);
    hm_rational_clear(&zero);
    hm_rational_clear(&one);
    return good;
}

// In a process of its own, whose memory is not this one's.
static void make_log(const char *path, uint32_t steps, bool hash_rows)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hm_error err = {0};
        bool good = write_log(path, steps, hash_rows, &err);
        if (!good) fprintf(stderr, "%s: %s\n", path, err.message);
        _exit(!good);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// ---- commands

// Runs hallmark, which must succeed; returns its peak resident memory in KiB.
static long peak(char *const *arguments)
{
    int status;
    struct rusage usage;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        if (nothing < 0 || dup2(nothing, 1) < 0) _exit(127);
        execv(HM_COMMAND, arguments);
        _exit(127);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s %s: status %d", arguments[1], arguments[2], status);
    return usage.ru_maxrss;
}

// Both logs with the same arguments; "LOG" and "LAST" stand for the log and its last step.
static void compare(const char *const *arguments)
{
    long found[2];
    for (int i = 0; i < 2; i++) {
        char *filled[12] = {"hallmark"}, last[32];
        snprintf(last, sizeof last, "0:%u", (i ? long_steps : short_steps) - 1);
        for (int j = 0; arguments[j]; j++)
            filled[j + 1] = strcmp(arguments[j], "LOG") == 0    ? (i ? long_log : short_log)
                            : strcmp(arguments[j], "LAST") == 0 ? last
                                                                : (char *)arguments[j];
        found[i] = peak(filled);
    }
    printf("%-8s %-10s %9u steps %6ld KiB, %9u steps %6ld KiB\n", arguments[0], arguments[1], short_steps, found[0],
           long_steps, found[1]);
#if !defined(__SANITIZE_ADDRESS__)
    if (found[1] > found[0] + ALLOWED)
        fail_msg("%s: %ld KiB more for the longer log", arguments[0], found[1] - found[0]);
#endif
}

static void make_logs(bool hash_rows)
{
    make_log(short_log, short_steps, hash_rows);
    make_log(long_log, long_steps, hash_rows);
}

static void hashed_rows(void **state)
{
    (void)state;
    static const char *const verify[] = {"verify", "--threads", "2", "--allow-absent-rows", "LOG", NULL},
                             *const inspect[] = {"inspect", "LOG", NULL},
                             *const step[] = {"inspect", "--step", "LAST", "LOG", NULL},
                             *const report[] = {"report", "--quiet", "--html", "/dev/null", "LOG", NULL};
    make_logs(true);
    compare(verify);
    compare(inspect);
    compare(step);
    compare(report);
}

static void absent_rows(void **state)
{
    (void)state;
    static const char *const verify[] = {"verify", "--threads", "2", "--allow-absent-rows", "LOG", NULL};
    make_logs(false);
    compare(verify);
}

static int make_names(void **state)
{
    (void)state;
    short_steps = (uint32_t)test_count(200, 2000, 10000);
    long_steps = (uint32_t)test_count(2000, 40000, 1000000);
    strcpy(short_log, "/tmp/hallmark-short-XXXXXX");
    strcpy(long_log, "/tmp/hallmark-long-XXXXXX");
    int a = mkstemp(short_log), b = mkstemp(long_log);
    return a < 0 || b < 0 || close(a) || close(b);
}

static int remove_logs(void **state)
{
    (void)state;
    return unlink(short_log) || unlink(long_log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hashed_rows), cmocka_unit_test(absent_rows)};
    return cmocka_run_group_tests(tests, make_names, remove_logs);
}
