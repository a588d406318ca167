// One side of a comparison: see compare_side.h.
#include "cli/compare_side.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static hm_status no_memory(const struct hm_compare_side *side, struct hm_error *err)
{
    return hm_fail(err, HM_MEMORY, "%s: out of memory for a sequence", side->path);
}

hm_status hm_side_open(struct hm_compare_side *side, struct hm_error *err)
{
    hm_source_close(side->source);
    side->source = NULL;
    side->held = side->any = false;
    hm_status rc = hm_source_open(side->path, &side->options, &side->source, err);
    if (rc) return rc;
    side->format = hm_source_format(side->source);
    side->decided_by = hm_source_decided_by(side->source);
    return HM_OK;
}

static void clear_sequence(struct hm_side_sequence *s)
{
    free(s->id);
    free(s->category);
    free(s->temperature);
    free(s->seed);
    free(s->acceptance);
    s->id = s->category = s->temperature = s->seed = s->acceptance = NULL;
}

void hm_side_close(struct hm_compare_side *side)
{
    hm_source_close(side->source);
    side->source = NULL;
    clear_sequence(&side->now);
    free(side->now.prompt);
    side->now.prompt = NULL;
}

// Makes side->event the next one that is no finding.
static hm_status look(struct hm_compare_side *side, bool tell, struct hm_error *err)
{
    while (!side->held) {
        hm_status rc = hm_source_next(side->source, &side->event, err);
        if (rc) return rc;
        if (side->event.kind != HM_EVENT_FINDING) side->held = true;
        else if (tell && side->finding) side->finding(side->user, side->letter, side->event.finding);
    }
    return HM_OK;
}

static bool copy_text(char **out, const char *text, bool needed)
{
    *out = text ? strdup(text) : needed ? strdup("") : NULL;
    return *out || (!text && !needed);
}

static hm_status copy_sequence(struct hm_compare_side *side, const struct hm_source_sequence *from, struct hm_error *err)
{
    struct hm_side_sequence *s = &side->now;
    void *prompt = s->prompt;
    clear_sequence(s);
    s->number = from->number;
    s->told_prompt = from->prompt != NULL;
    s->prompt_length = from->prompt ? from->prompt_length : 0;
    if (!hm_grow(&prompt, &s->prompt_room, s->prompt_length + 1, sizeof *s->prompt)) return no_memory(side, err);
    s->prompt = prompt;
    if (s->prompt_length) memcpy(s->prompt, from->prompt, s->prompt_length * sizeof *s->prompt);
    bool good = copy_text(&s->id, from->id, true) && copy_text(&s->category, from->category, true) &&
                copy_text(&s->temperature, from->temperature, false) && copy_text(&s->seed, from->seed, false) &&
                copy_text(&s->acceptance, from->acceptance, false);
    return good ? HM_OK : no_memory(side, err);
}

static hm_status next_sequence(struct hm_compare_side *side, bool tell, bool *there, struct hm_error *err)
{
    hm_status rc = look(side, tell, err);
    while (!rc && side->event.kind == HM_EVENT_TOKEN) {
        side->held = false;
        rc = look(side, tell, err);
    }
    side->any = *there = !rc && side->event.kind == HM_EVENT_SEQUENCE;
    if (rc || !*there) return rc;
    side->held = false;
    return copy_sequence(side, side->event.sequence, err);
}

hm_status hm_side_next(struct hm_compare_side *side, bool *there, struct hm_error *err)
{
    return next_sequence(side, true, there, err);
}

hm_status hm_side_seek(struct hm_compare_side *side, uint32_t number, struct hm_error *err)
{
    bool there = true;
    hm_status rc = side->any && side->now.number <= number ? HM_OK : hm_side_open(side, err);
    while (!rc && there && !(side->any && side->now.number == number)) rc = next_sequence(side, false, &there, err);
    if (!rc && !there)
        rc = hm_fail(err, HM_FORMAT, "%s: expected sequence %u again, found the end of the file: did it change?", side->path,
                     (unsigned)number);
    return rc;
}

hm_status hm_side_token(struct hm_compare_side *side, const struct hm_source_token **token, struct hm_error *err)
{
    *token = NULL;
    hm_status rc = look(side, true, err);
    if (rc || side->event.kind != HM_EVENT_TOKEN) return rc;
    if (side->event.token->sequence != side->now.number)
        return hm_fail(err, HM_UNSUPPORTED, "%s: expected the tokens of sequence %u together, found one of %u", side->path,
                       (unsigned)side->now.number, (unsigned)side->event.token->sequence);
    side->held = false;
    *token = side->event.token;
    return HM_OK;
}
