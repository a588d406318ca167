// The order of records: what may follow what, and the walk from step to step. See reader.h and docs/log.md.
//
// What a step says of its place moves the walk on as if it were true: its own job, which comes first, refutes it if it
// is not.
#include "certify/check/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void ck_submit(struct ck_reader *r, struct ck_job *job)
{
    if (!job) {
        ck_unreadable(&r->c, "memory", "out of memory");
        r->decided = true;
        ck_merge(&r->total, &r->c.out);
    } else {
        if (job->task == CK_OUTCOME) job->out = r->c.out;
        job->offset = r->bytes_read;
        r->decided = !ck_jobs_submit(r->jobs, job) || r->decided;
    }
}

static void read_sequence(struct ck_reader *r, const cJSON *line)
{
    struct ck *c = &r->c;
    const cJSON *stop = ck_object(c, line, "stop"), *eos = ck_array(c, stop, "eos"),
                *strings = ck_array(c, stop, "strings"), *prompt = ck_array(c, line, "prompt"), *v;
    const char *seed = ck_text(c, line, "seed");
    struct ck_sequence *s = calloc(1, sizeof *s);
    ck_sequence_release(c->at.of);
    c->at.of = s;
    if (s) s->references = 1;
    if (s) s->eos = calloc((size_t)cJSON_GetArraySize(eos) + 1, sizeof *s->eos);
    if (!s || !s->eos) {
        ck_unreadable(c, "eos", "out of memory");
        return;
    }
    ck_expect_int(c, line, "sequence", ++c->at.sequence);
    s->max_tokens = ck_int(c, stop, "max_tokens", 1);
    cJSON_ArrayForEach(v, prompt)
    {
        if (!c->out.failed && ck_integer(c, v, "prompt", 0) >= r->header.vocab)
            ck_refute(c, "prompt", "expected ids below the vocabulary, found %s", ck_show(v));
    }
    size_t digits = strspn(seed, "0123456789");
    errno = 0;
    s->seed = strtoull(seed, NULL, 10);
    if (!digits || digits != strlen(seed) || errno)
        ck_unreadable(c, "seed", "expected decimal digits below 2^64, found \"%.40s\"", seed);
    cJSON_ArrayForEach(v, eos) s->eos[s->eos_count++] = ck_integer(c, v, "eos", 0);
    s->has_stop_strings = cJSON_GetArraySize(strings) > 0;
    c->at.t = c->at.round = 0;
    c->at.spent = 0;
    c->at.finished = false;
    c->at.where = CK_AT_PREFILL;
    r->sequences++;
    if (r->options.replay && !c->out.failed) ck_replay_sequence(c, r->options.replay, prompt);
}

// A record with rows: a job for a worker, with the place where it stands.
static void submit_record(struct ck_reader *r, cJSON *line, enum ck_record record, size_t size)
{
    struct ck *c = &r->c;
    bool prefill = c->at.where != CK_IN_ROUND;
    struct ck_job *job = ck_job_make(c, CK_RECORD, (size_t)(r->header.rule_count * r->header.m_count + 1));
    int64_t node = record == CK_NODE ? c->at.next_record : prefill ? -1 : c->at.node;
    if (job) {
        job->record = record;
        job->json = line;
        job->size = size;
        if (r->options.replay) ck_replay_rows(c, r->options.replay, line, node, job->replayed);
    } else {
        cJSON_Delete(line);
    }
    ck_submit(r, job);
}

// The walk after a step, by its own words.
static void move_on(struct ck_reader *r, int64_t token, bool accepted, bool finished, double spent)
{
    struct ck *c = &r->c;
    struct ck_tree *tree = c->at.tree;
    int64_t child = -1;
    if (c->at.where == CK_IN_ROUND) {
        int node = c->at.node, next = accepted ? ck_carrier(tree, node, token) : -1;
        tree->visited[node] = true;
        if (next >= 0) tree->accepted = ++c->at.accepted;
        child = next;
        tree->cut = finished && next >= 0;
        c->at.node = finished ? -1 : next;
    } else {
        c->at.where = CK_AT_ROUND;
    }
    c->at.finished = finished;
    c->at.last_token = token;
    c->at.spent = spent;
    c->at.t++;
    r->steps++;
    if (r->options.replay && !r->decided) ck_replay_emitted(c, r->options.replay, token, child);
}

static void read_step(struct ck_reader *r, cJSON *line, size_t size)
{
    struct ck *c = &r->c;
    if (c->at.where == CK_AT_ROUND || (c->at.where == CK_IN_ROUND && c->at.node < 0))
        ck_refute(c, "kind", "expected %s, found a step", c->at.finished ? "no step after the last" : "a round");
    else if (c->at.where != CK_AT_PREFILL && c->at.where != CK_IN_ROUND)
        ck_refute(c, "kind", "expected a sequence or the end, found a step");
    if (c->out.failed) {
        cJSON_Delete(line);
        return;
    }
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(line, "source");
    bool accepted = cJSON_IsString(source) && strcmp(source->valuestring, "accepted") == 0;
    bool finished = ck_has(line, "finish");
    int64_t token = ck_peek(line, "token");
    double spent = ck_peek_real(line, "spent");
    submit_record(r, line, CK_STEP, size);
    move_on(r, token, accepted, finished, spent);
}

static void read_node_record(struct ck_reader *r, cJSON *line, size_t size)
{
    struct ck *c = &r->c;
    struct ck_tree *tree = c->at.tree;
    bool expected = r->header.all_nodes && c->at.where == CK_IN_ROUND && c->at.node < 0;
    if (!expected) ck_refute(c, "kind", "expected no node record here");
    while (expected && c->at.next_record < tree->count && tree->visited[c->at.next_record]) c->at.next_record++;
    if (expected && c->at.next_record == tree->count)
        ck_refute(c, "kind", "expected no node record: every node has one, or a step");
    if (c->out.failed) {
        cJSON_Delete(line);
        return;
    }
    submit_record(r, line, CK_NODE, size);
    c->at.next_record++;
    r->nodes++;
}

static void read_row(struct ck_reader *r, cJSON *line, size_t size)
{
    struct ck *c = &r->c;
    if (!r->header.audit) {
        ck_refute(c, "kind", "expected no row record: the header's decoder is not null");
        cJSON_Delete(line);
        return;
    }
    int64_t index = ck_peek(line, "index");
    submit_record(r, line, CK_ROW_RECORD, size);
    c->at.index = index;
    r->rows++;
}

static void check_counts(struct ck_reader *r, const cJSON *line)
{
    struct ck *c = &r->c;
    static const char *const names[3] = {"klf", "klr", "tv"};
    const cJSON *entry = ck_array(c, line, "verdicts");
    int columns = c->header->m_count, wanted = c->header->rule_count * columns;
    if (!c->out.failed && cJSON_GetArraySize(entry) != wanted)
        ck_refute(c, "verdicts", "expected %d entries, found %d", wanted, cJSON_GetArraySize(entry));
    if (c->out.failed) return;
    entry = entry->child;
    for (int i = 0; i < wanted && !c->out.failed; i++, entry = entry->next) {
        int64_t m = c->header->m[i % columns];
        snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].", i);
        const char *rule = ck_text(c, entry, "rule"), *expected = c->header->rules[i / columns].text;
        if (!c->out.failed && strcmp(rule, expected) != 0)
            ck_refute(c, "rule", "expected %s, found %.40s", expected, rule);
        if (m > 0)
            ck_expect_int(c, entry, "m", m);
        else if (strcmp(ck_text(c, entry, "m"), "tree") != 0)
            ck_refute(c, "m", "expected tree");
        for (int d = 0; d < 3; d++) {
            const cJSON *counts = ck_object(c, entry, names[d]);
            snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].%s.", i, names[d]);
            for (int w = 0; w < CK_VERDICTS; w++) ck_expect_int(c, counts, ck_words[w], (int64_t)r->verdicts[i][d][w]);
            if (!c->out.failed) snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].", i);
        }
    }
    if (!c->out.failed) c->prefix[0] = '\0';
}

static void read_end(struct ck_reader *r, const cJSON *line)
{
    struct ck *c = &r->c;
    ck_expect_int(c, line, "sequences", (int64_t)r->sequences);
    ck_expect_int(c, line, "rounds", (int64_t)r->rounds);
    ck_expect_int(c, line, "steps", (int64_t)r->steps);
    ck_expect_int(c, line, "nodes", (int64_t)r->nodes);
    if (r->header.audit)
        ck_expect_int(c, line, "rows", (int64_t)r->rows);
    else
        ck_expect_absent(c, line, "rows", "the log is no audit");
    check_counts(r, line);
    int64_t open = ck_int(c, line, "undecided", 0);
    if ((uint64_t)open < r->total.said_undecided)
        ck_refute(c, "undecided", "expected at least the %" PRIu64 " the log says, found %lld", r->total.said_undecided,
                  (long long)open);
    if (!c->out.failed && (uint64_t)open > r->total.said_undecided)
        ck_open(c, "undecided"); // the producer left more open than it shows
    c->at.where = CK_AFTER_END;
}

// Before the next record that is not of this round.
static void end_round(struct ck_reader *r)
{
    struct ck *c = &r->c;
    struct ck_tree *tree = c->at.tree;
    if (c->at.where != CK_IN_ROUND) return;
    if (c->at.node >= 0) {
        ck_refute(c, "kind", "expected a step at node %d: the round has no continuation", c->at.node);
        return;
    }
    for (int i = c->at.next_record; r->header.all_nodes && i < tree->count; i++)
        if (!tree->visited[i]) {
            ck_refute(c, "kind", "expected the node record of node %d", i);
            return;
        }
    c->at.where = CK_AT_ROUND;
    ck_submit(r, ck_job_make(c, CK_ROUND_END, 0));
}

// A record without rows.
static void read_plain(struct ck_reader *r, const cJSON *line, const char *kind)
{
    struct ck *c = &r->c;
    bool round = strcmp(kind, "round") == 0, end = strcmp(kind, "end") == 0;
    if (!round && !end && strcmp(kind, "sequence") != 0) {
        ck_unreadable(c, "kind", "expected a record's kind, found \"%.20s\"", kind);
        return;
    }
    end_round(r);
    if (c->out.failed || r->decided) return;
    if (r->header.audit && !end) {
        ck_refute(c, "kind", "expected no %s in an audit", kind);
        return;
    }
    bool between = c->at.where == CK_AT_SEQUENCE || (c->at.where == CK_AT_ROUND && c->at.finished);
    if (round ? c->at.where != CK_AT_ROUND || c->at.finished : !between) {
        ck_refute(c, round ? "kind" : "finish",
                  round ? "expected no round here" : "expected the sequence's last step before the %s record", kind);
        return;
    }
    if (round) {
        ck_round(c, line);
        r->rounds++;
        if (r->options.replay && !c->out.failed) ck_replay_round(c, r->options.replay);
    } else if (end) {
        r->decided = !ck_jobs_drain(r->jobs);
        if (!r->decided) read_end(r, line);
    } else {
        read_sequence(r, line);
    }
}

void ck_read_record(struct ck_reader *r, cJSON *line, size_t size)
{
    struct ck *c = &r->c;
    const char *kind = ck_text(c, line, "kind");
    if (!c->out.failed && c->at.where == CK_AFTER_END)
        ck_refute(c, "kind", "expected nothing after the end record, found \"%.20s\"", kind);
    if (!c->out.failed && strcmp(kind, "step") == 0) {
        read_step(r, line, size);
    } else if (!c->out.failed && strcmp(kind, "node") == 0) {
        read_node_record(r, line, size);
    } else if (!c->out.failed && strcmp(kind, "row") == 0) {
        read_row(r, line, size);
    } else {
        if (!c->out.failed) read_plain(r, line, kind);
        cJSON_Delete(line);
    }
}
