// The first walk of a comparison: both sides in step, prompt by prompt and token by token. See compare_run.h.
#include "cli/compare_run.h"

#include "base/memory.h"
#include "evidence/leading.h"
#include "evidence/sanity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What is known of the pair at hand.
struct pair {
    struct hm_compare_run *run;
    struct hm_compare_side *ahead;         // --model: A once more, to know a path before it is walked
    struct hm_rational temperature[2];
    bool claims[2];                        // the side says that its tokens are drawn at `temperature`
    bool drawn, same_draws, relaxed;       // of any side; relaxed: its acceptance may emit others than the first
    bool parted, forked;                   // nothing more is compared; the first fork was met
    bool scored;                           // --model: the path could be given to it
    uint32_t prefix, tokens[2];            // tokens: emitted
    const char *category;
};

// ---- the spool

static void keep_finding(void *user, char letter, const struct hm_finding *finding)
{
    struct hm_compare_run *run = user;
    struct hm_spool_record record = {.kind = HM_SPOOL_FINDING, .finding = {.side = letter, .finding = *finding}};
    run->findings++;
    if (!run->status) run->status = hm_spool_write(&run->spool, &record, run->err);
}

static void find_fault(struct hm_compare_run *run, int side, enum hm_finding_kind kind, int64_t t, const char *where,
                       const char *what)
{
    struct hm_finding finding = {.kind = kind, .sequence = run->side[side].now.number, .t = t};
    snprintf(finding.where, sizeof finding.where, "%s", where ? where : "");
    snprintf(finding.what, sizeof finding.what, "%s", what);
    keep_finding(run, side ? 'B' : 'A', &finding);
}

static void cut_text(char *out, size_t size, const char *text)
{
    size_t n = strlen(text);
    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
    memcpy(out, text, n);
    out[n] = 0;
}

static hm_status begin_prompt(struct pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_side_sequence *a = &run->side[0].now;
    struct hm_spool_record record = {.kind = HM_SPOOL_PROMPT, .prompt = {.number = a->number}};
    void *prefix = run->prefix;
    p->category = *a->category || run->rescore ? a->category : run->side[1].now.category;
    cut_text(record.prompt.id, HM_SPOOL_ID, a->id);
    cut_text(record.prompt.category, HM_SPOOL_CATEGORY, p->category);
    if (!hm_grow(&prefix, &run->prefix_room, run->prompts + 1, sizeof *run->prefix))
        return hm_fail(err, HM_MEMORY, "out of memory for %llu prompts", (unsigned long long)run->prompts);
    run->prefix = prefix;
    run->prefix[run->prompts++] = 0;
    return hm_spool_write(&run->spool, &record, err);
}

// ---- groups

static void count_prompt(struct hm_compare_group *group, const struct hm_compare_run *run)
{
    if (group->last == run->prompts) return;
    group->last = (uint32_t)run->prompts;
    group->prompts++;
}

static hm_status group_noise(struct pair *p, int32_t width, const struct hm_noise *noise, struct hm_error *err)
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

static hm_status read_temperature(struct pair *p, int side, struct hm_error *err)
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

static hm_status read_claims(struct pair *p, struct hm_error *err)
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

// The token with its row, unless that is no row. Findings about rows as distributions are `hallmark audit`'s.
static void examine(struct pair *p, int side, const struct hm_source_token *from, struct hm_source_token *out)
{
    struct hm_finding finding[HM_SANITY_MOST];
    bool usable;
    *out = *from;
    if (!out->has_row) return;
    size_t n = hm_sanity_check(&out->row, finding, &usable);
    for (size_t i = 0; i < n; i++) {
        bool none = finding[i].kind == HM_FINDING_NOT_A_NUMBER || finding[i].kind == HM_FINDING_EMPTY_ROW;
        if (!none && finding[i].kind != HM_FINDING_ALL_ZERO) continue;
        if (out->has_row && none) p->run->broken++;
        out->has_row = false;
        out->missing = none ? HM_MISSING_LOGPROBS : HM_MISSING_TOP;
        find_fault(p->run, side, finding[i].kind, from->t, from->where, finding[i].what);
    }
}

static bool is_named(const struct hm_source_token *token)
{
    return token->token >= 0 || token->text;
}

static void take_first(struct hm_source_token *token)
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

static hm_status weigh_claim(struct pair *p, int side, const struct hm_source_token *token, struct hm_error *err)
{
    bool given = token->of_prompt || p->run->side[side].format == HM_FORMAT_LLAMA_KLD;
    if (!p->claims[side] || given || !token->has_row || !is_named(token)) return HM_OK;
    return hm_likelihood_add(&p->run->likelihood[side], &token->row, &p->temperature[side], err);
}

// ---- positions

static hm_status keep_fork(struct pair *p, const struct hm_source_token *a, const struct hm_source_token *b, int32_t width,
                           const struct hm_noise *noise, struct hm_error *err)
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
    if (fork->a.lacks) p->run->missing[0][fork->a.missing]++;
    if (fork->b.lacks) p->run->missing[1][fork->b.missing]++;
    p->forked = true;
    p->parted |= !p->run->given;
    return hm_spool_write(&p->run->spool, &record, err);
}

static bool lacks_ids(const struct hm_evidence *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->entry[i].id < 0) return true;
    return false;
}

static hm_status keep_noise(struct pair *p, const struct hm_source_token *a, const struct hm_source_token *b, int32_t width,
                            struct hm_noise *noise, struct hm_error *err)
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
    rc = group_noise(p, width, noise, err);
    return rc ? rc : hm_spool_write(&run->spool, &record, err);
}

static void part(struct pair *p)
{
    if (!p->parted) p->run->parted++;
    p->parted = true;
}

// Both sides have a token at one place.
static hm_status look_at(struct pair *p, struct hm_source_token *a, struct hm_source_token *b, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    struct hm_noise noise;
    if (p->parted) return HM_OK;
    for (int i = 0; i < 2 && !a->of_prompt; i++) {
        struct hm_source_token *token = i ? b : a;
        bool text_was_given = run->side[0].format == HM_FORMAT_LLAMA_KLD || run->side[1].format == HM_FORMAT_LLAMA_KLD;
        run->by_first |= !is_named(token);
        if (!is_named(token) || text_was_given || (run->given && p->drawn)) take_first(token);
    }
    enum hm_verdict same = same_token(a, b);
    int32_t width = a->width > b->width ? a->width : b->width;
    if (!a->of_prompt && same == HM_UNDECIDED && is_named(a) && is_named(b)) {
        run->missing[a->token >= 0][HM_MISSING_IDS]++;
        part(p); // nothing tells whether contexts stay equal
        return HM_OK;
    }
    if (a->of_prompt && same == HM_NO) {
        find_fault(run, 1, HM_FINDING_TOKEN_DIFFERS, b->t, b->where, "expected A's prompt, found another: nothing of it is compared");
        part(p);
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

// One side's text ends where the other's goes on.
static hm_status end_early(struct pair *p, int ended, const struct hm_source_token *other, struct hm_error *err)
{
    struct hm_spool_record record = {.kind = HM_SPOOL_FORK, .fork = {.width = other->width}};
    struct hm_source_token none = {.sequence = p->run->side[0].now.number, .t = other->t, .token = -1, .missing = HM_MISSING_LOGPROBS};
    if (p->parted || other->of_prompt) return HM_OK;
    if (p->run->given) find_fault(p->run, ended, HM_FINDING_LENGTH, other->t, "", "expected as many rows as the other side has, found fewer");
    part(p);
    if (p->run->given) return HM_OK;
    hm_fork_look(ended ? other : &none, ended ? &none : other, &record.fork.fork);
    record.fork.fork.sequence = none.sequence;
    record.fork.fork.kind = HM_FORK_UNDECIDED;
    record.fork.fork.why = ended ? "B's text ends here: at a limit or an end token, the log does not say"
                                 : "A's text ends here: at a limit or an end token, the log does not say";
    p->forked = true;
    p->run->parted--; // it is counted as a fork
    return hm_spool_write(&p->run->spool, &record, err);
}

// ---- pairs

static int order_of(const struct hm_source_token *a, const struct hm_source_token *b)
{
    if (!a || !b) return a ? -1 : 1;
    if (a->of_prompt != b->of_prompt) return a->of_prompt ? -1 : 1;
    return (a->t > b->t) - (a->t < b->t);
}

static hm_status walk_two(struct pair *p, struct hm_error *err)
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
            examine(p, s, next[s], &token[s]);
            rc = weigh_claim(p, s, &token[s], err);
        }
        if (!rc && order == 0) rc = look_at(p, &token[0], &token[1], err);
        else if (!rc && !next[order < 0]) rc = end_early(p, order < 0, &token[order > 0], err);
        for (int s = 0; s < 2 && !rc; s++)
            if (has[s]) rc = hm_side_token(&side[s], &next[s], err);
    }
    return rc;
}

// A's path, read ahead of the walk.
static hm_status read_path(struct pair *p, int32_t **path, size_t *length, bool *known, struct hm_error *err)
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
    *path = grown;
    return rc;
}

static hm_status begin_path(struct pair *p, struct hm_error *err)
{
    struct hm_error why;
    int32_t *path = NULL;
    size_t length;
    hm_status rc = read_path(p, &path, &length, &p->scored, err);
    if (!rc && p->scored && hm_rescore_begin(p->run->rescore, path, p->run->side[0].now.prompt_length, length, &why)) {
        if (why.code == HM_RANGE) find_fault(p->run, 0, HM_FINDING_ID_RANGE, -1, "", why.message);
        else rc = (*err = why).code;
        p->scored = false;
    }
    if (!p->scored) part(p);
    free(path);
    return rc;
}

static hm_status walk_model(struct pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_source_token *next;
    struct hm_source_token a, b;
    hm_status rc = begin_path(p, err);
    while (!rc && !(rc = hm_side_token(&run->side[0], &next, err)) && next) {
        if (next->of_prompt) continue;
        examine(p, 0, next, &a);
        rc = weigh_claim(p, 0, &a, err);
        if (rc || !p->scored) continue;
        b = (struct hm_source_token){.sequence = a.sequence, .t = a.t, .has_row = true};
        b.row = (struct hm_evidence){.unit = HM_UNIT_LOGIT, .vocab = hm_rescore_vocab(run->rescore)};
        rc = hm_rescore_row(run->rescore, a.t, &b.row.logits, err);
        if (rc) continue;
        take_first(&b);
        rc = look_at(p, &a, &b, err);
    }
    return rc;
}

static hm_status walk_pair(struct pair *p, struct hm_error *err)
{
    struct hm_compare_run *run = p->run;
    const struct hm_side_sequence *a = &run->side[0].now, *b = &run->side[1].now;
    p->parted = p->forked = p->scored = false;
    p->prefix = 0;
    hm_status rc = begin_prompt(p, err);
    if (!rc) rc = group_noise(p, 0, NULL, err);
    if (!rc) rc = read_claims(p, err);
    if (!rc && !run->rescore && a->told_prompt && b->told_prompt &&
        (a->prompt_length != b->prompt_length || memcmp(a->prompt, b->prompt, a->prompt_length * sizeof *a->prompt) != 0)) {
        find_fault(run, 1, HM_FINDING_TOKEN_DIFFERS, -1, "", "expected A's prompt, found another: nothing of it is compared");
        part(p);
    }
    if (!rc) rc = run->rescore ? walk_model(p, err) : walk_two(p, err);
    if (rc) return rc;
    run->prefix[run->prompts - 1] = p->prefix;
    run->identical += !p->parted && !p->forked;
    return run->status;
}

// Files of rows with the tokens they are for are not among them; those without show it at their first row (look_at).
hm_status hm_compare_walk(struct hm_compare_run *run, struct hm_error *err)
{
    struct hm_compare_side ahead = {.letter = 'A', .path = run->side[0].path, .options = run->side[0].options};
    struct pair p = {.run = run, .ahead = &ahead};
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
