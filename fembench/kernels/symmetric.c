/* The symmetric product: every pair of nodes is stored once, and read once for both of its halves.
 *
 * Rows are stored interface first, see pattern.c. Row i adds its blocks times d to q_i and their
 * transposes times d_i to the q of its columns. A window of rows is final when its last row is done, for
 * every other contribution comes from rows before it: then its part of d . q is taken, while q is in
 * the first-level cache. A window of q is zeroed just ahead of its first use, for the same reason.
 *
 * Stored numbers take `size` bytes, 8 or 4: a constant in each compiled form. All is computed in double precision. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "sums.h"

/* Of a matrix that no near cache holds, values are called into the second-level cache (locality 2): the
 * first level has few places for misses under way, and d and q need them. */
#define AHEAD 12288, 2 /* bytes */

typedef struct {
    const char *a;         /* next block */
    const int32_t *column; /* its column */
} cursor;

INLINE v4 block_row(int size, const char *a, int r)
{
    a += 3 * r * size;
    return size == 8 ? LOAD4_ONCE(a) : __builtin_convertvector(*(const volatile f4 *)a, v4);
}

/* Rows of the nodes [i, last); length: blocks of each row, its own node's first. */
INLINE cursor sym_rows(int far, int size, cursor at, int64_t i, int64_t last, const uint16_t *length, const double *d,
                       double *q)
{
    const char *a = at.a;
    const int32_t *column = at.column;
    for (; i < last; i++, length++) {
        const double *x = d + 3 * i;
        double x0 = x[0], x1 = x[1], x2 = x[2];
        v4 xi = {x0, x1, x2, 0};
        v4 s0 = block_row(size, a, 0) * xi, s1 = block_row(size, a, 1) * xi, s2 = block_row(size, a, 2) * xi;
        const int32_t *row_end = column + *length;
        if (far)
            PREFETCH(a, AHEAD);
        for (a += 9 * size, column++; column < row_end; a += 9 * size, column++) {
            if (far)
                PREFETCH(a, AHEAD);
            size_t j = 3 * (size_t)(uint32_t)*column;
            v4 r0 = block_row(size, a, 0), r1 = block_row(size, a, 1), r2 = block_row(size, a, 2), xj = LOAD4(d + j);
            s0 += r0 * xj;
            s1 += r1 * xj;
            s2 += r2 * xj;
            v4 t = r0 * x0;
            t += r1 * x1;
            t += r2 * x2;
            *(v2 *)(q + j) += (v2){t[0], t[1]}; /* 2 + 1 entries: a store of 4 would block the next load */
            q[j + 2] += t[2];
        }
        v2 y01;
        double y2;
        SUMS(y01, y2, s0, s1, s2);
        *(v2 *)(q + 3 * i) += y01;
        q[3 * i + 2] += y2;
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

static void zero_windows(const fb_sym *m, int64_t from, int64_t to, double *q)
{
    for (int64_t k = from; k < to; k++) {
        int64_t first = (int64_t)m->order[k] * WINDOW;
        zero(q, first, first + WINDOW < m->n_interior ? first + WINDOW : m->n_interior);
    }
}

INLINE double interface_rows(int far, int size, const fb_sym *m, const double *d, double *q)
{
    total t = {0, 0};
    cursor at = {m->values, m->columns};
    zero(q, m->n_interior, m->n);
    zero_windows(m, 0, m->n_touched, q);
    for (int64_t i = m->n_interior; i < m->n; i += WINDOW) {
        int64_t last = i + WINDOW < m->n ? i + WINDOW : m->n;
        at = sym_rows(far, size, at, i, last, m->length + (i - m->n_interior), d, q);
        add(&t, window_dot(i, last, d, q));
    }
    return result(&t);
}

INLINE double interior_rows(int far, int size, const fb_sym *m, const double *d, double *q)
{
    total t = {0, 0};
    int64_t n = m->n_interior, skip = m->indptr[m->n - n], ready = m->n_touched;
    const uint16_t *length = m->length + (m->n - n);
    cursor at = {(const char *)m->values + 9 * size * skip, m->columns + skip};
    for (int64_t w = 0, i = 0; i < n; w++, i += WINDOW) {
        int64_t last = i + WINDOW < n ? i + WINDOW : n;
        zero_windows(m, ready, m->ready[w], q);
        ready = m->ready[w];
        at = sym_rows(far, size, at, i, last, length + i, d, q);
        add(&t, window_dot(i, last, d, q));
    }
    return result(&t);
}

CLONES double fb_sym_interface(const fb_sym *m, const double *d, double *q)
{
    if (m->single)
        return m->far ? interface_rows(1, 4, m, d, q) : interface_rows(0, 4, m, d, q);
    return m->far ? interface_rows(1, 8, m, d, q) : interface_rows(0, 8, m, d, q);
}

CLONES double fb_sym_interior(const fb_sym *m, const double *d, double *q)
{
    if (m->single)
        return m->far ? interior_rows(1, 4, m, d, q) : interior_rows(0, 4, m, d, q);
    return m->far ? interior_rows(1, 8, m, d, q) : interior_rows(0, 8, m, d, q);
}

/* Note the windows of [begin, end) that nobody has used before; returns how many are noted now. */
static int64_t note(int64_t begin, int64_t end, int64_t n_interior, const int32_t *columns, uint8_t *used,
                    int32_t *order, int64_t noted)
{
    for (int64_t b = begin; b < end; b++)
        if (columns[b] < n_interior && !used[columns[b] / WINDOW]) {
            used[columns[b] / WINDOW] = 1;
            order[noted++] = columns[b] / WINDOW;
        }
    return noted;
}

/* Fill length (n,), order and ready (windows,); returns how many windows interface rows use, or -1. */
int64_t fb_sym_plan(int64_t n, int64_t n_interior, const int64_t *indptr, const int32_t *columns,
                    uint16_t *length, int32_t *order, int32_t *ready)
{
    int64_t n_windows = (n_interior + WINDOW - 1) / WINDOW, split = n - n_interior;
    uint8_t *used = calloc((size_t)n_windows + 1, 1);
    for (int64_t k = 0; k < n; k++) {
        length[k] = (uint16_t)(indptr[k + 1] - indptr[k]);
        if (indptr[k + 1] - indptr[k] > UINT16_MAX || !used) {
            free(used);
            return -1;
        }
    }
    int64_t n_touched = note(0, indptr[split], n_interior, columns, used, order, 0), noted = n_touched;
    for (int64_t w = 0; w < n_windows; w++) {
        int64_t last = (w + 1) * WINDOW < n_interior ? (w + 1) * WINDOW : n_interior;
        noted = note(indptr[split + w * WINDOW], indptr[split + last], n_interior, columns, used, order, noted);
        ready[w] = (int32_t)noted;
    }
    free(used);
    return n_touched;
}
