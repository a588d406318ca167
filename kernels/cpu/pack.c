// Packs weights into panels of 64 outputs (cpu.h) and reads rows back for the embedding.
//
// Packing reads each weight once and writes it once: 2 * outputs * inputs * dtype bytes moved, no arithmetic, no
// scratch.
#include "kernels/cpu/cpu.h"

#include "base/memory.h"
#include "kernels/cpu/widen.h"

#include <stdlib.h>
#include <string.h>

// Inputs handled together: 32 BF16 weights of a row are one cache line, and the 4 KiB written stay in the first cache.
enum { STRIPE = 32 };

// Where stacked output o comes from.
struct source {
    const void *const *from;
    const size_t *outputs;
    size_t parts;
};

struct packing {
    struct hm_weight *weight;
    struct source source;
};

static const unsigned char *row_of(const struct source *source, size_t output, size_t row_bytes)
{
    for (size_t part = 0; part < source->parts; part++) {
        if (output < source->outputs[part]) return (const unsigned char *)source->from[part] + output * row_bytes;
        output -= source->outputs[part];
    }
    return NULL; // padding
}

static void pack_panel(void *context, size_t panel, unsigned worker)
{
    (void)worker;
    const struct packing *packing = context;
    const struct hm_weight *weight = packing->weight;
    size_t size = hm_dtype_bytes(weight->dtype), inputs = weight->inputs;
    unsigned char *to = (unsigned char *)weight->data + panel * inputs * HM_PANEL * size;
    const unsigned char *row[HM_PANEL];
    for (size_t lane = 0; lane < HM_PANEL; lane++)
        row[lane] = row_of(&packing->source, panel * HM_PANEL + lane, inputs * size);

    for (size_t start = 0; start < inputs; start += STRIPE) {
        size_t end = inputs - start < STRIPE ? inputs : start + STRIPE;
        for (size_t lane = 0; lane < HM_PANEL; lane++) {
            if (!row[lane]) continue;
            size_t place = hm_panel_place(weight->dtype, lane);
            // Two loops: a memcpy of constant size is one load and one store.
            if (size == 2)
                for (size_t i = start; i < end; i++) memcpy(to + (i * HM_PANEL + place) * 2, row[lane] + i * 2, 2);
            else
                for (size_t i = start; i < end; i++) memcpy(to + (i * HM_PANEL + place) * 4, row[lane] + i * 4, 4);
        }
    }
}

struct hm_weight *hm_weight_load_parts(struct hm_device *device, const void *const *from, const size_t *outputs,
                                       size_t parts, enum hm_dtype dtype, size_t inputs)
{
    size_t total = 0, padded, bytes;
    for (size_t part = 0; part < parts; part++)
        if (!hm_add_size(total, outputs[part], &total)) return NULL;
    if (!hm_add_size(total, HM_PANEL - 1, &padded)) return NULL;
    size_t panels = padded / HM_PANEL;
    if (!hm_mul_size(panels * HM_PANEL, inputs, &bytes) || !hm_mul_size(bytes, hm_dtype_bytes(dtype), &bytes))
        return NULL;

    struct hm_weight *weight = hm_calloc(1, sizeof *weight);
    void *data = hm_pages_reserve(bytes);
    if (!weight || !data) {
        free(weight);
        hm_pages_release(data, bytes);
        return NULL;
    }
    *weight = (struct hm_weight){dtype, total, inputs, panels, bytes, data};
    struct packing packing = {weight, {from, outputs, parts}};
    hm_pool_run(hm_cpu_device(device)->pool, pack_panel, &packing, panels);
    return weight;
}

struct hm_weight *hm_weight_load(struct hm_device *device, const void *from, enum hm_dtype dtype, size_t outputs,
                                 size_t inputs)
{
    return hm_weight_load_parts(device, &from, &outputs, 1, dtype, inputs);
}

void hm_weight_unload(struct hm_device *device, struct hm_weight *weight)
{
    (void)device;
    if (!weight) return;
    hm_pages_release(weight->data, weight->bytes);
    free(weight);
}

void hm_weight_row(const struct hm_weight *weight, size_t output, float *y)
{
    const unsigned char *panel = hm_panel_data(weight, output / HM_PANEL);
    size_t place = hm_panel_place(weight->dtype, output % HM_PANEL);
    for (size_t i = 0; i < weight->inputs; i++) y[i] = hm_widen(weight->dtype, panel, i * HM_PANEL + place);
}
