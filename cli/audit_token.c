// Questions about one token: see audit_token.h.
#include "cli/audit_token.h"

#include "cli/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

// Is D < D*?  Enclosures that overlap leave it open.
static enum hm_certified below(struct hm_ival distance, struct hm_ival level)
{
    if (distance.hi < level.lo) return HM_CERT_YES;
    if (distance.lo >= level.hi) return HM_CERT_NO;
    return HM_CERT_UNDECIDED;
}

static void judge(const struct hm_known_distance *d, size_t vocab, size_t m, struct hm_audit_claim *c)
{
    const struct hm_ival distance[3] = {d->kl_pq, d->kl_qp, d->tv};
    const struct hm_ival level[3] = {c->level.klf, c->level.klr, c->level.tv};
    bool vacuous = vocab && c->k.least + m > vocab, nothing = c->k.most == 0;
    c->judged = true;
    for (int i = 0; i < 3; i++)
        c->certified[i] = nothing ? HM_CERT_NO : vacuous ? HM_CERT_VACUOUS : below(distance[i], level[i]);
}

// What would have decided an open answer, as far as one can tell.
static void note_missing(const struct hm_evidence *row, const struct hm_audit_claim *c, const struct hm_known_distance *d,
                         struct hm_audit_answers *out)
{
    bool truncated = !row->logits && (!row->vocab || row->count < row->vocab);
    bool open = (c->asked && c->accepts == HM_UNDECIDED) || c->k.least != c->k.most;
    if (open && truncated) out->missing[row->ranked ? HM_MISSING_MORE_TOP : HM_MISSING_TOP] = true;
    if (open && truncated && !row->vocab) out->missing[HM_MISSING_VOCABULARY] = true;
    if (!c->judged) return;
    for (int i = 0; i < 3; i++)
        if (c->certified[i] == HM_CERT_UNDECIDED && (i == 0 ? d->kl_pq : i == 1 ? d->kl_qp : d->tv).hi == INFINITY)
            out->missing[HM_MISSING_FLOOR] = true;
}

static bool any_certified(const struct hm_audit_claim *c)
{
    return c->certified[0] == HM_CERT_YES || c->certified[1] == HM_CERT_YES || c->certified[2] == HM_CERT_YES;
}

static uint64_t open_answers(const struct hm_audit_claim *c)
{
    uint64_t open = (c->asked && c->accepts == HM_UNDECIDED) || c->k.least != c->k.most;
    for (int i = 0; c->judged && !any_certified(c) && i < 3; i++) open += c->certified[i] == HM_CERT_UNDECIDED;
    return open;
}

static void ask_rule(const struct hm_audit_options *o, size_t r, const struct hm_known *p, const struct hm_evidence *row,
                     const struct hm_known *q, struct hm_audit_claim *claims, struct hm_audit_answers *out)
{
    const struct hm_rule *rule = &o->rule[r];
    struct hm_audit_claim first = {.asked = out->asked, .k = hm_known_count(p, rule)};
    if (first.asked) first.accepts = hm_known_accepts(p, rule, row->emitted);
    if (first.asked) first.radius = hm_known_radius(p, rule, row->emitted);
    for (size_t j = 0; j < o->m_count; j++) {
        struct hm_audit_claim *c = &claims[r * o->m_count + j];
        *c = first;
        c->level = hm_known_level(p, rule, o->m[j]);
        if (q) judge(&out->distance, row->vocab, o->m[j], c);
        out->undecided += open_answers(c);
        note_missing(row, c, &out->distance, out);
    }
}

hm_status hm_audit_ask(const struct hm_audit_options *o, const struct hm_source_token *token,
                       const struct hm_evidence *draft, struct hm_audit_claim *claims, struct hm_audit_answers *out,
                       struct hm_error *err)
{
    struct hm_known *p = NULL, *q = NULL;
    const struct hm_evidence *row = &token->row;
    *out = (struct hm_audit_answers){.asked = token->token >= 0 || token->text};
    hm_status rc = hm_known_open(row, &o->temperature, &p, err);
    if (!rc && draft) rc = hm_known_open(draft, &o->temperature, &q, err);
    if (rc) goto out;
    out->seen = hm_known_seen(p);
    out->unseen = hm_known_unseen(p);
    out->entropy = hm_known_entropy(p);
    if (out->asked) out->surprise = hm_known_surprise(p, row->emitted);
    if (out->asked) out->regret = hm_known_regret(p, row->emitted);
    if (q) out->distance = hm_known_distance(p, q);
    for (size_t r = 0; r < o->rule_count; r++) ask_rule(o, r, p, row, q, claims, out);
out:
    hm_known_close(p);
    hm_known_close(q);
    return rc;
}

// ---- as JSON

static void add_count(cJSON *array, size_t n)
{
    cJSON_AddItemToArray(array, n == SIZE_MAX ? cJSON_CreateString("inf") : cJSON_CreateNumber((double)n));
}

static cJSON *claim_json(const struct hm_audit_options *o, size_t i, const struct hm_audit_claim *c)
{
    static const char *const keys[] = {"klf", "klr", "tv"};
    char *rule = hm_rule_text(&o->rule[i / o->m_count]);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "rule", rule ? rule : "");
    cJSON_AddNumberToObject(object, "m", o->m[i % o->m_count]);
    if (c->asked) cJSON_AddStringToObject(object, "accepts", hm_verdict_names[c->accepts]);
    cJSON *k = cJSON_AddArrayToObject(object, "k");
    add_count(k, c->k.least);
    add_count(k, c->k.most);
    if (c->asked) hm_json_add_ival(object, "radius", c->radius);
    hm_json_add_ival(object, keys[0], c->level.klf);
    hm_json_add_ival(object, keys[1], c->level.klr);
    hm_json_add_ival(object, keys[2], c->level.tv);
    cJSON *certified = c->judged ? cJSON_AddObjectToObject(object, "certified") : NULL;
    for (int j = 0; certified && j < 3; j++) cJSON_AddStringToObject(certified, keys[j], hm_certified_names[c->certified[j]]);
    free(rule);
    return object;
}

// The token's text; what is no UTF-8 (a token may be a part of a character) becomes U+FFFD.
static void add_text(cJSON *object, const struct hm_source_token *token)
{
    enum { LONGEST = 400, WORST = 3 };
    char text[LONGEST * WORST + 1];
    size_t kept = 0;
    utf8proc_int32_t c;
    if (!token->text) return;
    for (size_t at = 0, used; at < token->text_size && at < LONGEST; at += used) {
        utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)token->text + at, (utf8proc_ssize_t)(token->text_size - at), &c);
        bool good = n > 0 && c != 0;
        used = n > 0 ? (size_t)n : 1;
        memcpy(text + kept, good ? token->text + at : "\xEF\xBF\xBD", good ? used : 3);
        kept += good ? used : 3;
    }
    text[kept] = 0;
    cJSON_AddStringToObject(object, "text", text);
}

cJSON *hm_audit_token_json(const struct hm_audit_options *o, size_t input, const struct hm_source_token *token,
                           const struct hm_evidence *draft, const struct hm_audit_claim *claims,
                           const struct hm_audit_answers *answers)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", "token");
    cJSON_AddNumberToObject(object, "input", (double)input);
    cJSON_AddNumberToObject(object, "sequence", token->sequence);
    cJSON_AddNumberToObject(object, "t", token->t);
    if (token->token >= 0) cJSON_AddNumberToObject(object, "token", token->token);
    else cJSON_AddNullToObject(object, "token");
    add_text(object, token);
    cJSON_AddNumberToObject(object, "known", (double)(token->row.logits ? token->row.vocab : token->row.count));
    hm_json_add_ival(object, "seen", answers->seen);
    hm_json_add_ival(object, "unseen", answers->unseen);
    hm_json_add_ival(object, "entropy", answers->entropy);
    if (answers->asked) hm_json_add_ival(object, "surprise", answers->surprise);
    if (answers->asked) hm_json_add_ival(object, "regret", answers->regret);
    if (draft) {
        hm_json_add_ival(object, "kl_pq", answers->distance.kl_pq);
        hm_json_add_ival(object, "kl_qp", answers->distance.kl_qp);
        hm_json_add_ival(object, "tv", answers->distance.tv);
    }
    cJSON *list = cJSON_AddArrayToObject(object, "claims");
    for (size_t i = 0; i < o->rule_count * o->m_count; i++) cJSON_AddItemToArray(list, claim_json(o, i, &claims[i]));
    return object;
}
