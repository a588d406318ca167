// To be written.
#include "evidence/source_state.h"

hm_status hm_openai_chat_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                       struct hm_reader *out, struct hm_error *err)
{
    (void)map, (void)options, (void)out;
    return hm_fail(err, HM_UNSUPPORTED, "%s: not read yet", path);
}
