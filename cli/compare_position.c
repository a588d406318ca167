// The positions of a pair of prompts: see compare_position.h.
#include "cli/compare_position.h"

#include "evidence/leading.h"
#include "evidence/sanity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hm_pair_fault(struct hm_compare_run *run, int side, enum hm_finding_kind kind, int64_t t, const char *where,
                       const char *what)
{
    struct hm_finding finding = {.kind = kind, .sequence = run->side[side].now.number, .t = t};
    snprintf(finding.where, sizeof finding.where, "%s", where ? where : "");
    snprintf(finding.what, sizeof finding.what, "%s", what);
    run->side[side].finding(run->side[side].user, side ? 'B' : 'A', &finding);
}

// ---- groups

static void count_prompt(struct hm_compare_group *group, const struct hm_compare_run *run)
{
    if (group->last == run->prompts) return;
    group->last = (uint32_t)run->prompts;
    group->prompts++;
}

hm_status hm_pair_group(struct hm_compare_pair *p, int32_t width, const struct hm_noise *noise, struct hm_error *err)
{
    struct hm_error none = {.code = HM_OK};
    struct hm_compare_group *of[2] = {NULL, NULL};
    if (*p->category) of[0] = hm_compare_group_of(p->run, false, p->category, 0, &none);
    if (width > 0 && !none.code) of[1] = hm_compare_group_of(p->run, true, "", width, &none);
    if (none.code) return *err = none, none.code;
    for (int i = 0; i < 2; i++) {
        if (!of[i]) continue;
        count_prompt(of[i], p->run);
        if (noise) hm_noise_run_add(&of[i]->noise, noise->nats);
    }
    return HM_OK;
}

// ---- what a side claims

static hm_status read_temperature(struct hm_compare_pair *p, int side, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const char *text = run->side[side].now.temperature;
    char *own = NULL, *claimed = run->claimed[side];
    p->claims[side] = run->options->claims;
    if (run->options->claims) hm_rational_set(&p->temperature[side], &run->options->claimed);
    else if (text) {
        hm_status rc = hm_rational_parse(text, &p->temperature[side], err);
        if (rc) return hm_fail_prefix(err, run->side[side].path);
        p->claims[side] = hm_rational_sign(&p->temperature[side]) > 0;
    }
    p->weighs[side] = p->claims[side] && mpq_cmp_ui(p->temperature[side].value, 1, 100000) >= 0 &&
                      mpq_cmp_ui(p->temperature[side].value, 100, 1) <= 0;
    if (!p->claims[side]) return HM_OK;
    own = hm_rational_text(&p->temperature[side]);
    if (!own) return hm_fail(err, HM_MEMORY, "out of memory for a temperature");
    if (*claimed && strcmp(claimed, own) != 0) strcpy(claimed, "several");
    else snprintf(claimed, sizeof run->claimed[side], "%s", own);
    free(own);
    return HM_OK;
}

static bool equal_texts(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

hm_status hm_pair_read_claims(struct hm_compare_pair *p, struct hm_error *err)
{
    const struct hm_side_sequence *a = &p->run->side[0].now, *b = &p->run->side[1].now;
    int sides = p->run->rescore ? 1 : 2;
    p->drawn = p->relaxed = false;
    p->same_draws = sides == 2 && a->seed && equal_texts(a->seed, b->seed) && equal_texts(a->temperature, b->temperature) &&
                    a->number == b->number;
    for (int s = 0; s < sides; s++) {
        const char *acceptance = p->run->side[s].now.acceptance;
        hm_status rc = read_temperature(p, s, err);
        if (rc) return rc;
        p->drawn |= p->claims[s];
        p->relaxed |= acceptance && strcmp(acceptance, "match") != 0 && strcmp(acceptance, "standard") != 0;
        p->same_draws &= acceptance && strcmp(acceptance, "match") == 0;
    }
    return HM_OK;
}

// ---- tokens

// A row that is none: nothing can be said of its noise.
static bool is_none(enum hm_finding_kind kind)
{
    return kind == HM_FINDING_NOT_A_NUMBER || kind == HM_FINDING_EMPTY_ROW || kind == HM_FINDING_MASS ||
           kind == HM_FINDING_TOO_LITTLE_MASS || kind == HM_FINDING_POSITIVE;
}

void hm_pair_examine(struct hm_compare_pair *p, int side, const struct hm_source_token *from, struct hm_source_token *out)
{
    struct hm_finding finding[HM_SANITY_MOST];
    bool usable;
    *out = *from;
    if (!out->has_row) return;
    struct hm_evidence row = out->row;
    row.shift = 0x1p-6; // sums are those of float32, the worst of which are off by that (docs/evidence.md)
    size_t n = hm_sanity_check(&row, finding, &usable);
    for (size_t i = 0; i < n; i++) {
        bool none = is_none(finding[i].kind);
        if (!none && finding[i].kind != HM_FINDING_ALL_ZERO) continue;
        if (out->has_row && none) p->run->broken++;
        out->has_row = false;
        out->missing = none ? HM_MISSING_LOGPROBS : HM_MISSING_TOP;
        hm_pair_fault(p->run, side, finding[i].kind, from->t, from->where, finding[i].what);
    }
}

static bool is_named(const struct hm_source_token *token)
{
    return token->token >= 0 || token->text;
}

void hm_pair_take_first(struct hm_source_token *token)
{
    struct hm_evidence *row = &token->row;
    size_t first = token->has_row ? hm_evidence_leading(row, HM_LEADING_ALL, HM_UNSEEN).first : HM_UNSEEN;
    token->token = -1;
    token->text = NULL;
    token->text_size = 0;
    row->emitted = first;
    if (first == HM_UNSEEN) return;
    if (row->logits) token->token = (int32_t)first;
    else {
        token->token = row->entry[first].id;
        token->text = row->entry[first].text;
        token->text_size = row->entry[first].text_size;
    }
}

static enum hm_verdict same_token(const struct hm_source_token *a, const struct hm_source_token *b)
{
    if (a->token >= 0 && b->token >= 0) return a->token == b->token ? HM_YES : HM_NO;
    if (!a->text || !b->text) return HM_UNDECIDED;
    return a->text_size == b->text_size && memcmp(a->text, b->text, a->text_size) == 0 ? HM_YES : HM_NO;
}

hm_status hm_pair_weigh(struct hm_compare_pair *p, int side, const struct hm_source_token *token, struct hm_error *err)
{
    bool given = token->of_prompt || p->run->side[side].format == HM_FORMAT_LLAMA_KLD;
    if (!p->weighs[side] || given) return HM_OK;
    if (!token->has_row || !is_named(token)) {
        p->run->likelihood[side].without++;
        return HM_OK;
    }
    return hm_likelihood_add(&p->run->likelihood[side], &token->row, &p->temperature[side], err);
}

// ---- positions

static void hold_fork(struct hm_compare_pair *p, const struct hm_spool_record *record)
{
    p->fork = *record;
    p->holds = p->forked = p->parted = true;
}

hm_status hm_pair_finish(struct hm_compare_pair *p, struct hm_error *err)
{
    if (!p->holds) return HM_OK;
    if (p->run->side[0].now.misaligned || p->run->side[1].now.misaligned) {
        p->fork.fork.fork.kind = HM_FORK_UNDECIDED;
        p->fork.fork.fork.why = "a side does not list every token: places need not match";
    }
    return hm_spool_write(&p->run->spool, &p->fork, err);
}

static hm_status keep_fork(struct hm_compare_pair *p, const struct hm_source_token *a, const struct hm_source_token *b,
                           int32_t width, const struct hm_noise *noise, struct hm_error *err)
{
    struct hm_spool_record record = {.kind = HM_SPOOL_FORK, .fork = {.width = width, .noise = *noise}};
    struct hm_fork *fork = &record.fork.fork;
    hm_fork_look(a, b, fork);
    fork->has_noise = noise->shared >= 2;
    fork->noise = noise->nats;
    if (p->relaxed) {
        fork->kind = HM_FORK_UNDECIDED;
        fork->why = "a side accepts by a relaxed rule: its tokens need not be first in their rows";
    } else if (p->drawn && !p->run->given) hm_fork_judge_drawn(a, b, p->same_draws, fork);
    if (a->has_row && fork->a.lacks) p->run->missing[0][fork->a.missing]++;
    if (b->has_row && fork->b.lacks) p->run->missing[1][fork->b.missing]++;
    p->forked = true;
    if (p->run->given) return hm_spool_write(&p->run->spool, &record, err);
    hold_fork(p, &record);
    return HM_OK;
}

static bool lacks_ids(const struct hm_evidence *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->entry[i].id < 0) return true;
    return false;
}

static hm_status keep_noise(struct hm_compare_pair *p, const struct hm_source_token *a, const struct hm_source_token *b,
                            int32_t width, struct hm_noise *noise, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    *noise = (struct hm_noise){.most = -1, .least = -1};
    if (!a->has_row || !b->has_row) return HM_OK;
    hm_status rc = hm_noise_measure(&a->row, &b->row, run->type, noise, err);
    if (a->row.processed != b->row.processed) run->missing[a->row.processed ? 0 : 1][HM_MISSING_RAW]++;
    if (!rc && noise->shared < 2) {
        if (a->row.logits && lacks_ids(&b->row)) run->missing[1][HM_MISSING_IDS]++;
        if (b->row.logits && lacks_ids(&a->row)) run->missing[0][HM_MISSING_IDS]++;
    }
    if (rc || noise->shared < 2) return rc;
    struct hm_spool_record record = {.kind = HM_SPOOL_POSITION,
                                     .position = {.t = a->t, .width = width, .of_prompt = a->of_prompt, .noise = *noise}};
    hm_noise_run_add(&run->noise, noise->nats);
    rc = hm_pair_group(p, width, noise, err);
    return rc ? rc : hm_spool_write(&run->spool, &record, err);
}

void hm_pair_part(struct hm_compare_pair *p)
{
    if (!p->parted) p->run->parted++;
    p->parted = true;
}

hm_status hm_pair_look(struct hm_compare_pair *p, struct hm_source_token *a, struct hm_source_token *b, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    struct hm_noise noise;
    if (p->parted) return HM_OK;
    for (int i = 0; i < 2 && !a->of_prompt; i++) {
        struct hm_source_token *token = i ? b : a;
        bool text_was_given = run->side[0].format == HM_FORMAT_LLAMA_KLD || run->side[1].format == HM_FORMAT_LLAMA_KLD;
        run->by_first |= !is_named(token);
        if (!is_named(token) || text_was_given || (run->given && p->drawn)) hm_pair_take_first(token);
    }
    enum hm_verdict same = same_token(a, b);
    int32_t width = a->width > b->width ? a->width : b->width;
    if (!a->of_prompt && same == HM_UNDECIDED && is_named(a) && is_named(b)) {
        run->missing[a->token >= 0][HM_MISSING_IDS]++;
        hm_pair_part(p); // nothing tells whether contexts stay equal
        return HM_OK;
    }
    if (a->of_prompt && same == HM_NO) {
        hm_pair_fault(run, 1, HM_FINDING_TOKEN_DIFFERS, b->t, b->where,
                      "expected A's prompt, found another: nothing of it is compared");
        hm_pair_part(p);
        return HM_OK;
    }
    hm_status rc = keep_noise(p, a, b, width, &noise, err);
    if (rc || a->of_prompt) return rc;
    for (int s = 0; s < 2; s++) {
        const struct hm_source_token *token = s ? b : a;
        if (!token->has_row) run->missing[s][token->missing]++;
    }
    run->tokens++;
    if (same == HM_NO) return keep_fork(p, a, b, width, &noise, err);
    if (!p->forked && same == HM_YES) p->prefix++;
    return HM_OK;
}

void hm_pair_end_early(struct hm_compare_pair *p, int ended, const struct hm_source_token *other)
{
    struct hm_spool_record record = {.kind = HM_SPOOL_FORK, .fork = {.width = other->width}};
    struct hm_source_token none = {.sequence = p->run->side[0].now.number, .t = other->t, .token = -1};
    if (p->parted || other->of_prompt) return;
    if (p->run->given) {
        hm_pair_fault(p->run, ended, HM_FINDING_LENGTH, other->t, "", "expected as many rows as the other side has, found fewer");
        hm_pair_part(p);
        return;
    }
    hm_fork_look(ended ? other : &none, ended ? &none : other, &record.fork.fork);
    record.fork.fork.sequence = none.sequence;
    record.fork.fork.a.lacks = record.fork.fork.b.lacks = false;
    record.fork.fork.kind = HM_FORK_UNDECIDED;
    record.fork.fork.why = ended ? "B's text ends here: at a limit or an end token, the log does not say"
                                 : "A's text ends here: at a limit or an end token, the log does not say";
    hold_fork(p, &record);
}
