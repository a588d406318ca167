// Certificates for draft vocabularies smaller than the target's: see certificate_state.h, theory.md §4.
#include "certify/certificate_state.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

// p_D and q_D as rows of their own: the ids ascend in D, so ties keep their order.
struct restriction {
    float *target, *draft;
    struct hm_row *p, *q;
    size_t k;
};

static void restriction_clear(struct restriction *r)
{
    hm_row_close(r->p);
    hm_row_close(r->q);
    free(r->target);
    free(r->draft);
}

static bool any_finite(const float *logits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (logits[i] != -INFINITY) return true;
    return false;
}

static hm_status check_vocabulary(const struct hm_claim_query *query, struct hm_error *err)
{
    size_t n = query->draft_vocab_size, vocab = query->target->vocab;
    if (n < 2 || n > vocab)
        return hm_fail(err, HM_SHAPE, "draft vocabulary: expected from 2 to %zu ids, found %zu", vocab, n);
    for (size_t i = 0; i < n; i++) {
        int32_t id = query->draft_vocab[i], least = i ? query->draft_vocab[i - 1] + 1 : 0;
        if (id < least || (size_t)id >= vocab)
            return hm_fail(err, HM_RANGE, "draft vocabulary, entry %zu: expected an id from %ld to %zu, found %ld", i,
                           (long)least, vocab - 1, (long)id);
    }
    return HM_OK;
}

static hm_status gather(const struct hm_claim_query *query, size_t k, struct restriction *r, struct hm_error *err)
{
    size_t n = query->draft_vocab_size;
    struct hm_row *p = query->target, *q = query->draft;
    r->target = hm_calloc(n, sizeof *r->target);
    r->draft = hm_calloc(n, sizeof *r->draft);
    if (!r->target || !r->draft) return hm_fail(err, HM_MEMORY, "draft vocabulary of %zu ids: out of memory", n);
    uint64_t last = k ? hm_row_key(p, (size_t)hm_row_token(p, k - 1)) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t id = (size_t)query->draft_vocab[i];
        r->target[i] = p->logits[id];
        r->draft[i] = q->logits[id];
        r->k += k > 0 && hm_row_key(p, id) <= last;
    }
    return HM_OK;
}

static hm_status judge(struct restriction *r, size_t m, struct hm_restricted *out, struct hm_error *err)
{
    struct hm_row_distance distance;
    hm_status status = hm_row_distance(r->p, r->q, &distance, err);
    if (status) return status;
    out->kl = distance.kl_pq;
    if (m > r->p->vocab - r->k) {
        hm_level_constant(&out->level, INFINITY);
        out->certified = HM_CERT_VACUOUS;
        return HM_OK;
    }
    status = hm_level_make(r->p, r->k, m, &out->level, NULL, err);
    return status ? status
                  : hm_claim_below(r->p, r->q, r->k, m, HM_FORWARD, out->kl, &out->level, &out->certified, err);
}

hm_status hm_claim_restrict(const struct hm_claim_query *query, size_t k, struct hm_restricted *out, struct hm_error *err)
{
    struct restriction r = {0};
    *out = (struct hm_restricted){.certified = HM_CERT_NO};
    hm_status status = check_vocabulary(query, err);
    if (status == HM_OK) status = gather(query, k, &r, err);
    if (status == HM_OK) {
        out->k = r.k;
        if (!any_finite(r.target, query->draft_vocab_size) || !any_finite(r.draft, query->draft_vocab_size)) {
            out->status = HM_RESTRICTED_NO_MASS;
        } else if (r.k == 0) {
            out->status = HM_RESTRICTED_NO_ACCEPTED;
        } else {
            const struct hm_rational *temperature = &query->target->temperature;
            status = hm_row_open(r.target, query->draft_vocab_size, temperature, &r.p, err);
            if (status == HM_OK) status = hm_row_open(r.draft, query->draft_vocab_size, temperature, &r.q, err);
            if (status == HM_OK) status = judge(&r, query->m, out, err);
        }
    }
    restriction_clear(&r);
    return status;
}
