// The checker's main loop: lines, their chain, outcomes in their order, the verdict. See check.h and docs/log.md.
#include "certify/check/check.h"

#include "certify/check/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The line must end in ,"chain":"<64 digits>"}; the digits hash the previous ones and the bytes before.
static void check_chain(struct ck_reader *r, const char *text, size_t size, const cJSON *line)
{
    struct ck *c = &r->c;
    static const char mark[] = ",\"chain\":\"";
    const size_t tail = sizeof mark - 1 + 64 + 2;
    const char *said = ck_text(c, line, "chain");
    if (!c->out.failed && (size < tail || memcmp(text + size - tail, mark, sizeof mark - 1) != 0 ||
                           strlen(said) != 64 || memcmp(text + size - 2, "\"}", 2) != 0))
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

void ck_merge(struct ck_outcome *total, const struct ck_outcome *of)
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
    struct ck_reader *r = user;
    if (job->task == CK_ROUND_END) {
        struct ck c = {.header = &r->header};
        ck_round_expect(&c, job->at.tree);
        job->out = c.out;
    }
    ck_merge(&r->total, &job->out);
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

// Line 1 is the header; workers are started once it is known.
static void read_header(struct ck_reader *r, const cJSON *line)
{
    struct ck *c = &r->c;
    ck_header(c, &r->header, line);
    if (c->out.failed) return;
    r->verdicts = calloc((size_t)(r->header.rule_count * r->header.m_count + 1), sizeof *r->verdicts);
    r->jobs = r->verdicts ? ck_jobs_start(c, r->options.threads, (struct ck_commit){commit, r}) : NULL;
    if (!r->jobs) ck_unreadable(c, "vocab", "out of memory");
}

static void read_line(struct ck_reader *r, const char *text, size_t size)
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
        ck_read_record(r, line, size + 1);
    if (r->decided) return;
    if (!r->jobs) { // the header itself is at fault
        r->decided = true;
        ck_merge(&r->total, &c->out);
    } else if (c->out.failed || c->out.open_questions) {
        r->decided = c->out.failed;
        ck_submit(r, ck_job_make(c, CK_OUTCOME, 0));
        c->out.open_questions = 0;
    }
}

static void read_lines(struct ck_reader *r, FILE *file)
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
    if (!before) ck_merge(&r->total, &c->out);
    r->truncated = c->at.where != CK_AFTER_END || (size > 0 && !complete);
    free(text);
}

static void conclude(const struct ck_reader *r, struct hm_check_result *result)
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
    struct ck_reader *r = calloc(1, sizeof *r);
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
    r->c.reads_draft = r->options.replay && r->options.replay->reads_draft;
    r->c.at.sequence = r->c.at.index = -1;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0) {
        ck_unreadable(&r->c, "file", "cannot open it: %s", strerror(errno));
        ck_merge(&r->total, &r->c.out);
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
