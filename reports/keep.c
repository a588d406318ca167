// What a report shows one by one: the sequences, and their tokens in blocks. The newest tokens keep their details; of
// older ones a line per block is left, and lines are joined where there are too many (figures.h). Memory is bounded
// whatever the length of the log.
#include "reports/gather.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hm_status no_memory(const struct hm_gather *g)
{
    return hm_fail(g->err, HM_MEMORY, "out of memory for the text of a report");
}

hm_status hm_keep_sequence(struct hm_gather *g, const struct hm_record_sequence *sequence)
{
    struct hm_report *r = g->report;
    g->kept = NULL;
    if (r->kept_count == HM_REPORT_MOST_SEQUENCES) return HM_OK;
    void *kept = r->kept;
    bool grown = hm_grow(&kept, &r->kept_capacity, r->kept_count + 1, sizeof *r->kept);
    r->kept = kept;
    if (!grown) return no_memory(g);
    g->kept = &r->kept[r->kept_count++];
    *g->kept = (struct hm_kept_sequence){.log = g->log,
                                         .id = hm_clip(sequence->id, HM_REPORT_LONGEST_NAME),
                                         .category = hm_clip(sequence->category, HM_REPORT_LONGEST_NAME),
                                         .sequence = (uint32_t)sequence->sequence,
                                         .turn = (uint32_t)sequence->turn,
                                         .block = r->block_count};
    return g->kept->id && g->kept->category ? HM_OK : no_memory(g);
}

static void keep_claim(const struct hm_record_claim *from, uint8_t status, struct hm_kept_claim *to)
{
    *to = (struct hm_kept_claim){.m = (uint32_t)from->m,
                                 .k = (uint32_t)from->k,
                                 .status = status,
                                 .accepts = (uint8_t)from->accepts,
                                 .covered = (uint8_t)from->covered,
                                 .has_verdicts = from->has_verdicts,
                                 .has_distances = from->has_distances,
                                 .has_radius = from->has_radius,
                                 .klf = from->level.klf,
                                 .klr = from->level.klr,
                                 .tv = from->level.tv,
                                 .radius = from->radius};
    for (int i = 0; i < 3; i++) to->certified[i] = (uint8_t)from->certified[i];
}

void hm_block_clear(struct hm_kept_block *b)
{
    free(b->token);
    free(b->claim);
    free(b->text);
    b->token = NULL;
    b->claim = NULL;
    b->text = NULL;
    b->token_capacity = b->claim_capacity = b->text_capacity = 0;
}

// The oldest block that has its tokens loses them.
static void summarise_oldest(struct hm_report *r)
{
    struct hm_kept_block *b = &r->block[r->block_old++];
    r->token_count -= b->token ? b->tokens : 0;
    r->text_size -= b->text_size;
    b->text_size = 0;
    hm_block_clear(b);
}

static void join(struct hm_kept_block *a, const struct hm_kept_block *b)
{
    a->tokens += b->tokens;
    for (size_t i = 0; i < HM_TOKEN_STATUSES; i++) a->status[i] += b->status[i];
    if (b->radius < a->radius) a->radius = b->radius, a->closest = b->closest;
    a->regret = fmax(a->regret, b->regret);
}

// Joins summarised neighbours of one sequence in pairs. Afterwards at most half of them and one per sequence are left,
// which is fewer than HM_REPORT_MOST_BLOCKS together with what still has its tokens.
static void join_blocks(struct hm_report *r)
{
    size_t old = 0, count = 0;
    for (size_t i = 0; i < r->block_count; i++) {
        struct hm_kept_block *last = count ? &r->block[count - 1] : NULL;
        const struct hm_kept_block *b = &r->block[i];
        bool fits = last && i < r->block_old && last->sequence == b->sequence && last->tokens <= r->block_tokens &&
                    b->tokens <= r->block_tokens && last->tokens + b->tokens <= 2 * r->block_tokens;
        if (fits) {
            join(last, b);
            continue;
        }
        r->block[count++] = *b;
        old += i < r->block_old;
    }
    r->block_count = count;
    r->block_old = old;
    r->block_tokens *= 2;
    for (size_t i = 0; i < r->kept_count; i++) r->kept[i].blocks = 0;
    for (size_t i = count; i-- > 0;) {
        r->kept[r->block[i].sequence].block = i;
        r->kept[r->block[i].sequence].blocks++;
    }
}

// The block for the next token of the sequence at hand, a new one where the last is full or has lost its tokens.
static struct hm_kept_block *block_for(struct hm_gather *g, uint32_t t)
{
    struct hm_report *r = g->report;
    struct hm_kept_block *last = g->kept->blocks ? &r->block[r->block_count - 1] : NULL;
    if (last && last->token && last->tokens < HM_REPORT_BLOCK) return last;
    if (r->block_count >= HM_REPORT_MOST_BLOCKS) join_blocks(r);
    void *blocks = r->block;
    bool grown = hm_grow(&blocks, &r->block_capacity, r->block_count + 1, sizeof *r->block);
    r->block = blocks;
    if (!grown) return NULL;
    if (!g->kept->blocks++) g->kept->block = r->block_count;
    struct hm_kept_block *b = &r->block[r->block_count++];
    *b = (struct hm_kept_block){
        .sequence = (uint32_t)(g->kept - r->kept), .t = t, .radius = INFINITY, .regret = -1};
    return b;
}

static hm_status keep_token(struct hm_gather *g, struct hm_kept_block *b, const struct hm_record_step *step)
{
    struct hm_report *r = g->report;
    char *text = hm_clip(step->text, HM_REPORT_LONGEST_TOKEN);
    if (!text) return no_memory(g);
    size_t size = strlen(text);
    void *tokens = b->token, *claims = b->claim, *bytes = b->text;
    bool grown = hm_grow(&tokens, &b->token_capacity, (size_t)b->tokens + 1, sizeof *b->token);
    b->token = tokens;
    grown = grown && hm_grow(&claims, &b->claim_capacity, ((size_t)b->tokens + 1) * r->claim_count, sizeof *b->claim);
    b->claim = claims;
    grown = grown && hm_grow(&bytes, &b->text_capacity, b->text_size + size + 1, 1);
    b->text = bytes;
    if (grown) {
        memcpy(b->text + b->text_size, text, size);
        b->token[b->tokens] = (struct hm_kept_token){.text = (uint32_t)b->text_size,
                                                     .text_size = (uint32_t)size,
                                                     .id = (uint32_t)step->token,
                                                     .t = (uint32_t)step->t,
                                                     .round = (int32_t)step->round,
                                                     .depth = (uint16_t)(step->depth < 65535 ? step->depth : 65535),
                                                     .source = (uint8_t)step->source,
                                                     .finish = (uint8_t)step->finish,
                                                     .has_draft = step->has_draft,
                                                     .has_regret = step->has_regret,
                                                     .entropy = step->entropy,
                                                     .kl_pq = step->kl_pq,
                                                     .kl_qp = step->kl_qp,
                                                     .tv = step->tv,
                                                     .regret = step->regret};
        for (size_t i = 0; i < r->claim_count; i++)
            keep_claim(&step->claims[i], g->status[i], &b->claim[(size_t)b->tokens * r->claim_count + i]);
        b->text_size += size;
        r->text_size += size;
        r->token_count++;
    }
    free(text);
    return grown ? HM_OK : no_memory(g);
}

hm_status hm_keep_step(struct hm_gather *g, const struct hm_record_step *step, size_t line)
{
    struct hm_report *r = g->report;
    double radius;
    bool by_radius;
    hm_status rc = hm_keep_missed(g, step, line);
    hm_keep_closest(g, step, line);
    if (rc || !g->kept) return rc;
    uint8_t status = g->status[r->lead];
    g->kept->steps++;
    g->kept->status[status]++;
    g->kept->finish = step->finish;
    while (r->block_old < r->block_count &&
           (r->token_count >= r->token_limit || r->text_size >= HM_REPORT_MOST_TEXT))
        summarise_oldest(r);
    struct hm_kept_block *b = block_for(g, (uint32_t)step->t);
    if (!b) return no_memory(g);
    rc = keep_token(g, b, step);
    if (rc) return rc;
    b->tokens++;
    b->status[status]++;
    if (step->has_regret) b->regret = fmax(b->regret, step->regret.hi);
    if (hm_turning_noise(step, r->lead, &radius, &by_radius) && radius < b->radius) {
        b->radius = radius;
        b->closest = (uint32_t)step->t;
    }
    return HM_OK;
}
