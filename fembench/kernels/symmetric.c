/* The symmetric product: every pair of nodes is stored once, and read once for both of its halves.
 *
 * Rows are stored interface first, see pattern.c. Row i adds its blocks times d to q_i and their
 * transposes times d_i to the q of its columns. A window of rows is final when its last row is done, for
 * every other contribution comes from rows before it: then its part of d . q is taken, while q is in
 * the first-level cache. q is zeroed window by window just ahead of its first use, for the same reason. */
#include <string.h>

#include "blocks.h"
#include "sums.h"

/* Values are called into the second-level cache (locality 2): the misses of d and q need the few places
 * that the first level has for misses in flight. */
#define AHEAD 12288, 2

typedef struct {
    const double *a;      /* next block */
    const int32_t *column; /* its column */
} cursor;

/* Rows of the nodes [i, last); length: blocks of each row, its own node's first. */
INLINE cursor sym_rows(cursor at, int64_t i, int64_t last, const uint16_t *length, const double *d, double *q)
{
    const double *a = at.a;
    const int32_t *column = at.column;
    for (; i < last; i++, length++) {
        const double *x = d + 3 * i;
        double x0 = x[0], x1 = x[1], x2 = x[2];
        v4 xi = {x0, x1, x2, 0}, y;
        v4 s0 = LOAD4(a) * xi, s1 = LOAD4(a + 3) * xi, s2 = LOAD4(a + 6) * xi;
        const int32_t *row_end = column + *length;
        PREFETCH(a, AHEAD);
        for (a += 9, column++; column < row_end; a += 9, column++) {
            PREFETCH(a, AHEAD);
            size_t j = 3 * (size_t)(uint32_t)*column;
            v4 r0 = LOAD4_ONCE(a), r1 = LOAD4_ONCE(a + 3), r2 = LOAD4_ONCE(a + 6), xj = LOAD4(d + j);
            s0 += r0 * xj;
            s1 += r1 * xj;
            s2 += r2 * xj;
            v4 t = r0 * x0;
            t += r1 * x1;
            t += r2 * x2;
            *(v2 *)(q + j) += (v2){t[0], t[1]}; /* 2 + 1 entries: a store of 4 would block the next load */
            q[j + 2] += t[2];
        }
        SUMS(y, s0, s1, s2);
        *(v2 *)(q + 3 * i) += (v2){y[0], y[1]};
        q[3 * i + 2] += y[2];
    }
    return (cursor){a, column};
}

INLINE double window_dot(int64_t begin, int64_t end, const double *d, const double *q)
{
    v4 part = {0};
    double tail = 0;
    int64_t k = 3 * begin;
    for (; k + 4 <= 3 * end; k += 4)
        part += LOAD4(d + k) * LOAD4(q + k);
    for (; k < 3 * end; k++)
        tail += d[k] * q[k];
    return LANES4(part) + tail;
}

static void zero(double *q, int64_t begin, int64_t end)
{
    memset(q + 3 * begin, 0, (size_t)(end - begin) * 3 * sizeof *q);
}

/* Interface rows. touched: interior windows that they contribute to, ascending. */
CLONES double fb_sym_interface(const fb_sym *m, const double *d, double *q)
{
    total t = {0, 0};
    cursor at = {m->values, m->columns};
    zero(q, m->n_interior, m->n);
    for (int64_t k = 0; k < m->n_touched; k++) {
        int64_t first = (int64_t)m->touched[k] * WINDOW;
        zero(q, first, first + WINDOW < m->n_interior ? first + WINDOW : m->n_interior);
    }
    for (int64_t i = m->n_interior; i < m->n; i += WINDOW) {
        int64_t last = i + WINDOW < m->n ? i + WINDOW : m->n;
        at = sym_rows(at, i, last, m->length + (i - m->n_interior), d, q);
        add(&t, window_dot(i, last, d, q));
    }
    return result(&t);
}

/* Interior rows. reach[w]: windows that rows up to window w contribute to. */
CLONES double fb_sym_interior(const fb_sym *m, const double *d, double *q)
{
    total t = {0, 0};
    int64_t n = m->n_interior, skip = m->indptr[m->n - n], ready = 0, k = 0;
    const uint16_t *length = m->length + (m->n - n);
    cursor at = {m->values + 9 * skip, m->columns + skip};
    for (int64_t w = 0, i = 0; i < n; w++, i += WINDOW) {
        int64_t last = i + WINDOW < n ? i + WINDOW : n;
        for (; ready < m->reach[w]; ready++)
            if (k < m->n_touched && m->touched[k] == ready)
                k++; /* interface rows were there before */
            else
                zero(q, ready * WINDOW, (ready + 1) * WINDOW < n ? (ready + 1) * WINDOW : n);
        at = sym_rows(at, i, last, length + i, d, q);
        add(&t, window_dot(i, last, d, q));
    }
    return result(&t);
}

/* Fill length (n,), touched (<= windows,), reach (windows,); returns how many windows are touched, -1 if a
 * row is too long. */
int64_t fb_sym_plan(int64_t n, int64_t n_interior, const int64_t *indptr, const int32_t *columns,
                    uint16_t *length, int32_t *touched, int32_t *reach)
{
    int64_t n_windows = (n_interior + WINDOW - 1) / WINDOW, n_interface = n - n_interior, n_touched = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t blocks = indptr[k + 1] - indptr[k];
        if (blocks > UINT16_MAX)
            return -1;
        length[k] = (uint16_t)blocks;
    }
    memset(reach, 0, (size_t)n_windows * sizeof *reach);
    for (int64_t b = 0; b < indptr[n_interface]; b++)
        if (columns[b] < n_interior)
            reach[columns[b] / WINDOW] = 1;
    for (int32_t w = 0; w < n_windows; w++)
        if (reach[w])
            touched[n_touched++] = w;
    for (int64_t w = 0, far = 0; w < n_windows; w++) {
        for (int64_t i = w * WINDOW; i < n_interior && i < (w + 1) * WINDOW; i++) {
            int64_t last = columns[indptr[n_interface + i + 1] - 1] / WINDOW + 1; /* a row's columns ascend */
            far = last > far ? last : far;
        }
        reach[w] = (int32_t)far;
    }
    return n_touched;
}
