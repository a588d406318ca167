// Recordings of pools: what is written is read; whatever else is in a file gives an error that names the place, or ends
// the reading where the file was cut.
#include "base/file.h"
#include "study/frame.h"
#include "study/recording.h"
#include "tests/study_support.h"
#include "tests/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const struct hm_recording_header head = {
    .target = "toy target", .drafter = "toy draft", .task = "a task", .temperature = "7/10", .probability_temperature = "7/10",
    .top_p = "9/10", .top_k = 40, .vocab = STUDY_VOCAB, .width = 10, .depth = 7, .budget = 59, .seed = UINT64_MAX - 3};

static void write_rounds(const struct study_round *rounds, size_t count)
{
    struct hm_recording_writer *w;
    assert_int_equal(hm_recording_create(path, &head, &w, NULL), HM_OK);
    for (size_t i = 0; i < count; i++) {
        struct hm_recording_sequence s = {.sequence = (uint32_t)(i / 2), .turn = i > 1, .id = i > 1 ? "prompt 9" : "",
                                          .category = "stem"};
        struct hm_recording_round r = rounds[i].round;
        r.sequence = s.sequence;
        r.round = r.t = (uint32_t)(i % 2);
        if (i % 2 == 0) assert_int_equal(hm_recording_add_sequence(w, &s, NULL), HM_OK);
        assert_int_equal(hm_recording_add_round(w, &r, NULL), HM_OK);
    }
    assert_int_equal(hm_recording_finish(w, NULL), HM_OK);
}

static void check_substitute(const struct hm_substitute *a, const struct hm_substitute *b, size_t first_level)
{
    assert_int_equal(a->address, b->address);
    if (a->address == HM_ADDRESS_NONE) return;
    assert_int_equal(a->age, b->age);
    assert_int_equal(a->argmax, b->argmax);
    assert_true(a->tv == b->tv);
    assert_memory_equal(a->p, b->p, first_level * sizeof *a->p);
}

// Reads whatever the file holds; returns how many rounds came whole.
static size_t read_all(const struct study_round *rounds, hm_status *rc, bool *truncated, struct hm_error *err)
{
    struct hm_recording *r;
    const struct hm_recording_sequence *sequence;
    const struct hm_recording_round *round;
    size_t n = 0;
    *truncated = false;
    *rc = hm_recording_open(path, &r, err);
    if (*rc) return 0;
    for (;; n++) {
        *rc = hm_recording_next(r, &sequence, &round, err);
        if (*rc || !round) break;
        if (!rounds) continue;
        const struct hm_recording_round *e = &rounds[n].round;
        assert_int_equal(sequence->sequence, n / 2);
        assert_int_equal(round->sequence, n / 2);
        assert_int_equal(sequence->turn, n > 1);
        assert_string_equal(sequence->id, n > 1 ? "prompt 9" : "");
        assert_string_equal(sequence->category, "stem");
        assert_int_equal(round->root, e->root);
        assert_int_equal(round->length, e->length);
        assert_int_equal(round->accepted, e->accepted);
        assert_int_equal(round->count, e->count);
        assert_int_equal(round->first_level, e->first_level);
        assert_int_equal(round->matched, e->matched);
        if (e->count) {
            assert_memory_equal(round->token, e->token, e->count * sizeof *e->token);
            assert_memory_equal(round->parent, e->parent, e->count * sizeof *e->parent);
            assert_memory_equal(round->logq, e->logq, e->count * sizeof *e->logq);
            assert_memory_equal(round->p, e->p, e->count * sizeof *e->p);
        }
        assert_memory_equal(round->argmax, e->argmax, (e->count + 1) * sizeof *e->argmax);
        check_substitute(&round->cached, &e->cached, e->first_level);
        check_substitute(&round->preceding, &e->preceding, e->first_level);
    }
    *truncated = hm_recording_truncated(r);
    hm_recording_close(r);
    return n;
}

static struct study_round rounds[4];

static void fill_all(uint64_t *random, size_t most)
{
    for (size_t i = 0; i < 4; i++) {
        study_fill(random, &rounds[i], test_below(random, most), 6);
        rounds[i].round.accepted = (int32_t)test_below(random, 9) - 1;
        rounds[i].round.matched = (enum hm_matched)test_below(random, 3);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    uint64_t random = test_seed("round trip");
    for (size_t i = 0; i < test_count(10, 100, 500); i++) {
        hm_status rc;
        bool truncated;
        struct hm_recording *r;
        fill_all(&random, 200);
        write_rounds(rounds, 4);
        assert_int_equal(read_all(rounds, &rc, &truncated, NULL), 4);
        assert_int_equal(rc, HM_OK);
        assert_false(truncated);
        assert_int_equal(hm_recording_open(path, &r, NULL), HM_OK);
        const struct hm_recording_header *h = hm_recording_head(r);
        assert_string_equal(h->target, head.target);
        assert_string_equal(h->drafter, head.drafter);
        assert_string_equal(h->task, head.task);
        assert_string_equal(h->temperature, head.temperature);
        assert_string_equal(h->probability_temperature, head.probability_temperature);
        assert_string_equal(h->top_p, head.top_p);
        assert_true(h->top_k == 40 && h->vocab == STUDY_VOCAB && h->width == 10 && h->depth == 7 && h->budget == 59);
        assert_true(h->seed == head.seed);
        hm_recording_close(r);
    }
}

static void put_bytes(const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void every_cut_is_seen_and_costs_only_the_tail(void **state)
{
    (void)state;
    uint64_t random = test_seed("cuts");
    char *bytes;
    size_t size, last = 0;
    fill_all(&random, 12);
    write_rounds(rounds, 4);
    assert_int_equal(hm_file_read(path, 1 << 20, &bytes, &size, NULL), HM_OK);
    for (size_t cut = 0; cut <= size; cut++) {
        hm_status rc;
        bool truncated;
        put_bytes(bytes, cut);
        size_t n = read_all(rounds, &rc, &truncated, NULL);
        assert_true(n >= last); // longer files hold no less
        last = n;
        if (rc) assert_int_equal(n, 0); // not even a header
        else if (n == 4) assert_true(cut == size && !truncated);
    }
    assert_int_equal(last, 4);
    free(bytes);
}

// Where the frame begins that holds the byte; *end: where it ends.
static size_t frame_of(const char *bytes, size_t size, size_t at, size_t *end)
{
    size_t begin = HM_FRAME_MAGIC_BYTES;
    for (;;) {
        struct hm_frame_in in = {.bytes = (const uint8_t *)bytes + begin + 4, .size = 4};
        *end = begin + HM_FRAME_HEAD + hm_frame_u32(&in);
        assert_true(*end <= size);
        if (at < *end) return begin;
        begin = *end;
    }
}

// An error; but a changed length may reach beyond the end, and the last frame counts as torn.
static void a_changed_byte_is_never_read(void **state)
{
    (void)state;
    uint64_t random = test_seed("changes");
    char *bytes;
    size_t size;
    fill_all(&random, 12);
    write_rounds(rounds, 4);
    assert_int_equal(hm_file_read(path, 1 << 20, &bytes, &size, NULL), HM_OK);
    for (size_t at = 0; at < size; at++) {
        hm_status rc;
        bool truncated;
        size_t end, begin = frame_of(bytes, size, at, &end);
        bool may_be_torn = end == size || (at >= begin + 4 && at < begin + 8);
        char was = bytes[at];
        bytes[at] = (char)(was ^ (1 << test_below(&random, 8)));
        put_bytes(bytes, size);
        size_t n = read_all(rounds, &rc, &truncated, NULL); // whatever is read compares equal
        assert_true(n < 4 && (rc || (truncated && may_be_torn)));
        bytes[at] = was;
    }
    free(bytes);
}

// ---- what a file may not say, though its checksums are right

static void set_token(struct study_round *s) { s->token[1] = STUDY_VOCAB; }
static void set_negative_token(struct study_round *s) { s->token[1] = -1; }
static void set_parent(struct study_round *s) { s->parent[1] = 1; }
static void set_early_parent(struct study_round *s) { s->parent[1] = -2; }
static void set_positive_logq(struct study_round *s) { s->logq[0] = 1; }
static void set_nan_logq(struct study_round *s) { s->logq[0] = NAN; }
static void set_large_p(struct study_round *s) { s->p[0] = 1.5; }
static void set_nan_p(struct study_round *s) { s->p[0] = NAN; }
static void set_sum(struct study_round *s)
{
    s->parent[1] = -1;
    s->p[0] = s->p[1] = 0.75;
    s->round.first_level = 0;
    for (size_t i = 0; i < s->round.count; i++) s->round.first_level += s->parent[i] < 0;
}
static void set_twin(struct study_round *s)
{
    set_sum(s);
    s->p[0] = s->p[1] = 0;
    s->token[1] = s->token[0];
}
static void set_argmax(struct study_round *s) { s->argmax[2] = STUDY_VOCAB; }
static void set_root(struct study_round *s) { s->round.root = -5; }
static void set_accepted(struct study_round *s) { s->round.accepted = -2; }
static void set_matched(struct study_round *s) { s->round.matched = (enum hm_matched)3; }
static void set_address(struct study_round *s) { s->round.cached.address = (enum hm_address_class)9; }
static void set_tv(struct study_round *s)
{
    s->round.cached.address = HM_ADDRESS_EARLIER;
    s->round.cached.tv = 1.01;
    s->round.cached.argmax = 3;
    for (size_t i = 0; i < s->round.first_level; i++) s->cached[i] = 0;
}
static void set_other_p(struct study_round *s)
{
    set_tv(s);
    s->cached[0] = -0.5;
}
static void set_other_argmax(struct study_round *s)
{
    set_tv(s);
    s->round.cached.argmax = -1;
}
static void set_first_level(struct study_round *s)
{
    set_tv(s);
    s->round.cached.tv = 0;
    s->cached[s->round.first_level++] = 0; // one number too many is written
}

static void impossible_values_are_named(void **state)
{
    (void)state;
    static const struct {
        void (*set)(struct study_round *s);
        const char *expected;
    } faults[] = {
        {set_token, "token: expected one of the vocabulary, found 1000"},
        {set_negative_token, "token: expected one of the vocabulary, found -1"},
        {set_parent, "parent: expected an earlier candidate, found 1"},
        {set_early_parent, "parent: expected an earlier candidate, found -2"},
        {set_positive_logq, "log q: expected at most 0, found 1"},
        {set_nan_logq, "log q: expected at most 0, found nan"},
        {set_large_p, "p: expected 0 to 1, found 1.5"},
        {set_nan_p, "p: expected 0 to 1, found nan"},
        {set_sum, "probabilities of siblings: expected a sum of at most 1, found 1.5"},
        {set_twin, "tokens of siblings: expected each once"},
        {set_argmax, "argmax: expected one of the vocabulary, found 1000"},
        {set_root, "root: expected one of the vocabulary, found -5"},
        {set_accepted, "accepted: expected -1 or more, found -2"},
        {set_matched, "matched: expected 0, 1 or 2, found 3"},
        {set_address, "address class: expected 0 to 4, found 9"},
        {set_tv, "total variation: expected 0 to 1, found 1.01"},
        {set_other_p, "p of another row: expected 0 to 1, found -0.5"},
        {set_other_argmax, "argmax of another row: expected one of the vocabulary, found -1"},
        {set_first_level, "bytes after the last field: expected none, found "},
    };
    uint64_t random = test_seed("impossible values");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        hm_status rc;
        bool truncated;
        struct hm_error err;
        study_fill(&random, &rounds[0], 6, 3);
        study_fill(&random, &rounds[1], 6, 3);
        rounds[1].round.preceding.address = HM_ADDRESS_NONE;
        while (rounds[1].parent[2] < 0 || rounds[1].parent[3] < 0) study_fill(&random, &rounds[1], 6, 3);
        rounds[1].round.preceding.address = HM_ADDRESS_NONE;
        faults[i].set(&rounds[1]);
        write_rounds(rounds, 2);
        assert_int_equal(read_all(NULL, &rc, &truncated, &err), 1);
        assert_int_equal(rc, HM_FORMAT);
        if (!strstr(err.message, faults[i].expected) || !strstr(err.message, path) || !strstr(err.message, "frame at offset "))
            fail_msg("expected \"%s\", found \"%s\"", faults[i].expected, err.message);
    }
}

// A file made of bytes that look like frames: nothing but errors, no crash, no large allocation.
static void random_frames_are_refused(void **state)
{
    (void)state;
    uint64_t random = test_seed("random frames");
    char *bytes;
    size_t size;
    fill_all(&random, 12);
    write_rounds(rounds, 4);
    assert_int_equal(hm_file_read(path, 1 << 20, &bytes, &size, NULL), HM_OK);
    for (size_t i = 0; i < test_count(100, 1000, 10000); i++) {
        hm_status rc;
        bool truncated;
        size_t n = test_below(&random, size);
        char *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (size_t j = 0; j < 1 + test_below(&random, 8); j++) copy[8 + test_below(&random, size - 8)] = (char)test_random(&random);
        put_bytes(copy, n);
        read_all(NULL, &rc, &truncated, NULL);
        free(copy);
    }
    free(bytes);
}

// What a header says is allocated for and looped over.
static void headers_are_bounded(void **state)
{
    (void)state;
    static const struct {
        uint32_t vocab, width, depth;
        const char *expected; // NULL: it is read
    } cases[] = {{2, 64, 64, NULL},
                 {2, 1, 0, NULL},
                 {2, 65, 7, "width: expected 1 to 64, found 65"},
                 {2, 0, 7, "width: expected 1 to 64, found 0"},
                 {2, UINT32_MAX, 7, "width: expected 1 to 64, found 4294967295"},
                 {2, 10, 65, "depth: expected 0 to 64, found 65"},
                 {1, 10, 7, "vocabulary: expected 2 to 16777216, found 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hm_recording_header header = head;
        struct hm_recording_writer *writer;
        struct hm_recording *recording;
        struct hm_error err;
        header.vocab = cases[i].vocab;
        header.width = cases[i].width;
        header.depth = cases[i].depth;
        assert_int_equal(hm_recording_create(path, &header, &writer, &err), HM_OK);
        assert_int_equal(hm_recording_finish(writer, &err), HM_OK);
        hm_status rc = hm_recording_open(path, &recording, &err);
        assert_int_equal(rc, cases[i].expected ? HM_FORMAT : HM_OK);
        if (cases[i].expected && !strstr(err.message, cases[i].expected)) fail_msg("expected \"%s\", found \"%s\"", cases[i].expected, err.message);
        hm_recording_close(recording);
    }
}

static void other_files_are_told(void **state)
{
    (void)state;
    hm_status rc;
    bool truncated;
    struct hm_error err;
    put_bytes("{\"kind\":\"run\"}\n", 15);
    read_all(NULL, &rc, &truncated, &err);
    assert_int_equal(rc, HM_FORMAT);
    assert_non_null(strstr(err.message, "expected a recording of pools"));
    put_bytes(hm_frame_magic, HM_FRAME_MAGIC_BYTES);
    read_all(NULL, &rc, &truncated, &err);
    assert_int_equal(rc, HM_FORMAT);
    assert_non_null(strstr(err.message, "expected a whole header after the first 8 bytes, found the end of the file"));
    struct hm_recording *r;
    assert_int_equal(hm_recording_open("/nowhere/run.pool", &r, &err), HM_IO);
    assert_non_null(strstr(err.message, "/nowhere/run.pool: cannot open the recording"));
    struct hm_recording_writer *w;
    assert_int_equal(hm_recording_create("/nowhere/run.pool", &head, &w, &err), HM_IO);
    assert_non_null(strstr(err.message, "/nowhere/run.pool: cannot create the recording"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(every_cut_is_seen_and_costs_only_the_tail),
        cmocka_unit_test(a_changed_byte_is_never_read),
        cmocka_unit_test(impossible_values_are_named),
        cmocka_unit_test(random_frames_are_refused),
        cmocka_unit_test(headers_are_bounded),
        cmocka_unit_test(other_files_are_told),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
