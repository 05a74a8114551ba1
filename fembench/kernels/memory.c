/* Aligned memory on huge pages where the system gives them.
 *
 * Large blocks are mapped afresh: what malloc hands out again has its small pages already, and a wish for
 * huge ones comes too late. They begin at different places of a page, so that a load from one vector does
 * not look like a store to another that is still under way (processors compare the low 12 bits first).
 * What is released is kept for the next block of the same size, so that a matrix assembled again costs no page
 * faults, until another size is asked for: never is more mapped than there was before. Any thread may call. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels.h"

#define HUGE_PAGE ((size_t)1 << 21)
#ifdef __SANITIZE_ADDRESS__
#define PADDING 32 /* what kernels do read past the end: one vector of four */
#else
#define PADDING 64
#endif
#define STAGGER 576
#define PLACES 7
#define SPARES 8

static struct {
    char *block;
    size_t length; /* of its mapping */
} spares[SPARES];
static atomic_flag busy = ATOMIC_FLAG_INIT; /* held for a few instructions, or while spares are unmapped */

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        ;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static size_t pages(size_t size)
{
    return (size + 4095) & ~(size_t)4095;
}

static size_t offset_of(const char *block)
{
    return (uintptr_t)block & (HUGE_PAGE - 1);
}

static void unmap(char *block, size_t length)
{
    munmap(block - offset_of(block), length);
}

/* A released block of this size; where there is none, all go back to the system. */
static void *take_spare(size_t size)
{
    for (int k = 0; k < SPARES; k++) {
        char *block = spares[k].block;
        if (block && spares[k].length == pages(size + offset_of(block))) {
            spares[k].block = NULL;
            return block;
        }
    }
    for (int k = 0; k < SPARES; k++)
        if (spares[k].block) {
            unmap(spares[k].block, spares[k].length);
            spares[k].block = NULL;
        }
    return NULL;
}

/* Whether there was room for it. */
static int keep_spare(char *block, size_t length)
{
    int kept = 0;
    lock();
    for (int k = 0; k < SPARES && !kept; k++)
        if (!spares[k].block) {
            spares[k].block = block;
            spares[k].length = length;
            kept = 1;
        }
    unlock();
    return kept;
}

static void *map(size_t size)
{
    static atomic_uint turn;
    size_t offset = STAGGER * (atomic_fetch_add(&turn, 1) % PLACES), length = pages(size + offset);
    char *area = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return NULL;
    char *block = (char *)(((uintptr_t)area + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (block > area)
        munmap(area, (size_t)(block - area));
    if (block + length < area + length + HUGE_PAGE)
        munmap(block + length, (size_t)(area + length + HUGE_PAGE - (block + length)));
#ifdef MADV_HUGEPAGE
    madvise(block, length, MADV_HUGEPAGE); /* a wish; refusal costs only time */
#endif
    return block + offset;
}

void *fb_allocate(size_t n_bytes)
{
    void *block = NULL;
    size_t size = n_bytes + PADDING;
    if (size >= HUGE_PAGE) {
        lock();
        block = take_spare(size);
        unlock();
        return block ? block : map(size);
    }
    return posix_memalign(&block, 64, size) ? NULL : block;
}

void fb_release(void *block, size_t n_bytes)
{
    size_t size = n_bytes + PADDING;
    if (!block)
        return;
    if (size < HUGE_PAGE) {
        free(block);
        return;
    }
    size_t length = pages(size + offset_of(block));
    if (!keep_spare(block, length))
        unmap(block, length);
}

v4 *fb_padded(int64_t n_nodes, const double *x)
{
    v4 *out = fb_allocate((size_t)n_nodes * sizeof *out);
    for (int64_t i = 0; out && i < n_nodes; i++)
        out[i] = (v4){x[3 * i], x[3 * i + 1], x[3 * i + 2], 0};
    return out;
}

const char *fb_isa(void)
{
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    __builtin_cpu_init();
#if __GNUC__ >= 12
    return __builtin_cpu_supports("x86-64-v4")   ? "x86-64-v4"
           : __builtin_cpu_supports("x86-64-v3") ? "x86-64-v3"
                                                 : "x86-64";
#else
    return __builtin_cpu_supports("avx512f") ? "avx512f" : __builtin_cpu_supports("avx2") ? "avx2" : "x86-64";
#endif
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "baseline";
#endif
}
