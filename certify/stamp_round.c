// Round records, and how many tokens a round expects to be accepted (docs/theory.md §7): see stamp_record.h.
#include "certify/stamp_record.h"

#include "base/memory.h"
#include "bounds/ival_math.h"
#include "certify/sampling.h"
#include "certify/stamp_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void hm_stamp_places(const struct hm_log_round *round, const struct hm_stamp_config *config,
                     struct hm_stamp_place *place)
{
    size_t verified = round->nodes - round->scored;
    for (size_t i = 0; i < round->nodes; i++) {
        place[i] = (struct hm_stamp_place){.depth = i ? place[round->parent[i]].depth + 1 : 0};
        if (i == 0 || i >= verified) continue;
        if (config->leaf_stop)
            place[round->parent[i]].counts = true; // of the root nobody asks
        else
            place[i].counts = !config->cap || place[i].depth <= config->cap;
    }
}

// What the walk of a round multiplies and adds.
struct walk {
    struct hm_stamp_place *place; // [nodes]
    struct hm_ival *reach;        // [nodes], the probability that the walk comes there
    struct hm_ival *p;            // [nodes], of one node's children that count
    int32_t *tokens;              // [nodes]
    size_t *nodes;                // [nodes]
    struct hm_ival sum;
};

// The children of a node that count.
static size_t children_of(const struct hm_log_round *round, size_t node, struct walk *w)
{
    size_t count = 0;
    for (size_t i = node + 1; i < round->nodes; i++) {
        if ((size_t)round->parent[i] != node || !w->place[i].counts) continue;
        w->nodes[count] = i;
        w->tokens[count++] = round->token[i];
    }
    return count;
}

// The probabilities of a node's children, and of reaching them.
static hm_status descend(struct hm_stamp_job *job, const struct hm_stamp_config *config, size_t node, struct walk *w,
                         struct hm_error *err)
{
    size_t count = children_of(&job->record.round, node, w), support;
    struct hm_row *row;
    hm_status rc = hm_row_open(job->row_of[node], config->vocab, &config->temperature, &row, err);
    if (rc) return rc;
    rc = hm_row_support(row, config->top_k, &config->top_p, &support, err);
    if (!rc) rc = hm_sampling_probability(row, support, w->tokens, count, w->p, err);
    hm_stamp_count_questions(job, row);
    hm_row_close(row);
    for (size_t i = 0; i < count && !rc; i++) {
        struct hm_ival product = hm_ival_mul(w->reach[node], w->p[i]);
        w->reach[w->nodes[i]] = product;
        w->sum = hm_ival_add(w->sum, product);
    }
    return rc;
}

static hm_status walk_tree(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct walk *w,
                           struct hm_ival *out, struct hm_error *err)
{
    const struct hm_log_round *round = &job->record.round;
    hm_status rc = HM_OK;
    hm_stamp_places(round, config, w->place);
    w->reach[0] = (struct hm_ival){1, 1};
    if (round->first_drawn) { // given, so reached surely
        w->reach[1] = w->reach[0];
        if (w->place[1].counts) w->sum = w->reach[0];
    }
    for (size_t node = 0; node < round->nodes && !rc; node++) // parents stand before their children
        if (job->row_of[node]) {
            char place[32];
            rc = descend(job, config, node, w, err);
            snprintf(place, sizeof place, "node %zu", node);
            if (rc) hm_fail_prefix(err, place);
        }
    *out = hm_stamp_provable(w->sum);
    return rc;
}

static hm_status expect(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct hm_ival *out,
                        struct hm_error *err)
{
    size_t n = job->record.round.nodes;
    struct walk w = {.place = hm_calloc(n, sizeof *w.place),
                     .reach = hm_calloc(n, sizeof *w.reach),
                     .p = hm_calloc(n, sizeof *w.p),
                     .tokens = hm_calloc(n, sizeof *w.tokens),
                     .nodes = hm_calloc(n, sizeof *w.nodes)};
    hm_status rc = w.place && w.reach && w.p && w.tokens && w.nodes
                       ? walk_tree(job, config, &w, out, err)
                       : hm_fail(err, HM_MEMORY, "out of memory for %zu nodes", n);
    free(w.place);
    free(w.reach);
    free(w.p);
    free(w.tokens);
    free(w.nodes);
    return rc;
}

static void add_ids(struct hm_line *line, const char *key, const int32_t *ids, size_t count)
{
    hm_line_format(line, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) hm_line_format(line, i ? ",%" PRId32 : "%" PRId32, ids[i]);
    hm_line_bytes(line, "]", 1);
}

hm_status hm_stamp_round_line(struct hm_stamp_job *job, const struct hm_stamp_config *config, struct hm_error *err)
{
    const struct hm_log_round *round = &job->record.round;
    struct hm_line *line = &job->line;
    // At temperature 0 every factor is 0 or 1, and a deterministic rule draws nothing while it accepts: what was
    // accepted.
    double accepted = (double)round->accepted;
    struct hm_ival expected = {accepted, accepted};
    bool counted = config->greedy || config->acceptance == HM_STAMP_RULE;
    hm_status rc = job->row_of ? expect(job, config, &expected, err) : HM_OK;
    if (rc) {
        char place[64];
        snprintf(place, sizeof place, "sequence %" PRIu32 ", round %" PRIu32, round->sequence, round->round);
        return hm_fail_prefix(err, place);
    }
    hm_line_format(line, "{\"kind\":\"round\",\"sequence\":%" PRIu32 ",\"round\":%" PRIu32 ",\"t\":%" PRIu32,
                   round->sequence, round->round, round->t);
    add_ids(line, "parent", round->parent, round->nodes);
    add_ids(line, "token", round->token, round->nodes);
    hm_line_bytes(line, ",\"logq\":[", 9);
    for (size_t i = 0; i < round->nodes; i++) {
        if (i) hm_line_bytes(line, ",", 1);
        hm_line_real(line, i ? (double)round->logq[i] : 0.0);
    }
    hm_line_bytes(line, "]", 1);
    if (round->scored) hm_line_format(line, ",\"scored\":%zu", round->scored);
    if (round->first_drawn) hm_line_format(line, ",\"first\":%" PRId32, round->first);
    hm_line_format(line, ",\"pool\":%zu,\"expected_accept\":", round->pool);
    if (counted || job->row_of)
        hm_line_ival(line, expected);
    else
        hm_line_bytes(line, "null", 4);
    hm_line_bytes(line, ",\"charges\":[],\"run\":{\"draft_seconds\":", 37);
    hm_line_seconds(line, round->draft_seconds);
    hm_line_bytes(line, ",\"verify_seconds\":", 18);
    hm_line_seconds(line, round->verify_seconds);
    hm_line_bytes(line, "}", 1);
    return hm_line_check(line, "round", err);
}
