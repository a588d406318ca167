// The reader of logs: stochastic acceptance, fidelity budgets, drawn first tokens, nodes only scored.
#include "base/file.h"
#include "certify/log_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

// What a log has of everything new.
struct found {
    size_t steps, charges, relaxed, spent, accepts, standards, excesses, laws, firsts, scored;
    double last_spent;
};

static void count_step(const struct hm_record_step *s, struct found *f)
{
    f->steps++;
    f->charges += s->has_charge;
    f->relaxed += s->has_charge && s->relaxed;
    f->spent += s->has_spent;
    f->accepts += s->has_accept;
    f->standards += s->has_accept_standard;
    f->excesses += s->has_nucleus_excess;
    f->laws += s->has_e;
    if (s->has_spent) f->last_spent = s->spent;
    if (s->has_accept && s->has_accept_standard) assert_true(s->accept_standard.lo <= s->accept.hi);
    if (s->has_charge && s->relaxed) assert_true(s->spent >= s->charge.hi);
}

static struct found count(const char *name, struct hm_record_header *header)
{
    static char text[8][64]; // what the header's strings said, past the reader
    char path[128];
    struct found f = {0};
    struct hm_log_reader *reader;
    struct hm_record r;
    struct hm_error err;
    snprintf(path, sizeof path, "tests/data/logs/good/%s.jsonl", name);
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    *header = *hm_log_reader_header(reader);
    const char **kept[] = {&header->acceptance, &header->proposal,    &header->selection,   &header->traversal,
                           &header->score,      &header->budget_kind, &header->budget_limit};
    for (size_t i = 0; i < COUNT(kept); i++)
        if (*kept[i]) {
            snprintf(text[i], sizeof text[i], "%s", *kept[i]);
            *kept[i] = text[i];
        }
    do {
        if (hm_log_reader_next(reader, &r, &err)) fail_msg("%s", err.message);
        if (r.kind == HM_RECORD_STEP) count_step(r.step, &f);
        if (r.kind == HM_RECORD_NODE) assert_true(!r.step->has_spent && !r.step->has_charge && !r.step->has_accept);
        if (r.kind != HM_RECORD_ROUND) continue;
        f.firsts += r.round->first >= 0;
        f.scored += r.round->scored;
        if (r.round->first >= 0) assert_int_equal(r.round->first, r.round->token[1]);
    } while (r.kind != HM_RECORD_NONE);
    assert_int_equal(hm_log_reader_state(reader), HM_LOG_COMPLETE);
    hm_log_reader_close(reader);
    return f;
}

static void stochastic_acceptance(void **unused)
{
    (void)unused;
    struct hm_record_header h;
    struct found f = count("standard-iid", &h);
    assert_string_equal(h.acceptance, "standard");
    assert_string_equal(h.proposal, "iid");
    assert_null(h.budget_kind);
    assert_true(f.accepts > 0 && f.standards == 0 && f.excesses == 0 && f.charges == 0 && f.spent == 0);
    f = count("nucleus", &h);
    assert_string_equal(h.proposal, "topk");
    assert_true(f.accepts > 0 && f.standards == f.accepts && f.excesses > 0 && f.laws == f.steps);
}

static void budgets(void **unused)
{
    (void)unused;
    struct hm_record_header h;
    struct found f = count("tv-budget", &h);
    assert_string_equal(h.budget_kind, "tv");
    assert_string_equal(h.budget_limit, "2/5");
    assert_true(f.spent == f.steps && f.charges > f.relaxed && f.relaxed > 0 && f.charges == f.accepts);
    assert_true(f.last_spent > 0 && f.last_spent < 0.4);
    f = count("regret-budget", &h);
    assert_string_equal(h.budget_kind, "regret");
    assert_true(f.spent == f.steps && f.charges > f.relaxed && f.relaxed > 0 && f.accepts == 0);
}

static void selections(void **unused)
{
    (void)unused;
    struct hm_record_header h;
    struct found f = count("pearl", &h);
    assert_string_equal(h.selection, "pearl");
    assert_string_equal(h.score, "frontier:2");
    assert_true(f.firsts > 0 && f.scored > 0);
    f = count("covering", &h);
    assert_string_equal(h.traversal, "leaf-stop");
    assert_null(h.score);
    assert_true(f.firsts > 0 && f.scored == 0);
    f = count("greedy", &h);
    assert_true(f.firsts == 0 && f.scored == 0 && f.accepts == 0);
}

// One change of a golden log, and what the reader must say.
static const struct {
    const char *log, *old, *new, *message;
} WRONG[] = {
    {"tv-budget", "\"kind\":\"tv\"", "\"kind\":\"time\"",
     "line 1: budget.kind: expected \"tv\" or \"regret\", found \"time\""},
    {"tv-budget", "\"limit\":\"2/5\"", "\"limit\":\"-2/5\"",
     "line 1: budget.limit: expected a rational such as \"3/10\", not negative, found \"-2/5\""},
    {"tv-budget", "\"limit\":\"2/5\"", "\"limit\":0.4", "line 1: budget.limit: expected"},
    {"tv-budget", "\"budget\":{\"kind\":\"tv\",\"limit\":\"2/5\"}", "\"budget\":4", "line 1: budget: expected"},
    {"tv-budget", "\"proposal\":\"iid\"", "\"proposal\":\"beam\"", "line 1: proposal: expected"},
    {"tv-budget", "\"spent\":\"0x0p+0\"", "\"spent\":\"-0x1p+0\"",
     "line 3: spent: expected a hexadecimal float of 0 or more"},
    {"tv-budget", "\"spent\":\"0x0p+0\"", "\"spent\":\"inf\"",
     "line 3: spent: expected a hexadecimal float of 0 or more"},
    {"tv-budget", "\"spent\":\"0x0p+0\"", "\"spend\":\"0x0p+0\"",
     "line 3: spent: expected a hexadecimal float of 0 or more, found nothing"},
    {"tv-budget", "\"relaxed\":false,", "", "line 5: relaxed: expected"},
    {"tv-budget", "\"relaxed\":false,", "\"relaxed\":0,", "line 5: relaxed: expected"},
    {"tv-budget", "\"charge\":[", "\"charged\":[",
     "line 5: charge: expected `charge` and `relaxed` together, found one of them"},
    {"tv-budget", "\"accept\":[\"", "\"accept\":[1,\"", "line 5: accept: expected"},
    {"pearl", "\"selection\":\"pearl\"", "\"selection\":\"perl\"", "line 1: decoder.selection: expected \"draft\""},
    {"pearl", "\"traversal\":\"exhaustive\"", "\"traversal\":\"cap:0\"",
     "line 1: decoder.traversal: expected \"exhaustive\""},
    {"pearl", "\"traversal\":\"exhaustive\"", "\"traversal\":\"cap:1e3\"",
     "line 1: decoder.traversal: expected \"exhaustive\""},
    {"pearl", "\"score\":\"frontier:2\"", "\"score\":\"frontier:\"", "line 1: decoder.score: expected \"top:M\""},
    {"pearl", ",\"score\":\"frontier:2\"", "", "line 4: scored: expected"},
    {"pearl", "\"scored\":2", "\"scored\":5", "line 4: scored: expected"},
    {"pearl", "\"first\":4", "\"first\":8", "line 4: first: expected"},
    {"pearl", "\"first\":4", "\"first\":-1", "line 4: first: expected"},
};

static void what_is_wrong_is_named(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(WRONG); i++) {
        char good[128], path[] = "/tmp/hallmark-acceptance-XXXXXX", *text;
        size_t size;
        int file = mkstemp(path);
        struct hm_log_reader *reader = NULL;
        struct hm_record r = {.kind = HM_RECORD_ROUND};
        struct hm_error err;
        snprintf(good, sizeof good, "tests/data/logs/good/%s.jsonl", WRONG[i].log);
        assert_int_equal(hm_file_read(good, 1 << 20, &text, &size, NULL), HM_OK);
        char *at = memmem(text, size, WRONG[i].old, strlen(WRONG[i].old));
        if (!at) fail_msg("no %s", WRONG[i].old);
        size_t before = (size_t)(at - text), after = before + strlen(WRONG[i].old);
        assert_int_equal(write(file, text, before), before);
        assert_int_equal(write(file, WRONG[i].new, strlen(WRONG[i].new)), strlen(WRONG[i].new));
        assert_int_equal(write(file, text + after, size - after), size - after);
        hm_status rc = hm_log_reader_open(path, &reader, &err);
        while (!rc && r.kind != HM_RECORD_NONE) rc = hm_log_reader_next(reader, &r, &err);
        assert_int_equal(rc, HM_FORMAT);
        if (!strstr(err.message, WRONG[i].message))
            fail_msg("expected \"%s\", found \"%s\"", WRONG[i].message, err.message);
        hm_log_reader_close(reader);
        free(text);
        close(file);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stochastic_acceptance),
        cmocka_unit_test(budgets),
        cmocka_unit_test(selections),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
