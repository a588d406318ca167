// What a report shows one by one: the first tokens with their claims, the sequences they belong to, and the closest
// decisions (figures.h). Beyond the limits of figures.h nothing more is kept, only counted.
#include "reports/gather.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hm_status no_memory(const struct hm_gather *g)
{
    return hm_fail(g->err, HM_MEMORY, "out of memory for the text of a report");
}

hm_status hm_keep_sequence(struct hm_gather *g, const struct hm_record_sequence *sequence)
{
    struct hm_report *r = g->report;
    g->kept = NULL;
    if (r->kept_count == HM_REPORT_MOST_SEQUENCES || r->token_count == r->token_limit) return HM_OK;
    void *kept = r->kept;
    bool grown = hm_grow(&kept, &r->kept_capacity, r->kept_count + 1, sizeof *r->kept);
    r->kept = kept;
    if (!grown) return no_memory(g);
    g->kept = &r->kept[r->kept_count++];
    *g->kept = (struct hm_kept_sequence){.log = g->log,
                                         .id = hm_clip(sequence->id, HM_REPORT_LONGEST_NAME),
                                         .category = hm_clip(sequence->category, HM_REPORT_LONGEST_NAME),
                                         .sequence = (uint32_t)sequence->sequence,
                                         .turn = (uint32_t)sequence->turn,
                                         .token = r->token_count};
    return g->kept->id && g->kept->category ? HM_OK : no_memory(g);
}

static void keep_claim(const struct hm_record_claim *from, uint8_t status, struct hm_kept_claim *to)
{
    *to = (struct hm_kept_claim){.m = (uint32_t)from->m,
                                 .k = (uint32_t)from->k,
                                 .status = status,
                                 .accepts = (uint8_t)from->accepts,
                                 .covered = (uint8_t)from->covered,
                                 .has_verdicts = from->has_verdicts,
                                 .has_distances = from->has_distances,
                                 .has_radius = from->has_radius,
                                 .klf = from->level.klf,
                                 .klr = from->level.klr,
                                 .tv = from->level.tv,
                                 .radius = from->radius};
    for (int i = 0; i < 3; i++) to->certified[i] = (uint8_t)from->certified[i];
}

static hm_status keep_token(struct hm_gather *g, const struct hm_record_step *step)
{
    struct hm_report *r = g->report;
    char *text = hm_clip(step->text, HM_REPORT_LONGEST_TOKEN);
    if (!text) return no_memory(g);
    size_t size = strlen(text);
    void *tokens = r->tokens, *claims = r->token_claims, *bytes = r->text;
    bool grown = hm_grow(&tokens, &r->token_capacity, r->token_count + 1, sizeof *r->tokens);
    r->tokens = tokens;
    grown = grown &&
            hm_grow(&claims, &r->token_claim_capacity, (r->token_count + 1) * r->claim_count, sizeof *r->token_claims);
    r->token_claims = claims;
    grown = grown && hm_grow(&bytes, &r->text_capacity, r->text_size + size + 1, 1);
    r->text = bytes;
    if (grown) {
        memcpy(r->text + r->text_size, text, size);
        r->tokens[r->token_count] =
            (struct hm_kept_token){.text = r->text_size,
                                   .text_size = (uint32_t)size,
                                   .id = (uint32_t)step->token,
                                   .t = (uint32_t)step->t,
                                   .round = (int32_t)step->round,
                                   .depth = (uint16_t)(step->depth < 65535 ? step->depth : 65535),
                                   .source = (uint8_t)step->source,
                                   .finish = (uint8_t)step->finish,
                                   .has_draft = step->has_draft,
                                   .has_regret = step->has_regret,
                                   .entropy = step->entropy,
                                   .kl_pq = step->kl_pq,
                                   .kl_qp = step->kl_qp,
                                   .tv = step->tv,
                                   .regret = step->regret};
        for (size_t i = 0; i < r->claim_count; i++)
            keep_claim(&step->claims[i], g->status[i], &r->token_claims[r->token_count * r->claim_count + i]);
        r->text_size += size;
        r->token_count++;
        g->kept->tokens++;
    }
    free(text);
    return grown ? HM_OK : no_memory(g);
}

// The noise in logits that could turn the step: the radius of the lead claim, or else of "this token is the argmax".
static bool turning_noise(const struct hm_record_step *step, size_t lead, double *out, bool *by_radius)
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

static void keep_closest(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    struct hm_report *r = g->report;
    double radius;
    bool by_radius;
    if (!turning_noise(step, r->lead, &radius, &by_radius)) return;
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
    size_t size = strlen(step->text);
    if (size >= sizeof close->text) {
        size = sizeof close->text - 1;
        while (size > 0 && ((unsigned char)step->text[size] & 0xc0) == 0x80) size--;
    }
    memcpy(close->text, step->text, size);
}

hm_status hm_keep_step(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    keep_closest(g, step, line);
    if (!g->kept) return HM_OK;
    g->kept->steps++;
    g->kept->status[g->status[g->report->lead]]++;
    g->kept->finish = step->finish;
    struct hm_report *r = g->report;
    if (r->text_size >= HM_REPORT_MOST_TEXT) r->token_limit = r->token_count; // long texts: as full as many tokens
    return r->token_count < r->token_limit ? keep_token(g, step) : HM_OK;
}
