// Findings about one row's values (docs/evidence.md "Findings"): rows that show each, rows that show none, and which of them
// leave evidence that is usable.
#include "evidence/known_state.h"
#include "tests/known_support.h"

struct value {
    const char *printed; // as an engine prints it, or "" for a NaN
    int32_t id;
    const char *text;
};

enum { MOST_ENTRIES = 8 };

struct sample {
    const char *name;
    size_t count, ranked, emitted, vocab;
    struct value value[MOST_ENTRIES];
    bool usable;
    enum hm_finding_kind finding[4]; // ended by HM_FINDINGS
    enum hm_evidence_unit unit;
};

static void fill(const struct sample *s, struct hm_evidence_entry *entry, struct hm_evidence *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct value *v = &s->value[i];
        enum hm_decimal_kind kind = HM_DECIMAL_NAN;
        struct hm_ival x = {NAN, NAN};
        if (*v->printed) assert_int_equal(hm_decimal_read(v->printed, strlen(v->printed), HM_PRINTING_ROUNDED, &kind, &x, NULL), HM_OK);
        entry[i] = (struct hm_evidence_entry){v->id, v->text, v->text ? strlen(v->text) : 0, hm_decimal_widen(x, HM_ALLOWANCE_DEFAULT)};
        if (!*v->printed) entry[i].value = x;
    }
    *out = (struct hm_evidence){.unit = s->unit, .entry = entry, .count = s->count, .ranked = s->ranked, .emitted = s->emitted, .vocab = s->vocab};
}

static const struct sample samples[] = {
    {"plain", 2, 2, 0, 100, {{"-0.2231", 5, NULL}, {"-1.75", 9, NULL}}, true, {HM_FINDINGS}, 0},
    {"the emitted besides", 3, 2, 2, 100, {{"-0.5", 5, NULL}, {"-1.5", 9, NULL}, {"-7.0", 3, NULL}}, true, {HM_FINDINGS}, 0},
    {"certain to four digits", 2, 2, 0, 100, {{"-0.0000", 5, NULL}, {"-11.1234", 9, NULL}}, true, {HM_FINDINGS}, 0},
    {"only the argmax", 3, 3, 0, 100, {{"0.0", 5, NULL}, {"-9999.0", 9, NULL}, {"-9999.0", 7, NULL}}, false, {HM_FINDING_ALL_ZERO, HM_FINDINGS}, 0},
    {"a sentinel", 3, 3, 0, 100, {{"-0.5", 5, NULL}, {"-1.2", 9, NULL}, {"-9999.0", 7, NULL}}, true, {HM_FINDING_SENTINEL, HM_FINDINGS}, 0},
    {"too much", 3, 3, 0, 100, {{"-0.50", 5, NULL}, {"-0.90", 9, NULL}, {"-5.0", 7, NULL}}, false, {HM_FINDING_MASS, HM_FINDINGS}, 0},
    {"too little", 2, 2, 0, 4, {{"-2.00", 1, NULL}, {"-3.00", 2, NULL}}, false, {HM_FINDING_TOO_LITTLE_MASS, HM_FINDINGS}, 0},
    {"just enough", 2, 2, 0, 60, {{"-2.00", 1, NULL}, {"-4.00", 2, NULL}}, true, {HM_FINDINGS}, 0},
    {"of an unknown vocabulary", 2, 2, 0, 0, {{"-12.00", 1, NULL}, {"-13.00", 2, NULL}}, true, {HM_FINDINGS}, 0},
    {"positive", 1, 1, 0, 100, {{"0.7", 5, NULL}}, false, {HM_FINDING_MASS, HM_FINDING_POSITIVE, HM_FINDINGS}, 0},
    {"unsorted", 3, 3, 0, 100, {{"-2.5", 5, NULL}, {"-0.3", 9, NULL}, {"-4.5", 7, NULL}}, true, {HM_FINDING_UNSORTED, HM_FINDINGS}, 0},
    {"unsorted behind the ranked", 3, 2, 0, 100, {{"-0.5", 5, NULL}, {"-2.5", 9, NULL}, {"-2.0", 7, NULL}}, true, {HM_FINDINGS}, 0},
    {"an id twice", 3, 3, 0, 100, {{"-0.5", 5, NULL}, {"-1.5", 9, NULL}, {"-3.0", 5, NULL}}, false, {HM_FINDING_DUPLICATE, HM_FINDINGS}, 0},
    {"a text twice", 2, 2, 0, 100, {{"-0.5", -1, "a"}, {"-1.5", -1, "a"}}, false, {HM_FINDING_DUPLICATE, HM_FINDINGS}, 0},
    {"a text twice, ids differ", 2, 2, 0, 100, {{"-0.5", 4, "a"}, {"-1.5", 5, "a"}}, true, {HM_FINDINGS}, 0},
    {"a text that starts another", 2, 2, 0, 100, {{"-0.5", -1, "a"}, {"-1.5", -1, "ab"}}, true, {HM_FINDINGS}, 0},
    {"not emitted", 2, 2, HM_UNSEEN, 100, {{"-0.5", 5, NULL}, {"-1.5", 9, NULL}}, true, {HM_FINDING_TOKEN_ABSENT, HM_FINDINGS}, 0},
    {"not a number", 2, 2, 0, 100, {{"-0.5", 5, NULL}, {"", 9, NULL}}, false, {HM_FINDING_NOT_A_NUMBER, HM_FINDINGS}, 0},
    {"read as NaN", 2, 2, 0, 100, {{"nan", 5, NULL}, {"-0.5", 9, NULL}}, false, {HM_FINDING_NOT_A_NUMBER, HM_FINDINGS}, 0},
    {"infinite", 1, 1, 0, 100, {{"inf", 5, NULL}}, false, {HM_FINDING_NOT_A_NUMBER, HM_FINDINGS}, 0},
    {"nothing", 0, 0, HM_UNSEEN, 100, {{NULL, 0, NULL}}, false, {HM_FINDING_EMPTY_ROW, HM_FINDINGS}, 0},
    {"only filtered", 2, 2, 0, 100, {{"-inf", 5, NULL}, {"-inf", 9, NULL}}, false, {HM_FINDING_EMPTY_ROW, HM_FINDINGS}, 0},
    {"filtered", 3, 3, 0, 100, {{"-0.3", 5, NULL}, {"-1.4", 9, NULL}, {"-inf", 7, NULL}}, true, {HM_FINDINGS}, 0},
    {"an id beyond", 2, 2, 0, 100, {{"-0.5", 5, NULL}, {"-1.5", 100, NULL}}, true, {HM_FINDING_ID_RANGE, HM_FINDINGS}, 0},
    {"more than there are", 3, 3, 0, 2, {{"-0.9", 0, NULL}, {"-1.1", 1, NULL}, {"-1.4", -1, "x"}}, false, {HM_FINDING_LENGTH, HM_FINDINGS}, 0},
    {"padding", 4, 4, 0, 4, {{"-1.386", 0, NULL}, {"-1.386", 1, NULL}, {"-1.386", 2, NULL}, {"-1.386", 3, NULL}}, true, {HM_FINDING_PADDING, HM_FINDINGS}, 0},
    {"logits have any sign and size", 3, 3, 0, 100, {{"23.5", 5, NULL}, {"11.0", 9, NULL}, {"-9999.0", 7, NULL}}, true, {HM_FINDINGS}, HM_UNIT_LOGIT},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void finds_what_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct sample *s = &samples[i];
        struct hm_evidence_entry entry[MOST_ENTRIES];
        struct hm_evidence evidence;
        struct hm_finding found[HM_SANITY_MOST];
        bool usable;
        fill(s, entry, &evidence);
        size_t count = hm_sanity_check(&evidence, found, &usable), wanted = 0;
        for (; s->finding[wanted] != HM_FINDINGS; wanted++) {
            bool there = false;
            for (size_t j = 0; j < count; j++) there = there || found[j].kind == s->finding[wanted];
            if (!there) fail_msg("%s: no %s", s->name, hm_finding_name(s->finding[wanted]));
        }
        if (count != wanted) fail_msg("%s: %zu findings, the last %s", s->name, count, hm_finding_name(found[count - 1].kind));
        if (usable != s->usable) fail_msg("%s: usable %d", s->name, usable);
        for (size_t j = 0; j < count; j++)
            assert_true(found[j].sequence == -1 && found[j].t == -1 && *found[j].what && strstr(found[j].what, "found"));
    }
}

// Whatever is not usable is refused, or may be: what is usable opens.
static void usable_rows_open(void **state)
{
    (void)state;
    struct hm_rational one;
    hm_rational_init(&one);
    hm_rational_set_int(&one, 1, 1);
    for (size_t i = 0; i < SAMPLES; i++) {
        struct hm_evidence_entry entry[MOST_ENTRIES];
        struct hm_evidence evidence;
        struct hm_known *known;
        struct hm_error err;
        fill(&samples[i], entry, &evidence);
        hm_status status = hm_known_open(&evidence, &one, &known, &err);
        if (samples[i].usable && status) fail_msg("%s: %s", samples[i].name, err.message);
        if (status) assert_int_equal(status, HM_RANGE);
        for (size_t f = 0; samples[i].finding[f] != HM_FINDINGS; f++) {
            enum hm_finding_kind kind = samples[i].finding[f];
            if (kind == HM_FINDING_MASS || kind == HM_FINDING_TOO_LITTLE_MASS || kind == HM_FINDING_NOT_A_NUMBER || kind == HM_FINDING_EMPTY_ROW)
                assert_int_equal(status, HM_RANGE);
        }
        hm_known_close(known);
    }
    hm_rational_clear(&one);
}

// The token of a sentinel is one of which nothing is known but that it is not among the largest.
static void sentinels_are_unknown(void **state)
{
    (void)state;
    struct hm_evidence_entry entry[MOST_ENTRIES];
    struct hm_evidence evidence;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (strcmp(samples[i].name, "a sentinel") != 0) continue;
        fill(&samples[i], entry, &evidence);
        assert_true(hm_known_sentinel(&evidence, 2) && !hm_known_sentinel(&evidence, 1));
        struct hm_known *known = open_known(&evidence, "1");
        struct hm_ival p = hm_known_probability(known, 2);
        assert_true(p.lo == 0 && p.hi > 0.05 && p.hi < 0.15); // what the two listed leave, not e^-9999
        hm_known_close(known);
    }
}

static void looks_at_floats(void **state)
{
    (void)state;
    static const struct { float l[3]; size_t emitted; bool usable; enum hm_finding_kind kind; } rows[] = {
        {{1, 2, 3}, 2, true, HM_FINDINGS}, {{1, 2, 3}, HM_UNSEEN, true, HM_FINDINGS}, {{1, -INFINITY, 3}, 0, true, HM_FINDINGS},
        {{1, NAN, 3}, 0, false, HM_FINDING_NOT_A_NUMBER}, {{1, 2, INFINITY}, 0, false, HM_FINDING_NOT_A_NUMBER},
        {{-INFINITY, -INFINITY, -INFINITY}, 0, false, HM_FINDING_EMPTY_ROW}, {{2, 2, 2}, 0, true, HM_FINDING_PADDING},
        {{1, 2, 3}, 3, true, HM_FINDING_ID_RANGE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hm_evidence e = {.unit = HM_UNIT_LOGIT, .logits = rows[i].l, .vocab = 3, .emitted = rows[i].emitted};
        struct hm_finding found[HM_SANITY_MOST];
        bool usable;
        size_t count = hm_sanity_check(&e, found, &usable);
        assert_int_equal(count, rows[i].kind != HM_FINDINGS);
        if (count) assert_int_equal(found[0].kind, rows[i].kind);
        assert_int_equal(usable, rows[i].usable);
    }
}

// Rows of true distributions, listed and printed in any way, have no finding.
static void true_rows_are_sane(void **state)
{
    (void)state;
    struct random r = seeded("true_rows_are_sane");
    float l[300];
    for (size_t i = 0; i < test_count(50, 1000, 100000); i++) {
        size_t vocab = 2 + below(&r, 299);
        struct scene s;
        hard_row(&r, (enum hard_kind)below(&r, HARD_KINDS), l, vocab);
        scene_open(&s, l, vocab, "1");
        scene_list(&s, (enum scene_unit)below(&r, SCENE_UNITS), 1 + below(&r, vocab), 1 + (int)below(&r, 8), (int32_t)below(&r, vocab));
        struct hm_finding found[HM_SANITY_MOST];
        bool usable;
        size_t count = hm_sanity_check(&s.evidence, found, &usable);
        bool padding = count == 1 && found[0].kind == HM_FINDING_PADDING; // flat rows, to the digits printed
        if (!usable || (count && !padding)) fail_msg("%s: %s", hm_finding_name(found[0].kind), found[0].what);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_there), cmocka_unit_test(usable_rows_open), cmocka_unit_test(sentinels_are_unknown),
        cmocka_unit_test(looks_at_floats),     cmocka_unit_test(true_rows_are_sane),
    };
    return cmocka_run_group_tests_name("sanity", tests, NULL, release_caches);
}
