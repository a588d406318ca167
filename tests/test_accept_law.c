// Decoding with hm_accept and pools as a decoder does it, over many seeds: frequencies of whole sequences against the target's
// probabilities by a chi-square test. A wrong residual must be caught.
#include "certify/philox.h"
#include "certify/speculative.h"
#include "decode/accept.h"
#include "decode/pool.h"
#include "tests/certify_rows.h"

#include <string.h>

enum { VOCAB = 3, LENGTH = 3, SEQUENCES = 27, PLACES = 1 + 3 + 9 + 27, WIDTH = 2, DEPTH = 2 };

// ---- a language model of 40 rows, and a decoder of three tokens

struct language {
    float p[PLACES][VOCAB], q[PLACES][VOCAB];
};

// The place of a prefix; drafts that run past the end meet some row of the last level.
static size_t place_of(const int32_t *prefix, size_t length)
{
    size_t first = 0, count = 1, code = 0;
    if (length > LENGTH) length = LENGTH;
    for (size_t i = 0; i < length; i++) {
        first += count;
        count *= VOCAB;
        code = code * VOCAB + (size_t)prefix[i];
    }
    return first + code;
}

static void random_language(struct random *r, struct language *m)
{
    for (size_t i = 0; i < PLACES; i++)
        for (size_t k = 0; k < VOCAB; k++) {
            m->p[i][k] = (float)(0.6 * gauss(r));
            m->q[i][k] = m->p[i][k] + (float)(0.6 * gauss(r));
        }
}

enum mistake { NONE, RESIDUAL_IS_P };
struct decoder {
    const struct language *m;
    struct hm_acceptance how;
    struct hm_pool pool;
    enum mistake mistake;
    size_t accepted, rejected;
    int32_t text[LENGTH + DEPTH + 2];
    size_t length;
};

static size_t path_of(const struct decoder *d, int32_t candidate, int32_t *path)
{
    memcpy(path, d->text, d->length * sizeof *path);
    size_t depth = candidate < 0 ? 0 : d->pool.candidate[candidate].depth;
    for (size_t i = depth; i-- > 0; candidate = d->pool.candidate[candidate].parent)
        path[d->length + i] = d->pool.candidate[candidate].token;
    return d->length + depth;
}

static void expand(struct decoder *d, int32_t parent)
{
    int32_t path[LENGTH + DEPTH + 2];
    struct hm_error err = {.message = ""};
    float *row = hm_pool_reserve_rows(&d->pool, 1, &err);
    memcpy(row, d->m->q[place_of(path, path_of(d, parent, path))], VOCAB * sizeof *row);
    if (hm_pool_expand(&d->pool, parent, &err)) fail_msg("%s", err.message);
}

static void draft(struct decoder *d)
{
    hm_pool_reset(&d->pool);
    d->pool.t = (uint32_t)d->length;
    expand(d, -1);
    for (size_t level = 0; level < DEPTH; level++) {
        hm_pool_advance(&d->pool);
        for (size_t i = 0; i < d->pool.beam_count; i++) expand(d, (int32_t)d->pool.beam[i]);
    }
}

// The negative control: what is emitted after a rejection is drawn from p, as if nothing had been rejected.
static int32_t wrong_token(const struct decoder *d, const struct hm_accept_node *node)
{
    int32_t token;
    struct hm_row *row;
    uint64_t bits = hm_philox_bits(d->how.seed, node->sequence, node->t, HM_DRAW_RESIDUAL, 0);
    assert_int_equal(hm_row_open(node->target, VOCAB, d->how.temperature, &row, NULL), HM_OK);
    assert_int_equal(hm_row_draw(row, VOCAB, bits, &token, NULL), HM_OK);
    hm_row_close(row);
    return token;
}

// Decides one position; returns the candidate that was accepted, or -1.
static int32_t decide(struct decoder *d, int32_t at, bool drafted)
{
    int32_t children[WIDTH], candidate[WIDTH] = {0};
    struct hm_decision out;
    struct hm_error err = {.message = ""};
    size_t place = place_of(d->text, d->length);
    struct hm_accept_node node = {.target = d->m->p[place], .draft = d->m->q[place], .vocab = VOCAB, .t = (uint32_t)d->length, .children = children};
    for (size_t i = 0; i < d->pool.count && drafted; i++) {
        if (d->pool.candidate[i].parent != at) continue;
        candidate[node.child_count] = (int32_t)i;
        children[node.child_count++] = d->pool.candidate[i].token;
    }
    if (hm_accept(&d->how, NULL, &node, &out, &err)) fail_msg("%s", err.message);
    if (out.child >= 0) assert_int_equal(out.token, children[out.child]);
    if (out.child < 0 && node.child_count > 0) {
        d->rejected++;
        if (d->mistake == RESIDUAL_IS_P) out.token = wrong_token(d, &node);
    }
    d->accepted += out.child >= 0;
    d->text[d->length++] = out.token;
    return out.child >= 0 ? candidate[out.child] : -1;
}

static size_t decode(struct decoder *d, uint64_t seed)
{
    d->how.seed = d->pool.options.seed = seed;
    d->length = 0;
    decide(d, -1, false); // the prompt's last row
    while (d->length < LENGTH) {
        draft(d);
        int32_t at = -1;
        do at = decide(d, at, true);
        while (at >= 0 && d->length < LENGTH);
    }
    return place_of(d->text, LENGTH) - (PLACES - SEQUENCES);
}

// ---- chi-square

// A value that chi-square with k degrees of freedom passes with probability below `chance`: Chernoff's bound of its tail,
// exp(-(k/2) (r - 1 - ln r)) at r k.
static double chi_square_bound(double k, double chance)
{
    double low = 1, high = 100;
    for (int i = 0; i < 100; i++) {
        double r = (low + high) / 2;
        if (k / 2 * (r - 1 - log(r)) < -log(chance)) low = r;
        else high = r;
    }
    return high * k;
}

static void softmax(const float *l, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < VOCAB; i++) sum += out[i] = exp((double)l[i]);
    for (size_t i = 0; i < VOCAB; i++) out[i] /= sum;
}

static double target_probability(const struct language *m, size_t code)
{
    int32_t text[LENGTH];
    double chance = 1, p[VOCAB];
    for (size_t i = LENGTH; i-- > 0; code /= VOCAB) text[i] = (int32_t)(code % VOCAB);
    for (size_t i = 0; i < LENGTH; i++) {
        softmax(m->p[place_of(text, i)], p);
        chance *= p[text[i]];
    }
    return chance;
}

static double chi_square(const size_t *seen, const double *expected, size_t cells, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < cells; i++) {
        double mean = expected[i] * (double)n, off = (double)seen[i] - mean;
        assert_true(mean > 50); // so that the statistic's law is chi-square's
        sum += off * off / mean;
    }
    return sum;
}

static double frequencies(const struct language *m, enum hm_acceptance_kind kind, enum hm_proposal proposal, enum mistake mistake,
                          size_t n, uint64_t first)
{
    size_t seen[SEQUENCES] = {0};
    double expected[SEQUENCES];
    struct hm_rational one;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    struct decoder d = {.m = m, .mistake = mistake,
                        .how = {.kind = kind, .proposal = proposal, .temperature = &one, .certify_temperature = &one}};
    assert_int_equal(hm_acceptance_check(&d.how, NULL, NULL), HM_OK);
    struct hm_pool_options options = {.width = WIDTH, .vocab = VOCAB, .usable = VOCAB, .proposal = proposal, .temperature = &one};
    assert_int_equal(hm_pool_init(&d.pool, &options, NULL), HM_OK);
    for (size_t i = 0; i < n; i++) seen[decode(&d, first + i)]++;
    for (size_t i = 0; i < SEQUENCES; i++) expected[i] = target_probability(m, i);
    assert_true(d.accepted > n / 10 && d.rejected > n / 20); // every path is taken
    hm_pool_clear(&d.pool);
    hm_rational_clear(&one);
    return chi_square(seen, expected, SEQUENCES, n);
}

// False alarms: one run in 10^10 for each of the four ways to decode.
static void sequences_have_the_targets_law(void **state)
{
    (void)state;
    struct random r = seeded("sequences");
    struct language m;
    double most = chi_square_bound(SEQUENCES - 1, 1e-10);
    size_t n = rounds(40000);
    for (size_t round = 0; round < 2; round++) {
        random_language(&r, &m);
        uint64_t first = next_word(&r);
        double iid = frequencies(&m, HM_ACCEPT_STANDARD, HM_PROPOSAL_IID, NONE, n, first);
        double topk = frequencies(&m, HM_ACCEPT_STANDARD, HM_PROPOSAL_TOPK, NONE, n, first);
        double match = frequencies(&m, HM_ACCEPT_MATCH, HM_PROPOSAL_TOPK, NONE, n, first);
        double wrong = frequencies(&m, HM_ACCEPT_STANDARD, HM_PROPOSAL_IID, RESIDUAL_IS_P, n, first);
        print_message("chi-square of 26 degrees: iid %.1f, topk %.1f, match %.1f; wrong residual %.1f; bound %.1f\n", iid, topk, match, wrong, most);
        if (iid > most || topk > most || match > most) fail_msg("a chi-square above %.1f", most);
        assert_true(wrong > 2 * most);
    }
}

// nucleus: the frequencies of one position against p/ratio.
static void nucleus_has_the_law_of_its_ratio(void **state)
{
    (void)state;
    struct random r = seeded("nucleus");
    struct hm_rational one;
    struct hm_rule rule = parse_rule("nucleus:1/2");
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    struct hm_acceptance how = {.kind = HM_ACCEPT_NUCLEUS, .rule = &rule, .proposal = HM_PROPOSAL_IID, .temperature = &one, .certify_temperature = &one};
    assert_int_equal(hm_acceptance_check(&how, NULL, NULL), HM_OK);
    for (size_t round = 0; round < 3; round++) {
        const float l[VOCAB] = {0, 0.4f, -0.3f}, d[VOCAB] = {1.2f, 0.3f * (float)round, 0};
        size_t n = rounds(30000), seen[VOCAB] = {0}, k;
        double expected[VOCAB], p[VOCAB];
        int32_t children[2] = {0, 1};
        enum hm_verdict decided;
        struct hm_row *q = open_row(d, VOCAB, "1"), *row = open_row(l, VOCAB, "1");
        assert_int_equal(hm_rule_count(&rule, row, &k, &decided, NULL), HM_OK);
        softmax(l, p);
        struct hm_proposals proposals = {HM_PROPOSAL_IID, children, 2, k};
        for (int32_t i = 0; i < VOCAB; i++) {
            struct hm_ival ratio;
            assert_int_equal(hm_speculative_ratio(row, q, &proposals, i, &ratio, NULL), HM_OK);
            expected[i] = p[i] / ratio.lo;
        }
        uint64_t first = next_word(&r);
        for (size_t i = 0; i < n; i++) {
            struct hm_decision out;
            how.seed = first + i;
            for (uint32_t j = 0; j < 2; j++)
                assert_int_equal(hm_row_draw(q, VOCAB, hm_philox_bits(how.seed, 0, 7, HM_DRAW_DRAFT, j), &children[j], NULL), HM_OK);
            struct hm_accept_node node = {.target = l, .draft = d, .vocab = VOCAB, .t = 7, .children = children, .child_count = 2};
            assert_int_equal(hm_accept(&how, NULL, &node, &out, NULL), HM_OK);
            seen[out.token]++;
        }
        double found = chi_square(seen, expected, VOCAB, n), plain = chi_square(seen, p, VOCAB, n);
        print_message("chi-square of 2 degrees: %.2f against o, %.0f against p\n", found, plain);
        assert_true(found < chi_square_bound(VOCAB - 1, 1e-10) && plain > 2 * chi_square_bound(VOCAB - 1, 1e-10));
        hm_row_close(q);
        hm_row_close(row);
    }
    hm_rule_clear(&rule);
    hm_rational_clear(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_have_the_targets_law),
        cmocka_unit_test(nucleus_has_the_law_of_its_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
