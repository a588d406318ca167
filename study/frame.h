// The bytes of a recording (docs/study.md, "Format"), private to its writer and reader: little-endian whole numbers,
// IEEE doubles and floats as their bits, texts with a length.
#ifndef HM_STUDY_FRAME_H
#define HM_STUDY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hm_frame_kind { HM_FRAME_HEADER = 1, HM_FRAME_SEQUENCE = 2, HM_FRAME_ROUND = 3 };

enum {
    HM_FRAME_MAGIC_BYTES = 8,
    HM_FRAME_CHECKSUM = 8,            // the first bytes of the SHA-256 of kind, length and payload
    HM_FRAME_HEAD = 4 + 4 + HM_FRAME_CHECKSUM, // kind, payload length, checksum
    HM_FRAME_LARGEST = 16 << 20,      // payload bytes
};

extern const char hm_frame_magic[HM_FRAME_MAGIC_BYTES];

// A payload being written.
struct hm_frame_out {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed; // memory ran out
};

void hm_frame_put(struct hm_frame_out *out, const void *bytes, size_t size);
void hm_frame_put_u8(struct hm_frame_out *out, uint8_t value);
void hm_frame_put_u32(struct hm_frame_out *out, uint32_t value);
void hm_frame_put_u64(struct hm_frame_out *out, uint64_t value);
void hm_frame_put_float(struct hm_frame_out *out, float value);
void hm_frame_put_double(struct hm_frame_out *out, double value);
void hm_frame_put_text(struct hm_frame_out *out, const char *text); // length in one byte

// A payload being read. A read beyond the end gives zeros and sets `over`.
struct hm_frame_in {
    const uint8_t *bytes;
    size_t size, at;
    bool over;
};

uint8_t hm_frame_u8(struct hm_frame_in *in);
uint32_t hm_frame_u32(struct hm_frame_in *in);
uint64_t hm_frame_u64(struct hm_frame_in *in);
float hm_frame_float(struct hm_frame_in *in);
double hm_frame_double(struct hm_frame_in *in);

#endif
