// Sanity of one row: see sanity.h.
#include "evidence/sanity.h"

size_t hm_sanity_check(const struct hm_evidence *evidence, struct hm_finding *out, bool *usable)
{
    (void)evidence;
    (void)out;
    *usable = true;
    return 0;
}
