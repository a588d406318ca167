// The step and node records of a log (docs/log.md), into the structs of log_reader.h.
#include "certify/log_reader_private.h"

#include <math.h>
#include <string.h>

static const char *const VERDICTS[] = {"no", "yes", "undecided"};
static const char *const CERTIFIED[] = {"no", "yes", "vacuous", "inapplicable", "undecided"};

// [id, logit].
static hm_status parse_logit(const struct hm_place *place, const char *key, const cJSON *pair, int64_t vocab,
                             struct hm_record_logit *out)
{
    const cJSON *id = cJSON_IsArray(pair) ? pair->child : NULL, *logit = id ? id->next : NULL;
    if (!logit || logit->next) return hm_place_mismatch(place, key, "[id, logit]", pair);
    if (!hm_value_integer(id, 0, vocab - 1, &out->id))
        return hm_place_mismatch(place, key, "a token id of the target's vocabulary", id);
    if (!hm_value_real(logit, &out->logit) || out->logit == INFINITY)
        return hm_place_mismatch(place, key, "a logit: a hexadecimal float or \"-inf\"", logit);
    out->present = true;
    return HM_OK;
}

static hm_status parse_top(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    const cJSON *array;
    struct hm_record_logit *top;
    size_t most = (size_t)(r->header.top < r->header.target.vocab ? r->header.top : r->header.target.vocab), i = 0;
    TRY(hm_field_array(place, r->json, "top", most, most, &array, &step->top_count));
    TRY(hm_log_reuse(place, &r->top, step->top_count, sizeof *top, &top));
    for (const cJSON *c = array->child; c; c = c->next, i++)
        TRY(parse_logit(place, "top", c, r->header.target.vocab, &top[i]));
    step->top = top;
    return HM_OK;
}

static hm_status parse_row(const struct hm_place *place, const cJSON *in, const char *key, struct hm_record_row *out)
{
    const cJSON *row;
    *out = (struct hm_record_row){.shard = -1, .index = -1};
    TRY(hm_field_object(place, in, key, &row));
    const struct hm_place inside = hm_place_inside(place, key, -1);
    if (hm_field_find(row, "shard")) {
        TRY(hm_field_integer(&inside, row, "shard", 0, HM_MOST_INTEGER, &out->shard));
        TRY(hm_field_integer(&inside, row, "index", 0, HM_MOST_INTEGER, &out->index));
        return hm_field_hash(&inside, row, "sha256", &out->sha256);
    }
    TRY(hm_field_string(&inside, row, "why", &out->why));
    if (hm_field_find(row, "sha256")) TRY(hm_field_hash(&inside, row, "sha256", &out->sha256));
    return HM_OK;
}

// [a, s].
static hm_status parse_tied(const struct hm_place *place, const cJSON *in, const char *key, uint32_t out[2])
{
    const cJSON *array;
    size_t count, i = 0;
    int64_t number;
    TRY(hm_field_array(place, in, key, 2, 2, &array, &count));
    for (const cJSON *c = array->child; c; c = c->next) {
        if (!hm_value_integer(c, 0, UINT32_MAX, &number)) return hm_place_mismatch(place, key, "two counts", c);
        out[i++] = (uint32_t)number;
    }
    return HM_OK;
}

static hm_status parse_distances(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_claim *out)
{
    struct hm_level *level = &out->level;
    TRY(hm_field_ival(place, in, "klf", &level->klf));
    TRY(hm_field_ival(place, in, "klr", &level->klr));
    TRY(hm_field_ival(place, in, "tv", &level->tv));
    out->has_distances = true;
    out->has_level = out->k >= 1 && out->k <= vocab - out->m;
    if (!out->has_level) return HM_OK;
    TRY(hm_field_ival(place, in, "level_f", &level->level_f));
    TRY(hm_field_ival(place, in, "level_r", &level->level_r));
    TRY(parse_tied(place, in, "tied_f", level->tied_f));
    return parse_tied(place, in, "tied_r", level->tied_r);
}

static hm_status parse_margin(const struct hm_place *place, const cJSON *in, struct hm_record_claim *out)
{
    const cJSON *margin;
    TRY(hm_field_object(place, in, "margin", &margin));
    const struct hm_place inside = hm_place_inside(place, "margin", -1);
    TRY(hm_field_ival(&inside, margin, "gap", &out->margin.gap));
    TRY(hm_field_ival(&inside, margin, "klf", &out->margin.klf));
    TRY(hm_field_ival(&inside, margin, "klr", &out->margin.klr));
    TRY(hm_field_ival(&inside, margin, "tv", &out->margin.tv));
    out->has_margin = true;
    return HM_OK;
}

static hm_status parse_verdicts(const struct hm_place *place, const cJSON *in, struct hm_record_claim *out)
{
    static const char *const divergences[] = {"klf", "klr", "tv"};
    const cJSON *certified = cJSON_GetObjectItemCaseSensitive(in, "certified");
    int which;
    if (cJSON_IsNull(certified)) return hm_field_string(place, in, "why", &out->why);
    if (!cJSON_IsObject(certified)) return hm_place_mismatch(place, "certified", "an object or null", certified);
    const struct hm_place inside = hm_place_inside(place, "certified", -1);
    for (size_t i = 0; i < 3; i++) {
        TRY(hm_field_choice(&inside, certified, divergences[i], CERTIFIED, 5, &which));
        out->certified[i] = (enum hm_certified)which;
    }
    TRY(hm_field_choice(place, in, "covered", VERDICTS, 3, &which));
    out->covered = (enum hm_verdict)which;
    out->has_verdicts = true;
    return HM_OK;
}

static hm_status parse_edge(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_claim *out)
{
    const cJSON *edge, *side;
    size_t count, i = 0;
    TRY(hm_field_array(place, in, "edge", 2, 2, &edge, &count));
    for (side = edge->child; side; side = side->next, i++)
        if (!cJSON_IsNull(side)) TRY(parse_logit(place, "edge", side, vocab, &out->edge[i]));
    return HM_OK;
}

static hm_status parse_claim(const struct hm_log_reader *r, const struct hm_place *place, const cJSON *in, size_t index,
                             bool is_step, struct hm_record_claim *out)
{
    static const char *const sources[] = {"fixed", "tree"};
    const struct hm_record_header *h = &r->header;
    int64_t vocab = h->target.vocab, m = h->m[index % h->m_count];
    const char *rule = h->claims[index / h->m_count];
    int which;
    *out = (struct hm_record_claim){.m_tree = m == HM_M_TREE};
    if (!cJSON_IsObject(in)) return hm_place_mismatch(place, "rule", "a claim", in);
    TRY(hm_field_string(place, in, "rule", &out->rule));
    if (strcmp(out->rule, rule) != 0)
        return hm_place_mismatch(place, "rule", rule, cJSON_GetObjectItemCaseSensitive(in, "rule"));
    TRY(hm_field_choice(place, in, "m_from", &sources[out->m_tree], 1, &which));
    TRY(hm_field_integer(place, in, "m", out->m_tree ? 0 : m, out->m_tree ? INT32_MAX : m, &out->m));
    TRY(hm_field_integer(place, in, "k", 0, vocab, &out->k));
    TRY(parse_edge(place, in, vocab, out));
    if (is_step) {
        TRY(hm_field_choice(place, in, "accepts", VERDICTS, 3, &which));
        out->accepts = (enum hm_verdict)which;
        out->has_accepts = true;
    }
    if (out->m > 0) TRY(parse_distances(place, in, vocab, out));
    if (hm_field_find(in, "margin")) TRY(parse_margin(place, in, out));
    out->has_radius = hm_field_find(in, "radius") != NULL;
    if (out->has_radius) TRY(hm_field_ival(place, in, "radius", &out->radius));
    return parse_verdicts(place, in, out);
}

static hm_status parse_claims(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step, bool is_step)
{
    const cJSON *array;
    struct hm_record_claim *claims;
    size_t want = r->header.claim_count * r->header.m_count, i = 0;
    TRY(hm_field_array(place, r->json, "claims", want, want, &array, &step->claim_count));
    TRY(hm_log_reuse(place, &r->claims, want, sizeof *claims, &claims));
    for (const cJSON *c = array->child; c; c = c->next, i++) {
        const struct hm_place inside = hm_place_inside(place, "claims", (long)i);
        TRY(parse_claim(r, &inside, c, i, is_step, &claims[i]));
    }
    step->claims = claims;
    return HM_OK;
}

static hm_status parse_row_figures(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_step *step)
{
    TRY(hm_field_integer(place, in, "support", 1, vocab, &step->support));
    TRY(hm_field_ival(place, in, "lse", &step->lse));
    TRY(hm_field_ival(place, in, "entropy", &step->entropy));
    step->has_draft = hm_field_find(in, "kl_pq") != NULL;
    if (step->has_draft) {
        TRY(hm_field_ival(place, in, "kl_pq", &step->kl_pq));
        TRY(hm_field_ival(place, in, "kl_qp", &step->kl_qp));
        TRY(hm_field_ival(place, in, "tv", &step->tv));
    }
    step->has_regret = hm_field_find(in, "regret") != NULL;
    if (step->has_regret) TRY(hm_field_ival(place, in, "regret", &step->regret));
    return HM_OK;
}

// Where the token came from: t without gaps, the node inside its round.
static hm_status parse_place(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    static const char *const sources[] = {"prefill", "accepted", "continuation"}, *const finishes[] = {"eos", "length", "stop"};
    const cJSON *in = r->json;
    int which;
    TRY(hm_field_integer(place, in, "t", r->t + 1, r->t + 1, &step->t));
    if (r->finished) return hm_place_fail(place, "t", HM_FORMAT, "no step after the one with `finish`", "another step");
    TRY(hm_field_integer(place, in, "token", 0, r->header.target.vocab - 1, &step->token));
    TRY(hm_field_choice(place, in, "source", sources, 3, &which));
    step->source = (enum hm_source)which;
    if (step->source != HM_SOURCE_PREFILL) {
        if (r->round < 0) return hm_place_fail(place, "source", HM_FORMAT, "a round before its steps", "none");
        TRY(hm_field_integer(place, in, "round", r->round, r->round, &step->round));
    } else if (step->t != 0 || hm_field_find(in, "round")) {
        return hm_place_fail(place, "source", HM_FORMAT, "\"prefill\" only at t = 0 with round null", "another place");
    }
    if (step->source == HM_SOURCE_ACCEPTED)
        TRY(hm_field_integer(place, in, "child", 1, r->nodes - 1, &step->child));
    if (hm_field_find(in, "finish")) {
        TRY(hm_field_choice(place, in, "finish", finishes, 3, &which));
        step->finish = (enum hm_finish)(which + HM_FINISH_EOS);
    }
    step->text = hm_field_text(in, "text");
    if (!step->text) step->text = "";
    return HM_OK;
}

hm_status hm_log_parse_step(struct hm_log_reader *r, const struct hm_place *place, enum hm_record_kind kind)
{
    struct hm_record_step *step = &r->step_record;
    const cJSON *in = r->json;
    bool is_step = kind == HM_RECORD_STEP;
    *step = (struct hm_record_step){.t = -1, .token = -1, .round = -1, .child = -1, .text = ""};
    if (r->sequence < 0) return hm_place_fail(place, "kind", HM_FORMAT, "a sequence before its steps", "none");
    TRY(hm_field_integer(place, in, "sequence", r->sequence, r->sequence, &step->sequence));
    if (is_step) TRY(parse_place(r, place, step));
    else if (r->round < 0) return hm_place_fail(place, "kind", HM_FORMAT, "a round before its nodes", "none");
    else TRY(hm_field_integer(place, in, "round", r->round, r->round, &step->round));
    TRY(hm_field_integer(place, in, "node", 0, step->round < 0 ? 0 : r->nodes - 1, &step->node));
    TRY(hm_field_integer(place, in, "depth", 0, HM_MOST_INTEGER, &step->depth));
    TRY(parse_row(place, in, "row", &step->row));
    TRY(parse_row(place, in, "draft_row", &step->draft_row));
    TRY(parse_top(r, place, step));
    TRY(parse_row_figures(place, in, r->header.target.vocab, step));
    TRY(parse_claims(r, place, step, is_step));
    if (is_step) {
        r->t = step->t;
        r->finished = step->finish != HM_FINISH_NONE;
        r->steps++;
    } else {
        r->node_records++;
    }
    return HM_OK;
}
