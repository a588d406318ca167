// Philox 4x32-10: see philox.h.
#include "certify/philox.h"

enum { ROUNDS = 10 };

void hm_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9); // the golden ratio
        k1 += UINT32_C(0xBB67AE85); // sqrt 3 - 1
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t hm_philox_bits(uint64_t seed, uint32_t sequence, uint32_t t, enum hm_purpose purpose, uint32_t child)
{
    uint32_t counter[4] = {sequence, t, (uint32_t)purpose, child};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, out[4];
    hm_philox4x32(counter, key, out);
    return ((uint64_t)out[0] << 32 | out[1]) >> 11;
}
