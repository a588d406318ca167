// A second checker of certificate logs (docs/log.md), for reading: naive MPFR intervals, with all that belongs to it in
// this folder. It shares no code with the producer or with the fast checker of certify/check/, and must come to that
// one's verdict on every log. It is also a program of its own:
//
//     cc -o hallmark-check certify/check/simple/*.c -lmpfr -lgmp -lcjson -lcrypto -lm
//
// One translation unit, whose parts are headers, to be read in this order: parts.h (types), interval.h (arithmetic),
// log.h (lines, fields, proving), row.h (rows and their weights), rule.h (who is accepted, and noise), theory.h (levels
// and thresholds), law.h (output laws), claim.h (what a record claims), draw.h (random numbers, draws and coins),
// round.h (trees), budget.h (fidelity budgets), walk.h (steps), check.c (header, records, verdict).
#ifndef HM_CERTIFY_CHECK_SIMPLE_SIMPLE_H
#define HM_CERTIFY_CHECK_SIMPLE_SIMPLE_H

#include <stdbool.h>
#include <stdint.h>

// clang-format off
enum hm_simple_kind {
    HM_SIMPLE_PROVED, HM_SIMPLE_CONSISTENT, HM_SIMPLE_REFUTED, HM_SIMPLE_UNDECIDED, HM_SIMPLE_UNREADABLE
};
// clang-format on

struct hm_simple_result {
    enum hm_simple_kind kind;
    int exit_code; // 0 proved, 1 refuted, 2 unreadable, 3 undecided, truncated or rows absent
    uint64_t claims, undecided, steps;
    uint64_t line; // where it was refuted or found unreadable; 0 otherwise
    bool truncated;
    char message[1024]; // what follows "hallmark: "
};

// Checks one log; memory does not grow with its length. The flags turn exit code 3 into 0 in their cases.
int hm_check_simple(const char *path, bool allow_truncated, bool allow_absent_rows, struct hm_simple_result *result);

#endif
