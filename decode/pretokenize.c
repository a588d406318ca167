// Cuts text into words: see pretokenize.h.
//
// PCRE2's interpreter, not its compiler to machine code: the interpreter counts every step against the limit, so a
// hostile pattern ends in the same error on every machine. The limit of one match starts small and grows while a
// budget proportional to the text lasts.
#include "decode/pretokenize.h"

#include "base/json.h"
#include "base/memory.h"
#include "decode/pretokenize_regex.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 16 };
enum { FIRST_LIMIT = 2000, BUDGET_BASE = 1 << 20, BUDGET_PER_BYTE = 64, HEAP_KIB = 512 * 1024 };

static const char GPT2_PATTERN[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum step_kind { STEP_SPLIT, STEP_DIGITS, STEP_BYTES };

// What becomes of the parts of a piece that the pattern matches.
enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

struct step {
    enum step_kind kind;
    enum behavior behavior;
    bool invert;       // SPLIT: what the pattern does not match counts as matched
    bool prefix_space; // BYTES: a piece that does not begin with a space gets one
    pcre2_code *code;  // SPLIT, and BYTES with use_regex; NULL otherwise
};

struct hm_pretokenizer {
    struct step steps[STEPS_MOST];
    size_t count;
};

struct span {
    size_t start, end; // bytes of the piece
    bool matched;
};

struct hm_pretokenizer_work {
    struct span *spans; // a stack: each step's spans above those of the steps before
    size_t count, capacity;
    pcre2_match_data *match;
    pcre2_match_context *context;
    uint64_t budget; // steps left for matches beyond FIRST_LIMIT
    struct hm_bytes prefixed;
};

struct run {
    const struct hm_pretokenizer *p;
    struct hm_pretokenizer_work *work;
    hm_word_sink *sink;
    void *context;
    struct hm_error *err;
};

// ---- reading

static hm_status read_behavior(const char *where, const cJSON *value, enum behavior *out, struct hm_error *err)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *name;
    hm_status rc = hm_json_string(where, value, "behavior", &name, err);
    if (rc) return rc;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum behavior)i;
            return HM_OK;
        }
    return hm_fail(err, HM_UNSUPPORTED, "%s: pre_tokenizer Split: behavior %s is not supported", where,
                   hm_text_quote(name).text);
}

static hm_status read_split(const char *where, const cJSON *value, struct step *step, struct hm_error *err)
{
    const cJSON *pattern;
    const char *text;
    step->kind = STEP_SPLIT;
    hm_status rc = hm_json_object(where, value, "pattern", &pattern, err);
    if (!rc) rc = read_behavior(where, value, &step->behavior, err);
    if (!rc && hm_json_find(value, "invert")) rc = hm_json_bool(where, value, "invert", &step->invert, err);
    if (rc) return rc;
    bool literal = hm_json_find(pattern, "String") != NULL;
    rc = hm_json_string(where, pattern, literal ? "String" : "Regex", &text, err);
    if (rc) return rc;
    return literal ? hm_regex_literal(where, text, &step->code, err) : hm_regex_compile(where, text, &step->code, err);
}

static hm_status read_bytes(const char *where, const cJSON *value, struct step *step, struct hm_error *err)
{
    bool use_regex = true;
    step->kind = STEP_BYTES;
    step->behavior = ISOLATED;
    hm_status rc = hm_json_bool(where, value, "add_prefix_space", &step->prefix_space, err);
    if (!rc && hm_json_find(value, "use_regex")) rc = hm_json_bool(where, value, "use_regex", &use_regex, err);
    if (!rc && use_regex) rc = hm_regex_compile(where, GPT2_PATTERN, &step->code, err);
    return rc;
}

static hm_status read_step(const char *where, const cJSON *value, struct hm_pretokenizer *p, struct hm_error *err)
{
    const char *type;
    hm_status rc = hm_json_string(where, value, "type", &type, err);
    if (rc) return rc;
    if (strcmp(type, "Sequence") == 0) {
        const cJSON *list;
        rc = hm_json_array(where, value, "pretokenizers", &list, err);
        for (const cJSON *c = rc ? NULL : list->child; c && !rc; c = c->next) rc = read_step(where, c, p, err);
        return rc;
    }
    if (p->count == STEPS_MOST)
        return hm_fail(err, HM_RANGE, "%s: pre_tokenizer: expected at most %d steps", where, STEPS_MOST);
    if (p->count > 0 && p->steps[p->count - 1].kind == STEP_BYTES)
        return hm_fail(err, HM_UNSUPPORTED, "%s: pre_tokenizer: %s after ByteLevel is not supported", where,
                       hm_text_quote(type).text);
    struct step *step = &p->steps[p->count++];
    if (strcmp(type, "Split") == 0) return read_split(where, value, step, err);
    if (strcmp(type, "ByteLevel") == 0) return read_bytes(where, value, step, err);
    if (strcmp(type, "Digits") == 0) {
        bool individual = false;
        if (hm_json_find(value, "individual_digits"))
            rc = hm_json_bool(where, value, "individual_digits", &individual, err);
        step->kind = STEP_DIGITS;
        step->behavior = individual ? ISOLATED : CONTIGUOUS;
        return rc;
    }
    return hm_fail(err, HM_UNSUPPORTED,
                   "%s: pre_tokenizer %s is not supported; hallmark knows ByteLevel, Split, Digits and Sequence", where,
                   hm_text_quote(type).text);
}

hm_status hm_pretokenizer_read(const char *where, const cJSON *value, struct hm_pretokenizer **out,
                               struct hm_error *err)
{
    *out = NULL;
    struct hm_pretokenizer *p = hm_calloc(1, sizeof *p);
    if (!p) return hm_fail(err, HM_MEMORY, "%s: out of memory", where);
    hm_status rc = cJSON_IsObject(value)
                       ? read_step(where, value, p, err)
                       : hm_fail(err, HM_UNSUPPORTED, "%s: pre_tokenizer: expected an object, found %s", where,
                                 hm_json_kind(value));
    if (!rc && (p->count == 0 || p->steps[p->count - 1].kind != STEP_BYTES))
        rc = hm_fail(err, HM_UNSUPPORTED, "%s: pre_tokenizer: expected ByteLevel as its last step", where);
    if (rc)
        hm_pretokenizer_free(p);
    else
        *out = p;
    return rc;
}

void hm_pretokenizer_free(struct hm_pretokenizer *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->count; i++) pcre2_code_free(p->steps[i].code);
    free(p);
}

// ---- scratch space

struct hm_pretokenizer_work *hm_pretokenizer_work_open(size_t size)
{
    struct hm_pretokenizer_work *work = hm_calloc(1, sizeof *work);
    if (!work) return NULL;
    work->match = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    if (!work->match || !work->context) {
        hm_pretokenizer_work_close(work);
        return NULL;
    }
    pcre2_set_heap_limit(work->context, HEAP_KIB);
    work->budget = BUDGET_BASE + (uint64_t)BUDGET_PER_BYTE * size;
    return work;
}

void hm_pretokenizer_work_close(struct hm_pretokenizer_work *work)
{
    if (!work) return;
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->context);
    free(work->spans);
    free(work->prefixed.data);
    free(work);
}

static hm_status push(struct run *run, size_t start, size_t end, bool matched)
{
    struct hm_pretokenizer_work *work = run->work;
    void *grown = work->spans;
    if (!hm_grow(&grown, &work->capacity, work->count + 1, sizeof *work->spans))
        return hm_fail(run->err, HM_MEMORY, "out of memory cutting text into words");
    work->spans = grown;
    work->spans[work->count++] = (struct span){.start = start, .end = end, .matched = matched};
    return HM_OK;
}

// ---- finding matches: spans that cover the piece

// The next match at or after `from`: *found tells whether there is one.
static hm_status search(struct run *run, const pcre2_code *code, const uint8_t *text, size_t size, size_t from,
                        struct span *out, bool *found)
{
    struct hm_pretokenizer_work *work = run->work;
    uint32_t limit = FIRST_LIMIT;
    int rc;
    for (;;) {
        pcre2_set_match_limit(work->context, limit);
        rc = pcre2_match(code, text, size, from, PCRE2_NO_UTF_CHECK, work->match, work->context);
        if (rc != PCRE2_ERROR_MATCHLIMIT || work->budget < limit || limit > UINT32_MAX / 8) break;
        work->budget -= limit;
        limit *= 8;
    }
    *found = rc >= 0;
    if (rc >= 0) {
        const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(work->match);
        out->start = offsets[0];
        out->end = offsets[1];
    } else if (rc == PCRE2_ERROR_NOMEMORY) {
        return hm_fail(run->err, HM_MEMORY, "out of memory matching a pattern of the pre_tokenizer");
    } else if (rc != PCRE2_ERROR_NOMATCH) {
        return hm_fail(run->err, HM_RANGE,
                       "a pattern of the pre_tokenizer runs past its limit of steps at byte %zu of the text", from);
    }
    return HM_OK;
}

static hm_status find_pattern(struct run *run, const struct step *step, const uint8_t *text, size_t size)
{
    size_t covered = 0, from = 0, last_end = SIZE_MAX;
    hm_status rc = HM_OK;
    while (from <= size && !rc) {
        struct span match;
        bool found;
        rc = search(run, step->code, text, size, from, &match, &found);
        if (rc || !found) break;
        if (match.start == match.end && match.end == last_end) { // an empty match right after a match: step over
            int32_t point;
            size_t n = hm_text_next(text + from, size - from, &point);
            from += n ? n : 1;
            continue;
        }
        if (covered < match.start) rc = push(run, covered, match.start, step->invert);
        if (!rc) rc = push(run, match.start, match.end, !step->invert);
        covered = from = last_end = match.end;
    }
    if (!rc && covered < size) rc = push(run, covered, size, step->invert);
    return rc;
}

static hm_status find_digits(struct run *run, const uint8_t *text, size_t size)
{
    size_t covered = 0;
    hm_status rc = HM_OK;
    int32_t point;
    for (size_t at = 0, n; !rc && (n = hm_text_next(text + at, size - at, &point)) > 0; at += n) {
        if (!hm_text_is_numeric(point)) continue;
        if (covered < at) rc = push(run, covered, at, false);
        if (!rc) rc = push(run, at, at + n, true);
        covered = at + n;
    }
    if (!rc && covered < size) rc = push(run, covered, size, false);
    return rc;
}

// ---- applying a behavior to the spans from `base` on

static void merge_forward(struct hm_pretokenizer_work *work, size_t base, enum behavior behavior)
{
    size_t kept = base;
    bool previous = false;
    for (size_t i = base; i < work->count; i++) {
        struct span span = work->spans[i];
        bool joins = behavior == CONTIGUOUS ? span.matched == previous : span.matched && !previous;
        if (joins && kept > base)
            work->spans[kept - 1].end = span.end;
        else
            work->spans[kept++] = span;
        previous = span.matched;
    }
    work->count = kept;
}

static void merge_backward(struct hm_pretokenizer_work *work, size_t base)
{
    size_t kept = work->count;
    bool previous = false;
    for (size_t i = work->count; i-- > base;) {
        struct span span = work->spans[i];
        if (span.matched && !previous && kept < work->count)
            work->spans[kept].start = span.start;
        else
            work->spans[--kept] = span;
        previous = span.matched;
    }
    memmove(work->spans + base, work->spans + kept, (work->count - kept) * sizeof *work->spans);
    work->count -= kept - base;
}

static void apply(struct hm_pretokenizer_work *work, size_t base, enum behavior behavior)
{
    if (work->count == base) return;
    if (behavior == MERGED_WITH_NEXT)
        merge_backward(work, base);
    else if (behavior == MERGED_WITH_PREVIOUS || behavior == CONTIGUOUS)
        merge_forward(work, base, behavior);
}

// ---- running

static hm_status run_step(struct run *run, size_t index, const uint8_t *text, size_t size)
{
    if (index == run->p->count) return run->sink(run->context, text, size, run->err);
    const struct step *step = &run->p->steps[index];
    struct hm_pretokenizer_work *work = run->work;
    if (step->prefix_space && text[0] != ' ') {
        work->prefixed.count = 0;
        if (!hm_bytes_add(&work->prefixed, " ", 1) || !hm_bytes_add(&work->prefixed, text, size))
            return hm_fail(run->err, HM_MEMORY, "out of memory cutting text into words");
        text = work->prefixed.data; // ByteLevel is the last step, so no other piece needs the buffer meanwhile
        size = work->prefixed.count;
    }
    if (step->kind != STEP_DIGITS && !step->code) return run_step(run, index + 1, text, size);
    size_t base = work->count;
    hm_status rc = step->kind == STEP_DIGITS ? find_digits(run, text, size) : find_pattern(run, step, text, size);
    if (rc) return rc;
    apply(work, base, step->behavior);
    size_t end = work->count;
    for (size_t i = base; i < end && !rc; i++) {
        struct span span = work->spans[i];
        if (span.start == span.end || (step->behavior == REMOVED && span.matched)) continue;
        rc = run_step(run, index + 1, text + span.start, span.end - span.start);
    }
    work->count = base;
    return rc;
}

hm_status hm_pretokenizer_run(const struct hm_pretokenizer *p, struct hm_pretokenizer_work *work, const uint8_t *text,
                              size_t size, hm_word_sink *sink, void *context, struct hm_error *err)
{
    if (size == 0) return HM_OK;
    struct run run = {.p = p, .work = work, .sink = sink, .context = context, .err = err};
    work->count = 0;
    return run_step(&run, 0, text, size);
}
