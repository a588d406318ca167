// What surrounds the rounds: taps reach the drafter complete and in order, a recorded pool changes nothing, drafting beside
// the root's pass gives the same bits as one after the other, sequences follow each other, interrupts are clean.
#include "tests/session_support.h"

// ---- a digest of everything a decode tells

struct digest {
    size_t vocab;
    uint64_t hash, rounds;
    uint32_t stop_at; // raise the interrupt at this token; UINT32_MAX: never
    bool interrupted;
};

static void add(struct digest *d, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < size; i++) d->hash = (d->hash ^ p[i]) * 1099511628211u;
}

static hm_status digest_round(void *user, const struct hm_round_event *e, struct hm_error *err)
{
    struct digest *d = user;
    const struct hm_tree *tree = e->tree;
    size_t n = tree->nodes;
    (void)err;
    add(d, &e->first, sizeof e->first);
    add(d, &e->covered, sizeof e->covered);
    add(d, &e->pool, sizeof e->pool);
    add(d, tree->token, n * sizeof *tree->token);
    add(d, tree->parent, n * sizeof *tree->parent);
    add(d, tree->logq, n * sizeof *tree->logq);
    add(d, e->rows, n * d->vocab * sizeof *e->rows);
    d->rounds++;
    return HM_OK;
}

static hm_status digest_step(void *user, const struct hm_step_event *e, struct hm_error *err)
{
    struct digest *d = user;
    (void)err;
    add(d, &e->token, sizeof e->token);
    add(d, e->target_row, d->vocab * sizeof *e->target_row);
    if (e->draft_row) add(d, e->draft_row, d->vocab * sizeof *e->draft_row);
    if (e->t == d->stop_at) d->interrupted = true;
    return HM_OK;
}

static struct digest digest_of(const struct models *m, const struct setting *s, const int32_t *prompt, size_t length, size_t most)
{
    struct opened o;
    size_t n;
    struct hm_session_counts counts = {0};
    struct digest d = {.vocab = hm_model_info(m->target)->vocab, .stop_at = UINT32_MAX, .hash = 14695981039346656037u};
    struct hm_listener listener = {.user = &d, .round = digest_round, .step = digest_step};
    open_session(m, s, 64, &o);
    free(decode(&o, prompt, length, most, &listener, &counts, &n));
    close_session(&o, s);
    return d;
}

static struct setting random_setting(uint64_t *random)
{
    struct setting s = {.eos = -1, .seed = test_random(random), .width = 1 + test_below(random, 4), .depth = test_below(random, 4),
                        .budget = 1 + test_below(random, 24), .drafting = STRANGER};
    s.temperature = test_below(random, 2) ? "0.8" : "0";
    s.selection = (enum hm_selection)test_below(random, 4);
    s.covering = test_below(random, 5) == 0;
    if (s.covering) s.selection = HM_SELECT_DRAFT;
    s.leaf_stop = test_below(random, 3) == 0;
    if (!s.leaf_stop && !s.covering) s.cap = test_below(random, 3);
    if (test_below(random, 4) == 0) s.score_top = s.budget + 1 + test_below(random, 30);
    return s;
}

// ---- taps

// A standalone drafter that also keeps the taps it is given.
struct tapped {
    struct hm_drafter base;
    struct hm_drafter *inner;
    struct hm_device *target; // where the taps lie
    size_t hidden, seen;
    float *history;           // [seen][tap_count * hidden]
    uint64_t proposals, known_roots;
};

enum { MOST_SEEN = 80 };

static hm_status tapped_propose(struct hm_drafter *base, const int32_t *context, size_t length, size_t depth, struct hm_pool *pool,
                                struct hm_error *err)
{
    struct tapped *t = (struct tapped *)base;
    assert_true(t->seen == length - 1 || t->seen == length);
    t->proposals++;
    t->known_roots += t->seen == length;
    return t->inner->ops->propose(t->inner, context, length, depth, pool, err);
}

static hm_status tapped_observe(struct hm_drafter *base, struct hm_view taps, const uint32_t *row, size_t count, struct hm_error *err)
{
    struct tapped *t = (struct tapped *)base;
    size_t width = base->tap_count * t->hidden;
    (void)err;
    assert_true(t->seen + count <= MOST_SEEN);
    for (size_t i = 0; i < count; i++) {
        struct hm_view at = {taps.buffer, taps.offset + row[i] * width};
        t->target->ops->download(t->target, t->history + t->seen++ * width, at, width);
    }
    return HM_OK;
}

static void tapped_restart(struct hm_drafter *base)
{
    struct tapped *t = (struct tapped *)base;
    t->seen = 0;
    t->inner->ops->restart(t->inner);
}

// The taps of a context by a prefill of its own.
struct expected {
    struct tapped *t;
    struct hm_view from;
    size_t rows;
};

static hm_status compare_chunk(void *user, size_t rows, struct hm_error *err)
{
    struct expected *x = user;
    size_t width = x->t->base.tap_count * x->t->hidden;
    float row[1024];
    (void)err;
    assert_true(width <= 1024);
    for (size_t i = 0; i < rows && x->rows < x->t->seen; i++, x->rows++) {
        struct hm_view at = {x->from.buffer, x->from.offset + i * width};
        x->t->target->ops->download(x->t->target, row, at, width);
        assert_memory_equal(row, x->t->history + x->rows * width, width * sizeof *row);
    }
    return HM_OK;
}

static void compare_taps(const struct models *m, struct tapped *t, const int32_t *context, size_t length)
{
    struct hm_cache *cache = NULL;
    struct hm_error err = {0};
    size_t width = t->base.tap_count * t->hidden;
    struct hm_taps taps = {.layer = t->base.tap, .count = t->base.tap_count};
    taps.to.buffer = m->device->ops->alloc(m->device, HM_PREFILL_ROWS * width);
    assert_non_null(taps.to.buffer);
    struct expected x = {.t = t, .from = taps.to};
    struct hm_prefill_watch watch = {.taps = &taps, .tapped = compare_chunk, .user = &x};
    hm_status rc = hm_cache_open(m->target, length, &cache, &err);
    if (!rc) rc = hm_model_prefill(m->target, cache, context, length, NULL, &watch, &err);
    if (rc) fail_msg("%s", err.message);
    assert_int_equal(x.rows, t->seen);
    hm_cache_close(cache);
    m->device->ops->release(m->device, taps.to.buffer);
}

static void taps_arrive_complete_and_in_order(void **state)
{
    struct models m = *(struct models *)*state;
    static const size_t layer[] = {0, 1};
    static const struct hm_drafter_ops ops = {.propose = tapped_propose, .observe = tapped_observe, .restart = tapped_restart};
    uint64_t random = test_seed("taps"), known = 0;
    for (size_t i = 0; i < test_count(6, 40, 2000); i++) {
        struct setting s = random_setting(&random);
        int32_t context[MOST_SEEN];
        size_t length = 1 + test_below(&random, 20), n;
        s.drafting = test_below(&random, 2) ? PEER_SELF : PEER_STRANGER;
        struct tapped t = {.target = m.device, .hidden = hm_model_info(m.target)->hidden};
        assert_int_equal(open_drafter(&m, &s, 64, &t.inner, NULL), HM_OK);
        t.history = calloc(MOST_SEEN * 2 * t.hidden, sizeof *t.history);
        assert_non_null(t.history);
        t.base = *t.inner;
        t.base.ops = &ops;
        t.base.tap = layer;
        t.base.tap_count = 2;
        m.custom = &t.base;
        s.drafting = CUSTOM;
        struct opened o;
        struct hm_session_counts counts = {0};
        struct hm_listener listener = {0};
        open_session(&m, &s, 64, &o);
        for (int sequence = 0; sequence < 2; sequence++) {
            random_prompt(&random, hm_model_info(m.target)->vocab, context, length);
            int32_t *token = decode(&o, context, length, 24, &listener, &counts, &n);
            memcpy(context + length, token, n * sizeof *token);
            free(token);
            compare_taps(&m, &t, context, length + n);
        }
        assert_int_equal(t.proposals, counts.rounds);
        known += t.known_roots;
        close_session(&o, &s);
        hm_drafter_close(t.inner);
        free(t.history);
    }
    assert_true(known > 0);
}

// ---- recorded pools

struct recorder {
    struct digest digest; // first: the other events go there
    const struct models *m;
    struct hm_cache *cache;
    uint64_t random, pools, candidates;
};

static hm_status record(void *user, const struct hm_pool_event *e, struct hm_error *err)
{
    struct recorder *r = user;
    size_t vocab = r->digest.vocab, c = test_below(&r->random, e->pool->count + 1), depth = 0;
    int32_t all[128];
    float *row = malloc(vocab * sizeof *row);
    assert_non_null(row);
    if (c) depth = e->pool->candidate[c - 1].depth;
    memcpy(all, e->context, e->length * sizeof *all);
    for (int32_t i = (int32_t)c - 1, at = (int32_t)(e->length + depth); i >= 0; i = e->pool->candidate[i].parent)
        all[--at] = e->pool->candidate[i].token;
    hm_cache_truncate(r->cache, 0);
    assert_int_equal(hm_model_prefill(r->m->target, r->cache, all, e->length + depth, row, NULL, err), HM_OK);
    assert_memory_equal(row, e->rows + c * vocab, vocab * sizeof *row);
    assert_int_equal(e->sequence, SEQUENCE);
    assert_int_equal(e->round, r->digest.rounds);
    r->pools++;
    r->candidates += e->pool->count;
    free(row);
    return HM_OK;
}

static void a_recorded_pool_changes_nothing(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("pools");
    for (size_t i = 0; i < test_count(6, 30, 2000); i++) {
        struct setting s = random_setting(&random);
        int32_t prompt[12];
        size_t length = 1 + test_below(&random, 12), n;
        random_prompt(&random, hm_model_info(m->target)->vocab, prompt, length);
        struct digest without = digest_of(m, &s, prompt, length, 20);
        struct recorder r = {.digest = {.vocab = without.vocab, .stop_at = UINT32_MAX, .hash = 14695981039346656037u}, .m = m,
                             .random = random};
        struct hm_listener listener = {.user = &r, .round = digest_round, .step = digest_step, .pool = record};
        struct hm_session_counts counts = {0};
        struct opened o;
        open_session(m, &s, 64, &o);
        assert_int_equal(hm_cache_open(m->target, 80, &r.cache, NULL), HM_OK);
        free(decode(&o, prompt, length, 20, &listener, &counts, &n));
        assert_true(r.digest.hash == without.hash);
        assert_int_equal(r.pools, counts.rounds);
        assert_int_equal(r.candidates, counts.drafted);
        hm_cache_close(r.cache);
        close_session(&o, &s);
    }
}

// ---- threads

// Whatever the groups of threads, and whether drafting runs beside the root's pass or after it: the same bits.
static void overlap_gives_the_bits_of_serial(void **state)
{
    (void)state;
    static const unsigned threads[][2] = {{1, 1}, {2, 0}, {3, 2}, {4, 4}, {2, 5}};
    uint64_t random = test_seed("threads");
    struct setting s[8];
    uint64_t hash[8];
    int32_t prompt[8][12];
    size_t settings = test_count(3, 6, 8), repeats = test_count(1, 1, 40);
    for (size_t repeat = 0; repeat < repeats; repeat++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            struct models m;
            open_models(&m, threads[i][0], threads[i][1]);
            for (size_t j = 0; j < settings; j++) {
                if (i == 0) {
                    s[j] = random_setting(&random);
                    s[j].selection = (enum hm_selection)(1 + j % 3);
                    s[j].covering = false;
                    random_prompt(&random, hm_model_info(m.target)->vocab, prompt[j], 12);
                }
                for (size_t k = 0; k < 3; k++) {
                    s[j].serial = k == 0;
                    s[j].draft_threads = k == 2 ? (unsigned)test_below(&random, 6) : 0;
                    s[j].drafting = k == 0 && i % 2 ? STRANGER : PEER_STRANGER;
                    struct digest d = digest_of(&m, &s[j], prompt[j], 12, 16);
                    if (i == 0 && k == 0) hash[j] = d.hash;
                    assert_true(d.hash == hash[j]);
                }
            }
            close_models(&m);
        }
}

// ---- sequences and interrupts

static void an_interrupt_ends_after_its_round(void **state)
{
    const struct models *m = *state;
    uint64_t random = test_seed("interrupts");
    for (size_t i = 0; i < test_count(6, 30, 2000); i++) {
        struct setting s = random_setting(&random);
        int32_t prompt[8];
        size_t n, plain_n;
        random_prompt(&random, hm_model_info(m->target)->vocab, prompt, 8);
        struct digest d = {.vocab = hm_model_info(m->target)->vocab, .stop_at = (uint32_t)test_below(&random, 30)};
        struct hm_listener listener = {.user = &d, .step = digest_step, .interrupted = &d.interrupted};
        struct hm_session_counts counts = {0};
        struct opened o;
        open_session(m, &s, 64, &o);
        int32_t *token = decode(&o, prompt, 8, 30, &listener, &counts, &n);
        int32_t *plain = decode_plainly(m, &s, prompt, 8, 30, 64, &plain_n);
        assert_true(n > d.stop_at && n <= d.stop_at + s.depth + 3);
        assert_memory_equal(token, plain, n * sizeof *token);
        free(token);
        // Afterwards the session decodes another prompt as if nothing had been.
        free(plain);
        random_prompt(&random, hm_model_info(m->target)->vocab, prompt, 8);
        d.stop_at = UINT32_MAX;
        d.interrupted = false;
        token = decode(&o, prompt, 8, 30, &listener, &counts, &n);
        plain = decode_plainly(m, &s, prompt, 8, 30, 64, &plain_n);
        assert_int_equal(n, plain_n);
        assert_memory_equal(token, plain, n * sizeof *token);
        free(token);
        free(plain);
        close_session(&o, &s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taps_arrive_complete_and_in_order),
        cmocka_unit_test(a_recorded_pool_changes_nothing),
        cmocka_unit_test(overlap_gives_the_bits_of_serial),
        cmocka_unit_test(an_interrupt_ends_after_its_round),
    };
    return cmocka_run_group_tests(tests, set_up_models, tear_down_models);
}
