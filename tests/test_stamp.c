// The stamper on a synthetic decode: every line read back and compared with docs/log.md, field by field, and the rows
// that the lines name.
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "tests/test_stamp_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const cJSON *at(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!value) fail_msg("no \"%s\"", key);
    return value;
}

static const char *string_at(const cJSON *object, const char *key)
{
    const cJSON *value = at(object, key);
    if (!cJSON_IsString(value)) fail_msg("\"%s\" is no string", key);
    return value->valuestring;
}

static double integer_at(const cJSON *object, const char *key)
{
    const cJSON *value = at(object, key);
    assert_true(cJSON_IsNumber(value) && value->valuedouble == floor(value->valuedouble));
    return value->valuedouble;
}

// The keys of an object, joined by spaces, are exactly these. "a?" may be absent.
static void check_keys(const cJSON *object, const char *keys)
{
    char key[64];
    int length;
    const cJSON *member = object->child;
    for (const char *k = keys; sscanf(k, "%60s%n", key, &length) == 1; k += length) {
        char *optional = strchr(key, '?');
        if (optional) *optional = 0;
        bool here = member && strcmp(member->string, key) == 0;
        if (here) member = member->next;
        else if (!optional) fail_msg("expected key \"%s\", found \"%s\"", key, member ? member->string : "nothing");
    }
    if (member) fail_msg("unexpected key \"%s\"", member->string);
}

static double real_of(const cJSON *value)
{
    char *end;
    assert_true(cJSON_IsString(value));
    double real = strtod(value->valuestring, &end);
    assert_int_equal(*end, 0);
    assert_false(isnan(real));
    if (isfinite(real)) assert_non_null(strstr(value->valuestring, "0x"));
    return real;
}

static void check_ival(const cJSON *object, const char *key)
{
    const cJSON *value = at(object, key);
    assert_int_equal(cJSON_GetArraySize(value), 2);
    assert_true(real_of(value->child) <= real_of(value->child->next));
}

static void check_ivals(const cJSON *object, const char *keys)
{
    char key[64];
    int length;
    for (const char *k = keys; sscanf(k, "%60s%n", key, &length) == 1; k += length) check_ival(object, key);
}

static bool is_one_of(const char *text, const char *words)
{
    char word[64];
    int length;
    for (const char *w = words; sscanf(w, "%60s%n", word, &length) == 1; w += length)
        if (strcmp(word, text) == 0) return true;
    return false;
}

// ---- row shards

// A row named by {"shard","index","sha256"} of a side, read straight from the file.
static void read_row(const char *side, const cJSON *reference, size_t vocab, float *row)
{
    char name[512], hex[HM_SHA256_HEX], shape[96];
    uint8_t digest[HM_SHA256_BYTES];
    struct hm_map map;
    struct hm_error err;
    uint64_t length;
    snprintf(name, sizeof name, "%s.%s-%05d.safetensors", log_path, side, (int)integer_at(reference, "shard"));
    assert_int_equal(hm_map_open(name, &map, &err), HM_OK);
    memcpy(&length, map.data, 8);
    size_t rows = (map.size - 8 - length) / (vocab * 4), index = (size_t)integer_at(reference, "index");
    snprintf(shape, sizeof shape, "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]}} ",
             rows, vocab, rows * vocab * 4);
    assert_memory_equal(map.data + 8, shape, strlen(shape));
    assert_true(index < rows);
    memcpy(row, map.data + 8 + length + index * vocab * 4, vocab * 4);
    hm_map_close(&map);
    assert_int_equal(hm_sha256(row, vocab * 4, digest, &err), HM_OK);
    hm_sha256_hex(digest, hex);
    assert_string_equal(hex, string_at(reference, "sha256"));
}

// ---- forms

// What of a log its later lines must agree with.
struct reading {
    const struct decode *decode;
    bool kept;
    double sequences, rounds, steps, nodes, t, verdicts[16][3][5];
    double rows[2];     // row references so far, per side
    const cJSON *round; // newest
};

static void check_entry(const cJSON *entry, const float *row, size_t vocab)
{
    assert_int_equal(cJSON_GetArraySize(entry), 2);
    size_t id = (size_t)entry->child->valuedouble;
    assert_true(id < vocab);
    assert_true(real_of(entry->child->next) == row[id]);
}

static int precedes(const float *row, size_t a, size_t b)
{
    return row[a] > row[b] || (row[a] == row[b] && a < b);
}

static void check_top(const cJSON *step, const float *row, size_t vocab)
{
    const cJSON *top = at(step, "top");
    assert_int_equal(cJSON_GetArraySize(top), vocab < 8 ? vocab : 8);
    for (const cJSON *entry = top->child; entry; entry = entry->next) {
        check_entry(entry, row, vocab);
        if (entry->next)
            assert_true(precedes(row, (size_t)entry->child->valuedouble, (size_t)entry->next->child->valuedouble));
    }
}

static const char *const verdict_names[] = {"no", "yes", "vacuous", "inapplicable", "undecided"};

static void check_certified(struct reading *r, const cJSON *claim, size_t number, bool node)
{
    static const char *const keys[] = {"klf", "klr", "tv"};
    const cJSON *certified = at(claim, "certified");
    assert_true(is_one_of(string_at(claim, "covered"), "yes no undecided"));
    check_keys(certified, "klf klr tv");
    for (int i = 0; i < 3; i++)
        for (int v = 0; v < 5; v++)
            if (strcmp(string_at(certified, keys[i]), verdict_names[v]) == 0) r->verdicts[number][i][v] += !node;
}

static void check_claim(struct reading *r, const cJSON *step, const cJSON *claim, size_t number, const float *row,
                        bool node)
{
    const struct decode *d = r->decode;
    uint32_t asked = d->m[number % d->m_count];
    double m = integer_at(claim, "m"), k = integer_at(claim, "k");
    bool drafted = !at(step, "draft_row")->child || !cJSON_GetObjectItemCaseSensitive(at(step, "draft_row"), "why");
    char keys[256];
    struct hm_rule rule;
    assert_int_equal(hm_rule_parse(d->rules[number / d->m_count], &rule, NULL), HM_OK);
    char *text = hm_rule_text(&rule);
    assert_string_equal(string_at(claim, "rule"), text);
    free(text);
    hm_rule_clear(&rule);
    assert_string_equal(string_at(claim, "m_from"), asked == HM_M_TREE ? "tree" : "fixed");
    if (asked != HM_M_TREE) assert_true(m == asked);
    bool levels = m > 0 && k >= 1 && k + m <= (double)d->vocab;
    snprintf(keys, sizeof keys, "rule m m_from k %s edge %s %s %s %s %s %s %s %s", node ? "" : "accepts",
             levels ? "level_f tied_f level_r tied_r" : "", m > 0 ? "klf klr tv" : "",
             levels && d->margin ? "margin" : "", levels && d->universal ? "universal?" : "", node || m == 0 ? "" : "radius? active?",
             m > 0 && drafted ? "covered certified restricted?" : "certified why",
             m > 0 && d->divergences[0] ? "divergences" : "", m > 0 && drafted && d->laws ? "laws" : "");
    check_keys(claim, keys);
    if (!node) assert_true(is_one_of(string_at(claim, "accepts"), "yes no undecided"));
    const cJSON *edge = at(claim, "edge");
    assert_int_equal(cJSON_GetArraySize(edge), 2);
    for (const cJSON *end = edge->child; end; end = end->next)
        if (!cJSON_IsNull(end)) check_entry(end, row, d->vocab);
    if (m > 0) check_ivals(claim, "klf klr tv");
    if (levels) check_ivals(claim, "level_f level_r");
    if (levels && d->margin) check_keys(at(claim, "margin"), "gap klf klr tv");
    if (levels && d->margin) check_ivals(at(claim, "margin"), "gap klf klr tv");
    if (m > 0 && d->divergences[0]) check_keys(at(claim, "divergences"), "renyi:1/2 chi2 spread");
    for (const cJSON *one = m > 0 && d->divergences[0] ? at(claim, "divergences")->child : NULL; one; one = one->next) {
        check_keys(one, "star certified");
        check_ivals(one, "star");
        if (drafted) assert_true(is_one_of(string_at(one, "certified"), "no yes vacuous inapplicable undecided"));
        else assert_true(cJSON_IsNull(at(one, "certified")));
    }
    const cJSON *laws = cJSON_GetObjectItemCaseSensitive(claim, "laws");
    if (laws) check_keys(laws, "iid topk");
    for (const cJSON *law = laws ? laws->child : NULL; law; law = law->next) {
        check_keys(law, "accept e");
        check_ivals(law, "accept e");
    }
    if (m > 0 && drafted) check_certified(r, claim, number, node);
    else assert_true(cJSON_IsNull(at(claim, "certified")));
    if (m == 0 && !node && integer_at(step, "t") == 0) assert_string_equal(string_at(claim, "why"), "prefill");
    else if (m == 0) assert_string_equal(string_at(claim, "why"), "no children");
}

static void check_rows(struct reading *r, const cJSON *step, float *row)
{
    const char *const keys[] = {"row", "draft_row"}, *const sides[] = {"target", "draft"};
    float draft[FIXTURE_VOCAB];
    for (int side = 0; side < 2; side++) {
        const cJSON *reference = at(step, keys[side]);
        if (!r->kept || cJSON_GetObjectItemCaseSensitive(reference, "why")) {
            check_keys(reference, "why");
            assert_true(is_one_of(string_at(reference, "why"), "prefill leaf") ||
                        strcmp(string_at(reference, "why"), "not kept") == 0);
            continue;
        }
        check_keys(reference, "shard index sha256");
        read_row(sides[side], reference, r->decode->vocab, side ? draft : row);
        r->rows[side]++;
    }
}

static void check_step(struct reading *r, const cJSON *line, bool node)
{
    const struct decode *d = r->decode;
    float row[FIXTURE_VOCAB];
    bool drafted = cJSON_GetObjectItemCaseSensitive(line, "kl_pq") != NULL;
    char keys[256];
    size_t number = 0, rules = 0;
    bool relaxed = d->acceptance && !node;
    bool divergences = drafted && d->divergences[0];
    snprintf(keys, sizeof keys, "%s row draft_row top support lse entropy %s %s %s %s %s claims %s chain",
             node ? "kind sequence round node depth" : "kind sequence t round token source node depth child",
             drafted ? "kl_pq kl_qp tv" : "", relaxed ? "regret" : "", drafted && d->laws ? "standard_accept" : "",
             divergences ? "divergences" : "", relaxed && d->temperature ? "e ratio" : "", node ? "" : "finish? text");
    check_keys(line, keys);
    assert_true(integer_at(line, "sequence") == r->sequences - 1);
    check_rows(r, line, row);
    check_ivals(line, "lse entropy");
    if (drafted) check_ivals(line, "kl_pq kl_qp tv");
    if (r->kept) check_top(line, row, d->vocab);
    assert_true(integer_at(line, "support") >= 1 && integer_at(line, "support") <= (double)d->vocab);
    while (rules < 4 && d->rules[rules]) rules++;
    assert_int_equal(cJSON_GetArraySize(at(line, "claims")), rules * d->m_count);
    if (r->kept)
        for (const cJSON *claim = at(line, "claims")->child; claim; claim = claim->next)
            check_claim(r, line, claim, number++, row, node);
    if (node) {
        r->nodes++;
        return;
    }
    assert_true(integer_at(line, "t") == r->t++);
    if (divergences) check_ivals(at(line, "divergences"), "renyi:1/2 chi2 spread");
    if (relaxed) check_ivals(line, "regret");
    if (relaxed && d->temperature) check_ivals(line, "e ratio");
    if (integer_at(line, "t") == 0) {
        assert_string_equal(string_at(line, "source"), "prefill");
        assert_true(cJSON_IsNull(at(line, "round")) && cJSON_IsNull(at(line, "child")));
    } else if (strcmp(string_at(line, "source"), "accepted") == 0) {
        const cJSON *token = cJSON_GetArrayItem(at(r->round, "token"), (int)integer_at(line, "child"));
        assert_true(token->valuedouble == integer_at(line, "token"));
    } else {
        assert_string_equal(string_at(line, "source"), "continuation");
        assert_true(cJSON_IsNull(at(line, "child")));
    }
    const cJSON *finish = cJSON_GetObjectItemCaseSensitive(line, "finish");
    bool last = r->t == (double)d->tokens || integer_at(line, "token") == 0;
    assert_int_equal(finish != NULL, last);
    if (last) assert_string_equal(finish->valuestring, integer_at(line, "token") == 0 ? "eos" : "length");
    r->steps++;
}

static void check_round(struct reading *r, const cJSON *line)
{
    check_keys(line, "kind sequence round t parent token logq pool expected_accept charges run chain");
    int nodes = cJSON_GetArraySize(at(line, "parent"));
    assert_int_equal(cJSON_GetArraySize(at(line, "token")), nodes);
    assert_int_equal(cJSON_GetArraySize(at(line, "logq")), nodes);
    assert_true(at(line, "parent")->child->valuedouble == -1);
    assert_string_equal(at(line, "logq")->child->valuestring, "0x0p+0");
    for (const cJSON *logq = at(line, "logq")->child; logq; logq = logq->next) assert_true(real_of(logq) <= 0);
    if (r->decode->temperature && !r->decode->acceptance) assert_true(cJSON_IsNull(at(line, "expected_accept")));
    else check_ival(line, "expected_accept");
    assert_int_equal(cJSON_GetArraySize(at(line, "charges")), 0);
    assert_true(at(at(line, "run"), "draft_seconds")->valuedouble == 0.25);
    assert_true(at(at(line, "run"), "verify_seconds")->valuedouble == 1e-6);
    assert_true(integer_at(line, "t") == r->t);
    r->rounds++;
}

static void check_header(const struct reading *r, const cJSON *line)
{
    const struct decode *d = r->decode;
    check_keys(line,
               "hallmark kind claims m margin universal divergences laws acceptance temperature certify_temperature processors proposal budget "
               "rng top nodes target draft tokenizer_sha256 decoder numerics rows run chain");
    assert_true(integer_at(line, "hallmark") == 1);
    assert_string_equal(string_at(line, "rng"), "philox4x32-10");
    assert_string_equal(string_at(line, "temperature"), d->temperature ? "4/5" : "0");
    assert_string_equal(string_at(line, "certify_temperature"), d->certify_temperature ? "3/2" : "1");
    assert_string_equal(string_at(line, "acceptance"), d->acceptance ? "additive:3/10" : "match");
    assert_string_equal(string_at(at(line, "processors"), "top_p"), d->top_p ? "9/10" : "1");
    assert_true(integer_at(at(line, "processors"), "top_k") == (double)d->top_k);
    assert_string_equal(at(line, "m")->child->valuestring, "tree");
    assert_true(cJSON_IsNull(at(line, "budget")));
    check_keys(at(line, "target"), "name sha256 vocab architecture");
    check_keys(at(line, "draft"), "name sha256 vocab architecture");
    check_keys(at(line, "decoder"), "drafter width depth budget selection traversal");
    check_keys(at(line, "numerics"), "weights accumulate backend row_source");
    check_keys(at(line, "run"), "date host version");
    if (!r->kept) {
        assert_true(cJSON_IsNull(at(line, "rows")));
        return;
    }
    check_keys(at(line, "rows"), "target draft hashed");
    assert_string_equal(string_at(at(line, "rows"), "target"), "run.jsonl.target-%05d.safetensors");
    assert_string_equal(string_at(at(line, "rows"), "draft"), "run.jsonl.draft-%05d.safetensors");
}

static void check_sequence(struct reading *r, const cJSON *line)
{
    check_keys(line, "kind sequence id category turn prompt seed stop chain");
    assert_true(integer_at(line, "sequence") == r->sequences++);
    assert_string_equal(string_at(line, "id"), "p\xEF\xBF\xBD"
                                               "7");
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)(r->decode->seed * 0x9E3779B97F4A7C15u));
    assert_string_equal(string_at(line, "seed"), seed);
    check_keys(at(line, "stop"), "eos max_tokens strings");
    assert_string_equal(at(at(line, "stop"), "strings")->child->valuestring, "\n\n");
    assert_int_equal(cJSON_GetArraySize(at(line, "prompt")), 3);
    r->t = 0;
}

static void check_end(const struct reading *r, const cJSON *line)
{
    static const char *const keys[] = {"klf", "klr", "tv"};
    size_t number = 0;
    check_keys(line, "kind sequences rounds steps nodes verdicts undecided run chain");
    assert_true(integer_at(line, "sequences") == r->sequences && r->sequences == (double)r->decode->sequences);
    assert_true(integer_at(line, "rounds") == r->rounds && r->rounds > 0);
    assert_true(integer_at(line, "steps") == r->steps);
    assert_true(integer_at(line, "nodes") == r->nodes);
    for (const cJSON *entry = at(line, "verdicts")->child; entry; entry = entry->next, number++) {
        check_keys(entry, "rule m klf klr tv");
        for (int i = 0; i < 3 && r->kept; i++)
            for (int v = 0; v < 5; v++)
                assert_true(integer_at(at(entry, keys[i]), verdict_names[v]) == r->verdicts[number][i][v]);
    }
}

static void check_log(const struct decode *decode, bool kept)
{
    struct log_text text = log_read(log_path);
    struct reading r = {.decode = decode, .kept = kept};
    cJSON *round = NULL;
    for (size_t i = 0; i < text.lines; i++) {
        cJSON *line;
        struct hm_error err;
        assert_int_equal(hm_json_parse("line", text.start[i], strlen(text.start[i]), &line, &err), HM_OK);
        const char *kind = string_at(line, "kind");
        if (strcmp(kind, "round") == 0) {
            cJSON_Delete(round);
            r.round = round = line;
        }
        if (i == 0) check_header(&r, line);
        else if (strcmp(kind, "sequence") == 0) check_sequence(&r, line);
        else if (strcmp(kind, "round") == 0) check_round(&r, line);
        else if (strcmp(kind, "step") == 0) check_step(&r, line, false);
        else if (strcmp(kind, "node") == 0) check_step(&r, line, true);
        else check_end(&r, line);
        if (i + 1 == text.lines) assert_string_equal(kind, "end");
        if (line != round) cJSON_Delete(line);
    }
    cJSON_Delete(round);
    log_free(&text);
}

static void lines_have_the_fields_of_the_page(void **unused)
{
    (void)unused;
    log_run(&decode_plain, &(struct hm_stamp_options){.path = log_path, .keep_rows = true, .threads = 2}, NULL);
    check_log(&decode_plain, true);
    log_run(&decode_rich,
            &(struct hm_stamp_options){
                .path = log_path, .keep_rows = true, .threads = 3, .shard_bytes = 4096 + 17 * 4 * 10},
            NULL);
    check_log(&decode_rich, true);
    log_run(&decode_rich, &(struct hm_stamp_options){.path = log_path}, NULL);
    check_log(&decode_rich, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_the_fields_of_the_page),
    };
    return cmocka_run_group_tests(tests, log_set_up, log_tear_down);
}
