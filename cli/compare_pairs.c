// Prompts of two sides, matched: see compare_pairs.h.
//
// Files are read once as long as prompts agree in their order. At the first pair that does not, both files are walked for
// their names; B is then read by number, from its start again where it goes backwards.
#include "cli/compare_pairs.h"

#include "base/memory.h"
#include "base/sha256.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- lists of names

static void clear_list(struct hm_id_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entry[i].id);
        free(list->entry[i].key);
    }
    free(list->entry);
    *list = (struct hm_id_list){0};
}

static int by_key(const void *x, const void *y)
{
    return strcmp(((const struct hm_id_entry *)x)->key, ((const struct hm_id_entry *)y)->key);
}

static struct hm_id_entry *find_key(const struct hm_id_list *list, const char *key)
{
    struct hm_id_entry wanted = {.key = (char *)key};
    return list->count ? bsearch(&wanted, list->entry, list->count, sizeof wanted, by_key) : NULL;
}

// What names the sequence, in fresh memory; "" when nothing of the kind does. NULL: out of memory.
static char *key_of(const struct hm_side_sequence *s, enum hm_pairs_by by)
{
    char hex[HM_SHA256_HEX];
    if (by == HM_PAIRS_IDS) return strdup(s->id);
    if (!s->told_prompt || s->prompt_length == 0) return strdup("");
    uint8_t digest[HM_SHA256_BYTES];
    if (hm_sha256(s->prompt, s->prompt_length * sizeof *s->prompt, digest, NULL)) return NULL;
    hm_sha256_hex(digest, hex);
    return strdup(hex);
}

static hm_status read_list(const struct hm_compare_side *like, enum hm_pairs_by by, struct hm_id_list *list,
                           struct hm_error *err)
{
    struct hm_compare_side side = {.letter = like->letter, .path = like->path, .options = like->options};
    bool there = true;
    hm_status rc = hm_side_open(&side, err);
    while (!rc && !(rc = hm_side_next(&side, &there, err)) && there) {
        void *grown = list->entry;
        bool room = hm_grow(&grown, &list->room, list->count + 1, sizeof *list->entry);
        struct hm_id_entry entry = {.number = side.now.number};
        list->entry = grown;
        if (room) entry.id = strdup(side.now.id);
        if (entry.id) entry.key = key_of(&side.now, by);
        if (entry.key) list->entry[list->count++] = entry;
        else {
            free(entry.id);
            rc = hm_fail(err, HM_MEMORY, "%s: out of memory for ids", side.path);
        }
    }
    hm_side_close(&side);
    if (!rc && list->count) qsort(list->entry, list->count, sizeof *list->entry, by_key);
    return rc;
}

static bool names_all(const struct hm_id_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!*list->entry[i].key || (i > 0 && strcmp(list->entry[i].key, list->entry[i - 1].key) == 0)) return false;
    return true;
}

// Names fit when each is of one sequence of its side and at least one is on both.
static hm_status try_names(struct hm_compare_pairs *p, enum hm_pairs_by by, struct hm_error *err)
{
    struct hm_id_list a = {0};
    size_t shared = 0;
    hm_status rc = read_list(p->a, by, &a, err);
    if (!rc) rc = read_list(p->b, by, &p->list, err);
    for (size_t i = 0; i < a.count && !rc; i++) shared += find_key(&p->list, a.entry[i].key) != NULL;
    if (!rc && shared && names_all(&a) && names_all(&p->list)) p->by = by;
    else clear_list(&p->list);
    clear_list(&a);
    for (size_t i = 0; i < p->list.count; i++) p->list.entry[i].paired = p->list.entry[i].number < p->b->now.number;
    return rc;
}

static hm_status decide(struct hm_compare_pairs *p, struct hm_error *err)
{
    hm_status rc = try_names(p, HM_PAIRS_PROMPTS, err);
    if (!rc && p->by == HM_PAIRS_EQUAL) rc = try_names(p, HM_PAIRS_IDS, err);
    if (p->by == HM_PAIRS_EQUAL) p->by = HM_PAIRS_ORDER;
    return rc;
}

// Do the two sequences at hand agree in what both tell of their prompts?
static bool agree(const struct hm_side_sequence *a, const struct hm_side_sequence *b)
{
    if (!a->told_prompt || !b->told_prompt) return strcmp(a->id, b->id) == 0;
    return hm_side_same_prompt(a, b);
}

// ---- findings

static void tell(struct hm_compare_pairs *p, struct hm_compare_side *side, int64_t number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void tell(struct hm_compare_pairs *p, struct hm_compare_side *side, int64_t number, const char *format, ...)
{
    struct hm_finding finding = {.kind = HM_FINDING_LENGTH, .sequence = number, .t = -1};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding.what, sizeof finding.what, format, arguments);
    va_end(arguments);
    p->alone++;
    if (side->finding) side->finding(side->user, side->letter, &finding);
}

// ---- pairs

// By their order. The rest of the longer side is not walked.
static hm_status next_in_order(struct hm_compare_pairs *p, bool there, bool *both, struct hm_error *err)
{
    bool other = false;
    *both = false;
    hm_status rc = hm_side_next(p->b, &other, err);
    if (rc) return rc;
    if (there && !other)
        tell(p, p->a, p->a->now.number, "expected as many prompts as B has, found more: this one and all after it");
    if (!there && other)
        tell(p, p->b, p->b->now.number, "expected as many prompts as A has, found more: this one and all after it");
    *both = there && other;
    return HM_OK;
}

static hm_status next_by_name(struct hm_compare_pairs *p, bool *there, struct hm_error *err)
{
    hm_status rc = HM_OK;
    while (!rc && *there) {
        char *key = key_of(&p->a->now, p->by);
        if (!key) return hm_fail(err, HM_MEMORY, "%s: out of memory for an id", p->a->path);
        struct hm_id_entry *found = find_key(&p->list, key);
        free(key);
        if (found) {
            found->paired = true;
            return hm_side_seek(p->b, found->number, err);
        }
        tell(p, p->a, p->a->now.number, "expected this prompt (id \"%.60s\") in B as well, found none", p->a->now.id);
        rc = hm_side_next(p->a, there, err);
    }
    for (; !rc && p->told < p->list.count; p->told++)
        if (!p->list.entry[p->told].paired)
            tell(p, p->b, p->list.entry[p->told].number, "expected this prompt (id \"%.60s\") in A as well, found none",
                 p->list.entry[p->told].id);
    return rc;
}

hm_status hm_pairs_next(struct hm_compare_pairs *p, bool *there, struct hm_error *err)
{
    hm_status rc = hm_side_next(p->a, there, err);
    if (rc || !p->b) return rc;
    if (p->by == HM_PAIRS_IDS || p->by == HM_PAIRS_PROMPTS) return next_by_name(p, there, err);
    rc = next_in_order(p, *there, there, err);
    if (rc || !*there || p->by == HM_PAIRS_ORDER || agree(&p->a->now, &p->b->now)) return rc;
    rc = decide(p, err);
    return rc || p->by == HM_PAIRS_ORDER ? rc : next_by_name(p, there, err);
}

void hm_pairs_clear(struct hm_compare_pairs *p)
{
    clear_list(&p->list);
}
