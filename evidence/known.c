// Evidence prepared for questions: see evidence.h.
#include "evidence/known_state.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

hm_status hm_known_open(const struct hm_evidence *evidence, const struct hm_rational *temperature, struct hm_known **out,
                        struct hm_error *err)
{
    (void)temperature;
    struct hm_known *known = hm_calloc(1, sizeof *known);
    if (!known) return hm_fail(err, HM_MEMORY, "a row of evidence: out of memory");
    known->evidence = evidence;
    *out = known;
    return HM_OK;
}

void hm_known_close(struct hm_known *known)
{
    free(known);
}

struct hm_ival hm_known_seen(const struct hm_known *known)
{
    (void)known;
    return (struct hm_ival){0, 1};
}

struct hm_ival hm_known_unseen(const struct hm_known *known)
{
    (void)known;
    return (struct hm_ival){0, 1};
}

double hm_known_unseen_most(const struct hm_known *known)
{
    (void)known;
    return 1;
}

struct hm_ival hm_known_probability(const struct hm_known *known, size_t entry)
{
    (void)known;
    (void)entry;
    return (struct hm_ival){0, 1};
}

struct hm_ival hm_known_entropy(const struct hm_known *known)
{
    (void)known;
    return (struct hm_ival){0, INFINITY};
}

struct hm_ival hm_known_regret(const struct hm_known *known, size_t entry)
{
    (void)known;
    (void)entry;
    return (struct hm_ival){0, INFINITY};
}

struct hm_ival hm_known_surprise(const struct hm_known *known, size_t entry)
{
    (void)known;
    (void)entry;
    return (struct hm_ival){0, INFINITY};
}

enum hm_verdict hm_known_accepts(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    (void)known;
    (void)rule;
    (void)entry;
    return HM_UNDECIDED;
}

struct hm_count_range hm_known_count(const struct hm_known *known, const struct hm_rule *rule)
{
    (void)known;
    (void)rule;
    return (struct hm_count_range){0, SIZE_MAX};
}

struct hm_ival hm_known_radius(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    (void)known;
    (void)rule;
    (void)entry;
    return (struct hm_ival){0, INFINITY};
}

struct hm_known_level hm_known_level(const struct hm_known *known, const struct hm_rule *rule, size_t m)
{
    (void)known;
    (void)rule;
    (void)m;
    const struct hm_ival open = {0, INFINITY};
    return (struct hm_known_level){open, open, open};
}

struct hm_known_distance hm_known_distance(const struct hm_known *p, const struct hm_known *q)
{
    (void)p;
    (void)q;
    const struct hm_ival open = {0, INFINITY};
    return (struct hm_known_distance){open, open, {0, 1}};
}
