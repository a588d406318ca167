// Who answers questions about a row, and how many were left to MPFR: see row.h.
#include "certify/row_state.h"

struct hm_row_questions hm_row_questions(const struct hm_row *row)
{
    return (struct hm_row_questions){row->filter.answered, row->filter.undecided};
}

void hm_row_exact_only(struct hm_row *row)
{
    row->filter.state = HM_FILTER_OFF;
}
