// The p-value of a claimed temperature: valid when the claim is true, small when tokens are greedy.
#include "evidence/compare.h"

#include "tests/hard_rows.h"
#include "tests/seed.h"

enum { VOCAB = 6, LISTED = 3 };

static struct hm_rational parse_temperature(const char *text)
{
    struct hm_rational t;
    struct hm_error err;
    hm_rational_init(&t);
    if (hm_rational_parse(text, &t, &err)) fail_msg("%s", err.message);
    return t;
}

// Draws from softmax(row/t).
static size_t draw(struct random *r, const float *row, double t)
{
    double sum = 0, at;
    for (int i = 0; i < VOCAB; i++) sum += exp(row[i] / t);
    at = uniform(r) * sum;
    for (int i = 0; i < VOCAB - 1; i++)
        if ((at -= exp(row[i] / t)) < 0) return (size_t)i;
    return VOCAB - 1;
}

static void add(struct hm_likelihood *l, const struct hm_evidence *row, const struct hm_rational *t)
{
    struct hm_error err;
    if (hm_likelihood_add(l, row, t, &err)) fail_msg("%s", err.message);
}

// As a row of logits, or as a list of the first log-probabilities with the drawn token behind them when it is not among
// them. PAIR: of two, and ranked as by the readers of lists without ranks, for whom the least does not count if it was drawn.
enum shape { ROW, LIST, PAIR, SHAPES };

static void add_drawn(struct hm_likelihood *l, const float *row, size_t token, enum shape shape, const struct hm_rational *t)
{
    struct hm_evidence evidence = {.unit = HM_UNIT_LOGIT, .logits = row, .vocab = VOCAB, .emitted = token};
    struct hm_evidence_entry entry[LISTED + 1];
    double sum = 0;
    size_t order[VOCAB], listed = shape == PAIR ? 2 : LISTED;
    for (size_t i = 0; i < VOCAB; i++) {
        size_t at = i;
        for (; at > 0 && row[order[at - 1]] < row[i]; at--) order[at] = order[at - 1];
        order[at] = i;
        sum += exp(row[i]);
    }
    if (shape != ROW) {
        evidence = (struct hm_evidence){.unit = HM_UNIT_LOG_PROBABILITY, .entry = entry, .count = listed, .ranked = listed,
                                        .emitted = HM_UNSEEN};
        for (size_t i = 0; i < listed; i++) {
            double v = row[order[i]] - log(sum);
            entry[i] = (struct hm_evidence_entry){.id = (int32_t)order[i], .value = {v - 1e-6, v + 1e-6}};
            if (order[i] == token) evidence.emitted = i;
        }
        if (evidence.emitted == HM_UNSEEN) {
            double v = row[token] - log(sum);
            entry[listed] = (struct hm_evidence_entry){.id = (int32_t)token, .value = {v - 1e-6, v + 1e-6}};
            evidence.emitted = evidence.count++;
        } else if (shape == PAIR && evidence.emitted == listed - 1) {
            evidence.ranked--;
        }
    }
    add(l, &evidence, t);
}

// Streams of a few tokens whose rows depend on what was drawn, so that all being first is likely enough to be seen.
static void valid_under_the_claim(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("valid_under_the_claim")};
    static const struct { const char *text; double value; } temperatures[] = {{"1", 1}, {"1/2", 0.5}, {"2", 2}};
    static const char *const names[SHAPES] = {"rows", "lists", "pairs"};
    static const double alphas[] = {0.5, 0.2, 0.05, 0.01};
    size_t runs = test_count(2000, 20000, 400000);
    for (int k = 0; k < 3 * SHAPES; k++) {
        struct hm_rational t = parse_temperature(temperatures[k / SHAPES].text);
        size_t refuted[4] = {0};
        for (size_t run = 0; run < runs; run++) {
            struct hm_likelihood l = {0};
            float row[VOCAB];
            size_t token = 0, length = 1 + below(&r, run % 2 ? 40 : 8);
            for (size_t i = 0; i < length; i++) {
                for (int j = 0; j < VOCAB; j++) row[j] = (float)(1.5 * gauss(&r));
                row[(token + i) % VOCAB] += token == 0 ? 4.0f : 1.0f; // owed to the token before
                if (below(&r, 6) == 0) row[(token + i + 1) % VOCAB] = row[(token + i) % VOCAB]; // perhaps no first
                if (run % 2) // two tokens share nearly all, none has half: 1 in 30 draws is another one
                    for (int j = 0; j < VOCAB; j++) row[j] = (float)temperatures[k / SHAPES].value * (j < 2 ? -0.02f * (float)j : -5);
                token = draw(&r, row, temperatures[k / SHAPES].value);
                add_drawn(&l, row, token, (enum shape)(k % SHAPES), &t);
            }
            for (int a = 0; a < 4; a++) refuted[a] += l.log_p <= log(alphas[a]);
        }
        for (int a = 0; a < 4; a++) {
            double share = (double)refuted[a] / (double)runs, spread = sqrt(alphas[a] * (1 - alphas[a]) / (double)runs);
            print_message("T %s, %s: %.5f at %.2f\n", temperatures[k / SHAPES].text, names[k % SHAPES], share, alphas[a]);
            assert_true(share <= alphas[a] + 4 * spread);
        }
        hm_rational_clear(&t);
    }
}

// A greedy stream: refuted, at T = 1 by as many nats as the surprises of its tokens have.
static void refutes_greedy_streams(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("refutes_greedy_streams")};
    struct hm_rational one = parse_temperature("1");
    for (enum shape shape = ROW; shape <= LIST; shape++) {
        struct hm_likelihood l = {0};
        double surprise = 0;
        for (int i = 0; i < 100; i++) {
            float row[VOCAB];
            size_t first = 0;
            double sum = 0;
            for (int j = 0; j < VOCAB; j++) {
                row[j] = (float)gauss(&r);
                if (row[j] > row[first]) first = (size_t)j;
                sum += exp(row[j]);
            }
            surprise += log(sum) - row[first];
            add_drawn(&l, row, first, shape, &one);
        }
        assert_true(l.tokens == 100 && l.first == 100 && l.open == 0);
        assert_true(l.log_p >= -surprise - 1e-9 && l.log_p <= -surprise + 100 * 2.1e-6);
        assert_true(l.log_p < log(1e-3));
        float row[VOCAB] = {3, 2, 1, 0, 0, 0};
        add_drawn(&l, row, 1, shape, &one); // one token that is not the first, and nothing is refuted any more
        add_drawn(&l, row, 0, shape, &one);
        assert_true(l.log_p == 0 && l.tokens == 102 && l.first == 101);
    }
    hm_rational_clear(&one);
}

// Of whole rows the bound is the exact product, at any temperature.
static void is_sharp_for_rows(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("is_sharp_for_rows")};
    static const struct { const char *text; double value; } temperatures[] = {{"1/4", 0.25}, {"1", 1}, {"5", 5}};
    for (int k = 0; k < 3; k++) {
        struct hm_rational t = parse_temperature(temperatures[k].text);
        struct hm_likelihood l = {0}, processed = {0};
        double exact = 0, plain = 0;
        for (int i = 0; i < 50; i++) {
            float row[VOCAB];
            size_t first = 0;
            double sum = 0, at_one = 0;
            for (int j = 0; j < VOCAB; j++) {
                row[j] = (float)gauss(&r);
                if (row[j] > row[first]) first = (size_t)j;
            }
            for (int j = 0; j < VOCAB; j++) {
                sum += exp(((double)row[j] - row[first]) / temperatures[k].value);
                at_one += exp((double)row[j] - row[first]);
            }
            exact -= log(sum);
            plain -= log(at_one);
            struct hm_evidence evidence = {.unit = HM_UNIT_LOGIT, .logits = row, .vocab = VOCAB, .emitted = first};
            add(&l, &evidence, &t);
            evidence.processed = true; // already at the temperature
            add(&processed, &evidence, &t);
        }
        assert_true(fabs(l.log_p - exact) < 1e-9 && fabs(processed.log_p - plain) < 1e-9);
        hm_rational_clear(&t);
    }
}

static void edges(void **state)
{
    (void)state;
    struct hm_rational half = parse_temperature("1/2");
    struct hm_likelihood l = {0};
    static const float tie[VOCAB] = {1, 1, 0, 0, 0, 0};
    struct hm_evidence row = {.unit = HM_UNIT_LOGIT, .logits = tie, .vocab = VOCAB, .emitted = 0};
    add(&l, &row, &half);
    assert_true(l.open == 1 && l.tokens == 0 && l.log_p == 0);
    static const struct hm_evidence_entry own[1] = {{.id = 3, .value = {-0.1, -0.1}}};
    struct hm_evidence alone = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = own, .count = 1, .emitted = 0};
    add(&l, &alone, &half); // what is not ranked tells nothing: it is there because it was drawn
    assert_true(l.open == 2 && l.tokens == 0);
    alone.ranked = 1; // p = e^-0.1 > 1/2: the first, at T = 1/2 by at most certainty
    add(&l, &alone, &half);
    assert_true(l.tokens == 1 && l.first == 1 && l.log_p <= 0);
    alone.processed = true; // already at the temperature
    l = (struct hm_likelihood){0};
    add(&l, &alone, &half);
    assert_true(l.log_p == -0.1);
    alone.shift = 0x1p-5; // the printed number may be too low by that
    l = (struct hm_likelihood){0};
    add(&l, &alone, &half);
    assert_true(l.log_p >= -0.1 + 0x1p-5 && l.log_p < -0.068);
    static const struct hm_evidence_entry two[2] = {{.id = 3, .value = {-0.8, -0.8}}, {.id = 4, .value = {-0.9, -0.9}}};
    struct hm_evidence second = {.unit = HM_UNIT_LOG_PROBABILITY, .entry = two, .count = 2, .ranked = 1, .emitted = 1};
    add(&l, &second, &half); // whichever is the first, this one is not
    assert_true(l.tokens == 2 && l.first == 1 && l.open == 0 && l.log_p == 0);
    hm_rational_clear(&half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_under_the_claim),
        cmocka_unit_test(refutes_greedy_streams),
        cmocka_unit_test(is_sharp_for_rows),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, release_caches);
}
