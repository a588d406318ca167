// SHA-256: see sha256.h.
#include "base/sha256.h"

#include <openssl/evp.h>

// struct hm_sha256 is libcrypto's context under our name: one allocation, no wrapper to keep in step.
static EVP_MD_CTX *context(struct hm_sha256 *hash)
{
    return (EVP_MD_CTX *)(void *)hash;
}

hm_status hm_sha256_open(struct hm_sha256 **out, struct hm_error *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    *out = NULL;
    if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(ctx);
        return hm_fail(err, HM_MEMORY, "libcrypto cannot start a SHA-256");
    }
    *out = (struct hm_sha256 *)(void *)ctx;
    return HM_OK;
}

hm_status hm_sha256_add(struct hm_sha256 *hash, const void *data, size_t size, struct hm_error *err)
{
    return EVP_DigestUpdate(context(hash), data, size) == 1 ? HM_OK : hm_fail(err, HM_MEMORY, "libcrypto failed in SHA-256");
}

hm_status hm_sha256_finish(struct hm_sha256 *hash, uint8_t digest[HM_SHA256_BYTES], struct hm_error *err)
{
    unsigned n = HM_SHA256_BYTES;
    return EVP_DigestFinal_ex(context(hash), digest, &n) == 1 ? HM_OK
                                                               : hm_fail(err, HM_MEMORY, "libcrypto failed in SHA-256");
}

void hm_sha256_close(struct hm_sha256 *hash)
{
    if (hash) EVP_MD_CTX_free(context(hash));
}

hm_status hm_sha256(const void *data, size_t size, uint8_t digest[HM_SHA256_BYTES], struct hm_error *err)
{
    unsigned n = HM_SHA256_BYTES;
    if (EVP_Digest(data, size, digest, &n, EVP_sha256(), NULL) == 1) return HM_OK;
    return hm_fail(err, HM_MEMORY, "libcrypto failed in SHA-256");
}

void hm_sha256_hex(const uint8_t digest[HM_SHA256_BYTES], char hex[HM_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HM_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * HM_SHA256_BYTES] = 0;
}
