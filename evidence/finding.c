// Names of findings and of missing evidence: see finding.h.
#include "evidence/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hm_finding_name(enum hm_finding_kind kind)
{
    static const char *const names[HM_FINDINGS] = {
        [HM_FINDING_ALL_ZERO] = "all-zero",
        [HM_FINDING_SENTINEL] = "sentinel",
        [HM_FINDING_NO_LOGPROBS] = "no-logprobs",
        [HM_FINDING_SOME_LOGPROBS] = "some-logprobs",
        [HM_FINDING_MASS] = "mass-above-one",
        [HM_FINDING_TOO_LITTLE_MASS] = "too-little-mass",
        [HM_FINDING_POSITIVE] = "positive",
        [HM_FINDING_UNSORTED] = "unsorted",
        [HM_FINDING_DUPLICATE] = "duplicate",
        [HM_FINDING_TOKEN_ABSENT] = "token-absent",
        [HM_FINDING_TOKEN_DIFFERS] = "token-differs",
        [HM_FINDING_NOT_A_NUMBER] = "not-a-number",
        [HM_FINDING_LENGTH] = "length",
        [HM_FINDING_EMPTY_ROW] = "empty-row",
        [HM_FINDING_PADDING] = "padding",
        [HM_FINDING_ID_RANGE] = "id-range",
        [HM_FINDING_DRAFT_MAP] = "draft-map",
        [HM_FINDING_COUNTERS] = "counters",
        [HM_FINDING_SPECULATION] = "speculation",
    };
    return (unsigned)kind < HM_FINDINGS ? names[kind] : "unknown";
}

const char *hm_missing_name(enum hm_missing missing)
{
    static const char *const names[HM_MISSINGS] = {
        [HM_MISSING_LOGPROBS] = "logprobs",  [HM_MISSING_MEASURED] = "measured",
        [HM_MISSING_TOP] = "top",
        [HM_MISSING_MORE_TOP] = "more-top",  [HM_MISSING_IDS] = "ids",
        [HM_MISSING_PROMPT] = "prompt",      [HM_MISSING_VOCABULARY] = "vocabulary",
        [HM_MISSING_RAW] = "raw",            [HM_MISSING_DRAFT] = "draft",
        [HM_MISSING_FLOOR] = "floor",
    };
    return (unsigned)missing < HM_MISSINGS ? names[missing] : "unknown";
}

// One printable line that ends at a character border.
static void tidy(char *text, size_t size)
{
    size_t n = strlen(text);
    if (n + 1 == size) { // perhaps cut: drop a character that lacks bytes
        size_t start = n;
        while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
        unsigned char lead = start > 0 ? (unsigned char)text[start - 1] : 0;
        size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
        if (lead >= 0xC0 && n - start < need) text[start - 1] = '\0';
    }
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

void hm_finding_set(struct hm_finding *out, enum hm_finding_kind kind, int64_t sequence, int64_t t, const char *where,
                    const char *format, ...)
{
    va_list arguments;
    *out = (struct hm_finding){.kind = kind, .sequence = sequence, .t = t};
    snprintf(out->where, sizeof out->where, "%s", where);
    va_start(arguments, format);
    vsnprintf(out->what, sizeof out->what, format, arguments);
    va_end(arguments);
    tidy(out->where, sizeof out->where);
    tidy(out->what, sizeof out->what);
}
