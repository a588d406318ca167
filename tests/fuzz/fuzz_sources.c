// Fuzz target: the bytes of a log of another engine. The first byte says which format it is told to be, or none.
//
// Whatever a file holds, reading it keeps the promises of evidence/source.h: sequences come before their tokens,
// entries and the emitted one are in range, numbers are enclosures, texts lie in memory; an error has a message of one
// line and stays.
#include "base/json_text.h"
#include "evidence/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
    if (!promise) abort();
}

static void check_row(const struct hm_evidence *row)
{
    static volatile size_t sum;
    must(row->ranked <= row->count && (row->emitted == HM_UNSEEN || row->logits || row->emitted < row->count));
    for (size_t i = 0; i < row->count; i++) {
        const struct hm_evidence_entry *e = &row->entry[i];
        must(e->id >= -1 && e->value.lo <= e->value.hi && e->value.hi < INFINITY);
        for (size_t k = 0; e->text && k < e->text_size; k++) sum = sum + (unsigned char)e->text[k];
    }
}

static void check_event(const struct hm_event *event, uint32_t *sequences)
{
    if (event->kind == HM_EVENT_SEQUENCE)
        must(event->sequence->number == (*sequences)++ && event->sequence->id && event->sequence->model);
    if (event->kind == HM_EVENT_TOKEN) {
        must(event->token->sequence < *sequences && event->token->where != NULL);
        if (event->token->has_row)
            check_row(&event->token->row);
        else
            must((unsigned)event->token->missing < HM_MISSINGS);
    }
    if (event->kind == HM_EVENT_FINDING)
        must((unsigned)event->finding->kind < HM_FINDINGS && event->finding->sequence < (int64_t)*sequences &&
             !strchr(event->finding->what, '\n'));
}

static void read_all(struct hm_source_file *source)
{
    struct hm_error err = {0};
    struct hm_event event = {.kind = HM_EVENT_FINDING};
    uint32_t sequences = 0;
    while (event.kind != HM_EVENT_END) {
        if (hm_source_next(source, &event, &err)) {
            must(err.message[0] && !strchr(err.message, '\n') && hm_source_next(source, &event, NULL) == err.code);
            return;
        }
        check_event(&event, &sequences);
    }
}

static void check_json(const char *text, size_t size)
{
    struct hm_json_text value, key;
    struct hm_error err = {0};
    size_t used;
    if (hm_json_text_check(text, size, &value, &used, &err))
        must(value.at == NULL && used <= size && err.message[0]);
    else
        must(used <= size && value.at >= text && value.end <= text + used);
    for (struct hm_json_text v = hm_json_text_first(value, &key); v.at; v = hm_json_text_next(value, v, &key))
        must(v.end < value.end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hm_source_file *source;
    struct hm_error err = {0};
    char path[64];
    int fd = size > 0 ? memfd_create("fuzz", 0) : -1;
    if (fd < 0) return 0;
    unsigned format = data[0] % (HM_FORMATS + 1);
    const struct hm_source_options options = {
        .format = format < HM_FORMATS ? hm_format_name((enum hm_format)format) : NULL,
        .printing = data[0] & 0x40 ? HM_PRINTING_ROUND_TRIP : HM_PRINTING_ROUNDED,
        .prompt_tokens = (data[0] & 0x80) != 0,
        .allowance = HM_ALLOWANCE_DEFAULT,
    };
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    check_json((const char *)data + 1, size - 1);
    if (size == 1 || write(fd, data + 1, size - 1) == (ssize_t)(size - 1)) {
        if (hm_source_open(path, &options, &source, &err) == HM_OK)
            read_all(source);
        else
            must(source == NULL && err.message[0] && !strchr(err.message, '\n'));
        hm_source_close(source);
    }
    close(fd);
    return 0;
}
