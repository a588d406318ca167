// The checker's main loop: lines, chain, the order of records, the end. See check.h and docs/log.md.
#include "certify/check/check.h"

#include "certify/check/state.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const words[CK_VERDICTS] = {"yes", "no", "vacuous", "inapplicable", "undecided"};

// The line must end in ,"chain":"<64 digits>"}; the digits hash the previous ones and the bytes before.
static void check_chain(struct ck *c, const char *text, size_t size, const cJSON *line)
{
    static const char mark[] = ",\"chain\":\"";
    const size_t tail = sizeof mark - 1 + 64 + 2;
    const char *said = ck_text(c, line, "chain");
    if (!c->failed && (size < tail || memcmp(text + size - tail, mark, sizeof mark - 1) != 0 || strlen(said) != 64 ||
                       memcmp(text + size - 2, "\"}", 2) != 0))
        ck_unreadable(c, "chain", "expected the line to end in ,\"chain\":\"<64 hexadecimal digits>\"}");
    if (c->failed) return;
    unsigned char hash[32];
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    bool ok = sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) && EVP_DigestUpdate(sha, c->chain, strlen(c->chain)) &&
              EVP_DigestUpdate(sha, text, size - tail) && EVP_DigestFinal_ex(sha, hash, NULL);
    EVP_MD_CTX_free(sha);
    if (!ok) {
        ck_unreadable(c, "chain", "out of memory");
        return;
    }
    for (int i = 0; i < 32; i++) snprintf(c->chain + 2 * i, 3, "%02x", hash[i]);
    if (strcmp(c->chain, said) != 0) ck_refute(c, "chain", "expected %s, found %s", c->chain, said);
}

static void read_sequence(struct ck *c, const cJSON *line)
{
    const cJSON *stop = ck_object(c, line, "stop"), *eos = ck_array(c, stop, "eos"),
                *strings = ck_array(c, stop, "strings"), *v;
    const char *seed = ck_text(c, line, "seed");
    ck_expect_int(c, line, "sequence", ++c->sequence);
    c->max_tokens = ck_int(c, stop, "max_tokens", 1);
    cJSON_ArrayForEach(v, ck_array(c, line, "prompt"))
    {
        if (!c->failed && ck_integer(c, v, "prompt", 0) >= (int64_t)c->math.vocab)
            ck_refute(c, "prompt", "expected ids below the vocabulary, found %s", ck_show(v));
    }
    size_t digits = strspn(seed, "0123456789");
    errno = 0;
    c->seed = strtoull(seed, NULL, 10);
    if (!digits || digits != strlen(seed) || errno)
        ck_unreadable(c, "seed", "expected decimal digits below 2^64, found \"%.40s\"", seed);
    c->eos_count = 0;
    free(c->eos);
    c->eos = c->failed ? NULL : calloc((size_t)cJSON_GetArraySize(eos) + 1, sizeof *c->eos);
    if (!c->eos) {
        ck_unreadable(c, "eos", "out of memory");
        return;
    }
    cJSON_ArrayForEach(v, eos) c->eos[c->eos_count++] = ck_integer(c, v, "eos", 0);
    c->has_stop_strings = cJSON_GetArraySize(strings) > 0;
    c->last_t = c->t - 1;
    c->t = c->round = 0;
    c->finished = false;
    c->where = CK_AT_PREFILL;
}

// Why a node has no draft row: one of the page's reasons, and only where it can be true, so that no verdict hides
// behind it.
static void check_why(struct ck *c, const struct ck_node *node)
{
    bool drafted = c->header.has_draft, leaf = node->child_count == 0;
    const struct {
        const char *why;
        bool possible;
    } table[] = {
        {"prefill", node->node < 0},        {"no draft model", !drafted}, {"no drafter", !drafted}, {"leaf", leaf},
        {"not expanded", leaf || !drafted}, {"not kept", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(node->why, table[i].why) == 0) {
            if (!table[i].possible) ck_refute(c, "draft_row", "expected another reason than \"%s\" here", node->why);
            return;
        }
    ck_refute(c, "draft_row", "expected a reason that docs/log.md names, found \"%.40s\"", node->why);
}

// Why there are no verdicts: there is nothing to certify, or the reason that draft_row gives (check_why looks
// at that one); "no draft row" says the latter in other words.
void ck_not_certified(struct ck *c, const cJSON *claim, const struct ck_node *node, bool no_children)
{
    ck_expect_absent(c, claim, "covered", "there are no verdicts");
    const char *why = ck_text(c, claim, "why");
    const char *reason = node->node < 0 ? "prefill" : no_children ? "no children" : node->why;
    bool right =
        strcmp(why, reason) == 0 || (no_children ? strcmp(why, "no children") == 0 : strcmp(why, "no draft row") == 0);
    if (!c->failed && !right) ck_refute(c, "why", "expected \"%.40s\", found \"%.40s\"", reason, why);
}

// The rows of a record, what they claim, and what may happen at its node.
static int64_t read_node(struct ck *c, const cJSON *line, struct ck_node *node)
{
    int64_t support = 0, token;
    enum ck_reference target = ck_load_row(c, line, "row", CK_TARGET),
                      draft = ck_load_row(c, line, "draft_row", CK_DRAFT);
    node->target = target == CK_ROW;
    node->draft = draft == CK_ROW;
    const cJSON *reference = cJSON_GetObjectItemCaseSensitive(line, "draft_row");
    node->draft_known =
        node->draft || (draft == CK_ABSENT_ROW &&
                        (ck_has(reference, "sha256") || ck_has(reference, "shard") || ck_has(line, "kl_pq")));
    for (int i = 1; node->node >= 0 && i < c->tree.count; i++) node->child_count += ck_child_token(c, node, i, &token);
    node->why = draft == CK_ROW || ck_has(reference, "shard") || c->failed ? "" : ck_text(c, reference, "why");
    if (*node->why) check_why(c, node);
    if (!c->failed && node->draft_known && !c->header.has_draft)
        ck_refute(c, "draft_row", "expected none: the header names no draft model");
    c->row_absent = c->row_absent || !node->target || draft == CK_ABSENT_ROW;
    if (!c->failed) ck_claims(c, line, node);
    if (!c->failed) ck_support(c, line, node, &support);
    if (!c->failed) ck_choices(c, node, support);
    return support;
}

static void check_finish(struct ck *c, const cJSON *line, int64_t token)
{
    bool present = ck_has(line, "finish");
    const char *expected = NULL, *said = present ? ck_text(c, line, "finish") : "absent";
    for (int i = 0; i < c->eos_count; i++)
        if (c->eos[i] == token) expected = "eos";
    if (!expected && c->has_stop_strings && strcmp(said, "stop") == 0) expected = "stop";
    if (!expected) expected = c->t + 1 == c->max_tokens ? "length" : "absent";
    if (!c->failed && (strcmp(said, expected) != 0 || (present && strcmp(said, "absent") == 0)))
        ck_refute(c, "finish", "expected %s, found %s%.20s", expected, present ? "the text " : "", said);
    c->finished = present;
}

static void read_step(struct ck *c, const cJSON *line)
{
    struct ck_node node = {0};
    if (c->where == CK_AT_ROUND || (c->where == CK_IN_ROUND && c->tree.next < 0)) {
        ck_refute(c, "kind", "expected %s, found a step", c->finished ? "no step after the last" : "a round");
        return;
    }
    if (c->where != CK_AT_PREFILL && c->where != CK_IN_ROUND) {
        ck_refute(c, "kind", "expected a sequence or the end, found a step");
        return;
    }
    ck_step_place(c, line, &node);
    int64_t support = c->failed ? 0 : read_node(c, line, &node);
    if (!c->failed) ck_walk(c, line, &node, support);
    if (!c->failed) check_finish(c, line, node.token);
    if (c->failed) return;
    if (c->finished && c->where == CK_IN_ROUND) {
        c->tree.cut = c->tree.next >= 0;
        c->tree.next = -1;
    }
    if (c->where == CK_AT_PREFILL) c->where = CK_AT_ROUND;
    c->last_token = node.token;
    c->t++;
    c->steps = ++c->result->steps;
}

static void read_node_record(struct ck *c, const cJSON *line)
{
    struct ck_tree *tree = &c->tree;
    struct ck_node node = {.token = -1};
    if (!c->header.all_nodes || c->where != CK_IN_ROUND || tree->next >= 0) {
        ck_refute(c, "kind", "expected no node record here");
        return;
    }
    while (tree->next_record < tree->count && tree->visited[tree->next_record]) tree->next_record++;
    if (tree->next_record == tree->count) {
        ck_refute(c, "kind", "expected no node record: every node has one, or a step");
        return;
    }
    ck_expect_int(c, line, "sequence", c->sequence);
    ck_expect_int(c, line, "round", tree->number);
    ck_expect_int(c, line, "node", tree->next_record);
    ck_expect_int(c, line, "depth", tree->depth[tree->next_record]);
    ck_expect_absent(c, line, "t token source child regret finish text", "a node emits no token");
    node.node = tree->next_record++;
    if (!c->failed) read_node(c, line, &node);
    c->nodes++;
}

static void check_counts(struct ck *c, const cJSON *line)
{
    static const char *const names[3] = {"klf", "klr", "tv"};
    const cJSON *entry = ck_array(c, line, "verdicts");
    int columns = c->header.m_count, wanted = c->header.rule_count * columns;
    if (!c->failed && cJSON_GetArraySize(entry) != wanted)
        ck_refute(c, "verdicts", "expected %d entries, found %d", wanted, cJSON_GetArraySize(entry));
    if (c->failed) return;
    entry = entry->child;
    for (int i = 0; i < wanted && !c->failed; i++, entry = entry->next) {
        int64_t m = c->header.m[i % columns];
        snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].", i);
        const char *rule = ck_text(c, entry, "rule"), *expected = c->header.rules[i / columns].text;
        if (!c->failed && strcmp(rule, expected) != 0) ck_refute(c, "rule", "expected %s, found %.40s", expected, rule);
        if (m > 0)
            ck_expect_int(c, entry, "m", m);
        else if (strcmp(ck_text(c, entry, "m"), "tree") != 0)
            ck_refute(c, "m", "expected tree");
        for (int d = 0; d < 3; d++) {
            const cJSON *counts = ck_object(c, entry, names[d]);
            snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].%s.", i, names[d]);
            for (int w = 0; w < CK_VERDICTS; w++)
                ck_expect_int(c, counts, words[w], (int64_t)c->verdicts[i / columns][i % columns][d][w]);
            if (!c->failed) snprintf(c->prefix, sizeof c->prefix, "verdicts[%d].", i);
        }
    }
    if (!c->failed) c->prefix[0] = '\0';
}

static void read_end(struct ck *c, const cJSON *line)
{
    ck_expect_int(c, line, "sequences", c->sequence + 1);
    ck_expect_int(c, line, "rounds", (int64_t)c->rounds);
    ck_expect_int(c, line, "steps", (int64_t)c->steps);
    ck_expect_int(c, line, "nodes", (int64_t)c->nodes);
    check_counts(c, line);
    int64_t open = ck_int(c, line, "undecided", 0);
    if ((uint64_t)open < c->said_undecided)
        ck_refute(c, "undecided", "expected at least the %" PRIu64 " the log says, found %lld", c->said_undecided,
                  (long long)open);
    if (!c->failed && (uint64_t)open > c->said_undecided)
        ck_open(c, "undecided"); // the producer left more open than it shows
    c->where = CK_AFTER_END;
}

static void read_record(struct ck *c, const cJSON *line)
{
    const char *kind = ck_text(c, line, "kind");
    if (c->failed) return;
    if (c->where == CK_AFTER_END) {
        ck_refute(c, "kind", "expected nothing after the end record, found \"%.20s\"", kind);
        return;
    }
    if (strcmp(kind, "step") == 0) {
        read_step(c, line);
        return;
    }
    if (strcmp(kind, "node") == 0) {
        read_node_record(c, line);
        return;
    }
    bool round = strcmp(kind, "round") == 0, end = strcmp(kind, "end") == 0;
    if (!round && !end && strcmp(kind, "sequence") != 0) {
        ck_unreadable(c, "kind", "expected a record's kind, found \"%.20s\"", kind);
        return;
    }
    ck_round_end(c);
    if (c->failed) return;
    bool between = c->where == CK_AT_SEQUENCE || (c->where == CK_AT_ROUND && c->finished);
    if (round ? c->where != CK_AT_ROUND || c->finished : !between) {
        ck_refute(c, round ? "kind" : "finish",
                  round ? "expected no round here" : "expected the sequence's last step before the %s record", kind);
        return;
    }
    if (round)
        ck_round(c, line);
    else if (end)
        read_end(c, line);
    else
        read_sequence(c, line);
}

static void read_lines(struct ck *c, FILE *file, uint64_t total)
{
    char *text = NULL;
    size_t size = 0, capacity = 0;
    bool complete = false;
    uint64_t bytes = 0;
    while (!c->failed && ck_read_line(file, &text, &size, &capacity, &complete) && complete) {
        c->line++;
        cJSON *line = ck_parse(c, text, size);
        if (c->line == 1 && !c->failed) ck_header(c, line);
        if (!c->failed) check_chain(c, text, size, line);
        if (c->line > 1 && !c->failed) read_record(c, line);
        cJSON_Delete(line);
        bytes += size + 1;
        if (c->options.progress) c->options.progress(c->options.user, bytes, total, c->steps);
    }
    if (!c->failed && ferror(file)) ck_unreadable(c, "file", "cannot read on");
    if (!c->failed && !complete && size > 0 && !feof(file)) {
        c->line++;
        ck_unreadable(c, "JSON", "expected a line of at most 16 MiB");
    }
    if (!c->failed && c->line == 0) {
        c->line = 1;
        ck_unreadable(c, "JSON", "expected a header, found the end of the file");
    }
    c->result->truncated = c->where != CK_AFTER_END || (size > 0 && !complete);
    free(text);
}

static void conclude(struct ck *c)
{
    struct hm_check_result *r = c->result;
    size_t size = sizeof r->message;
    if (c->failed) {
        r->exit_code = r->kind == HM_CHECK_REFUTED ? 1 : 2;
    } else if (r->truncated && !c->options.allow_truncated) {
        r->kind = HM_CHECK_UNDECIDED;
        r->exit_code = 3;
        if (c->steps == 0)
            snprintf(r->message, size, "UNDECIDED 0 of %" PRIu64 " claims (truncated before the first step)",
                     r->claims);
        else
            snprintf(r->message, size, "UNDECIDED 0 of %" PRIu64 " claims (truncated after step %lld of sequence %lld)",
                     r->claims, (long long)(c->t ? c->t - 1 : c->last_t),
                     (long long)(c->t ? c->sequence : c->sequence - 1));
    } else if (r->undecided || c->open_questions || c->said_undecided) {
        r->kind = HM_CHECK_UNDECIDED;
        r->exit_code = 3;
        const char *why = c->open_questions ? c->open_reason : "open at 4096 bits, or the log says so";
        snprintf(r->message, size, "UNDECIDED %" PRIu64 " of %" PRIu64 " claims (%s)", r->undecided, r->claims, why);
    } else if (c->row_absent) {
        r->kind = HM_CHECK_CONSISTENT;
        r->exit_code = c->options.allow_absent_rows ? 0 : 3;
        snprintf(r->message, size, "CONSISTENT %" PRIu64 " claims (rows absent)", r->claims);
    } else {
        r->kind = HM_CHECK_PROVED;
        r->exit_code = 0;
        snprintf(r->message, size, "PROVED %" PRIu64 " claims", r->claims);
    }
}

int hm_check_log(const char *path, const struct hm_check_options *options, struct hm_check_result *result)
{
    memset(result, 0, sizeof *result);
    struct ck *c = calloc(1, sizeof *c);
    if (!c) {
        *result = (struct hm_check_result){
            .kind = HM_CHECK_UNREADABLE, .exit_code = 2, .message = "UNREADABLE line 0: memory: out of memory"};
        return 2;
    }
    struct stat status = {0};
    if (options) c->options = *options;
    c->result = result;
    c->log_path = path;
    c->sequence = -1;
    c->shard[0].number = c->shard[1].number = -1;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0)
        ck_unreadable(c, "file", "cannot open it: %s", strerror(errno));
    else
        read_lines(c, file, (uint64_t)status.st_size);
    conclude(c);
    if (file) fclose(file);
    ck_close_shards(c);
    ck_tree_clear(c);
    ck_header_clear(c);
    ck_math_clear(&c->math);
    free(c->eos);
    free(c);
    mpfr_free_cache();
    return result->exit_code;
}
