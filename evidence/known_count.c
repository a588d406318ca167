// How many tokens a rule accepts, as a range (docs/theory.md §1): one by one for thresholds, by sums of the largest for
// nucleus, whose prefix has a length even where the order inside it is open.
#include "evidence/known_state.h"

#include "bounds/ival_math.h"

#include <math.h>

static size_t plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

// A probability that every accepted token reaches; 0 when nothing says so.
static double least_accepted(const struct hm_known *known, const struct hm_rule *rule)
{
    struct hm_ival a = hm_ival_rational(rule->a.value), first = hm_known_ranked(known, 0), least = {0, 0};
    struct hm_ival w = hm_ival_exp(hm_known_log(known, first));
    double p1 = hm_ival_div(hm_ival_point(w.lo), hm_ival_point(known->total.hi)).lo;
    switch (rule->kind) {
    case HM_RULE_ADDITIVE:
    case HM_RULE_TOPK_DELTA: least = hm_ival_sub(hm_ival_point(p1), a); break;
    case HM_RULE_MULTIPLICATIVE:
    case HM_RULE_TOPK_RATIO: least = hm_ival_mul(hm_ival_point(p1), a); break;
    case HM_RULE_ABSOLUTE: least = a; break;
    case HM_RULE_REGRET: least = hm_ival_exp(hm_ival_neg(a)); break;
    case HM_RULE_ENTROPY:
        least = hm_ival_exp(hm_ival_neg(hm_known_entropy(known)));
        least = hm_ival_min(a, hm_ival_mul(least, hm_ival_rational(rule->b.value)));
        break;
    default: break;
    }
    return fmax(least.lo, 0);
}

// A lower level set: the listed one by one, the unseen all alike. What surely lies above an accepted token is accepted, and
// what surely lies below a rejected one is not: few have to be asked about.
static struct hm_count_range by_threshold(const struct hm_known *known, const struct hm_rule *rule)
{
    struct hm_count_range out = {0, 0};
    double accepted = INFINITY, rejected = -INFINITY; // -inf may be accepted: until one is rejected, nothing is below it
    bool some_rejected = false;
    for (size_t i = 0; i < known->count; i++) {
        const struct hm_ival value = known->token[i].value;
        if (some_rejected && value.hi <= rejected) continue;
        enum hm_verdict in = value.lo >= accepted ? HM_YES : hm_known_accepts(known, rule, i);
        if (in == HM_YES) accepted = fmin(accepted, value.hi);
        if (in == HM_NO) rejected = fmax(rejected, value.lo), some_rejected = true;
        out.least += in == HM_YES;
        out.most += in != HM_NO;
    }
    if (known->unseen > 0) {
        enum hm_verdict in = hm_known_accepts(known, rule, HM_UNSEEN);
        bool sized = known->evidence->vocab > 0;
        if (in == HM_YES && sized) out.least = plus(out.least, known->unseen);
        if (in != HM_NO) {
            double least = least_accepted(known, rule), mass = hm_known_unseen(known).hi;
            size_t most = known->unseen;
            if (least > 0) {
                most = known->positive;
                most = hm_known_size(floor(hm_ival_div(hm_ival_point(mass), hm_ival_point(least)).hi), most);
            }
            out.most = plus(out.most, most);
        }
    }
    bool first = rule->kind != HM_RULE_ABSOLUTE && rule->kind != HM_RULE_REGRET; // is the first token always accepted?
    if (rule->kind == HM_RULE_ENTROPY) first = mpq_cmp_ui(rule->b.value, 1, 1) <= 0;
    if (first && out.least == 0) out.least = 1;
    if (out.most < out.least) out.most = out.least;
    return out;
}

static struct hm_count_range capped(struct hm_count_range range, uint32_t count)
{
    if (range.least > count) range.least = count;
    if (range.most > count) range.most = count;
    return range;
}

static struct hm_count_range first_few(const struct hm_known *known, size_t m)
{
    const struct hm_evidence *e = known->evidence;
    size_t most = e->vocab > 0 && m > e->vocab ? e->vocab : m;
    return (struct hm_count_range){e->vocab > 0 || m < e->count ? most : e->count, most};
}

// The support, for P = 1.
static struct hm_count_range support(const struct hm_known *known)
{
    struct hm_count_range out = {0, known->positive};
    for (size_t i = 0; i < known->count; i++) {
        out.least += known->token[i].value.lo > -INFINITY;
        if (known->token[i].value.hi > -INFINITY) out.most = plus(out.most, 1);
    }
    if (known->each.value.lo > -INFINITY) out.least = plus(out.least, known->positive);
    if (out.least == 0) out.least = 1;
    return out;
}

// k is the least j whose first j tokens have the mass P. They have at most the mass of the j largest upper ends, and at
// least that of the j largest lower ends.
static struct hm_count_range by_mass(const struct hm_known *known, const struct hm_rule *rule)
{
    struct hm_ival limit = hm_ival_rational(rule->a.value);
    struct hm_ival all = hm_ival_add(known->others, known->token[known->first].weight);
    struct hm_count_range out = {0, 0};
    // Upper ends, the unseen put after the listed that are not below them.
    double before = 0, after = all.lo, cap = known->each.value.hi;
    size_t j = 0;
    bool reached = false;
    for (; j < known->count && !reached; j++) {
        if (known->positive > 0 && known->high[j].value < cap) break;
        before = hm_ival_add(hm_ival_point(before), hm_ival_point(known->high[j].weight)).hi;
        after = hm_ival_sub(hm_ival_point(after), hm_ival_point(known->low[j].weight)).lo;
        double share = hm_known_share(hm_ival_point(before), hm_ival_point(fmax(after, 0))).hi;
        reached = (known->unit ? fmin(share, before) : share) >= limit.lo;
    }
    out.least = j + !reached;
    if (!reached && known->unit && j == known->count) { // unseen ones are needed, each at most e^cap
        struct hm_ival more = hm_ival_div(hm_ival_sub(limit, hm_ival_point(before)), hm_ival_point(known->each.weight.hi));
        if (more.lo > 1) out.least = plus(j, hm_known_size(ceil(more.lo), known->positive));
    }
    // Lower ends.
    before = 0;
    after = hm_ival_add(all, known->rest).hi;
    reached = false;
    for (j = 0; j < known->count && !reached; j++) {
        before = hm_ival_add(hm_ival_point(before), hm_ival_point(known->low[j].weight)).lo;
        after = hm_ival_sub(hm_ival_point(after), hm_ival_point(known->high[j].weight)).hi;
        struct hm_ival rest = hm_ival_point(fmax(after, 0));
        double share = hm_known_share(hm_ival_point(before), rest).lo;
        if (known->unit) share = fmax(fmax(share, before), hm_ival_sub(hm_ival_point(1), rest).lo);
        reached = share >= limit.hi;
    }
    out.most = reached ? j : plus(known->count, known->positive);
    if (out.least < 1) out.least = 1;
    if (out.most < out.least) out.most = out.least;
    return out;
}

struct hm_count_range hm_known_count(const struct hm_known *known, const struct hm_rule *rule)
{
    if (known->row) return hm_exact_count(known, rule);
    switch (rule->kind) {
    case HM_RULE_GREEDY: return (struct hm_count_range){1, 1};
    case HM_RULE_TOPM: return first_few(known, rule->count);
    case HM_RULE_NUCLEUS:
        return mpq_cmp_ui(rule->a.value, 1, 1) >= 0 ? support(known) : by_mass(known, rule);
    case HM_RULE_TOPK_DELTA:
    case HM_RULE_TOPK_RATIO: {
        struct hm_rule threshold = *rule; // without the count
        threshold.kind = rule->kind == HM_RULE_TOPK_DELTA ? HM_RULE_ADDITIVE : HM_RULE_MULTIPLICATIVE;
        return capped(by_threshold(known, &threshold), rule->count);
    }
    default: return by_threshold(known, rule);
    }
}
