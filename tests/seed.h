// Seeds and random numbers for property tests: HM_SEED repeats a run, HM_LONG and HM_REDUCED scale the counts.
#ifndef HM_TESTS_SEED_H
#define HM_TESTS_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The seed of this run, printed so that a failure can be repeated.
static inline uint64_t test_seed(const char *test)
{
    const char *text = getenv("HM_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261129;
    printf("%s: HM_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

// `usual`, `reduced` with HM_REDUCED=1 (sanitizers), `longer` with HM_LONG=1.
static inline size_t test_count(size_t reduced, size_t usual, size_t longer)
{
    const char *is_long = getenv("HM_LONG"), *is_reduced = getenv("HM_REDUCED");
    if (is_long && is_long[0] == '1') return longer;
    if (is_reduced && is_reduced[0] == '1') return reduced;
    return usual;
}

// splitmix64 (Steele, Lea, Flood 2014).
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline size_t test_below(uint64_t *state, size_t n)
{
    return (size_t)(test_random(state) % n);
}

// Uniform in [-1, 1).
static inline double test_signed(uint64_t *state)
{
    return (double)(int64_t)test_random(state) * 0x1p-63;
}

#endif
