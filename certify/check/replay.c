// The replay: rows that are computed again instead of read. See check.h and state.h; docs/log.md "Checking".
//
// The callbacks are called in the order of the log by the thread that reads it; what they give goes to a record's job
// and is judged there, so that the first wrong line is the same as without workers.
#include "certify/check/reader.h"

#include <stdlib.h>
#include <string.h>

static void fail(struct ck *c, const struct hm_check_replay *r, const char *field)
{
    const struct hm_check_replay_error *e = r->error;
    const char *at = e && e->field[0] ? e->field : field, *reason = e ? e->reason : "the replay failed";
    if (e && e->refuted)
        ck_refute(c, at, "%.255s", reason);
    else
        ck_unreadable(c, at, "%.255s", reason);
}

static int32_t *narrow(const int64_t *from, size_t count)
{
    int32_t *to = calloc(count + 1, sizeof *to);
    for (size_t i = 0; to && i < count; i++) to[i] = (int32_t)from[i];
    return to;
}

void ck_replay_header(struct ck *c, const struct hm_check_replay *r)
{
    const struct ck_header *h = c->header;
    if (h->audit)
        ck_unreadable(c, "decoder", "expected a decode: an audit has no model to replay");
    else if (!r->header(r->user, h->sha256[0], h->has_draft ? h->sha256[1] : "", (uint64_t)h->vocab))
        fail(c, r, "target");
}

void ck_replay_sequence(struct ck *c, const struct hm_check_replay *r, const cJSON *prompt)
{
    size_t count = 0;
    int32_t *ids = calloc((size_t)cJSON_GetArraySize(prompt) + 1, sizeof *ids);
    const cJSON *v;
    if (!ids) {
        ck_unreadable(c, "prompt", "out of memory");
        return;
    }
    cJSON_ArrayForEach(v, prompt) ids[count++] = (int32_t)v->valuedouble;
    if (!r->sequence(r->user, ids, count)) fail(c, r, "prompt");
    free(ids);
}

void ck_replay_round(struct ck *c, const struct hm_check_replay *r)
{
    const struct ck_tree *tree = c->at.tree;
    int32_t *token = narrow(tree->token, (size_t)tree->count);
    if (!token)
        ck_unreadable(c, "parent", "out of memory");
    else if (!r->round(r->user, (size_t)tree->count, tree->parent, token))
        fail(c, r, "parent");
    free(token);
}

void ck_replay_rows(const struct ck *c, const struct hm_check_replay *r, const cJSON *line, int64_t node,
                    struct ck_replayed rows[2])
{
    static const char *const names[2] = {"row", "draft_row"};
    for (int i = 0; i < 2; i++) {
        struct ck_replayed *row = &rows[i];
        if (!ck_names_row(cJSON_GetObjectItemCaseSensitive(line, names[i])) ||
            (i == 1 && (!c->header->has_draft || r->reads_draft)))
            continue;
        row->asked = true;
        row->logit = calloc((size_t)c->header->vocab, sizeof *row->logit);
        row->known = true;
        row->failed = !row->logit || !r->row(r->user, i == 1, node, row->logit, &row->known);
        if (!row->failed) continue;
        const struct hm_check_replay_error *e = r->error;
        row->refuted = row->logit && e && e->refuted;
        snprintf(row->field, sizeof row->field, "%s", row->logit && e ? e->field : "");
        snprintf(row->reason, sizeof row->reason, "%s",
                 !row->logit ? "out of memory"
                 : e         ? e->reason
                             : "the replay failed");
        return; // the record fails; nothing more is asked
    }
}

bool ck_replay_emitted(struct ck *c, const struct hm_check_replay *r, int64_t token, int64_t child)
{
    if (token < 0 || token >= c->header->vocab) return true; // the record's own check says so
    if (r->emitted(r->user, (int32_t)token, child)) return true;
    fail(c, r, "token");
    return false;
}
