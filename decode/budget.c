// Fidelity budgets: see accept.h; docs/log.md, "Fidelity budgets"; theory.md §5.
#include "bounds/ival_math.h"
#include "decode/accept.h"

#include <math.h>

void hm_budget_init(struct hm_budget *budget)
{
    budget->kind = HM_BUDGET_NONE;
    budget->spent = 0;
    hm_rational_init(&budget->limit);
    hm_rational_init(&budget->reserve);
}

void hm_budget_clear(struct hm_budget *budget)
{
    hm_rational_clear(&budget->limit);
    hm_rational_clear(&budget->reserve);
}

// R = max_tokens ((B + 1) V + B) 2^-53: so much may uniforms of 53 bits add to a token's law, V 2^-53 for each of at most
// B + 1 draws and 2^-53 for each of at most B coins. Exact, however large.
void hm_budget_begin(struct hm_budget *budget, size_t max_tokens, size_t tree_budget, size_t vocab)
{
    mpz_t room;
    budget->spent = 0;
    mpz_init_set_ui(room, tree_budget);
    mpz_add_ui(room, room, 1);
    mpz_mul_ui(room, room, vocab);
    mpz_add_ui(room, room, tree_budget);
    mpz_mul_ui(room, room, max_tokens);
    mpq_set_z(budget->reserve.value, room);
    mpq_div_2exp(budget->reserve.value, budget->reserve.value, 53);
    mpz_clear(room);
}

bool hm_budget_charge(struct hm_budget *budget, double charge)
{
    double sum = hm_ival_add(hm_ival_point(budget->spent), hm_ival_point(charge)).hi;
    if (!isfinite(sum)) return false;
    mpq_t exact;
    mpq_init(exact);
    mpq_set_d(exact, sum);
    if (budget->kind == HM_BUDGET_TV) mpq_add(exact, exact, budget->reserve.value);
    bool allowed = mpq_cmp(exact, budget->limit.value) <= 0;
    mpq_clear(exact);
    if (allowed) budget->spent = sum;
    return allowed;
}
