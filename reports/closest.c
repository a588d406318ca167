// Steps that a reader will want to look at: those that the least noise could turn, and the first of each kind that the
// lead claim does not certify (figures.h).
#include "reports/gather.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

// The noise in logits that could turn the step: the radius of the lead claim, or else of "this token is the argmax".
bool hm_turning_noise(const struct hm_record_step *step, size_t lead, double *out, bool *by_radius)
{
    *by_radius = step->claims[lead].has_radius;
    if (*by_radius)
        *out = step->claims[lead].radius.lo;
    else if (step->top_count >= 2)
        *out = (step->top[0].logit - step->top[1].logit) / 2;
    else
        return false;
    return *out >= 0; // two logits of -inf have no difference
}

void hm_keep_closest(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    struct hm_report *r = g->report;
    double radius;
    bool by_radius;
    if (!hm_turning_noise(step, r->lead, &radius, &by_radius)) return;
    if (r->closest_count > 0 && by_radius != r->closest_by_radius) {
        if (!by_radius) return; // never two kinds in one table: radii win
        r->closest_count = 0;
    }
    r->closest_by_radius = by_radius;
    size_t at = r->closest_count;
    while (at > 0 && radius < r->closest[at - 1].radius) at--;
    if (at == HM_REPORT_CLOSEST) return;
    if (r->closest_count < HM_REPORT_CLOSEST) r->closest_count++;
    for (size_t i = r->closest_count - 1; i > at; i--) r->closest[i] = r->closest[i - 1];
    struct hm_close_step *close = &r->closest[at];
    *close = (struct hm_close_step){.log = g->log,
                                    .line = line,
                                    .sequence = (uint32_t)step->sequence,
                                    .t = (uint32_t)step->t,
                                    .token = (uint32_t)step->token,
                                    .radius = radius,
                                    .status = g->status[g->report->lead]};
    for (size_t i = 0; i < 2 && i < step->top_count; i++) close->top[i] = step->top[i];
    hm_text_copy(close->text, sizeof close->text, step->text, strlen(step->text));
}

hm_status hm_keep_missed(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    struct hm_report *r = g->report;
    uint8_t status = g->status[r->lead];
    if (status == HM_TOKEN_CERTIFIED || status == HM_TOKEN_NO_DRAFT || status == HM_TOKEN_VACUOUS) return HM_OK;
    if (r->missed_count[status] == HM_REPORT_MISSED) return HM_OK;
    if (!r->missed[status]) r->missed[status] = hm_calloc(HM_REPORT_MISSED, sizeof *r->missed[status]);
    if (!r->missed[status]) return hm_fail(g->err, HM_MEMORY, "out of memory for the uncertified steps of a report");
    const struct hm_record_claim *c = &step->claims[r->lead];
    struct hm_missed_step *m = &r->missed[status][r->missed_count[status]++];
    *m = (struct hm_missed_step){.log = g->log,
                                 .line = line,
                                 .index = step->index,
                                 .sequence = step->sequence,
                                 .t = step->t,
                                 .token = step->token,
                                 .status = status,
                                 .k = c->k,
                                 .m = c->m,
                                 .has_draft = step->has_draft,
                                 .has_limits = c->has_distances,
                                 .distance = {step->kl_pq.hi, step->kl_qp.hi, step->tv.hi},
                                 .limit = {c->level.klf.lo, c->level.klr.lo, c->level.tv.lo}};
    for (int i = 0; i < 3; i++) m->certified[i] = (uint8_t)c->certified[i];
    hm_text_copy(m->text, sizeof m->text, step->text, step->text ? strlen(step->text) : 0);
    return HM_OK;
}
