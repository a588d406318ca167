// What the tests of bounds/ and certify/ share: rows with a temperature written as text, random numbers with a printed
// seed, and enclosure checks.
#ifndef HM_TESTS_CERTIFY_ROWS_H
#define HM_TESTS_CERTIFY_ROWS_H

#include "base/rational.h"
#include "bounds/ival.h"
#include "certify/certificate.h"
#include "certify/row.h"
#include "certify/rule.h"

#include <math.h>
#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static inline struct hm_row *open_row(const float *logits, size_t vocab, const char *temperature)
{
    struct hm_rational t;
    struct hm_row *row;
    struct hm_error err = {.message = ""};
    hm_rational_init(&t);
    assert_int_equal(hm_rational_parse(temperature, &t, &err), HM_OK);
    hm_status status = hm_row_open(logits, vocab, &t, &row, &err);
    if (status) fail_msg("%s", err.message);
    hm_rational_clear(&t);
    return row;
}

static inline struct hm_rule parse_rule(const char *text)
{
    struct hm_rule rule;
    struct hm_error err = {.message = ""};
    if (hm_rule_parse(text, &rule, &err)) fail_msg("%s", err.message);
    return rule;
}

static inline size_t count_accepted(const char *rule_text, struct hm_row *row)
{
    struct hm_rule rule = parse_rule(rule_text);
    struct hm_error err = {.message = ""};
    enum hm_verdict decided;
    size_t k;
    if (hm_rule_count(&rule, row, &k, &decided, &err)) fail_msg("%s", err.message);
    assert_int_equal(decided, HM_YES);
    for (size_t r = 0; r < hm_row_vocab(row); r++) { // the token-wise question has the same answer
        enum hm_verdict in;
        if (hm_rule_accepts(&rule, row, hm_row_token(row, r), &in, &err)) fail_msg("%s", err.message);
        if (in != (r < k ? HM_YES : HM_NO)) fail_msg("%s: rank %zu against k = %zu", rule_text, r, k);
    }
    hm_rule_clear(&rule);
    return k;
}

// A claim about two rows (draft may be NULL), with margin; the emitted token is the draft's or the target's first.
static inline struct hm_claim make_claim(const char *rule_text, struct hm_row *target, struct hm_row *draft, size_t m)
{
    struct hm_rule rule = parse_rule(rule_text);
    struct hm_error err = {.message = ""};
    struct hm_row_distance distance;
    struct hm_claim claim;
    if (draft && hm_row_distance(target, draft, &distance, &err)) fail_msg("%s", err.message);
    struct hm_claim_query query = {.rule = &rule, .target = target, .draft = draft, .distance = draft ? &distance : NULL,
                                   .token = hm_row_token(draft ? draft : target, 0), .m = m, .margin = true};
    if (hm_claim_make(&query, &claim, &err)) fail_msg("%s", err.message);
    hm_rule_clear(&rule);
    return claim;
}

// The promise of row.h, within what docs/log.md asks: 2^-34 relative, or 2^-64.
static inline int is_narrow(struct hm_ival v)
{
    if (v.lo == v.hi) return 1;
    return v.hi - v.lo <= 0x1p-34 * fmax(fabs(v.lo), fabs(v.hi)) || v.hi - v.lo <= 0x1p-64;
}

#define assert_encloses(v, x)                                                                                \
    do {                                                                                                     \
        struct hm_ival v_ = (v);                                                                             \
        double x_ = (x);                                                                                     \
        if (!(v_.lo <= x_ && x_ <= v_.hi)) fail_msg("%s: %.17g not in [%.17g, %.17g]", #v, x_, v_.lo, v_.hi); \
    } while (0)

// xoshiro-free and small: splitmix64, whose seed every property test prints.
struct random {
    uint64_t state;
};

static inline uint64_t next_word(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline size_t below(struct random *r, size_t n)
{
    return (size_t)(next_word(r) % n);
}

static inline double uniform(struct random *r)
{
    return (double)(next_word(r) >> 11) * 0x1p-53;
}

static inline double gauss(struct random *r)
{
    double s = 0;
    for (int i = 0; i < 12; i++) s += uniform(r);
    return s - 6;
}

static inline struct random seeded(const char *test)
{
    const char *text = getenv("HM_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261129;
    print_message("%s: HM_SEED=%llu\n", test, (unsigned long long)seed);
    return (struct random){seed};
}

// The teardown of a group: MPFR's caches, which leak checkers would find.
static inline int release_caches(void **state)
{
    (void)state;
    mpfr_free_cache();
    return 0;
}

// HM_LONG=1 makes property tests a hundred times longer.
static inline size_t rounds(size_t usual)
{
    const char *text = getenv("HM_LONG");
    return text && *text && *text != '0' ? usual * 100 : usual;
}

#endif
