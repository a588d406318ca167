// The header record: see state.h. docs/log.md "Header".
#include "certify/check/state.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB_LIMIT = 1 << 20, M_LIMIT = 1000000, LAW_LIMIT = 1024, TOP_LIMIT = 4096, COLDEST = 100000 };

static void rational(struct ck *c, const cJSON *object, const char *key, mpq_t out)
{
    const char *text = ck_text(c, object, key);
    if (!c->out.failed && !ck_rational(text, out)) ck_unreadable(c, key, "expected a rational, found \"%.40s\"", text);
}

static void rules(struct ck *c, struct ck_header *h, const cJSON *line)
{
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
    h->standard = strcmp(acceptance, "standard") == 0;
    h->acceptance_made = !h->match && !h->standard;
    if (h->acceptance_made && !ck_rule_parse(acceptance, &h->acceptance))
        ck_unreadable(c, "acceptance", "expected match, standard or a rule, found \"%.40s\"", acceptance);
    h->nucleus = h->acceptance_made && h->acceptance.kind == CK_NUCLEUS;
    h->stochastic = h->standard || h->nucleus;
}

static void fidelity(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const cJSON *budget = cJSON_GetObjectItemCaseSensitive(line, "budget");
    if (!budget || cJSON_IsNull(budget)) return;
    budget = ck_object(c, line, "budget");
    const char *kind = ck_text(c, budget, "kind");
    h->budget_kind = strcmp(kind, "tv") == 0       ? CK_TV_BUDGET
                     : strcmp(kind, "regret") == 0 ? CK_REGRET_BUDGET
                                                   : CK_NO_BUDGET;
    if (h->budget_kind == CK_NO_BUDGET) ck_unreadable(c, "kind", "expected tv or regret, found \"%.40s\"", kind);
    rational(c, budget, "limit", h->limit);
}

static void proposal(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const char *word = ck_text(c, line, "proposal");
    h->iid = strcmp(word, "iid") == 0;
    h->no_proposal = strcmp(word, "none") == 0;
    if (!h->iid && !h->no_proposal && strcmp(word, "topk") != 0)
        ck_unreadable(c, "proposal", "expected topk, iid or none, found \"%.40s\"", word);
}

static void shard_patterns(struct ck *c, struct ck_header *h, const cJSON *line)
{
    static const char *const names[2] = {"target", "draft"};
    const cJSON *rows = ck_get(c, line, "rows");
    if (!rows || cJSON_IsNull(rows)) return;
    h->hashed = ck_bool(c, rows, "hashed");
    for (int i = 0; i < 2 && !c->out.failed; i++) {
        const cJSON *v = ck_get(c, rows, names[i]);
        if (cJSON_IsNull(v)) continue;
        if (!cJSON_IsString(v) || strlen(v->valuestring) >= sizeof h->pattern[i] || !ck_pattern_ok(v->valuestring))
            ck_unreadable(c, "rows", "expected a file name with one %%05d, found %s", ck_show(v));
        else
            strcpy(h->pattern[i], v->valuestring);
    }
}

// A number in words, or -1.
static int64_t count_of(const char *digits)
{
    size_t n = strlen(digits);
    if (n == 0 || n > 10 || strspn(digits, "0123456789") != n) return -1;
    int64_t count = strtoll(digits, NULL, 10);
    return count > 1 << 30 ? -1 : count;
}

static void selection(struct ck *c, struct ck_header *h, const cJSON *decoder)
{
    static const struct {
        const char *word;
        enum ck_first first;
    } words[] = {{"draft", CK_NEVER_FIRST},
                 {"root", CK_NEVER_FIRST},
                 {"root-draw", CK_ALWAYS_FIRST},
                 {"pearl", CK_ALWAYS_FIRST},
                 {"covering", CK_SOMETIMES_FIRST}};
    const char *said = ck_text(c, decoder, "selection");
    size_t i = 0, count = sizeof words / sizeof words[0];
    while (i < count && strcmp(words[i].word, said) != 0) i++;
    if (i == count)
        ck_unreadable(c, "selection", "expected draft, root, root-draw, pearl or covering, found \"%.40s\"", said);
    else
        h->first = words[i].first;
    h->by_draft = i == 0;
}

static void decoder(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const cJSON *d = ck_get(c, line, "decoder");
    h->audit = d && cJSON_IsNull(d);
    h->cap = -1;
    if (h->audit) return;
    d = ck_object(c, line, "decoder");
    h->budget = ck_int(c, d, "budget", 0);
    selection(c, h, d);
    const char *traversal = ck_text(c, d, "traversal");
    h->leaf_stop = strcmp(traversal, "leaf-stop") == 0;
    if (strncmp(traversal, "cap:", 4) == 0) h->cap = count_of(traversal + 4);
    if (strcmp(traversal, "exhaustive") != 0 && !h->leaf_stop && h->cap < 0)
        ck_unreadable(c, "traversal", "expected exhaustive, cap:N or leaf-stop, found \"%.40s\"", traversal);
    h->score = ck_has(d, "score");
    const char *score = h->score ? ck_text(c, d, "score") : "";
    bool all = strcmp(score, "frontier:all") == 0;
    if (h->score && !all && !(strncmp(score, "top:", 4) == 0 && count_of(score + 4) >= 0) &&
        !(strncmp(score, "frontier:", 9) == 0 && count_of(score + 9) >= 0))
        ck_unreadable(c, "score", "expected top:M or frontier:E, found \"%.40s\"", score);
}

static void models(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const cJSON *target = ck_object(c, line, "target"), *draft = ck_get(c, line, "draft");
    int64_t vocab = ck_int(c, target, "vocab", 1);
    if (vocab > VOCAB_LIMIT)
        ck_unreadable(c, "vocab", "expected at most %d, found %lld", VOCAB_LIMIT, (long long)vocab);
    h->has_draft = draft && !cJSON_IsNull(draft);
    if (h->has_draft && ck_int(c, draft, "vocab", 1) != vocab)
        ck_unreadable(c, "draft", "expected the vocabulary of the target; smaller ones are not checked");
    h->vocab = vocab;
    for (int i = 0; i < 2 && !c->out.failed; i++) { // asserted, but for a replay
        const cJSON *hash = cJSON_GetObjectItemCaseSensitive(i ? draft : target, "sha256");
        if (cJSON_IsString(hash)) snprintf(h->sha256[i], sizeof h->sha256[i], "%s", hash->valuestring);
    }
}

static void powers(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const cJSON *v;
    if (!ck_has(line, "divergences")) return;
    cJSON_ArrayForEach(v, ck_array(c, line, "divergences"))
    {
        if (h->powers_made == CK_POWERS) {
            ck_unreadable(c, "divergences", "expected at most %d", CK_POWERS);
            return;
        }
        struct ck_power *d = &h->powers[h->powers_made++];
        if (!ck_power_parse(cJSON_IsString(v) ? v->valuestring : "", d)) {
            ck_unreadable(c, "divergences", "expected a divergence, found %s", ck_show(v));
            return;
        }
        for (int i = 0; i + 1 < h->powers_made; i++)
            if (strcmp(h->powers[i].text, d->text) == 0)
                ck_unreadable(c, "divergences", "expected different ones, found %s twice", d->text);
    }
    h->power_count = h->powers_made;
}

static void laws(struct ck *c, struct ck_header *h, const cJSON *line)
{
    const cJSON *v;
    if (!ck_has(line, "laws")) return;
    cJSON_ArrayForEach(v, ck_array(c, line, "laws"))
    {
        const char *word = cJSON_IsString(v) ? v->valuestring : "";
        int which = strcmp(word, "topk") == 0;
        if (h->laws[which] || (!which && strcmp(word, "iid") != 0)) {
            ck_unreadable(c, "laws", "expected iid or topk, each once, found %s", ck_show(v));
            return;
        }
        h->laws[which] = true;
    }
    for (int i = 0; i < h->m_count; i++) // each proposal costs a pass over the row
        if ((h->laws[0] || h->laws[1]) && h->m[i] > LAW_LIMIT)
            ck_unreadable(c, "m", "expected at most %d where there are laws, found %lld", LAW_LIMIT,
                          (long long)h->m[i]);
}

// What an audit's header must say, as there is no decoding in it.
static void audit(struct ck *c, const struct ck_header *h)
{
    if (!h->audit || c->out.failed) return;
    if (!h->match) ck_refute(c, "acceptance", "expected match in an audit");
    if (!h->greedy) ck_refute(c, "temperature", "expected 0 in an audit");
    if (h->all_nodes) ck_refute(c, "nodes", "expected path in an audit");
    for (int i = 0; i < h->m_count; i++)
        if (h->m[i] == 0) ck_refute(c, "m", "expected integers in an audit, found tree");
}

// Which parts go together: docs/log.md "Header".
static void combinations(struct ck *c, const struct ck_header *h)
{
    if (c->out.failed) return;
    if (h->stochastic && h->greedy) ck_refute(c, "temperature", "expected more than 0 with standard and nucleus");
    if (h->stochastic && !h->same_temperature)
        ck_refute(c, "certify_temperature", "expected the temperature with standard and nucleus");
    if (h->stochastic && (h->top_k != 0 || mpq_cmp_ui(h->top_p, 1, 1) != 0))
        ck_refute(c, "processors", "expected none with standard and nucleus");
    if (h->iid && !h->stochastic) ck_refute(c, "proposal", "expected iid with standard and nucleus only");
    if (h->iid && !h->has_draft) ck_refute(c, "proposal", "expected iid with a draft only");
    if (!h->match && !h->by_draft) ck_refute(c, "selection", "expected draft where the acceptance is not match");
    if (!h->match && h->leaf_stop)
        ck_refute(c, "traversal", "expected exhaustive or cap:N where the acceptance is not match");
    if (!h->match && h->score) ck_refute(c, "score", "expected none where the acceptance is not match");
    if (h->first == CK_SOMETIMES_FIRST && !h->leaf_stop) ck_refute(c, "traversal", "expected leaf-stop with covering");
    if (h->budget_kind == CK_TV_BUDGET && !h->nucleus) ck_refute(c, "budget", "expected tv with nucleus only");
    if (h->budget_kind == CK_REGRET_BUDGET && (h->match || h->stochastic || !h->greedy))
        ck_refute(c, "budget", "expected regret with a deterministic rule at temperature 0 only");
}

void ck_header(struct ck *c, struct ck_header *h, const cJSON *line)
{
    mpq_t temperature, certify;
    mpq_inits(temperature, certify, h->top_p, h->inverse_claim, h->inverse_draw, h->limit, NULL);
    h->ready = true;
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(line, "hallmark");
    if (!cJSON_IsNumber(version) || version->valuedouble != 1 || strcmp(ck_text(c, line, "kind"), "header") != 0)
        ck_unreadable(c, "hallmark", "expected the header of a log of version 1, found %s", ck_show(version));
    rules(c, h, line);
    h->margin = ck_bool(c, line, "margin");
    h->universal = ck_has(line, "universal") && ck_bool(c, line, "universal");
    powers(c, h, line);
    laws(c, h, line);
    rational(c, line, "temperature", temperature);
    rational(c, line, "certify_temperature", certify);
    const cJSON *processors = ck_object(c, line, "processors");
    h->top_k = ck_int(c, processors, "top_k", 0);
    rational(c, processors, "top_p", h->top_p);
    if (!c->out.failed && (mpq_sgn(h->top_p) == 0 || mpq_cmp_ui(h->top_p, 1, 1) > 0))
        ck_unreadable(c, "top_p", "expected a rational in (0, 1]");
    if (!c->out.failed && mpq_cmp_ui(certify, 1, COLDEST) < 0)
        ck_unreadable(c, "certify_temperature", "expected 1/%d at least", COLDEST);
    if (!c->out.failed && mpq_sgn(temperature) != 0 && mpq_cmp_ui(temperature, 1, COLDEST) < 0)
        ck_unreadable(c, "temperature", "expected 0, or 1/%d at least", COLDEST);
    proposal(c, h, line);
    fidelity(c, h, line);
    const char *rng = ck_text(c, line, "rng"), *nodes = ck_text(c, line, "nodes");
    if (strcmp(rng, "philox4x32-10") != 0) ck_unreadable(c, "rng", "expected philox4x32-10, found \"%.40s\"", rng);
    h->top = ck_int(c, line, "top", 0);
    if (h->top > TOP_LIMIT) ck_unreadable(c, "top", "expected at most %d, found %lld", TOP_LIMIT, (long long)h->top);
    h->all_nodes = strcmp(nodes, "all") == 0;
    if (!h->all_nodes && strcmp(nodes, "path") != 0)
        ck_unreadable(c, "nodes", "expected path or all, found \"%.40s\"", nodes);
    shard_patterns(c, h, line);
    decoder(c, h, line);
    models(c, h, line);
    if (!c->out.failed) {
        h->greedy = mpq_sgn(temperature) == 0;
        mpq_inv(h->inverse_claim, certify);
        if (!h->greedy) mpq_inv(h->inverse_draw, temperature);
        h->same_temperature = mpq_equal(temperature, certify) != 0;
    }
    audit(c, h);
    combinations(c, h);
    mpq_clears(temperature, certify, NULL);
}

void ck_header_clear(struct ck_header *h)
{
    if (!h->ready) return;
    for (int i = 0; i < h->rules_made; i++) ck_rule_clear(&h->rules[i]);
    for (int i = 0; i < h->powers_made; i++) ck_power_clear(&h->powers[i]);
    if (h->acceptance_made) ck_rule_clear(&h->acceptance);
    mpq_clears(h->top_p, h->inverse_claim, h->inverse_draw, h->limit, NULL);
}
