// `--check`: see decode_check.h.
#include "cli/decode_check.h"

#include <math.h>
#include <stdlib.h>

struct comparison {
    const struct hm_answer *answer;
    bool parted;
    uint32_t t;
    int32_t ours, plain;
    float gap;
};

// The plain decode sees the same contexts up to the first difference, so its row there explains it.
static hm_status compare(void *user, const struct hm_step_event *event, struct hm_error *err)
{
    struct comparison *c = user;
    (void)err;
    int32_t ours = event->t < c->answer->count ? c->answer->token[event->t] : -1;
    if (c->parted || ours == event->token) return HM_OK;
    c->parted = true;
    c->t = event->t;
    c->ours = ours;
    c->plain = event->token;
    c->gap = ours < 0 ? NAN : event->target_row[event->token] - event->target_row[ours];
    return HM_OK;
}

hm_status hm_decode_check(struct hm_session *plain, const struct hm_answer *answer, const int32_t *prompt,
                          size_t max_tokens, struct hm_check_result *result, struct hm_error *err)
{
    struct comparison c = {.answer = answer};
    struct hm_listener listener = {.user = &c, .step = compare};
    struct hm_session_counts counts = {0};
    int32_t *token;
    size_t count;
    hm_status rc = hm_session_run(plain, answer->sequence, prompt, answer->prompt_tokens, max_tokens, &listener, &counts,
                                  &token, &count, err);
    if (rc) return rc;
    free(token);
    if (!c.parted && count < answer->count) {
        c = (struct comparison){.parted = true, .t = (uint32_t)count, .ours = answer->token[count], .plain = -1, .gap = NAN};
    }
    result->compared++;
    result->tokens += count;
    result->seconds += counts.seconds;
    if (!c.parted) return HM_OK;
    if (result->different++ == 0) {
        result->sequence = answer->sequence;
        result->t = c.t;
        result->ours = c.ours;
        result->plain = c.plain;
        result->gap = c.gap;
    }
    return HM_OK;
}
