// See clock.h.
#include "base/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double hm_now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double hm_thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
