// The claims of a record (docs/log.md, "claims"), into the structs of log_reader.h.
#include "certify/log_reader_private.h"

#include <string.h>

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

// The three values and, where they are not constant, their levels.
static hm_status parse_level(const struct hm_place *place, const cJSON *in, bool has_level, struct hm_level *level)
{
    TRY(hm_field_ival(place, in, "klf", &level->klf));
    TRY(hm_field_ival(place, in, "klr", &level->klr));
    TRY(hm_field_ival(place, in, "tv", &level->tv));
    if (!has_level) return HM_OK;
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

static hm_status parse_certified(const struct hm_place *place, const cJSON *in, const char *key, enum hm_certified *out)
{
    int which;
    TRY(hm_field_choice(place, in, key, hm_certified_names, HM_CERT_VERDICTS, &which));
    *out = (enum hm_certified)which;
    return HM_OK;
}

static hm_status parse_three(const struct hm_place *place, const cJSON *in, enum hm_certified out[3])
{
    static const char *const names[] = {"klf", "klr", "tv"};
    const cJSON *certified = cJSON_GetObjectItemCaseSensitive(in, "certified");
    if (!cJSON_IsObject(certified)) return hm_place_mismatch(place, "certified", "an object or null", certified);
    const struct hm_place inside = hm_place_inside(place, "certified", -1);
    for (size_t i = 0; i < 3; i++) TRY(parse_certified(&inside, certified, names[i], &out[i]));
    return HM_OK;
}

static hm_status parse_verdicts(const struct hm_place *place, const cJSON *in, struct hm_record_claim *out)
{
    int which;
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(in, "certified")))
        return hm_field_string(place, in, "why", &out->why);
    TRY(parse_three(place, in, out->certified));
    TRY(hm_field_choice(place, in, "covered", hm_verdict_names, HM_VERDICTS, &which));
    out->covered = (enum hm_verdict)which;
    out->has_verdicts = true;
    return HM_OK;
}

static hm_status parse_universal(const struct hm_place *place, const cJSON *in, struct hm_record_claim *out)
{
    const cJSON *universal;
    TRY(hm_field_object(place, in, "universal", &universal));
    const struct hm_place inside = hm_place_inside(place, "universal", -1);
    TRY(hm_field_ival(&inside, universal, "klf", &out->universal.klf));
    TRY(hm_field_ival(&inside, universal, "klr", &out->universal.klr));
    out->has_universal = true;
    return HM_OK;
}

static hm_status parse_restricted(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_claim *out)
{
    const cJSON *object;
    struct hm_restricted *restricted = &out->restricted;
    int64_t k;
    TRY(hm_field_object(place, in, "restricted", &object));
    const struct hm_place inside = hm_place_inside(place, "restricted", -1);
    TRY(hm_field_integer(&inside, object, "k", 0, vocab, &k));
    restricted->k = (size_t)k;
    TRY(hm_field_ival(&inside, object, "mass", &restricted->mass));
    restricted->no_mass = hm_field_find(object, "kl") == NULL;
    if (!restricted->no_mass) TRY(hm_field_ival(&inside, object, "kl", &restricted->kl));
    bool nothing = restricted->no_mass || k == 0;
    restricted->vacuous = !nothing && hm_field_find(object, "level_f") == NULL;
    TRY(parse_level(&inside, object, !nothing && !restricted->vacuous, &restricted->level));
    out->has_restricted = true;
    return parse_three(&inside, object, restricted->certified);
}

static hm_status parse_laws(const struct hm_place *place, const cJSON *in, struct hm_record_claim *out)
{
    static const char *const names[] = {[HM_PROPOSAL_IID] = "iid", [HM_PROPOSAL_TOPK] = "topk"};
    const cJSON *laws, *law;
    TRY(hm_field_object(place, in, "laws", &laws));
    const struct hm_place inside = hm_place_inside(place, "laws", -1);
    for (int i = 0; i < HM_LOG_LAWS; i++) {
        if (!hm_field_find(laws, names[i])) continue;
        TRY(hm_field_object(&inside, laws, names[i], &law));
        const struct hm_place deeper = hm_place_inside(&inside, names[i], -1);
        TRY(hm_field_ival(&deeper, law, "accept", &out->law[i].accept));
        TRY(hm_field_ival(&deeper, law, "e", &out->law[i].e));
        out->has_law[i] = true;
    }
    return HM_OK;
}

static hm_status parse_divergences(const struct hm_place *place, const cJSON *in, const struct hm_record_header *h,
                                   struct hm_record_claim *out)
{
    const cJSON *divergences, *one;
    if (h->divergence_count == 0) return HM_OK;
    TRY(hm_field_object(place, in, "divergences", &divergences));
    const struct hm_place inside = hm_place_inside(place, "divergences", -1);
    for (size_t i = 0; i < h->divergence_count; i++) {
        struct hm_record_divergence *d = &out->divergence[i];
        TRY(hm_field_object(&inside, divergences, h->divergences[i], &one));
        const struct hm_place deeper = hm_place_inside(&inside, h->divergences[i], -1);
        TRY(hm_field_ival(&deeper, one, "star", &d->star));
        d->has_verdict = hm_field_find(one, "certified") != NULL;
        if (d->has_verdict) TRY(parse_certified(&deeper, one, "certified", &d->certified));
    }
    out->has_divergences = true;
    return HM_OK;
}

// What a claim may have beside its levels and verdicts.
static hm_status parse_optional(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_claim *out)
{
    static const char *const thresholds[] = {"eps", "delta"};
    int which;
    if (hm_field_find(in, "margin")) TRY(parse_margin(place, in, out));
    if (hm_field_find(in, "universal")) TRY(parse_universal(place, in, out));
    if (hm_field_find(in, "active")) {
        TRY(hm_field_choice(place, in, "active", thresholds, 2, &which));
        out->active = which ? HM_ACTIVE_DELTA : HM_ACTIVE_EPS;
    }
    if (hm_field_find(in, "restricted")) TRY(parse_restricted(place, in, vocab, out));
    if (hm_field_find(in, "laws")) TRY(parse_laws(place, in, out));
    out->has_radius = hm_field_find(in, "radius") != NULL;
    return out->has_radius ? hm_field_ival(place, in, "radius", &out->radius) : HM_OK;
}

static hm_status parse_edge(const struct hm_place *place, const cJSON *in, int64_t vocab, struct hm_record_claim *out)
{
    const cJSON *edge, *side;
    size_t count, i = 0;
    TRY(hm_field_array(place, in, "edge", 2, 2, &edge, &count));
    for (side = edge->child; side; side = side->next, i++)
        if (!cJSON_IsNull(side)) TRY(hm_log_parse_logit(place, "edge", side, vocab, &out->edge[i]));
    return HM_OK;
}

static hm_status parse_claim(const struct hm_log_reader *r, const struct hm_place *place, const cJSON *in, size_t index,
                             bool has_token, struct hm_record_claim *out)
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
    if (has_token) {
        TRY(hm_field_choice(place, in, "accepts", hm_verdict_names, HM_VERDICTS, &which));
        out->accepts = (enum hm_verdict)which;
        out->has_accepts = true;
    }
    if (out->m > 0) {
        out->has_distances = true;
        out->has_level = out->k >= 1 && out->k <= vocab - out->m;
        TRY(parse_level(place, in, out->has_level, &out->level));
        TRY(parse_divergences(place, in, h, out));
    }
    TRY(parse_optional(place, in, vocab, out));
    return parse_verdicts(place, in, out);
}

hm_status hm_log_parse_claims(struct hm_log_reader *r, const struct hm_place *place, struct hm_record_step *step,
                              bool has_token)
{
    const cJSON *array;
    struct hm_record_claim *claims;
    size_t want = r->header.claim_count * r->header.m_count, i = 0;
    TRY(hm_field_array(place, r->json, "claims", want, want, &array, &step->claim_count));
    TRY(hm_log_reuse(place, &r->claims, want, sizeof *claims, &claims));
    for (const cJSON *c = array->child; c; c = c->next, i++) {
        const struct hm_place inside = hm_place_inside(place, "claims", (long)i);
        TRY(parse_claim(r, &inside, c, i, has_token, &claims[i]));
    }
    step->claims = claims;
    return HM_OK;
}
