// Sanity of one row: see sanity.h. A finding stands for all its places in the row; the first one is told. What makes a row
// unusable is looked for first, so that it is never the finding that does not fit in.
#include "evidence/sanity.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "evidence/known_state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct report {
    struct hm_finding *out;
    size_t count;
    bool usable;
};

__attribute__((format(printf, 3, 4))) static void tell(struct report *r, enum hm_finding_kind kind, const char *format, ...)
{
    if (r->count == HM_SANITY_MOST) return;
    struct hm_finding *f = &r->out[r->count++];
    *f = (struct hm_finding){.kind = kind, .sequence = -1, .t = -1};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->what, sizeof f->what, format, arguments);
    va_end(arguments);
}

// ---- Full rows of floats

static void check_floats(const struct hm_evidence *e, struct report *r)
{
    size_t finite = 0, bad = HM_UNSEEN;
    bool equal = true;
    for (size_t i = 0; i < e->vocab; i++) {
        float x = e->logits[i];
        if (!(x < INFINITY) && bad == HM_UNSEEN) bad = i; // NaN too
        finite += isfinite(x) != 0;
        equal = equal && x == e->logits[0];
    }
    if (bad != HM_UNSEEN)
        tell(r, HM_FINDING_NOT_A_NUMBER, "logit %zu: expected a number or -inf, found %g", bad, (double)e->logits[bad]);
    else if (finite == 0)
        tell(r, HM_FINDING_EMPTY_ROW, "expected a finite logit, found none in %zu", e->vocab);
    r->usable = r->count == 0;
    if (r->usable && equal && e->vocab > 1)
        tell(r, HM_FINDING_PADDING, "expected different logits, found %zu times %.9g", e->vocab, (double)e->logits[0]);
    if (e->emitted != HM_UNSEEN && e->emitted >= e->vocab)
        tell(r, HM_FINDING_ID_RANGE, "emitted token: expected an id below %zu, found %zu", e->vocab, e->emitted);
}

// ---- Lists: what no distribution has

// False: the values cannot be read as numbers, and nothing more is to be said.
static bool check_numbers(const struct hm_evidence *e, struct report *r)
{
    bool some = false;
    for (size_t i = 0; i < e->count; i++) {
        const struct hm_ival v = e->entry[i].value;
        if (!(v.lo <= v.hi) || v.hi == INFINITY) {
            tell(r, HM_FINDING_NOT_A_NUMBER, "entry %zu: expected a number or -inf, found [%g, %g]", i, v.lo, v.hi);
            return false;
        }
        some = some || v.hi > -INFINITY;
    }
    if (some) return true;
    tell(r, HM_FINDING_EMPTY_ROW, "expected a finite value, found none in %zu entries", e->count);
    return false;
}

static int by_key(const void *a, const void *b)
{
    const struct hm_evidence_entry *x = *(const struct hm_evidence_entry *const *)a;
    const struct hm_evidence_entry *y = *(const struct hm_evidence_entry *const *)b;
    if (x->id != y->id) return (x->id > y->id) - (x->id < y->id);
    if (x->id >= 0) return 0;
    if (!x->text || !y->text) return (x->text > y->text) - (x->text < y->text); // nothing is known of them: different
    size_t n = x->text_size < y->text_size ? x->text_size : y->text_size;
    int order = n > 0 ? memcmp(x->text, y->text, n) : 0;
    return order ? order : (x->text_size > y->text_size) - (x->text_size < y->text_size);
}

// One token twice: by id, or by text where that is all there is.
static void check_duplicates(const struct hm_evidence *e, struct report *r)
{
    const struct hm_evidence_entry **keys = hm_calloc(e->count, sizeof *keys);
    if (!keys) {
        r->usable = false; // not looked at, not vouched for
        return;
    }
    for (size_t i = 0; i < e->count; i++) keys[i] = &e->entry[i];
    qsort(keys, e->count, sizeof *keys, by_key);
    for (size_t i = 1; i < e->count; i++) {
        const struct hm_evidence_entry *x = keys[i];
        if (by_key(&keys[i - 1], &keys[i]) != 0 || (x->id < 0 && !x->text)) continue;
        if (x->id >= 0) tell(r, HM_FINDING_DUPLICATE, "expected different tokens, found id %ld twice", (long)x->id);
        else tell(r, HM_FINDING_DUPLICATE, "expected different tokens, found the text \"%.*s\" twice",
                  (int)(x->text_size < 60 ? x->text_size : 60), x->text);
        r->usable = false;
        break;
    }
    free(keys);
}

// A token of probability 1 and the sentinel for all others: only the argmax was logged.
static bool only_argmax(const struct hm_evidence *e)
{
    size_t sentinels = 0, zeros = 0;
    if (e->unit != HM_UNIT_LOG_PROBABILITY) return false;
    for (size_t i = 0; i < e->count; i++) {
        sentinels += hm_known_sentinel(e, i);
        zeros += e->entry[i].value.lo <= 0 && e->entry[i].value.hi >= 0;
    }
    return zeros == 1 && sentinels > 0 && zeros + sentinels == e->count;
}

static void check_mass(const struct hm_evidence *e, struct report *r)
{
    struct hm_known_mass mass;
    if (e->unit != HM_UNIT_LOG_PROBABILITY) return;
    if (!hm_known_mass(e, &mass)) {
        r->usable = false;
        return;
    }
    double most = hm_ival_add(hm_ival_point(mass.seen.hi), hm_ival_point(mass.unseen)).hi;
    if (mass.seen.lo > mass.whole.hi)
        tell(r, HM_FINDING_MASS, "expected at most %.9g, found at least %.9g", mass.whole.hi, mass.seen.lo);
    else if (most < mass.whole.lo)
        tell(r, HM_FINDING_TOO_LITTLE_MASS, "expected %.9g, found at most %.9g, and %.9g for unseen tokens",
             mass.whole.lo, mass.seen.hi, mass.unseen);
    else return;
    r->usable = false;
}

// ---- Lists: what is odd, and can be lived with

static void check_values(const struct hm_evidence *e, struct report *r)
{
    bool probabilities = e->unit == HM_UNIT_LOG_PROBABILITY, equal = e->count > 1 && e->count == e->vocab;
    size_t sentinel = HM_UNSEEN, positive = HM_UNSEEN, unsorted = HM_UNSEEN, before = HM_UNSEEN;
    for (size_t i = 0; i < e->count; i++) {
        const struct hm_ival v = e->entry[i].value;
        equal = equal && v.lo == e->entry[0].value.lo && v.hi == e->entry[0].value.hi;
        if (hm_known_sentinel(e, i)) {
            if (sentinel == HM_UNSEEN) sentinel = i;
            continue;
        }
        if (probabilities && v.lo > e->shift && positive == HM_UNSEEN) positive = i;
        if (i >= e->ranked) continue;
        if (before != HM_UNSEEN && v.lo > e->entry[before].value.hi && unsorted == HM_UNSEEN) unsorted = i;
        before = i;
    }
    if (positive != HM_UNSEEN) {
        tell(r, HM_FINDING_POSITIVE, "entry %zu: expected a log-probability, found at least %.9g", positive,
             e->entry[positive].value.lo);
        r->usable = false;
    }
    if (sentinel != HM_UNSEEN && !only_argmax(e))
        tell(r, HM_FINDING_SENTINEL, "entry %zu: expected a log-probability, found -9999", sentinel);
    if (unsorted != HM_UNSEEN)
        tell(r, HM_FINDING_UNSORTED, "entry %zu: expected at most the one before it, found at least %.9g", unsorted,
             e->entry[unsorted].value.lo);
    if (equal)
        tell(r, HM_FINDING_PADDING, "expected different values, found %zu times [%.9g, %.9g]", e->count, e->entry[0].value.lo,
             e->entry[0].value.hi);
}

static void check_tokens(const struct hm_evidence *e, struct report *r)
{
    for (size_t i = 0; i < e->count; i++) {
        int32_t id = e->entry[i].id;
        if (id >= -1 && (e->vocab == 0 || id < 0 || (size_t)id < e->vocab)) continue;
        tell(r, HM_FINDING_ID_RANGE, "entry %zu: expected an id below %zu, found %ld", i, e->vocab, (long)id);
        break;
    }
    if (e->emitted >= e->count)
        tell(r, HM_FINDING_TOKEN_ABSENT, "expected the emitted token among %zu entries, found it in none", e->count);
}

size_t hm_sanity_check(const struct hm_evidence *evidence, struct hm_finding *out, bool *usable)
{
    struct report r = {out, 0, true};
    if (evidence->logits) {
        check_floats(evidence, &r);
    } else if (!check_numbers(evidence, &r)) {
        r.usable = false;
    } else {
        if (only_argmax(evidence)) {
            tell(&r, HM_FINDING_ALL_ZERO, "expected log-probabilities, found 0 for one token and -9999 for %zu",
                 evidence->count - 1);
            r.usable = false;
        } else {
            check_mass(evidence, &r);
        }
        if (evidence->ranked > evidence->count || (evidence->vocab > 0 && evidence->count > evidence->vocab)) {
            tell(&r, HM_FINDING_LENGTH, "expected at most %zu entries, found %zu", evidence->vocab, evidence->count);
            r.usable = false;
        }
        check_duplicates(evidence, &r);
        check_values(evidence, &r);
        check_tokens(evidence, &r);
    }
    *usable = r.usable;
    return r.count;
}
