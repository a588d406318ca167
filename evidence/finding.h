// Findings: what is wrong with a log or a row of another engine, by name (docs/evidence.md "Findings").
#ifndef HM_EVIDENCE_FINDING_H
#define HM_EVIDENCE_FINDING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_finding_kind {
    HM_FINDING_ALL_ZERO,        // one log-probability 0, all others at the sentinel: only the argmax was logged
    HM_FINDING_SENTINEL,        // -9999 stands for "no value"
    HM_FINDING_NO_LOGPROBS,     // a sequence whose tokens have none
    HM_FINDING_SOME_LOGPROBS,   // tokens without, after tokens with (first-only included)
    HM_FINDING_MASS,            // listed probabilities sum to more than 1
    HM_FINDING_TOO_LITTLE_MASS, // unseen tokens cannot make up the rest: (vocab - count) * c is less than it
    HM_FINDING_POSITIVE,        // a log-probability above 0
    HM_FINDING_UNSORTED,        // ranked entries not in descending order
    HM_FINDING_DUPLICATE,       // a token listed twice, or two tokens that share a text where the text is the key
    HM_FINDING_TOKEN_ABSENT,    // the emitted token is not among the entries
    HM_FINDING_TOKEN_DIFFERS,   // its own log-probability and its entry's, or ids and texts, disagree
    HM_FINDING_NOT_A_NUMBER,    // NaN or +inf
    HM_FINDING_LENGTH,          // lists that belong together differ in length, or rows in width
    HM_FINDING_EMPTY_ROW,       // only -inf, or nothing
    HM_FINDING_PADDING,         // a row of padding: all values equal, or columns beyond the tokenizer that are not -inf
    HM_FINDING_ID_RANGE,        // a token id outside the vocabulary
    HM_FINDING_DRAFT_MAP,       // d2t/t2d: repeated, out of range, or disagreeing
    HM_FINDING_COUNTERS,        // the engine's own counters contradict each other
    HM_FINDING_SPECULATION,     // speculation ran, and log-probabilities logged under it are known to be wrong or missing
    HM_FINDINGS
};

// "all-zero", "sentinel", ...: stable names.
const char *hm_finding_name(enum hm_finding_kind kind);

enum { HM_FINDING_WHAT = 200, HM_FINDING_WHERE = 120 };

struct hm_finding {
    enum hm_finding_kind kind;
    int64_t sequence, t;          // -1: the input, the sequence as a whole
    char where[HM_FINDING_WHERE]; // place in the file: "line 3: choices[0].logprobs.content[17]", "row 12"
    char what[HM_FINDING_WHAT];   // "expected at most 1, found 1.00021"
};

// Fills *out; texts that do not fit are cut at a character border, and control characters in them become '?'.
void hm_finding_set(struct hm_finding *out, enum hm_finding_kind kind, int64_t sequence, int64_t t, const char *where,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));

// Evidence that is missing: the field, and the engine's flag that would supply it.
enum hm_missing {
    HM_MISSING_LOGPROBS,    // no log-probabilities at all
    HM_MISSING_MEASURED,    // the engine logged the others, but no number for this token
    HM_MISSING_TOP,         // no top list beside the emitted token's
    HM_MISSING_MORE_TOP,    // the list is too short for the question
    HM_MISSING_IDS,         // token ids
    HM_MISSING_PROMPT,      // prompt ids
    HM_MISSING_VOCABULARY,  // the vocabulary's size
    HM_MISSING_RAW,         // values are processed; raw ones are needed
    HM_MISSING_DRAFT,       // the draft's rows
    HM_MISSING_FLOOR,       // a bound from below on unseen tokens: whole rows
    HM_MISSINGS
};
const char *hm_missing_name(enum hm_missing missing); // "logprobs", "top", "more-top", ...

#ifdef __cplusplus
}
#endif

#endif
