// The first walk of a comparison: both sides in step, prompt by prompt and token by token. See compare_run.h.
#include "cli/compare_position.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- the spool

static void keep_finding(void *user, char letter, const struct hm_finding *finding)
{
    struct hm_compare_run *run = user;
    struct hm_spool_record record = {.kind = HM_SPOOL_FINDING, .finding = {.side = letter, .finding = *finding}};
    run->findings++;
    if (!run->status) run->status = hm_spool_write(&run->spool, &record, run->err);
}

static hm_status begin_prompt(struct hm_compare_pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_side_sequence *a = &run->side[0].now;
    struct hm_spool_record record = {.kind = HM_SPOOL_PROMPT, .prompt = {.number = a->number}};
    void *prefix = run->prefix;
    p->category = *a->category || run->rescore ? a->category : run->side[1].now.category;
    hm_text_copy(record.prompt.id, HM_SPOOL_ID, a->id, strlen(a->id));
    hm_text_copy(record.prompt.category, HM_SPOOL_CATEGORY, p->category, strlen(p->category));
    if (!hm_grow(&prefix, &run->prefix_room, run->prompts + 1, sizeof *run->prefix))
        return hm_fail(err, HM_MEMORY, "out of memory for %llu prompts", (unsigned long long)run->prompts);
    run->prefix = prefix;
    run->prefix[run->prompts++] = 0;
    return hm_spool_write(&run->spool, &record, err);
}

// ---- pairs

static int order_of(const struct hm_source_token *a, const struct hm_source_token *b)
{
    if (!a || !b) return a ? -1 : 1;
    if (a->of_prompt != b->of_prompt) return a->of_prompt ? -1 : 1;
    return (a->t > b->t) - (a->t < b->t);
}

static hm_status walk_two(struct hm_compare_pair *p, struct hm_error *err)
{
    struct hm_compare_side *side = p->run->side;
    const struct hm_source_token *next[2];
    struct hm_source_token token[2];
    hm_status rc = hm_side_token(&side[0], &next[0], err);
    if (!rc) rc = hm_side_token(&side[1], &next[1], err);
    while (!rc && (next[0] || next[1])) {
        int order = order_of(next[0], next[1]);
        bool has[2] = {order <= 0, order >= 0};
        for (int s = 0; s < 2 && !rc; s++) {
            if (!has[s]) continue;
            hm_pair_examine(p, s, next[s], &token[s]);
            rc = hm_pair_weigh(p, s, &token[s], err);
        }
        if (!rc && order == 0) rc = hm_pair_look(p, &token[0], &token[1], err);
        else if (!rc && !next[order < 0]) hm_pair_end_early(p, order < 0, &token[order > 0]);
        for (int s = 0; s < 2 && !rc; s++)
            if (has[s]) rc = hm_side_token(&side[s], &next[s], err);
    }
    return rc;
}

// A's path, read ahead of the walk.
static hm_status read_path(struct hm_compare_pair *p, int32_t **path, size_t *length, bool *known, struct hm_error *err)
{
    const struct hm_source_token *token;
    const struct hm_side_sequence *a = &p->run->side[0].now;
    size_t room = 0;
    void *grown = NULL;
    bool there;
    *known = a->told_prompt && a->prompt_length > 0;
    *length = 0;
    if (!*known) p->run->missing[0][HM_MISSING_PROMPT]++;
    hm_status rc = hm_side_next(p->ahead, &there, err);
    for (size_t i = 0; i < a->prompt_length && !rc; i++) {
        if (!hm_grow(&grown, &room, *length + 1, sizeof **path)) rc = hm_fail(err, HM_MEMORY, "out of memory for a prompt");
        else ((int32_t *)grown)[(*length)++] = a->prompt[i];
    }
    while (!rc && there && !(rc = hm_side_token(p->ahead, &token, err)) && token) {
        if (token->of_prompt) continue;
        if (token->token < 0 && *known) p->run->missing[0][HM_MISSING_IDS]++;
        *known &= token->token >= 0;
        if (!hm_grow(&grown, &room, *length + 1, sizeof **path)) rc = hm_fail(err, HM_MEMORY, "out of memory for a path");
        else ((int32_t *)grown)[(*length)++] = token->token;
    }
    if (!rc && *known && p->ahead->now.misaligned) { // ids are missing somewhere between those that are listed
        p->run->missing[0][HM_MISSING_IDS]++;
        *known = false;
    }
    *path = grown;
    return rc;
}

static hm_status begin_path(struct hm_compare_pair *p, struct hm_error *err)
{
    struct hm_error why;
    int32_t *path = NULL;
    size_t length;
    hm_status rc = read_path(p, &path, &length, &p->scored, err);
    if (!rc && p->scored && hm_rescore_begin(p->run->rescore, path, p->run->side[0].now.prompt_length, length, &why)) {
        if (why.code == HM_RANGE) hm_pair_fault(p->run, 0, HM_FINDING_ID_RANGE, -1, "", why.message);
        else rc = (*err = why).code;
        p->scored = false;
    }
    if (!p->scored) hm_pair_part(p);
    free(path);
    return rc;
}

static hm_status walk_model(struct hm_compare_pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_source_token *next;
    struct hm_source_token a, b;
    hm_status rc = begin_path(p, err);
    while (!rc && !(rc = hm_side_token(&run->side[0], &next, err)) && next) {
        if (next->of_prompt) continue;
        hm_pair_examine(p, 0, next, &a);
        rc = hm_pair_weigh(p, 0, &a, err);
        if (rc || !p->scored) continue;
        b = (struct hm_source_token){.sequence = a.sequence, .t = a.t, .has_row = true};
        b.row = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .vocab = hm_rescore_vocab(run->rescore)};
        rc = hm_rescore_row(run->rescore, a.t, &b.row.logits, err);
        if (rc) continue;
        hm_pair_take_first(&b);
        rc = hm_pair_look(p, &a, &b, err);
    }
    return rc;
}

static hm_status walk_pair(struct hm_compare_pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_side_sequence *a = &run->side[0].now, *b = &run->side[1].now;
    p->parted = p->forked = p->scored = p->holds = false;
    p->prefix = 0;
    hm_status rc = begin_prompt(p, err);
    if (!rc) rc = hm_pair_group(p, 0, NULL, err);
    if (!rc) rc = hm_pair_read_claims(p, err);
    if (!rc && !run->rescore && a->told_prompt && b->told_prompt && !hm_side_same_prompt(a, b)) {
        hm_pair_fault(run, 1, HM_FINDING_TOKEN_DIFFERS, -1, "", "expected A's prompt, found another: nothing of it is compared");
        hm_pair_part(p);
    }
    if (!rc) rc = run->rescore ? walk_model(p, err) : walk_two(p, err);
    if (!rc) rc = hm_pair_finish(p, err);
    if (rc) return rc;
    run->prefix[run->prompts - 1] = p->prefix;
    run->identical += !p->parted && !p->forked;
    return run->status;
}

// Files of rows with the tokens they are for are not among them; those without show it at their first row (hm_pair_look).
hm_status hm_compare_walk(struct hm_compare_run *run, struct hm_error *err)
{
    struct hm_compare_side ahead = {.letter = 'A', .path = run->side[0].path, .options = run->side[0].options};
    struct hm_compare_pair p = {.run = run, .ahead = &ahead};
    bool there = true, shows = isatty(STDERR_FILENO) && !run->options->quiet;
    run->err = err;
    for (int s = 0; s < 2; s++) {
        run->side[s].finding = keep_finding;
        run->side[s].user = run;
        hm_rational_init(&p.temperature[s]);
    }
    run->given = run->options->same_path || run->rescore || run->side[0].format == HM_FORMAT_LLAMA_KLD ||
                 run->side[1].format == HM_FORMAT_LLAMA_KLD;
    hm_status rc = run->rescore ? hm_side_open(&ahead, err) : HM_OK;
    while (!rc && !(rc = hm_pairs_next(&run->pairs, &there, err)) && !(rc = run->status) && there) {
        if (shows) fprintf(stderr, "\r\033[Kcomparing prompt %llu", (unsigned long long)run->prompts + 1);
        rc = walk_pair(&p, err);
    }
    if (shows) fputs("\r\033[K", stderr);
    if (!rc) rc = run->status;
    hm_side_close(&ahead);
    hm_rational_clear(&p.temperature[0]);
    hm_rational_clear(&p.temperature[1]);
    return rc;
}
