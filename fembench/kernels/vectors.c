/* Vector kernels of conjugate gradients: each pass over memory does all that can be done in it. */
#include "passes.h"

/* One pass in chunks: BODY8 works on entries [i, i+8), BODY1 on entry i; both add to `acc`/`tail`. */
#define CHUNKED(n, BODY8, BODY1, t)                                  \
    for (int64_t begin = 0; begin < (n); begin += CHUNK) {           \
        int64_t end = begin + CHUNK < (n) ? begin + CHUNK : (n), i = begin; \
        v8 acc = {0};                                                \
        double tail = 0;                                             \
        for (; i + 8 <= end; i += 8) {                               \
            BODY8;                                                   \
        }                                                            \
        for (; i < end; i++) {                                       \
            BODY1;                                                   \
        }                                                            \
        add(&(t), LANES(acc) + tail);                                \
    }

CLONES double fb_dot(int64_t n, int64_t n_weighted, const double *a, const double *b, const double *w)
{
    total t = {0, 0};
    int64_t m = n - n_weighted;
    CHUNKED(m, acc += LOAD(a + i) * LOAD(b + i), tail += a[i] * b[i], t)
    a += m, b += m;
    CHUNKED(n_weighted, acc += LOAD(a + i) * LOAD(b + i) * LOAD(w + i), tail += a[i] * b[i] * w[i], t)
    return t.sum + t.carry;
}

#define STEP8                                  \
    *(v8 *)(x + i) += alpha * LOAD(d + i);     \
    v8 e = LOAD(r + i) - alpha * LOAD(q + i);  \
    *(v8 *)(r + i) = e
#define STEP1                  \
    x[i] += alpha * d[i];      \
    double e = r[i] - alpha * q[i]; \
    r[i] = e

CLONES double fb_step(int64_t n, int64_t n_weighted, double alpha, double *restrict x, double *restrict r,
                      const double *restrict d, const double *restrict q, const double *restrict w)
{
    total t = {0, 0};
    int64_t m = n - n_weighted;
    CHUNKED(m, STEP8; acc += e * e, STEP1; tail += e * e, t)
    x += m, r += m, d += m, q += m;
    CHUNKED(n_weighted, STEP8; acc += e * e * LOAD(w + i), STEP1; tail += e * e * w[i], t)
    return t.sum + t.carry;
}

/* The same with a second sum r.z, z = inverse * r entry by entry. */
#define CHUNKED2(n, BODY8, BODY1, t, u)                              \
    for (int64_t begin = 0; begin < (n); begin += CHUNK) {           \
        int64_t end = begin + CHUNK < (n) ? begin + CHUNK : (n), i = begin; \
        v8 acc = {0}, acz = {0};                                     \
        double tail = 0, taiz = 0;                                   \
        for (; i + 8 <= end; i += 8) {                               \
            BODY8;                                                   \
        }                                                            \
        for (; i < end; i++) {                                       \
            BODY1;                                                   \
        }                                                            \
        add(&(t), LANES(acc) + tail);                                \
        add(&(u), LANES(acz) + taiz);                                \
    }

CLONES void fb_step_jacobi(int64_t n, int64_t n_weighted, double alpha, double *restrict x,
                           double *restrict r, const double *restrict d, const double *restrict q,
                           const double *restrict w, const double *restrict inverse, double *rr_rz)
{
    total t = {0, 0}, u = {0, 0};
    int64_t m = n - n_weighted;
    CHUNKED2(m, STEP8; v8 s = e * e; acc += s; acz += s * LOAD(inverse + i),
             STEP1; double s = e * e; tail += s; taiz += s * inverse[i], t, u)
    x += m, r += m, d += m, q += m, inverse += m;
    CHUNKED2(n_weighted, STEP8; v8 s = e * e * LOAD(w + i); acc += s; acz += s * LOAD(inverse + i),
             STEP1; double s = e * e * w[i]; tail += s; taiz += s * inverse[i], t, u)
    rr_rz[0] = t.sum + t.carry;
    rr_rz[1] = u.sum + u.carry;
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
                          const double *q, const double *w, const double *inverse, double *rr_rz)
{
    total t = {0, 0}, u = {0, 0};
    int64_t m = n - n_weighted;
    step_block_part(m, alpha, x, r, d, q, NULL, inverse, &t, &u);
    step_block_part(n_weighted, alpha, x + m, r + m, d + m, q + m, w, inverse + 2 * m, &t, &u);
    rr_rz[0] = t.sum + t.carry;
    rr_rz[1] = u.sum + u.carry;
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

CLONES void fb_chebyshev(int64_t n, double keep, double gain, double *restrict z, double *restrict r,
                         double *restrict d, const double *restrict q, const double *restrict inverse)
{
    for (int64_t i = 0; i < n; i++) {
        r[i] -= q[i];
        d[i] = keep * d[i] + gain * inverse[i] * r[i];
        z[i] += d[i];
    }
}

CLONES double fb_read(int64_t n, const double *a)
{
    v8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    double tail = 0;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        s0 += LOAD(a + i);
        s1 += LOAD(a + i + 8);
        s2 += LOAD(a + i + 16);
        s3 += LOAD(a + i + 24);
    }
    for (; i < n; i++)
        tail += a[i];
    v8 s = (s0 + s1) + (s2 + s3);
    return LANES(s) + tail;
}

CLONES void fb_triad(int64_t n, double s, double *restrict a, const double *restrict b,
                     const double *restrict c)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}
