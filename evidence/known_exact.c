// Evidence that is a full row of floats: its questions are answered by certify/, exactly.
#include "evidence/known_state.h"

#include "bounds/ival_math.h"
#include "certify/certificate.h"

#include <math.h>

static const struct hm_ival open_end = {0, INFINITY};

static bool is_token(const struct hm_known *known, size_t entry)
{
    return entry < hm_row_vocab(known->row);
}

struct hm_ival hm_exact_probability(const struct hm_known *known, size_t entry)
{
    struct hm_ival out;
    if (!is_token(known, entry) || hm_row_probability(known->row, (int32_t)entry, &out, NULL)) return (struct hm_ival){0, 1};
    return out;
}

struct hm_ival hm_exact_entropy(const struct hm_known *known)
{
    struct hm_ival out;
    return hm_row_entropy(known->row, &out, NULL) ? open_end : out;
}

struct hm_ival hm_exact_regret(const struct hm_known *known, size_t entry)
{
    struct hm_ival out;
    if (!is_token(known, entry) || hm_row_regret(known->row, (int32_t)entry, &out, NULL)) return open_end;
    return out;
}

// ln sum - l/T keeps its digits for small probabilities, -ln p for large ones.
struct hm_ival hm_exact_surprise(const struct hm_known *known, size_t entry)
{
    struct hm_ival p = hm_exact_probability(known, entry), lse, out = hm_ival_neg(hm_ival_log(p));
    if (!is_token(known, entry)) return open_end;
    float l = hm_row_logits(known->row)[entry];
    if (l == -INFINITY) return hm_ival_point(INFINITY);
    if (hm_row_lse(known->row, &lse, NULL)) return open_end;
    struct hm_ival scaled = hm_ival_div(hm_ival_point(l), hm_ival_rational(known->temperature.value));
    out = hm_ival_meet(out, hm_ival_sub(lse, scaled));
    return (struct hm_ival){fmax(out.lo, 0), fmax(out.hi, 0)};
}

enum hm_verdict hm_exact_accepts(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    enum hm_verdict out;
    if (!is_token(known, entry) || hm_rule_accepts(rule, known->row, (int32_t)entry, &out, NULL)) return HM_UNDECIDED;
    return out;
}

struct hm_count_range hm_exact_count(const struct hm_known *known, const struct hm_rule *rule)
{
    size_t k;
    enum hm_verdict decided;
    if (hm_rule_count(rule, known->row, &k, &decided, NULL)) return (struct hm_count_range){0, SIZE_MAX};
    return (struct hm_count_range){k, decided == HM_UNDECIDED ? hm_row_vocab(known->row) : k};
}

static bool claim(const struct hm_known *known, const struct hm_rule *rule, int32_t token, size_t m, struct hm_claim *out)
{
    struct hm_claim_query query = {.rule = rule, .target = known->row, .token = token, .m = m};
    return hm_claim_make(&query, out, NULL) == HM_OK;
}

struct hm_ival hm_exact_radius(const struct hm_known *known, const struct hm_rule *rule, size_t entry)
{
    struct hm_claim c;
    if (!is_token(known, entry) || !claim(known, rule, (int32_t)entry, 1, &c) || !c.has_radius) return open_end;
    return c.radius;
}

struct hm_known_level hm_exact_level(const struct hm_known *known, const struct hm_rule *rule, size_t m)
{
    struct hm_claim c;
    if (!claim(known, rule, -1, m, &c) || !c.counted) return (struct hm_known_level){open_end, open_end, open_end};
    return (struct hm_known_level){c.level.klf, c.level.klr, c.level.tv};
}
