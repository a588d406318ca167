// Shared by the tests of the round loop: random models and drafters, a session opened from one readable setting, and the
// decode run to its end.
#ifndef HM_TESTS_SESSION_SUPPORT_H
#define HM_TESTS_SESSION_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/session.h"
#include "tests/seed.h"

#include <string.h>

// The target, and drafters on its own device and on a peer: the target itself, and a stranger.
struct models {
    struct hm_device *device, *peer;
    struct hm_model *target, *self, *other, *peer_self, *peer_other;
    struct hm_drafter *custom;
};

enum drafting { PLAIN, SELF, STRANGER, NGRAM, PEER_SELF, PEER_STRANGER, DRAFTINGS, CUSTOM };

struct setting {
    enum drafting drafting;
    const char *temperature, *top_p, *rule;
    size_t top_k, width, depth, budget, cap;
    enum hm_selection selection;
    bool leaf_stop, covering, serial;
    size_t score_top, score_frontier;
    unsigned draft_threads;
    enum hm_acceptance_kind stochastic; // STANDARD or NUCLEUS; else match, or the rule where there is one
    enum hm_proposal proposal;
    enum hm_budget_kind fidelity;
    const char *limit;
    uint64_t seed;
    int32_t eos; // -1: none
};

// A session with all that it borrows.
struct opened {
    struct hm_rational temperature, certify, top_p, limit;
    struct hm_rule rule;
    struct hm_drafter *drafter;
    struct hm_session_options options;
    struct hm_session *session;
    int32_t eos;
};

static inline struct hm_model *open_test_model(struct hm_device *device, const char *name)
{
    struct hm_error err = {0};
    struct hm_model *model = NULL;
    char dir[128];
    snprintf(dir, sizeof dir, "tests/data/checkpoints/%s", name);
    if (hm_model_open(dir, device, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static inline void open_models(struct models *m, unsigned threads, unsigned peer_threads)
{
    struct hm_error err = {0};
    *m = (struct models){0};
    if (hm_device_open_cpu(threads, HM_ISA_BEST, &m->device, &err)) fail_msg("%s", err.message);
    if (hm_device_open_peer(m->device, peer_threads, &m->peer, &err)) fail_msg("%s", err.message);
    m->target = m->self = open_test_model(m->device, "qwen3-bf16");
    m->other = open_test_model(m->device, "qwen2-f16");
    m->peer_self = open_test_model(m->peer, "qwen3-bf16");
    m->peer_other = open_test_model(m->peer, "qwen2-f16");
}

static inline void close_models(struct models *m)
{
    hm_model_close(m->peer_self);
    hm_model_close(m->peer_other);
    hm_model_close(m->target);
    hm_model_close(m->other);
    hm_device_close(m->peer);
    hm_device_close(m->device);
}

static inline int set_up_models(void **state)
{
    static struct models m;
    open_models(&m, 2, 0);
    *state = &m;
    return 0;
}

static inline int tear_down_models(void **state)
{
    close_models(*state);
    return 0;
}

static inline hm_status open_drafter(const struct models *m, const struct setting *s, size_t positions,
                                     struct hm_drafter **out, struct hm_error *err)
{
    struct hm_model *const model[] = {[SELF] = m->self, [STRANGER] = m->other, [PEER_SELF] = m->peer_self,
                                      [PEER_STRANGER] = m->peer_other, [CUSTOM] = NULL};
    *out = NULL;
    if (s->drafting == PLAIN || s->drafting == CUSTOM) return HM_OK;
    if (s->drafting == NGRAM) return hm_drafter_open_ngram(out, err);
    return hm_drafter_open_standalone(model[s->drafting], hm_model_info(m->target)->vocab, positions, s->width, s->depth, out,
                                      err);
}

static inline void open_session(const struct models *m, const struct setting *s, size_t positions, struct opened *o)
{
    struct hm_error err = {0};
    memset(o, 0, sizeof *o);
    hm_rational_init(&o->temperature);
    hm_rational_init(&o->certify);
    hm_rational_init(&o->top_p);
    hm_rational_init(&o->limit);
    o->eos = s->eos;
    assert_int_equal(hm_rational_parse(s->temperature, &o->temperature, &err), HM_OK);
    hm_rational_set_int(&o->certify, 1, 1);
    if (s->stochastic) hm_rational_set(&o->certify, &o->temperature);
    if (s->limit) assert_int_equal(hm_rational_parse(s->limit, &o->limit, &err), HM_OK);
    if (s->top_p) assert_int_equal(hm_rational_parse(s->top_p, &o->top_p, &err), HM_OK);
    if (s->rule) assert_int_equal(hm_rule_parse(s->rule, &o->rule, &err), HM_OK);
    hm_status rc = open_drafter(m, s, positions, &o->drafter, &err);
    o->options = (struct hm_session_options){
        .target = m->target, .drafter = s->drafting == CUSTOM ? m->custom : o->drafter, .width = s->width,
        .depth = s->depth, .budget = s->budget, .cap = s->cap, .selection = s->selection, .covering = s->covering,
        .leaf_stop = s->leaf_stop, .score_top = s->score_top, .score_frontier = s->score_frontier, .serial = s->serial,
        .draft_threads = s->draft_threads, .positions = positions, .eos = &o->eos, .eos_count = s->eos >= 0,
        .fidelity = s->fidelity, .fidelity_limit = s->limit ? &o->limit : NULL,
        .acceptance = {.kind = s->stochastic ? s->stochastic : s->rule ? HM_ACCEPT_RULE : HM_ACCEPT_MATCH,
                       .rule = s->rule ? &o->rule : NULL, .proposal = s->proposal, .temperature = &o->temperature,
                       .certify_temperature = &o->certify, .top_k = s->top_k, .top_p = s->top_p ? &o->top_p : NULL,
                       .seed = s->seed}};
    if (!rc) rc = hm_session_open(&o->options, &o->session, &err);
    if (rc) fail_msg("status %d: %s", (int)rc, err.message);
}

static inline void close_session(struct opened *o, const struct setting *s)
{
    hm_session_close(o->session);
    hm_drafter_close(o->drafter);
    if (s->rule) hm_rule_clear(&o->rule);
    hm_rational_clear(&o->temperature);
    hm_rational_clear(&o->certify);
    hm_rational_clear(&o->top_p);
    hm_rational_clear(&o->limit);
}

enum { SEQUENCE = 3 }; // whose random numbers the tests use

// Decodes one prompt; the caller frees the tokens.
static inline int32_t *decode(struct opened *o, const int32_t *prompt, size_t length, size_t most,
                              const struct hm_listener *listener, struct hm_session_counts *counts, size_t *count)
{
    struct hm_error err = {0};
    int32_t *token = NULL;
    hm_status rc = hm_session_run(o->session, SEQUENCE, prompt, length, most, listener, counts, &token, count, &err);
    if (rc) fail_msg("status %d: %s", (int)rc, err.message);
    return token;
}

// The tokens of plain decoding with the same draws.
static inline int32_t *decode_plainly(const struct models *m, const struct setting *s, const int32_t *prompt, size_t length,
                                      size_t most, size_t positions, size_t *count)
{
    struct setting plain = {.temperature = s->temperature, .top_p = s->top_p, .top_k = s->top_k, .seed = s->seed, .eos = s->eos};
    struct opened o;
    struct hm_session_counts counts = {0};
    struct hm_listener listener = {0};
    open_session(m, &plain, positions, &o);
    int32_t *token = decode(&o, prompt, length, most, &listener, &counts, count);
    close_session(&o, &plain);
    return token;
}

static inline void random_prompt(uint64_t *random, size_t vocab, int32_t *prompt, size_t length)
{
    for (size_t i = 0; i < length; i++) prompt[i] = (int32_t)test_below(random, vocab);
}

#endif
