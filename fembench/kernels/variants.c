/* The vector work of the conjugate-gradient variants that sum over ranks once an iteration: one pass each,
 * in which every vector crosses memory once in each direction. Letters as in
 * solve/recurrences.py and solve/pipelined.py.
 *
 * A pass is written once for T = v4 (four entries) and T = double (the rest of a chunk). `kind`, `moving`
 * and whether `weights` is NULL are constants wherever a pass is compiled. */
#include "passes.h"

#define LENGTH 96 /* entries of a chunk, which is walked several times for block Jacobi */
#define AT(T, p, i) (*(T *)((p) + (i)))
#define AT_CONST(T, p, i) (*(const T *)((p) + (i)))

typedef struct {
    total rr, ru, wu; /* r . r, r . u, w . u */
} triple;

/* u = D^-1 r within a chunk; a block is xx yy zz xy yz zx */
INLINE void apply_blocks(int64_t n, const double *restrict inverse, const double *restrict r,
                         double *restrict u)
{
    for (int64_t i = 0; i < n; i += 3) {
        v4 a = LOAD(inverse + 2 * i), b = LOAD(inverse + 2 * i + 2); /* xx yy zz xy, zz xy yz zx */
        v4 z = PICK4(a, b, 0, 3, 7, 7) * r[i];
        z += PICK4(a, b, 3, 1, 6, 6) * r[i + 1];
        z += PICK4(a, b, 7, 6, 2, 2) * r[i + 2];
        u[i] = z[0];
        u[i + 1] = z[1];
        u[i + 2] = z[2];
    }
}

/* a . b within a chunk */
INLINE double product(int64_t n, const double *a, const double *b, const double *weights)
{
    v4 sum = {0};
    double tail = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        sum += LOAD(a + i) * (weights ? LOAD(b + i) * LOAD(weights + i) : LOAD(b + i));
    for (; i < n; i++)
        tail += a[i] * (weights ? b[i] * weights[i] : b[i]);
    return LANES(sum) + tail;
}

/* BODY on all entries of the chunk [begin, end); it adds to rr, ru and wu */
#define CHUNK_PASS(BODY)                                           \
    v4 rr4 = {0}, ru4 = {0}, wu4 = {0};                            \
    double rr1 = 0, ru1 = 0, wu1 = 0;                              \
    int64_t i = begin;                                             \
    for (; i + 4 <= end; i += 4) {                                 \
        BODY(v4, rr4, ru4, wu4)                                    \
    }                                                              \
    for (; i < end; i++) {                                         \
        BODY(double, rr1, ru1, wu1)                                \
    }                                                              \
    add(&t->rr, LANES(rr4) + rr1);                                 \
    if (kind == FB_DIAGONAL || kind == FB_EXTERNAL)                \
        add(&t->ru, LANES(ru4) + ru1);                             \
    if (kind != FB_BLOCKS)                                         \
        add(&t->wu, LANES(wu4) + wu1);

#define SINGLE_REDUCTION(T, rr, ru, wu)                                             \
    T ri = AT(T, r, i), ui = kind == FB_IDENTITY ? ri : AT(T, u, i);                \
    T pi = ui + beta * AT(T, p, i), si = AT(T, w, i) + beta * AT(T, s, i);          \
    AT(T, p, i) = pi;                                                               \
    AT(T, s, i) = si;                                                               \
    AT(T, x, i) += alpha * pi;                                                      \
    AT(T, r, i) = ri -= alpha * si;                                                 \
    T weighted = weights ? ri * AT_CONST(T, weights, i - begin) : ri;               \
    rr += weighted * ri;                                                            \
    if (kind == FB_DIAGONAL) {                                                      \
        AT(T, u, i) = ui = AT_CONST(T, v->inverse, i) * ri;                         \
        ru += weighted * ui;                                                        \
    }

INLINE void single_reduction_chunk(const fb_recurrences *v, int kind, const double *weights, int64_t begin,
                                   int64_t end, double alpha, double beta, triple *t)
{
    double *x = v->x, *r = v->r, *u = v->u, *w = v->w, *p = v->p, *s = v->s;
    CHUNK_PASS(SINGLE_REDUCTION)
    if (kind == FB_BLOCKS) {
        apply_blocks(end - begin, v->inverse + 2 * begin, r + begin, u + begin);
        add(&t->ru, product(end - begin, r + begin, u + begin, weights));
    }
}

#define PIPELINED(T, rr, ru, wu)                                                                   \
    T ri = AT(T, r, i), wi = AT(T, w, i), ui = kind == FB_EXTERNAL ? AT(T, u, i) : ri;             \
    if (moving) {                                                                                  \
        T old = kind == FB_DIAGONAL ? AT_CONST(T, v->inverse, i) * ri                              \
                : kind == FB_BLOCKS ? AT(T, blocked, i - begin)                                    \
                                    : ui;                                                          \
        T pi = old + beta * AT(T, p, i), si = wi + beta * AT(T, s, i);                             \
        T zi = AT(T, n, i) + beta * AT(T, z, i);                                                   \
        AT(T, p, i) = pi;                                                                          \
        AT(T, s, i) = si;                                                                          \
        AT(T, z, i) = zi;                                                                          \
        AT(T, x, i) += alpha * pi;                                                                 \
        AT(T, r, i) = ri -= alpha * si;                                                            \
        AT(T, w, i) = wi -= alpha * zi;                                                            \
        if (kind == FB_EXTERNAL) {                                                                 \
            T qi = AT(T, m, i) + beta * AT(T, q, i);                                               \
            AT(T, q, i) = qi;                                                                      \
            AT(T, u, i) = ui -= alpha * qi;                                                        \
        }                                                                                          \
    }                                                                                              \
    if (kind == FB_IDENTITY)                                                                       \
        ui = ri;                                                                                   \
    if (kind == FB_DIAGONAL) {                                                                     \
        T inverse = AT_CONST(T, v->inverse, i);                                                    \
        ui = inverse * ri;                                                                         \
        AT(T, m, i) = inverse * wi;                                                                \
    }                                                                                              \
    rr += weights ? ri * ri * AT_CONST(T, weights, i - begin) : ri * ri;                           \
    T weighted = weights ? ui * AT_CONST(T, weights, i - begin) : ui;                              \
    ru += weighted * ri;                                                                           \
    wu += weighted * wi;

INLINE void pipelined_chunk(const fb_recurrences *v, int kind, int moving, const double *weights,
                            int64_t begin, int64_t end, double alpha, double beta, triple *t)
{
    double *x = v->x, *r = v->r, *u = v->u, *w = v->w, *p = v->p, *s = v->s, *z = v->z, *q = v->q, *m = v->m;
    double *n = v->n_, blocked[LENGTH];
    const double *inverse = v->inverse + 2 * begin;
    int64_t length = end - begin;
    if (kind == FB_BLOCKS && moving)
        apply_blocks(length, inverse, r + begin, blocked);
    CHUNK_PASS(PIPELINED)
    if (kind == FB_BLOCKS) {
        apply_blocks(length, inverse, r + begin, blocked);
        add(&t->ru, product(length, r + begin, blocked, weights));
        add(&t->wu, product(length, w + begin, blocked, weights));
        apply_blocks(length, inverse, w + begin, m + begin);
    }
}

/* CALL(kind, weights, begin, end) on every chunk; those of the weighted end begin where it begins */
#define ALL_CHUNKS(CALL, kind)                                                                     \
    for (int64_t begin = 0, end; begin < v->n; begin = end) {                                      \
        end = begin + LENGTH;                                                                       \
        if (begin < plain) {                                                                       \
            end = end < plain ? end : plain;                                                       \
            CALL(kind, NULL);                                                                      \
        } else {                                                                                   \
            end = end < v->n ? end : v->n;                                                         \
            CALL(kind, (v->weights + (begin - plain)));                                            \
        }                                                                                          \
    }
#define ALL_KINDS(CALL)                                            \
    int64_t plain = v->n - v->n_weighted;                          \
    triple t = {{0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL}};                           \
    if (v->kind == FB_IDENTITY) {                                  \
        ALL_CHUNKS(CALL, FB_IDENTITY)                              \
    } else if (v->kind == FB_DIAGONAL) {                           \
        ALL_CHUNKS(CALL, FB_DIAGONAL)                              \
    } else if (v->kind == FB_BLOCKS) {                             \
        ALL_CHUNKS(CALL, FB_BLOCKS)                                \
    } else {                                                       \
        ALL_CHUNKS(CALL, FB_EXTERNAL)                              \
    }

#define SINGLE_CHUNK(kind, weights) single_reduction_chunk(v, kind, weights, begin, end, alpha, beta, &t)
#define MOVING_CHUNK(kind, weights) pipelined_chunk(v, kind, 1, weights, begin, end, alpha, beta, &t)
#define RESTING_CHUNK(kind, weights) pipelined_chunk(v, kind, 0, weights, begin, end, 0, 0, &t)

/* For a preconditioner of the caller's, r . u is the caller's as well. */
CLONES void fb_single_reduction(const fb_recurrences *v, double alpha, double beta, double *sums)
{
    ALL_KINDS(SINGLE_CHUNK)
    sums[0] = result(&t.rr);
    sums[1] = v->inverse ? result(&t.ru) : sums[0];
}

CLONES void fb_pipelined(const fb_recurrences *v, double alpha, double beta, double *sums)
{
    ALL_KINDS(MOVING_CHUNK)
    sums[0] = result(&t.rr);
    sums[1] = v->kind == FB_IDENTITY ? sums[0] : result(&t.ru);
    sums[2] = result(&t.wu);
}

CLONES void fb_pipelined_sums(const fb_recurrences *v, double *sums)
{
    ALL_KINDS(RESTING_CHUNK)
    sums[0] = result(&t.rr);
    sums[1] = v->kind == FB_IDENTITY ? sums[0] : result(&t.ru);
    sums[2] = result(&t.wu);
}
