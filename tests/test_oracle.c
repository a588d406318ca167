// Every figure of tests/data/oracle/vectors.json: values of docs/theory.md computed from its definitions with mpmath,
// printed with 40 significant digits. A printed value v stands for a number within 10^-39 |v| of it; enclosures must
// meet that, and be narrow.
#include "tests/oracle_support.h"

static void check_certified(const char *what, enum hm_certified found, int expected, int vacuous, int infinite)
{
    // The oracle calls a vacuous claim certified where the divergence is finite.
    enum hm_certified right = vacuous ? HM_CERT_VACUOUS : expected ? HM_CERT_YES : HM_CERT_NO;
    if (vacuous && !infinite) assert_true(expected);
    if (found != right) fail_msg("%s, certified %s: %d against %d", current, what, (int)found, (int)right);
}

static void check_membership(const struct hm_rule *rule, struct hm_row *row, const cJSON *expect)
{
    struct hm_error err;
    size_t k, accepted = 0;
    enum hm_verdict decided, in;
    assert_int_equal(hm_rule_count(rule, row, &k, &decided, &err), HM_OK);
    assert_int_equal(decided, HM_YES);
    if ((int)k != want(expect, "k")->valueint) fail_msg("%s: k = %zu against %d", current, k, want(expect, "k")->valueint);
    for (const cJSON *id = want(expect, "accepted")->child; id; id = id->next, accepted++) {
        assert_int_equal(hm_rule_accepts(rule, row, id->valueint, &in, &err), HM_OK);
        if (in != HM_YES) fail_msg("%s: token %d is not accepted", current, id->valueint);
        assert_true(hm_row_rank(row, id->valueint) < k);
    }
    assert_int_equal(accepted, k);
    for (size_t r = k; r < hm_row_vocab(row); r++) {
        assert_int_equal(hm_rule_accepts(rule, row, hm_row_token(row, r), &in, &err), HM_OK);
        if (in != HM_NO) fail_msg("%s: rank %zu is accepted", current, r);
    }
}

static void check_level(const struct hm_claim *claim, const cJSON *expect)
{
    compare("klf", claim->level.klf, want(expect, "klf"));
    compare("klr", claim->level.klr, want(expect, "klr"));
    compare("tv", claim->level.tv, want(expect, "tv"));
    assert_int_equal(claim->vacuous, strcmp(want(expect, "status")->valuestring, "vacuous") == 0);
    assert_int_equal(claim->nothing, strcmp(want(expect, "status")->valuestring, "nothing accepted") == 0);
    assert_int_equal(claim->has_margin, !claim->vacuous && !claim->nothing);
    if (!claim->has_margin) return;
    compare("level", claim->level.level_f, want(expect, "level"));
    compare("level_reverse", exponential(claim->level.level_r), want(expect, "level_reverse"));
    compare("gap", claim->margin.gap, want(expect, "gap"));
    compare("margin_klf", claim->margin.klf, want(expect, "margin_klf"));
    compare("margin_klr", claim->margin.klr, want(expect, "margin_klr"));
    compare("margin_tv", claim->margin.tv, want(expect, "margin_tv"));
}

// a - b for finite numbers.
static struct hm_ival difference(struct hm_ival a, struct hm_ival b)
{
    return (struct hm_ival){nextafter(a.lo - b.hi, -INFINITY), nextafter(a.hi - b.lo, INFINITY)};
}

// theory.md §4. The oracle's KLr* and TV* are those of p_D, without -ln p(D) and without the mass outside D.
static void check_restricted(const struct hm_claim *claim, const cJSON *expect)
{
    const struct hm_restricted *found = &claim->restricted;
    const char *status = want(expect, "status")->valuestring;
    int vacuous = strcmp(status, "vacuous") == 0;
    assert_int_equal(found->no_mass, strncmp(status, "no mass", 7) == 0);
    if (found->no_mass) return;
    assert_int_equal(found->k == 0, strncmp(status, "no accepted", 11) == 0);
    if (found->k == 0) {
        for (int i = 0; i < 3; i++) assert_int_equal(found->certified[i], HM_CERT_NO);
        return;
    }
    compare("restricted kl", found->kl, want(expect, "kl_pq"));
    compare("restricted klf", found->level.klf, want(expect, "klf"));
    assert_int_equal(found->vacuous, vacuous);
    check_certified("restricted", found->certified[0], cJSON_IsTrue(want(expect, "certified")), vacuous, found->kl.lo == INFINITY);
    assert_true(found->level.klr.lo >= claim->level.klr.lo * (1 - 0x1p-40)); // never below the whole vocabulary's
    if (vacuous) return;
    compare("restricted level", found->level.level_f, want(expect, "level"));
    compare("restricted level_reverse", exponential(found->level.level_r), want(expect, "level_reverse"));
    if (found->level.klr.hi == INFINITY) {
        compare("restricted klr", found->level.klr, want(expect, "klr"));
    } else {
        struct hm_ival share = found->mass, loss = {-log(share.hi) * (1 - 0x1p-50), -log(share.lo) * (1 + 0x1p-50)};
        struct hm_ival klr = difference(found->level.klr, loss);
        if (klr.hi - klr.lo < 1e-6) { // what the subtraction leaves
            mpfr_t value;
            mpfr_init2(value, 256);
            assert_int_equal(mpfr_set_str(value, want(expect, "klr")->valuestring, 10, MPFR_RNDN), 0);
            assert_true(mpfr_cmp_d(value, klr.lo - 1e-30) >= 0 && mpfr_cmp_d(value, klr.hi + 1e-30) <= 0);
            mpfr_clear(value);
        }
    }
}

// The case's draft vocabulary as the support of its draft. The oracle's D is the listed ids, ours those of them with a
// finite draft logit, so cases where the two differ are left out; how many were compared is printed.
static size_t compared;
static void check_vocabulary(const cJSON *one, struct hm_row *p, const struct hm_claim_query *query, const float *d, size_t vocab)
{
    const char *temperature = want(one, "temperature")->valuestring;
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(one, "draft_vocab");
    struct hm_row_distance distance;
    struct hm_claim claim;
    struct hm_error err = {.message = ""};
    int whole = 1;
    if (!ids) return;
    float *masked = calloc(vocab, sizeof *masked);
    for (size_t i = 0; i < vocab; i++) masked[i] = -INFINITY;
    for (const cJSON *id = ids->child; id; id = id->next) {
        masked[id->valueint] = d[id->valueint];
        whole = whole && d[id->valueint] != -INFINITY;
    }
    if (whole) {
        struct hm_row *q = open_row(masked, vocab, temperature);
        struct hm_claim_query asked = *query;
        assert_int_equal(hm_row_distance(p, q, &distance, &err), HM_OK);
        asked.draft = q;
        asked.distance = &distance;
        if (hm_claim_make(&asked, &claim, &err)) fail_msg("%s: %s", current, err.message);
        assert_true(claim.has_restricted);
        check_restricted(&claim, want(want(one, "expect"), "restricted"));
        compared++;
        hm_row_close(q);
    }
    free(masked);
}

static void check_draft(struct hm_row *p, struct hm_row *q, const struct hm_row_distance *d, const struct hm_claim *claim,
                        const cJSON *expect)
{
    struct hm_error err;
    struct hm_ival excess;
    compare("kl_pq", d->kl_pq, want(expect, "kl_pq"));
    compare("kl_qp", d->kl_qp, want(expect, "kl_qp"));
    compare("tv_pq", d->tv, want(expect, "tv_pq"));
    compare("standard_acceptance", d->standard_accept, want(expect, "standard_acceptance"));
    assert_int_equal(hm_row_excess(p, q, claim->k, &excess, &err), HM_OK);
    compare("excess_in_set", excess, want(expect, "excess_in_set"));
    assert_int_equal(claim->covered, cJSON_IsTrue(want(expect, "covered")) ? HM_YES : HM_NO);
    const cJSON *certified = want(expect, "certified");
    check_certified("klf", claim->certified[0], cJSON_IsTrue(want(certified, "klf")), claim->vacuous, d->kl_pq.lo == INFINITY);
    check_certified("klr", claim->certified[1], cJSON_IsTrue(want(certified, "klr")), claim->vacuous, d->kl_qp.lo == INFINITY);
    check_certified("tv", claim->certified[2], cJSON_IsTrue(want(certified, "tv")), claim->vacuous, 0);
}

static void check_case(const cJSON *one)
{
    const cJSON *expect = want(one, "expect");
    char spelling[256];
    size_t vocab, draft_vocab;
    struct hm_error err = {.message = ""};
    struct hm_ival value;
    current = want(one, "name")->valuestring;
    rule_text(one, spelling, sizeof spelling);
    struct hm_rule rule = parse_rule(spelling);
    float *l = read_logits(want(one, "logits"), &vocab), *d = read_logits(want(one, "draft"), &draft_vocab);
    const char *temperature = want(one, "temperature")->valuestring;
    struct hm_row *p = open_row(l, vocab, temperature), *q = open_row(d, draft_vocab, temperature);
    struct hm_row_distance distance;
    struct hm_claim claim;

    check_membership(&rule, p, expect);
    assert_int_equal(hm_row_entropy(p, &value, &err), HM_OK);
    compare("entropy", value, want(expect, "entropy"));
    assert_int_equal(hm_row_probability(p, hm_row_token(p, 0), &value, &err), HM_OK);
    compare("p1", value, want(expect, "p1"));
    assert_int_equal(hm_row_distance(p, q, &distance, &err), HM_OK);
    struct hm_claim_query query = {.rule = &rule, .target = p, .draft = q, .distance = &distance, .token = hm_row_token(q, 0),
                                   .m = (size_t)want(one, "m")->valueint, .margin = true};
    if (hm_claim_make(&query, &claim, &err)) fail_msg("%s: %s", current, err.message);
    check_level(&claim, expect);
    check_draft(p, q, &distance, &claim, expect);
    if (cJSON_GetObjectItemCaseSensitive(expect, "radius")) {
        assert_int_equal(want(expect, "token")->valueint, query.token);
        assert_true(claim.has_radius);
        compare("radius", claim.radius, want(expect, "radius"));
    }
    check_vocabulary(one, p, &query, d, vocab);

    hm_row_close(p);
    hm_row_close(q);
    hm_rule_clear(&rule);
    free(l);
    free(d);
}

static void every_vector(void **state)
{
    (void)state;
    size_t n = 0;
    for (const cJSON *one = cases->child; one; one = one->next, n++) check_case(one);
    print_message("%zu vectors, %zu with a draft vocabulary\n", n, compared);
    assert_true(n >= 448 || getenv("HM_VECTORS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vector)};
    return cmocka_run_group_tests(tests, load, unload);
}
