// One side of a comparison: see compare_side.h.
#include "cli/compare_side.h"

#include "base/memory.h"
#include "cli/compare_store.h"

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
    side->held = side->any = side->unread = false;
    hm_status rc = hm_source_open(side->path, &side->options, &side->source, err);
    if (rc) return rc;
    side->format = hm_source_format(side->source);
    side->decided_by = hm_source_decided_by(side->source);
    return HM_OK;
}

bool hm_side_same_prompt(const struct hm_side_sequence *a, const struct hm_side_sequence *b)
{
    return a->prompt_length == b->prompt_length && memcmp(a->prompt, b->prompt, a->prompt_length * sizeof *a->prompt) == 0;
}

void hm_side_sequence_clear(struct hm_side_sequence *s)
{
    free(s->id);
    free(s->category);
    free(s->temperature);
    free(s->seed);
    free(s->acceptance);
    free(s->prompt);
    *s = (struct hm_side_sequence){0};
}

void hm_side_close(struct hm_compare_side *side)
{
    hm_source_close(side->source);
    side->source = NULL;
    hm_side_sequence_clear(&side->now);
    hm_store_clear(side);
}

// Makes side->event the next one that is no finding.
static hm_status look(struct hm_compare_side *side, struct hm_error *err)
{
    while (!side->held) {
        hm_status rc = hm_source_next(side->source, &side->event, err);
        if (rc) return rc;
        if (side->event.kind != HM_EVENT_FINDING) side->held = true;
        else {
            side->now.misaligned |= side->any && side->event.finding->kind == HM_FINDING_LENGTH;
            if (side->finding && (side->any ? side->at >= side->told : side->told == 0))
                side->finding(side->user, side->letter, side->event.finding);
        }
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
    hm_side_sequence_clear(s);
    void *prompt = NULL;
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

hm_status hm_side_next(struct hm_compare_side *side, bool *there, struct hm_error *err)
{
    hm_status rc = look(side, err);
    while (!rc && side->event.kind == HM_EVENT_TOKEN) {
        side->held = false;
        rc = look(side, err);
    }
    if (!rc && side->any && side->at >= side->told) side->told = side->at + 1;
    side->any = side->unread = *there = !rc && side->event.kind == HM_EVENT_SEQUENCE;
    if (rc || !*there) return rc;
    side->held = false;
    side->at = side->event.sequence->number;
    return copy_sequence(side, side->event.sequence, err);
}

hm_status hm_side_seek(struct hm_compare_side *side, uint32_t number, struct hm_error *err)
{
    bool there = true;
    if (hm_store_take(side, number)) return HM_OK;
    if (side->any && side->unread && side->at == number && side->now.number == number) return HM_OK;
    bool again = !side->any || side->at >= number; // it was read, and not kept
    uint32_t most = side->at;
    if (!again && side->unread && side->now.number == side->at) {
        hm_status stored = hm_store_add(side, err);
        if (stored) return stored;
    }
    hm_status rc = again ? hm_side_open(side, err) : HM_OK;
    while (!rc && !(rc = hm_side_next(side, &there, err)) && there && side->at != number)
        if (!again || side->at > most) rc = hm_store_add(side, err);
    if (!rc && !there)
        rc = hm_fail(err, HM_FORMAT, "%s: expected sequence %u again, found the end of the file: did it change?", side->path,
                     (unsigned)number);
    return rc;
}

hm_status hm_side_token(struct hm_compare_side *side, const struct hm_source_token **token, struct hm_error *err)
{
    *token = NULL;
    if (side->serving) {
        *token = hm_store_token(side);
        return HM_OK;
    }
    hm_status rc = look(side, err);
    side->unread = false;
    if (rc || side->event.kind != HM_EVENT_TOKEN) return rc;
    if (side->event.token->sequence != side->at)
        return hm_fail(err, HM_UNSUPPORTED, "%s: expected the tokens of sequence %u together, found one of %u", side->path,
                       (unsigned)side->at, (unsigned)side->event.token->sequence);
    side->held = false;
    *token = side->event.token;
    return HM_OK;
}
