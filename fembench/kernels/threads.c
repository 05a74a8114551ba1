/* Threads of a rank: a pass in pieces, one for each thread. Pieces begin where a chunk begins, and what is summed
 * over a pass are the partial sums of its chunks, in their order: the result has the same bits for any number of
 * threads. Compiled without OpenMP, a team is one thread.
 *
 * Kernels have clones for several processors, which the loader chooses from. A parallel region inside of them would
 * be compiled for the oldest; so the region is here, around calls of kernels. */
#include <time.h>

#include "passes.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static int size = 1;
static struct {
    double seconds;
    char apart[120]; /* no other thread writes to its cache line */
} busy[FB_MOST_THREADS];

int fb_has_threads(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

int fb_threads(void)
{
    return size;
}

void fb_use_threads(int n)
{
    size = n;
    for (int k = 0; k < FB_MOST_THREADS; k++)
        busy[k].seconds = 0;
}

double fb_busy(int thread)
{
    return busy[thread].seconds;
}

#ifdef _OPENMP
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
#endif

void fb_team(int n, fb_piece *run, const void *whole)
{
#ifdef _OPENMP
    if (n > 1) {
#pragma omp parallel num_threads(n)
        for (int k = omp_get_thread_num(); k < n; k += omp_get_num_threads()) { /* fewer may come than were asked for */
            double begin = now();
            run(whole, k, n);
            busy[k].seconds += now() - begin;
        }
        return;
    }
#endif
    for (int k = 0; k < n; k++)
        run(whole, k, n);
}

/* Where piece k of n begins in the rows [begin, end), a multiple of `step` after `begin`: with equal numbers of
 * entries in all pieces, or of rows if there is no indptr. */
int64_t fb_cut(const int64_t *indptr, int64_t begin, int64_t end, int64_t step, int64_t k, int64_t n)
{
    int64_t low = 0, high = (end - begin + step - 1) / step; /* steps */
    if (k == 0)
        return begin;
    if (k == n)
        return end;
    if (!indptr)
        return begin + high * k / n * step;
    double target = (double)(indptr[end] - indptr[begin]) * (double)k / (double)n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if ((double)(indptr[begin + middle * step] - indptr[begin]) < target)
            low = middle + 1;
        else
            high = middle;
    }
    return begin + low * step < end ? begin + low * step : end;
}

/* The pass, or a piece of it, by its kernel. */
static void run_pass(const fb_pass *p)
{
    double *parts = p->parts[0], *sums = p->sums;
    switch (p->kind) {
    case FB_DOT:
        sums[0] = fb_dot(p->n, p->n_weighted, p->d, p->q, p->w, parts);
        break;
    case FB_DOT_RZ:
        sums[0] = fb_dot(p->n, p->n_weighted, p->r, p->z, p->w, parts);
        break;
    case FB_STEP:
        sums[0] = fb_step(p->n, p->n_weighted, p->alpha, p->x, p->r, p->d, p->q, p->w, parts);
        break;
    case FB_STEP_JACOBI:
        fb_step_jacobi(p->n, p->n_weighted, p->alpha, p->x, p->r, p->d, p->q, p->w, p->inverse, sums, parts,
                       p->parts[1]);
        break;
    case FB_STEP_BLOCK:
        fb_step_block(p->n, p->n_weighted, p->alpha, p->x, p->r, p->d, p->q, p->w, p->inverse, sums, parts,
                      p->parts[1]);
        break;
    case FB_DIRECTION:
        fb_direction(p->n, p->beta, p->d, p->z);
        break;
    case FB_DIRECTION_JACOBI:
        fb_direction_jacobi(p->n, p->beta, p->d, p->r, p->inverse);
        break;
    case FB_DIRECTION_BLOCK:
        fb_direction_block(p->n, p->beta, p->d, p->r, p->inverse);
        break;
    case FB_SCALE:
        fb_scale(p->n, p->inverse, p->r, p->z);
        break;
    case FB_SCALE_BLOCK:
        fb_scale_block(p->n, p->inverse, p->r, p->z);
        break;
    case FB_CHEBYSHEV_START:
        fb_chebyshev_start(p->n, p->alpha, p->z, p->r, p->d, p->inverse);
        break;
    case FB_CHEBYSHEV_BLOCK_START:
        fb_chebyshev_block_start(p->n, p->alpha, p->z, p->r, p->d, p->inverse);
        break;
    case FB_CHEBYSHEV:
        fb_chebyshev(p->n, p->beta, p->alpha, p->z, p->r, p->d, p->q, p->inverse);
        break;
    case FB_CHEBYSHEV_BLOCK:
        fb_chebyshev_block(p->n, p->beta, p->alpha, p->z, p->r, p->d, p->q, p->inverse);
        break;
    case FB_READ:
        sums[0] = fb_read(p->n, p->x);
        break;
    case FB_TRIAD:
        fb_triad(p->n, p->alpha, p->x, p->d, p->q);
        break;
    }
}

static int64_t chunks(int64_t n)
{
    return (n + CHUNK - 1) / CHUNK;
}

/* First entry of a chunk; those of the weighted end begin where it begins. */
static int64_t entry_of(const fb_pass *p, int64_t chunk)
{
    int64_t plain = p->n - p->n_weighted, entry = CHUNK * chunk;
    if (entry < plain)
        return entry;
    entry = plain + CHUNK * (chunk - chunks(plain));
    return entry < p->n ? entry : p->n;
}

static void shift(double **v, int64_t begin)
{
    if (*v)
        *v += begin;
}

static void pass_piece(const void *whole, int64_t k, int64_t n)
{
    const fb_pass *all = whole;
    int64_t plain = all->n - all->n_weighted, n_chunks = fb_pass_chunks(all), first = n_chunks * k / n;
    int64_t begin = entry_of(all, first), end = entry_of(all, n_chunks * (k + 1) / n);
    int64_t weighted = begin > plain ? begin : plain; /* its first entry with a weight */
    double unused[2];
    fb_pass p = *all;
    if (begin == end)
        return;
    shift(&p.x, begin), shift(&p.r, begin), shift(&p.d, begin), shift(&p.q, begin), shift(&p.z, begin);
    if (p.inverse)
        p.inverse = (const char *)p.inverse + begin * p.inverse_bytes;
    if (p.w)
        p.w += weighted - plain;
    p.n = end - begin;
    p.n_weighted = end > weighted ? end - weighted : 0;
    p.parts[0] += first;
    p.parts[1] += first;
    p.sums = unused;
    run_pass(&p);
}

int64_t fb_pass_chunks(const fb_pass *p)
{
    return chunks(p->n - p->n_weighted) + chunks(p->n_weighted);
}

void fb_run(const fb_pass *p)
{
    if (!p->parts[0]) {
        run_pass(p);
        return;
    }
    fb_team(p->n_threads, pass_piece, p);
    if (p->kind <= FB_STEP_BLOCK)
        p->sums[0] = sum_of(fb_pass_chunks(p), p->parts[0]);
    if (p->kind == FB_STEP_JACOBI || p->kind == FB_STEP_BLOCK)
        p->sums[1] = sum_of(fb_pass_chunks(p), p->parts[1]);
}
