/* Aligned memory on huge pages where the system gives them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels.h"

#define HUGE_PAGE ((size_t)1 << 21)
#define PADDING 64 /* kernels may read one vector past the end */

void *fb_allocate(size_t n_bytes)
{
    void *block = NULL;
    size_t size = n_bytes + PADDING;
    int large = size >= HUGE_PAGE;
    if (posix_memalign(&block, large ? HUGE_PAGE : 64, size))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (large)
        madvise(block, (size + 4095) & ~(size_t)4095, MADV_HUGEPAGE); /* a wish; refusal costs only time */
#endif
    return block;
}

void fb_release(void *block)
{
    free(block);
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
