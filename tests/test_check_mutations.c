// Mutation tests of the checker: every field of every record of the golden logs is changed in turn and the chain made
// good again. A field that docs/log.md calls proved must be refuted (or unreadable) in a message that names it or a
// field derived from it; an asserted field may change freely.
#include "tests/seed.h"
#include "tests/test_check_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum mutation {
    PLUS,
    MINUS,
    FLIP,
    UP,
    DOWN,
    ANSWER,
    TEXT,
    NUL,
    REMOVE,
    SHORTEN,
    LENGTHEN,
    SHIFT,
    WIDEN,
    SWAP,
    ENDLESS,
    NOT_A_NUMBER,
    MUTATIONS
};
static const char *const names[MUTATIONS] = {"plus",  "minus", "flip",    "up",      "down",     "answer",
                                             "text",  "null",  "remove",  "shorten", "lengthen", "shift",
                                             "widen", "swap",  "endless", "nan"};

// Fields whose value is asserted, and fields whose change can leave a log that is still true (a larger limit nobody
// reached, a seed nobody drew from): those may survive. A trailing * stands for anything below.
enum freedom { ASSERTED, STILL_TRUE };
static const struct {
    const char *path;
    enum freedom freedom;
} freedoms[] = {
    {"header.run*", ASSERTED},
    {"round.run*", ASSERTED},
    {"header.proposal", STILL_TRUE}, // nothing tells the likeliest from another choice of children
    {"header.tokenizer_sha256", ASSERTED},
    {"header.numerics*", ASSERTED},
    {"header.target.name", ASSERTED},
    {"header.target.sha256", ASSERTED},
    {"header.target.architecture", ASSERTED},
    {"header.draft.name", ASSERTED},
    {"header.draft.sha256", ASSERTED},
    {"header.draft.architecture", ASSERTED},
    {"header.decoder.drafter", ASSERTED},
    {"header.decoder.width", ASSERTED},
    {"header.decoder.depth", ASSERTED},
    {"header.decoder.selection", STILL_TRUE}, // all but whether a token was drawn first
    {"header.decoder.score", STILL_TRUE},     // how many were scored is asserted
    {"sequence.id", ASSERTED},
    {"sequence.category", ASSERTED},
    {"sequence.turn", ASSERTED},
    {"sequence.prompt*", ASSERTED},
    {"sequence.stop.strings*", ASSERTED},
    {"round.logq*", ASSERTED},
    {"round.pool", ASSERTED},
    {"round.charges*", ASSERTED},
    {"step.text", ASSERTED},
    {"*.draft_row.why", ASSERTED},
    {"*.row.why", ASSERTED},
    {"*.claims[].why", ASSERTED},
    {"header.draft", STILL_TRUE},          // null in a log without draft rows
    {"header.rows*", STILL_TRUE},          // other names: the rows are absent
    {"header.decoder.budget", STILL_TRUE}, // more than any round used
    {"header.decoder.traversal", STILL_TRUE},
    {"header.temperature", STILL_TRUE}, // the same draws
    {"header.processors*", STILL_TRUE}, // nothing at temperature 0
    {"header.acceptance", STILL_TRUE},
    {"header.claims", STILL_TRUE}, // empty in a log that claims nothing
    {"header.m", STILL_TRUE},
    {"sequence.seed", STILL_TRUE},         // nobody drew, or the same tokens were drawn
    {"sequence.stop*", STILL_TRUE},        // ids never emitted, a limit never reached
    {"round.expected_accept", STILL_TRUE}, // null says nothing
    {"row.index", STILL_TRUE},             // a later row of the file: rows are found by their references
    {"row.token", STILL_TRUE},             // asserted; another one may be decided alike
    {"*.draft_row", STILL_TRUE},
    {"*.row.shard", STILL_TRUE}, // a shard that is not there: rows absent, never proved
    {"*.draft_row.shard", STILL_TRUE},
    {"round.token", STILL_TRUE}, // a node no step or claim looks at: only --replay binds it
    {"round.parent", STILL_TRUE},
};

// Fields that may be left out: removing one leaves nothing to prove.
static const char *const optional[] = {"*.claims[].radius",    "*.claims[].active", "*.claims[].restricted",
                                       "*.standard_accept",    "*.nucleus_excess",  "step.accept",
                                       "step.accept_standard", "step.ratio"};

// A changed field may come to light in another one.
static const struct {
    const char *path, *field;
} derived[] = {
    {"header.claims", "rule"},
    {"header.claims", "claims"},
    {"header.m", "m"},
    {"header.nodes", "kind"},
    {"header.certify_temperature", "lse"},
    {"header.temperature", "token"},
    {"header.temperature", "support"},
    {"header.processors", "support"},
    {"header.processors", "token"},
    {"header.acceptance", "source"},
    {"header.acceptance", "regret"},
    {"header.acceptance", "token"},
    {"header.traversal", "source"},
    {"header.vocab", "row"},
    {"header.vocab", "draft"},
    {"header.draft", "draft_row"},
    {"header.rows", "row"},
    {"header.budget", "parent"},
    {"header.kind", "hallmark"},
    {"header.vocab", "top"},
    {"header.vocab", "shard"},
    {"header.traversal", "node"},
    {"sequence.seed", "token"},
    {"sequence.max_tokens", "finish"},
    {"sequence.eos", "finish"},
    {"sequence.stop", "finish"},
    {"sequence.strings", "finish"},
    {"sequence.kind", "kind"},
    {"round.token", "child"},
    {"round.token", "source"},
    {"round.token", "m"},
    {"round.parent", "token"},
    {"round.parent", "logq"},
    {"round.parent", "m"},
    {"round.parent", "child"},
    {"round.parent", "kind"},
    {"round.parent", "depth"},
    {"round.parent", "source"},
    {"round.token", "covered"},
    {"round.token", "certified"},
    {"round.parent", "certified"},
    {"round.kind", "kind"},
    {"round.token", "expected_accept"},
    {"round.parent", "expected_accept"},
    {"step.token", "child"},
    {"step.token", "accepts"},
    {"step.token", "source"},
    {"step.token", "finish"},
    {"step.token", "regret"},
    {"step.token", "radius"},
    {"step.source", "child"},
    {"step.child", "source"},
    {"step.finish", "kind"},
    {"step.sha256", "row"},
    {"step.shard", "row"},
    {"step.index", "row"},
    {"step.why", "row"},
    {"step.row", "row"},
    {"node.sha256", "row"},
    {"node.shard", "row"},
    {"node.index", "row"},
    {"step.kind", "kind"},
    {"node.kind", "kind"},
    {"node.kind", "round"},
    {"step.draft_row", "kl_pq"},
    {"node.draft_row", "kl_pq"},
    {"step.draft_row", "certified"},
    {"step.shard", "why"},
    {"node.shard", "why"},
    {"step.kind", "depth"},
    {"step.certified", "certified"},
    {"round.token", "kind"},
    {"round.parent", "covered"},
    {"header.top", "top"},
    {"step.m", "m"},
    {"header.margin", "margin"},
    {"step.index", "draft_row"},
    {"step.sha256", "draft_row"},
    {"node.index", "draft_row"},
    {"node.sha256", "draft_row"},
    {"step.claims", "rule"},
    {"node.claims", "rule"},
    {"end.verdicts", "rule"},
    {"header.universal", "universal"},
    {"header.divergences", "divergences"},
    {"header.laws", "laws"},
    {"header.laws", "topk"},
    {"header.laws", "iid"},
    {"step.draft_row", "standard_accept"},
    {"node.draft_row", "standard_accept"},
    {"row.draft_row", "kl_pq"},
    {"row.claims", "rule"},
    {"row.sha256", "row"},
    {"row.shard", "row"},
    {"row.index", "row"},
    {"row.sha256", "draft_row"},
    {"row.index", "draft_row"},
    {"row.shard", "why"},
    {"row.why", "row"},
    {"row.kind", "kind"},
    {"header.budget", "spent"},
    {"header.limit", "relaxed"},
    {"header.kind", "budget"},
    {"header.selection", "first"},
    {"header.selection", "traversal"},
    {"header.proposal", "child"},
    {"header.proposal", "token"},
    {"header.acceptance", "regret"},
    {"header.acceptance", "accept"},
    {"header.acceptance", "charge"},
    {"header.acceptance", "nucleus_excess"},
    {"header.score", "scored"},
    {"sequence.seed", "child"},
    {"sequence.seed", "source"},
    {"sequence.max_tokens", "relaxed"},
    {"round.scored", "m"},
    {"round.scored", "draft_row"},
    {"round.scored", "first"},
    {"round.scored", "parent"},
    {"round.scored", "source"},
    {"round.scored", "kind"},
    {"round.scored", "child"},
    {"round.scored", "expected_accept"},
    {"round.first", "expected_accept"},
    {"round.token", "first"},
    {"round.parent", "first"},
    {"round.token", "accept"},
    {"round.token", "charge"},
    {"round.parent", "accept"},
    {"round.parent", "charge"},
    {"step.draft_row", "nucleus_excess"},
    {"step.relaxed", "e"},
    {"step.charge", "relaxed"},
    {"step.charge", "spent"},
};

// At most so many mutants of one sort at one path of one log: a log has many equal records. HM_LONG=1 tries all.
enum { SORTS = 4096 };
static size_t most;
static struct {
    char path[256];
    size_t made[MUTATIONS];
} sorts[SORTS];

static bool enough(const char *path, enum mutation how)
{
    size_t i = 0;
    while (i < SORTS && sorts[i].path[0] && strcmp(sorts[i].path, path) != 0) i++;
    if (i == SORTS) return false;
    snprintf(sorts[i].path, sizeof sorts[i].path, "%s", path);
    return sorts[i].made[how]++ >= most;
}

struct tally {
    size_t made, caught, open, free_caught, survived, misnamed;
};
static struct tally tally;
static struct test_log *current;
static bool lower_bound;        // at a radius that is a lower bound: smaller ones, and some larger ones, are bounds too
static bool infinite;           // at an enclosure whose upper end is infinite
static size_t turn, stride = 1; // every stride-th mutant is tried: sanitizers are slow
static bool structural;         // rows are absent
static const char *only;        // the one path to mutate, or NULL
static bool claims_apart;       // a log whose claims are not mutated

static bool matches(const char *pattern, const char *path)
{
    if (*pattern == '*' && pattern[1]) {
        const char *tail = strchr(path, '.');
        return tail && matches(pattern + 2, tail + 1);
    }
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '*') return strncmp(pattern, path, n - 1) == 0;
    return strcmp(pattern, path) == 0 || (strncmp(pattern, path, n) == 0 && strcmp(path + n, "[]") == 0);
}

static const char *free_to(const char *path, enum mutation how)
{
    if (lower_bound && strstr(path, ".radius")) return "a lower bound";
    bool may_be_bound = strstr(path, "divergences.") || strstr(path, "restricted.klr"); // docs/log.md "Numbers"
    if (may_be_bound && (how == ENDLESS || (infinite && (how == UP || how == DOWN)))) return "a lower bound";
    bool removed = how == REMOVE || how == NUL;
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (removed && matches(optional[i], path)) return "optional";
    if (removed && strcmp(path, "step.e") == 0 && strncmp(current->name, "tv-", 3) != 0) return "optional";
    if (removed && strcmp(path, "header.budget") == 0 && !strstr(current->name, "-budget")) return "null before";
    for (size_t i = 0; i < sizeof freedoms / sizeof freedoms[0]; i++)
        if (matches(freedoms[i].path, path)) return freedoms[i].freedom == ASSERTED ? "asserted" : "still true";
    return NULL;
}

// Does the message name the last key of the path, or a field derived from it?
static bool named(const char *path, const char *message)
{
    char field[128] = "", key[128], full[160];
    const char *at = strstr(message, ": "), *dot = strrchr(path, '.');
    const char *end = at ? strstr(at + 2, ": ") : NULL; // names of divergences have colons
    if (end) snprintf(field, sizeof field, "%.*s", (int)(end - at - 2), at + 2);
    const char *last = strrchr(field, '.');
    last = last ? last + 1 : field;
    snprintf(key, sizeof key, "%.*s", (int)strcspn(dot + 1, "["), dot + 1);
    if (strcmp(last, key) == 0 || (strcmp(last, "divergences") == 0 && strstr(path, ".divergences."))) return true;
    snprintf(full, sizeof full, "%.*s.%s", (int)strcspn(path, "."), path, key);
    for (size_t i = 0; i < sizeof derived / sizeof derived[0]; i++)
        if (strcmp(derived[i].path, full) == 0 && strcmp(last, derived[i].field) == 0) return true;
    return false;
}

static bool is_float(const cJSON *v)
{
    return cJSON_IsString(v) && (strncmp(v->valuestring, "0x", 2) == 0 || strncmp(v->valuestring, "-0x", 3) == 0 ||
                                 strcmp(v->valuestring, "inf") == 0 || strcmp(v->valuestring, "-inf") == 0);
}

static void set_text(cJSON *v, const char *text)
{
    cJSON_ReplaceItemInArray(v, 0, NULL);
    free(v->valuestring);
    v->valuestring = strdup(text);
}

static void nudge(cJSON *v, double factor)
{
    double x = strtod(v->valuestring, NULL), step = fabs(x) * 0x1p-20;
    char text[64];
    if (isinf(x))
        x = x > 0 ? 1 : -1;
    else
        x += factor * (step > 0 ? step : 0x1p-20);
    snprintf(text, sizeof text, "%a", x);
    set_text(v, text);
}

static const char *other_answer(const char *word)
{
    static const char *const pairs[][2] = {{"yes", "no"},
                                           {"no", "yes"},
                                           {"vacuous", "yes"},
                                           {"inapplicable", "yes"},
                                           {"accepted", "continuation"},
                                           {"continuation", "accepted"},
                                           {"prefill", "accepted"},
                                           {"eos", "length"},
                                           {"length", "eos"},
                                           {"tree", "fixed"},
                                           {"fixed", "tree"},
                                           {"match", "greedy"},
                                           {"path", "all"},
                                           {"all", "path"},
                                           {"exhaustive", "cap:0"},
                                           {"cap:1", "cap:0"},
                                           {"0", "1"},
                                           {"1", "2"},
                                           {"4/5", "2"},
                                           {"7/10", "3"},
                                           {"9/10", "1/10"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pairs[i][0], word) == 0) return pairs[i][1];
    return NULL;
}

// Applies a mutation to a value inside its parent; false when it makes no sense there.
static bool mutate(cJSON *parent, cJSON *v, enum mutation how)
{
    cJSON *a = v->child, *b = a ? a->next : NULL;
    bool enclosure = cJSON_IsArray(v) && a && b && !b->next && is_float(a) && is_float(b);
    if (how <= MINUS && cJSON_IsNumber(v))
        return cJSON_SetNumberHelper(v, v->valuedouble + (how == PLUS ? 1 : -1)), true;
    if (how == FLIP && cJSON_IsBool(v)) return v->type = cJSON_IsTrue(v) ? cJSON_False : cJSON_True, true;
    if ((how == UP || how == DOWN) && is_float(v)) return nudge(v, how == UP ? 1 : -1), true;
    if (how == ANSWER && cJSON_IsString(v) && other_answer(v->valuestring))
        return set_text(v, other_answer(v->valuestring)), true;
    if (how == TEXT && cJSON_IsString(v)) {
        char text[512];
        snprintf(text, sizeof text, "%.500sx", v->valuestring);
        return set_text(v, text), true;
    }
    if (how == NUL) return cJSON_IsNull(v) ? false : cJSON_ReplaceItemViaPointer(parent, v, cJSON_CreateNull()) != 0;
    if (how == REMOVE)
        return cJSON_IsObject(parent) ? cJSON_Delete(cJSON_DetachItemViaPointer(parent, v)), true : false;
    if (how == SHORTEN && cJSON_IsArray(v) && a) return cJSON_DeleteItemFromArray(v, cJSON_GetArraySize(v) - 1), true;
    if (how == LENGTHEN && cJSON_IsArray(v) && a)
        return cJSON_AddItemToArray(v, cJSON_Duplicate(cJSON_GetArrayItem(v, cJSON_GetArraySize(v) - 1), 1)) != 0;
    if (!enclosure || how < SHIFT) return false;
    if (how == SHIFT) return nudge(a, 1), nudge(b, 1), true;
    if (how == WIDEN) return nudge(a, -1), nudge(b, 1), true;
    if (how == SWAP) {
        char *text = a->valuestring;
        a->valuestring = b->valuestring;
        b->valuestring = text;
        return strcmp(a->valuestring, b->valuestring) != 0;
    }
    if (how == ENDLESS) return set_text(a, "0x0p+0"), set_text(b, "inf"), true;
    return set_text(a, "nan"), true;
}

static void judge(const char *path, enum mutation how, size_t line, const char *file)
{
    struct hm_check_result r;
    hm_check_log(file, NULL, &r);
    const char *may = free_to(path, how);
    bool refuted = r.kind == HM_CHECK_REFUTED || r.kind == HM_CHECK_UNREADABLE;
    tally.made++;
    assert_true(r.exit_code == (r.kind == HM_CHECK_REFUTED      ? 1
                                : r.kind == HM_CHECK_UNREADABLE ? 2
                                : r.kind == HM_CHECK_PROVED     ? 0
                                                                : 3));
    if (refuted && !named(path, r.message) && !may) {
        tally.misnamed++;
        printf("%s line %zu: %s (%s): not named: %s\n", current->name, line + 1, path, names[how], r.message);
    }
    if (!may && strcmp(current->name, "special") == 0 && strstr(path, ".tied_")) may = "equal tokens fall either way";
    if (!may && strcmp(current->name, "stopped") == 0 &&
        (strcmp(path, "header.nodes") == 0 || strcmp(path, "header.margin") == 0))
        may = "a log without trees and levels";
    if (strstr(path, ".shard")) assert_int_not_equal(r.kind, HM_CHECK_PROVED);
    if (may) {
        tally.free_caught += refuted;
    } else if (refuted) {
        tally.caught++;
    } else if (r.kind == HM_CHECK_UNDECIDED && strstr(path, "undecided")) {
        tally.open++;
    } else {
        tally.survived++;
        if (!structural)
            printf("%s line %zu: %s (%s): survived: %s\n", current->name, line + 1, path, names[how], r.message);
    }
}

static void walk(size_t line, const cJSON *parent, const int *at, int depth, const char *path)
{
    int index = 0, here[16];
    const cJSON *v;
    memcpy(here, at, (size_t)depth * sizeof *here);
    cJSON_ArrayForEach(v, parent)
    {
        char name[256], file[512];
        here[depth] = index++;
        snprintf(name, sizeof name, v->string ? "%s.%s" : "%s[]", path, v->string ? v->string : "");
        if (v->string && strcmp(v->string, "radius") == 0)
            lower_bound = strcmp(cJSON_GetArrayItem(v, 1)->valuestring, "inf") == 0;
        if (cJSON_IsArray(v) && cJSON_GetArraySize(v) == 2 && cJSON_IsString(cJSON_GetArrayItem(v, 1)))
            infinite = strcmp(cJSON_GetArrayItem(v, 1)->valuestring, "inf") == 0;
        // Claims are those of other logs, which show all that can be wrong with them.
        if (claims_apart && v->string && strcmp(v->string, "claims") == 0 && depth == 0 && line > 0) continue;
        for (int how = 0; how < MUTATIONS && (!only || strncmp(only, name, strlen(name)) == 0); how++) {
            cJSON *copy = cJSON_Duplicate(current->line[line], 1), *whole = current->line[line], *inside = copy;
            for (int i = 0; i < depth; i++) inside = cJSON_GetArrayItem(inside, here[i]);
            bool made = mutate(inside, cJSON_GetArrayItem(inside, here[depth]), (enum mutation)how);
            if (made && (!only || strcmp(only, name) == 0) && !enough(name, (enum mutation)how) &&
                turn++ % stride == 0) {
                current->line[line] = copy;
                test_log_refresh(current, line);
                snprintf(file, sizeof file, "%s", test_path("mutant.jsonl"));
                test_log_write(current, file, -1);
                judge(name, (enum mutation)how, line, file);
                current->line[line] = whole;
                test_log_refresh(current, line);
            }
            cJSON_Delete(copy);
        }
        if (v->child) walk(line, v, here, depth + 1, name);
    }
}

static void mutate_log(const char *name)
{
    struct tally before = tally;
    int at[16] = {0};
    current = test_log_read(name);
    memset(sorts, 0, sizeof sorts);
    for (size_t i = 0; i < current->count; i++) {
        const cJSON *kind = cJSON_GetObjectItemCaseSensitive(current->line[i], "kind");
        walk(i, current->line[i], at, 0, kind->valuestring);
    }
    printf("%-16s %zu mutants, %zu caught\n", name, tally.made - before.made,
           tally.caught - before.caught + tally.free_caught - before.free_caught);
    test_log_free(current);
}

static void every_field(void **state)
{
    (void)state;
    test_copy_rows();
    structural = false;
    const char *one = getenv("HM_MUTATE"); // one log only
    stride = test_count(16, 1, 1);
    for (int i = 0; test_logs[i]; i++) {
        most = test_count(1, i < 5 ? 2 : 1, 1 << 20);
        if (strcmp(test_logs[i], "standard") == 0) claims_apart = test_count(1, 1, 0) != 0; // from here on
        if (strcmp(test_logs[i], "hashed") != 0 && (!one || strcmp(one, test_logs[i]) == 0)) mutate_log(test_logs[i]);
    }
    printf("%zu mutants: %zu of proved fields caught, %zu left open, %zu survived, %zu misnamed; %zu of free fields "
           "caught\n",
           tally.made, tally.caught, tally.open, tally.survived, tally.misnamed, tally.free_caught);
    assert_int_equal(tally.survived, 0);
    assert_int_equal(tally.misnamed, 0);
    if (!one) assert_true(tally.caught > 3000 / stride);
    stride = 1;
    claims_apart = false;
}

// Without rows these must still be refuted: they contradict the rest of the log.
static const char *const kept[] = {
    "step.sequence",      "step.t",         "step.round",   "step.source", "step.node",       "step.depth",
    "node.node",          "round.sequence", "round.round",  "round.t",     "step.claims[].m", "step.claims[].m_from",
    "step.claims[].rule", "end.sequences",  "end.rounds",   "end.steps",   "end.nodes",       "end.verdicts[].klf.yes",
    "step.finish",        "header.top",     "header.claims"};

static void without_rows(void **state)
{
    (void)state;
    test_drop_rows();
    structural = true;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        for (size_t j = 0; j < (size_t)test_log_count; j += test_count(13, 3, 3)) {
            int at[16] = {0};
            current = test_log_read(test_logs[j]);
            only = kept[i];
            tally = (struct tally){0};
            memset(sorts, 0, sizeof sorts);
            for (size_t k = 0; k < current->count; k++)
                walk(k, current->line[k], at, 0,
                     cJSON_GetObjectItemCaseSensitive(current->line[k], "kind")->valuestring);
            test_log_free(current);
            if (tally.survived)
                printf("%s: %zu of %zu mutants of %s survived\n", test_logs[j], tally.survived, tally.made, kept[i]);
            assert_int_equal(tally.survived, 0);
        }
    }
    only = NULL;
}

static void drop_repeat_swap(void **state)
{
    (void)state;
    size_t made = 0, step = test_count(11, 1, 1);
    test_copy_rows();
    for (int i = 0; test_logs[i]; i++) {
        struct test_log *log = test_log_read(test_logs[i]);
        struct hm_check_result r;
        char file[512];
        snprintf(file, sizeof file, "%s", test_path("mutant.jsonl"));
        for (size_t j = 0; j + 1 < log->count; j += step, made += 3) {
            test_log_write(log, file, (long)j); // dropped
            hm_check_log(file, NULL, &r);
            if (r.exit_code != 1 && r.exit_code != 2) fail_msg("%s: line %zu dropped: %s", log->name, j + 1, r.message);
            char *body = log->body[j + 1]; // repeated in place of the next
            log->body[j + 1] = log->body[j];
            test_log_write(log, file, -1);
            hm_check_log(file, NULL, &r);
            if (r.exit_code != 1 && r.exit_code != 2)
                fail_msg("%s: line %zu repeated: %s", log->name, j + 1, r.message);
            log->body[j] = body; // and swapped with it
            test_log_write(log, file, -1);
            hm_check_log(file, NULL, &r);
            if (r.exit_code != 1 && r.exit_code != 2)
                fail_msg("%s: lines %zu and %zu swapped: %s", log->name, j + 1, j + 2, r.message);
            log->body[j] = log->body[j + 1];
            log->body[j + 1] = body;
        }
        test_log_free(log);
    }
    printf("%zu logs with a record dropped, repeated or swapped: all caught\n", made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drop_repeat_swap), cmocka_unit_test(every_field),
                                       cmocka_unit_test(without_rows)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    test_drop_folder();
    return rc;
}
