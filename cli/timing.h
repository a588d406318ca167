// Medians for commands that measure.
#ifndef HM_CLI_TIMING_H
#define HM_CLI_TIMING_H

#include <stddef.h>

double hm_median(const double *values, size_t count); // 1 <= count <= HM_MOST_SAMPLES
enum { HM_MOST_SAMPLES = 101 };

#endif
