// `hallmark compare` on runs made here: rows are dot products summed in two orders in float32, as two kernels would, and
// faults are put in by hand. Rounding is explained, each fault is found at its step.
#include "evidence/compare.h"

#include "base/json.h"
#include "tests/hard_rows.h"
#include "tests/seed.h"

#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 640, VOCAB = 200, HIDDEN = 48, LISTED = 20, NEAR = 4 };
static const size_t near_ties[NEAR] = {100, 222, 301, 530}; // steps whose two best tokens are a rounding apart

static char folder[64];
static float a[STEPS][VOCAB], b[STEPS][VOCAB], c[STEPS][VOCAB];

static const char *in_folder(const char *name)
{
    static char path[4][128]; // several are used in one call
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

// ---- two runs

static size_t best(const float *row, size_t without)
{
    size_t first = without == 0;
    for (size_t i = 0; i < VOCAB; i++)
        if (i != without && row[i] > row[first]) first = i;
    return first;
}

static void make_runs(void)
{
    struct random r = {.state = test_seed("make_runs")};
    static float w[VOCAB][HIDDEN];
    float x[HIDDEN];
    for (int i = 0; i < VOCAB; i++)
        for (int k = 0; k < HIDDEN; k++) w[i][k] = (float)gauss(&r);
    for (size_t t = 0; t < STEPS; t++) {
        for (int k = 0; k < HIDDEN; k++) x[k] = (float)gauss(&r);
        for (int i = 0; i < VOCAB; i++) {
            float one = 0, four[4] = {0};
            for (int k = 0; k < HIDDEN; k++) {
                one += w[i][k] * x[k];
                four[k % 4] += w[i][k] * x[k];
            }
            a[t][i] = one;
            b[t][i] = (four[0] + four[2]) + (four[1] + four[3]);
        }
    }
    for (int n = 0; n < NEAR; n++) { // the second is lifted beside the first: below it in a, above it in b
        size_t t = near_ties[n], first = best(a[t], VOCAB), second = best(a[t], first);
        a[t][second] = nextafterf(a[t][first], -1000);
        b[t][second] = nextafterf(b[t][first], 1000);
    }
    memcpy(c, b, sizeof c);
}

// ---- files

static void write_npy(const char *name, const float *rows, size_t count)
{
    char head[160], shape[64];
    int n = snprintf(shape, sizeof shape, "(%zu, %d)", count, VOCAB);
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    size_t size = (size_t)snprintf(head, sizeof head, 
                                   "\x93NUMPY\x01%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", 0, 53 + n, 0, shape);
    assert_int_equal(fwrite(head, 1, size, f), size);
    assert_int_equal(fwrite(rows, VOCAB * sizeof *rows, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static int by_value(const void *x, const void *y)
{
    float p = **(const float *const *)x, q = **(const float *const *)y;
    return (p < q) - (p > q);
}

// The run as vLLM would log it: prompts of `length` tokens each, lists of the largest log-probabilities.
static void write_vllm(const char *name, float (*rows)[VOCAB], size_t length, size_t listed, bool backwards)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    for (size_t k = 0; k < STEPS / length; k++) {
        size_t p = backwards ? STEPS / length - 1 - k : k;
        fprintf(f, "{\"request_id\":\"q%zu\",\"prompt_token_ids\":[%zu,1],\"outputs\":[{\"index\":0,\"token_ids\":[", p, p);
        for (size_t t = 0; t < length; t++) fprintf(f, "%s%zu", t ? "," : "", best(rows[p * length + t], VOCAB));
        fprintf(f, "],\"logprobs\":[");
        for (size_t t = 0; t < length; t++) {
            const float *row = rows[p * length + t], *order[VOCAB];
            double sum = 0;
            for (int i = 0; i < VOCAB; i++) {
                order[i] = &row[i];
                sum += exp((double)row[i] - row[best(row, VOCAB)]);
            }
            qsort(order, VOCAB, sizeof *order, by_value);
            fprintf(f, "%s{", t ? "," : "");
            for (size_t i = 0; i < listed; i++)
                fprintf(f, "%s\"%d\":{\"logprob\":%.9g,\"rank\":%zu,\"decoded_token\":\"w%d\"}", i ? "," : "",
                        (int)(order[i] - row), (double)*order[i] - *order[0] - log(sum), i + 1, (int)(order[i] - row));
            fprintf(f, "}");
        }
        fprintf(f, "]}]}\n");
    }
    assert_int_equal(fclose(f), 0);
}

// ---- the command

struct found {
    int exit;
    size_t forks, classes[HM_FORK_CLASSES], outliers, positions;
    double unexplained_t, outlier_t, unexplained_prompt; // of the last one; -1: none
    bool refuted;
};

static double number(const cJSON *object, const char *key)
{
    const cJSON *value = cJSON_GetObjectItem(object, key);
    if (!cJSON_IsNumber(value)) fail_msg("expected a number at \"%s\"", key);
    return value->valuedouble;
}

static void read_line(const char *line, struct found *out)
{
    cJSON *object;
    struct hm_error err;
    if (hm_json_parse("line", line, strlen(line), &object, &err)) fail_msg("%s: %s", err.message, line);
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItem(object, "kind"));
    if (strcmp(kind, "fork") == 0) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(object, "class"));
        out->forks++;
        for (int k = 0; k < HM_FORK_CLASSES; k++) out->classes[k] += strcmp(name, hm_fork_class_name((enum hm_fork_class)k)) == 0;
        if (strcmp(name, "unexplained") == 0) {
            out->unexplained_t = number(object, "t");
            out->unexplained_prompt = number(object, "prompt");
        }
    } else if (strcmp(kind, "outlier") == 0) {
        out->outliers++;
        out->outlier_t = number(object, "t");
    } else if (strcmp(kind, "position") == 0) out->positions++;
    else if (strcmp(kind, "temperature") == 0) out->refuted |= cJSON_IsTrue(cJSON_GetObjectItem(object, "refuted"));
    else if (strcmp(kind, "summary") == 0) assert_true(number(object, "exit") == out->exit || out->exit == -1);
    cJSON_Delete(object);
}

static struct found compare(const char *flags, const char *first, const char *second)
{
    struct found out = {.exit = -1, .unexplained_t = -1, .outlier_t = -1, .unexplained_prompt = -1};
    char command[1024];
    static char line[1 << 16];
    snprintf(command, sizeof command, "%s compare --json %s %s %s", HM_COMMAND, flags, in_folder(first),
             *second ? in_folder(second) : "");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) read_line(line, &out);
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    out.exit = WEXITSTATUS(status);
    return out;
}

static void expect(struct found got, int code, size_t explained, size_t unexplained, size_t outliers)
{
    if (got.exit != code || got.classes[HM_FORK_EXPLAINED] != explained || got.classes[HM_FORK_UNEXPLAINED] != unexplained ||
        got.outliers != outliers || got.forks != explained + unexplained)
        fail_msg("expected exit %d, %zu explained, %zu unexplained, %zu outliers; found %d, %zu, %zu, %zu of %zu forks", code,
                 explained, unexplained, outliers, got.exit, got.classes[HM_FORK_EXPLAINED], got.classes[HM_FORK_UNEXPLAINED],
                 got.outliers, got.forks);
}

// (a) Two summation orders: some tokens flip, and every flip is explained.
static void rounding_is_explained(void **state)
{
    (void)state;
    write_npy("a.npy", a[0], STEPS);
    write_npy("b.npy", b[0], STEPS);
    expect(compare("--same-path", "a.npy", "b.npy"), 0, NEAR, 0, 0);
    expect(compare("--same-path", "b.npy", "a.npy"), 0, NEAR, 0, 0);
    expect(compare("--same-path", "a.npy", "a.npy"), 0, 0, 0, 0);
    struct found got = compare("--positions", "a.npy", "b.npy"); // two runs: the first fork ends it, too early to judge
    assert_int_equal(got.positions, near_ties[0] + 1);
    assert_true(got.exit == 3 && got.forks == 1 && got.classes[HM_FORK_UNDECIDED] == 1);
    write_vllm("a.jsonl", a, 40, LISTED, false);
    write_vllm("b.jsonl", b, 40, LISTED, true); // in another order: matched by prompts
    expect(compare("", "a.jsonl", "b.jsonl"), 0, NEAR, 0, 0);
    expect(compare("", "b.jsonl", "a.jsonl"), 0, NEAR, 0, 0);
    expect(compare("--printing round-trip", "a.jsonl", "b.jsonl"), 0, NEAR, 0, 0);
}

// (b) One logit of one step raised by 1 beyond the first: unexplained there and nowhere else.
static void a_flip_is_found(void **state)
{
    (void)state;
    for (size_t t = 395; t < STEPS; t += 210) {
        memcpy(c, b, sizeof c);
        size_t first = best(c[t], VOCAB), second = best(c[t], first);
        c[t][second] = c[t][first] + 1;
        write_npy("c.npy", c[0], STEPS);
        struct found got = compare("--same-path", "a.npy", "c.npy");
        expect(got, 1, NEAR, 1, 1);
        assert_true(got.unexplained_t == (double)t && got.outlier_t == (double)t);
        write_vllm("c.jsonl", c, 40, LISTED, false);
        got = compare("", "a.jsonl", "c.jsonl");
        expect(got, 1, NEAR, 1, 1);
        assert_true(got.unexplained_t == (double)(t % 40) && got.unexplained_prompt == (double)(t / 40));
    }
}

// (c) Another logit raised by 1, and no token flips: a finding at that step.
static void noise_without_a_flip_is_found(void **state)
{
    (void)state;
    memcpy(c, b, sizeof c);
    size_t low = 0;
    for (size_t i = 0; i < VOCAB; i++)
        if (c[400][i] < c[400][low]) low = i;
    c[400][low] += 1;
    write_npy("c.npy", c[0], STEPS);
    struct found got = compare("--same-path", "a.npy", "c.npy");
    expect(got, 1, NEAR, 0, 1);
    assert_true(got.outlier_t == 400);
    for (size_t t = 403; t < 406; t++) c[t][low] += 1; // several do not hide each other
    write_npy("c.npy", c[0], STEPS);
    expect(compare("--same-path", "a.npy", "c.npy"), 1, NEAR, 0, 4);
}

// A side that emits what is not first in its own row.
static void wrong_choice_is_found(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "sed '3s/\"token_ids\":\\[[0-9]*,/\"token_ids\":[199,/' %s > %s", in_folder("b.jsonl"),
             in_folder("wrong.jsonl")); // the third line of b is prompt 13, whose first token is another
    assert_int_equal(system(command), 0);
    struct found got = compare("", "a.jsonl", "wrong.jsonl");
    assert_int_equal(got.exit, 1);
    assert_true(got.classes[HM_FORK_UNEXPLAINED] == 1 && got.unexplained_t == 0 && got.unexplained_prompt == 13);
}

static void a_claimed_temperature(void **state)
{
    (void)state;
    struct found got = compare("--claim-temperature 1", "a.jsonl", "a.jsonl");
    assert_true(got.exit == 1 && got.refuted);
    got = compare("--claim-temperature 1/1000", "a.jsonl", "a.jsonl"); // as good as greedy
    assert_true(got.exit == 0 && !got.refuted);
    got = compare("--claim-temperature 1", "a.jsonl", "b.jsonl"); // what was drawn forks as it likes
    assert_true(got.exit == 1 && got.refuted && got.classes[HM_FORK_UNDECIDED] == NEAR);
}

// Cut at every length and with single bytes changed: an exit code, never a signal.
static void hostile_files(void **state)
{
    (void)state;
    struct random r = {.state = test_seed("hostile_files")};
    static char data[1 << 22];
    size_t runs = test_count(5, 25, 400);
    const char *const names[] = {"a.jsonl", "a.npy"};
    for (int k = 0; k < 2; k++) {
        FILE *f = fopen(in_folder(names[k]), "rb");
        assert_non_null(f);
        size_t size = fread(data, 1, sizeof data, f);
        fclose(f);
        for (size_t run = 0; run < runs; run++) {
            size_t at = below(&r, run % 2 ? size : 200), cut = run % 3 ? size : below(&r, size);
            char kept = data[at];
            data[at] = (char)next_word(&r);
            f = fopen(in_folder("bad"), "wb");
            assert_non_null(f);
            assert_int_equal(fwrite(data, 1, cut, f), cut);
            assert_int_equal(fclose(f), 0);
            data[at] = kept;
            char command[600];
            snprintf(command, sizeof command, "%s compare --quiet --format-a %s %s %s >/dev/null 2>&1", HM_COMMAND,
                     k ? "rows" : "vllm", in_folder("bad"), in_folder(names[k]));
            int status = system(command);
            if (!WIFEXITED(status) || WEXITSTATUS(status) > 3) fail_msg("%s: status %d", command, status);
        }
    }
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hallmark-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    make_runs();
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"a.npy", "b.npy", "c.npy", "a.jsonl", "b.jsonl", "c.jsonl", "wrong.jsonl", "bad"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_explained), cmocka_unit_test(a_flip_is_found),
        cmocka_unit_test(noise_without_a_flip_is_found),
        cmocka_unit_test(wrong_choice_is_found), cmocka_unit_test(a_claimed_temperature), cmocka_unit_test(hostile_files),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
