// `hallmark audit --json` on every case of tests/data/oracle, saved as row files of both formats: k, verdicts and each
// enclosure against figures computed independently, through everything that lies between a file and a line of JSON.
#include "tests/oracle_support.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][128]; // several are used in one call
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void write_file(const char *path, const void *head, size_t head_size, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, head_size, f), head_size);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// One row as .npy or .safetensors, in one or two dimensions.
static void write_row(const char *path, int npy, int flat, const float *row, size_t vocab)
{
    char text[256], head[300];
    size_t n;
    uint64_t length;
    if (npy) {
        n = (size_t)snprintf(text, sizeof text, flat ? "(%zu,)" : "(1, %zu)", vocab);
        n = (size_t)snprintf(head, sizeof head, "\x93NUMPY\x01%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", 0,
                             (int)(53 + n), 0, text);
        write_file(path, head, n, row, vocab * sizeof *row);
        return;
    }
    snprintf(text, sizeof text, "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%s%zu],\"data_offsets\":[0,%zu]}}", flat ? "" : "1,",
             vocab, vocab * sizeof *row);
    length = n = strlen(text);
    memcpy(head, &length, 8);
    memcpy(head + 8, text, n);
    write_file(path, head, 8 + n, row, vocab * sizeof *row);
}

// The draft's ids as a JSON array, .npy integers or EAGLE-3 offsets.
static void write_ids(const char *path, int form, const int32_t *ids, size_t n)
{
    char text[256];
    int64_t *wide = calloc(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = form == 2 ? ids[i] - (int64_t)i : ids[i];
    if (form == 0) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (size_t i = 0; i < n; i++) fprintf(f, "%c%d", i ? ',' : '[', ids[i]);
        fputs("]\n", f);
        assert_int_equal(fclose(f), 0);
    } else if (form == 1) {
        size_t size = (size_t)snprintf(text, sizeof text,
                                       "\x93NUMPY\x01%c%c%c{'shape':(%zu,),'fortran_order':False,'descr':'<i8'}", 0, n < 10 ? 50 : n < 100 ? 51 : 52, 0, n);
        write_file(path, text, size, wide, n * sizeof *wide);
    } else {
        snprintf(text, sizeof text, "________{\"d2t\":{\"dtype\":\"I64\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", n, 8 * n);
        uint64_t length = strlen(text) - 8;
        memcpy(text, &length, 8);
        write_file(path, text, 8 + (size_t)length, wide, n * sizeof *wide);
    }
    free(wide);
}

// Runs the command and gives its one record; the caller deletes it.
static cJSON *audit(const char *arguments)
{
    char command[1024], *text = calloc(1, 1 << 20);
    struct hm_error err = {.message = ""};
    cJSON *record;
    snprintf(command, sizeof command, "%s audit --json --threads 1 --margin %s", HM_COMMAND, arguments);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t size = fread(text, 1, (1 << 20) - 1, f);
    int code = pclose(f);
    if (code != 0) fail_msg("%s: %s: exit %d: %.6000s", current, command, code >> 8, text);
    char *row = strstr(text, "\n{\"kind\":\"row\""), *end = row ? strchr(row + 1, '\n') : NULL;
    if (size == 0 || !end || strstr(end, "\"kind\":\"row\"")) fail_msg("%s: expected one row, found %s", current, text);
    if (hm_json_parse(current, row + 1, (size_t)(end - row - 1), &record, &err)) fail_msg("%s", err.message);
    free(text);
    return record;
}

static struct hm_ival ends(const cJSON *object, const char *key)
{
    const cJSON *pair = want(object, key);
    assert_int_equal(cJSON_GetArraySize(pair), 2);
    return (struct hm_ival){strtod(pair->child->valuestring, NULL), strtod(pair->child->next->valuestring, NULL)};
}

static void check(const cJSON *found, const char *key, const cJSON *expect, const char *oracle_key)
{
    compare(key, ends(found, key), want(expect, oracle_key));
}

// The oracle calls a vacuous claim certified where the divergence is finite.
static void check_verdict(const cJSON *certified, const char *key, int expected, int vacuous)
{
    const char *found = want(certified, key)->valuestring, *right = vacuous ? "vacuous" : expected ? "yes" : "no";
    if (strcmp(found, right) != 0) fail_msg("%s: certified %s: %s against %s", current, key, found, right);
}

static void check_levels(const cJSON *claim, const cJSON *expect)
{
    const cJSON *margin = cJSON_GetObjectItemCaseSensitive(claim, "margin");
    check(claim, "klf", expect, "klf");
    check(claim, "klr", expect, "klr");
    check(claim, "tv", expect, "tv");
    assert_int_equal(margin != NULL, strcmp(want(expect, "status")->valuestring, "ok") == 0);
    if (!margin) return;
    check(claim, "level_f", expect, "level");
    compare("level_r", exponential(ends(claim, "level_r")), want(expect, "level_reverse"));
    check(margin, "gap", expect, "gap");
    check(margin, "klf", expect, "margin_klf");
    check(margin, "klr", expect, "margin_klr");
    check(margin, "tv", expect, "margin_tv");
}

static void check_record(const cJSON *record, const cJSON *one)
{
    static const char *const verdicts[] = {"klf", "klr", "tv"};
    const cJSON *expect = want(one, "expect"), *claim = want(record, "claims")->child;
    int vacuous = strcmp(want(expect, "status")->valuestring, "vacuous") == 0;
    assert_string_equal(want(record, "kind")->valuestring, "row");
    assert_int_equal(want(record, "index")->valueint, 0);
    assert_null(claim->next);
    assert_int_equal(want(claim, "m")->valueint, want(one, "m")->valueint);
    assert_int_equal(want(claim, "k")->valueint, want(expect, "k")->valueint);
    check(record, "entropy", expect, "entropy");
    check(record, "kl_pq", expect, "kl_pq");
    check(record, "kl_qp", expect, "kl_qp");
    check(record, "tv", expect, "tv_pq");
    check_levels(claim, expect);
    assert_string_equal(want(claim, "covered")->valuestring, cJSON_IsTrue(want(expect, "covered")) ? "yes" : "no");
    for (int i = 0; i < 3; i++)
        check_verdict(want(claim, "certified"), verdicts[i], cJSON_IsTrue(want(want(expect, "certified"), verdicts[i])), vacuous);
}

// docs/theory.md §4: a draft of fewer tokens.
static void check_restricted(const cJSON *record, const cJSON *expect)
{
    const cJSON *found = want(want(record, "claims")->child, "restricted");
    const char *status = want(expect, "status")->valuestring;
    int vacuous = strcmp(status, "vacuous") == 0;
    if (strncmp(status, "no mass", 7) == 0) return;
    assert_int_equal(want(found, "k")->valueint == 0, strncmp(status, "no accepted", 11) == 0);
    if (want(found, "k")->valueint == 0) return;
    check(found, "kl", expect, "kl_pq");
    check(found, "klf", expect, "klf");
    check_verdict(want(found, "certified"), "klf", cJSON_IsTrue(want(expect, "certified")), vacuous);
    if (vacuous) return;
    check(found, "level_f", expect, "level");
    compare("restricted level_r", exponential(ends(found, "level_r")), want(expect, "level_reverse"));
}

static size_t vocabularies;

static void check_vocabulary(const cJSON *one, const char *arguments, const float *draft, int n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(one, "draft_vocab");
    int32_t ids[1024];
    float columns[1024];
    size_t count = 0;
    char command[600];
    for (const cJSON *id = list ? list->child : NULL; id; id = id->next, count++) {
        ids[count] = id->valueint;
        columns[count] = draft[id->valueint];
        if (columns[count] == -INFINITY) return; // the oracle's D is the list, ours what has a finite logit
    }
    if (count < 2) return;
    write_row(in_folder("columns"), n % 2, n % 3 == 0, columns, count);
    write_ids(in_folder("ids"), n % 3, ids, count);
    snprintf(command, sizeof command, "%s --draft %s --draft-vocab %s", arguments, in_folder("columns"), in_folder("ids"));
    cJSON *record = audit(command);
    check_restricted(record, want(want(one, "expect"), "restricted"));
    cJSON_Delete(record);
    vocabularies++;
}

static void check_case(const cJSON *one, int n)
{
    char rule[128], arguments[400], command[600];
    size_t vocab, draft_vocab;
    current = want(one, "name")->valuestring;
    rule_text(one, rule, sizeof rule);
    float *target = read_logits(want(one, "logits"), &vocab), *draft = read_logits(want(one, "draft"), &draft_vocab);
    write_row(in_folder("target"), n % 2 == 0, n % 5 == 0, target, vocab);
    write_row(in_folder("draft"), n % 3 == 0, n % 7 == 0, draft, draft_vocab);
    snprintf(arguments, sizeof arguments, "--rule %s --m %d --temperature %s %s", rule, want(one, "m")->valueint,
             want(one, "temperature")->valuestring, in_folder("target"));
    snprintf(command, sizeof command, "%s --draft %s", arguments, in_folder("draft"));
    cJSON *record = audit(command);
    check_record(record, one);
    cJSON_Delete(record);
    check_vocabulary(one, arguments, draft, n);
    free(target);
    free(draft);
}

static void every_case(void **state)
{
    (void)state;
    int n = 0;
    for (const cJSON *one = cases->child; one; one = one->next, n++) check_case(one, n);
    print_message("%d cases, %zu again with a smaller draft vocabulary\n", n, vocabularies);
    assert_true((n >= 448 && vocabularies >= 90) || getenv("HM_VECTORS"));
}

static int begin(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/hallmark-audit-XXXXXX");
    return mkdtemp(folder) ? load(state) : -1;
}

static int end(void **state)
{
    static const char *const names[] = {"target", "draft", "columns", "ids"};
    for (int i = 0; i < 4; i++) (void)unlink(in_folder(names[i]));
    (void)rmdir(folder);
    return unload(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case)};
    return cmocka_run_group_tests(tests, begin, end);
}
