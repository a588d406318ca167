// Rows of logits that another program saved (decode/row_file.h): one sequence whose tokens nobody told, or those that
// tensors beside the rows tell (rows_tokens.h).
#include "evidence/source_state.h"

#include "base/memory.h"
#include "decode/row_file.h"
#include "evidence/rows_tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct rows {
    struct hm_row_file *file;
    struct hm_row_file_info info;
    size_t told;                  // vocabulary as the caller says, 0: not told
    bool processed;               // the rows are scores, after temperature and filters
    size_t next;                  // row
    struct hm_rows_tokens tokens;
    uint32_t sequences;           // begun so far
    float *row;                   // [vocab]
    struct hm_source_sequence sequence;
    struct hm_source_token token;
    struct hm_finding finding;    // to be told after the event that was given last
    bool found;
    char where[40];
};

static void give_sequence(struct rows *r, struct hm_event *out)
{
    uint32_t n = r->sequences++;
    r->sequence = (struct hm_source_sequence){.number = n, .id = "", .model = "", .category = "", .draft_tokens = -1,
                                              .accepted_tokens = -1};
    if (r->tokens.prompt) {
        r->sequence.prompt = r->tokens.prompt + r->tokens.prompt_first[n];
        r->sequence.prompt_length = r->tokens.prompt_first[n + 1] - r->tokens.prompt_first[n];
    }
    *out = (struct hm_event){.kind = HM_EVENT_SEQUENCE, .sequence = &r->sequence};
    if (n > 0) return; // what follows is about the file
    r->found = r->info.rows == 0 || r->told > r->info.vocab;
    if (r->info.rows == 0)
        hm_finding_set(&r->finding, HM_FINDING_LENGTH, 0, -1, r->info.name, "expected at least one row, found none");
    else if (r->found)
        hm_finding_set(&r->finding, HM_FINDING_LENGTH, 0, -1, r->info.name, "expected rows of %zu logits, found %zu", r->told,
                       r->info.vocab);
}

// Columns beyond the tokenizer that can be drawn.
static void look_at_padding(struct rows *r)
{
    size_t beyond = 0;
    for (size_t i = r->told; i < r->info.vocab; i++) beyond += r->row[i] != -INFINITY;
    r->found = beyond > 0;
    hm_finding_set(&r->finding, HM_FINDING_PADDING, 0, (int64_t)r->next, r->where,
                   "expected -inf in the %zu columns beyond a vocabulary of %zu, found other values in %zu",
                   r->info.vocab - r->told, r->told, beyond);
}

static void give_row(struct rows *r, struct hm_event *out)
{
    hm_row_file_read(r->file, r->next, r->row);
    snprintf(r->where, sizeof r->where, "row %zu", r->next);
    int32_t token = r->tokens.token ? r->tokens.token[r->next] : -1;
    size_t first = r->tokens.token ? r->tokens.first[r->sequences - 1] : 0;
    r->token = (struct hm_source_token){.sequence = r->sequences - 1, .t = (uint32_t)(r->next - first), .token = token,
                                        .has_row = true, .where = r->where};
    r->token.row = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .emitted = token < 0 ? HM_UNSEEN : (size_t)token,
                                        .vocab = r->info.vocab, .processed = r->processed, .logits = r->row};
    if (r->next == 0 && r->told && r->told < r->info.vocab) look_at_padding(r);
    r->next++;
    *out = (struct hm_event){.kind = HM_EVENT_TOKEN, .token = &r->token};
}

static hm_status next_event(void *state, struct hm_event *out, struct hm_error *err)
{
    struct rows *r = state;
    (void)err;
    bool begins = r->tokens.token && r->sequences < r->tokens.sequences && r->next == r->tokens.first[r->sequences];
    if (r->found) {
        r->found = false;
        *out = (struct hm_event){.kind = HM_EVENT_FINDING, .finding = &r->finding};
    } else if (r->sequences == 0 || begins) {
        give_sequence(r, out);
    } else if (r->next < r->info.rows) {
        give_row(r, out);
    } else {
        *out = (struct hm_event){.kind = HM_EVENT_END};
    }
    return HM_OK;
}

static void close_reader(void *state)
{
    struct rows *r = state;
    hm_row_file_close(r->file);
    hm_rows_tokens_free(&r->tokens);
    free(r->row);
    free(r);
}

hm_status hm_rows_open(const char *path, const struct hm_map *map, const struct hm_source_options *options,
                       struct hm_reader *out, struct hm_error *err)
{
    struct rows *r = hm_calloc(1, sizeof *r);
    if (!r) return hm_fail(err, HM_MEMORY, "%s: out of memory", path);
    hm_status rc = hm_row_file_open(path, options->tensor, &r->file, err);
    if (!rc) {
        r->info = hm_row_file_info(r->file);
        r->told = options->vocab;
        r->processed = options->processed;
        r->row = hm_calloc(r->info.rows ? r->info.vocab : 0, sizeof *r->row);
        if (r->info.rows > UINT32_MAX)
            rc = hm_fail(err, HM_RANGE, "%s: expected fewer than 2^32 rows, found %zu", path, r->info.rows);
        else if (!r->row)
            rc = hm_fail(err, HM_MEMORY, "%s: out of memory for rows of %zu logits", path, r->info.vocab);
        else
            rc = hm_rows_tokens_read(path, map, r->info.rows, r->info.vocab, &r->tokens, err);
    }
    if (rc) {
        close_reader(r);
        return rc;
    }
    *out = (struct hm_reader){.state = r, .next = next_event, .close = close_reader};
    return HM_OK;
}
