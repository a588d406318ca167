// The inside of evidence that was prepared for questions. Not part of the interface.
#ifndef HM_EVIDENCE_KNOWN_STATE_H
#define HM_EVIDENCE_KNOWN_STATE_H

#include "evidence/evidence.h"

struct hm_known {
    const struct hm_evidence *evidence; // borrowed
};

#endif
