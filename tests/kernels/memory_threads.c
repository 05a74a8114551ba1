/* Four threads take and return blocks of one size as fast as they can; exit status 1 where two hold the same. */
#include <pthread.h>
#include <stdatomic.h>

#include "kernels.h"

#define SIZE ((size_t)1 << 22)

static atomic_int shared;
static pthread_barrier_t start;

static void *work(void *own)
{
    pthread_barrier_wait(&start);
    for (int turn = 0; turn < 1000000 && !shared; turn++) {
        _Atomic(void *) *block = fb_allocate(SIZE);
        atomic_store(block, own);
        for (int k = 0; k < 20; k++)
            if (atomic_load(block) != own)
                shared = 1;
        fb_release((void *)block, SIZE);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    pthread_barrier_init(&start, NULL, 4);
    for (int k = 0; k < 4; k++)
        if (pthread_create(threads + k, NULL, work, threads + k))
            return 2;
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    return shared;
}
