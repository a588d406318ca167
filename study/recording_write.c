// Writing recordings: see recording.h.
#include "study/recording.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "study/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hm_recording_writer {
    FILE *file;
    char *path;
    struct hm_frame_out frame; // kind and length, then the payload; reused
};

static hm_status write_bytes(struct hm_recording_writer *w, const void *bytes, size_t size, struct hm_error *err)
{
    if (fwrite(bytes, 1, size, w->file) == size) return HM_OK;
    return hm_fail(err, HM_IO, "%s: cannot write the recording: %s", w->path, strerror(errno));
}

static void begin(struct hm_recording_writer *w, enum hm_frame_kind kind)
{
    w->frame.size = 0;
    hm_frame_put_u32(&w->frame, kind);
    hm_frame_put_u32(&w->frame, 0);
}

// Writes the frame at hand in one piece: head, checksum, payload.
static hm_status end(struct hm_recording_writer *w, struct hm_error *err)
{
    struct hm_frame_out *f = &w->frame;
    uint8_t digest[HM_SHA256_BYTES];
    if (f->failed) return hm_fail(err, HM_MEMORY, "%s: out of memory for the recording", w->path);
    size_t size = f->size - 8;
    if (size > HM_FRAME_LARGEST)
        return hm_fail(err, HM_RANGE, "%s: expected a frame of at most %d bytes, found %zu", w->path, HM_FRAME_LARGEST,
                       size);
    for (int i = 0; i < 4; i++) f->bytes[4 + i] = (uint8_t)(size >> (8 * i));
    hm_status rc = hm_sha256(f->bytes, f->size, digest, err);
    if (!rc) rc = write_bytes(w, f->bytes, 8, err);
    if (!rc) rc = write_bytes(w, digest, HM_FRAME_CHECKSUM, err);
    if (!rc) rc = write_bytes(w, f->bytes + 8, size, err);
    if (!rc && fflush(w->file)) rc = hm_fail(err, HM_IO, "%s: cannot write the recording: %s", w->path, strerror(errno));
    return rc;
}

static hm_status check_text(const char *path, const char *what, const char *text, struct hm_error *err)
{
    if (strlen(text) <= HM_RECORDING_TEXT_MOST) return HM_OK;
    return hm_fail(err, HM_RANGE, "%s: %s: expected at most %d bytes, found %zu", path, what, HM_RECORDING_TEXT_MOST,
                   strlen(text));
}

static hm_status add_header(struct hm_recording_writer *w, const struct hm_recording_header *h, struct hm_error *err)
{
    const struct {
        const char *what, *text;
    } texts[] = {{"target", h->target}, {"drafter", h->drafter}, {"task", h->task}, {"temperature", h->temperature},
                 {"probability temperature", h->probability_temperature}, {"top-p", h->top_p}};
    struct hm_frame_out *f = &w->frame;
    begin(w, HM_FRAME_HEADER);
    hm_frame_put_u32(f, HM_RECORDING_VERSION);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hm_status rc = check_text(w->path, texts[i].what, texts[i].text, err);
        if (rc) return rc;
        hm_frame_put_text(f, texts[i].text);
    }
    hm_frame_put_u32(f, h->top_k);
    hm_frame_put_u32(f, h->vocab);
    hm_frame_put_u32(f, h->width);
    hm_frame_put_u32(f, h->depth);
    hm_frame_put_u32(f, h->budget);
    hm_frame_put_u64(f, h->seed);
    return end(w, err);
}

hm_status hm_recording_create(const char *path, const struct hm_recording_header *header, struct hm_recording_writer **out,
                              struct hm_error *err)
{
    struct hm_recording_writer *w = hm_calloc(1, sizeof *w);
    *out = NULL;
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return hm_fail(err, HM_MEMORY, "out of memory for a recording");
    }
    hm_status rc = HM_OK;
    if (!hm_file_may_replace(path, hm_frame_magic, sizeof hm_frame_magic))
        rc = hm_fail(err, HM_USAGE, "%s: expected a new file or an old recording to replace, found another kind of file", path);
    if (!rc) w->file = fopen(path, "wb");
    if (!rc && !w->file) rc = hm_fail(err, HM_IO, "%s: cannot create the recording: %s", path, strerror(errno));
    if (!rc) rc = write_bytes(w, hm_frame_magic, sizeof hm_frame_magic, err);
    if (!rc) rc = add_header(w, header, err);
    if (rc) hm_recording_finish(w, NULL);
    else *out = w;
    return rc;
}

hm_status hm_recording_add_sequence(struct hm_recording_writer *w, const struct hm_recording_sequence *s,
                                    struct hm_error *err)
{
    hm_status rc = check_text(w->path, "prompt id", s->id, err);
    if (!rc) rc = check_text(w->path, "category", s->category, err);
    if (rc) return rc;
    begin(w, HM_FRAME_SEQUENCE);
    hm_frame_put_u32(&w->frame, s->sequence);
    hm_frame_put_u32(&w->frame, s->turn);
    hm_frame_put_text(&w->frame, s->id);
    hm_frame_put_text(&w->frame, s->category);
    return end(w, err);
}

static void put_substitute(struct hm_frame_out *f, const struct hm_substitute *s, size_t first_level)
{
    hm_frame_put_u8(f, (uint8_t)s->address);
    if (s->address == HM_ADDRESS_NONE) return;
    hm_frame_put_u32(f, s->age);
    hm_frame_put_u32(f, (uint32_t)s->argmax);
    hm_frame_put_double(f, s->tv);
    for (size_t i = 0; i < first_level; i++) hm_frame_put_double(f, s->p[i]);
}

hm_status hm_recording_add_round(struct hm_recording_writer *w, const struct hm_recording_round *r, struct hm_error *err)
{
    struct hm_frame_out *f = &w->frame;
    if (r->count > HM_RECORDING_CANDIDATES_MOST)
        return hm_fail(err, HM_RANGE, "%s: expected a pool of at most %d candidates, found %zu", w->path,
                       HM_RECORDING_CANDIDATES_MOST, r->count);
    begin(w, HM_FRAME_ROUND);
    const uint32_t numbers[] = {r->sequence, r->round, r->t, r->length, (uint32_t)r->root, (uint32_t)r->accepted,
                                (uint32_t)r->count};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) hm_frame_put_u32(f, numbers[i]);
    for (size_t i = 0; i < r->count; i++) hm_frame_put_u32(f, (uint32_t)r->token[i]);
    for (size_t i = 0; i < r->count; i++) hm_frame_put_u32(f, (uint32_t)r->parent[i]);
    for (size_t i = 0; i < r->count; i++) hm_frame_put_float(f, r->logq[i]);
    for (size_t i = 0; i < r->count; i++) hm_frame_put_double(f, r->p[i]);
    for (size_t i = 0; i <= r->count; i++) hm_frame_put_u32(f, (uint32_t)r->argmax[i]);
    hm_frame_put_u8(f, (uint8_t)r->matched);
    put_substitute(f, &r->cached, r->first_level);
    put_substitute(f, &r->preceding, r->first_level);
    return end(w, err);
}

hm_status hm_recording_finish(struct hm_recording_writer *w, struct hm_error *err)
{
    hm_status rc = HM_OK;
    if (!w) return HM_OK;
    if (w->file && fclose(w->file))
        rc = hm_fail(err, HM_IO, "%s: cannot write the recording: %s", w->path, strerror(errno));
    free(w->frame.bytes);
    free(w->path);
    free(w);
    return rc;
}
