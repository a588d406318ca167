// The log as a whole: header, sequences, the order of records, the end, the verdict. docs/log.md.
#include "walk.h"

static const char *string(const cJSON *v, const char *key) {
    need(cJSON_IsString(v), key);
    return v->valuestring;
}

static const cJSON *list(const cJSON *line, const char *key, int most) { // an array that may be absent
    const cJSON *v = find(line, key);
    need(!v || (cJSON_IsArray(v) && cJSON_GetArraySize(v) <= most), key);
    return v;
}

static void read_claims(const cJSON *line) {
    static const char *const laws[] = {"iid", "topk", NULL};
    const cJSON *v;
    need(cJSON_GetArraySize(get(line, "claims", cJSON_Array)) <= RULES, "claims");
    need(cJSON_GetArraySize(get(line, "m", cJSON_Array)) <= RULES, "m");
    cJSON_ArrayForEach (v, find(line, "claims")) read_rule(&run->rule[run->rules++], string(v, "claims"), "claims");
    cJSON_ArrayForEach (v, find(line, "m")) {
        bool tree = cJSON_IsString(v) && strcmp(v->valuestring, "tree") == 0 && !run->audit;
        run->m[run->ms] = tree ? 0 : whole(v, "m", 1);
        need(run->m[run->ms++] <= (find(line, "laws") && cJSON_GetArraySize(find(line, "laws")) ? 1024 : 1000000), "m");
    }
    cJSON_ArrayForEach (v, list(line, "divergences", DIVERGENCES)) {
        read_divergence(&run->divergence[run->divergences], string(v, "divergences"));
        for (int i = 0; i < run->divergences; i++)
            need(strcmp(run->divergence[i].text, v->valuestring) != 0, "divergences");
        run->divergences++;
    }
    cJSON_ArrayForEach (v, list(line, "laws", 2)) {
        bool *law = &run->law[among_words(string(v, "laws"), "laws", laws)];
        need(!*law, "laws");
        *law = true;
    }
}

static void read_patterns(const cJSON *line) {
    const cJSON *rows = get(line, "rows", ANY);
    if (cJSON_IsNull(rows)) return;
    run->hashed = flag_of(rows, "hashed");
    for (int i = 0; i < 2; i++) {
        const cJSON *v = get(rows, i ? "draft" : "target", cJSON_NULL | cJSON_String);
        if (cJSON_IsNull(v)) continue;
        need(strlen(v->valuestring) < sizeof run->pattern[i] && v->valuestring[0] != '.', "rows");
        need(like(v->valuestring, "^[^/\\%]*%05d[^/\\%]*$"), "rows");
        strcpy(run->pattern[i], v->valuestring);
    }
}

static const char *const selections[] = {"draft", "root", "root-draw", "pearl", "covering", NULL};
static const char *const proposals[] = {"topk", "iid", "none", NULL};

static void read_decoder(const cJSON *line) {
    const cJSON *decoder = get(line, "decoder", cJSON_NULL | cJSON_Object);
    run->cap = -1;
    run->audit = cJSON_IsNull(decoder);
    if (run->audit) return;
    run->budget = integer(decoder, "budget", 0);
    const char *traversal = text_of(decoder, "traversal");
    run->selection = (enum selection)word(decoder, "selection", selections);
    run->scores = find(decoder, "score") != NULL;
    need(!run->scores || like(text_of(decoder, "score"), "^(top:[0-9]{1,15}|frontier:([0-9]{1,15}|all))$"), "score");
    run->leaf_stop = strcmp(traversal, "leaf-stop") == 0;
    must(run->selection != COVERING || run->leaf_stop, "selection");
    if (run->leaf_stop || strcmp(traversal, "exhaustive") == 0) return;
    need(like(traversal, "^cap:[0-9]{1,18}$"), "traversal");
    run->cap = strtoll(traversal + 4, NULL, 10);
    need(run->cap <= 1 << 30, "traversal");
}

static void make_rows(const cJSON *line, mpq_ptr claim, mpq_ptr draw) {
    const cJSON *draft = get(line, "draft", cJSON_NULL | cJSON_Object);
    int64_t vocab = integer(get(line, "target", cJSON_Object), "vocab", 1);
    run->has_draft = !cJSON_IsNull(draft);
    need(vocab <= 1 << 20 && (!run->has_draft || integer(draft, "vocab", 1) == vocab), "vocab");
    run->vocab = (size_t)vocab;
    for (struct row *r = run->row; r < run->row + ROWS; r++) {
        r->logit = allocate(run->vocab * sizeof *r->logit);
        r->shift = allocate(run->vocab * sizeof *r->shift);
        r->order = allocate(run->vocab * sizeof *r->order);
        r->rank = allocate(run->vocab * sizeof *r->rank);
        r->p = allocate((run->vocab + 1) * sizeof *r->p);
        r->inverse = r == &run->row[DRAW] ? draw : claim;
    }
    run->output.x = allocate((run->vocab + 1) * sizeof *run->output.x);
    run->residual.x = allocate((run->vocab + 1) * sizeof *run->residual.x);
    run->base = run->kept = run->used;
}

static mpq_ptr rational_of(const cJSON *o, const char *key) { return rational(text_of(o, key), key); }

static void read_acceptance(const cJSON *line) {
    const char *text = text_of(line, "acceptance");
    run->match = strcmp(text, "match") == 0;
    run->standard = strcmp(text, "standard") == 0;
    if (!run->match && !run->standard) read_rule(&run->acceptance, text, "acceptance");
    run->nucleus = run->acceptance.kind && run->acceptance.kind->slack == is_needed;
    run->proposal = (enum proposal)word(line, "proposal", proposals);
    run->iid = run->proposal == IID;
    must(!run->iid || ((run->standard || run->nucleus) && !is_null(line, "draft")), "proposal");
    must(run->match || (run->selection == BY_DRAFT && !run->scores && !run->leaf_stop), "acceptance");
}

static void read_header(const cJSON *line) {
    const cJSON *version = find(line, "hallmark"), *processors = get(line, "processors", cJSON_Object);
    need(cJSON_IsNumber(version) && version->valuedouble == 1, "hallmark");
    need(strcmp(text_of(line, "kind"), "header") == 0, "kind");
    read_decoder(line);
    read_claims(line);
    read_acceptance(line);
    run->margin = flag_of(line, "margin");
    run->universal = find(line, "universal") && flag_of(line, "universal");
    mpq_ptr draw = rational_of(line, "temperature"), claim = rational_of(line, "certify_temperature");
    run->top_p = rational_of(processors, "top_p");
    run->top_k = integer(processors, "top_k", 0);
    run->greedy = mpq_sgn(draw) == 0;
    need(run->greedy || mpq_cmp_ui(draw, 1, 100000) >= 0, "temperature");
    need(mpq_cmp_ui(claim, 1, 100000) >= 0, "certify_temperature");
    need(mpq_sgn(run->top_p) > 0 && mpq_cmp_ui(run->top_p, 1, 1) <= 0, "top_p");
    bool one_p = !run->greedy && mpq_equal(draw, claim) && run->top_k == 0 && mpq_equal(run->top_p, run->one);
    must(one_p || !(run->standard || run->nucleus), "acceptance");
    read_budget(line);
    if (!run->greedy) mpq_inv(draw, draw);
    mpq_inv(claim, claim);
    word(line, "rng", (const char *const[]){"philox4x32-10", NULL});
    run->top_count = integer(line, "top", 0);
    need(run->top_count <= 4096, "top");
    run->all_nodes = word(line, "nodes", (const char *const[]){"path", "all", NULL});
    need(!run->audit || (run->match && run->greedy && !run->all_nodes), "decoder");
    read_patterns(line);
    make_rows(line, claim, draw);
}

static void read_sequence(const cJSON *line) {
    const cJSON *stop = get(line, "stop", cJSON_Object), *v;
    const char *seed = text_of(line, "seed");
    counts(line, "sequence", ++run->sequence);
    begin_budget(integer(stop, "max_tokens", 1));
    get(stop, "strings", cJSON_Array);
    cJSON_ArrayForEach (v, get(line, "prompt", cJSON_Array))
        must(whole(v, "prompt", 0) < (int64_t)run->vocab, "prompt");
    cJSON_ArrayForEach (v, get(stop, "eos", cJSON_Array)) whole(v, "eos", 0);
    errno = 0;
    run->seed = strtoull(seed, NULL, 10);
    need(like(seed, "^[0-9]+$") && !errno, "seed");
    cJSON_Delete(run->sequence_json); // this line is kept instead, for its stops
    run->sequence_json = run->line_json;
    run->line_json = NULL;
    run->t = run->round = 0;
    run->finished = false;
    run->where = AT_PREFILL;
}

static void read_row(const cJSON *line) { // of an audit
    struct node *n = run->node;
    int64_t index = integer(line, "index", 0);
    must(run->audit && index > run->index, "index");
    run->index = index;
    n->index = -1;
    n->counted = true;
    if (find(line, "token")) n->token = integer(line, "token", 0);
    must(n->token < (int64_t)run->vocab, "token");
    absent(line, "sequence t round source node depth child support regret finish text e ratio");
    absent(line, "nucleus_excess accept accept_standard charge relaxed spent");
    check_record(line);
    run->rows++;
}

static void read_end(const cJSON *line) {
    const cJSON *entry = array(line, "verdicts", run->rules * run->ms);
    counts(line, "sequences", run->sequence + 1);
    counts(line, "rounds", (int64_t)run->rounds);
    counts(line, "steps", (int64_t)run->result->steps);
    counts(line, "nodes", (int64_t)run->nodes);
    if (run->audit) counts(line, "rows", (int64_t)run->rows);
    for (int i = 0; entry; i++, entry = entry->next) {
        int rule = i / run->ms, column = i % run->ms;
        says(entry, "rule", run->rule[rule].text);
        if (run->m[column] > 0) counts(entry, "m", run->m[column]);
        else says(entry, "m", "tree");
        for (int j = 0; j < 3 * VERDICTS; j++) {
            uint64_t count = run->verdicts[rule][column][j / VERDICTS][j % VERDICTS];
            counts(get(entry, thresholds[j / VERDICTS], cJSON_Object), verdicts[j % VERDICTS], (int64_t)count);
        }
    }
    uint64_t open = (uint64_t)integer(line, "undecided", 0);
    must(open >= run->said_undecided, "undecided");
    leave_open(open > run->said_undecided, "undecided"); // the producer left more open than it shows
    run->where = AFTER_END;
}

static void read_record(const cJSON *line) {
    enum { SEQUENCE, STEP, NODE, ROW, ROUND, END };
    static const char *const names[] = {"sequence", "step", "node", "row", "round", "end", NULL};
    static void (*const readers[])(const cJSON *) = {read_sequence, check_step,  check_node,
                                                     read_row,      check_round, read_end};
    int kind = word(line, "kind", names);
    must(run->where != AFTER_END, "kind");
    run->node->token = -1;
    run->node->children = 0;
    run->node->counted = run->node->repeats = run->node->looks = run->node->relaxed = false;
    if (kind < STEP || kind > ROW) {
        must(!run->audit || kind == END, "kind");
        end_round();
        bool between = run->where == AT_SEQUENCE || (run->where == AT_ROUND && run->finished);
        must(kind == ROUND ? run->where == AT_ROUND && !run->finished : between, kind == ROUND ? "kind" : "finish");
    }
    readers[kind](line);
}

static void read_lines(FILE *file, char *text) {
    size_t size = 0;
    while (read_line(file, text, &size)) {
        run->line++;
        const cJSON *line = parse(&run->line_json, text, size, "JSON");
        if (run->line == 1) read_header(line);
        check_chain(text, size, line);
        if (run->line > 1) read_record(line);
        run->used = run->kept;
    }
    bool begun = run->line > 0;
    run->line += !begun;
    need(!ferror(file) && begun, "JSON");
    run->result->truncated = run->where != AFTER_END || size > 0;
}

static void conclude(bool allow_truncated, bool allow_absent_rows) {
    struct hm_simple_result *r = run->result;
    unsigned long long claims = r->claims, undecided = r->undecided;
    long long t = run->last_t, sequence = run->last_sequence;
    char after[96] = "before the first step", *text = r->message;
    const char *why = run->open ? run->reason : "open at 4096 bits, or the log says so";
    bool cut = r->truncated && !allow_truncated, open = r->undecided || run->open || run->said_undecided;
    bool gone = run->row_absent;
    if (r->steps > 0) snprintf(after, sizeof after, "after step %lld of sequence %lld", t, sequence);
    r->kind = cut || open ? HM_SIMPLE_UNDECIDED : gone ? HM_SIMPLE_CONSISTENT : HM_SIMPLE_PROVED;
    r->exit_code = r->kind == HM_SIMPLE_PROVED || (r->kind == HM_SIMPLE_CONSISTENT && allow_absent_rows) ? 0 : 3;
    if (cut) snprintf(text, sizeof r->message, "UNDECIDED 0 of %llu claims (truncated %s)", claims, after);
    else if (open) snprintf(text, sizeof r->message, "UNDECIDED %llu of %llu claims (%s)", undecided, claims, why);
    else if (gone) snprintf(text, sizeof r->message, "CONSISTENT %llu claims (rows absent)", claims);
    else snprintf(text, sizeof r->message, "PROVED %llu claims", claims);
}

static void forget(void) {
    for (struct row *r = run->row; r < run->row + ROWS; r++) free(r->limbs);
    free(run->output.limbs);
    free(run->residual.limbs);
    for (int i = 0; i < run->rational_count; i++) mpq_clear(run->rationals[i]);
    for (int i = 0; i < 2; i++)
        if (run->shard[i].file) fclose(run->shard[i].file);
    cJSON_Delete(run->line_json);
    cJSON_Delete(run->sequence_json);
    cJSON_Delete(run->shard_json);
    if (run->stack != MAP_FAILED) munmap(run->stack, ROOM);
    free(run);
    mpfr_free_cache();
}

int hm_check_simple(const char *path, bool allow_truncated, bool allow_absent_rows, struct hm_simple_result *result) {
    *result = (struct hm_simple_result){.kind = HM_SIMPLE_UNREADABLE, .exit_code = 2};
    snprintf(result->message, sizeof result->message, "UNREADABLE line 0: memory: out of memory");
    FILE *file = fopen(path, "rb");
    run = calloc(1, sizeof *run);
    if (run) run->stack = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (run && setjmp(run->failed) == 0) {
        run->result = result;
        run->path = path;
        run->sequence = run->index = run->shard[0].number = run->shard[1].number = -1;
        need(run->stack != MAP_FAILED, "memory");
        run->zero = rational("0", "");
        run->one = rational("1", "");
        run->u = rational("0", "");
        run->reserve = rational("0", "");
        run->sum = rational("0", "");
        need(file != NULL, "file");
        read_lines(file, (char *)allocate(LINE_LIMIT + 66) + 64);
        conclude(allow_truncated, allow_absent_rows);
    }
    if (run) forget();
    if (file) fclose(file);
    if (result->kind == HM_SIMPLE_REFUTED) result->exit_code = 1;
    return result->exit_code;
}
