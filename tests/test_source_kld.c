// The reader of llama-perplexity's base files: samples, a real file, and rows whose true log-probabilities are known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/seed.h"
#include "tests/source_dump.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/data/evidence/llama.cpp-kld/"

static const char *const samples[] = {"good", "even", "killed", "longer", "no-chunks", "not-numbers", "bad-ids", "short-text",
                                      "context", "vocabulary", "chunks", "tokens-cut", "huge", "wide"};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void samples_give_their_events(void **state)
{
    (void)state;
    struct hm_source_options options = test_source_options();
    char path[256], expected[300];
    for (size_t i = 0; i < SAMPLES; i++) {
        snprintf(path, sizeof path, FOLDER "%s.kld", samples[i]);
        snprintf(expected, sizeof expected, "%s.txt", path);
        test_source_compare(path, expected, &options);
    }
    options.vocab = 4; // columns beyond a tokenizer
    test_source_compare(FOLDER "good.kld", FOLDER "good.kld.vocab-4.txt", &options);
    options.vocab = 6;
    test_source_compare(FOLDER "even.kld", FOLDER "even.kld.vocab-6.txt", &options);
}

// ---- Rows with known log-probabilities ----

enum { CONTEXT = 6, ROWS = CONTEXT - 1 - CONTEXT / 2, VOCAB_MOST = 3001 };

static int nearest(float x)
{
    return (int)rintf(x);
}

// Writes a row as the tool does, in float32.
static void write_row(FILE *f, const float *logits, size_t vocab)
{
    float most = logits[0], least = logits[0];
    double sum = 0;
    for (size_t i = 1; i < vocab; i++) most = fmaxf(most, logits[i]), least = fminf(least, logits[i]);
    least = fmaxf(least, most - 16);
    for (size_t i = 0; i < vocab; i++) sum += (double)expf(logits[i] - most);
    float log_sum = (float)log(sum), lowest = least - most - log_sum, scale = (most - least) / 65535.f, inverse = 1 / scale;
    fwrite(&scale, sizeof scale, 1, f);
    fwrite(&lowest, sizeof lowest, 1, f);
    for (size_t i = 0; i < (vocab + 1) / 2 * 2; i++) {
        uint16_t code = i < vocab && scale != 0 && logits[i] > least ? (uint16_t)nearest(inverse * (logits[i] - least)) : 0;
        fwrite(&code, sizeof code, 1, f);
    }
}

static void random_row(uint64_t *seed, float *logits, size_t vocab)
{
    double spread = pow(10, 2 * test_signed(seed)), shift = 30 * test_signed(seed);
    size_t kind = test_below(seed, 4);
    for (size_t i = 0; i < vocab; i++) {
        logits[i] = (float)(shift + spread * test_signed(seed) + (kind == 1 ? -30 * (double)test_below(seed, 2) : 0));
        if (kind == 2) logits[i] = (float)(rint(logits[i] * 4) / 4); // ties
        if (kind == 3 && test_below(seed, 3) == 0) logits[i] = -INFINITY;
    }
    logits[test_below(seed, vocab)] = (float)(shift + spread);
}

// ln of the sum of exponentials, to 200 bits.
static void exact_log_sum(mpfr_t out, const float *logits, size_t vocab)
{
    mpfr_t term;
    mpfr_init2(term, 200);
    mpfr_set_zero(out, 1);
    for (size_t i = 0; i < vocab; i++) {
        mpfr_set_flt(term, logits[i], MPFR_RNDN);
        mpfr_exp(term, term, MPFR_RNDN);
        mpfr_add(out, out, term, MPFR_RNDN);
    }
    mpfr_log(out, out, MPFR_RNDN);
    mpfr_clear(term);
}

// Every true log-probability lies in its enclosure, which is at most this much wider than the step of the codes.
static void assert_encloses(const struct hm_evidence *row, const float *logits, double allowance)
{
    mpfr_t log_sum, exact;
    mpfr_inits2(200, log_sum, exact, (mpfr_ptr)0);
    exact_log_sum(log_sum, logits, row->vocab);
    float most = -INFINITY, least = INFINITY;
    for (size_t i = 0; i < row->vocab; i++) most = fmaxf(most, logits[i]), least = fminf(least, logits[i]);
    double step = ((double)most - fmax(least, (double)most - 16)) / 65535;
    for (size_t i = 0; i < row->vocab; i++) {
        struct hm_ival v = row->entry[i].value;
        mpfr_set_flt(exact, logits[i], MPFR_RNDN);
        mpfr_sub(exact, exact, log_sum, MPFR_RNDN);
        if (mpfr_cmp_d(exact, v.lo) < 0 || mpfr_cmp_d(exact, v.hi) > 0)
            fail_msg("logit %g of %zu: %.17g is not in [%.17g, %.17g]", (double)logits[i], row->vocab, mpfr_get_d(exact, MPFR_RNDN),
                     v.lo, v.hi);
        if (v.lo > -INFINITY) assert_true(v.hi - v.lo <= 1.01 * step + 2.1e-5 + 2.01 * allowance * (1 + fabs(v.lo) / 8));
        assert_int_equal(row->entry[i].id, (int)i);
    }
    mpfr_clears(log_sum, exact, (mpfr_ptr)0);
}

static void enclosures_hold_the_true_values(void **state)
{
    (void)state;
    uint64_t seed = test_seed("enclosures");
    struct hm_source_options options = test_source_options();
    options.allowance = 0x1p-20; // the writer's log-softmax of 3,000 logits: (2 ln V + 2) 2^-24 at most
    char path[] = "/tmp/test-source-kld-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    static float logits[ROWS][VOCAB_MOST];
    for (size_t round = 0, rounds = test_count(20, 100, 3000); round < rounds; round++) {
        size_t vocab = 2 + test_below(&seed, round % 5 ? 40 : VOCAB_MOST - 2);
        int32_t header[3] = {CONTEXT, (int32_t)vocab, 1}, tokens[CONTEXT];
        for (size_t i = 0; i < CONTEXT; i++) tokens[i] = (int32_t)test_below(&seed, vocab);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fwrite("_logits_", 1, 8, f);
        fwrite(header, sizeof header, 1, f);
        fwrite(tokens, sizeof tokens, 1, f);
        for (size_t r = 0; r < ROWS; r++) {
            random_row(&seed, logits[r], vocab);
            write_row(f, logits[r], vocab);
        }
        assert_int_equal(fclose(f), 0);
        struct hm_source_file *source;
        struct hm_event event;
        assert_int_equal(hm_source_open(path, &options, &source, NULL), HM_OK);
        assert_int_equal(hm_source_next(source, &event, NULL), HM_OK);
        assert_int_equal(event.kind, HM_EVENT_SEQUENCE);
        assert_int_equal(event.sequence->prompt_length, CONTEXT / 2 + 1);
        assert_memory_equal(event.sequence->prompt, tokens, (CONTEXT / 2 + 1) * sizeof *tokens);
        for (size_t r = 0; r < ROWS; r++) {
            assert_int_equal(hm_source_next(source, &event, NULL), HM_OK);
            assert_int_equal(event.kind, HM_EVENT_TOKEN);
            assert_int_equal(event.token->token, tokens[CONTEXT / 2 + r + 1]);
            assert_int_equal(event.token->row.emitted, event.token->token);
            assert_encloses(&event.token->row, logits[r], options.allowance);
        }
        assert_int_equal(hm_source_next(source, &event, NULL), HM_OK);
        assert_int_equal(event.kind, HM_EVENT_END);
        hm_source_close(source);
    }
    unlink(path);
}

// A base file that llama-perplexity wrote: nothing is wrong with it, and its rows are distributions.
static void a_real_file_is_read(void **state)
{
    (void)state;
    struct hm_source_options options = test_source_options();
    struct hm_source_file *source;
    struct hm_event event = {.kind = HM_EVENT_TOKEN};
    size_t tokens = 0, sequences = 0;
    assert_int_equal(hm_source_open("tests/data/evidence/engines/llama.cpp/tiny-qwen3.kld", &options, &source, NULL), HM_OK);
    assert_int_equal(hm_source_format(source), HM_FORMAT_LLAMA_KLD);
    while (event.kind != HM_EVENT_END) {
        assert_int_equal(hm_source_next(source, &event, NULL), HM_OK);
        assert_int_not_equal(event.kind, HM_EVENT_FINDING);
        sequences += event.kind == HM_EVENT_SEQUENCE;
        if (event.kind != HM_EVENT_TOKEN) continue;
        const struct hm_evidence *row = &event.token->row;
        double low = 0, high = 0;
        for (size_t i = 0; i < row->count; i++) low += exp(row->entry[i].value.lo), high += exp(row->entry[i].value.hi);
        assert_true(low < 1 && high > 1 && high < 1.05);
        assert_true(row->emitted == (size_t)event.token->token && row->vocab == 2048);
        tokens++;
    }
    assert_int_equal(tokens, 6);
    assert_int_equal(sequences, 2);
    hm_source_close(source);
}

// Any bytes in the place of a sample's.
static void hostile_variations_do_no_harm(void **state)
{
    (void)state;
    uint64_t seed = test_seed("hostile");
    struct hm_source_options options = test_source_options();
    char path[] = "/tmp/test-source-kld-XXXXXX", from[256], *text;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t round = 0, rounds = test_count(300, 3000, 60000); round < rounds; round++) {
        size_t size;
        snprintf(from, sizeof from, FOLDER "%s.kld", samples[test_below(&seed, SAMPLES)]);
        assert_int_equal(hm_file_read(from, 1 << 20, &text, &size, NULL), HM_OK);
        for (size_t changes = 1 + test_below(&seed, 4); changes-- > 0;)
            text[test_below(&seed, test_below(&seed, 2) ? size : size < 20 ? size : 20)] = (char)test_random(&seed);
        if (test_below(&seed, 4) == 0) size = test_below(&seed, size);
        memcpy(text, "_logits_", size < 8 ? size : 8);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(text, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
        options.format = "llama.cpp-kld";
        free(test_source_dump(path, &options, 4));
        free(text);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_give_their_events),
        cmocka_unit_test(enclosures_hold_the_true_values),
        cmocka_unit_test(a_real_file_is_read),
        cmocka_unit_test(hostile_variations_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
