// Prompts of two sides, matched: see compare_pairs.h.
//
// Files are read once as long as ids agree in their order. At the first pair of ids that differ both files are walked for
// their ids; B is then read by number, from its start again where it goes backwards.
#include "cli/compare_pairs.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- lists of ids

static void clear_list(struct hm_id_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->entry[i].id);
    free(list->entry);
    *list = (struct hm_id_list){0};
}

static int by_id(const void *x, const void *y)
{
    return strcmp(((const struct hm_id_entry *)x)->id, ((const struct hm_id_entry *)y)->id);
}

static struct hm_id_entry *find_id(const struct hm_id_list *list, const char *id)
{
    struct hm_id_entry key = {.id = (char *)id};
    return list->count ? bsearch(&key, list->entry, list->count, sizeof key, by_id) : NULL;
}

static hm_status read_list(const struct hm_compare_side *like, struct hm_id_list *list, struct hm_error *err)
{
    struct hm_compare_side side = {.letter = like->letter, .path = like->path, .options = like->options};
    bool there = true;
    hm_status rc = hm_side_open(&side, err);
    while (!rc && there) {
        rc = hm_side_next(&side, &there, err);
        void *grown = list->entry;
        if (rc || !there) break;
        char *id = hm_grow(&grown, &list->room, list->count + 1, sizeof *list->entry) ? strdup(side.now.id) : NULL;
        list->entry = grown;
        if (id) list->entry[list->count++] = (struct hm_id_entry){.id = id, .number = side.now.number};
        else rc = hm_fail(err, HM_MEMORY, "%s: out of memory for ids", side.path);
    }
    hm_side_close(&side);
    if (!rc && list->count) qsort(list->entry, list->count, sizeof *list->entry, by_id);
    return rc;
}

static bool names_all(const struct hm_id_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!*list->entry[i].id || (i > 0 && strcmp(list->entry[i].id, list->entry[i - 1].id) == 0)) return false;
    return true;
}

// Ids fit when each names one prompt of its side and at least one is on both.
static hm_status decide(struct hm_compare_pairs *p, struct hm_error *err)
{
    struct hm_id_list a = {0};
    size_t shared = 0;
    hm_status rc = read_list(p->a, &a, err);
    if (!rc) rc = read_list(p->b, &p->list, err);
    for (size_t i = 0; i < a.count && !rc; i++) shared += find_id(&p->list, a.entry[i].id) != NULL;
    p->by = !rc && shared && names_all(&a) && names_all(&p->list) ? HM_PAIRS_IDS : HM_PAIRS_ORDER;
    clear_list(&a);
    for (size_t i = 0; i < p->list.count; i++) p->list.entry[i].paired = p->list.entry[i].number < p->b->now.number;
    return rc;
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
    if (there && !other) tell(p, p->a, p->a->now.number, "expected as many prompts as B has, found more: this one and all after it");
    if (!there && other) tell(p, p->b, p->b->now.number, "expected as many prompts as A has, found more: this one and all after it");
    *both = there && other;
    return HM_OK;
}

static hm_status next_by_id(struct hm_compare_pairs *p, bool *there, struct hm_error *err)
{
    hm_status rc = HM_OK;
    while (!rc && *there) {
        struct hm_id_entry *found = find_id(&p->list, p->a->now.id);
        if (found) {
            found->paired = true;
            return hm_side_seek(p->b, found->number, err);
        }
        tell(p, p->a, p->a->now.number, "expected a prompt of B with the id \"%.60s\", found none", p->a->now.id);
        rc = hm_side_next(p->a, there, err);
    }
    for (; !rc && p->told < p->list.count; p->told++)
        if (!p->list.entry[p->told].paired)
            tell(p, p->b, p->list.entry[p->told].number, "expected a prompt of A with the id \"%.60s\", found none",
                 p->list.entry[p->told].id);
    return rc;
}

hm_status hm_pairs_next(struct hm_compare_pairs *p, bool *there, struct hm_error *err)
{
    hm_status rc = hm_side_next(p->a, there, err);
    if (rc || !p->b) return rc;
    if (p->by == HM_PAIRS_IDS) return next_by_id(p, there, err);
    rc = next_in_order(p, *there, there, err);
    if (rc || !*there || p->by == HM_PAIRS_ORDER || strcmp(p->a->now.id, p->b->now.id) == 0) return rc;
    rc = decide(p, err);
    return rc || p->by == HM_PAIRS_ORDER ? rc : next_by_id(p, there, err);
}

void hm_pairs_clear(struct hm_compare_pairs *p)
{
    clear_list(&p->list);
}
