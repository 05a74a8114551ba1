/* Vector kernels of conjugate gradients: each pass over memory does all that can be done in it. Where `parts` is
 * not NULL, they receive the partial sum of every chunk, and the sum returned is zero (sums.h). */
#include "passes.h"

/* One pass in chunks: BODY(i, acc) works on the entries [i, i+4) and adds to acc, BODY1 on entry i. */
#define CHUNKED(n, BODY, BODY1, t)                                          \
    for (int64_t begin = 0; begin < (n); begin += CHUNK) {                  \
        int64_t end = begin + CHUNK < (n) ? begin + CHUNK : (n), i = begin; \
        v4 even = {0}, odd = {0};                                           \
        double tail = 0;                                                    \
        for (; i + 8 <= end; i += 8) {                                      \
            BODY(i, even);                                                  \
            BODY(i + 4, odd);                                               \
        }                                                                   \
        for (; i < end; i++) {                                              \
            BODY1(i);                                                       \
        }                                                                   \
        even += odd;                                                        \
        add(&(t), LANES(even) + tail);                                      \
    }

#define DOT(i, acc) acc += LOAD(a + (i)) * LOAD(b + (i))
#define DOT1(i) tail += a[i] * b[i]
#define DOT_W(i, acc) acc += LOAD(a + (i)) * LOAD(b + (i)) * LOAD(w + (i))
#define DOT1_W(i) tail += a[i] * b[i] * w[i]

CLONES double fb_dot(int64_t n, int64_t n_weighted, const double *a, const double *b, const double *w, double *parts)
{
    total t = {0, 0, parts};
    int64_t m = n - n_weighted;
    CHUNKED(m, DOT, DOT1, t)
    a += m, b += m;
    CHUNKED(n_weighted, DOT_W, DOT1_W, t)
    return result(&t);
}

#define UPDATE(i)                                 \
    *(v4 *)(x + (i)) += alpha * LOAD(d + (i));    \
    v4 e = LOAD(r + (i)) - alpha * LOAD(q + (i)); \
    *(v4 *)(r + (i)) = e
#define UPDATE1(i)                  \
    x[i] += alpha * d[i];           \
    double e = r[i] - alpha * q[i]; \
    r[i] = e
#define STEP(i, acc) { UPDATE(i); acc += e * e; }
#define STEP1(i) { UPDATE1(i); tail += e * e; }
#define STEP_W(i, acc) { UPDATE(i); acc += e * e * LOAD(w + (i)); }
#define STEP1_W(i) { UPDATE1(i); tail += e * e * w[i]; }

CLONES double fb_step(int64_t n, int64_t n_weighted, double alpha, double *restrict x, double *restrict r,
                      const double *restrict d, const double *restrict q, const double *restrict w, double *parts)
{
    total t = {0, 0, parts};
    int64_t m = n - n_weighted;
    CHUNKED(m, STEP, STEP1, t)
    x += m, r += m, d += m, q += m;
    CHUNKED(n_weighted, STEP_W, STEP1_W, t)
    return result(&t);
}

/* The same with a second sum r . z, z = inverse * r entry by entry. */
#define JACOBI(i, acc) { UPDATE(i); v4 s = e * e; acc += s; z += s * LOAD(inverse + (i)); }
#define JACOBI1(i) { UPDATE1(i); double s = e * e; tail += s; z1 += s * inverse[i]; }
#define JACOBI_W(i, acc) { UPDATE(i); v4 s = e * e * LOAD(w + (i)); acc += s; z += s * LOAD(inverse + (i)); }
#define JACOBI1_W(i) { UPDATE1(i); double s = e * e * w[i]; tail += s; z1 += s * inverse[i]; }
#define CHUNK_BY_CHUNK(n, BODY, BODY1)                               \
    for (int64_t first = 0; first < (n); first += CHUNK) {           \
        int64_t size = first + CHUNK < (n) ? CHUNK : (n) - first;    \
        v4 z = {0};                                                  \
        double z1 = 0;                                               \
        CHUNKED(size, BODY, BODY1, t)                                \
        add(&u, LANES(z) + z1);                                      \
        x += size, r += size, d += size, q += size, inverse += size; \
        w += w ? size : 0;                                           \
    }

CLONES void fb_step_jacobi(int64_t n, int64_t n_weighted, double alpha, double *restrict x,
                           double *restrict r, const double *restrict d, const double *restrict q,
                           const double *restrict weights, const double *restrict inverse, double *rr_rz,
                           double *rr_parts, double *rz_parts)
{
    total t = {0, 0, rr_parts}, u = {0, 0, rz_parts};
    const double *w = NULL;
    CHUNK_BY_CHUNK(n - n_weighted, JACOBI, JACOBI1)
    w = weights;
    CHUNK_BY_CHUNK(n_weighted, JACOBI_W, JACOBI1_W)
    rr_rz[0] = result(&t);
    rr_rz[1] = result(&u);
}

INLINE void step_block_part(int64_t n, double alpha, double *restrict x, double *restrict r,
                            const double *restrict d, const double *restrict q, const double *restrict w,
                            const double *restrict inverse, total *t, total *u)
{
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        int64_t end = begin + CHUNK < n ? begin + CHUNK : n;
        double rr[3] = {0}, rz[3] = {0};
        for (int64_t i = begin; i < end; i += 3) {
            double e[3], z[3];
            for (int c = 0; c < 3; c++) {
                x[i + c] += alpha * d[i + c];
                r[i + c] = e[c] = r[i + c] - alpha * q[i + c];
            }
            apply_block(inverse + 2 * i, e, z);
            for (int c = 0; c < 3; c++) {
                double s = w ? e[c] * w[i + c] : e[c];
                rr[c] += s * e[c];
                rz[c] += s * z[c];
            }
        }
        add(t, rr[0] + rr[1] + rr[2]);
        add(u, rz[0] + rz[1] + rz[2]);
    }
}

CLONES void fb_step_block(int64_t n, int64_t n_weighted, double alpha, double *x, double *r, const double *d,
                          const double *q, const double *w, const double *inverse, double *rr_rz, double *rr_parts,
                          double *rz_parts)
{
    total t = {0, 0, rr_parts}, u = {0, 0, rz_parts};
    int64_t m = n - n_weighted;
    step_block_part(m, alpha, x, r, d, q, NULL, inverse, &t, &u);
    step_block_part(n_weighted, alpha, x + m, r + m, d + m, q + m, w, inverse + 2 * m, &t, &u);
    rr_rz[0] = result(&t);
    rr_rz[1] = result(&u);
}

CLONES void fb_direction(int64_t n, double beta, double *restrict d, const double *restrict z)
{
    for (int64_t i = 0; i < n; i++)
        d[i] = z[i] + beta * d[i];
}

CLONES void fb_direction_jacobi(int64_t n, double beta, double *restrict d, const double *restrict r,
                                const double *restrict inverse)
{
    for (int64_t i = 0; i < n; i++)
        d[i] = inverse[i] * r[i] + beta * d[i];
}

CLONES void fb_direction_block(int64_t n, double beta, double *restrict d, const double *restrict r,
                               const double *restrict inverse)
{
    for (int64_t i = 0; i < n; i += 3) {
        double z[3];
        apply_block(inverse + 2 * i, r + i, z);
        for (int c = 0; c < 3; c++)
            d[i + c] = z[c] + beta * d[i + c];
    }
}

CLONES void fb_axpy(int64_t n, double alpha, const double *restrict x, double *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += alpha * x[i];
}

CLONES void fb_scale(int64_t n, const double *restrict inverse, const double *restrict r, double *restrict z)
{
    for (int64_t i = 0; i < n; i++)
        z[i] = inverse[i] * r[i];
}

CLONES void fb_scale_block(int64_t n, const double *restrict inverse, const double *restrict r,
                           double *restrict z)
{
    for (int64_t i = 0; i < n; i += 3)
        apply_block(inverse + 2 * i, r + i, z + i);
}

/* Steps of z = p(D^-1 A) D^-1 r. The first, from z = 0: d = z = gain D^-1 r. The others: r -= q;
 * d = keep d + gain D^-1 r; z += d. Blocks of D^-1 are in single precision. */
CLONES void fb_chebyshev_start(int64_t n, double gain, double *restrict z, const double *restrict r,
                               double *restrict d, const double *restrict inverse)
{
    for (int64_t i = 0; i < n; i++)
        d[i] = z[i] = gain * (inverse[i] * r[i]);
}

CLONES void fb_chebyshev(int64_t n, double keep, double gain, double *restrict z, double *restrict r,
                         double *restrict d, const double *restrict q, const double *restrict inverse)
{
    for (int64_t i = 0; i < n; i++) {
        r[i] -= q[i];
        d[i] = keep * d[i] + gain * inverse[i] * r[i];
        z[i] += d[i];
    }
}

CLONES void fb_chebyshev_block_start(int64_t n, double gain, double *restrict z, const double *restrict r,
                                     double *restrict d, const float *restrict inverse)
{
    for (int64_t i = 0; i < n; i += 3) {
        double e[3];
        apply_single(inverse + 2 * i, r + i, e);
        for (int c = 0; c < 3; c++)
            d[i + c] = z[i + c] = gain * e[c];
    }
}

CLONES void fb_chebyshev_block(int64_t n, double keep, double gain, double *restrict z, double *restrict r,
                               double *restrict d, const double *restrict q, const float *restrict inverse)
{
    for (int64_t i = 0; i < n; i += 3) {
        double e[3];
        for (int c = 0; c < 3; c++)
            r[i + c] -= q[i + c];
        apply_single(inverse + 2 * i, r + i, e);
        for (int c = 0; c < 3; c++) {
            d[i + c] = keep * d[i + c] + gain * e[c];
            z[i + c] += d[i + c];
        }
    }
}

#define FAR 1000000 /* doubles that no near cache holds */
#define AHEAD 12288 /* bytes; as the products do, lest the roof be lower than what stands under it */

INLINE double read_all(int far, int64_t n, const double *a)
{
    v4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    double tail = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        if (far) {
            __builtin_prefetch((const char *)(a + i) + AHEAD, 0, 2);
            __builtin_prefetch((const char *)(a + i) + AHEAD + 64, 0, 2);
        }
        s0 += LOAD(a + i);
        s1 += LOAD(a + i + 4);
        s2 += LOAD(a + i + 8);
        s3 += LOAD(a + i + 12);
    }
    for (; i < n; i++)
        tail += a[i];
    s0 = (s0 + s1) + (s2 + s3);
    return LANES(s0) + tail;
}

CLONES double fb_read(int64_t n, const double *a)
{
    return n > FAR ? read_all(1, n, a) : read_all(0, n, a);
}

CLONES void fb_triad(int64_t n, double s, double *restrict a, const double *restrict b,
                     const double *restrict c)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}
