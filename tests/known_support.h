// Evidence made from a row whose truth is known: the first k of a full row's log-probabilities, rounded to decimals in
// exact arithmetic as an engine would print them, beside certify/'s exact answers about the whole row.
#ifndef HM_TESTS_KNOWN_SUPPORT_H
#define HM_TESTS_KNOWN_SUPPORT_H

#include "evidence/evidence.h"
#include "evidence/sanity.h"
#include "tests/hard_rows.h"
#include "tests/seed.h"

#include <string.h>

enum scene_unit { SCENE_PRINTED, SCENE_LOGITS, SCENE_PRINTED_UNKNOWN_VOCAB, SCENE_SHIFTED, SCENE_UNITS };

struct scene {
    float *logits;             // [vocab]
    size_t vocab;
    const char *temperature;
    struct hm_row *row, *plain; // at the temperature; at 1, which is what engines print
    struct hm_evidence_entry *entry;
    struct hm_evidence evidence;
    struct hm_known *known;
};

static inline struct hm_known *open_known(const struct hm_evidence *evidence, const char *temperature)
{
    struct hm_rational t;
    struct hm_known *known;
    struct hm_error err = {.message = ""};
    hm_rational_init(&t);
    assert_int_equal(hm_rational_parse(temperature, &t, &err), HM_OK);
    if (hm_known_open(evidence, &t, &known, &err)) fail_msg("%s", err.message);
    hm_rational_clear(&t);
    return known;
}

// ln sum exp(l) of a row, to 160 bits.
static inline void exact_lse(const float *l, size_t vocab, mpfr_t out)
{
    float top = -INFINITY;
    for (size_t i = 0; i < vocab; i++) top = fmaxf(top, l[i]);
    mpfr_t x;
    mpfr_init2(x, 160);
    mpfr_set_zero(out, 1);
    for (size_t i = 0; i < vocab; i++) {
        if (l[i] == -INFINITY) continue;
        mpfr_set_flt(x, l[i], MPFR_RNDN);
        mpfr_sub_d(x, x, top, MPFR_RNDN);
        mpfr_exp(x, x, MPFR_RNDN);
        mpfr_add(out, out, x, MPFR_RNDN);
    }
    mpfr_log(out, out, MPFR_RNDN);
    mpfr_add_d(out, out, top, MPFR_RNDN);
    mpfr_clear(x);
}

// A log-probability as printed with so many decimals, read back. The text is the entry's, of 480 bytes.
static inline struct hm_ival printed(float l, mpfr_srcptr lse, int digits)
{
    char text[480];
    enum hm_decimal_kind kind;
    struct hm_ival out;
    struct hm_error err = {.message = ""};
    mpfr_t x;
    mpfr_init2(x, 160);
    mpfr_set_flt(x, l, MPFR_RNDN);
    mpfr_sub(x, x, lse, MPFR_RNDN);
    mpfr_snprintf(text, sizeof text, "%.*RNf", digits, x);
    mpfr_clear(x);
    if (hm_decimal_read(text, strlen(text), HM_PRINTING_ROUNDED, &kind, &out, &err)) fail_msg("%s", err.message);
    assert_int_equal(kind, l == -INFINITY ? HM_DECIMAL_MINUS_INFINITE : HM_DECIMAL_FINITE);
    return out;
}

// The first k of the order, and one token more where `extra` is one that is not among them.
static inline void scene_list(struct scene *s, enum scene_unit unit, size_t k, int digits, int32_t extra)
{
    mpfr_t lse;
    double shift = unit == SCENE_SHIFTED ? ldexp(1, -2 - (int)(k % 12)) : 0;
    mpfr_init2(lse, 160);
    if (unit != SCENE_LOGITS) exact_lse(s->logits, s->vocab, lse);
    if (unit == SCENE_SHIFTED) mpfr_add_d(lse, lse, digits % 2 ? shift : -shift, MPFR_RNDN); // as far as it may be
    s->entry = calloc(k + 1, sizeof *s->entry);
    for (size_t i = 0; i < k; i++) s->entry[i].id = hm_row_token(s->plain, i);
    size_t count = k;
    if (extra >= 0 && hm_row_rank(s->plain, extra) >= k) s->entry[count++].id = extra;
    for (size_t i = 0; i < count; i++) {
        float l = s->logits[s->entry[i].id];
        s->entry[i].value = unit == SCENE_LOGITS ? (struct hm_ival){l, l} : printed(l, lse, digits);
    }
    mpfr_clear(lse);
    s->evidence = (struct hm_evidence){.unit = unit == SCENE_LOGITS ? HM_UNIT_LOGIT : HM_UNIT_LOG_PROBABILITY, .entry = s->entry,
                                       .count = count, .ranked = k, .emitted = 0, .shift = shift,
                                       .vocab = unit == SCENE_PRINTED_UNKNOWN_VOCAB ? 0 : s->vocab};
    s->known = open_known(&s->evidence, s->temperature);
}

static inline void scene_unlist(struct scene *s)
{
    hm_known_close(s->known);
    free(s->entry);
    s->known = NULL;
    s->entry = NULL;
}

static inline void scene_open(struct scene *s, float *logits, size_t vocab, const char *temperature)
{
    *s = (struct scene){.logits = logits, .vocab = vocab, .temperature = temperature};
    s->row = open_row(logits, vocab, temperature);
    s->plain = open_row(logits, vocab, "1");
}

static inline void scene_close(struct scene *s)
{
    scene_unlist(s);
    hm_row_close(s->row);
    hm_row_close(s->plain);
}

// Enclosures of one number meet.
#define assert_meets(what, found, truth)                                                                              \
    do {                                                                                                              \
        struct hm_ival f_ = (found), t_ = (truth);                                                                    \
        if (!(f_.lo <= t_.hi && t_.lo <= f_.hi && f_.lo <= f_.hi))                                                    \
            fail_msg("%s: [%.17g, %.17g] misses [%.17g, %.17g]", what, f_.lo, f_.hi, t_.lo, t_.hi);                   \
    } while (0)

// The rules that tests ask about.
static const char *const known_rules[] = {
    "greedy", "topm:2", "topm:10", "additive:0", "additive:1/10", "additive:1/2", "multiplicative:1", "multiplicative:3/10",
    "multiplicative:1/1000", "entropy:9/100,3/10", "entropy:1/2,1", "nucleus:1/2", "nucleus:9/10", "nucleus:99/100", "nucleus:1",
    "topk-delta:3,1/5", "topk-ratio:5,1/10", "absolute:1/20", "absolute:1", "regret:2", "regret:0"};
enum { KNOWN_RULES = sizeof known_rules / sizeof *known_rules };

#endif
