// SHA-256 (FIPS 180-4), by libcrypto.
#ifndef HM_BASE_SHA256_H
#define HM_BASE_SHA256_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HM_SHA256_BYTES = 32, HM_SHA256_HEX = 65 }; // HEX counts the terminating zero

struct hm_sha256; // a hash in progress

hm_status hm_sha256_open(struct hm_sha256 **out, struct hm_error *err);
hm_status hm_sha256_add(struct hm_sha256 *hash, const void *data, size_t size, struct hm_error *err);
hm_status hm_sha256_finish(struct hm_sha256 *hash, uint8_t digest[HM_SHA256_BYTES], struct hm_error *err);
void hm_sha256_close(struct hm_sha256 *hash); // NULL is allowed

// The hash of one buffer.
hm_status hm_sha256(const void *data, size_t size, uint8_t digest[HM_SHA256_BYTES], struct hm_error *err);

// Lower-case hexadecimal digits and a terminating zero.
void hm_sha256_hex(const uint8_t digest[HM_SHA256_BYTES], char hex[HM_SHA256_HEX]);

#ifdef __cplusplus
}
#endif

#endif
