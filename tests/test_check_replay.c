// The checker fed by a replay: rows come from memory, in the order of the log, and are judged as those of shards are.
#include "tests/test_check_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A model that knows the rows of a golden log by the order in which the log names them.
struct memory {
    const struct test_log *log;
    struct hm_check_replay_error error;
    char *shard[2]; // bytes of the log's row files
    size_t data[2], vocab;
    size_t line, rows, sequences, rounds, emitted, nodes;
    long spoil;             // a row to change, or -1
    const char *fail;       // a callback that fails
    bool unknown;           // says of every draft row that there is none
    bool reads_draft, kept; // does not compute draft rows; the log's shards lie beside it
    int32_t last;
};

static cJSON *member(const cJSON *object, const char *key)
{
    cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!v) fail_msg("no %s", key);
    return v;
}

static bool falls(struct memory *m, const char *name)
{
    if (!m->fail || strcmp(m->fail, name) != 0) return false;
    m->error = (struct hm_check_replay_error){.refuted = strcmp(name, "header") == 0, .reason = "expected otherwise"};
    snprintf(m->error.field, sizeof m->error.field, "%s", name);
    return true;
}

static bool at_header(void *user, const char *target, const char *draft, uint64_t vocab)
{
    struct memory *m = user;
    assert_int_equal(strlen(target), 64);
    assert_true(strlen(draft) == 64 || strlen(draft) == 0);
    m->vocab = vocab;
    return !falls(m, "header");
}

static bool at_sequence(void *user, const int32_t *prompt, size_t length)
{
    struct memory *m = user;
    assert_true(length > 0 && (uint64_t)prompt[0] < m->vocab);
    m->sequences++;
    return !falls(m, "sequence");
}

static bool at_round(void *user, size_t nodes, const int32_t *parent, const int32_t *token)
{
    struct memory *m = user;
    assert_int_equal(parent[0], -1);
    assert_int_equal(token[0], m->last); // the newest token was told before
    m->nodes = nodes;
    m->rounds++;
    return !falls(m, "round");
}

static bool at_emitted(void *user, int32_t token, int64_t node)
{
    struct memory *m = user;
    assert_true(node >= -1 && (node < (int64_t)m->nodes || m->rounds == 0));
    m->last = token;
    m->emitted++;
    return !falls(m, "emitted");
}

// The next row that the log names for this model, which must be that of the node asked for.
static bool at_row(void *user, bool draft, int64_t node, float *out, bool *known)
{
    struct memory *m = user;
    const cJSON *line;
    assert_true(!draft || !m->reads_draft);
    if (draft) m->line--; // the same record as the target's
    do line = m->log->line[m->line++];
    while (!cJSON_HasObjectItem(line, "row"));
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(line, "source");
    bool prefill = source && strcmp(source->valuestring, "prefill") == 0;
    assert_int_equal(node, prefill ? -1 : (int64_t)member(line, "node")->valuedouble);
    size_t index = (size_t)member(member(line, draft ? "draft_row" : "row"), "index")->valuedouble;
    memcpy(out, m->shard[draft] + m->data[draft] + 4 * m->vocab * index, 4 * m->vocab);
    if ((long)m->rows++ == m->spoil) out[1] += 0x1p-10f;
    *known = !(draft && m->unknown);
    return !falls(m, "row");
}

static void replay(const char *name, struct memory *m, unsigned threads, int code, const char *message)
{
    struct hm_check_result result;
    char path[256];
    struct hm_check_replay callbacks = {.user = m,
                                        .error = &m->error,
                                        .header = at_header,
                                        .sequence = at_sequence,
                                        .round = at_round,
                                        .emitted = at_emitted,
                                        .row = at_row,
                                        .reads_draft = m->reads_draft};
    m->log = test_log_read(name);
    for (int i = 0; i < 2; i++) {
        size_t size;
        snprintf(path, sizeof path, "tests/data/logs/good/%s-%s-00000.safetensors", name, i ? "draft" : "target");
        m->shard[i] = test_read(path, &size);
        m->data[i] = 8 + (size_t)(unsigned char)m->shard[i][0];
    }
    if (m->kept)
        test_copy_rows();
    else
        test_drop_rows();
    test_log_write(m->log, test_path("replay.jsonl"), -1);
    struct hm_check_options options = {.threads = threads, .replay = &callbacks};
    hm_check_log(test_path("replay.jsonl"), &options, &result);
    if (result.exit_code != code || !strstr(result.message, message))
        fail_msg("%s: expected %d and \"%s\", found %d and \"%s\"", name, code, message, result.exit_code,
                 result.message);
    free(m->shard[0]);
    free(m->shard[1]);
}

static void rows_are_proved(void **state)
{
    (void)state;
    static const char *const names[] = {"greedy",       "rules",    "sampled", "relaxed",  "levels",
                                        "standard-iid", "covering", "scored",  "tv-budget"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            struct memory m = {.spoil = -1};
            replay(names[i], &m, threads, 0, "PROVED ");
            const cJSON *end = m.log->line[m.log->count - 1];
            assert_int_equal(m.sequences, member(end, "sequences")->valuedouble);
            assert_int_equal(m.rounds, member(end, "rounds")->valuedouble);
            assert_int_equal(m.emitted, member(end, "steps")->valuedouble);
            test_log_free((struct test_log *)m.log);
        }
}

static void other_rows_are_found(void **state)
{
    (void)state;
    for (long i = 0; i < 5; i++) {
        struct memory m = {.spoil = i};
        replay("greedy", &m, 1 + 2 * (unsigned)(i % 2), 1, i == 0 ? "REFUTED line 3: row.sha256: " : "row.sha256: ");
        test_log_free((struct test_log *)m.log);
    }
    struct memory m = {.spoil = -1, .unknown = true};
    replay("greedy", &m, 1, 1, "draft_row.sha256: expected none");
    test_log_free((struct test_log *)m.log);
}

// A draft whose rows cannot be computed: they are those of the shards, which are absent when there are none.
static void draft_rows_may_be_read(void **state)
{
    (void)state;
    static const char *const names[] = {"greedy", "nucleus-iid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int kept = 0; kept < 2; kept++) {
            struct memory m = {.spoil = -1, .reads_draft = true, .kept = kept};
            replay(names[i], &m, 2, kept ? 0 : 3, kept ? "PROVED " : "CONSISTENT ");
            test_log_free((struct test_log *)m.log);
        }
}

static void failures_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *message;
        int code;
    } table[] = {{"header", "REFUTED line 1: header: expected otherwise", 1},
                 {"sequence", "UNREADABLE line 2: sequence: expected otherwise", 2},
                 {"round", "UNREADABLE line 4: round: expected otherwise", 2},
                 {"row", "UNREADABLE line 3: row: expected otherwise", 2},
                 {"emitted", "UNREADABLE line 3: emitted: expected otherwise", 2}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct memory m = {.spoil = -1, .fail = table[i].name};
        replay("greedy", &m, 1 + (unsigned)(i % 2), table[i].code, table[i].message);
        test_log_free((struct test_log *)m.log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_proved), cmocka_unit_test(other_rows_are_found),
                                       cmocka_unit_test(draft_rows_may_be_read), cmocka_unit_test(failures_are_told)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
