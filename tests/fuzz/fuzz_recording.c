// Fuzz target: recordings of pools, and the study of whatever is read from them.
//
// The input is a list of frames, each kind (1 byte), length (2 bytes) and payload; the target gives them magic and
// checksums, which no mutation would find. An accepted round must keep the promises of study/recording.h, and every
// figure made of it must be a number a table can show; a refusal has a message of one line.
#include "base/sha256.h"
#include "study/frame.h"
#include "study/study.h"

#include <math.h>
#include <stdbool.h>
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

// The frames as a file.
static void dress(const uint8_t *data, size_t size, struct hm_frame_out *out)
{
    hm_frame_put(out, hm_frame_magic, HM_FRAME_MAGIC_BYTES);
    for (size_t at = 0; size - at >= 3;) {
        uint8_t head[8] = {data[at], 0, 0, 0, data[at + 1], data[at + 2]}, digest[HM_SHA256_BYTES];
        size_t length = data[at + 1] + 256u * data[at + 2];
        struct hm_frame_out frame = {0};
        at += 3;
        if (length > size - at) length = size - at;
        head[4] = (uint8_t)length;
        head[5] = (uint8_t)(length >> 8);
        hm_frame_put(&frame, head, sizeof head);
        hm_frame_put(&frame, data + at, length);
        must(!frame.failed && hm_sha256(frame.bytes, frame.size, digest, NULL) == HM_OK);
        hm_frame_put(out, head, sizeof head);
        hm_frame_put(out, digest, HM_FRAME_CHECKSUM);
        hm_frame_put(out, data + at, length);
        free(frame.bytes);
        at += length;
    }
    must(!out->failed);
}

// Everything a study makes of it. E[A] is at most the depth of the pool, or 1 where a drawn token counts without one.
static void study(struct hm_recording *recording)
{
    struct hm_study_options options = {.budget = {3, 59}, .budgets = 2, .late = 2, .resamples = 4};
    struct hm_study *study;
    const struct hm_study_cell *cell;
    struct hm_error err = {0};
    size_t count;
    for (int i = 1; i <= HM_STUDY_GROUPS; i++) options.group[i] = i != 4;
    must(hm_study_open(&options, &study, &err) == HM_OK);
    must(hm_study_takes(study, hm_recording_head(recording)));
    if (hm_study_add(study, recording, &err)) must(err.message[0] && !strchr(err.message, '\n'));
    must(hm_study_finish(study, &cell, &count, &err) == HM_OK);
    for (size_t i = 0; i < count; i++) {
        must(!(cell[i].value < -HM_RECORDING_CANDIDATES_MOST));
        must(isnan(cell[i].value) || isinf(cell[i].value) || cell[i].value <= HM_RECORDING_CANDIDATES_MOST);
    }
    hm_study_close(study);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hm_recording *recording;
    struct hm_frame_out file = {0};
    struct hm_error err = {0};
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    dress(data, size, &file);
    if (write(fd, file.bytes, file.size) == (ssize_t)file.size) {
        if (hm_recording_open(path, &recording, &err) == HM_OK) study(recording);
        else must(recording == NULL && err.message[0] && !strchr(err.message, '\n'));
        hm_recording_close(recording);
    }
    free(file.bytes);
    close(fd);
    return 0;
}
