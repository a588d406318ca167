// A short list of idle blocks: see row_memory.h. What is idle at the end of the process is freed then.
#include "certify/row_memory.h"

#include <pthread.h>
#include <stdlib.h>

enum { IDLE_MOST = 8 };
static const size_t idle_largest = (size_t)16 << 20; // larger blocks go back to the system

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *block;
    size_t held;
} idle[IDLE_MOST];
static size_t count;

void *hm_row_memory_take(size_t bytes, size_t *held)
{
    void *block = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0 && !block;) { // the block given back last is the warmest
        if (idle[i].held < bytes || idle[i].held / 4 > bytes) continue;
        block = idle[i].block;
        *held = idle[i].held;
        for (count--; i < count; i++) idle[i] = idle[i + 1];
    }
    pthread_mutex_unlock(&lock);
    if (block) return block;
    *held = bytes;
    return malloc(bytes ? bytes : 1);
}

void hm_row_memory_give(void *block, size_t held)
{
    if (!block) return;
    pthread_mutex_lock(&lock);
    void *excess = block;
    if (held <= idle_largest) {
        excess = NULL;
        if (count == IDLE_MOST) { // the one that has been idle longest goes
            excess = idle[0].block;
            for (size_t i = 0; i + 1 < IDLE_MOST; i++) idle[i] = idle[i + 1];
            count--;
        }
        idle[count].block = block;
        idle[count++].held = held;
    }
    pthread_mutex_unlock(&lock);
    free(excess);
}

__attribute__((destructor)) static void release_idle(void)
{
    while (count > 0) free(idle[--count].block);
}
