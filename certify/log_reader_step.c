// The step, node and row records of a log (docs/log.md), into the structs of log_reader.h. Claims are read by
// log_reader_claim.c.
#include "certify/log_reader_private.h"

#include <math.h>
#include <string.h>

// [id, logit].
hm_status hm_log_parse_logit(const struct hm_place *place, const char *key, const cJSON *pair, int64_t vocab,
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
        TRY(hm_log_parse_logit(place, "top", c, r->header.target.vocab, &top[i]));
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

static hm_status parse_optional(const struct hm_place *place, const cJSON *in, const char *key, bool *present,
                                struct hm_ival *out)
{
    *present = hm_field_find(in, key) != NULL;
    return *present ? hm_field_ival(place, in, key, out) : HM_OK;
}

static hm_status parse_divergences(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    const cJSON *object;
    size_t count = r->header.divergence_count;
    if (count == 0 || !step->has_draft) return HM_OK;
    TRY(hm_field_object(place, r->json, "divergences", &object));
    const struct hm_place inside = hm_place_inside(place, "divergences", -1);
    for (size_t i = 0; i < count; i++)
        TRY(hm_field_ival(&inside, object, r->header.divergences[i], &step->divergence[i]));
    step->has_divergences = true;
    return HM_OK;
}

// How the token was accepted, and what that cost.
static hm_status parse_acceptance(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    const cJSON *in = r->json;
    bool has_ratio;
    TRY(parse_optional(place, in, "regret", &step->has_regret, &step->regret));
    TRY(parse_optional(place, in, "standard_accept", &step->has_standard_accept, &step->standard_accept));
    TRY(parse_optional(place, in, "nucleus_excess", &step->has_nucleus_excess, &step->nucleus_excess));
    TRY(parse_optional(place, in, "accept", &step->has_accept, &step->accept));
    TRY(parse_optional(place, in, "accept_standard", &step->has_accept_standard, &step->accept_standard));
    TRY(parse_optional(place, in, "e", &step->has_e, &step->e));
    TRY(parse_optional(place, in, "ratio", &has_ratio, &step->ratio));
    if (step->has_e != has_ratio)
        return hm_place_fail(place, has_ratio ? "e" : "ratio", HM_FORMAT, "`e` and `ratio` together", "one of them");
    return HM_OK;
}

// What a step charges to the fidelity budget of its sequence.
static hm_status parse_charge(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    const cJSON *in = r->json, *spent = hm_field_find(in, "spent");
    if (!r->header.budget_kind) return HM_OK;
    TRY(parse_optional(place, in, "charge", &step->has_charge, &step->charge));
    if (step->has_charge)
        TRY(hm_field_bool(place, in, "relaxed", &step->relaxed));
    else if (hm_field_find(in, "relaxed"))
        return hm_place_fail(place, "charge", HM_FORMAT, "`charge` and `relaxed` together", "one of them");
    step->has_spent = true;
    if (hm_value_real(spent, &step->spent) && step->spent >= 0 && step->spent < INFINITY) return HM_OK;
    return hm_place_mismatch(place, "spent", "a hexadecimal float of 0 or more", spent);
}

static hm_status parse_row_figures(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    const cJSON *in = r->json;
    TRY(hm_field_ival(place, in, "lse", &step->lse));
    TRY(hm_field_ival(place, in, "entropy", &step->entropy));
    step->has_draft = hm_field_find(in, "kl_pq") != NULL;
    if (step->has_draft) {
        TRY(hm_field_ival(place, in, "kl_pq", &step->kl_pq));
        TRY(hm_field_ival(place, in, "kl_qp", &step->kl_qp));
        TRY(hm_field_ival(place, in, "tv", &step->tv));
    }
    TRY(parse_acceptance(r, place, step));
    return parse_divergences(r, place, step);
}

// What steps, nodes and audit rows share.
static hm_status parse_common(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step,
                              bool has_token)
{
    TRY(parse_row(place, r->json, "row", &step->row));
    TRY(parse_row(place, r->json, "draft_row", &step->draft_row));
    TRY(parse_top(r, place, step));
    TRY(parse_row_figures(r, place, step));
    return hm_log_parse_claims(r, place, step, has_token);
}

// Where the token came from: t without gaps, the node inside its round.
static hm_status parse_place(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step)
{
    static const char *const sources[] = {"prefill", "accepted", "continuation"}, *const finishes[] = {"eos", "length",
                                                                                                       "stop"};
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
    if (step->source == HM_SOURCE_ACCEPTED) TRY(hm_field_integer(place, in, "child", 1, r->nodes - 1, &step->child));
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
    *step = (struct hm_record_step){.index = -1, .t = -1, .token = -1, .round = -1, .child = -1, .text = ""};
    if (r->sequence < 0) return hm_place_fail(place, "kind", HM_FORMAT, "a sequence before its steps", "none");
    TRY(hm_field_integer(place, in, "sequence", r->sequence, r->sequence, &step->sequence));
    if (is_step)
        TRY(parse_place(r, place, step));
    else if (r->round < 0)
        return hm_place_fail(place, "kind", HM_FORMAT, "a round before its nodes", "none");
    else
        TRY(hm_field_integer(place, in, "round", r->round, r->round, &step->round));
    TRY(hm_field_integer(place, in, "node", 0, step->round < 0 ? 0 : r->nodes - 1, &step->node));
    TRY(hm_field_integer(place, in, "depth", 0, HM_MOST_INTEGER, &step->depth));
    TRY(hm_field_integer(place, in, "support", 1, r->header.target.vocab, &step->support));
    TRY(parse_common(r, place, step, is_step));
    if (is_step) TRY(parse_charge(r, place, step));
    if (is_step) {
        r->t = step->t;
        r->finished = step->finish != HM_FINISH_NONE;
        r->steps++;
    } else {
        r->node_records++;
    }
    return HM_OK;
}

hm_status hm_log_parse_row(struct hm_log_reader *r, const struct hm_place *place)
{
    struct hm_record_step *step = &r->step_record;
    const cJSON *in = r->json;
    *step =
        (struct hm_record_step){.sequence = -1, .t = -1, .token = -1, .round = -1, .node = -1, .child = -1, .text = ""};
    if (!r->header.audit) return hm_place_fail(place, "kind", HM_FORMAT, "a row in audits only", "another header");
    TRY(hm_field_integer(place, in, "index", r->index + 1, HM_MOST_INTEGER, &step->index));
    bool has_token = hm_field_find(in, "token") != NULL;
    if (has_token) TRY(hm_field_integer(place, in, "token", 0, r->header.target.vocab - 1, &step->token));
    TRY(parse_common(r, place, step, has_token));
    r->index = step->index;
    r->rows++;
    return HM_OK;
}
