// Stands in for parts of decode/ that are being written; gone when they are there.
#include "decode/session.h"

__attribute__((weak)) hm_status hm_eagle3_detect(const char *dir, bool *is_eagle3, struct hm_error *err)
{
    (void)dir, (void)err;
    *is_eagle3 = false;
    return HM_OK;
}
__attribute__((weak)) hm_status hm_drafter_open_eagle3(const char *dir, struct hm_model *target, struct hm_device *device,
                                                       const struct hm_eagle3_options *options, struct hm_drafter **out,
                                                       struct hm_error *err)
{
    (void)dir, (void)target, (void)device, (void)options, (void)out;
    return hm_fail(err, HM_UNSUPPORTED, "eagle3: not yet");
}
__attribute__((weak)) const struct hm_eagle3_info *hm_drafter_eagle3_info(const struct hm_drafter *drafter)
{
    (void)drafter;
    return NULL;
}
