// The rows of an audit: see audit_input.h.
#include "cli/audit_input.h"

#include "base/memory.h"
#include "cli/draft_vocabulary.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A finding about the files as a whole, to be described.
static char *find(struct hm_audit_input *in, enum hm_finding_kind kind, const char *side)
{
    struct hm_audit_finding *f = &in->finding[in->findings++];
    *f = (struct hm_audit_finding){.kind = kind, .row = -1, .side = side, .logit = -1};
    return f->what;
}

// Compares the shapes of the two files; a draft of another vocabulary cannot be used.
static void compare(struct hm_audit_input *in)
{
    if (!in->ids && in->draft_info.vocab != in->target_info.vocab) {
        snprintf(find(in, HM_FINDING_LENGTH, "draft"), HM_AUDIT_WHAT, "expected %zu logits a row, found %zu (see --draft-vocab)",
                 in->target_info.vocab, in->draft_info.vocab);
        return;
    }
    in->has_draft = true;
    if (in->draft_info.rows == in->target_info.rows) return;
    snprintf(find(in, HM_FINDING_LENGTH, "draft"), HM_AUDIT_WHAT, "expected the target's %zu rows, found %zu", in->target_info.rows,
             in->draft_info.rows);
    if (in->draft_info.rows < in->rows) in->rows = in->draft_info.rows;
}

static hm_status open_draft(const struct hm_audit_options *o, struct hm_audit_input *in, struct hm_error *err)
{
    hm_status rc = hm_row_file_open(o->draft, o->tensor, &in->draft, err);
    if (rc) return rc;
    in->draft_info = hm_row_file_info(in->draft);
    if (o->vocabulary && in->target_info.rows > 0) // without a row nobody asks for its tokens
        rc = hm_draft_vocabulary_read(o->vocabulary, in->draft_info.vocab, in->target_info.vocab, &in->ids, err);
    if (!rc && in->target_info.rows > 0) compare(in);
    return rc;
}

static hm_status allocate(struct hm_audit_input *in, struct hm_error *err)
{
    size_t vocab = in->target_info.vocab;
    if (in->rows == 0) return HM_OK;
    in->target_row = hm_calloc(vocab, sizeof *in->target_row);
    if (in->has_draft) in->draft_row = hm_calloc(vocab, sizeof *in->draft_row);
    if (in->ids) in->columns = hm_calloc(in->draft_info.vocab, sizeof *in->columns);
    if (in->target_row && (!in->has_draft || in->draft_row) && (!in->ids || in->columns)) return HM_OK;
    return hm_fail(err, HM_MEMORY, "out of memory for rows of %zu logits", vocab);
}

hm_status hm_audit_input_open(const struct hm_audit_options *o, struct hm_audit_input *in, struct hm_error *err)
{
    *in = (struct hm_audit_input){0};
    hm_status rc = hm_row_file_open(o->target, o->tensor, &in->target, err);
    if (rc) return rc;
    in->target_info = hm_row_file_info(in->target);
    in->rows = in->target_info.rows;
    if (in->rows == 0) snprintf(find(in, HM_FINDING_EMPTY_ROW, "target"), HM_AUDIT_WHAT, "expected at least one row, found none");
    if (o->draft) rc = open_draft(o, in, err);
    return rc ? rc : allocate(in, err);
}

void hm_audit_input_close(struct hm_audit_input *in)
{
    hm_row_file_close(in->target);
    hm_row_file_close(in->draft);
    free(in->target_row);
    free(in->draft_row);
    free(in->ids);
    free(in->columns);
}

// Is this a row of logits?  (docs/theory.md §1)
static bool check(const float *row, size_t n, struct hm_audit_finding *f)
{
    bool any = false;
    f->logit = -1;
    f->kind = HM_FINDING_NOT_A_NUMBER;
    for (size_t i = 0; i < n; i++) {
        if (!(row[i] <= FLT_MAX)) { // NaN too
            f->logit = (int64_t)i;
            snprintf(f->what, HM_AUDIT_WHAT, "expected a number or -inf, found %s", isnan(row[i]) ? "nan" : "inf");
            return false;
        }
        any = any || row[i] >= -FLT_MAX;
    }
    f->kind = HM_FINDING_EMPTY_ROW;
    if (!any) snprintf(f->what, HM_AUDIT_WHAT, "expected at least one number, found only -inf");
    return any;
}

bool hm_audit_input_read(struct hm_audit_input *in, size_t index, struct hm_audit_finding *finding)
{
    size_t vocab = in->target_info.vocab, columns = in->draft_info.vocab;
    *finding = (struct hm_audit_finding){.row = (int64_t)index, .side = "target"};
    hm_row_file_read(in->target, index, in->target_row);
    if (!check(in->target_row, vocab, finding)) return false;
    if (!in->has_draft) return true;
    float *stored = in->ids ? in->columns : in->draft_row;
    finding->side = "draft";
    hm_row_file_read(in->draft, index, stored);
    if (!check(stored, columns, finding)) return false;
    if (!in->ids) return true;
    for (size_t i = 0; i < vocab; i++) in->draft_row[i] = -INFINITY;
    for (size_t i = 0; i < columns; i++) in->draft_row[in->ids[i]] = stored[i];
    return true;
}
