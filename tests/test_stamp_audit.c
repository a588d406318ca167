// Audits: rows without a decode, who listens to records, what an audit refuses, and that the checkers prove it.
#include "certify/check/check.h"
#include "certify/check/simple/simple.h"
#include "certify/log_reader.h"
#include "tests/seed.h"
#include "tests/test_stamp_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 40, ROWS = 12 };

// What an audit holds beside its rows, which are made up from their index.
struct audit {
    struct hm_rational temperature, certify_temperature;
    struct hm_rule rules[3];
    struct hm_divergence divergences[2];
    struct hm_log_model target, draft;
    struct hm_log_header header;
};

static const uint32_t fixed[] = {1, 3};

static void audit_open(struct audit *a, bool drafted)
{
    static const char *const rules[] = {"greedy", "additive:1/10", "entropy:1/10,1/2"};
    *a = (struct audit){.target = {.name = "saved", .vocab = VOCAB, .architecture = "unknown"}};
    hm_rational_init(&a->temperature);
    hm_rational_init(&a->certify_temperature);
    hm_rational_set_int(&a->certify_temperature, 3, 4);
    for (int i = 0; i < 3; i++) assert_int_equal(hm_rule_parse(rules[i], &a->rules[i], NULL), HM_OK);
    assert_int_equal(hm_divergence_parse("hellinger", &a->divergences[0], NULL), HM_OK);
    assert_int_equal(hm_divergence_parse("renyi-reverse:3", &a->divergences[1], NULL), HM_OK);
    memset(a->target.sha256, 'b', sizeof a->target.sha256 - 1);
    a->draft = a->target;
    a->header = (struct hm_log_header){.rules = a->rules, .rule_count = 3, .m = fixed, .m_count = 2, .margin = true,
                                       .universal = true, .divergences = a->divergences,
                                       .divergence_count = 2, .law_iid = true, .law_topk = true, .audit = true, .temperature = &a->temperature,
                                       .certify_temperature = &a->certify_temperature, .top = 4, .target = &a->target,
                                       .draft = drafted ? &a->draft : NULL, .tokenizer_sha256 = a->target.sha256,
                                       .weights_dtype = "F32", .backend = "unknown", .row_source = "foreign"};
}

static void audit_close(struct audit *a)
{
    for (int i = 0; i < 3; i++) hm_rule_clear(&a->rules[i]);
    for (int i = 0; i < 2; i++) hm_divergence_clear(&a->divergences[i]);
    hm_rational_clear(&a->temperature);
    hm_rational_clear(&a->certify_temperature);
}

static void make_row(uint64_t index, bool draft, float row[VOCAB])
{
    uint64_t state = index * 977 + 5, noise = index * 31 + draft;
    for (int i = 0; i < VOCAB; i++) {
        row[i] = (float)(round(40 * test_signed(&state)) / 8 + (draft ? round(8 * test_signed(&noise)) / 16 : 0));
        if (draft && i > 30) row[i] = -INFINITY;
    }
}

// Row i has index 2i + 1 in its file and, when i is even, a token.
static void add_row(struct hm_stamper *s, size_t i, bool drafted)
{
    float target[VOCAB], draft[VOCAB];
    struct hm_error err;
    make_row(i, false, target);
    make_row(i, true, draft);
    const struct hm_log_row row = {.index = 2 * i + 1, .token = i % 2 ? -1 : (int32_t)(i % VOCAB), .target_row = target,
                                   .draft_row = drafted ? draft : NULL};
    if (hm_stamper_row(s, &row, &err)) fail_msg("%s", err.message);
}

static void run(bool drafted, const struct hm_stamp_options *options, struct hm_stamp_summary *summary)
{
    struct audit a;
    struct hm_stamper *s;
    struct hm_error err;
    audit_open(&a, drafted);
    if (hm_stamper_open(options, &a.header, &s, &err)) fail_msg("%s", err.message);
    for (size_t i = 0; i < ROWS; i++) add_row(s, i, drafted);
    if (hm_stamper_close(s, summary, &err)) fail_msg("%s", err.message);
    audit_close(&a);
}

// Everything that was heard, a line each.
struct heard {
    char *text;
    size_t size;
    size_t records, fail_at; // fail_at: the record whose reception fails, from 1; 0: none
};

static hm_status listen(void *user, const char *json, size_t size, struct hm_error *err)
{
    struct heard *h = user;
    if (++h->records == h->fail_at) return hm_fail(err, HM_IO, "the pipe is closed");
    h->text = realloc(h->text, h->size + size + 2);
    assert_non_null(h->text);
    memcpy(h->text + h->size, json, size);
    h->size += size;
    h->text[h->size++] = '\n';
    h->text[h->size] = 0;
    return HM_OK;
}

// The records heard are the lines written, each without its chain.
static void who_listens_hears_the_log(void **unused)
{
    (void)unused;
    struct heard h = {0};
    run(true, &(struct hm_stamp_options){.path = log_path, .keep_rows = true, .threads = 3, .line = listen, .line_user = &h},
        NULL);
    struct log_text text = log_read(log_path);
    assert_int_equal(text.lines, ROWS + 2);
    assert_int_equal(h.records, ROWS + 2);
    const char *at = h.text;
    for (size_t i = 0; i < text.lines; i++) {
        const char *chain = strstr(text.start[i], ",\"chain\"");
        size_t n = (size_t)(chain - text.start[i]);
        assert_memory_equal(at, text.start[i], n);
        assert_memory_equal(at + n, "}\n", 2);
        at += n + 2;
    }
    assert_int_equal(*at, 0);
    log_free(&text);
    free(h.text);
}

// Without a path the same records are made: only rows are not kept.
static void no_log_is_needed(void **unused)
{
    (void)unused;
    struct heard h = {0};
    struct hm_stamp_summary summary;
    run(true, &(struct hm_stamp_options){.threads = 2, .hash_rows = true, .line = listen, .line_user = &h}, &summary);
    assert_int_equal(h.records, ROWS + 2);
    assert_int_equal(summary.rows, ROWS);
    assert_int_equal(summary.steps, 0);
    assert_true(summary.decisions >= ROWS && summary.filter_undecided <= summary.decisions);
    assert_true(summary.hash_seconds >= 0 && summary.seconds > 0);
    assert_non_null(strstr(h.text, "\"row\":{\"why\":\"not kept\",\"sha256\":\""));
    char *twice = strdup(h.text);
    h = (struct heard){.text = h.text};
    run(true, &(struct hm_stamp_options){.threads = 1, .hash_rows = true, .line = listen, .line_user = &h}, NULL);
    char *end = strstr(twice, "{\"kind\":\"row\""), *run_time = strstr(twice, ",\"run\":{\"certify_seconds\"");
    assert_memory_equal(end, strstr(h.text, "{\"kind\":\"row\""), (size_t)(run_time - end)); // times differ, no more
    free(twice);
    free(h.text);
    hm_stamp_summary_clear(&summary);
}

static void a_listener_may_stop_the_audit(void **unused)
{
    (void)unused;
    for (size_t at = 1; at <= ROWS + 2; at += ROWS / 2) {
        struct audit a;
        struct hm_stamper *s = NULL;
        struct hm_error err = {.message = ""};
        struct heard h = {.fail_at = at};
        audit_open(&a, false);
        hm_status rc = hm_stamper_open(&(struct hm_stamp_options){.path = log_path, .line = listen, .line_user = &h},
                                       &a.header, &s, &err);
        assert_int_equal(rc, at == 1 ? HM_IO : HM_OK);
        for (size_t i = 0; i < ROWS && !rc; i++) {
            float target[VOCAB];
            make_row(i, false, target);
            rc = hm_stamper_row(s, &(struct hm_log_row){.index = i, .token = -1, .target_row = target}, &err);
        }
        if (s) rc = hm_stamper_close(s, NULL, &err);
        assert_int_equal(rc, HM_IO);
        assert_string_equal(err.message, "the pipe is closed");
        free(h.text);
        audit_close(&a);
    }
}

// The reader finds the rows again, with their claims.
static void the_reader_reads_audits(void **unused)
{
    (void)unused;
    for (int drafted = 0; drafted < 2; drafted++) {
        struct hm_log_reader *reader;
        struct hm_record r;
        struct hm_error err;
        size_t rows = 0;
        run(drafted, &(struct hm_stamp_options){.path = log_path}, NULL);
        if (hm_log_reader_open(log_path, &reader, &err)) fail_msg("%s", err.message);
        const struct hm_record_header *h = hm_log_reader_header(reader);
        assert_true(h->audit && h->universal && h->margin);
        assert_null(h->drafter);
        do {
            if (hm_log_reader_next(reader, &r, &err)) fail_msg("%s", err.message);
            if (r.kind == HM_RECORD_END) {
                assert_int_equal(r.end->rows, ROWS);
                assert_true(r.end->decisions > 0 && r.end->filter_undecided >= 0);
            }
            if (r.kind != HM_RECORD_ROW) continue;
            assert_int_equal(r.step->index, 2 * rows + 1);
            assert_int_equal(r.step->token, rows % 2 ? -1 : (int)(rows % VOCAB));
            assert_int_equal(r.step->has_draft, drafted);
            for (size_t i = 0; i < r.step->claim_count; i++) {
                const struct hm_record_claim *c = &r.step->claims[i];
                assert_int_equal(c->has_accepts, rows % 2 == 0);
                assert_int_equal(c->has_verdicts, drafted);
                assert_int_equal(c->has_restricted, drafted);
                if (!drafted) assert_string_equal(c->why, "no draft model");
            }
            rows++;
        } while (r.kind != HM_RECORD_NONE);
        assert_int_equal(rows, ROWS);
        assert_int_equal(hm_log_reader_state(reader), HM_LOG_COMPLETE);
        hm_log_reader_close(reader);
    }
}

static void checkers_prove_audits(void **unused)
{
    (void)unused;
    for (int drafted = 0; drafted < 2; drafted++) {
        struct hm_simple_result simple;
        struct hm_check_result fast;
        run(drafted, &(struct hm_stamp_options){.path = log_path, .keep_rows = true}, NULL);
        if (hm_check_simple(log_path, false, false, &simple)) fail_msg("simple: %s", simple.message);
        assert_true(simple.claims >= (drafted ? ROWS * 6 * 3 : 0));
        if (hm_check_log(log_path, NULL, &fast)) fail_msg("fast: %s", fast.message);
        assert_true(fast.claims == simple.claims);
    }
}

// A row that is none is named and left out; the audit goes on.
static void bad_rows_are_left_out(void **unused)
{
    (void)unused;
    struct audit a;
    struct hm_stamper *s;
    struct hm_error err;
    struct hm_stamp_summary summary;
    float target[VOCAB], draft[VOCAB];
    audit_open(&a, true);
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){.path = log_path, .keep_rows = true}, &a.header, &s, &err), HM_OK);
    const struct hm_log_row row = {.index = 5, .token = 0, .target_row = target, .draft_row = draft};
    make_row(1, false, target);
    make_row(1, true, draft);
    target[17] = NAN;
    assert_int_equal(hm_stamper_row(s, &row, &err), HM_RANGE);
    assert_non_null(strstr(err.message, "target row: logit 17: "));
    make_row(1, false, target);
    draft[3] = INFINITY;
    struct hm_log_row next = row;
    next.index = 6;
    assert_int_equal(hm_stamper_row(s, &next, &err), HM_RANGE);
    assert_non_null(strstr(err.message, "draft row: logit 3: "));
    add_row(s, 3, true);
    assert_int_equal(hm_stamper_close(s, &summary, &err), HM_OK);
    assert_int_equal(summary.rows, 1);
    hm_stamp_summary_clear(&summary);
    audit_close(&a);
}

static void refuse_row(bool drafted, struct hm_log_row row, hm_status expected, const char *message)
{
    struct audit a;
    struct hm_stamper *s;
    struct hm_error err = {.message = ""};
    static float target[VOCAB], draft[VOCAB];
    make_row(1, false, target);
    make_row(1, true, draft);
    audit_open(&a, drafted);
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){0}, &a.header, &s, &err), HM_OK);
    if (drafted && row.draft_row) row.draft_row = draft;
    if (row.target_row) row.target_row = target;
    struct hm_log_row before = row;
    before.index = 4;
    before.token = -1;
    before.target_row = target;
    before.draft_row = drafted ? draft : NULL;
    assert_int_equal(hm_stamper_row(s, &before, &err), HM_OK);
    assert_int_equal(hm_stamper_row(s, &row, &err), expected);
    assert_string_equal(err.message, message);
    assert_int_equal(hm_stamper_close(s, NULL, &err), expected); // kept
    audit_close(&a);
}

static void rows_out_of_place_are_refused(void **unused)
{
    (void)unused;
    static const float some[1];
    refuse_row(false, (struct hm_log_row){.index = 4, .target_row = some}, HM_USAGE, "row: index: expected at least 5, found 4");
    refuse_row(false, (struct hm_log_row){.index = 9}, HM_USAGE, "row 9: expected a target row");
    refuse_row(true, (struct hm_log_row){.index = 9, .target_row = some}, HM_USAGE,
               "row 9: expected a draft row, as the header has a draft model");
    refuse_row(false, (struct hm_log_row){.index = 9, .target_row = some, .draft_row = some}, HM_USAGE,
               "row 9: expected no draft row, as the header has no draft model");
    refuse_row(false, (struct hm_log_row){.index = 9, .token = VOCAB, .target_row = some}, HM_RANGE,
               "row: token: expected a token below 40, found 40");
    refuse_row(false, (struct hm_log_row){.index = 9, .token = -2, .target_row = some}, HM_RANGE,
               "row: token: expected a token below 40, found -2");
}

static void refuse_header(const struct hm_log_header *header, const char *message)
{
    struct hm_stamper *s;
    struct hm_error err;
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){0}, header, &s, &err), HM_USAGE);
    assert_string_equal(err.message, message);
}

static void headers_that_speak_of_a_decode_are_refused(void **unused)
{
    (void)unused;
    struct audit a;
    audit_open(&a, false);
    const char *decode = "log header: audit: expected acceptance match, temperature 0 and nodes path";
    struct hm_log_header header = a.header;
    header.acceptance = &a.rules[0];
    refuse_header(&header, decode);
    header = a.header;
    header.temperature = &a.certify_temperature;
    refuse_header(&header, decode);
    header = a.header;
    header.all_nodes = true;
    refuse_header(&header, decode);
    header = a.header;
    header.m = (uint32_t[]){1, HM_M_TREE};
    refuse_header(&header, "log header: audit: m: expected fixed numbers, found \"tree\"");
    // And a decode has no rows, an audit no sequences.
    struct hm_stamper *s;
    struct hm_error err;
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){0}, &a.header, &s, &err), HM_OK);
    assert_int_equal(hm_stamper_sequence(s, &(struct hm_log_sequence){0}, &err), HM_USAGE);
    assert_string_equal(err.message, "sequence: an audit has none");
    hm_stamper_close(s, NULL, NULL);
    header = a.header;
    header.audit = false;
    assert_int_equal(hm_stamper_open(&(struct hm_stamp_options){0}, &header, &s, &err), HM_OK);
    assert_int_equal(hm_stamper_row(s, &(struct hm_log_row){0}, &err), HM_USAGE);
    assert_string_equal(err.message, "row: the header is not that of an audit");
    hm_stamper_close(s, NULL, NULL);
    audit_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_hears_the_log),
        cmocka_unit_test(no_log_is_needed),
        cmocka_unit_test(a_listener_may_stop_the_audit),
        cmocka_unit_test(the_reader_reads_audits),
        cmocka_unit_test(checkers_prove_audits),
        cmocka_unit_test(bad_rows_are_left_out),
        cmocka_unit_test(rows_out_of_place_are_refused),
        cmocka_unit_test(headers_that_speak_of_a_decode_are_refused),
    };
    return cmocka_run_group_tests(tests, log_set_up, log_tear_down);
}
