/* Matrix-vector products of a rank's own, unassembled stiffness: scalar rows, dense, full 3x3 blocks. */
#include "blocks.h"
#include "sums.h"

/* Full 3x3 blocks, rows [begin, end); returns their part of d . q, or keeps that of every window in `parts`. */
INLINE double bsr(int prefetch, int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
                  const double *values, const double *d, double *restrict q, double *parts)
{
    total t = {0, 0, parts};
    const double *a = values + 9 * indptr[begin];
    const int32_t *column = columns + indptr[begin];
    for (int64_t window = begin; window < end; window += WINDOW) {
        v2 part = {0};
        double third = 0;
        int64_t last = window + WINDOW < end ? window + WINDOW : end;
        for (int64_t i = window; i < last; i++) {
            v4 s0 = {0}, s1 = {0}, s2 = {0};
            const int32_t *row_end = columns + indptr[i + 1];
            for (; column < row_end; column++, a += 9) {
                if (prefetch)
                    PREFETCH(a, 4096, 3);
                v4 x = LOAD4(d + 3 * (size_t)(uint32_t)*column);
                s0 += LOAD4(a) * x;
                s1 += LOAD4(a + 3) * x;
                s2 += LOAD4(a + 6) * x;
            }
            v2 y01;
            double y2;
            SUMS(y01, y2, s0, s1, s2);
            *(v2 *)(q + 3 * i) = y01;
            q[3 * i + 2] = y2;
            part += y01 * *(const v2 *)(d + 3 * i);
            third += y2 * d[3 * i + 2];
        }
        add(&t, (part[0] + part[1]) + third);
    }
    return result(&t);
}

CLONES double fb_bsr(int far, int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
                     const double *values, const double *d, double *restrict q, double *parts)
{
    return far ? bsr(1, begin, end, indptr, columns, values, d, q, parts)
               : bsr(0, begin, end, indptr, columns, values, d, q, parts);
}

/* Scalar compressed rows [begin, end), four partial sums a row. */
CLONES void fb_csr(int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
                   const double *values, const double *d, double *restrict q)
{
    for (int64_t i = begin; i < end; i++) {
        double s[4] = {0};
        int64_t k = indptr[i], last = indptr[i + 1];
        for (; k + 4 <= last; k += 4)
            for (int c = 0; c < 4; c++)
                s[c] += values[k + c] * d[columns[k + c]];
        for (; k < last; k++)
            s[0] += values[k] * d[columns[k]];
        q[i] = (s[0] + s[2]) + (s[1] + s[3]);
    }
}

/* All n entries of rows [begin, end), zero or not. */
CLONES void fb_dense(int64_t begin, int64_t end, int64_t n, const double *values, const double *d,
                     double *restrict q)
{
    for (int64_t i = begin; i < end; i++) {
        const double *a = values + n * i;
        v4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        double tail = 0;
        int64_t j = 0;
        for (; j + 16 <= n; j += 16) {
            s0 += LOAD4(a + j) * LOAD4(d + j);
            s1 += LOAD4(a + j + 4) * LOAD4(d + j + 4);
            s2 += LOAD4(a + j + 8) * LOAD4(d + j + 8);
            s3 += LOAD4(a + j + 12) * LOAD4(d + j + 12);
        }
        for (; j < n; j++)
            tail += a[j] * d[j];
        s0 = (s0 + s1) + (s2 + s3);
        q[i] = LANES4(s0) + tail;
    }
}

/* Rows are independent: any thread may have any of them. Windows stay whole. */
static void rows_piece(const void *whole, int64_t k, int64_t n)
{
    const fb_rows *p = whole;
    int64_t step = p->kind == FB_BSR ? WINDOW : 1;
    int64_t begin = fb_cut(p->indptr, p->begin, p->end, step, k, n), end = fb_cut(p->indptr, p->begin, p->end, step, k + 1, n);
    if (p->kind == FB_BSR)
        fb_bsr(p->far, begin, end, p->indptr, p->columns, p->values, p->d, p->q, p->parts + (begin - p->begin) / step);
    else if (p->kind == FB_CSR)
        fb_csr(begin, end, p->indptr, p->columns, p->values, p->d, p->q);
    else
        fb_dense(begin, end, p->n, p->values, p->d, p->q);
}

double fb_rows_in_pieces(int n_threads, const fb_rows *p)
{
    if (p->kind == FB_BSR && !p->parts)
        return fb_bsr(p->far, p->begin, p->end, p->indptr, p->columns, p->values, p->d, p->q, NULL);
    fb_team(n_threads, rows_piece, p);
    return p->kind == FB_BSR ? sum_of((p->end - p->begin + WINDOW - 1) / WINDOW, p->parts) : 0;
}
