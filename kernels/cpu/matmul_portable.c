// Matrix product of one panel in plain C (order: kernels.h). Lanes run across the 64 outputs in inner loops that a
// compiler can turn into vector code where the machine has a fused multiply-add.
//
// Moves 64 * inputs * dtype bytes of weights per call and 4 * rows * inputs of activations, does 128 * rows * inputs
// flops.
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/widen.h"

#include <math.h>

// The 64 weights of one input, by output.
static void widen_lanes(enum hm_dtype dtype, const unsigned char *weights, float lanes[HM_PANEL])
{
    for (size_t lane = 0; lane < HM_PANEL; lane++) lanes[lane] = hm_widen(dtype, weights, hm_panel_place(dtype, lane));
}

void hm_matmul_panel_portable(const struct hm_weight *weight, size_t panel, const float *x, float *y, size_t rows,
                              enum hm_store store)
{
    const unsigned char *weights = hm_panel_data(weight, panel);
    size_t inputs = weight->inputs, step = HM_PANEL * hm_dtype_bytes(weight->dtype);
    size_t first = panel * HM_PANEL, width = weight->outputs - first < HM_PANEL ? weight->outputs - first : HM_PANEL;
    float total[HM_ROWS_MOST][HM_PANEL] = {{0}}, block[HM_ROWS_MOST][HM_PANEL];

    for (size_t start = 0; start < inputs; start += HM_BLOCK) {
        size_t end = inputs - start < HM_BLOCK ? inputs : start + HM_BLOCK;
        memset(block, 0, rows * sizeof block[0]);
        for (size_t i = start; i < end; i++) {
            float lanes[HM_PANEL];
            widen_lanes(weight->dtype, weights + i * step, lanes);
            for (size_t r = 0; r < rows; r++) {
                float xi = x[r * inputs + i];
                for (size_t lane = 0; lane < HM_PANEL; lane++) block[r][lane] = fmaf(xi, lanes[lane], block[r][lane]);
            }
        }
        for (size_t r = 0; r < rows; r++)
            for (size_t lane = 0; lane < HM_PANEL; lane++) total[r][lane] = total[r][lane] + block[r][lane];
    }
    for (size_t r = 0; r < rows; r++) {
        float *to = y + r * weight->outputs + first;
        for (size_t lane = 0; lane < width; lane++)
            to[lane] = store == HM_STORE_ADD ? to[lane] + total[r][lane] : total[r][lane];
    }
}
