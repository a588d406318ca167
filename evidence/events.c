// Events and tracks: see events.h.
#include "evidence/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool hm_events_take(struct hm_events *events, struct hm_event *out)
{
    if (events->first == events->count) {
        events->first = events->count = 0;
        return false;
    }
    size_t i = events->first++;
    *out = (struct hm_event){.kind = events->kind[i]};
    if (out->kind == HM_EVENT_SEQUENCE) out->sequence = &events->sequence;
    if (out->kind == HM_EVENT_TOKEN) out->token = &events->token;
    if (out->kind == HM_EVENT_FINDING) out->finding = &events->finding[i];
    return true;
}

void hm_events_push(struct hm_events *events, enum hm_event_kind kind)
{
    if (events->count < HM_EVENTS_MOST) events->kind[events->count++] = kind;
}

static void push_finding(struct hm_events *events, enum hm_finding_kind kind, int64_t sequence, int64_t t,
                         const char *where, const char *format, va_list arguments)
{
    char what[HM_FINDING_WHAT];
    if (events->count == HM_EVENTS_MOST) return;
    vsnprintf(what, sizeof what, format, arguments);
    hm_finding_set(&events->finding[events->count], kind, sequence, t, where, "%s", what);
    hm_events_push(events, HM_EVENT_FINDING);
}

void hm_events_finding(struct hm_events *events, enum hm_finding_kind kind, int64_t sequence, int64_t t,
                       const char *where, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    push_finding(events, kind, sequence, t, where, format, arguments);
    va_end(arguments);
}

void hm_events_token_finding(struct hm_events *events, enum hm_finding_kind kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    push_finding(events, kind, events->token.sequence, events->token.t, events->where, format, arguments);
    va_end(arguments);
}

void hm_track_begin(struct hm_track *track, uint32_t number, const char *where)
{
    *track = (struct hm_track){.number = number, .drafted = -1, .accepted = -1, .predicted = -1};
    snprintf(track->where, sizeof track->where, "%s", where);
}

void hm_track_token(struct hm_track *track, struct hm_events *events)
{
    struct hm_source_token *token = &events->token;
    token->sequence = track->number;
    token->where = events->where;
    if (!token->of_prompt) {
        token->t = track->tokens++;
        track->listed = track->listed || token->has_row || token->missing == HM_MISSING_MEASURED;
        if (token->has_row)
            track->with++;
        else if (track->without++ == 0)
            track->first_without = token->t;
    }
    hm_events_push(events, HM_EVENT_TOKEN);
}

// What the engine's own numbers say against each other.
static void end_counters(const struct hm_track *track, struct hm_events *events)
{
    int64_t drafted = track->drafted, accepted = track->accepted;
    if (drafted < -1 || accepted < -1 || (drafted >= 0 && accepted > drafted))
        hm_events_finding(events, HM_FINDING_COUNTERS, track->number, -1, track->where,
                          "%" PRId64 " tokens were drafted and %" PRId64 " of them accepted", drafted, accepted);
    else if (track->predicted >= 0 && accepted > track->predicted)
        hm_events_finding(events, HM_FINDING_COUNTERS, track->number, -1, track->where,
                          "%" PRId64 " drafted tokens were accepted, but only %" PRId64 " emitted", accepted,
                          track->predicted);
    if (drafted > 0)
        hm_events_finding(
            events, HM_FINDING_SPECULATION, track->number, -1, track->where,
            "%" PRId64 " tokens were drafted; log-probabilities logged while speculation runs may be wrong or missing",
            drafted);
}

void hm_track_end(const struct hm_track *track, struct hm_events *events)
{
    if (track->with == 0)
        hm_events_finding(events, HM_FINDING_NO_LOGPROBS, track->number, -1, track->where,
                          "no token has log-probabilities");
    else if (track->without > 0)
        hm_events_finding(events, HM_FINDING_SOME_LOGPROBS, track->number, (int64_t)track->first_without, track->where,
                          "%" PRIu64 " of %" PRIu32 " tokens have none, the first at %" PRIu64, track->without,
                          track->tokens, track->first_without);
    if (track->joined > 0 && !track->aligned)
        hm_events_finding(
            events, HM_FINDING_LENGTH, track->number, -1, track->where,
            "%" PRIu64
            " characters are made of several tokens, of which only the last is listed: t counts what is listed",
            track->joined);
    if (track->sentinels > 0)
        hm_events_finding(events, HM_FINDING_SENTINEL, track->number, -1, track->sentinel,
                          "%" PRIu64 " log-probabilities stand for no value, the first here", track->sentinels);
    end_counters(track, events);
}
