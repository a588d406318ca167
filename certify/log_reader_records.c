// The header, sequence, round and end records of a log (docs/log.md), into the structs of log_reader.h.
#include "certify/log_reader_private.h"

#include <math.h>
#include <string.h>

static hm_status parse_model(const struct hm_place *place, const cJSON *in, const char *key,
                             struct hm_record_model *out)
{
    const cJSON *model;
    TRY(hm_field_object(place, in, key, &model));
    const struct hm_place inside = hm_place_inside(place, key, -1);
    TRY(hm_field_string(&inside, model, "name", &out->name));
    TRY(hm_field_integer(&inside, model, "vocab", 2, INT32_MAX, &out->vocab));
    out->sha256 = hm_field_text(model, "sha256");
    out->architecture = hm_field_text(model, "architecture");
    return HM_OK;
}

// `claims` and `m`: what every step's claims are matched against.
static hm_status parse_claims(const struct hm_place *place, const cJSON *in, struct hm_record_header *h)
{
    const cJSON *array, *c;
    size_t i = 0;
    TRY(hm_field_array(place, in, "claims", 1, HM_LOG_MOST_RULES, &array, &h->claim_count));
    for (c = array->child; c; c = c->next) {
        if (!cJSON_IsString(c) || !c->valuestring[0]) return hm_place_mismatch(place, "claims", "rule strings", c);
        h->claims[i++] = c->valuestring;
    }
    TRY(hm_field_array(place, in, "m", 1, HM_LOG_MOST_M, &array, &h->m_count));
    for (i = 0, c = array->child; c; c = c->next, i++) {
        if (cJSON_IsString(c) && strcmp(c->valuestring, "tree") == 0)
            h->m[i] = HM_M_TREE;
        else if (!hm_value_integer(c, 1, INT32_MAX, &h->m[i]))
            return hm_place_mismatch(place, "m", "\"tree\" or integers of at least 1", c);
    }
    return HM_OK;
}

// `divergences` and `laws`, which older logs do not have.
static hm_status parse_further(const struct hm_place *place, const cJSON *in, struct hm_record_header *h)
{
    static const char *const laws[] = {[HM_PROPOSAL_IID] = "iid", [HM_PROPOSAL_TOPK] = "topk"};
    const cJSON *array, *c;
    size_t count, i = 0;
    if (hm_field_find(in, "universal")) TRY(hm_field_bool(place, in, "universal", &h->universal));
    if (hm_field_find(in, "divergences")) {
        TRY(hm_field_array(place, in, "divergences", 0, HM_LOG_MOST_DIVERGENCES, &array, &h->divergence_count));
        for (c = array->child; c; c = c->next) {
            if (!cJSON_IsString(c) || !c->valuestring[0]) return hm_place_mismatch(place, "divergences", "names", c);
            for (size_t j = 0; j < i; j++)
                if (strcmp(h->divergences[j], c->valuestring) == 0)
                    return hm_place_mismatch(place, "divergences", "different names", c);
            h->divergences[i++] = c->valuestring;
        }
    }
    if (!hm_field_find(in, "laws")) return HM_OK;
    TRY(hm_field_array(place, in, "laws", 0, 2, &array, &count));
    for (c = array->child; c; c = c->next) {
        int which = cJSON_IsString(c) && strcmp(c->valuestring, laws[1]) == 0;
        if (!cJSON_IsString(c) || strcmp(c->valuestring, laws[which]) != 0 || h->law[which])
            return hm_place_mismatch(place, "laws", "different ones of \"iid\", \"topk\"", c);
        h->law[which] = true;
    }
    return HM_OK;
}

static bool one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return true;
    return false;
}

// Is text PREFIX and then digits of a number from 1 to 2^53?
static bool counts(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0) return false;
    const char *digits = text + length;
    size_t n = strlen(digits);
    return n >= 1 && n <= 15 && *digits != '0' && strspn(digits, "0123456789") == n;
}

// How the tree is chosen and walked: words that say what the rest of the log means.
static hm_status parse_walk(const struct hm_place *place, const cJSON *decoder, struct hm_record_header *h)
{
    static const char *const selections[] = {"draft", "root", "root-draw", "pearl", "covering"};
    static const char *const traversals[] = {"exhaustive", "leaf-stop"};
    TRY(hm_field_string(place, decoder, "traversal", &h->traversal));
    h->selection = hm_field_text(decoder, "selection");
    h->score = hm_field_text(decoder, "score");
    if (!one_of(h->traversal, traversals, 2) && !counts(h->traversal, "cap:"))
        return hm_place_mismatch(place, "traversal", "\"exhaustive\", \"cap:N\" or \"leaf-stop\"",
                                 hm_field_find(decoder, "traversal"));
    if (h->selection && !one_of(h->selection, selections, 5))
        return hm_place_mismatch(place, "selection", "\"draft\", \"root\", \"root-draw\", \"pearl\" or \"covering\"",
                                 hm_field_find(decoder, "selection"));
    if (h->score && !counts(h->score, "top:") && !counts(h->score, "frontier:") &&
        strcmp(h->score, "frontier:all") != 0)
        return hm_place_mismatch(place, "score", "\"top:M\", \"frontier:E\" or \"frontier:all\"",
                                 hm_field_find(decoder, "score"));
    return HM_OK;
}

// The fidelity budget, which most logs do not have.
static hm_status parse_budget(const struct hm_place *place, const cJSON *in, struct hm_record_header *h)
{
    static const char *const kinds[] = {"tv", "regret"};
    const cJSON *budget;
    int which;
    if (!hm_field_find(in, "budget")) return HM_OK;
    TRY(hm_field_object(place, in, "budget", &budget));
    const struct hm_place inside = hm_place_inside(place, "budget", -1);
    TRY(hm_field_choice(&inside, budget, "kind", kinds, 2, &which));
    TRY(hm_field_rational(&inside, budget, "limit", &h->budget_limit));
    h->budget_kind = kinds[which];
    return HM_OK;
}

static hm_status parse_proposal(const struct hm_place *place, const cJSON *in, struct hm_record_header *h)
{
    static const char *const proposals[] = {"topk", "iid", "none"};
    int which;
    if (!hm_field_find(in, "proposal")) return HM_OK;
    TRY(hm_field_choice(place, in, "proposal", proposals, 3, &which));
    h->proposal = proposals[which];
    return HM_OK;
}

static hm_status parse_decoder(const struct hm_place *place, const cJSON *in, struct hm_record_header *h)
{
    const cJSON *decoder;
    h->audit = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(in, "decoder"));
    if (h->audit) return HM_OK;
    TRY(hm_field_object(place, in, "decoder", &decoder));
    const struct hm_place inside = hm_place_inside(place, "decoder", -1);
    TRY(hm_field_string(&inside, decoder, "drafter", &h->drafter));
    TRY(hm_field_integer(&inside, decoder, "width", 0, HM_MOST_INTEGER, &h->width));
    TRY(hm_field_integer(&inside, decoder, "depth", 0, HM_MOST_INTEGER, &h->depth));
    TRY(hm_field_integer(&inside, decoder, "budget", 0, HM_MOST_INTEGER, &h->budget));
    return parse_walk(&inside, decoder, h);
}

// What only informs: absent members stay NULL.
static void parse_asserted(const cJSON *in, struct hm_record_header *h)
{
    const cJSON *numerics = hm_field_find(in, "numerics"), *rows = hm_field_find(in, "rows"),
                *run = hm_field_find(in, "run");
    h->tokenizer_sha256 = hm_field_text(in, "tokenizer_sha256");
    h->rng = hm_field_text(in, "rng");
    h->weights = hm_field_text(numerics, "weights");
    h->accumulate = hm_field_text(numerics, "accumulate");
    h->backend = hm_field_text(numerics, "backend");
    h->row_source = hm_field_text(numerics, "row_source");
    h->target_rows = hm_field_text(rows, "target");
    h->draft_rows = hm_field_text(rows, "draft");
    h->has_rows = h->target_rows != NULL;
    h->rows_hashed = h->has_rows || cJSON_IsTrue(hm_field_find(rows, "hashed"));
    h->version = hm_field_text(run, "version");
    h->date = hm_field_text(run, "date");
    h->host = hm_field_text(run, "host");
}

hm_status hm_log_parse_header(struct hm_log_reader *r, const struct hm_place *place)
{
    static const char *const kinds[] = {"header"}, *const nodes[] = {"path", "all"};
    struct hm_record_header *h = &r->header;
    const cJSON *in = r->header_json, *processors;
    int64_t version;
    int which;
    TRY(hm_field_integer(place, in, "hallmark", 1, 1, &version));
    TRY(hm_field_choice(place, in, "kind", kinds, 1, &which));
    TRY(parse_claims(place, in, h));
    TRY(hm_field_bool(place, in, "margin", &h->margin));
    TRY(parse_further(place, in, h));
    TRY(hm_field_string(place, in, "acceptance", &h->acceptance));
    TRY(hm_field_rational(place, in, "temperature", &h->temperature));
    TRY(hm_field_rational(place, in, "certify_temperature", &h->certify_temperature));
    TRY(hm_field_object(place, in, "processors", &processors));
    const struct hm_place inside = hm_place_inside(place, "processors", -1);
    TRY(hm_field_integer(&inside, processors, "top_k", 0, HM_MOST_INTEGER, &h->top_k));
    TRY(hm_field_rational(&inside, processors, "top_p", &h->top_p));
    TRY(hm_field_integer(place, in, "top", 0, INT32_MAX, &h->top));
    TRY(hm_field_choice(place, in, "nodes", nodes, 2, &which));
    h->all_nodes = which == 1;
    TRY(parse_model(place, in, "target", &h->target));
    if (hm_field_find(in, "draft")) TRY(parse_model(place, in, "draft", &h->draft));
    TRY(parse_proposal(place, in, h));
    TRY(parse_budget(place, in, h));
    TRY(parse_decoder(place, in, h));
    parse_asserted(in, h);
    return HM_OK;
}

static hm_status wrong_number(const struct hm_place *place, const char *key, int64_t expected, int64_t found)
{
    char e[40], f[40];
    snprintf(e, sizeof e, "%lld", (long long)expected);
    snprintf(f, sizeof f, "%lld", (long long)found);
    return hm_place_fail(place, key, HM_FORMAT, e, f);
}

// The decimal digits of a number below 2^64.
static bool is_seed(const char *text)
{
    size_t length = strlen(text);
    if (length < 1 || length > 20 || strspn(text, "0123456789") != length) return false;
    return length < 20 || strcmp(text, "18446744073709551615") <= 0;
}

static hm_status parse_prompt(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_sequence *s = &r->sequence_record;
    const cJSON *prompt;
    int32_t *ids;
    int64_t id;
    size_t i = 0;
    TRY(hm_field_array(place, r->json, "prompt", 0, SIZE_MAX, &prompt, &s->prompt_length));
    TRY(hm_log_reuse(place, &r->prompt, s->prompt_length, sizeof *ids, &ids));
    for (const cJSON *c = prompt->child; c; c = c->next) {
        if (!hm_value_integer(c, 0, r->header.target.vocab - 1, &id))
            return hm_place_mismatch(place, "prompt", "token ids of the target's vocabulary", c);
        ids[i++] = (int32_t)id;
    }
    s->prompt = ids;
    return HM_OK;
}

hm_status hm_log_parse_sequence(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_sequence *s = &r->sequence_record;
    const cJSON *in = r->json, *stop, *id = hm_field_find(in, "id");
    int64_t number;
    *s = (struct hm_record_sequence){.category = hm_field_text(in, "category")};
    if (r->header.audit) return hm_place_fail(place, "kind", HM_FORMAT, "a row, as this is an audit", "a sequence");
    TRY(hm_field_integer(place, in, "sequence", 0, UINT32_MAX, &s->sequence));
    if (s->sequence != r->sequence + 1) return wrong_number(place, "sequence", r->sequence + 1, s->sequence);
    if (hm_value_integer(id, -HM_MOST_INTEGER, HM_MOST_INTEGER, &number)) {
        snprintf(r->number, sizeof r->number, "%lld", (long long)number);
        s->id = r->number;
    } else if (cJSON_IsString(id)) {
        s->id = id->valuestring;
    } else {
        return hm_place_mismatch(place, "id", "a text or an integer", id);
    }
    if (!s->category) s->category = "";
    if (hm_field_find(in, "turn")) TRY(hm_field_integer(place, in, "turn", 0, UINT32_MAX, &s->turn));
    TRY(parse_prompt(r, place));
    TRY(hm_field_string(place, in, "seed", &s->seed));
    if (!is_seed(s->seed)) return hm_place_fail(place, "seed", HM_FORMAT, "digits below 2^64", "something else");
    TRY(hm_field_object(place, in, "stop", &stop));
    const struct hm_place inside = hm_place_inside(place, "stop", -1);
    TRY(hm_field_integer(&inside, stop, "max_tokens", 0, HM_MOST_INTEGER, &s->max_tokens));
    r->sequence = s->sequence;
    r->t = r->round = -1;
    r->nodes = 0;
    r->finished = false;
    r->sequences++;
    return HM_OK;
}

// The tree of a round: parents before children, so that depths follow in one pass.
static hm_status parse_tree(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_round *round = &r->round_record;
    const cJSON *parent, *token, *logq;
    int64_t *parents, *tokens, *depths;
    double *logqs;
    size_t n, count;
    TRY(hm_field_array(place, r->json, "parent", 1, SIZE_MAX, &parent, &n));
    TRY(hm_field_array(place, r->json, "token", n, n, &token, &count));
    TRY(hm_field_array(place, r->json, "logq", n, n, &logq, &count));
    TRY(hm_log_reuse(place, &r->parent, n, sizeof *parents, &parents));
    TRY(hm_log_reuse(place, &r->token, n, sizeof *tokens, &tokens));
    TRY(hm_log_reuse(place, &r->depth, n, sizeof *depths, &depths));
    TRY(hm_log_reuse(place, &r->logq, n, sizeof *logqs, &logqs));
    parent = parent->child, token = token->child, logq = logq->child;
    for (size_t i = 0; i < n; i++, parent = parent->next, token = token->next, logq = logq->next) {
        int64_t least = i ? 0 : -1;
        if (!hm_value_integer(parent, least, (int64_t)i - 1, &parents[i]))
            return hm_place_mismatch(place, "parent", i ? "an earlier node" : "-1 at the root", parent);
        if (!hm_value_integer(token, 0, r->header.target.vocab - 1, &tokens[i]))
            return hm_place_mismatch(place, "token", "token ids of the target's vocabulary", token);
        if (!hm_value_real(logq, &logqs[i]) || logqs[i] == INFINITY)
            return hm_place_mismatch(place, "logq", "hexadecimal floats or \"-inf\"", logq);
        depths[i] = i ? depths[parents[i]] + 1 : 0;
    }
    round->nodes = n;
    round->parent = parents, round->token = tokens, round->depth = depths, round->logq = logqs;
    return HM_OK;
}

hm_status hm_log_parse_round(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_round *round = &r->round_record;
    const cJSON *in = r->json, *run = hm_field_find(in, "run");
    *round = (struct hm_record_round){.draft_seconds = hm_field_seconds(run, "draft_seconds"),
                                      .verify_seconds = hm_field_seconds(run, "verify_seconds")};
    TRY(hm_field_integer(place, in, "sequence", 0, UINT32_MAX, &round->sequence));
    if (round->sequence != r->sequence) return wrong_number(place, "sequence", r->sequence, round->sequence);
    TRY(hm_field_integer(place, in, "round", 0, HM_MOST_INTEGER, &round->round));
    if (round->round != r->round + 1) return wrong_number(place, "round", r->round + 1, round->round);
    TRY(hm_field_integer(place, in, "t", 0, HM_MOST_INTEGER, &round->t));
    if (round->t != r->t + 1) return wrong_number(place, "t", r->t + 1, round->t);
    TRY(hm_field_integer(place, in, "pool", 0, HM_MOST_INTEGER, &round->pool));
    TRY(parse_tree(r, place));
    int64_t scored = 0, most = r->header.score ? (int64_t)round->nodes - 1 : 0;
    if (hm_field_find(in, "scored")) TRY(hm_field_integer(place, in, "scored", 0, most, &scored));
    round->scored = (size_t)scored;
    round->first = -1;
    if (hm_field_find(in, "first"))
        TRY(hm_field_integer(place, in, "first", 0, r->header.target.vocab - 1, &round->first));
    round->has_expected_accept = hm_field_find(in, "expected_accept") != NULL;
    if (round->has_expected_accept) TRY(hm_field_ival(place, in, "expected_accept", &round->expected_accept));
    r->round = round->round;
    r->nodes = (int64_t)round->nodes;
    r->round_t = round->t;
    r->rounds++;
    return HM_OK;
}

hm_status hm_log_parse_end(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_end *e = &r->end_record;
    const cJSON *in = r->json, *run = hm_field_find(in, "run");
    const struct {
        const char *key;
        int64_t *out, found;
    } counts[] = {{"sequences", &e->sequences, r->sequences},
                  {"rounds", &e->rounds, r->rounds},
                  {"steps", &e->steps, r->steps},
                  {"nodes", &e->nodes, r->node_records},
                  {"rows", &e->rows, r->rows}};
    size_t used = sizeof counts / sizeof *counts - !r->header.audit; // `rows` stands in audits only
    *e = (struct hm_record_end){.decisions = -1,
                                .filter_undecided = -1,
                                .certify_seconds = hm_field_seconds(run, "certify_seconds"),
                                .hash_seconds = hm_field_seconds(run, "hash_seconds"),
                                .seconds = hm_field_seconds(run, "seconds")};
    for (size_t i = 0; i < used; i++) {
        TRY(hm_field_integer(place, in, counts[i].key, 0, HM_MOST_INTEGER, counts[i].out));
        if (*counts[i].out != counts[i].found)
            return wrong_number(place, counts[i].key, counts[i].found, *counts[i].out);
    }
    TRY(hm_field_integer(place, in, "undecided", 0, HM_MOST_INTEGER, &e->undecided));
    const cJSON *filter = hm_field_find(run, "filter"); // as all of `run`, it may be anything
    if (!hm_value_integer(hm_field_find(filter, "decisions"), 0, HM_MOST_INTEGER, &e->decisions) ||
        !hm_value_integer(hm_field_find(filter, "undecided"), 0, HM_MOST_INTEGER, &e->filter_undecided))
        e->decisions = e->filter_undecided = -1;
    return HM_OK;
}
