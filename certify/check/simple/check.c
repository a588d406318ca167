// The log as a whole: header, sequences, the order of records, the end, the verdict. docs/log.md.
#include "parts.h"

#include <errno.h>

enum { VOCAB_LIMIT = 1 << 20, M_LIMIT = 1000000, TOP_LIMIT = 4096, LINE_ROOM = (1 << 24) + 2 };
_Thread_local struct run *run;

static bool flag(const cJSON *o, const char *key) { return cJSON_IsTrue(sc_get(o, key, cJSON_True | cJSON_False)); }
static mpq_ptr rational(const cJSON *o, const char *key) { return sc_rational(sc_text(o, key), key); }

// The strings of header[key], at most `most` different ones; nothing when the field may be absent and is.
static int strings(const cJSON *header, const char *key, int most, bool optional, const char **text) {
    const cJSON *v;
    int count = 0;
    if (optional && !sc_find(header, key)) return 0;
    cJSON_ArrayForEach (v, sc_get(header, key, cJSON_Array)) {
        sc_need(count < most && cJSON_IsString(v), key, "not so many of them, and strings");
        for (int i = 0; optional && i < count; i++)
            sc_need(strcmp(text[i], v->valuestring) != 0, key, "different ones");
        text[count++] = v->valuestring;
    }
    return count;
}

static void read_claims(const cJSON *line) {
    const char *text[RULES];
    const cJSON *v;
    run->rules = strings(line, "claims", RULES, false, text);
    for (int i = 0; i < run->rules; i++) sc_rule(&run->rule[i], text[i], "claims");
    cJSON_ArrayForEach (v, sc_get(line, "m", cJSON_Array)) {
        bool tree = cJSON_IsString(v) && strcmp(v->valuestring, "tree") == 0 && !run->audit;
        int64_t m = tree ? 0 : sc_integer(v, "m", 1);
        sc_need(run->ms < RULES && m <= M_LIMIT, "m", "at most 32 values, each at most 1000000");
        run->m[run->ms++] = m;
    }
    run->divergences = strings(line, "divergences", DIVERGENCES, true, text);
    for (int i = 0; i < run->divergences; i++) sc_divergence(&run->divergence[i], text[i]);
    for (int i = strings(line, "laws", 2, true, text); i-- > 0;) {
        sc_need(strcmp(text[i], "iid") == 0 || strcmp(text[i], "topk") == 0, "laws", "iid or topk");
        run->law[text[i][0] == 't'] = true;
    }
}

static void read_rows(const cJSON *line) {
    const cJSON *rows = sc_get(line, "rows", ANY);
    if (cJSON_IsNull(rows)) return;
    run->hashed = flag(rows, "hashed");
    for (int i = 0; i < 2; i++) {
        const cJSON *v = sc_get(rows, i ? "draft" : "target", cJSON_NULL | cJSON_String);
        if (cJSON_IsNull(v)) continue;
        bool like = strlen(v->valuestring) < sizeof run->pattern[i] && v->valuestring[0] != '.';
        like = like && sc_like(v->valuestring, "^[^/\\%]*%05d[^/\\%]*$");
        sc_need(like, "rows", "a file name with one %05d");
        strcpy(run->pattern[i], v->valuestring);
    }
}

static void read_decoder(const cJSON *line) {
    const cJSON *decoder = sc_get(line, "decoder", cJSON_NULL | cJSON_Object);
    run->cap = -1;
    run->audit = cJSON_IsNull(decoder);
    if (run->audit) return;
    run->budget = sc_int(decoder, "budget", 0);
    const char *traversal = sc_text(decoder, "traversal");
    if (strcmp(traversal, "exhaustive") == 0) return;
    bool cap = sc_like(traversal, "^cap:[0-9]{1,18}$");
    run->cap = cap ? strtoll(traversal + 4, NULL, 10) : 0;
    sc_need(cap && run->cap <= 1 << 30, "traversal", "exhaustive or cap:N");
}

static void make_rows(const cJSON *line, mpq_ptr claim, mpq_ptr draw) {
    const cJSON *draft = sc_get(line, "draft", cJSON_NULL | cJSON_Object);
    int64_t vocab = sc_int(sc_get(line, "target", cJSON_Object), "vocab", 1);
    run->has_draft = !cJSON_IsNull(draft);
    sc_need(vocab <= VOCAB_LIMIT, "vocab", "at most 1048576");
    sc_need(!run->has_draft || sc_int(draft, "vocab", 1) == vocab, "draft", "the vocabulary of the target");
    run->vocab = (size_t)vocab;
    for (struct row *r = run->row; r < run->row + ROWS; r++) {
        r->logit = sc_alloc(run->vocab * sizeof *r->logit);
        r->order = sc_alloc(run->vocab * sizeof *r->order);
        r->rank = sc_alloc(run->vocab * sizeof *r->rank);
        r->p = sc_alloc(run->vocab * sizeof *r->p);
        r->inverse = r == &run->row[DRAW] ? draw : claim;
        memset(r->rank, 0, run->vocab * sizeof *r->rank);
        for (size_t i = 0; i < run->vocab; i++) mpfr_inits2(MPFR_PREC_MIN, r->p[i].lo, r->p[i].hi, (mpfr_ptr)0);
        mpfr_inits2(MPFR_PREC_MIN, r->log_sum.lo, r->log_sum.hi, (mpfr_ptr)0);
    }
    run->base = r_mark();
}

static void read_header(const cJSON *line) {
    const cJSON *version = sc_find(line, "hallmark"), *processors = sc_get(line, "processors", cJSON_Object);
    bool header = cJSON_IsNumber(version) && version->valuedouble == 1 && strcmp(sc_text(line, "kind"), "header") == 0;
    sc_need(header, "hallmark", "the header of a log of version 1");
    read_decoder(line);
    read_claims(line);
    run->match = strcmp(sc_text(line, "acceptance"), "match") == 0;
    if (!run->match) sc_rule(&run->acceptance, sc_text(line, "acceptance"), "acceptance");
    run->margin = flag(line, "margin");
    run->universal = sc_find(line, "universal") && flag(line, "universal");
    mpq_ptr draw = rational(line, "temperature"), claim = rational(line, "certify_temperature");
    run->top_p = rational(processors, "top_p");
    run->top_k = sc_int(processors, "top_k", 0);
    run->greedy = mpq_sgn(draw) == 0;
    sc_need(run->greedy || mpq_cmp_ui(draw, 1, 100000) >= 0, "temperature", "0, or at least 1/100000");
    sc_need(mpq_cmp_ui(claim, 1, 100000) >= 0, "certify_temperature", "at least 1/100000");
    sc_need(mpq_sgn(run->top_p) > 0 && mpq_cmp_ui(run->top_p, 1, 1) <= 0, "top_p", "a rational in (0, 1]");
    if (!run->greedy) mpq_inv(draw, draw);
    mpq_inv(claim, claim);
    sc_get(line, "budget", cJSON_NULL);
    sc_word(line, "rng", (const char *const[]){"philox4x32-10", NULL});
    run->top_count = sc_int(line, "top", 0);
    sc_need(run->top_count <= TOP_LIMIT, "top", "at most 4096");
    run->all_nodes = sc_word(line, "nodes", (const char *const[]){"path", "all", NULL});
    bool plain = run->match && run->greedy && !run->all_nodes;
    sc_need(!run->audit || plain, "decoder", "match, temperature 0 and path in an audit");
    read_rows(line);
    make_rows(line, claim, draw);
}

static void read_sequence(const cJSON *line) {
    const cJSON *stop = sc_get(line, "stop", cJSON_Object), *v;
    const char *seed = sc_text(line, "seed");
    sc_is_int(line, "sequence", ++run->sequence);
    sc_int(stop, "max_tokens", 1);
    sc_get(stop, "strings", cJSON_Array);
    cJSON_ArrayForEach (v, sc_get(line, "prompt", cJSON_Array))
        sc_must(sc_integer(v, "prompt", 0) < (int64_t)run->vocab, "prompt", "ids below the vocabulary");
    cJSON_ArrayForEach (v, sc_get(stop, "eos", cJSON_Array)) sc_integer(v, "eos", 0);
    errno = 0;
    run->seed = strtoull(seed, NULL, 10);
    sc_need(sc_like(seed, "^[0-9]+$") && !errno, "seed", "decimal digits below 2^64");
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
    bool strings = cJSON_GetArraySize(sc_find(stop, "strings")) > 0;
    cJSON_ArrayForEach (v, sc_find(stop, "eos"))
        if (v->valuedouble == (double)token) expected = "eos";
    if (!expected && said && strcmp(said, "stop") == 0 && strings) expected = "stop";
    if (!expected && run->t + 1 == sc_int(stop, "max_tokens", 1)) expected = "length";
    bool right = expected && said ? strcmp(said, expected) == 0 : expected == said;
    sc_must(right, "finish", expected ? expected : "nothing");
    run->finished = found != NULL;
}

static void read_step(const cJSON *line, struct node *n) {
    bool due = run->where == AT_PREFILL || (run->where == IN_ROUND && run->tree->next >= 0);
    sc_must(due && !run->audit, "kind", "no step here");
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
    sc_absent(line, "sequence t round source node depth child support regret finish text e ratio",
              "nothing in an audit");
    sc_claims(line, n);
    run->rows++;
}

static void check_counts(const cJSON *line) {
    const cJSON *entry = sc_get(line, "verdicts", cJSON_Array);
    sc_must(cJSON_GetArraySize(entry) == run->rules * run->ms, "verdicts", "one for each rule and m");
    entry = entry->child;
    for (int i = 0; i < run->rules * run->ms; i++, entry = entry->next) {
        int rule = i / run->ms, column = i % run->ms;
        snprintf(run->prefix, sizeof run->prefix, "verdicts[%d].", i);
        sc_is_text(entry, "rule", run->rule[rule].text);
        if (run->m[column] > 0) sc_is_int(entry, "m", run->m[column]);
        else sc_is_text(entry, "m", "tree");
        for (int j = 0; j < 3 * VERDICTS; j++) {
            const cJSON *counts = sc_get(entry, sc_thresholds[j / VERDICTS], cJSON_Object);
            uint64_t count = run->verdicts[rule][column][j / VERDICTS][j % VERDICTS];
            sc_is_int(counts, sc_verdicts[j % VERDICTS], (int64_t)count);
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
    enum { SEQUENCE, STEP, NODE, ROW, ROUND, END };
    static const char *const kinds[] = {"sequence", "step", "node", "row", "round", "end", NULL};
    struct node *n = run->node;
    n->token = -1;
    n->children = 0;
    n->counted = false;
    sc_text(line, "kind");
    sc_must(run->where != AFTER_END, "kind", "nothing after the end record");
    int kind = sc_word(line, "kind", kinds);
    if (kind >= STEP && kind <= ROW) {
        (kind == STEP ? read_step : kind == NODE ? sc_node : read_row)(line, n);
        return;
    }
    sc_must(!run->audit || kind == END, "kind", "rows only: this is an audit");
    sc_round_end();
    bool between = run->where == AT_SEQUENCE || (run->where == AT_ROUND && run->finished);
    if (kind == ROUND) sc_must(run->where == AT_ROUND && !run->finished, "kind", "no round here");
    else sc_must(between, "finish", "the sequence's last step before this record");
    (kind == ROUND ? sc_round : kind == END ? read_end : read_sequence)(line);
}

static void read_lines(FILE *file, char *text) {
    size_t size = 0;
    sc_need(text != NULL, "memory", "more of it");
    while (sc_read_line(file, text, &size)) {
        run->line++;
        const cJSON *line = sc_parse(&run->line_json, text, size, "JSON");
        if (run->line == 1) read_header(line);
        sc_chain(text, size, line);
        if (run->line > 1) read_record(line);
        r_release(run->base);
    }
    bool begun = run->line > 0;
    run->line += !begun;
    sc_need(!ferror(file), "file", "to read on");
    sc_need(begun, "JSON", "a header");
    run->result->truncated = run->where != AFTER_END || size > 0;
}

static void conclude(bool allow_truncated, bool allow_absent_rows) {
    struct hm_simple_result *r = run->result;
    unsigned long long claims = r->claims, undecided = r->undecided;
    bool known = run->t > 0;
    long long t = known ? run->t - 1 : run->last_t, sequence = known ? run->sequence : run->sequence - 1;
    size_t size = sizeof r->message;
    char after[96] = "before the first step";
    if (r->steps > 0) snprintf(after, sizeof after, "after step %lld of sequence %lld", t, sequence);
    if (r->truncated && !allow_truncated) {
        r->kind = HM_SIMPLE_UNDECIDED;
        snprintf(r->message, size, "UNDECIDED 0 of %llu claims (truncated %s)", claims, after);
    } else if (r->undecided || run->open || run->said_undecided) {
        r->kind = HM_SIMPLE_UNDECIDED;
        const char *why = run->open ? run->reason : "open at 4096 bits, or the log says so";
        snprintf(r->message, size, "UNDECIDED %llu of %llu claims (%s)", undecided, claims, why);
    } else {
        r->kind = run->row_absent ? HM_SIMPLE_CONSISTENT : HM_SIMPLE_PROVED;
        const char *word = run->row_absent ? "CONSISTENT" : "PROVED", *absent = run->row_absent ? " (rows absent)" : "";
        snprintf(r->message, size, "%s %llu claims%s", word, claims, absent);
    }
    r->exit_code = r->kind == HM_SIMPLE_PROVED || (r->kind == HM_SIMPLE_CONSISTENT && allow_absent_rows) ? 0 : 3;
}

static void forget(void) {
    for (struct row *r = run->row; r < run->row + ROWS && run->base.used + (size_t)run->base.chunk > 0; r++) {
        for (size_t i = 0; i < run->vocab; i++) mpfr_clears(r->p[i].lo, r->p[i].hi, (mpfr_ptr)0);
        mpfr_clears(r->log_sum.lo, r->log_sum.hi, (mpfr_ptr)0);
    }
    for (int i = 0; i < CHUNKS; i++) free(run->chunk[i]);
    for (int i = 0; i < run->rational_count; i++) mpq_clear(run->rationals[i]);
    for (int i = 0; i < 2; i++)
        if (run->shard[i].file) fclose(run->shard[i].file);
    cJSON_Delete(run->line_json);
    cJSON_Delete(run->sequence_json);
    cJSON_Delete(run->shard_json);
    free(run);
    mpfr_free_cache();
}

int hm_check_simple(const char *path, bool allow_truncated, bool allow_absent_rows, struct hm_simple_result *result) {
    static const char memory[] = "UNREADABLE line 0: memory: out of memory";
    *result = (struct hm_simple_result){.kind = HM_SIMPLE_UNREADABLE};
    memcpy(result->message, memory, sizeof memory);
    char *text = malloc(LINE_ROOM);
    FILE *file = fopen(path, "rb");
    run = calloc(1, sizeof *run);
    if (run && setjmp(run->failed) == 0) {
        run->result = result;
        run->path = path;
        run->sequence = run->index = run->shard[0].number = run->shard[1].number = -1;
        run->zero = sc_rational("0", "");
        run->one = sc_rational("1", "");
        run->u = sc_rational("0", "");
        sc_need(file != NULL, "file", "one that can be opened");
        read_lines(file, text);
        conclude(allow_truncated, allow_absent_rows);
    }
    if (run) forget();
    if (file) fclose(file);
    free(text);
    if (result->kind == HM_SIMPLE_REFUTED) result->exit_code = 1;
    if (result->kind == HM_SIMPLE_UNREADABLE) result->exit_code = 2;
    return result->exit_code;
}
