// The reader of logs: numbers, records, how a log ends, and what it refuses.
#include "certify/log_reader.h"
#include "certify/log_reader_fields.h"

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

static void reals_are_parsed_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0x0p+0", 0.0}, {"0x1p+0", 1.0}, {"-0x1.8p+3", -12.0}, {"0x1.921fb54442d18p+1", 0x1.921fb54442d18p+1},
                {"0x1.fffffffffffffp+1023", 0x1.fffffffffffffp+1023}, {"0x0.0000000000001p-1022", 0x1p-1074}, {"0x1p-1074", 0x1p-1074},
                {"0x1p5", 32.0}, {"inf", INFINITY}, {"-inf", -INFINITY}, {"0x1.0000000000000p+0", 1.0}};
    static const char *const bad[] = {"", "1", "1.0", "0x1", "0x1p", "0x1p+", "0xp+0", "0x.p+0", "0x1p+1024", "0x1p-1075", "0x1.00000000000001p+0",
                                      "nan", "+inf", "infinity", "0X1p+0", "0x1P+0", "0x1.Fp+0", " 0x1p+0", "0x1p+0 ", "0x1,8p+0", "0x1p+99999999999",
                                      "--0x1p+0", "0x1..8p+0", "0x1.8p-1074", "0xfffffffffffffffffp+0"};
    double value;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (!hm_parse_real(good[i].text, &value)) fail_msg("refused %s", good[i].text);
        assert_memory_equal(&value, &good[i].value, sizeof value);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (hm_parse_real(bad[i], &value)) fail_msg("accepted \"%s\" as %a", bad[i], value);
}

// Whatever %a prints comes back, bit by bit.
static void reals_round_trip(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252u; // seed of a xorshift
    for (int i = 0; i < 200000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value, back;
        char text[64];
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, "%a", value);
        assert_true(hm_parse_real(text, &back));
        assert_memory_equal(&value, &back, sizeof value);
    }
}

static struct hm_log_reader *open_log(const char *path)
{
    struct hm_log_reader *reader;
    struct hm_error err;
    if (hm_log_reader_open(path, &reader, &err)) fail_msg("%s", err.message);
    return reader;
}

static void next(struct hm_log_reader *reader, struct hm_record *record)
{
    struct hm_error err;
    if (hm_log_reader_next(reader, record, &err)) fail_msg("%s", err.message);
}

static void records_are_typed(void **state)
{
    (void)state;
    struct hm_log_reader *reader = open_log("tests/data/reports/tiny.jsonl");
    const struct hm_record_header *h = hm_log_reader_header(reader);
    struct hm_record r;
    assert_int_equal(h->claim_count, 2);
    assert_string_equal(h->claims[1], "additive:1/10");
    assert_int_equal(h->m[0], HM_M_TREE);
    assert_true(h->margin && !h->all_nodes && !h->has_rows);
    assert_string_equal(h->target.name, "target");
    assert_int_equal(h->draft.vocab, 8);
    next(reader, &r);
    assert_int_equal(r.kind, HM_RECORD_SEQUENCE);
    assert_int_equal(r.line, 2);
    assert_string_equal(r.sequence->id, "81"); // an integer in the log
    assert_string_equal(r.sequence->seed, "18446744073709551615");
    next(reader, &r);
    assert_int_equal(r.kind, HM_RECORD_STEP);
    assert_int_equal(r.step->round, -1);
    assert_false(r.step->has_draft || r.step->claims[0].has_verdicts);
    assert_string_equal(r.step->claims[0].why, "leaf");
    next(reader, &r);
    assert_int_equal(r.kind, HM_RECORD_ROUND);
    assert_int_equal(r.round->nodes, 4);
    assert_int_equal(r.round->depth[3], 2);
    assert_true(r.round->verify_seconds == 0.5 && r.round->logq[1] == -1 && r.round->expected_accept.lo == 2);
    next(reader, &r);
    const struct hm_record_claim *claim = &r.step->claims[0];
    assert_int_equal(r.step->source, HM_SOURCE_ACCEPTED);
    assert_int_equal(r.step->child, 1);
    assert_true(r.step->kl_qp.hi == 0.1875 && r.step->regret.lo == 0.5);
    assert_string_equal(r.step->text, " two");
    assert_true(claim->has_level && claim->has_margin && claim->has_radius && claim->has_verdicts);
    assert_true(claim->level.klr.lo == 0.5 && claim->margin.gap.hi == 0.3125 && claim->level.tied_f[1] == 2);
    assert_int_equal(claim->certified[0], HM_CERT_YES);
    assert_int_equal(claim->certified[2], HM_CERT_NO);
    assert_int_equal(claim->edge[1].id, 2);
    size_t steps = 2;
    for (; r.kind != HM_RECORD_NONE; next(reader, &r)) {
        if (r.kind == HM_RECORD_STEP) steps++;
        if (r.kind == HM_RECORD_END) assert_int_equal(r.end->undecided, 1);
        if (r.kind == HM_RECORD_STEP && r.step->t == 5) {
            assert_true(r.step->claims[1].has_distances && !r.step->claims[1].has_level); // vacuous
            assert_true(r.step->claims[1].level.klf.lo == INFINITY);
            assert_int_equal(r.step->finish, HM_FINISH_LENGTH);
        }
    }
    assert_int_equal(steps, 8); // the one looked at above was counted twice
    assert_int_equal(hm_log_reader_state(reader), HM_LOG_COMPLETE);
    hm_log_reader_close(reader);
}

// Cut at every byte, a log is complete, lacks its end, or is cut inside a line; never an error once its header is whole.
static void every_prefix_is_a_state(void **state)
{
    (void)state;
    static char text[1 << 17];
    FILE *file = fopen("tests/data/reports/tiny.jsonl", "rb");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text, file), header = (size_t)(strchr(text, '\n') - text);
    fclose(file);
    char path[] = "/tmp/hallmark-prefix-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    for (size_t cut = size; cut > 0; cut -= cut > 11 ? 11 : cut) {
        struct hm_log_reader *reader;
        struct hm_record r = {.kind = HM_RECORD_END};
        struct hm_error err;
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        hm_status rc = hm_log_reader_open(path, &reader, &err);
        if (cut < header) {
            assert_int_equal(rc, HM_FORMAT);
            continue;
        }
        assert_int_equal(rc, HM_OK);
        for (; r.kind != HM_RECORD_NONE;) next(reader, &r);
        bool between = text[cut - 1] == '\n' || text[cut] == '\n';
        assert_int_equal(hm_log_reader_state(reader), cut >= size - 1 ? HM_LOG_COMPLETE : between ? HM_LOG_NO_END : HM_LOG_CUT_LINE);
        hm_log_reader_close(reader);
    }
    close(fd);
    unlink(path);
}

static const struct {
    const char *name, *message;
} BAD[] = {
    // Each file of tests/data/bad-logs has one fault; the message names its line and field.
    {"after-the-end", "line 15: kind: expected nothing after the end record, found another line"},
    {"array", "line 1: record: expected an object, found an array"},
    {"bad-utf8", "line 5: byte 1368: expected UTF-8, found byte 0xff"},
    {"certified-missing", "line 5: claims[0].certified: expected an object or null, found nothing"},
    {"chain-missing", "line 2: chain: expected 64 lower-case hexadecimal digits, found nothing"},
    {"chain-upper", "line 1: chain: expected 64 lower-case hexadecimal digits, found \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""},
    {"child-outside", "line 5: child: expected an integer from 1 to 3, found 4"},
    {"claim-fixed", "line 5: claims[0].m_from: expected \"tree\", found \"fixed\""},
    {"claim-k", "line 5: claims[0].k: expected an integer from 0 to 8, found 9"},
    {"claim-number", "line 1: claims: expected rule strings, found 1"},
    {"claim-other-rule", "line 5: claims[0].rule: expected greedy, found \"additive:1/10\""},
    {"claims-missing-one", "line 5: claims: expected 2 entries, found 1"},
    {"covered-missing", "line 5: claims[0].covered: expected \"no\" or \"yes\" or \"undecided\", found nothing"},
    {"cut-header", "line 1: kind: expected a header record, found an incomplete line"},
    {"draft-text", "line 1: draft: expected an object, found \"none\""},
    {"duplicate-key", "line 6: key \"t\" appears twice in one object"},
    {"empty", "line 1: kind: expected a header record, found an empty file"},
    {"end-counts", "line 14: steps: expected 7, found 8"},
    {"kind-unknown", "line 2: kind: expected \"sequence\" or \"round\" or \"step\" or \"node\" or \"row\" or \"end\", found \"turn\""},
    {"klf-missing", "line 5: claims[1].klf: expected [lower, upper] of hexadecimal floats, found nothing"},
    {"level-missing", "line 5: claims[0].level_f: expected [lower, upper] of hexadecimal floats, found nothing"},
    {"logq-number", "line 4: logq: expected hexadecimal floats or \"-inf\", found -1"},
    {"lse-decimal", "line 5: lse: expected [lower, upper] of hexadecimal floats, found \"2.0\""},
    {"lse-one-end", "line 5: lse: expected [lower, upper] of hexadecimal floats, found an array of another length"},
    {"lse-overflow", "line 5: lse: expected [lower, upper] of hexadecimal floats, found \"0x1p+1024\""},
    {"lse-reversed", "line 5: lse: expected lower <= upper, found [\"0x1p+1\", \"0x1p+0\"]"},
    {"lse-too-precise", "line 5: lse: expected [lower, upper] of hexadecimal floats, found \"0x1.00000000000001p+0\""},
    {"m-zero", "line 1: m: expected \"tree\" or integers of at least 1, found 0"},
    {"no-claims", "line 1: claims: expected 1 to 64 entries, found 0"},
    {"no-decoder-depth", "line 1: decoder.depth: expected an integer of at least 0, found nothing"},
    {"no-target", "line 1: target: expected an object, found nothing"},
    {"node-outside", "line 5: node: expected an integer from 0 to 3, found 4"},
    {"nodes-some", "line 1: nodes: expected \"path\" or \"all\", found \"some\""},
    {"not-a-header", "line 1: kind: expected \"header\", found \"sequence\""},
    {"not-json", "line 1: byte 0: not valid JSON"},
    {"parent-later", "line 4: parent: expected an earlier node, found 2"},
    {"prefill-late", "line 5: source: expected \"prefill\" only at t = 0 with round null, found another place"},
    {"prompt-outside", "line 2: prompt: expected token ids of the target's vocabulary, found 8"},
    {"round-skips", "line 8: round: expected 1, found 2"},
    {"round-t", "line 8: t: expected 4, found 5"},
    {"row-hash-short", "line 5: row.sha256: expected 64 lower-case hexadecimal digits, found \"ab\""},
    {"seed-too-large", "line 2: seed: expected digits below 2^64, found something else"},
    {"sequence-skips", "line 12: sequence: expected 1, found 2"},
    {"source-unknown", "line 5: source: expected \"prefill\" or \"accepted\" or \"continuation\", found \"guess\""},
    {"step-after-finish", "line 12: t: expected no step after the one with `finish`, found another step"},
    {"step-before-round", "line 4: source: expected a round before its steps, found none"},
    {"step-first", "line 2: kind: expected a sequence before its steps, found none"},
    {"step-gap", "line 6: t: expected 2, found 3"},
    {"step-twice", "line 6: t: expected 2, found 1"},
    {"temperature-negative", "line 1: temperature: expected a rational such as \"3/10\", not negative, found \"-1\""},
    {"temperature-text", "line 1: temperature: expected a rational such as \"3/10\", not negative, found \"hot\""},
    {"tied-negative", "line 5: claims[0].tied_r: expected two counts, found -1"},
    {"token-fraction", "line 5: token: expected an integer from 0 to 7, found 1.5"},
    {"token-outside", "line 5: token: expected an integer from 0 to 7, found 8"},
    {"top-nan", "line 5: top: expected a logit: a hexadecimal float or \"-inf\", found \"nan\""},
    {"top-short", "line 5: top: expected 2 entries, found 1"},
    {"tree-ragged", "line 4: token: expected 4 entries, found 3"},
    {"verdict-maybe", "line 5: claims[0].certified.tv: expected \"no\" or \"yes\" or \"vacuous\" or \"inapplicable\" or \"undecided\", found \"maybe\""},
    {"version-2", "line 1: hallmark: expected 1, found 2"},
    {"vocab-one", "line 1: target.vocab: expected an integer from 2 to 2147483647, found 1"},
    {"why-missing", "line 3: claims[0].why: expected a string, found nothing"}};

static void bad_logs_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(BAD); i++) {
        char path[200], expected[600];
        struct hm_log_reader *reader = NULL;
        struct hm_error err = {0};
        struct hm_record r = {.kind = HM_RECORD_END};
        snprintf(path, sizeof path, "tests/data/bad-logs/%s.jsonl", BAD[i].name);
        snprintf(expected, sizeof expected, "%s: %s", path, BAD[i].message);
        hm_status rc = hm_log_reader_open(path, &reader, &err);
        while (!rc && r.kind != HM_RECORD_NONE) rc = hm_log_reader_next(reader, &r, &err);
        assert_string_equal(err.message, expected);
        assert_int_equal(rc, err.code);
        if (reader) { // it stays failed
            assert_int_equal(hm_log_reader_next(reader, &r, &err), rc);
            assert_string_equal(err.message, expected);
        }
        hm_log_reader_close(reader);
    }
}

static void a_missing_log_is_named(void **state)
{
    (void)state;
    struct hm_log_reader *reader;
    struct hm_error err;
    assert_int_equal(hm_log_reader_open("tests/data/no-such.jsonl", &reader, &err), HM_IO);
    assert_string_equal(err.message, "tests/data/no-such.jsonl: cannot open: No such file or directory");
    assert_int_equal(hm_log_reader_open("tests", &reader, &err), HM_IO);
    assert_string_equal(err.message, "tests: cannot read: Is a directory");
}

// A line without an end is given up at the limit, not when memory is short.
static void a_line_has_a_limit(void **state)
{
    (void)state;
    char path[] = "/tmp/hallmark-line-XXXXXX", expected[200];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)HM_LOG_LONGEST_LINE + 4096), 0);
    struct hm_log_reader *reader;
    struct hm_error err;
    assert_int_equal(hm_log_reader_open(path, &reader, &err), HM_RANGE);
    snprintf(expected, sizeof expected, "%s: line 1: expected at most 16777216 bytes, found more", path);
    assert_string_equal(err.message, expected);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reals_are_parsed_strictly), cmocka_unit_test(reals_round_trip),
                                       cmocka_unit_test(records_are_typed),         cmocka_unit_test(every_prefix_is_a_state),
                                       cmocka_unit_test(bad_logs_are_refused),      cmocka_unit_test(a_missing_log_is_named),
                                       cmocka_unit_test(a_line_has_a_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
