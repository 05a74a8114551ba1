/* Clocks read in C: the processor's counter where there is one, and the system's clocks.
 *
 * The counter (x86-64: TSC, AArch64: CNTVCT_EL0) ticks at a constant rate of its own: ticks are
 * reference time, not core cycles. A span starts with a plain reading and ends with one that waits
 * until the instructions before it have executed (rdtscp; isb on AArch64).
 */
#ifndef FEMBENCH_TICKS_H
#define FEMBENCH_TICKS_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

enum { FB_TSC, FB_MONOTONIC, FB_MONOTONIC_RAW, FB_REALTIME, FB_THREAD, FB_COUNTER };

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
static inline int64_t fb_tsc_begin(void) { return (int64_t)__rdtsc(); }
static inline int64_t fb_tsc_end(void)
{
    unsigned int cpu;
    return (int64_t)__rdtscp(&cpu);
}
static int fb_has_tsc(void) /* RDTSCP: CPUID 8000_0001h, EDX bit 27 */
{
    unsigned int a, b, c, d;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && ((d >> 27) & 1u);
}
#elif defined(__aarch64__)
static inline int64_t fb_tsc_begin(void)
{
    uint64_t t;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
    return (int64_t)t;
}
static inline int64_t fb_tsc_end(void)
{
    uint64_t t;
    __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0" : "=r"(t) : : "memory");
    return (int64_t)t;
}
static int fb_has_tsc(void) { return 1; }
#else
static inline int64_t fb_tsc_begin(void) { return 0; }
static inline int64_t fb_tsc_end(void) { return 0; }
static int fb_has_tsc(void) { return 0; }
#endif

static inline int64_t fb_clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#if defined(__APPLE__) /* CLOCK_MONOTONIC has steps of 1 us there */
#define FB_ID_MONOTONIC CLOCK_UPTIME_RAW
#else
#define FB_ID_MONOTONIC CLOCK_MONOTONIC
#endif
#if defined(CLOCK_MONOTONIC_RAW)
#define FB_ID_RAW CLOCK_MONOTONIC_RAW
#else
#define FB_ID_RAW CLOCK_MONOTONIC
#endif

/* FB_COUNTER: every reading is one more than the last; for tests. */
static int64_t fb_counter = 0;

static inline int64_t fb_other(int clock)
{
    switch (clock) {
    case FB_MONOTONIC: return fb_clock_ns(FB_ID_MONOTONIC);
    case FB_MONOTONIC_RAW: return fb_clock_ns(FB_ID_RAW);
    case FB_REALTIME: return fb_clock_ns(CLOCK_REALTIME);
    case FB_THREAD: return fb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    default: return ++fb_counter;
    }
}

static inline int64_t fb_begin(int clock) { return clock == FB_TSC ? fb_tsc_begin() : fb_other(clock); }
static inline int64_t fb_end(int clock) { return clock == FB_TSC ? fb_tsc_end() : fb_other(clock); }

static int64_t fb_gettimeofday(void)
{
    struct timeval t;
    gettimeofday(&t, 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

typedef double (*fb_seconds)(void); /* MPI_Wtime */

/* The counter and CLOCK_MONOTONIC_RAW at one moment: of `tries` readings the one whose two raw
 * stamps lie closest together. Returns that distance in ns: the reading's uncertainty. */
static int64_t fb_pair(int tries, int64_t *ticks, int64_t *raw_ns)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < tries; i++) {
        int64_t before = fb_clock_ns(FB_ID_RAW);
        int64_t t = fb_tsc_end();
        int64_t after = fb_clock_ns(FB_ID_RAW);
        if (after - before < best) {
            best = after - before;
            *ticks = t;
            *raw_ns = before + (after - before) / 2;
        }
    }
    return best;
}

#endif
