// Seconds that have gone by.
#ifndef HM_BASE_CLOCK_H
#define HM_BASE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

double hm_now(void);            // since some moment in the past; never goes back
double hm_thread_seconds(void); // of processor time that this thread has had; 0 where the system does not say

#ifdef __cplusplus
}
#endif

#endif
