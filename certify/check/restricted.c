// What a claim says of a draft whose vocabulary is smaller than the target's: see state.h. docs/log.md "claims";
// theory.md §4.
#include "certify/check/state.h"

#include <math.h>
#include <string.h>

static enum answer decide(struct ck *c, const struct ck_ask *ask, const void *which)
{
    enum ck_divergence kind = *(const enum ck_divergence *)which;
    enum answer less = OPEN;
    // KL(q||p) < KLr*(p_D) - ln p(D) is KL(q||p_D) < KLr*(p_D).
    if (kind != CK_TV) return ck_certifies(&c->inner, ask, kind);
    if (ck_known_never(&c->inner, ask) == YES) return NO;
    for (int level = c->math.first_level; level < CK_LEVELS && less == OPEN; level++) {
        struct iv v[2];
        iv_inits(v, 2, ck_precision(level));
        if (level >= c->inner.first_level && ck_tv_pq(&c->math, level, NULL, &v[0]) &&
            ck_known_tv(&c->inner, level, ask, &v[1]))
            less = iv_less(&v[0], &v[1]);
        iv_clears(v, 2);
    }
    return less;
}

// How many of the first k of the order does the draft know?
static size_t known_accepted(const struct ck *c, size_t k)
{
    size_t n = 0;
    for (size_t j = 0; j < k; j++) n += !isinf(c->math.row[1].logit[c->math.row[0].order[j]]);
    return n;
}

// The values: p(D), KL(p_D||q), levels and thresholds.
static void check_values(struct ck *c, const cJSON *r, const struct ck_case *of, bool massless, bool rows, double kl[2],
                         double star[3][2])
{
    static ck_quantity *const exact[3] = {ck_klf, ck_known_klr, ck_known_tv};
    double ends[2], constant = of->never ? 0 : of->vacuous ? INFINITY : NAN;
    if (!massless)
        ck_prove(c, r, "mass", ck_known_mass, of->ask, rows, ends);
    else if (ck_interval(c, r, "mass", ends) && (ends[0] != 0 || ends[1] != 0))
        ck_refute(c, "mass", "expected exactly 0, found [%a, %a]", ends[0], ends[1]);
    if (!c->out.failed && (ends[1] < 0 || ends[0] > 1))
        ck_refute(c, "mass", "expected a probability, found [%a, %a]", ends[0], ends[1]);
    if (massless)
        ck_expect_absent(c, r, "kl", "p(D) is 0");
    else
        ck_prove_in(c, &c->inner, r, "kl", ck_kl_pq, of->ask, rows, kl);
    if (!c->out.failed && kl[1] < 0) ck_refute(c, "kl", "expected a divergence, found [%a, %a]", kl[0], kl[1]);
    if (!c->out.failed) ck_levels(c, &c->inner, r, of->ask, rows, constant, exact, star);
}

void ck_restricted(struct ck *c, const cJSON *claim, const struct ck_case *whole)
{
    static const char *const names[3] = {"klf", "klr", "tv"};
    static const enum ck_divergence kinds[3] = {CK_KLF, CK_KLR, CK_TV};
    const struct ck_node *node = whole->node;
    bool rows = node->target && node->draft;
    double star[3][2] = {{0}}, kl[2] = {0, 0};
    if (!ck_has(claim, "restricted")) return;
    const cJSON *r = ck_object(c, claim, "restricted");
    size_t outer = ck_enter(c, "restricted.");
    int64_t k = ck_int(c, r, "k", 0);
    if (c->out.failed) return;
    if (node->draft && c->math.row[1].finite == c->math.vocab) {
        c->prefix[outer] = '\0';
        ck_refute(c, "restricted", "expected nothing: every draft logit is finite");
        return;
    }
    if (k > (int64_t)whole->ask->k || (rows && (size_t)k != known_accepted(c, whole->ask->k))) {
        ck_refute(c, "k", "expected how many of A the draft knows, found %lld", (long long)k);
        return;
    }
    if (rows && c->inner_line != c->line) { // once a record
        c->massless = !ck_known_make(&c->inner, &c->math);
        c->inner_line = c->line;
    }
    bool massless = rows ? c->massless : !ck_has(r, "kl");
    size_t size = node->draft ? c->math.row[1].finite : (size_t)c->header->vocab;
    struct ck_ask ask = *whole->ask;
    ask.k = (size_t)k;
    ask.outer = &c->math;
    struct ck_case of = *whole;
    of.ask = &ask;
    of.never = k == 0 || massless;
    of.vacuous = !of.never && (node->draft ? ask.k + ask.m > size : !ck_has(r, "level_f"));
    check_values(c, r, &of, massless, rows, kl, star);
    const cJSON *certified = c->out.failed ? NULL : ck_object(c, r, "certified");
    const double *value[3] = {kl, node->pair[1], node->pair[2]};
    ck_enter(c, "certified.");
    for (int i = 0; i < 3 && !c->out.failed; i++) {
        enum ck_verdict v = ck_verdict(c, certified, names[i], &of, value[i], star[i], decide, &kinds[i]);
        const char *covered = ck_text(c, claim, "covered");
        if (!c->out.failed && v == CK_YES && strcmp(covered, "no") == 0)
            ck_refute(c, "covered", "expected yes (certified implies covered), found no");
    }
    ck_leave(c, outer);
}
