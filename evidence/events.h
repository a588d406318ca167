// What readers of one format share: the queue of events, and what is counted along a sequence.
//
// A reader takes a piece of its file at a time and gives all that it holds: at most one sequence, one token and some findings.
// hm_source_next hands them out one by one.
#ifndef HM_EVIDENCE_EVENTS_H
#define HM_EVIDENCE_EVENTS_H

#include "evidence/source.h"

enum { HM_EVENTS_MOST = 16, HM_TRACK_ID = 128 };

struct hm_events {
    struct hm_source_sequence sequence; // filled by the reader, then pushed
    struct hm_source_token token;       // likewise
    char where[HM_FINDING_WHERE];       // the token's place
    struct hm_finding finding[HM_EVENTS_MOST];
    enum hm_event_kind kind[HM_EVENTS_MOST];
    size_t first, count;
};

// The next event, false when the queue is empty. What the event points to stays until the reader's next piece.
bool hm_events_take(struct hm_events *events, struct hm_event *out);

// events->sequence, events->token, and the end. Nothing is pushed to a full queue: no piece has that many events.
void hm_events_push(struct hm_events *events, enum hm_event_kind kind);
void hm_events_finding(struct hm_events *events, enum hm_finding_kind kind, int64_t sequence, int64_t t, const char *where,
                       const char *format, ...) __attribute__((format(printf, 6, 7)));
// About the token that is being read: its sequence, t and place.
void hm_events_token_finding(struct hm_events *events, enum hm_finding_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A sequence that is being read.
struct hm_track {
    uint32_t number;                // of the sequence
    uint32_t tokens;                // emitted so far
    uint64_t with, without;         // tokens with a row, and without
    uint64_t first_without;         // t of the first one without
    uint64_t sentinels;             // entries that are -9999
    uint64_t joined;                // tokens whose entry has the text of those before them, which have none
    bool aligned;                   // t is known all the same
    bool miscounted;                // it was said that the engine counted more than it listed
    bool listed;                    // tokens are listed one by one: one has a row, or is known not to have been measured
    int64_t drafted, accepted;      // the engine's counters, -1: absent
    int64_t predicted;              // tokens that it counted, likewise
    char where[HM_FINDING_WHERE];   // place of the sequence
    char sentinel[HM_FINDING_WHERE];// place of the first sentinel
};

void hm_track_begin(struct hm_track *track, uint32_t number, const char *where);

// Gives events->token as the next one of its sequence (or of its prompt, when of_prompt is set: t is then the caller's): sets
// its sequence, t and where, pushes it and counts it. Findings about it come after.
void hm_track_token(struct hm_track *track, struct hm_events *events);

// What is to be said of a sequence when all of it was read: NO_LOGPROBS, SOME_LOGPROBS, LENGTH, SENTINEL, SPECULATION,
// COUNTERS.
void hm_track_end(const struct hm_track *track, struct hm_events *events);

#endif
