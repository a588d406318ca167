// Words for the printers of a comparison: see compare_words.h.
#include "cli/compare_words.h"

#include "reports/number.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct hm_words hm_words_ival(struct hm_ival x)
{
    struct hm_words out;
    struct hm_number low = hm_number_down(x.lo, 3), high = hm_number_up(x.hi, 3), near = hm_number_near(x.hi, 3);
    if (x.lo == x.hi) snprintf(out.text, sizeof out.text, "%s", near.text);
    else if (strcmp(hm_number_near(x.lo, 3).text, near.text) == 0) snprintf(out.text, sizeof out.text, "%s", near.text);
    else if (x.hi == INFINITY && x.lo == -INFINITY) snprintf(out.text, sizeof out.text, "unknown");
    else if (x.hi == INFINITY) snprintf(out.text, sizeof out.text, "at least %.40s", low.text);
    else snprintf(out.text, sizeof out.text, "%.26s to %.26s", low.text, high.text);
    return out;
}

struct hm_words hm_words_percent(const char *quantile)
{
    struct hm_words out;
    snprintf(out.text, sizeof out.text, "%.20s %%", quantile);
    return out;
}

void hm_words_token(int32_t id, const char *text, char out[HM_WORDS])
{
    char clean[HM_FORK_TEXT];
    snprintf(clean, sizeof clean, "%s", text);
    hm_text_clean(clean);
    if (id >= 0 && *clean) snprintf(out, HM_WORDS, "%d \"%s\"", (int)id, clean);
    else if (id >= 0) snprintf(out, HM_WORDS, "%d", (int)id);
    else if (*clean) snprintf(out, HM_WORDS, "\"%s\"", clean);
    else strcpy(out, "nothing");
}

void hm_words_place(const struct hm_spool_prompt *prompt, uint32_t t, int32_t width, char out[HM_WORDS])
{
    char id[HM_SPOOL_ID + 4] = "", wide[32] = "", clean[HM_SPOOL_ID];
    snprintf(clean, sizeof clean, "%s", prompt->id);
    hm_text_clean(clean);
    if (*clean) snprintf(id, sizeof id, " \"%s\"", clean);
    if (width > 0) snprintf(wide, sizeof wide, ", width %d", (int)width);
    snprintf(out, HM_WORDS, "prompt %u%s, token %u%s", (unsigned)prompt->number, id, (unsigned)t, wide);
}

void hm_words_group(const struct hm_compare_group *group, char out[HM_WORDS])
{
    char name[HM_SPOOL_CATEGORY];
    snprintf(name, sizeof name, "%s", group->name);
    hm_text_clean(name);
    if (group->of_width) snprintf(out, HM_WORDS, "width %d", (int)group->width);
    else snprintf(out, HM_WORDS, "category %s", name);
}
