// What counts as accepted at a node: see accept.h.
#include "decode/accept.h"

#include "certify/philox.h"
#include "certify/row.h"

#include <stdbool.h>

// Among the children in A(p), the first in the row's order; -1 when there is none.
static hm_status best_accepted(const struct hm_acceptance *how, const float *logits, size_t vocab,
                               const int32_t *children, size_t child_count, int64_t *best, struct hm_error *err)
{
    struct hm_row *row = NULL;
    hm_status rc = hm_row_open(logits, vocab, how->certify_temperature, &row, err);
    *best = -1;
    for (size_t i = 0; i < child_count && !rc; i++) {
        enum hm_verdict accepted;
        int32_t a = children[i], b = *best < 0 ? -1 : children[*best];
        if (b >= 0 && (logits[b] > logits[a] || (logits[b] == logits[a] && b < a))) continue;
        rc = hm_rule_accepts(how->rule, row, a, &accepted, err);
        if (!rc && accepted == HM_YES) *best = (int64_t)i;
    }
    hm_row_close(row);
    return rc;
}

// The support after the processors and, if wanted, the draw at (sequence, t) from it; the argmax at temperature 0.
static hm_status draw(const struct hm_acceptance *how, const float *logits, size_t vocab, uint32_t sequence, uint32_t t,
                      bool wanted, struct hm_decision *out, struct hm_error *err)
{
    bool sampled = hm_rational_sign(how->temperature) > 0;
    struct hm_row *row = NULL;
    hm_status rc = hm_row_open(logits, vocab, sampled ? how->temperature : how->certify_temperature, &row, err);
    if (!rc && sampled) rc = hm_row_support(row, how->top_k, how->top_p, &out->support, err);
    if (!rc && wanted) {
        if (sampled) {
            uint64_t bits = hm_philox_bits(how->seed, sequence, t, HM_DRAW_TARGET, 0);
            rc = hm_row_draw(row, out->support, bits, &out->token, err);
        } else {
            out->token = hm_row_token(row, 0);
        }
    }
    hm_row_close(row);
    return rc;
}

hm_status hm_accept(const struct hm_acceptance *how, struct hm_budget *budget, const struct hm_accept_node *node,
                    struct hm_decision *out, struct hm_error *err)
{
    hm_status rc = HM_OK;
    size_t vocab = node->vocab;
    *out = (struct hm_decision){.token = -1, .child = -1, .support = vocab};
    if (budget || how->kind > HM_ACCEPT_RULE) return hm_fail(err, HM_UNSUPPORTED, "acceptance: expected match or a rule");
    if (how->rule) rc = best_accepted(how, node->target, vocab, node->children, node->child_count, &out->child, err);
    if (!rc) rc = draw(how, node->target, vocab, node->sequence, node->t, out->child < 0, out, err);
    if (rc) return rc;
    if (out->child >= 0) out->token = node->children[out->child];
    if (how->rule) return HM_OK;
    for (size_t i = 0; i < node->child_count; i++)
        if (node->children[i] == out->token) out->child = (int64_t)i;
    return HM_OK;
}

hm_status hm_accept_support(const struct hm_acceptance *how, const float *logits, size_t vocab, size_t *support,
                            struct hm_error *err)
{
    struct hm_row *row = NULL;
    *support = vocab;
    if (hm_rational_sign(how->temperature) == 0 || (how->top_k == 0 && !how->top_p)) return HM_OK;
    hm_status rc = hm_row_open(logits, vocab, how->temperature, &row, err);
    if (!rc) rc = hm_row_support(row, how->top_k, how->top_p, support, err);
    hm_row_close(row);
    return rc;
}
