// One thread that runs a task beside its owner, one at a time, kept from task to task.
#ifndef HM_DECODE_BESIDE_H
#define HM_DECODE_BESIDE_H

#include "base/error.h"

struct hm_beside;

hm_status hm_beside_open(struct hm_beside **out, struct hm_error *err);
void hm_beside_close(struct hm_beside *beside); // NULL is allowed; not between start and wait

// Starts a task and returns at once; every start is followed by a wait before the next one. What either side wrote before
// is seen by the other afterwards.
void hm_beside_start(struct hm_beside *beside, void (*task)(void *context), void *context);
void hm_beside_wait(struct hm_beside *beside);

#endif
