// Recording a decode: what the listener writes of a sequence of pools, against rows and addresses kept naively.
#include "cli/record.h"
#include "study/recording.h"
#include "tests/seed.h"
#include "tests/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { VOCAB = 12, WIDTH = 3, DEPTH = 2, POOL = WIDTH + DEPTH * WIDTH * WIDTH, ROUNDS = 14, KEPT = 59 };

// Everything of one round, as the session would report it.
struct played {
    int32_t context[256];
    size_t length;
    struct hm_pool pool;
    float rows[1 + POOL][VOCAB], last_row[VOCAB]; // last_row: the one that gave the root
    int32_t accepted;
};

static struct played played[ROUNDS];

// The target's row at an address; sometimes the same as elsewhere.
static void row_at(uint64_t seed, const int32_t *context, size_t length, float row[VOCAB])
{
    uint64_t state = seed;
    for (size_t i = 0; i < length; i++) state = state * 31 + (uint64_t)context[i] + 1;
    for (int i = 0; i < VOCAB; i++) row[i] = (float)(int)(8 * test_signed(&state)) * 0.5f;
}

static size_t path_to(const struct hm_pool *pool, int32_t candidate, int32_t *out)
{
    size_t depth = candidate < 0 ? 0 : pool->candidate[candidate].depth;
    for (int32_t i = candidate; i >= 0; i = pool->candidate[i].parent) out[pool->candidate[i].depth - 1] = pool->candidate[i].token;
    return depth;
}

static void expand(uint64_t *random, struct hm_pool *pool, int32_t parent)
{
    int32_t token[WIDTH];
    float logq[WIDTH];
    int32_t first = (int32_t)test_below(random, VOCAB);
    for (int i = 0; i < WIDTH; i++) {
        token[i] = (first + i * 5) % VOCAB;
        logq[i] = -0.5f * (float)(i + 1) - (float)test_below(random, 3);
    }
    assert_int_equal(hm_pool_add(pool, parent, token, logq, WIDTH, NULL), HM_OK);
}

// Plays a sequence of rounds: pools at random, the walk at random through the pool, rows that are functions of the address.
static void play(uint64_t *random, uint64_t seed)
{
    int32_t context[256] = {1, 2, 3};
    size_t length = 4;
    context[3] = (int32_t)test_below(random, VOCAB);
    for (size_t r = 0; r < ROUNDS; r++) {
        struct played *p = &played[r];
        int32_t address[256];
        p->length = length;
        memcpy(p->context, context, sizeof context);
        row_at(seed, context, length - 1, p->last_row);
        assert_int_equal(hm_pool_init(&p->pool, &(struct hm_pool_options){.width = WIDTH}, NULL), HM_OK);
        expand(random, &p->pool, -1);
        for (int level = 0; level < DEPTH; level++) {
            hm_pool_advance(&p->pool);
            for (size_t i = 0; i < p->pool.beam_count; i++) expand(random, &p->pool, (int32_t)p->pool.beam[i]);
        }
        memcpy(address, context, sizeof address);
        for (size_t i = 0; i <= p->pool.count; i++)
            row_at(seed, address, length + path_to(&p->pool, (int32_t)i - 1, address + length), p->rows[i]);
        int32_t at = (int32_t)test_below(random, p->pool.count);
        p->accepted = (int32_t)path_to(&p->pool, at, context + length);
        length += (size_t)p->accepted;
        context[length] = (int32_t)test_below(random, VOCAB); // often another candidate: covered
        for (size_t i = 0; i < p->pool.count; i++)
            if (p->pool.candidate[i].parent == at && test_below(random, 2)) context[length] = p->pool.candidate[i].token;
        length++;
    }
}

static void clear_played(void)
{
    for (size_t r = 0; r < ROUNDS; r++) hm_pool_clear(&played[r].pool);
}

static void record(const struct hm_record_options *options)
{
    struct hm_record *record;
    struct hm_tree tree = {0};
    assert_int_equal(hm_record_open(path, options, &record, NULL), HM_OK);
    assert_int_equal(hm_record_sequence(record, 0, "p", "c", 0, NULL), HM_OK);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        const struct played *p = &played[r];
        struct hm_step_event step = {.target_row = p->last_row};
        struct hm_pool_event pool = {.sequence = 0, .round = r, .t = (uint32_t)p->length - 3, .context = p->context,
                                     .length = p->length, .pool = &p->pool, .rows = p->rows[0]};
        struct hm_round_event round = {.round = r, .tree = &tree, .accepted = (size_t)p->accepted};
        assert_int_equal(hm_record_step(record, &step, NULL), HM_OK);
        assert_int_equal(hm_record_pool(record, &pool, NULL), HM_OK);
        if (r != 4) assert_int_equal(hm_record_round(record, &round, NULL), HM_OK); // one is cut short
    }
    assert_int_equal(hm_record_close(record, NULL), HM_OK);
}

static double probability(const float *row, int32_t token, double temperature)
{
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += exp((double)row[i] / temperature);
    return exp((double)row[token] / temperature) / sum;
}

static double variation(const float *a, const float *b, double temperature)
{
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += fabs(probability(a, i, temperature) - probability(b, i, temperature)) / 2;
    return sum;
}

static int32_t likeliest(const float *row)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

// The most recent kept row that ends in the root's token: rounds from the newest, in each the root, then the draft's order.
static const float *naive_cached(size_t r, size_t *age, bool *same)
{
    int32_t root = played[r].context[played[r].length - 1], address[256];
    for (*age = 1; *age <= r; ++*age) {
        const struct played *p = &played[r - *age];
        size_t best[KEPT], n = hm_pool_best(&p->pool, KEPT, best);
        for (size_t k = 0; k <= n; k++) {
            int32_t candidate = k ? (int32_t)best[k - 1] : -1;
            int32_t token = k ? p->pool.candidate[candidate].token : p->context[p->length - 1];
            if (token != root) continue;
            memcpy(address, p->context, sizeof address);
            size_t length = p->length + path_to(&p->pool, candidate, address + p->length);
            *same = length == played[r].length && memcmp(address, played[r].context, length * sizeof *address) == 0;
            return p->rows[candidate + 1];
        }
    }
    return NULL;
}

static enum hm_matched naive_matched(size_t r)
{
    int32_t address[256];
    if (r == 0) return HM_MATCHED_ABSENT;
    const struct played *p = &played[r - 1];
    memcpy(address, p->context, sizeof address);
    for (size_t i = 0; i < p->pool.count; i++) {
        size_t length = p->length + path_to(&p->pool, (int32_t)i, address + p->length);
        if (length != played[r].length || memcmp(address, played[r].context, length * sizeof *address) != 0) continue;
        return memcmp(p->rows[i + 1], played[r].rows[0], sizeof p->rows[0]) == 0 ? HM_MATCHED_EQUAL : HM_MATCHED_DIFFERENT;
    }
    return HM_MATCHED_ABSENT;
}

static void check_row(const struct hm_substitute *s, const float *row, const struct played *p, double temperature)
{
    size_t n = 0;
    assert_int_equal(s->argmax, likeliest(row));
    assert_true(fabs(s->tv - variation(row, p->rows[0], temperature)) < 1e-9);
    for (size_t i = 0; i < p->pool.count; i++)
        if (p->pool.candidate[i].parent < 0)
            assert_true(fabs(s->p[n++] - probability(row, p->pool.candidate[i].token, temperature)) < 1e-9);
}

static void check_round(size_t r, const struct hm_recording_round *round, double temperature)
{
    const struct played *p = &played[r];
    size_t age;
    bool same = false;
    assert_int_equal(round->round, r);
    assert_int_equal(round->t, p->length - 3);
    assert_int_equal(round->length, p->length);
    assert_int_equal(round->root, p->context[p->length - 1]);
    assert_int_equal(round->accepted, r == 4 ? -1 : p->accepted);
    assert_int_equal(round->count, p->pool.count);
    assert_int_equal(round->argmax[0], likeliest(p->rows[0]));
    for (size_t i = 0; i < round->count; i++) {
        const struct hm_candidate *c = &p->pool.candidate[i];
        assert_int_equal(round->token[i], c->token);
        assert_int_equal(round->parent[i], c->parent);
        assert_true(round->logq[i] == c->logq);
        assert_true(fabs(round->p[i] - probability(p->rows[c->parent + 1], c->token, temperature)) < 1e-9);
        assert_int_equal(round->argmax[i + 1], likeliest(p->rows[i + 1]));
    }
    assert_int_equal(round->matched, naive_matched(r));
    const float *cached = naive_cached(r, &age, &same);
    enum hm_address_class address = !cached ? HM_ADDRESS_NONE : same ? HM_ADDRESS_SAME
                                    : age == 1 ? HM_ADDRESS_PREVIOUS : HM_ADDRESS_EARLIER;
    assert_int_equal(round->cached.address, address);
    if (cached) {
        assert_int_equal(round->cached.age, age);
        check_row(&round->cached, cached, p, temperature);
    }
    assert_int_equal(round->preceding.address, HM_ADDRESS_PRECEDING);
    check_row(&round->preceding, p->last_row, p, temperature);
}

static void check_recording(double temperature, size_t seen[HM_ADDRESS_CLASSES], size_t matched[3])
{
    struct hm_recording *recording;
    const struct hm_recording_sequence *sequence;
    const struct hm_recording_round *round;
    assert_int_equal(hm_recording_open(path, &recording, NULL), HM_OK);
    for (size_t r = 0; r < ROUNDS; r++) {
        assert_int_equal(hm_recording_next(recording, &sequence, &round, NULL), HM_OK);
        assert_non_null(round);
        assert_string_equal(sequence->id, "p");
        check_round(r, round, temperature);
        seen[round->cached.address]++;
        matched[round->matched]++;
    }
    assert_int_equal(hm_recording_next(recording, &sequence, &round, NULL), HM_OK);
    assert_null(round);
    assert_false(hm_recording_truncated(recording));
    hm_recording_close(recording);
}

static void rounds_are_recorded_as_they_were(void **state)
{
    (void)state;
    uint64_t random = test_seed("record");
    struct hm_rational zero, some, one;
    size_t seen[HM_ADDRESS_CLASSES] = {0}, matched[3] = {0};
    hm_rational_init(&zero);
    hm_rational_init(&some);
    hm_rational_init(&one);
    hm_rational_set_int(&some, 7, 10);
    hm_rational_set_int(&one, 1, 1);
    for (size_t i = 0; i < test_count(5, 40, 1000); i++) {
        bool greedy = i % 2;
        play(&random, test_random(&random));
        if (i % 4 == 3) // an engine whose rows depend on more than the address
            for (size_t r = 1; r < ROUNDS; r += 2) played[r].rows[0][test_below(&random, VOCAB)] += 0.5f;
        struct hm_record_options options = {.target = "t", .drafter = "d", .task = "x", .temperature = greedy ? &zero : &some,
                                            .probability_temperature = greedy ? &one : &some, .vocab = VOCAB, .width = WIDTH,
                                            .depth = DEPTH, .budget = 8};
        record(&options);
        check_recording(greedy ? 1 : 0.7, seen, matched);
        clear_played();
    }
    for (size_t i = 0; i < HM_ADDRESS_PRECEDING; i++) assert_true(seen[i] > 0); // each kind has been seen
    for (size_t i = 0; i < 3; i++) assert_true(matched[i] > 0);
    hm_rational_clear(&zero);
    hm_rational_clear(&some);
    hm_rational_clear(&one);
}

static void rows_beyond_the_limit_are_forgotten(void **state)
{
    (void)state;
    uint64_t random = test_seed("limit");
    struct hm_rational one;
    size_t kept = 0;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    play(&random, 5);
    // Room for one row: that of the newest root is the last to be kept, so only a root's row is ever found again.
    struct hm_record_options options = {.target = "t", .drafter = "d", .task = "x", .temperature = &one,
                                        .probability_temperature = &one, .vocab = VOCAB, .width = WIDTH, .depth = DEPTH,
                                        .budget = 8, .kept_bytes = VOCAB * sizeof(float)};
    record(&options);
    struct hm_recording *recording;
    const struct hm_recording_sequence *sequence;
    const struct hm_recording_round *round;
    assert_int_equal(hm_recording_open(path, &recording, NULL), HM_OK);
    for (size_t r = 0; r < ROUNDS; r++) {
        assert_int_equal(hm_recording_next(recording, &sequence, &round, NULL), HM_OK);
        bool repeats = r > 0 && played[r].context[played[r].length - 1] == played[r - 1].context[played[r - 1].length - 1];
        assert_int_equal(round->cached.address != HM_ADDRESS_NONE, repeats);
        kept += repeats;
    }
    hm_recording_close(recording);
    clear_played();
    hm_rational_clear(&one);
    printf("%zu of %d rounds repeat the root of the round before\n", kept, ROUNDS);
}

static void a_row_that_is_none_is_an_error(void **state)
{
    (void)state;
    uint64_t random = test_seed("NaN");
    struct hm_rational one;
    struct hm_record *record;
    struct hm_error err;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    play(&random, 6);
    struct hm_record_options options = {.target = "t", .drafter = "d", .task = "x", .temperature = &one,
                                        .probability_temperature = &one, .vocab = VOCAB, .width = WIDTH, .depth = DEPTH,
                                        .budget = 8};
    assert_int_equal(hm_record_open(path, &options, &record, NULL), HM_OK);
    assert_int_equal(hm_record_sequence(record, 3, "", "", 0, NULL), HM_OK);
    struct played *p = &played[0];
    p->rows[POOL][4] = NAN; // after a candidate that nothing follows
    struct hm_pool_event pool = {.sequence = 3, .round = 9, .context = p->context, .length = p->length, .pool = &p->pool,
                                 .rows = p->rows[0]};
    assert_int_equal(hm_record_pool(record, &pool, &err), HM_RANGE);
    assert_string_equal(err.message, "sequence 3, round 9: logit 4: expected a number, found NaN");
    assert_int_equal(hm_record_close(record, NULL), HM_OK);
    clear_played();
    hm_rational_clear(&one);
}

static void tasks_are_named_after_files(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"/data/mt_bench.jsonl", "mt_bench"}, {"prompts", "prompts"}, {".hidden", ".hidden"},
                                           {"a.b/c", "c"}, {"x/y.tar.gz", "y.tar"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char task[32];
        hm_record_task(names[i][0], task, sizeof task);
        assert_string_equal(task, names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_recorded_as_they_were),
        cmocka_unit_test(rows_beyond_the_limit_are_forgotten),
        cmocka_unit_test(a_row_that_is_none_is_an_error),
        cmocka_unit_test(tasks_are_named_after_files),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
