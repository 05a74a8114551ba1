/* The vector work of the conjugate-gradient variants that sum over ranks once an iteration: one pass each.
 *
 * A pass goes in chunks that stay in the first-level cache, so that plain loops over a chunk cost no
 * traffic: every vector crosses memory once in each direction. Letters as in solve/variants.py. */
#include "passes.h"

/* p = u + beta p */
INLINE void recur(int64_t n, double beta, double *restrict p, const double *restrict u)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = u[i] + beta * p[i];
}

/* x += alpha p */
INLINE void move(int64_t n, double alpha, double *restrict x, const double *restrict p)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += alpha * p[i];
}

/* u = M^-1 r of a folded-in (block) Jacobi */
INLINE void precondition(int kind, int64_t n, const double *restrict inverse, const double *restrict r,
                         double *restrict u)
{
    if (kind == FB_DIAGONAL)
        for (int64_t i = 0; i < n; i++)
            u[i] = inverse[i] * r[i];
    else
        for (int64_t i = 0; i < n; i += 3)
            apply_block(inverse + 2 * i, r + i, u + i);
}

/* one chunk of a . b, weighted by w unless it is NULL */
INLINE double product(int64_t n, const double *a, const double *b, const double *w)
{
    v4 sum = {0}, odd = {0};
    double tail = 0;
    int64_t i = 0;
    if (w)
        for (; i + 8 <= n; i += 8) {
            sum += LOAD(a + i) * LOAD(b + i) * LOAD(w + i);
            odd += LOAD(a + i + 4) * LOAD(b + i + 4) * LOAD(w + i + 4);
        }
    else
        for (; i + 8 <= n; i += 8) {
            sum += LOAD(a + i) * LOAD(b + i);
            odd += LOAD(a + i + 4) * LOAD(b + i + 4);
        }
    for (; i < n; i++)
        tail += w ? a[i] * b[i] * w[i] : a[i] * b[i];
    sum += odd;
    return LANES(sum) + tail;
}

/* A chunk: entries [at, at + n), where its inverse diagonal begins, its weights or NULL. */
typedef struct {
    int64_t at, n;
    const double *inverse, *weights;
} chunk;

INLINE chunk next_chunk(const fb_recurrences *v, int64_t at)
{
    int64_t first_weighted = v->n - v->n_weighted, end = at < first_weighted ? first_weighted : v->n;
    chunk c = {at, end - at < CHUNK ? end - at : CHUNK, NULL, NULL};
    if (v->inverse)
        c.inverse = v->inverse + (v->kind == FB_BLOCKS ? 2 * at : at);
    if (at >= first_weighted)
        c.weights = v->weights + (at - first_weighted);
    return c;
}

CLONES void fb_single_reduction(const fb_recurrences *v, double alpha, double beta, double *sums)
{
    total rr = {0, 0}, ru = {0, 0};
    for (int64_t at = 0; at < v->n;) {
        chunk c = next_chunk(v, at);
        recur(c.n, beta, v->p + at, v->u + at);
        recur(c.n, beta, v->s + at, v->w + at);
        move(c.n, alpha, v->x + at, v->p + at);
        move(c.n, -alpha, v->r + at, v->s + at);
        add(&rr, product(c.n, v->r + at, v->r + at, c.weights));
        if (v->inverse) {
            precondition(v->kind, c.n, c.inverse, v->r + at, v->u + at);
            add(&ru, product(c.n, v->r + at, v->u + at, c.weights));
        }
        at += c.n;
    }
    sums[0] = result(&rr);
    sums[1] = v->inverse ? result(&ru) : sums[0]; /* another M: fb_dot overwrites it */
}

/* m = M^-1 w and the three sums of one chunk; u is of M^-1 r */
INLINE void sum_chunk(const fb_recurrences *v, chunk c, const double *u, total *rr, total *ru, total *wu)
{
    const double *r = v->r + c.at, *w = v->w + c.at;
    add(rr, product(c.n, r, r, c.weights));
    if (v->kind != FB_IDENTITY)
        add(ru, product(c.n, r, u, c.weights));
    add(wu, product(c.n, w, u, c.weights));
    if (v->inverse)
        precondition(v->kind, c.n, c.inverse, w, v->m + c.at);
}

INLINE void pipelined(const fb_recurrences *v, int moving, double alpha, double beta, double *sums)
{
    total rr = {0, 0}, ru = {0, 0}, wu = {0, 0};
    double preconditioned[CHUNK];
    for (int64_t at = 0; at < v->n;) {
        chunk c = next_chunk(v, at);
        double *u = v->inverse ? preconditioned : v->u + at; /* folded in: u and q exist in chunks only */
        if (moving) {
            if (v->inverse)
                precondition(v->kind, c.n, c.inverse, v->r + at, u);
            recur(c.n, beta, v->p + at, u);
            recur(c.n, beta, v->s + at, v->w + at);
            recur(c.n, beta, v->z + at, v->n_ + at);
            move(c.n, alpha, v->x + at, v->p + at);
            move(c.n, -alpha, v->r + at, v->s + at);
            move(c.n, -alpha, v->w + at, v->z + at);
            if (v->kind == FB_EXTERNAL) {
                recur(c.n, beta, v->q + at, v->m + at);
                move(c.n, -alpha, u, v->q + at);
            }
        }
        if (v->inverse)
            precondition(v->kind, c.n, c.inverse, v->r + at, u);
        sum_chunk(v, c, u, &rr, &ru, &wu);
        at += c.n;
    }
    sums[0] = result(&rr);
    sums[1] = v->kind == FB_IDENTITY ? sums[0] : result(&ru);
    sums[2] = result(&wu);
}

CLONES void fb_pipelined(const fb_recurrences *v, double alpha, double beta, double *sums)
{
    pipelined(v, 1, alpha, beta, sums);
}

CLONES void fb_pipelined_sums(const fb_recurrences *v, double *sums)
{
    pipelined(v, 0, 0.0, 0.0, sums);
}
