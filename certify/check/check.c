// The checker's main loop: lines, chain, the order of records, the end. See check.h and docs/log.md.
//
// This thread checks what a line says by itself and how records follow each other. What a step says of its place moves
// the walk on as if it were true: its own job, which comes first, refutes it if it is not.
#include "certify/check/check.h"

#include "certify/check/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct reader {
    struct ck c; // its errors are those of lines, its math is not used
    struct hm_check_options options;
    struct ck_header header;
    struct ck_jobs *jobs;
    char chain[65];
    bool decided; // the outcome is known: nothing more is read
    bool truncated;
    struct ck_outcome total;
    // counts of what was read; of what was checked
    uint64_t sequences, rounds, steps, nodes, rows, steps_done, bytes_read, bytes;
    int64_t done_t, done_sequence;
    uint64_t (*verdicts)[3][CK_VERDICTS]; // [rules * m]
};

// The line must end in ,"chain":"<64 digits>"}; the digits hash the previous ones and the bytes before.
static void check_chain(struct reader *r, const char *text, size_t size, const cJSON *line)
{
    struct ck *c = &r->c;
    static const char mark[] = ",\"chain\":\"";
    const size_t tail = sizeof mark - 1 + 64 + 2;
    const char *said = ck_text(c, line, "chain");
    if (!c->out.failed && (size < tail || memcmp(text + size - tail, mark, sizeof mark - 1) != 0 || strlen(said) != 64 ||
                       memcmp(text + size - 2, "\"}", 2) != 0))
        ck_unreadable(c, "chain", "expected the line to end in ,\"chain\":\"<64 hexadecimal digits>\"}");
    if (c->out.failed) return;
    unsigned char hash[32];
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    bool ok = sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) && EVP_DigestUpdate(sha, r->chain, strlen(r->chain)) &&
              EVP_DigestUpdate(sha, text, size - tail) && EVP_DigestFinal_ex(sha, hash, NULL);
    EVP_MD_CTX_free(sha);
    if (!ok) {
        ck_unreadable(c, "chain", "out of memory");
        return;
    }
    for (int i = 0; i < 32; i++) snprintf(r->chain + 2 * i, 3, "%02x", hash[i]);
    if (strcmp(r->chain, said) != 0) ck_refute(c, "chain", "expected %s, found %s", r->chain, said);
}

static void merge(struct ck_outcome *total, const struct ck_outcome *of)
{
    total->claims += of->claims;
    total->undecided += of->undecided;
    total->said_undecided += of->said_undecided;
    total->row_absent |= of->row_absent;
    if (total->open_questions == 0 && of->open_questions > 0)
        memcpy(total->open_reason, of->open_reason, sizeof total->open_reason);
    total->open_questions += of->open_questions;
    if (!of->failed || total->failed) return;
    total->failed = true;
    total->kind = of->kind;
    total->line = of->line;
    memcpy(total->message, of->message, sizeof total->message);
}

// A line is done: all before it were, without a finding.
static bool commit(void *user, struct ck_job *job)
{
    struct reader *r = user;
    if (job->task == CK_ROUND_END) {
        struct ck c = {.header = &r->header};
        ck_round_expect(&c, job->at.tree);
        job->out = c.out;
    }
    merge(&r->total, &job->out);
    if (r->total.failed) return false;
    if (job->task == CK_RECORD) {
        if (job->record == CK_STEP) {
            r->done_t = job->at.t;
            r->done_sequence = job->at.sequence;
        } else if (job->record == CK_ROW_RECORD) {
            r->done_t = ck_peek(job->json, "index");
        }
        r->steps_done += job->record != CK_NODE;
        for (int i = 0; i < r->header.rule_count * r->header.m_count && job->record != CK_NODE; i++)
            for (int d = 0; d < 3; d++)
                if (job->verdicts[i][d] < CK_VERDICTS) r->verdicts[i][d][job->verdicts[i][d]]++;
        if (job->at.tree && job->record != CK_ROW_RECORD) {
            job->at.tree->absent |= job->out.round_absent;
            job->at.tree->open_question |= job->out.round_open;
        }
    }
    if (r->options.progress) r->options.progress(r->options.user, job->offset, r->bytes, r->steps_done);
    return true;
}

// Hands on what this thread found at a line, or a job about it; the job may be NULL for want of memory.
static void submit(struct reader *r, struct ck_job *job)
{
    if (!job) {
        ck_unreadable(&r->c, "memory", "out of memory");
        r->decided = true;
        merge(&r->total, &r->c.out);
    } else {
        if (job->task == CK_OUTCOME) job->out = r->c.out;
        job->offset = r->bytes_read;
        r->decided = !ck_jobs_submit(r->jobs, job) || r->decided;
    }
}

static void read_sequence(struct reader *r, const cJSON *line)
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
    c->at.finished = false;
    c->at.where = CK_AT_PREFILL;
    r->sequences++;
    if (r->options.replay && !c->out.failed) ck_replay_sequence(c, r->options.replay, prompt);
}

// A record with rows: a job for a worker, with the place where it stands.
static void submit_record(struct reader *r, cJSON *line, enum ck_record record, size_t size)
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
    submit(r, job);
}

// The walk after a step, by its own words.
static void move_on(struct reader *r, int64_t token, bool accepted, bool finished)
{
    struct ck *c = &r->c;
    struct ck_tree *tree = c->at.tree;
    int64_t child = -1;
    if (c->at.where == CK_IN_ROUND) {
        int node = c->at.node, next = -1;
        tree->visited[node] = true;
        for (int i = 1; accepted && i < tree->count; i++)
            if (tree->parent[i] == node && tree->token[i] == token) next = i;
        if (next >= 0) tree->accepted = ++c->at.accepted;
        child = next;
        tree->cut = finished && next >= 0;
        c->at.node = finished ? -1 : next;
    } else {
        c->at.where = CK_AT_ROUND;
    }
    c->at.finished = finished;
    c->at.last_token = token;
    c->at.t++;
    r->steps++;
    if (r->options.replay && !r->decided) ck_replay_emitted(c, r->options.replay, token, child);
}

static void read_step(struct reader *r, cJSON *line, size_t size)
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
    submit_record(r, line, CK_STEP, size);
    move_on(r, token, accepted, finished);
}

static void read_node_record(struct reader *r, cJSON *line, size_t size)
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

static void read_row(struct reader *r, cJSON *line, size_t size)
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

static void check_counts(struct reader *r, const cJSON *line)
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
        if (!c->out.failed && strcmp(rule, expected) != 0) ck_refute(c, "rule", "expected %s, found %.40s", expected, rule);
        if (m > 0)
            ck_expect_int(c, entry, "m", m);
        else if (strcmp(ck_text(c, entry, "m"), "tree") != 0)
            ck_refute(c, "m", "expected tree");
        for (int d = 0; d < 3; d++) {
            const cJSON *counts = ck_object(c, entry, names[d]);
            snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].%s.", i, names[d]);
            for (int w = 0; w < CK_VERDICTS; w++)
                ck_expect_int(c, counts, ck_words[w], (int64_t)r->verdicts[i][d][w]);
            if (!c->out.failed) snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].", i);
        }
    }
    if (!c->out.failed) c->prefix[0] = '\0';
}

static void read_end(struct reader *r, const cJSON *line)
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
        ck_refute(c, "undecided", "expected at least the %" PRIu64 " the log says, found %lld",
                  r->total.said_undecided, (long long)open);
    if (!c->out.failed && (uint64_t)open > r->total.said_undecided)
        ck_open(c, "undecided"); // the producer left more open than it shows
    c->at.where = CK_AFTER_END;
}

// Before the next record that is not of this round.
static void end_round(struct reader *r)
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
    submit(r, ck_job_make(c, CK_ROUND_END, 0));
}

// A record without rows.
static void read_plain(struct reader *r, const cJSON *line, const char *kind)
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

static void read_record(struct reader *r, cJSON *line, size_t size)
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

// Line 1 is the header; workers are started once it is known.
static void read_header(struct reader *r, const cJSON *line)
{
    struct ck *c = &r->c;
    ck_header(c, &r->header, line);
    if (c->out.failed) return;
    r->verdicts = calloc((size_t)(r->header.rule_count * r->header.m_count + 1), sizeof *r->verdicts);
    r->jobs = r->verdicts ? ck_jobs_start(c, r->options.threads, (struct ck_commit){commit, r}) : NULL;
    if (!r->jobs) ck_unreadable(c, "vocab", "out of memory");
}

static void read_line(struct reader *r, const char *text, size_t size)
{
    struct ck *c = &r->c;
    c->line++;
    r->bytes_read += size + 1;
    cJSON *line = ck_parse(c, text, size);
    if (c->line == 1 && !c->out.failed) read_header(r, line);
    if (!c->out.failed) check_chain(r, text, size, line);
    if (c->line == 1 && !c->out.failed && r->options.replay) ck_replay_header(c, r->options.replay);
    bool plain = c->line == 1 || c->out.failed;
    if (plain)
        cJSON_Delete(line);
    else
        read_record(r, line, size + 1);
    if (r->decided) return;
    if (!r->jobs) { // the header itself is at fault
        r->decided = true;
        merge(&r->total, &c->out);
    } else if (c->out.failed || c->out.open_questions) {
        r->decided = c->out.failed;
        submit(r, ck_job_make(c, CK_OUTCOME, 0));
        c->out.open_questions = 0;
    }
}

static void read_lines(struct reader *r, FILE *file)
{
    struct ck *c = &r->c;
    char *text = NULL;
    size_t size = 0, capacity = 0;
    bool complete = false;
    while (!r->decided && ck_read_line(file, &text, &size, &capacity, &complete) && complete) read_line(r, text, size);
    bool before = r->decided;
    if (!r->decided && ferror(file)) ck_unreadable(c, "file", "cannot read on");
    if (!r->decided && !complete && size > 0 && !feof(file)) {
        c->line++;
        ck_unreadable(c, "JSON", "expected a line of at most 16 MiB");
    }
    if (!r->decided && c->line == 0) {
        c->line = 1;
        ck_unreadable(c, "JSON", "expected a header, found the end of the file");
    }
    if (r->jobs) ck_jobs_drain(r->jobs);
    if (!before) merge(&r->total, &c->out);
    r->truncated = c->at.where != CK_AFTER_END || (size > 0 && !complete);
    free(text);
}

static void conclude(const struct reader *r, struct hm_check_result *result)
{
    const struct ck_outcome *total = &r->total;
    size_t size = sizeof result->message;
    result->claims = total->claims;
    result->undecided = total->undecided;
    result->steps = r->steps_done;
    result->truncated = r->truncated;
    if (total->failed) {
        result->kind = total->kind;
        result->line = total->line;
        result->exit_code = total->kind == HM_CHECK_REFUTED ? 1 : 2;
        memcpy(result->message, total->message, size);
    } else if (r->truncated && !r->options.allow_truncated) {
        result->kind = HM_CHECK_UNDECIDED;
        result->exit_code = 3;
        int n = snprintf(result->message, size, "UNDECIDED 0 of %" PRIu64 " claims (truncated ", total->claims);
        char *rest = result->message + n;
        size -= (size_t)n;
        if (r->header.audit && r->steps_done > 0)
            snprintf(rest, size, "after row %lld)", (long long)r->done_t);
        else if (r->header.audit || r->steps_done == 0)
            snprintf(rest, size, "before the first %s)", r->header.audit ? "row" : "step");
        else
            snprintf(rest, size, "after step %lld of sequence %lld)", (long long)r->done_t,
                     (long long)r->done_sequence);
    } else if (total->undecided || total->open_questions || total->said_undecided) {
        result->kind = HM_CHECK_UNDECIDED;
        result->exit_code = 3;
        const char *why = total->open_questions ? total->open_reason : "open at 4096 bits, or the log says so";
        snprintf(result->message, size, "UNDECIDED %" PRIu64 " of %" PRIu64 " claims (%s)", total->undecided,
                 total->claims, why);
    } else if (total->row_absent) {
        result->kind = HM_CHECK_CONSISTENT;
        result->exit_code = r->options.allow_absent_rows ? 0 : 3;
        snprintf(result->message, size, "CONSISTENT %" PRIu64 " claims (rows absent)", total->claims);
    } else {
        result->kind = HM_CHECK_PROVED;
        result->exit_code = 0;
        snprintf(result->message, size, "PROVED %" PRIu64 " claims", total->claims);
    }
}

int hm_check_log(const char *path, const struct hm_check_options *options, struct hm_check_result *result)
{
    static const struct ck_replayed none[2]; // says that this is a replay
    memset(result, 0, sizeof *result);
    struct reader *r = calloc(1, sizeof *r);
    if (!r) {
        *result = (struct hm_check_result){
            .kind = HM_CHECK_UNREADABLE, .exit_code = 2, .message = "UNREADABLE line 0: memory: out of memory"};
        return 2;
    }
    struct stat status = {0};
    if (options) r->options = *options;
    r->c.log_path = path;
    r->c.header = &r->header;
    r->c.replayed = r->options.replay ? none : NULL;
    r->c.at.sequence = r->c.at.index = -1;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0) {
        ck_unreadable(&r->c, "file", "cannot open it: %s", strerror(errno));
        merge(&r->total, &r->c.out);
    } else {
        r->bytes = (uint64_t)status.st_size;
        read_lines(r, file);
    }
    conclude(r, result);
    if (file) fclose(file);
    ck_jobs_stop(r->jobs);
    ck_tree_release(r->c.at.tree);
    ck_sequence_release(r->c.at.of);
    ck_header_clear(&r->header);
    free(r->verdicts);
    free(r);
    mpfr_free_cache();
    return result->exit_code;
}
