// The bytes of a recording: see frame.h.
#include "study/frame.h"

#include "base/memory.h"

#include <string.h>

const char hm_frame_magic[HM_FRAME_MAGIC_BYTES] = {'h', 'm', 'p', 'o', 'o', 'l', '\r', '\n'};

void hm_frame_put(struct hm_frame_out *out, const void *bytes, size_t size)
{
    void *grown = out->bytes;
    size_t need;
    if (out->failed || !hm_add_size(out->size, size, &need) || !hm_grow(&grown, &out->capacity, need, 1)) {
        out->failed = true;
        return;
    }
    out->bytes = grown;
    if (size) memcpy(out->bytes + out->size, bytes, size);
    out->size = need;
}

static void put_number(struct hm_frame_out *out, uint64_t value, size_t bytes)
{
    uint8_t little[8];
    for (size_t i = 0; i < bytes; i++) little[i] = (uint8_t)(value >> (8 * i));
    hm_frame_put(out, little, bytes);
}

void hm_frame_put_u8(struct hm_frame_out *out, uint8_t value)
{
    put_number(out, value, 1);
}

void hm_frame_put_u32(struct hm_frame_out *out, uint32_t value)
{
    put_number(out, value, 4);
}

void hm_frame_put_u64(struct hm_frame_out *out, uint64_t value)
{
    put_number(out, value, 8);
}

void hm_frame_put_float(struct hm_frame_out *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(out, bits, 4);
}

void hm_frame_put_double(struct hm_frame_out *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(out, bits, 8);
}

void hm_frame_put_text(struct hm_frame_out *out, const char *text)
{
    size_t size = strlen(text);
    if (size > 255) size = 255; // callers have checked
    hm_frame_put_u8(out, (uint8_t)size);
    hm_frame_put(out, text, size);
}

static uint64_t number(struct hm_frame_in *in, size_t bytes)
{
    uint64_t value = 0;
    if (in->over || in->size - in->at < bytes) {
        in->over = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)in->bytes[in->at + i] << (8 * i);
    in->at += bytes;
    return value;
}

uint8_t hm_frame_u8(struct hm_frame_in *in)
{
    return (uint8_t)number(in, 1);
}

uint32_t hm_frame_u32(struct hm_frame_in *in)
{
    return (uint32_t)number(in, 4);
}

uint64_t hm_frame_u64(struct hm_frame_in *in)
{
    return number(in, 8);
}

float hm_frame_float(struct hm_frame_in *in)
{
    uint32_t bits = hm_frame_u32(in);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double hm_frame_double(struct hm_frame_in *in)
{
    uint64_t bits = hm_frame_u64(in);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
