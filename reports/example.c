// Teaching examples: see example.h.
#include "reports/example.h"

#include "certify/row.h"
#include "certify/rule.h"

static hm_status probabilities(struct hm_row *row, size_t vocab, struct hm_ival *out, struct hm_error *err)
{
    hm_status rc = HM_OK;
    for (size_t i = 0; i < vocab && !rc; i++) rc = hm_row_probability(row, (int32_t)i, &out[i], err);
    return rc;
}

static hm_status certify(struct hm_row *p, struct hm_row *q, struct hm_example *out, struct hm_error *err)
{
    struct hm_rule greedy;
    struct hm_row_distance d;
    struct hm_claim claim;
    hm_status rc = hm_rule_parse("greedy", &greedy, err);
    if (rc) return rc;
    rc = hm_row_distance(p, q, &d, err);
    if (!rc)
        rc = hm_claim_make(
            &(struct hm_claim_query){.rule = &greedy, .target = p, .draft = q, .distance = &d, .token = -1, .m = 1},
            &claim, err);
    hm_rule_clear(&greedy);
    if (rc) return rc;
    const struct hm_ival distance[3] = {d.kl_pq, d.kl_qp, d.tv},
                         level[3] = {claim.level.klf, claim.level.klr, claim.level.tv};
    for (int i = 0; i < 3; i++) {
        out->distance[i] = distance[i];
        out->level[i] = level[i];
        out->certified[i] = claim.certified[i];
    }
    out->water[0] = claim.level.level_f;
    out->water[1] = claim.level.level_r;
    out->covered = claim.covered;
    return HM_OK;
}

hm_status hm_example_make(const float *p, const float *q, size_t vocab, struct hm_example *out, struct hm_error *err)
{
    struct hm_rational one;
    struct hm_row *target = NULL, *draft = NULL;
    *out = (struct hm_example){.vocab = vocab};
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    hm_status rc = hm_row_open(p, vocab, &one, &target, err);
    if (!rc) rc = hm_row_open(q, vocab, &one, &draft, err);
    if (!rc) rc = probabilities(target, vocab, out->p, err);
    if (!rc) rc = probabilities(draft, vocab, out->q, err);
    if (!rc) rc = certify(target, draft, out, err);
    hm_row_close(target);
    hm_row_close(draft);
    hm_rational_clear(&one);
    return rc;
}

hm_status hm_examples_make(struct hm_example out[2], struct hm_error *err)
{
    static const float two[2][2] = {{1, 0}, {0.5f, 0}}, three[2][3] = {{2, 0.75f, 0}, {1.5f, 0.875f, 0.25f}};
    hm_status rc = hm_example_make(two[0], two[1], 2, &out[0], err);
    return rc ? rc : hm_example_make(three[0], three[1], 3, &out[1], err);
}
