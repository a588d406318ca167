// What a source gives, as text: see source_dump.h.
#include "tests/source_dump.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 24 };

struct hm_source_options test_source_options(void)
{
    return (struct hm_source_options){.printing = HM_PRINTING_ROUNDED, .allowance = HM_ALLOWANCE_DEFAULT};
}

static void dump_text(FILE *f, const char *text, size_t size)
{
    if (!text) {
        fputc('-', f);
        return;
    }
    fputc('"', f);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        fprintf(f, c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? "\\x%02x" : "%c", c);
    }
    fputc('"', f);
}

static void dump_sequence(FILE *f, const struct hm_source_sequence *s)
{
    fprintf(f, "sequence %" PRIu32 " id \"%s\" model \"%s\" category \"%s\" temperature %s drafted %" PRId64 " accepted %" PRId64,
            s->number, s->id, s->model, s->category, s->temperature ? s->temperature : "-", s->draft_tokens, s->accepted_tokens);
    if (!s->prompt) fprintf(f, " prompt -");
    else fprintf(f, " prompt [%zu]", s->prompt_length);
    for (size_t i = 0; s->prompt && i < s->prompt_length; i++) fprintf(f, " %" PRId32, s->prompt[i]);
    fputc('\n', f);
}

static void dump_place(FILE *f, size_t entry)
{
    if (entry == HM_UNSEEN) fputc('-', f);
    else fprintf(f, "%zu", entry);
}

static void dump_floats(FILE *f, const char *name, const float *values, size_t count, size_t most)
{
    fprintf(f, "    %s", name);
    for (size_t i = 0; i < count && i < most; i++) fprintf(f, " %.6g", (double)values[i]);
    fputc('\n', f);
}

static void dump_row(FILE *f, const struct hm_source_token *t, size_t most)
{
    const struct hm_evidence *row = &t->row;
    fprintf(f, " %s vocab %zu ranked %zu emitted ", row->unit == HM_UNIT_LOGIT ? "logits" : "log-probabilities", row->vocab,
            row->ranked);
    dump_place(f, row->emitted);
    if (row->support) fprintf(f, " support %zu", row->support);
    if (row->processed) fprintf(f, " processed");
    fputc('\n', f);
    if (row->logits) dump_floats(f, "row", row->logits, row->vocab, most);
    for (size_t i = 0; i < row->count && i < most; i++) {
        const struct hm_evidence_entry *e = &row->entry[i];
        fprintf(f, "    %" PRId32 " ", e->id);
        dump_text(f, e->text, e->text_size);
        fprintf(f, " [%.6g, %.6g]\n", e->value.lo, e->value.hi);
    }
}

static void dump_token(FILE *f, const struct hm_source_token *t, size_t most)
{
    fprintf(f, "%s %" PRIu32 ".%" PRIu32 " id %" PRId32 " text ", t->of_prompt ? "prompt" : "token", t->sequence, t->t, t->token);
    dump_text(f, t->text, t->text_size);
    if (t->width) fprintf(f, " width %" PRId32, t->width);
    fprintf(f, " at \"%s\"", t->where);
    if (t->has_row) dump_row(f, t, most);
    else fprintf(f, " without row: %s\n", hm_missing_name(t->missing));
    if (t->draft_logits) dump_floats(f, "draft", t->draft_logits, t->row.vocab, most);
}

static void dump_event(FILE *f, const struct hm_event *e, size_t most)
{
    if (e->kind == HM_EVENT_SEQUENCE) dump_sequence(f, e->sequence);
    if (e->kind == HM_EVENT_TOKEN) dump_token(f, e->token, most);
    if (e->kind == HM_EVENT_FINDING)
        fprintf(f, "finding %s %" PRId64 ".%" PRId64 " at \"%s\": %s\n", hm_finding_name(e->finding->kind), e->finding->sequence,
                e->finding->t, e->finding->where, e->finding->what);
}

char *test_source_dump(const char *path, const struct hm_source_options *options, size_t most)
{
    struct hm_source_file *source;
    struct hm_error err = {.message = ""};
    struct hm_event event = {.kind = HM_EVENT_TOKEN};
    char *text = NULL;
    size_t size = 0, folder = strlen(path);
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    while (folder > 0 && path[folder - 1] != '/') folder--;
    hm_status rc = hm_source_open(path, options, &source, &err);
    if (rc) assert_null(source);
    else fprintf(f, "%s by %s\n", hm_format_name(hm_source_format(source)), hm_source_decided_by(source));
    while (!rc && event.kind != HM_EVENT_END) {
        rc = hm_source_next(source, &event, &err);
        if (!rc) dump_event(f, &event, most);
    }
    if (rc) {
        assert_int_equal(rc, err.code);
        fprintf(f, "error %s\n", strncmp(err.message, path, folder) == 0 ? err.message + folder : err.message);
    } else { // for ever after
        assert_int_equal(hm_source_next(source, &event, &err), HM_OK);
        assert_int_equal(event.kind, HM_EVENT_END);
    }
    hm_source_close(source);
    assert_int_equal(fclose(f), 0);
    return text;
}

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    if (hm_file_read(path, 1 << 24, &text, &size, NULL)) return NULL;
    return text;
}

void test_source_compare(const char *path, const char *expected_path, const struct hm_source_options *options)
{
    const char *update = getenv("HM_UPDATE");
    char *found = test_source_dump(path, options, ENTRIES);
    if (update && update[0] == '1') {
        FILE *f = fopen(expected_path, "w");
        assert_non_null(f);
        fputs(found, f);
        assert_int_equal(fclose(f), 0);
    }
    char *expected = read_text(expected_path);
    if (!expected) fail_msg("%s: not there; HM_UPDATE=1 writes it", expected_path);
    if (strcmp(found, expected) != 0) {
        size_t at = 0, line = 1;
        while (found[at] == expected[at]) line += found[at++] == '\n';
        while (at > 0 && found[at - 1] != '\n') at--;
        fail_msg("%s: line %zu: expected \"%.*s\", found \"%.*s\"", expected_path, line, (int)strcspn(expected + at, "\n"),
                 expected + at, (int)strcspn(found + at, "\n"), found + at);
    }
    free(expected);
    free(found);
}
