// Opens and closes the CPU device: chooses the instruction set, checks the arithmetic, reserves memory.
#include "kernels/cpu/cpu.h"

#include "base/memory.h"
#include "kernels/cpu/widen.h"

#include <fenv.h>
#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    HUGE_PAGE = 2 << 20,
    SCRATCH_FLOATS = 1 << 20, // per thread, reserved; backed as far as long contexts touch it
    SCRATCH_BYTES = (HM_BLOCK_FLOATS + SCRATCH_FLOATS) * (int)sizeof(float)
};

size_t hm_dtype_bytes(enum hm_dtype dtype)
{
    return dtype == HM_F32 ? 4 : 2;
}

const char *hm_dtype_name(enum hm_dtype dtype)
{
    switch (dtype) {
    case HM_F32: return "F32";
    case HM_F16: return "F16";
    case HM_BF16: return "BF16";
    }
    return "?";
}

void *hm_pages_reserve(size_t bytes)
{
    if (bytes == 0) return NULL;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= 4 * HUGE_PAGE) madvise(pages, bytes, MADV_HUGEPAGE); // a hint: failure changes nothing
#endif
    return pages;
}

void hm_pages_release(void *pages, size_t bytes)
{
    if (pages) munmap(pages, bytes);
}

void hm_cpu_close(struct hm_device *base)
{
    struct hm_cpu_device *device = hm_cpu_device(base);
    unsigned threads = device->pool ? hm_pool_threads(device->pool) : 0;
    for (unsigned i = 0; i < threads && device->scratch; i++) hm_pages_release(device->scratch[i], SCRATCH_BYTES);
    free(device->scratch);
    hm_pool_close(device->pool);
    free(device);
}

static const char *const isa_names[] = {"portable", "avx2", "avx512"};

#if defined(__x86_64__) && defined(HM_KERNELS_X86)
// __builtin_cpu_supports knows "f16c" in newer compilers only. The AVX bits it checks include the system's support.
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static enum hm_isa widest_isa(void)
{
#if defined(__x86_64__) && defined(HM_KERNELS_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return HM_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) return HM_ISA_AVX2;
#endif
    return HM_ISA_PORTABLE;
}

static const struct hm_cpu_kernels *kernels_of(enum hm_isa isa)
{
#if defined(__x86_64__) && defined(HM_KERNELS_X86)
    if (isa == HM_ISA_AVX512) return &hm_cpu_avx512;
    if (isa == HM_ISA_AVX2) return &hm_cpu_avx2;
#endif
    (void)isa;
    return &hm_cpu_portable;
}

// Settles HM_ISA_BEST by the environment and the machine, and refuses what the machine lacks.
static hm_status choose_isa(enum hm_isa *isa, struct hm_error *err)
{
    enum hm_isa widest = widest_isa();
    const char *wish = getenv("HALLMARK_ISA");
    if (*isa == HM_ISA_BEST && wish && *wish) {
        int i = 0;
        while (i < HM_ISA_BEST && strcmp(wish, isa_names[i])) i++;
        if (i == HM_ISA_BEST)
            return hm_fail(err, HM_USAGE, "HALLMARK_ISA: expected portable, avx2 or avx512, found \"%s\"", wish);
        *isa = (enum hm_isa)i;
    }
    if (*isa == HM_ISA_BEST) *isa = widest;
    if (*isa > widest)
        return hm_fail(err, HM_UNSUPPORTED, "instruction set: %s asked for, this machine or build has %s at most",
                       isa_names[*isa], isa_names[widest]);
    return HM_OK;
}

// The bits we promise assume gradual underflow and rounding to nearest. A program or library that was linked with
// -ffast-math may have switched either off for the whole process.
static hm_status check_arithmetic(struct hm_error *err)
{
    volatile float smallest = FLT_MIN, quarter = 0.25f, large = 0x1p60f;
    volatile float subnormal = smallest * quarter;
    if (hm_float_bits(subnormal) == 0) // with DAZ, subnormal == 0 would hold too
        return hm_fail(err, HM_UNSUPPORTED, "floating point: subnormal results are flushed to zero (FTZ)");
    uint32_t bits = 1; // read as an operand, the smallest subnormal
    volatile float operand = hm_float_from_bits(bits), product = operand * large;
    if (product == 0) return hm_fail(err, HM_UNSUPPORTED, "floating point: subnormal operands are taken as zero (DAZ)");
    if (fegetround() != FE_TONEAREST)
        return hm_fail(err, HM_UNSUPPORTED, "floating point: expected rounding to nearest, found mode %d",
                       fegetround());
    return HM_OK;
}

hm_status hm_device_open_cpu(unsigned threads, enum hm_isa isa, struct hm_device **out, struct hm_error *err)
{
    *out = NULL;
    hm_status status = check_arithmetic(err);
    if (!status) status = choose_isa(&isa, err);
    if (status) return status;
    if (threads == 0) {
        threads = hm_pool_usable_cores();
        if (threads > HM_POOL_MOST) threads = HM_POOL_MOST;
    }

    struct hm_cpu_device *device = hm_calloc(1, sizeof *device);
    if (!device) return hm_fail(err, HM_MEMORY, "cpu device: out of memory");
    status = hm_pool_open(threads, &device->pool, err);
    if (status) goto fail;
    device->scratch = hm_calloc(threads, sizeof *device->scratch);
    for (unsigned i = 0; i < threads && device->scratch; i++)
        if (!(device->scratch[i] = hm_pages_reserve(SCRATCH_BYTES))) break;
    if (!device->scratch || !device->scratch[threads - 1]) {
        status = hm_fail(err, HM_MEMORY, "cpu device: out of memory for %u threads", threads);
        goto fail;
    }
    device->scratch_floats = SCRATCH_FLOATS;
    device->isa = isa;
    device->kernels = kernels_of(isa);
    snprintf(device->detail, sizeof device->detail, "%s, %u thread%s", device->kernels->name, threads,
             threads == 1 ? "" : "s");
    device->base = (struct hm_device){.ops = &hm_cpu_ops, .backend = "cpu-fma256", .detail = device->detail};
    *out = &device->base;
    return HM_OK;
fail:
    hm_cpu_close(&device->base);
    return status;
}

hm_status hm_device_open_peer(struct hm_device *device, unsigned threads, struct hm_device **out, struct hm_error *err)
{
    struct hm_cpu_device *cpu = hm_cpu_device(device); // memory is the host's: every CPU device shares it
    return hm_device_open_cpu(threads ? threads : hm_pool_threads(cpu->pool), cpu->isa, out, err);
}

unsigned hm_device_threads(const struct hm_device *device)
{
    return hm_pool_threads(((const struct hm_cpu_device *)device)->pool);
}

void hm_device_close(struct hm_device *device)
{
    if (device) device->ops->close(device);
}
