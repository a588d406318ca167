// The largest values of a row of evidence. Not part of the interface.
#ifndef HM_EVIDENCE_LEADING_H
#define HM_EVIDENCE_LEADING_H

#include "evidence/evidence.h"

// Entries of a list, token ids of a full row; HM_UNSEEN: none. Values that are not known are (-inf, +inf).
struct hm_leading {
    size_t first, second;        // by the lower ends of their values, equal ones in the order of the row
    struct hm_ival first_value;  // the largest value of the row, whichever token has it
    struct hm_ival second_value; // the largest but one
    double unseen;               // no token that is not listed has a value above this; -inf: all are listed
};

enum hm_leading_of { HM_LEADING_RANKED, HM_LEADING_ALL }; // entries to look at, of lists

// The entry `without` is left out (HM_UNSEEN: none is).
struct hm_leading hm_evidence_leading(const struct hm_evidence *row, enum hm_leading_of of, size_t without);

#endif
