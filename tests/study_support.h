// Random recorded rounds for the tests of the study.
#ifndef HM_TESTS_STUDY_SUPPORT_H
#define HM_TESTS_STUDY_SUPPORT_H

#include "study/recording.h"
#include "tests/seed.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { STUDY_MOST = 800, STUDY_VOCAB = 1000 };

// One round with arrays of its own.
struct study_round {
    struct hm_recording_round round;
    int32_t token[STUDY_MOST], parent[STUDY_MOST], argmax[STUDY_MOST + 1];
    float logq[STUDY_MOST];
    double p[STUDY_MOST], cached[STUDY_MOST], preceding[STUDY_MOST];
};

static inline double study_unit(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

static inline bool study_has(const struct study_round *s, int32_t parent, int32_t token, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (s->parent[i] == parent && s->token[i] == token) return true;
    return false;
}

// Probabilities of the candidates under one parent, of which the last part is nobody's; sometimes zeros, sometimes all of it.
static inline void study_shares(uint64_t *state, struct study_round *s, int32_t parent, double *p)
{
    double sum = test_below(state, 4) ? study_unit(state) : 0;
    for (size_t i = 0; i < s->round.count; i++) {
        if (s->parent[i] != parent) continue;
        p[i] = test_below(state, 6) ? pow(study_unit(state), 3) : 0;
        sum += p[i];
    }
    for (size_t i = 0; i < s->round.count; i++)
        if (s->parent[i] == parent) p[i] = sum > 0 ? p[i] / sum : 0;
}

static inline void study_substitute(uint64_t *state, struct study_round *s, double *p, struct hm_substitute *out)
{
    size_t n = 0;
    double full[STUDY_MOST] = {0};
    *out = (struct hm_substitute){.address = (enum hm_address_class)test_below(state, HM_ADDRESS_CLASSES), .p = p};
    study_shares(state, s, -1, full);
    for (size_t i = 0; i < s->round.count; i++)
        if (s->parent[i] < 0) p[n++] = full[i];
    if (out->address == HM_ADDRESS_NONE) return;
    out->age = 1 + (uint32_t)test_below(state, 3);
    out->tv = study_unit(state);
    out->argmax = s->round.count ? s->token[test_below(state, s->round.count)] : 3;
}

// A tree of `count` candidates at most `deepest` deep. Scores are coarse, so ties are common; some are -inf.
static inline void study_fill(uint64_t *state, struct study_round *s, size_t count, uint32_t deepest)
{
    uint32_t depth[STUDY_MOST];
    s->round = (struct hm_recording_round){.count = count, .length = 7, .root = 5, .accepted = 0, .token = s->token,
                                           .parent = s->parent, .logq = s->logq, .p = s->p, .argmax = s->argmax};
    for (size_t i = 0; i < count; i++) {
        int32_t parent = (int32_t)test_below(state, i + 1) - 1;
        while (parent >= 0 && depth[parent] >= deepest) parent = s->parent[parent];
        s->parent[i] = parent;
        depth[i] = parent < 0 ? 1 : depth[parent] + 1;
        do s->token[i] = (int32_t)test_below(state, STUDY_VOCAB);
        while (study_has(s, parent, s->token[i], i));
        s->logq[i] = test_below(state, 25) ? (float)test_below(state, 9) * -0.5f : -INFINITY;
        s->round.first_level += parent < 0;
    }
    for (int32_t parent = -1; parent < (int32_t)count; parent++) {
        study_shares(state, s, parent, s->p);
        s->argmax[parent + 1] = 7;
        for (size_t i = 0; i < count; i++) // mostly a candidate, so that greedy paths have a length
            if (s->parent[i] == parent && test_below(state, 2)) s->argmax[parent + 1] = s->token[i];
    }
    study_substitute(state, s, s->cached, &s->round.cached);
    study_substitute(state, s, s->preceding, &s->round.preceding);
}

#endif
