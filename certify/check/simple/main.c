// The log as a whole: header, sequences, the order of records, the end, the verdict. docs/log.md.
#include "parts.h"

#include <errno.h>

enum { VOCAB_LIMIT = 1 << 20, M_LIMIT = 1000000, TOP_LIMIT = 4096, LINE_ROOM = (1 << 24) + 2 };
_Thread_local struct run *run;

static void rational(const cJSON *object, const char *key, mpq_t out) {
    sc_need(sc_rational(sc_text(object, key), out), key, "a rational");
}

static bool flag(const cJSON *object, const char *key) {
    return cJSON_IsTrue(sc_get(object, key, cJSON_True | cJSON_False));
}

static void read_claims(const cJSON *line) {
    const cJSON *v;
    cJSON_ArrayForEach(v, sc_get(line, "claims", cJSON_Array)) {
        sc_need(run->rules < RULES && cJSON_IsString(v), "claims", "at most 32 rules");
        sc_rule(&run->rule[run->rules++], v->valuestring, "claims");
    }
    cJSON_ArrayForEach(v, sc_get(line, "m", cJSON_Array)) {
        bool tree = cJSON_IsString(v) && strcmp(v->valuestring, "tree") == 0;
        sc_need(run->ms < RULES, "m", "at most 32 values");
        run->m[run->ms] = tree ? 0 : sc_integer(v, "m", 1);
        sc_need(run->m[run->ms++] <= M_LIMIT, "m", "at most 1000000");
        sc_need(!tree || !run->audit, "m", "no tree in an audit");
    }
    if (sc_find(line, "divergences")) {
        cJSON_ArrayForEach(v, sc_get(line, "divergences", cJSON_Array)) {
            sc_need(run->divergences < DIVERGENCES && cJSON_IsString(v), "divergences", "at most 16 divergences");
            sc_divergence(&run->divergence[run->divergences], v->valuestring);
            for (int i = 0; i < run->divergences; i++)
                sc_need(strcmp(run->divergence[i].text, v->valuestring) != 0, "divergences", "different ones");
            run->divergences++;
        }
    }
    if (sc_find(line, "laws")) {
        cJSON_ArrayForEach(v, sc_get(line, "laws", cJSON_Array)) {
            int topk = cJSON_IsString(v) && strcmp(v->valuestring, "topk") == 0;
            sc_need(topk || (cJSON_IsString(v) && strcmp(v->valuestring, "iid") == 0), "laws", "iid or topk");
            sc_need(!run->law[topk], "laws", "different ones");
            run->law[topk] = true;
        }
    }
}

static void read_rows(const cJSON *line) {
    static const char *const names[2] = {"target", "draft"};
    const cJSON *rows = sc_get(line, "rows", 0xff);
    if (cJSON_IsNull(rows)) return;
    run->hashed = flag(rows, "hashed");
    for (int i = 0; i < 2; i++) {
        const cJSON *v = sc_get(rows, names[i], 0xff);
        if (cJSON_IsNull(v)) continue;
        const char *s = cJSON_IsString(v) ? v->valuestring : "", *percent = strchr(s, '%');
        bool one = percent && strncmp(percent, "%05d", 4) == 0 && !strchr(percent + 1, '%');
        sc_need(one && strlen(s) < sizeof run->pattern[i] && !strpbrk(s, "/\\") && *s != '.', "rows", "a file name with one %05d");
        strcpy(run->pattern[i], s);
    }
}

static void read_decoder(const cJSON *line) {
    const cJSON *decoder = sc_get(line, "decoder", 0xff);
    run->cap = -1;
    run->audit = cJSON_IsNull(decoder);
    if (run->audit) return;
    run->budget = sc_int(decoder, "budget", 0);
    const char *traversal = sc_text(decoder, "traversal"), *n = traversal + 4;
    if (strcmp(traversal, "exhaustive") == 0) return;
    bool digits = strncmp(traversal, "cap:", 4) == 0 && *n && strspn(n, "0123456789") == strlen(n) && strlen(n) <= 10;
    run->cap = digits ? strtoll(n, NULL, 10) : -1;
    sc_need(run->cap >= 0 && run->cap <= 1 << 30, "traversal", "exhaustive or cap:N");
}

static void make_rows(const cJSON *line) {
    const cJSON *draft = sc_get(line, "draft", 0xff);
    int64_t vocab = sc_int(sc_get(line, "target", cJSON_Object), "vocab", 1);
    sc_need(vocab <= VOCAB_LIMIT, "vocab", "at most 1048576");
    run->has_draft = !cJSON_IsNull(draft);
    sc_need(!run->has_draft || sc_int(draft, "vocab", 1) == vocab, "draft", "the vocabulary of the target");
    run->vocab = (size_t)vocab;
    for (int i = 0; i < ROWS; i++) {
        struct row *r = &run->row[i];
        r->logit = calloc(run->vocab, sizeof *r->logit);
        r->order = calloc(run->vocab, sizeof *r->order);
        r->rank = calloc(run->vocab, sizeof *r->rank);
        r->p = malloc(run->vocab * sizeof *r->p);
        sc_need(r->logit && r->order && r->rank && r->p, "memory", "more of it");
        r->inverse = i == DRAW ? run->inverse_draw : run->inverse_claim;
        for (size_t j = 0; j <= run->vocab; j++) {
            struct real *x = j < run->vocab ? &r->p[j] : &r->log_sum;
            mpfr_inits2(MPFR_PREC_MIN, x->lo, x->hi, (mpfr_ptr)0);
        }
    }
}

static void read_header(const cJSON *line) {
    const cJSON *version = sc_find(line, "hallmark"), *processors = sc_get(line, "processors", cJSON_Object);
    sc_need(cJSON_IsNumber(version) && version->valuedouble == 1, "hallmark", "the header of a log of version 1");
    sc_need(strcmp(sc_text(line, "kind"), "header") == 0, "hallmark", "the header of a log of version 1");
    read_decoder(line);
    read_claims(line);
    const char *acceptance = sc_text(line, "acceptance"), *nodes = sc_text(line, "nodes");
    run->match = strcmp(acceptance, "match") == 0;
    if (!run->match) sc_rule(&run->acceptance, acceptance, "acceptance");
    run->margin = flag(line, "margin");
    run->universal = sc_find(line, "universal") && flag(line, "universal");
    rational(line, "temperature", run->inverse_draw);
    rational(line, "certify_temperature", run->inverse_claim);
    rational(processors, "top_p", run->top_p);
    run->top_k = sc_int(processors, "top_k", 0);
    run->greedy = mpq_sgn(run->inverse_draw) == 0;
    sc_need(run->greedy || mpq_cmp_ui(run->inverse_draw, 1, 100000) >= 0, "temperature", "0, or at least 1/100000");
    sc_need(mpq_cmp_ui(run->inverse_claim, 1, 100000) >= 0, "certify_temperature", "at least 1/100000");
    sc_need(mpq_sgn(run->top_p) > 0 && mpq_cmp_ui(run->top_p, 1, 1) <= 0, "top_p", "a rational in (0, 1]");
    if (!run->greedy) mpq_inv(run->inverse_draw, run->inverse_draw);
    mpq_inv(run->inverse_claim, run->inverse_claim);
    sc_get(line, "budget", cJSON_NULL);
    sc_need(strcmp(sc_text(line, "rng"), "philox4x32-10") == 0, "rng", "philox4x32-10");
    run->top_count = sc_int(line, "top", 0);
    sc_need(run->top_count <= TOP_LIMIT, "top", "at most 4096");
    run->all_nodes = strcmp(nodes, "all") == 0;
    sc_need(run->all_nodes || strcmp(nodes, "path") == 0, "nodes", "path or all");
    sc_need(!run->audit || (run->match && run->greedy && !run->all_nodes), "decoder", "match, temperature 0 and path in an audit");
    read_rows(line);
    make_rows(line);
}

static void read_sequence(const cJSON *line) {
    const cJSON *stop = sc_get(line, "stop", cJSON_Object), *v;
    const char *seed = sc_text(line, "seed");
    sc_is_int(line, "sequence", ++run->sequence);
    sc_int(stop, "max_tokens", 1);
    sc_get(stop, "strings", cJSON_Array);
    cJSON_ArrayForEach(v, sc_get(line, "prompt", cJSON_Array))
        sc_must(sc_integer(v, "prompt", 0) < (int64_t)run->vocab, "prompt", "ids below the vocabulary");
    cJSON_ArrayForEach(v, sc_get(stop, "eos", cJSON_Array)) sc_integer(v, "eos", 0);
    errno = 0;
    run->seed = strtoull(seed, NULL, 10);
    sc_need(*seed && strspn(seed, "0123456789") == strlen(seed) && !errno, "seed", "decimal digits below 2^64");
    cJSON_Delete(run->sequence_json); // this line is kept instead, for its stops
    run->sequence_json = run->line_json;
    run->line_json = NULL;
    run->last_t = run->t - 1;
    run->t = run->round = 0;
    run->finished = false;
    run->where = AT_PREFILL;
}

static void check_finish(const cJSON *line, int64_t token) {
    const cJSON *stop = sc_find(run->sequence_json, "stop"), *v, *found = sc_find(line, "finish");
    const char *expected = NULL, *said = found ? sc_text(line, "finish") : NULL;
    cJSON_ArrayForEach(v, sc_find(stop, "eos")) if (v->valuedouble == (double)token) expected = "eos";
    if (!expected && said && strcmp(said, "stop") == 0 && cJSON_GetArraySize(sc_find(stop, "strings")) > 0) expected = "stop";
    if (!expected && run->t + 1 == sc_int(stop, "max_tokens", 1)) expected = "length";
    sc_must(expected && said ? strcmp(said, expected) == 0 : expected == said, "finish", expected ? expected : "nothing");
    run->finished = found != NULL;
}

static void read_step(const cJSON *line, struct node *n) {
    sc_must(!run->audit && (run->where == AT_PREFILL || (run->where == IN_ROUND && run->tree->next >= 0)), "kind", "no step here");
    n->counted = true;
    sc_walk(line, n);
    check_finish(line, n->token);
    if (run->finished && run->where == IN_ROUND) {
        run->tree->cut = run->tree->next >= 0;
        run->tree->next = -1;
    }
    if (run->where == AT_PREFILL) run->where = AT_ROUND;
    run->last_token = n->token;
    run->t++;
    run->result->steps++;
}

static void read_row(const cJSON *line, struct node *n) {
    sc_must(run->audit, "kind", "no row here: this is no audit");
    int64_t index = sc_int(line, "index", 0);
    sc_must(index > run->index, "index", "a larger one than before");
    run->index = index;
    n->index = -1;
    n->counted = true;
    if (sc_find(line, "token")) n->token = sc_int(line, "token", 0);
    sc_must(n->token < (int64_t)run->vocab, "token", "an id below the vocabulary");
    sc_absent(line, "sequence t round source node depth child support regret finish text e ratio", "nothing in an audit");
    sc_claims(line, n);
    run->rows++;
}

static void check_counts(const cJSON *line) {
    static const char *const words[VERDICTS] = {"yes", "no", "vacuous", "inapplicable", "undecided"};
    static const char *const names[3] = {"klf", "klr", "tv"};
    const cJSON *entry = sc_get(line, "verdicts", cJSON_Array);
    sc_must(cJSON_GetArraySize(entry) == run->rules * run->ms, "verdicts", "one for each rule and m");
    entry = entry->child;
    for (int i = 0; i < run->rules * run->ms; i++, entry = entry->next) {
        int64_t m = run->m[i % run->ms];
        snprintf(run->prefix, sizeof run->prefix, "verdicts[%d].", i);
        sc_is_text(entry, "rule", run->rule[i / run->ms].text);
        if (m > 0) sc_is_int(entry, "m", m);
        else sc_is_text(entry, "m", "tree");
        for (int d = 0; d < 3; d++) {
            const cJSON *counts = sc_get(entry, names[d], cJSON_Object);
            for (int w = 0; w < VERDICTS; w++)
                sc_is_int(counts, words[w], (int64_t)run->verdicts[i / run->ms][i % run->ms][d][w]);
        }
    }
    run->prefix[0] = '\0';
}

static void read_end(const cJSON *line) {
    sc_is_int(line, "sequences", run->sequence + 1);
    sc_is_int(line, "rounds", (int64_t)run->rounds);
    sc_is_int(line, "steps", (int64_t)run->result->steps);
    sc_is_int(line, "nodes", (int64_t)run->nodes);
    if (run->audit) sc_is_int(line, "rows", (int64_t)run->rows);
    check_counts(line);
    uint64_t open = (uint64_t)sc_int(line, "undecided", 0);
    sc_must(open >= run->said_undecided, "undecided", "at least what the log says");
    sc_open(open > run->said_undecided, "undecided"); // the producer left more open than it shows
    run->where = AFTER_END;
}

static void read_record(const cJSON *line) {
    const char *kind = sc_text(line, "kind");
    struct node *n = run->node;
    n->token = -1;
    n->children = 0;
    n->counted = false;
    sc_must(run->where != AFTER_END, "kind", "nothing after the end record");
    if (strcmp(kind, "step") == 0) { read_step(line, n); return; }
    if (strcmp(kind, "node") == 0) { sc_node(line, n); return; }
    if (strcmp(kind, "row") == 0) { read_row(line, n); return; }
    bool round = strcmp(kind, "round") == 0, end = strcmp(kind, "end") == 0;
    sc_need(round || end || strcmp(kind, "sequence") == 0, "kind", "a record's kind");
    sc_must(!run->audit || end, "kind", "rows only: this is an audit");
    sc_round_end();
    bool between = run->where == AT_SEQUENCE || (run->where == AT_ROUND && run->finished);
    if (round) sc_must(run->where == AT_ROUND && !run->finished, "kind", "no round here");
    else sc_must(between, "finish", "the sequence's last step before this record");
    (round ? sc_round : end ? read_end : read_sequence)(line);
}

static void read_lines(FILE *file, char *text) {
    size_t size = 0;
    bool complete;
    sc_need(text != NULL, "memory", "more of it");
    while ((complete = sc_read_line(file, text, &size))) {
        run->line++;
        const cJSON *line = sc_parse(&run->line_json, text, size, "JSON");
        if (run->line == 1) read_header(line);
        sc_chain(text, size, line);
        if (run->line > 1) read_record(line);
        r_release((struct mark){0, 0});
    }
    run->line += run->line == 0;
    sc_need(!ferror(file), "file", "to read on");
    sc_need(run->line > 1 || run->chain[0], "JSON", "a header");
    run->result->truncated = run->where != AFTER_END || size > 0;
}

static void conclude(bool allow_truncated, bool allow_absent_rows) {
    struct hm_simple_result *r = run->result;
    unsigned long long claims = r->claims;
    bool some = r->steps > 0;
    if (r->truncated && !allow_truncated) {
        r->kind = HM_SIMPLE_UNDECIDED;
        snprintf(r->message, sizeof r->message, some ? "UNDECIDED 0 of %llu claims (truncated after step %lld of sequence %lld)"
                 : "UNDECIDED 0 of %llu claims (truncated before the first step)", claims,
                 (long long)(run->t ? run->t - 1 : run->last_t), (long long)(run->t ? run->sequence : run->sequence - 1));
    } else if (r->undecided || run->open || run->said_undecided) {
        r->kind = HM_SIMPLE_UNDECIDED;
        snprintf(r->message, sizeof r->message, "UNDECIDED %llu of %llu claims (%s)", (unsigned long long)r->undecided, claims,
                 run->open ? run->reason : "open at 4096 bits, or the log says so");
    } else {
        r->kind = run->row_absent ? HM_SIMPLE_CONSISTENT : HM_SIMPLE_PROVED;
        snprintf(r->message, sizeof r->message, "%s %llu claims%s", run->row_absent ? "CONSISTENT" : "PROVED", claims,
                 run->row_absent ? " (rows absent)" : "");
    }
    r->exit_code = r->kind == HM_SIMPLE_PROVED || (r->kind == HM_SIMPLE_CONSISTENT && allow_absent_rows) ? 0 : 3;
}

static void numbers(void (*act)(mpq_ptr)) { // what must be made and cleared
    mpq_ptr plain[6] = {run->top_p, run->inverse_claim, run->inverse_draw, run->zero, run->one, run->u};
    for (int i = 0; i < 6; i++) act(plain[i]);
    for (int i = 0; i <= RULES; i++) {
        act((i < RULES ? &run->rule[i] : &run->acceptance)->a);
        act((i < RULES ? &run->rule[i] : &run->acceptance)->b);
    }
    for (int i = 0; i < DIVERGENCES; i++) {
        act(run->divergence[i].order);
        act(run->divergence[i].scale);
    }
}

static void forget(void) {
    for (int i = 0; i < ROWS; i++) {
        struct row *r = &run->row[i];
        for (size_t j = 0; j < run->vocab && r->p; j++) mpfr_clears(r->p[j].lo, r->p[j].hi, (mpfr_ptr)0);
        if (r->p) mpfr_clears(r->log_sum.lo, r->log_sum.hi, (mpfr_ptr)0);
        free(r->logit);
        free(r->order);
        free(r->rank);
        free(r->p);
    }
    for (int i = 0; i < CHUNKS; i++) free(run->chunk[i]);
    for (int i = 0; i < 2; i++)
        if (run->shard[i].file) fclose(run->shard[i].file);
    numbers(mpq_clear);
    cJSON_Delete(run->line_json);
    cJSON_Delete(run->sequence_json);
    cJSON_Delete(run->shard_json);
    free(run);
    mpfr_free_cache();
}

int hm_check_simple(const char *path, bool allow_truncated, bool allow_absent_rows, struct hm_simple_result *result) {
    *result = (struct hm_simple_result){.kind = HM_SIMPLE_UNREADABLE, .message = "UNREADABLE line 0: memory: out of memory"};
    char *volatile text = malloc(LINE_ROOM);
    FILE *volatile file = fopen(path, "rb");
    run = calloc(1, sizeof *run);
    if (run) {
        run->result = result;
        run->path = path;
        run->sequence = run->index = run->shard[0].number = run->shard[1].number = -1;
        numbers(mpq_init);
        mpq_set_ui(run->one, 1, 1);
        if (setjmp(run->failed) == 0) {
            sc_need(file != NULL, "file", "one that can be opened");
            read_lines(file, text);
            conclude(allow_truncated, allow_absent_rows);
        }
        forget();
    }
    if (file) fclose(file);
    free(text);
    if (result->kind == HM_SIMPLE_REFUTED) result->exit_code = 1;
    if (result->kind == HM_SIMPLE_UNREADABLE) result->exit_code = 2;
    return result->exit_code;
}

#ifdef HALLMARK_CHECK_MAIN
int main(int argc, char **argv) {
    bool truncated = false, absent = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        truncated = truncated || strcmp(argv[i], "--allow-truncated") == 0;
        absent = absent || strcmp(argv[i], "--allow-absent-rows") == 0;
    }
    struct hm_simple_result result;
    if (i + 1 != argc) {
        fputs("usage: hallmark-check [--allow-truncated] [--allow-absent-rows] LOG\n", stderr);
        return 2;
    }
    int code = hm_check_simple(argv[i], truncated, absent, &result);
    printf("hallmark: %s\n", result.message);
    return code;
}
#endif
