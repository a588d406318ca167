// Acceptance rules: parsing, and membership in A(p). theory.md §1, §8; see math.h.
#include "certify/check/math.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool ck_rational(const char *text, mpq_t out)
{
    size_t digits[2] = {0, 0};
    int part = 0;
    for (const char *c = text; *c; c++) {
        if (isdigit((unsigned char)*c) && ++digits[part] <= 40) continue;
        if (*c != '/' || part++ > 0) return false;
    }
    if (!digits[0] || (part == 1 && !digits[1]) || mpq_set_str(out, text, 10) != 0) return false;
    if (mpz_sgn(mpq_denref(out)) == 0) return false;
    mpq_canonicalize(out);
    return true;
}

bool ck_rule_parse(const char *text, struct ck_rule *r)
{
    static const struct {
        const char *name;
        enum ck_rule_kind kind;
        int counts, rationals;
    } kinds[] = {{"greedy", CK_GREEDY, 0, 0},
                 {"additive", CK_ADDITIVE, 0, 1},
                 {"multiplicative", CK_MULTIPLICATIVE, 0, 1},
                 {"topm", CK_TOPM, 1, 0},
                 {"entropy", CK_ENTROPY, 0, 2},
                 {"nucleus", CK_NUCLEUS, 0, 1},
                 {"topk-delta", CK_TOPK_DELTA, 1, 1},
                 {"topk-ratio", CK_TOPK_RATIO, 1, 1},
                 {"absolute", CK_ABSOLUTE, 0, 1},
                 {"regret", CK_REGRET, 0, 1}};
    mpq_inits(r->a, r->b, NULL);
    size_t length = strlen(text), i = 0;
    if (length >= sizeof r->text) return false;
    char part[sizeof r->text];
    memcpy(r->text, text, length + 1);
    memcpy(part, text, length + 1);
    char *rest = part, *name = strsep(&rest, ":");
    while (i < CK_RULE_KINDS && strcmp(kinds[i].name, name) != 0) i++;
    if (i == CK_RULE_KINDS) return false;
    r->kind = kinds[i].kind;
    if (kinds[i].counts) {
        char *word = rest ? strsep(&rest, ",:") : NULL;
        if (!word || !ck_rational(word, r->a) || mpz_cmp_ui(mpq_denref(r->a), 1) != 0) return false;
        if (mpq_sgn(r->a) == 0 || mpq_cmp_ui(r->a, 1UL << 53, 1) >= 0) return false;
        r->count = mpz_get_ui(mpq_numref(r->a));
    }
    for (int j = 0; j < kinds[i].rationals; j++) {
        char *word = rest ? strsep(&rest, ",:") : NULL;
        if (!word || !ck_rational(word, j ? r->b : r->a)) return false;
    }
    bool fraction = r->kind == CK_MULTIPLICATIVE || r->kind == CK_NUCLEUS || r->kind == CK_TOPK_RATIO ||
                    r->kind == CK_ABSOLUTE; // in (0, 1]; differences are in [0, 1)
    if (fraction && (mpq_sgn(r->a) == 0 || mpq_cmp_ui(r->a, 1, 1) > 0)) return false;
    if ((r->kind == CK_ADDITIVE || r->kind == CK_TOPK_DELTA) && mpq_cmp_ui(r->a, 1, 1) >= 0) return false;
    return rest == NULL;
}

void ck_rule_clear(struct ck_rule *r)
{
    mpq_clears(r->a, r->b, NULL);
}

// p >= p1 - a; p >= a p1; p >= a; prefix mass >= a; entropy's delta; -ln p <= a
enum test { WITHIN, RATIO, MASS, SHARE, SURPRISE, REGRET };

static enum answer test_at(struct ck_math *m, int level, enum test test, mpq_srcptr a, size_t position)
{
    const struct ck_row *r = &m->row[0];
    const struct ck_dist *d = ck_dist(m, CK_TARGET, level);
    struct iv t[3];
    iv_inits(t, 3, ck_precision(level));
    ck_weight(d, r->order[position], &t[0]);
    iv_mul_q(&t[1], &d->total, a);
    if (test == WITHIN) {
        iv_point(&t[2], 1); // the first weight
        iv_sub(&t[1], &t[2], &t[1]);
    } else if (test == SHARE) {
        ck_sum_order(d, 0, position + 1, &t[0]);
    } else if (test == REGRET) { // z + a >= ln sum E
        ck_class_z(d, r->class_of[r->order[position]], &t[0]);
        iv_set_q(&t[1], a);
        iv_add(&t[0], &t[0], &t[1]);
        iv_set(&t[1], &d->log_sum);
    } else if (test != MASS) { // in logarithms: z >= ln a, or z >= ln a + sum p z
        iv_set_q(&t[1], a);
        iv_log(&t[1], &t[1]);
        ck_class_z(d, r->class_of[r->order[position]], &t[0]);
        if (test == SURPRISE) {
            ck_sum_moment(d, 0, r->finite, &t[2]);
            iv_div(&t[2], &t[2], &d->total);
            iv_add(&t[1], &t[1], &t[2]);
        }
    }
    enum answer answer = iv_at_least(&t[0], &t[1]);
    iv_clears(t, 3);
    return answer;
}

// Where all of p but a tail lies on n equal tokens, the tail may be too small for any precision: it is seen here.
static enum answer by_tail(const struct ck_row *r, enum test test, mpq_srcptr a, size_t position)
{
    size_t n = r->first[1];
    if (r->classes == 1 || position >= n) return OPEN;
    if (test == MASS && ck_compare_product(n, a, 1) == 0) return NO;             // 1/(n + tail) < 1/n
    if (test == SHARE && ck_compare_product(n, a, position + 1) == 0) return NO; // j/(n + tail) < j/n
    if (test == SURPRISE && mpq_cmp_ui(a, 1, 1) <= 0) return YES;                // ln p_1 > -H
    return OPEN;
}

static enum answer decide(struct ck_math *m, enum test test, mpq_srcptr a, size_t position)
{
    enum answer answer = by_tail(&m->row[0], test, a, position);
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++)
        answer = test_at(m, level, test, a, position);
    return answer;
}

static enum answer near_first(struct ck_math *m, mpq_srcptr eps, size_t position)
{
    const struct ck_row *r = &m->row[0];
    if (position < r->finite && r->class_of[r->order[position]] == 0) return YES;
    if (mpq_sgn(eps) == 0) return NO;
    if (!ck_uniform(r) && ck_compare_product(r->first[1], eps, 1) == 0) return YES; // p_1 - eps is below 0
    if (position >= r->finite && ck_uniform(r)) return ck_compare_product(r->finite, eps, 1) >= 0 ? YES : NO;
    return decide(m, WITHIN, eps, position);
}

static enum answer ratio(struct ck_math *m, mpq_srcptr alpha, size_t position)
{
    const struct ck_row *r = &m->row[0];
    if (position < r->finite && r->class_of[r->order[position]] == 0) return YES;
    return position >= r->finite || mpq_cmp_ui(alpha, 1, 1) == 0 ? NO : decide(m, RATIO, alpha, position);
}

enum answer ck_eps_in_force(struct ck_math *m, const struct ck_rule *rule)
{
    const struct ck_row *r = &m->row[0];
    enum answer answer = OPEN;
    if (mpq_sgn(rule->a) == 0) return YES;
    if (mpq_sgn(rule->b) == 0) return NO;
    if (ck_uniform(r)) { // eps against delta / n
        mpq_t t;
        mpq_init(t);
        mpq_div(t, rule->a, rule->b);
        answer = ck_compare_product(r->finite, t, 1) <= 0 ? YES : NO;
        mpq_clear(t);
    } else { // H is above ln n, by a tail that may be too small for any precision
        mpq_t t;
        mpq_init(t);
        mpq_div(t, rule->a, rule->b);
        if (ck_compare_product(r->first[1], t, 1) == 0) answer = NO;
        mpq_clear(t);
    }
    for (int level = m->first_level; level < CK_LEVELS && answer == OPEN; level++) { // H <= ln(delta / eps)
        struct iv t[2];
        mpq_t q;
        mpq_init(q);
        iv_inits(t, 2, ck_precision(level));
        mpq_div(q, rule->b, rule->a);
        iv_set_q(&t[0], q);
        iv_log(&t[0], &t[0]);
        if (ck_entropy(m, level, NULL, &t[1])) answer = iv_at_least(&t[0], &t[1]);
        iv_clears(t, 2);
        mpq_clear(q);
    }
    return answer;
}

static enum answer typical(struct ck_math *m, const struct ck_rule *rule, size_t position)
{
    const struct ck_row *r = &m->row[0];
    if (mpq_sgn(rule->a) == 0 || mpq_sgn(rule->b) == 0) return YES; // p >= 0
    if (position >= r->finite) return NO;
    if (ck_uniform(r)) // p = 1/n = exp(-H)
        return ck_compare_product(r->finite, rule->a, 1) <= 0 || mpq_cmp_ui(rule->b, 1, 1) <= 0 ? YES : NO;
    enum answer first = mpq_cmp_ui(rule->a, 1, 1) >= 0 ? NO : decide(m, MASS, rule->a, position);
    if (first == YES) return YES;
    enum answer second = decide(m, SURPRISE, rule->b, position);
    return second == NO ? first : second;
}

enum answer ck_member(struct ck_math *m, const struct ck_rule *rule, size_t position)
{
    const struct ck_row *r = &m->row[0];
    if (position >= m->vocab) return NO;
    switch (rule->kind) {
    case CK_GREEDY: return position == 0 ? YES : NO;
    case CK_TOPM: return position < rule->count ? YES : NO;
    case CK_ADDITIVE: return near_first(m, rule->a, position);
    case CK_TOPK_DELTA: return position < rule->count ? near_first(m, rule->a, position) : NO;
    case CK_TOPK_RATIO: return position < rule->count ? ratio(m, rule->a, position) : NO;
    case CK_MULTIPLICATIVE: return ratio(m, rule->a, position);
    case CK_ABSOLUTE:
        if (position >= r->finite) return NO;
        if (ck_uniform(r)) return ck_compare_product(r->finite, rule->a, 1) <= 0 ? YES : NO;
        return mpq_cmp_ui(rule->a, 1, 1) == 0 ? NO : decide(m, MASS, rule->a, position);
    case CK_REGRET:
        if (position >= r->finite) return NO;
        if (r->finite == 1) return YES;
        return mpq_sgn(rule->a) == 0 ? NO : decide(m, REGRET, rule->a, position);
    case CK_ENTROPY: return typical(m, rule, position);
    case CK_NUCLEUS: // in unless the tokens before it already have the mass
        if (position == 0) return YES;
        if (position >= r->finite) return NO;
        if (mpq_cmp_ui(rule->a, 1, 1) == 0) return YES;
        if (ck_uniform(r)) return ck_compare_product(r->finite, rule->a, position) > 0 ? YES : NO;
        enum answer enough = decide(m, SHARE, rule->a, position - 1);
        return enough == OPEN ? OPEN : enough == YES ? NO : YES;
    case CK_RULE_KINDS: break;
    }
    return OPEN;
}
