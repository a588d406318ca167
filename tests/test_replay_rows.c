// Replay: rows computed again from what a log says are the rows of the decode, bit for bit, for any tree, draft, batching and
// vocabulary; and what a log may say that no model can have seen.
#include "cli/replay.h"
#include "decode/session.h"
#include "tests/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char target_dir[] = "tests/data/checkpoints/qwen3-bf16"; // 256 tokens, 512 positions
static const char *const draft_dirs[] = {target_dir, "tests/data/checkpoints/qwen2-f16", "tests/data/checkpoints/llama3-f32"};

struct models {
    struct hm_device *device;
    struct hm_model *target, *draft[3];
    struct hm_replay *replay[3]; // of the target with each draft
    size_t vocab;
};

static struct hm_model *open_model(struct hm_device *device, const char *dir)
{
    struct hm_error err;
    struct hm_model *model;
    if (hm_model_open(dir, device, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static struct hm_replay *open_replay(const char *draft)
{
    struct hm_error err;
    struct hm_replay *replay;
    if (hm_replay_open(target_dir, draft, 1, &replay, &err)) fail_msg("%s", err.message);
    return replay;
}

static int set_up(void **state)
{
    static struct models m;
    struct hm_error err;
    if (hm_device_open_cpu(2, HM_ISA_BEST, &m.device, &err)) fail_msg("%s", err.message);
    m.target = open_model(m.device, target_dir);
    m.vocab = hm_model_info(m.target)->vocab;
    for (int i = 0; i < 3; i++) {
        m.draft[i] = open_model(m.device, draft_dirs[i]);
        m.replay[i] = open_replay(draft_dirs[i]);
    }
    *state = &m;
    return 0;
}

static int tear_down(void **state)
{
    struct models *m = *state;
    for (int i = 0; i < 3; i++) {
        hm_replay_close(m->replay[i]);
        hm_model_close(m->draft[i]);
    }
    hm_model_close(m->target);
    hm_device_close(m->device);
    hm_replay_close(NULL);
    return 0;
}

// Plays the checker beside a decode: each event is replayed and its rows compared.
struct watch {
    const struct hm_check_replay *replay;
    size_t vocab;
    float *row; // [vocab]
    uint64_t *random;
    uint64_t target_rows, draft_rows;
};

static void must(struct watch *w, bool good)
{
    if (!good) fail_msg("%s: %s", w->replay->error->field, w->replay->error->reason);
}

static void compare(struct watch *w, bool draft, int64_t node, const float *expected)
{
    bool known;
    must(w, w->replay->row(w->replay->user, draft, node, w->row, &known));
    assert_true(known);
    assert_memory_equal(w->row, expected, w->vocab * sizeof *w->row);
    if (draft) w->draft_rows++;
    else w->target_rows++;
}

static hm_status on_round(void *user, const struct hm_round_event *event, struct hm_error *err)
{
    struct watch *w = user;
    const struct hm_tree *tree = event->tree;
    (void)err;
    must(w, w->replay->round(w->replay->user, tree->nodes, tree->parent, tree->token));
    for (size_t i = 0; i < tree->nodes; i++)
        if (test_below(w->random, 2)) compare(w, false, (int64_t)i, event->rows + i * w->vocab);
    return HM_OK;
}

// Draft rows are asked for in some rounds only, before or after the token is emitted.
static hm_status on_step(void *user, const struct hm_step_event *event, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    bool late = test_below(w->random, 2);
    int64_t node = event->round < 0 ? -1 : (int64_t)event->node;
    if (late) must(w, w->replay->emitted(w->replay->user, event->token, event->child));
    compare(w, false, node, event->target_row);
    if (event->draft_row && test_below(w->random, 3) == 0) compare(w, true, node, event->draft_row);
    if (!late) must(w, w->replay->emitted(w->replay->user, event->token, event->child));
    return HM_OK;
}

static hm_status on_node(void *user, const struct hm_node_event *event, struct hm_error *err)
{
    struct watch *w = user;
    (void)err;
    if (event->draft_row && test_below(w->random, 3) == 0) compare(w, true, (int64_t)event->node, event->draft_row);
    return HM_OK;
}

enum { NGRAM = 3, PLAIN, KINDS };

static void decode_and_replay(const struct models *m, uint64_t *random, struct watch *w)
{
    struct hm_error err = {.message = ""};
    struct hm_rational temperature, one;
    struct hm_rule rule;
    struct hm_drafter *drafter = NULL;
    struct hm_session *session = NULL;
    int32_t prompt[64], *token = NULL;
    size_t kind = test_below(random, KINDS), width = 1 + test_below(random, 4), depth = test_below(random, 4), count;
    bool relaxed = test_below(random, 2);
    hm_rational_init(&temperature);
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    hm_rational_set_int(&temperature, (long)test_below(random, 2), 1);
    assert_int_equal(hm_rule_parse("multiplicative:1/2", &rule, &err), HM_OK);
    hm_status rc = HM_OK;
    if (kind == NGRAM) rc = hm_drafter_open_ngram(&drafter, &err);
    else if (kind < NGRAM) rc = hm_drafter_open_standalone(m->draft[kind], m->vocab, 300, width, depth, &drafter, &err);
    struct hm_session_options options = {
        .target = m->target, .drafter = drafter, .width = width, .depth = depth, .budget = test_below(random, 20),
        .cap = test_below(random, 3), .positions = 300,
        .acceptance = {.kind = relaxed ? HM_ACCEPT_RULE : HM_ACCEPT_MATCH, .rule = relaxed ? &rule : NULL, .temperature = &temperature, .certify_temperature = &one,
                       .seed = test_random(random)}};
    if (!rc) rc = hm_session_open(&options, &session, &err);
    w->replay = hm_replay_source(m->replay[kind < NGRAM ? kind : 0]);
    struct hm_listener listener = {.user = w, .round = on_round, .step = on_step, .node = on_node};
    for (uint32_t sequence = 0; sequence < 2 && !rc; sequence++) {
        struct hm_session_counts counts = {0};
        size_t length = 1 + test_below(random, 60);
        for (size_t i = 0; i < length; i++) prompt[i] = (int32_t)test_below(random, m->vocab);
        must(w, w->replay->sequence(w->replay->user, prompt, length));
        rc = hm_session_run(session, sequence, prompt, length, 1 + test_below(random, 60), &listener, &counts, &token, &count,
                            &err);
        free(token);
    }
    if (rc) fail_msg("%s", err.message);
    hm_session_close(session);
    hm_drafter_close(drafter);
    hm_rule_clear(&rule);
    hm_rational_clear(&temperature);
    hm_rational_clear(&one);
}

static void rows_are_those_of_the_decode(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("replay");
    struct watch w = {.vocab = m->vocab, .random = &random};
    w.row = calloc(m->vocab, sizeof *w.row);
    for (size_t i = 0; i < test_count(6, 40, 2000); i++) decode_and_replay(m, &random, &w);
    print_message("%llu target rows, %llu draft rows\n", (unsigned long long)w.target_rows, (unsigned long long)w.draft_rows);
    assert_true(w.target_rows > 100 && w.draft_rows > 10);
    free(w.row);
}

// The cache begins smaller than this context and is opened again, larger: both models read all of it again.
static void long_contexts(void **state)
{
    const struct models *m = *state;
    const struct hm_check_replay *r = hm_replay_source(m->replay[0]);
    struct watch w = {.replay = r, .vocab = m->vocab};
    struct hm_cache *cache;
    struct hm_error err;
    int32_t prompt[500], root = 3, parent = -1;
    float *expected = calloc(m->vocab, sizeof *expected);
    bool known;
    w.row = calloc(m->vocab, sizeof *w.row);
    for (int i = 0; i < 500; i++) prompt[i] = i % 250;
    must(&w, r->sequence(r->user, prompt, 500));
    assert_int_equal(hm_cache_open(m->target, 512, &cache, &err), HM_OK);
    assert_int_equal(hm_model_prefill(m->target, cache, prompt, 500, expected, NULL, &err), HM_OK);
    compare(&w, false, -1, expected);
    for (int i = 0; i < 12; i++) {
        must(&w, r->emitted(r->user, root, -1));
        must(&w, r->round(r->user, 1, &parent, &root));
        assert_int_equal(hm_model_prefill(m->target, cache, &root, 1, expected, NULL, &err), HM_OK);
        compare(&w, false, 0, expected);
        compare(&w, true, 0, expected); // the draft is the same model
    }
    must(&w, r->emitted(r->user, root, -1));
    assert_false(r->round(r->user, 1, &parent, &root)); // position 512
    assert_true(r->error->refuted);
    assert_string_equal(r->error->field, "round");
    hm_cache_close(cache);
    must(&w, r->sequence(r->user, prompt, 5));
    must(&w, r->row(r->user, true, -1, w.row, &known));
    assert_false(known);
    free(expected);
    free(w.row);
}

static void assert_error(const struct hm_check_replay *r, bool good, bool refuted, const char *field, const char *reason)
{
    assert_false(good);
    assert_string_equal(r->error->field, field);
    assert_string_equal(r->error->reason, reason);
    assert_int_equal(r->error->refuted, refuted);
}

static void headers(void **state)
{
    const struct models *m = *state;
    const char *hash = hm_model_info(m->target)->sha256, *other = hm_model_info(m->draft[1])->sha256;
    const struct hm_check_replay *r = hm_replay_source(m->replay[1]);
    char reason[256];
    struct hm_replay *alone = open_replay(NULL);
    const struct hm_check_replay *a = hm_replay_source(alone);
    assert_true(r->header(r->user, hash, other, m->vocab));
    assert_true(a->header(a->user, hash, "", m->vocab));
    snprintf(reason, sizeof reason, "expected %s as the model has it, found %s", hash, other);
    assert_error(r, r->header(r->user, other, other, m->vocab), true, "target.sha256", reason);
    snprintf(reason, sizeof reason, "expected %s as the model has it, found %s", other, hash);
    assert_error(r, r->header(r->user, hash, hash, m->vocab), true, "draft.sha256", reason);
    assert_error(r, r->header(r->user, hash, other, 255), true, "target.vocab", "expected 256, found 255");
    assert_error(r, r->header(r->user, hash, "", m->vocab), false, "draft",
                 "expected no --draft for a log without a draft model");
    assert_error(a, a->header(a->user, hash, other, m->vocab), false, "draft",
                 "expected --draft DIR for a log with a draft model");
    hm_replay_close(alone);
    struct hm_error err;
    assert_int_equal(hm_replay_open("no/such/folder", NULL, 1, &alone, &err), HM_IO);
    assert_null(alone);
    assert_string_equal(err.message, "no/such/folder/config.json: cannot open: No such file or directory");
}

static void hostile_records(void **state)
{
    const struct models *m = *state;
    const struct hm_check_replay *r = hm_replay_source(m->replay[2]);
    int32_t prompt[600] = {1, 2, 3}, bad[3] = {4, 256, -1};
    int32_t parent[4] = {-1, 0, 1, 0}, token[4] = {7, 8, 9, 10};
    float *row = calloc(m->vocab, sizeof *row);
    bool known;
    assert_error(r, r->sequence(r->user, prompt, 0), true, "prompt", "expected at least one token, found none");
    assert_error(r, r->sequence(r->user, prompt, 513), true, "prompt",
                 "expected at most 512 tokens, the model's positions, found 513");
    assert_error(r, r->sequence(r->user, bad, 2), true, "prompt", "expected ids below 256, found 256 at place 1");
    assert_error(r, r->sequence(r->user, bad + 2, 1), true, "prompt", "expected ids below 256, found -1 at place 0");
    assert_true(r->sequence(r->user, prompt, 3));
    assert_error(r, r->row(r->user, false, 1, row, &known), true, "node", "expected a node below 0, found 1");
    assert_true(r->emitted(r->user, 7, -1));
    assert_error(r, r->round(r->user, 2, parent, bad), true, "token", "expected ids below 256, found 256 at node 1");
    assert_error(r, r->round(r->user, 0, parent, token), true, "round", "expected a root that was emitted before");
    int32_t loop[2] = {-1, 1};
    assert_error(r, r->round(r->user, 2, loop, token), true, "round", "token 1: expected a parent from -1 to 0, found 1");
    assert_true(r->round(r->user, 4, parent, token));
    assert_error(r, r->row(r->user, true, 4, row, &known), true, "node", "expected a node below 4, found 4");
    assert_error(r, r->emitted(r->user, 8, 4), true, "child", "expected a node below 4, found 4");
    assert_true(r->emitted(r->user, 9, 2)); // not a child of the root
    assert_false(r->round(r->user, 1, parent, token));
    assert_true(r->error->refuted);
    int32_t long_prompt[70]; // the draft has 64 positions
    for (int i = 0; i < 70; i++) long_prompt[i] = i;
    assert_true(r->sequence(r->user, long_prompt, 70));
    assert_true(r->emitted(r->user, 7, -1));
    assert_true(r->round(r->user, 4, parent, token));
    assert_true(r->row(r->user, false, 3, row, &known) && known);
    assert_false(r->row(r->user, true, 3, row, &known));
    assert_string_equal(r->error->field, "draft_row");
    assert_true(r->error->refuted);
    free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_decode),
        cmocka_unit_test(long_contexts),
        cmocka_unit_test(headers),
        cmocka_unit_test(hostile_records),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
