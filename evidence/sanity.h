// Sanity of one row of evidence, before any certificate (docs/evidence.md "Findings").
#ifndef HM_EVIDENCE_SANITY_H
#define HM_EVIDENCE_SANITY_H

#include "evidence/evidence.h"
#include "evidence/finding.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_SANITY_MOST = 8 };

// Looks at the row and writes its findings, without place, into out [HM_SANITY_MOST]; returns how many. Full rows of floats
// included. A row with MASS, TOO_LITTLE_MASS, NOT_A_NUMBER, EMPTY_ROW, ALL_ZERO or DUPLICATE is no evidence for a distribution:
// *usable is false, and nothing is to be asked of it. ALL_ZERO keeps what it shows: the argmax.
size_t hm_sanity_check(const struct hm_evidence *evidence, struct hm_finding *out, bool *usable);

#ifdef __cplusplus
}
#endif

#endif
