// The counter-based random numbers of a log: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011).  Position, not history, selects a number, so a draft tree cannot change what is drawn.
#ifndef HM_CERTIFY_PHILOX_H
#define HM_CERTIFY_PHILOX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hm_purpose { HM_DRAW_TARGET = 0, HM_DRAW_DRAFT = 1, HM_COIN = 2, HM_DRAW_RESIDUAL = 3 };

// The ten-round block function.
void hm_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// 53 random bits: counter = (sequence, t, purpose, child), key = the low and high word of the seed; the result is the
// upper 53 bits of out[0] * 2^32 + out[1].  u = bits / 2^53.
uint64_t hm_philox_bits(uint64_t seed, uint32_t sequence, uint32_t t, enum hm_purpose purpose, uint32_t child);

#ifdef __cplusplus
}
#endif

#endif
