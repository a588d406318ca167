// What the tests of certify/divergence.h share: the kinds that they ask about.
#ifndef HM_TESTS_DIVERGENCE_SUPPORT_H
#define HM_TESTS_DIVERGENCE_SUPPORT_H

#include "certify/divergence_state.h"
#include "tests/certify_rows.h"

static const char *const kinds[] = {"renyi:1/2", "renyi:2", "renyi:1/10", "renyi:7/2", "renyi:999/1000", "renyi-reverse:1/2",
                                    "renyi-reverse:2", "renyi-reverse:1/10", "renyi-reverse:5", "hellinger", "chi2",
                                    "chi2-reverse", "max", "spread"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static inline struct hm_divergence parse(const char *text)
{
    struct hm_divergence d;
    struct hm_error err = {.message = ""};
    if (hm_divergence_parse(text, &d, &err)) fail_msg("%s", err.message);
    return d;
}

#endif
