// The reader of logs: what not every log has. Laws, further divergences, bounds on a restricted vocabulary, rates of the
// filter, audits; what is wrong in them is refused by name.
#include "base/file.h"
#include "certify/log_reader.h"

#include <math.h>
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
#define DIVERGENCES                                                                                                      \
    "\"divergences\":{\"chi2\":{\"star\":[\"0x1p-4\",\"0x1p-3\"],\"certified\":\"no\"},"                                 \
    "\"renyi:1/2\":{\"star\":[\"0x1p-2\",\"inf\"],\"certified\":null}}"
#define THREE "\"certified\":{\"klf\":\"yes\",\"klr\":\"no\",\"tv\":\"undecided\"}"

// Changes of the first `lines` lines of tests/data/reports/tiny.jsonl that give it everything.
struct edit {
    const char *old, *new; // the first place where `old` stands
};
static const struct edit further[] = {
    {"\"margin\":true", "\"margin\":true,\"universal\":true,\"divergences\":[\"chi2\",\"renyi:1/2\"],\"laws\":[\"topk\",\"iid\"]"},
    {"\"regret\":[\"0x1p-1\",\"0x1p-1\"],",
     "\"regret\":[\"0x1p-1\",\"0x1p-1\"],\"standard_accept\":[\"0x1.8p-1\",\"0x1.8p-1\"],"
     "\"divergences\":{\"renyi:1/2\":[\"0x1p-5\",\"0x1p-5\"],\"chi2\":[\"0x1p-6\",\"inf\"]},"
     "\"e\":[\"0x1p-7\",\"0x1p-7\"],\"ratio\":[\"0x1p+0\",\"0x1p+0\"],"},
    {"\"radius\":[\"0x1p-1\",\"0x1p-1\"],\"covered\":\"yes\",\"certified\":{\"klf\":\"yes\",\"klr\":\"no\",\"tv\":\"no\"}",
     "\"universal\":{\"klf\":[\"0x1p-8\",\"0x1p-8\"],\"klr\":[\"0x1p-9\",\"0x1p-9\"]},\"radius\":[\"0x1p-1\",\"inf\"],"
     "\"active\":\"delta\",\"covered\":\"yes\",\"certified\":{\"klf\":\"yes\",\"klr\":\"no\",\"tv\":\"no\"},"
     "\"restricted\":{\"k\":1,\"mass\":[\"0x1p-1\",\"0x1p-1\"],\"kl\":[\"0x1p-2\",\"0x1p-2\"],"
     "\"level_f\":[\"0x1p-3\",\"0x1p-3\"],\"tied_f\":[1,2],\"level_r\":[\"-inf\",\"-inf\"],\"tied_r\":[1,1],"
     "\"klf\":[\"0x1p-4\",\"0x1p-4\"],\"klr\":[\"0x1p-5\",\"0x1p-5\"],\"tv\":[\"0x1p-6\",\"0x1p-6\"]," THREE "}," DIVERGENCES
     ",\"laws\":{\"topk\":{\"accept\":[\"0x1p-1\",\"0x1p+0\"],\"e\":[\"0x0p+0\",\"0x1p-1\"]}}"},
    {"\"radius\":[\"0x1p-1\",\"0x1p-1\"],\"covered\":\"yes\",\"certified\":{\"klf\":\"yes\",\"klr\":\"no\",\"tv\":\"no\"}",
     "\"active\":\"eps\",\"covered\":\"yes\",\"certified\":{\"klf\":\"yes\",\"klr\":\"no\",\"tv\":\"no\"},"
     "\"restricted\":{\"k\":0,\"mass\":[\"0x0p+0\",\"0x0p+0\"],\"klf\":[\"0x0p+0\",\"0x0p+0\"],"
     "\"klr\":[\"0x0p+0\",\"0x0p+0\"],\"tv\":[\"0x0p+0\",\"0x0p+0\"]," THREE "}," DIVERGENCES},
};

// An audit of one row, from the same lines.
static const struct edit audit[] = {
    {"\"decoder\":{\"drafter\":\"standalone\",\"width\":2,\"depth\":2,\"budget\":4,\"selection\":\"draft\",\"traversal\":\"exhaustive\"}",
     "\"decoder\":null"},
    {"\"m\":[\"tree\"]", "\"m\":[2]"},
    {"\"kind\":\"step\",\"sequence\":0,\"t\":1,\"round\":0,\"token\":2,\"source\":\"accepted\",\"node\":0,\"depth\":0,\"child\":1,",
     "\"kind\":\"row\",\"index\":7,\"token\":2,"},
    {"\"support\":8,", ""},
    {"\"m\":2,\"m_from\":\"tree\"", "\"m\":2,\"m_from\":\"fixed\""},
    {"\"m\":2,\"m_from\":\"tree\"", "\"m\":2,\"m_from\":\"fixed\""},
    {"\"sequences\":2,\"rounds\":3,\"steps\":7,\"nodes\":0,", "\"sequences\":0,\"rounds\":0,\"steps\":0,\"nodes\":0,\"rows\":1,"},
    {"\"run\":{\"certify_seconds\":1.5,", "\"run\":{\"hash_seconds\":0.25,\"filter\":{\"decisions\":9,\"undecided\":1},\"certify_seconds\":1.5,"},
};

static char path[] = "/tmp/hallmark-further-XXXXXX";
static int descriptor;

// Removes line `number` (from 1) of a text.
static void drop_line(char *text, int number)
{
    while (--number > 0) text = strchr(text, '\n') + 1;
    char *end = strchr(text, '\n') + 1;
    memmove(text, end, strlen(end) + 1);
}

static bool apply(char *text, const struct edit *edit)
{
    char *at = strstr(text, edit->old);
    if (!at) return false;
    size_t old = strlen(edit->old), new = strlen(edit->new);
    memmove(at + new, at + old, strlen(at + old) + 1);
    memcpy(at, edit->new, new);
    return true;
}

// Writes the log with these changes and one more (NULL: none).
static void write_log(bool is_audit, const struct edit *more)
{
    char *whole, *text = malloc(1 << 16);
    size_t size;
    const struct edit *edits = is_audit ? audit : further;
    size_t count = is_audit ? COUNT(audit) : COUNT(further);
    assert_int_equal(hm_file_read("tests/data/reports/tiny.jsonl", 1 << 20, &whole, &size, NULL), HM_OK);
    assert_non_null(text);
    memcpy(text, whole, size);
    text[size] = 0;
    for (int line = 14; line > (is_audit ? 6 : 5); line--) drop_line(text, line - is_audit); // the end is line 14
    if (is_audit)
        for (int line = 4; line > 1; line--) drop_line(text, line);
    for (size_t i = 0; i < count; i++)
        if (!apply(text, &edits[i])) fail_msg("no %s", edits[i].old);
    if (more && !apply(text, more)) fail_msg("no %s", more->old);
    assert_int_equal(ftruncate(descriptor, 0), 0);
    assert_int_equal(pwrite(descriptor, text, strlen(text), 0), strlen(text));
    free(whole);
    free(text);
}

static void same(struct hm_ival v, double lo, double hi)
{
    assert_true(v.lo == lo && v.hi == hi);
}

static void everything_is_typed(void **unused)
{
    (void)unused;
    struct hm_log_reader *reader;
    struct hm_record r;
    struct hm_error err;
    write_log(false, NULL);
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    const struct hm_record_header *h = hm_log_reader_header(reader);
    assert_true(h->universal && h->law[HM_PROPOSAL_IID] && h->law[HM_PROPOSAL_TOPK] && !h->audit);
    assert_int_equal(h->divergence_count, 2);
    assert_string_equal(h->divergences[1], "renyi:1/2");
    for (int i = 0; i < 4; i++)
        if (hm_log_reader_next(reader, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r.step->index, -1);
    assert_true(r.step->has_standard_accept && r.step->has_e && r.step->has_divergences);
    same(r.step->standard_accept, 0.75, 0.75);
    same(r.step->divergence[0], 0x1p-6, INFINITY);
    same(r.step->divergence[1], 0x1p-5, 0x1p-5);
    same(r.step->e, 0x1p-7, 0x1p-7);
    same(r.step->ratio, 1, 1);
    const struct hm_record_claim *c = &r.step->claims[0];
    assert_true(c->has_universal && c->has_radius && c->has_restricted && c->has_divergences);
    same(c->universal.klr, 0x1p-9, 0x1p-9);
    same(c->radius, 0.5, INFINITY);
    assert_int_equal(c->active, HM_ACTIVE_DELTA);
    assert_true(!c->restricted.no_mass && !c->restricted.vacuous);
    assert_int_equal(c->restricted.k, 1);
    same(c->restricted.kl, 0.25, 0.25);
    same(c->restricted.level.level_r, -INFINITY, -INFINITY);
    same(c->restricted.level.tv, 0x1p-6, 0x1p-6);
    assert_int_equal(c->restricted.level.tied_f[1], 2);
    assert_int_equal(c->restricted.certified[2], HM_CERT_UNDECIDED);
    same(c->divergence[0].star, 0x1p-4, 0x1p-3);
    assert_true(c->divergence[0].has_verdict && !c->divergence[1].has_verdict);
    assert_true(c->has_law[HM_PROPOSAL_TOPK] && !c->has_law[HM_PROPOSAL_IID]);
    same(c->law[HM_PROPOSAL_TOPK].accept, 0.5, 1);
    c = &r.step->claims[1];
    assert_int_equal(c->active, HM_ACTIVE_EPS);
    assert_true(c->restricted.no_mass && !c->restricted.vacuous && !c->has_universal && !c->has_law[0]);
    hm_log_reader_close(reader);
}

static void audits_are_typed(void **unused)
{
    (void)unused;
    struct hm_log_reader *reader;
    struct hm_record r;
    struct hm_error err;
    write_log(true, NULL);
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    assert_true(hm_log_reader_header(reader)->audit);
    assert_null(hm_log_reader_header(reader)->traversal);
    if (hm_log_reader_next(reader, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r.kind, HM_RECORD_ROW);
    assert_int_equal(r.step->index, 7);
    assert_int_equal(r.step->token, 2);
    assert_int_equal(r.step->sequence, -1);
    assert_true(r.step->claims[0].has_accepts && !r.step->claims[0].m_tree);
    if (hm_log_reader_next(reader, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r.kind, HM_RECORD_END);
    assert_int_equal(r.end->rows, 1);
    assert_int_equal(r.end->decisions, 9);
    assert_int_equal(r.end->filter_undecided, 1);
    assert_true(r.end->hash_seconds == 0.25);
    hm_log_reader_close(reader);
}

static const struct {
    bool audit;
    struct edit edit;
    const char *message;
} BAD[] = {
    {false, {"\"universal\":true", "\"universal\":1"}, "line 1: universal: expected true or false, found 1"},
    {false, {"[\"chi2\",\"renyi:1/2\"]", "[\"chi2\",2]"}, "line 1: divergences: expected names, found 2"},
    {false, {"[\"chi2\",\"renyi:1/2\"]", "[\"chi2\",\"chi2\"]"}, "line 1: divergences: expected different names, found \"chi2\""},
    {false, {"[\"chi2\",\"renyi:1/2\"]", "\"chi2\""}, "line 1: divergences: expected an array, found \"chi2\""},
    {false, {"[\"topk\",\"iid\"]", "[\"topk\",\"topk\"]"}, "line 1: laws: expected different ones of \"iid\", \"topk\", found \"topk\""},
    {false, {"[\"topk\",\"iid\"]", "[\"score\"]"}, "line 1: laws: expected different ones of \"iid\", \"topk\", found \"score\""},
    {false, {"\"standard_accept\":[", "\"standard_accept\":[\"0x1p+0\","}, "line 5: standard_accept: expected [lower, upper] of hexadecimal floats, found an array of another length"},
    {false, {"\"divergences\":{\"renyi:1/2\":[\"0x1p-5\",\"0x1p-5\"],", "\"divergences\":{"}, "line 5: divergences.renyi:1/2: expected [lower, upper] of hexadecimal floats, found nothing"},
    {false, {"\"ratio\":[\"0x1p+0\",\"0x1p+0\"],", ""}, "line 5: ratio: expected `e` and `ratio` together, found one of them"},
    {false, {"\"e\":[\"0x1p-7\",\"0x1p-7\"],", ""}, "line 5: e: expected `e` and `ratio` together, found one of them"},
    {false, {"\"klr\":[\"0x1p-9\",\"0x1p-9\"]", "\"klx\":0"}, "line 5: claims[0].universal.klr: expected [lower, upper] of hexadecimal floats, found nothing"},
    {false, {"\"active\":\"delta\"", "\"active\":\"both\""}, "line 5: claims[0].active: expected \"eps\" or \"delta\", found \"both\""},
    {false, {"\"restricted\":{\"k\":1", "\"restricted\":{\"k\":9"}, "line 5: claims[0].restricted.k: expected an integer from 0 to 8, found 9"},
    {false, {"\"tied_f\":[1,2],\"level_r\":[\"-inf\"", "\"tied_g\":[1,2],\"level_r\":[\"-inf\""}, "line 5: claims[0].restricted.tied_f: expected an array, found nothing"},
    {false, {"\"tv\":\"undecided\"", "\"tv\":\"perhaps\""}, "line 5: claims[0].restricted.certified.tv: expected \"no\" or \"yes\" or \"vacuous\" or \"inapplicable\" or \"undecided\", found \"perhaps\""},
    {false, {"\"star\":[\"0x1p-2\",\"inf\"],\"certified\":null", "\"star\":[\"0x1p-2\",\"inf\"],\"certified\":7"}, "line 5: claims[0].divergences.renyi:1/2.certified: expected \"no\" or \"yes\" or \"vacuous\" or \"inapplicable\" or \"undecided\", found 7"},
    {false, {"\"accept\":[", "\"accepts\":["}, "line 5: claims[0].laws.topk.accept: expected [lower, upper] of hexadecimal floats, found nothing"},
    {false, {"\"kind\":\"round\"", "\"kind\":\"row\""}, "line 4: kind: expected a row in audits only, found another header"},
    {true, {"\"index\":7", "\"index\":-1"}, "line 2: index: expected an integer of at least 0, found -1"},
    {true, {"\"token\":2", "\"token\":8"}, "line 2: token: expected an integer from 0 to 7, found 8"},
    {true, {"\"rows\":1", "\"rows\":2"}, "line 3: rows: expected 1, found 2"},
    {true, {"\"kind\":\"row\"", "\"kind\":\"sequence\""}, "line 2: kind: expected a row, as this is an audit, found a sequence"},
    {true, {"\"kind\":\"row\"", "\"kind\":\"step\""}, "line 2: kind: expected a sequence before its steps, found none"},
};

static void what_is_wrong_is_named(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(BAD); i++) {
        char expected[500];
        struct hm_log_reader *reader = NULL;
        struct hm_error err = {.message = ""};
        struct hm_record r = {.kind = HM_RECORD_END};
        write_log(BAD[i].audit, &BAD[i].edit);
        snprintf(expected, sizeof expected, "%s: %s", path, BAD[i].message);
        hm_status rc = hm_log_reader_open(path, &reader, &err);
        while (!rc && r.kind != HM_RECORD_NONE) rc = hm_log_reader_next(reader, &r, &err);
        assert_string_equal(err.message, expected);
        hm_log_reader_close(reader);
    }
}

// `run` may be anything at all.
static void rates_that_are_none_are_absent(void **unused)
{
    (void)unused;
    static const struct edit edits[] = {{"\"decisions\":9", "\"decisions\":\"9\""}, {"\"filter\":{", "\"filters\":{"}, {"9,\"undecided\":1}", "9,\"undecided\":-1}"}};
    for (size_t i = 0; i < COUNT(edits); i++) {
        struct hm_log_reader *reader;
        struct hm_record r = {.kind = HM_RECORD_ROW};
        write_log(true, &edits[i]);
        assert_int_equal(hm_log_reader_open(path, &reader, NULL), HM_OK);
        while (r.kind != HM_RECORD_END) assert_int_equal(hm_log_reader_next(reader, &r, NULL), HM_OK);
        assert_true(r.end->decisions == -1 && r.end->filter_undecided == -1);
        hm_log_reader_close(reader);
    }
}

static int set_up(void **state)
{
    (void)state;
    descriptor = mkstemp(path);
    return descriptor < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(descriptor);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_typed), cmocka_unit_test(audits_are_typed),
                                       cmocka_unit_test(what_is_wrong_is_named),
                                       cmocka_unit_test(rates_that_are_none_are_absent)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
