// What a printed number stands for: see evidence.h.
#include "evidence/evidence.h"

#include <math.h>

hm_status hm_decimal_read(const char *text, size_t size, enum hm_printing printing, enum hm_decimal_kind *kind,
                          struct hm_ival *out, struct hm_error *err)
{
    (void)text;
    (void)printing;
    *kind = HM_DECIMAL_FINITE;
    *out = (struct hm_ival){-INFINITY, INFINITY};
    return size == 0 ? hm_fail(err, HM_FORMAT, "expected a number, found nothing") : HM_OK;
}

struct hm_ival hm_decimal_log(struct hm_ival p)
{
    (void)p;
    return (struct hm_ival){-INFINITY, INFINITY};
}

struct hm_ival hm_decimal_widen(struct hm_ival value, double allowance)
{
    (void)value;
    (void)allowance;
    return (struct hm_ival){-INFINITY, INFINITY};
}
