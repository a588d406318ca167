// Rows kept for other addresses: see kept_rows.h.
#include "cli/kept_rows.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void clear_row(struct hm_kept_row *row)
{
    free(row->path);
    free(row->row);
}

void hm_kept_rows_reset(struct hm_kept_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) clear_row(&rows->kept[i]);
    rows->count = 0;
}

void hm_kept_rows_clear(struct hm_kept_rows *rows)
{
    hm_kept_rows_reset(rows);
    free(rows->kept);
    *rows = (struct hm_kept_rows){0};
}

static void drop(struct hm_kept_rows *rows, size_t i)
{
    clear_row(&rows->kept[i]);
    rows->count--;
    memmove(rows->kept + i, rows->kept + i + 1, (rows->count - i) * sizeof *rows->kept);
}

// Makes room for a row of this token: it replaces the last one, or the oldest of all where the limit is reached.
static void forget(struct hm_kept_rows *rows, int32_t token)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->kept[i].token == token) {
            drop(rows, i);
            break;
        }
    while (rows->count && rows->count >= rows->most) drop(rows, 0);
}

// candidate -1: the root.
static hm_status keep(struct hm_kept_rows *rows, const struct hm_pool_event *event, int32_t candidate, struct hm_error *err)
{
    const struct hm_candidate *all = event->pool->candidate;
    size_t depth = candidate < 0 ? 0 : all[candidate].depth;
    struct hm_kept_row row = {.token = candidate < 0 ? event->context[event->length - 1] : all[candidate].token,
                              .round = event->round, .length = event->length + depth, .root_length = event->length,
                              .path_length = depth};
    void *grown = rows->kept;
    if (rows->most == 0) return HM_OK;
    forget(rows, row.token);
    row.path = hm_calloc(depth, sizeof *row.path);
    row.row = hm_calloc(rows->vocab, sizeof *row.row);
    if (!row.path || !row.row || !hm_grow(&grown, &rows->capacity, rows->count + 1, sizeof *rows->kept)) {
        clear_row(&row);
        return hm_fail(err, HM_MEMORY, "out of memory for a kept row of %zu logits", rows->vocab);
    }
    rows->kept = grown;
    for (int32_t i = candidate; i >= 0; i = all[i].parent) row.path[all[i].depth - 1] = all[i].token;
    memcpy(row.row, event->rows + (size_t)(candidate + 1) * rows->vocab, rows->vocab * sizeof *row.row);
    rows->kept[rows->count++] = row;
    return HM_OK;
}

hm_status hm_kept_rows_add(struct hm_kept_rows *rows, const struct hm_pool_event *event, struct hm_error *err)
{
    size_t best[HM_KEPT_BUDGET];
    size_t n = hm_pool_best(event->pool, HM_KEPT_BUDGET, best);
    hm_status rc = HM_OK;
    while (n-- > 0 && !rc) rc = keep(rows, event, (int32_t)best[n], err); // the best last: it stays
    return rc ? rc : keep(rows, event, -1, err);
}

// Contexts of a sequence only grow, so what stood before an earlier root still does.
static bool is_address(const struct hm_kept_row *row, const int32_t *context, size_t length)
{
    if (row->length != length) return false;
    return row->path_length == 0 || memcmp(row->path, context + row->root_length, row->path_length * sizeof *context) == 0;
}

const struct hm_kept_row *hm_kept_rows_find(const struct hm_kept_rows *rows, const struct hm_pool_event *event, bool *same)
{
    for (size_t i = rows->count; i-- > 0;) {
        if (rows->kept[i].token != event->context[event->length - 1]) continue;
        *same = is_address(&rows->kept[i], event->context, event->length);
        return &rows->kept[i];
    }
    return NULL;
}
