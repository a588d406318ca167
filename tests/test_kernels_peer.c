// Limits and peers: loops are done once and completely while the number of threads changes between them, and two devices of
// one machine work on shared weights at the same time with the bits of one.
#include "test_kernels.h"

#include <pthread.h>
#include <stdatomic.h>

struct count {
    atomic_uint *times;
    atomic_bool *busy; // per worker
    atomic_bool clash, others;
};

static void count_unit(void *context, size_t unit, unsigned worker)
{
    struct count *count = context;
    if (atomic_exchange(&count->busy[worker], true)) atomic_store(&count->clash, true);
    if (worker) atomic_store(&count->others, true);
    atomic_fetch_add(&count->times[unit], 1);
    for (volatile size_t i = 0; i < unit % 7 * 20; i++) continue; // units take different times
    atomic_store(&count->busy[worker], false);
}

static void limits_change_between_loops(void **state)
{
    (void)state;
    seed_from_environment("limits_change_between_loops");
    enum { UNITS = 200 };
    static atomic_uint times[UNITS];
    static atomic_bool busy[HM_POOL_MOST];
    for (unsigned threads = 1; threads <= 13; threads = threads * 2 + 1) {
        struct hm_pool *pool;
        assert_int_equal(hm_pool_open(threads, &pool, NULL), HM_OK);
        for (int loop = 0; loop < 300; loop++) {
            struct count count = {.times = times, .busy = busy};
            size_t units = random_below(loop % 3 ? 12 : UNITS);
            unsigned limit = (unsigned)random_below(threads + 3); // 0 and more than all are brought into range
            hm_pool_limit(pool, limit);
            assert_int_equal(hm_pool_threads(pool), threads);
            for (size_t i = 0; i < UNITS; i++) atomic_store(&times[i], 0);
            hm_pool_run(pool, count_unit, &count, units);
            for (size_t i = 0; i < UNITS; i++) assert_int_equal(atomic_load(&times[i]), i < units);
            assert_false(atomic_load(&count.clash));
            if (limit <= 1) assert_false(atomic_load(&count.others));
            if (loop % 50 == 0) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); // let the workers fall asleep
        }
        hm_pool_limit(pool, (unsigned)random_below(threads + 1)); // closing wakes those beyond the limit
        hm_pool_close(pool);
    }
}

enum { INPUTS = 300, OUTPUTS = 700, ROWS = 9 };

// One thread's work: products of one matrix and a residual, again and again, on its own device and buffers.
struct work {
    struct hm_device *device;
    const struct hm_weight *weight;
    const float *x;
    float y[ROWS * OUTPUTS];
    size_t repeats;
    unsigned limits; // change the limit up to this; 0: leave it
};

static void *run_work(void *argument)
{
    struct work *w = argument;
    struct hm_device *d = w->device;
    struct hm_view x = {d->ops->alloc(d, ROWS * INPUTS), 0}, y = {d->ops->alloc(d, ROWS * OUTPUTS), 0};
    if (!x.buffer || !y.buffer) return NULL;
    d->ops->upload(d, x, w->x, ROWS * INPUTS);
    for (size_t i = 0; i < w->repeats; i++) {
        if (w->limits) d->ops->limit(d, 1 + (unsigned)(i % w->limits));
        d->ops->matmul(d, w->weight, x, y, ROWS);
        d->ops->matmul_add(d, w->weight, x, y, ROWS);
    }
    d->ops->download(d, w->y, y, ROWS * OUTPUTS);
    d->ops->release(d, x.buffer);
    d->ops->release(d, y.buffer);
    return w;
}

static void peers_share_weights_and_bits(void **state)
{
    (void)state;
    seed_from_environment("peers_share_weights_and_bits");
    static float weight[OUTPUTS * INPUTS], x[2][ROWS * INPUTS];
    static struct work work[2], alone[2];
    for (size_t i = 0; i < OUTPUTS * INPUTS; i++) weight[i] = random_unit();
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[0][i] = random_unit(), x[1][i] = random_unit();
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct hm_device *device, *peer;
        struct hm_error err;
        assert_int_equal(hm_device_open_cpu(threads, HM_ISA_BEST, &device, &err), HM_OK);
        assert_int_equal(hm_device_open_peer(device, threads == 3 ? 2 : 0, &peer, &err), HM_OK);
        assert_int_equal(hm_device_threads(device), threads);
        assert_int_equal(hm_device_threads(peer), threads == 3 ? 2 : threads);
        assert_string_equal(peer->backend, device->backend);
        struct hm_weight *w = device->ops->load(device, weight, HM_F32, OUTPUTS, INPUTS);
        assert_non_null(w);
        for (int i = 0; i < 2; i++) {
            alone[i] = (struct work){.device = device, .weight = w, .x = x[i], .repeats = 1};
            assert_non_null(run_work(&alone[i]));
            work[i] = (struct work){.device = i ? peer : device, .weight = w, .x = x[i], .repeats = 60, .limits = threads};
        }
        pthread_t thread;
        void *other;
        assert_int_equal(pthread_create(&thread, NULL, run_work, &work[1]), 0);
        assert_non_null(run_work(&work[0]));
        assert_int_equal(pthread_join(thread, &other), 0);
        assert_non_null(other);
        for (int i = 0; i < 2; i++) assert_memory_equal(work[i].y, alone[i].y, sizeof alone[i].y);
        device->ops->unload(device, w);
        hm_device_close(peer);
        hm_device_close(device);
    }
}

// A peer computes as its device does, whatever the environment says meanwhile.
static void a_peer_has_the_instruction_set_of_its_device(void **state)
{
    (void)state;
    struct hm_device *device, *peer;
    assert_int_equal(hm_device_open_cpu(2, HM_ISA_PORTABLE, &device, NULL), HM_OK);
    setenv("HALLMARK_ISA", "avx2", 1);
    assert_int_equal(hm_device_open_peer(device, 3, &peer, NULL), HM_OK);
    unsetenv("HALLMARK_ISA");
    assert_string_equal(peer->detail, "portable, 3 threads");
    hm_device_close(peer);
    hm_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_change_between_loops),
        cmocka_unit_test(peers_share_weights_and_bits),
        cmocka_unit_test(a_peer_has_the_instruction_set_of_its_device),
    };
    return cmocka_run_group_tests_name("kernels_peer", tests, NULL, NULL);
}
