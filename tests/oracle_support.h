// The reference vectors of tests/data/oracle, for the tests that compare with them. A printed value v has 40 significant
// digits and stands for a number within 10^-39 |v| of it; an enclosure must meet that, and be narrow.
#ifndef HM_TESTS_ORACLE_SUPPORT_H
#define HM_TESTS_ORACLE_SUPPORT_H

#include "base/json.h"
#include "tests/certify_rows.h"

#include <mpfr.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 24 };

static cJSON *cases;
static const char *current; // the name of the case at hand, for messages

static inline int load(void **state)
{
    (void)state;
    struct hm_error err;
    const char *path = getenv("HM_VECTORS"); // more vectors, made with other seeds
    return hm_json_read(path ? path : "tests/data/oracle/vectors.json", LARGEST_FILE, &cases, &err) != HM_OK;
}

static inline int unload(void **state)
{
    (void)state;
    cJSON_Delete(cases);
    mpfr_free_cache();
    return 0;
}

static inline float *read_logits(const cJSON *array, size_t *n)
{
    *n = (size_t)cJSON_GetArraySize(array);
    float *out = calloc(*n, sizeof *out);
    size_t i = 0;
    for (const cJSON *item = array->child; item; item = item->next) out[i++] = strtof(item->valuestring, NULL);
    return out;
}

// Does the enclosure meet the printed value, and is it as narrow as promised?
static inline void compare(const char *what, struct hm_ival found, const cJSON *expected)
{
    assert_non_null(expected);
    const char *text = cJSON_IsString(expected) ? expected->valuestring : "0";
    if (!cJSON_IsString(expected)) assert_true(cJSON_IsNumber(expected) && expected->valuedouble == 0);
    mpfr_t value, slack, end;
    mpfr_inits2(256, value, slack, end, (mpfr_ptr)0);
    assert_int_equal(mpfr_set_str(value, text, 10, MPFR_RNDN), 0);
    mpfr_set_str(slack, "1e-39", 10, MPFR_RNDU);
    mpfr_mul(slack, slack, value, MPFR_RNDA);
    mpfr_abs(slack, slack, MPFR_RNDN);
    int good = is_narrow(found) && !isnan(found.lo) && !isnan(found.hi);
    if (mpfr_inf_p(value)) {
        good = good && found.lo == INFINITY;
    } else {
        mpfr_add(end, value, slack, MPFR_RNDU);
        good = good && mpfr_cmp_d(end, found.lo) >= 0;
        mpfr_sub(end, value, slack, MPFR_RNDD);
        good = good && mpfr_cmp_d(end, found.hi) <= 0;
    }
    mpfr_clears(value, slack, end, (mpfr_ptr)0);
    if (!good)
        fail_msg("%s, %s: [%a, %a] = [%.17g, %.17g] against %s", current, what, found.lo, found.hi, found.lo, found.hi,
                 text);
}

static inline const cJSON *want(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("%s: no \"%s\"", current, key);
    return item;
}

static inline void rule_text(const cJSON *one, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s", want(one, "rule")->valuestring);
    char before = ':';
    for (const cJSON *p = want(one, "params")->child; p; p = p->next, before = ',')
        n += (size_t)snprintf(out + n, size - n, "%c%s", before, p->valuestring);
}

// The level in logarithms as a printed probability: exp of its ends.
static inline struct hm_ival exponential(struct hm_ival v)
{
    mpfr_t lo, hi;
    mpfr_inits2(128, lo, hi, (mpfr_ptr)0);
    mpfr_set_d(lo, v.lo, MPFR_RNDD);
    mpfr_set_d(hi, v.hi, MPFR_RNDU);
    mpfr_exp(lo, lo, MPFR_RNDD);
    mpfr_exp(hi, hi, MPFR_RNDU);
    struct hm_ival out = {mpfr_get_d(lo, MPFR_RNDD), mpfr_get_d(hi, MPFR_RNDU)};
    mpfr_clears(lo, hi, (mpfr_ptr)0);
    return out;
}

#endif
