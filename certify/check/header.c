// The header record: see state.h. docs/log.md "Header".
#include "certify/check/state.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB_LIMIT = 1 << 20, M_LIMIT = 1000000, TOP_LIMIT = 4096 };

static void rational(struct ck *c, const cJSON *object, const char *key, mpq_t out)
{
    const char *text = ck_text(c, object, key);
    if (!c->failed && !ck_rational(text, out)) ck_unreadable(c, key, "expected a rational, found \"%.40s\"", text);
}

static void rules(struct ck *c, const cJSON *line)
{
    struct ck_header *h = &c->header;
    const cJSON *v;
    cJSON_ArrayForEach(v, ck_array(c, line, "claims"))
    {
        if (h->rules_made == CK_RULES) {
            ck_unreadable(c, "claims", "expected at most %d rules", CK_RULES);
            return;
        }
        if (!ck_rule_parse(cJSON_IsString(v) ? v->valuestring : "", &h->rules[h->rules_made++])) {
            ck_unreadable(c, "claims", "expected a rule, found %s", ck_show(v));
            return;
        }
    }
    h->rule_count = h->rules_made;
    cJSON_ArrayForEach(v, ck_array(c, line, "m"))
    {
        if (h->m_count == CK_MS) {
            ck_unreadable(c, "m", "expected at most %d values", CK_MS);
            return;
        }
        bool tree = cJSON_IsString(v) && strcmp(v->valuestring, "tree") == 0;
        int64_t m = tree ? 0 : ck_integer(c, v, "m", 1);
        if (m > M_LIMIT) ck_unreadable(c, "m", "expected at most %d, found %lld", M_LIMIT, (long long)m);
        h->m[h->m_count++] = m;
    }
    const char *acceptance = ck_text(c, line, "acceptance");
    h->match = strcmp(acceptance, "match") == 0;
    h->acceptance_made = !h->match;
    if (!h->match && !ck_rule_parse(acceptance, &h->acceptance))
        ck_unreadable(c, "acceptance", "expected match or a rule, found \"%.40s\"", acceptance);
}

static void shard_patterns(struct ck *c, const cJSON *line)
{
    static const char *const names[2] = {"target", "draft"};
    const cJSON *rows = ck_get(c, line, "rows");
    if (!rows || cJSON_IsNull(rows)) return;
    c->header.hashed = ck_bool(c, rows, "hashed");
    for (int i = 0; i < 2 && !c->failed; i++) {
        const cJSON *v = ck_get(c, rows, names[i]);
        if (cJSON_IsNull(v)) continue;
        if (!cJSON_IsString(v) || strlen(v->valuestring) >= sizeof c->header.pattern[i] ||
            !ck_pattern_ok(v->valuestring))
            ck_unreadable(c, "rows", "expected a file name with one %%05d, found %s", ck_show(v));
        else
            strcpy(c->header.pattern[i], v->valuestring);
    }
}

static void decoder(struct ck *c, const cJSON *line)
{
    const cJSON *d = ck_object(c, line, "decoder");
    c->header.budget = ck_int(c, d, "budget", 0);
    const char *traversal = ck_text(c, d, "traversal");
    char *end = NULL;
    c->header.cap = -1;
    if (strcmp(traversal, "exhaustive") == 0) return;
    if (strncmp(traversal, "cap:", 4) == 0 && strspn(traversal + 4, "0123456789") == strlen(traversal + 4))
        c->header.cap = strtoll(traversal + 4, &end, 10);
    if (!end || *end || end == traversal + 4 || c->header.cap > 1 << 30)
        ck_unreadable(c, "traversal", "expected exhaustive or cap:N, found \"%.40s\"", traversal);
}

static void models(struct ck *c, const cJSON *line)
{
    const cJSON *target = ck_object(c, line, "target"), *draft = ck_get(c, line, "draft");
    int64_t vocab = ck_int(c, target, "vocab", 1);
    if (vocab > VOCAB_LIMIT)
        ck_unreadable(c, "vocab", "expected at most %d, found %lld", VOCAB_LIMIT, (long long)vocab);
    c->header.has_draft = draft && !cJSON_IsNull(draft);
    if (c->header.has_draft && ck_int(c, draft, "vocab", 1) != vocab)
        ck_unreadable(c, "draft", "expected the vocabulary of the target; smaller ones are not checked");
    if (!c->failed && !ck_math_init(&c->math, (size_t)vocab)) ck_unreadable(c, "vocab", "out of memory");
}

void ck_header(struct ck *c, const cJSON *line)
{
    struct ck_header *h = &c->header;
    mpq_t temperature, certify;
    mpq_inits(temperature, certify, h->top_p, NULL);
    h->ready = true;
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(line, "hallmark");
    if (!cJSON_IsNumber(version) || version->valuedouble != 1 || strcmp(ck_text(c, line, "kind"), "header") != 0)
        ck_unreadable(c, "hallmark", "expected the header of a log of version 1, found %s", ck_show(version));
    rules(c, line);
    h->margin = ck_bool(c, line, "margin");
    rational(c, line, "temperature", temperature);
    rational(c, line, "certify_temperature", certify);
    const cJSON *processors = ck_object(c, line, "processors");
    h->top_k = ck_int(c, processors, "top_k", 0);
    rational(c, processors, "top_p", h->top_p);
    if (!c->failed && (mpq_sgn(h->top_p) == 0 || mpq_cmp_ui(h->top_p, 1, 1) > 0))
        ck_unreadable(c, "top_p", "expected a rational in (0, 1]");
    if (!c->failed && mpq_sgn(certify) == 0) ck_unreadable(c, "certify_temperature", "expected more than 0");
    const cJSON *budget = ck_get(c, line, "budget");
    if (budget && !cJSON_IsNull(budget)) ck_unreadable(c, "budget", "expected null, found %s", ck_show(budget));
    const char *rng = ck_text(c, line, "rng"), *nodes = ck_text(c, line, "nodes");
    if (strcmp(rng, "philox4x32-10") != 0) ck_unreadable(c, "rng", "expected philox4x32-10, found \"%.40s\"", rng);
    h->top = ck_int(c, line, "top", 0);
    if (h->top > TOP_LIMIT) ck_unreadable(c, "top", "expected at most %d, found %lld", TOP_LIMIT, (long long)h->top);
    h->all_nodes = strcmp(nodes, "all") == 0;
    if (!h->all_nodes && strcmp(nodes, "path") != 0)
        ck_unreadable(c, "nodes", "expected path or all, found \"%.40s\"", nodes);
    shard_patterns(c, line);
    decoder(c, line);
    models(c, line);
    if (!c->failed) {
        h->greedy = mpq_sgn(temperature) == 0;
        mpq_inv(c->math.inverse_claim, certify);
        if (!h->greedy) mpq_inv(c->math.inverse_draw, temperature);
        c->math.same_temperature = mpq_equal(temperature, certify) != 0;
    }
    mpq_clears(temperature, certify, NULL);
}

void ck_header_clear(struct ck *c)
{
    struct ck_header *h = &c->header;
    if (!h->ready) return;
    for (int i = 0; i < h->rules_made; i++) ck_rule_clear(&h->rules[i]);
    if (h->acceptance_made) ck_rule_clear(&h->acceptance);
    mpq_clear(h->top_p);
}
