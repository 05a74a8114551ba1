/* Matrix-vector products of a rank's own, unassembled stiffness over a range of rows. */
#include "kernels.h"

INLINE void multiply_add(const double *a, const double *x, double *y)
{
    for (int r = 0; r < 3; r++)
        y[r] += a[3 * r] * x[0] + a[3 * r + 1] * x[1] + a[3 * r + 2] * x[2];
}

INLINE void multiply_add_transposed(const double *a, const double *x, double *y)
{
    for (int c = 0; c < 3; c++)
        y[c] += a[c] * x[0] + a[3 + c] * x[1] + a[6 + c] * x[2];
}

CLONES double fb_bsr(int64_t begin, int64_t end, const int64_t *indptr,
                     const int32_t *columns, const double *values, const double *d, double *restrict q)
{
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        double y[3] = {0};
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++)
            multiply_add(values + 9 * k, d + 3 * (int64_t)columns[k], y);
        for (int c = 0; c < 3; c++) {
            q[3 * i + c] = y[c];
            sum += y[c] * d[3 * i + c];
        }
    }
    return sum;
}

CLONES double fb_sym(int64_t begin, int64_t end, const int64_t *indptr, const int32_t *rows,
                     const int32_t *columns, const double *values, const double *d, double *restrict q)
{
    for (int64_t k = begin; k < end; k++) {
        const double *x = d + 3 * (int64_t)rows[k];
        double y[3] = {0};
        multiply_add(values + 9 * indptr[k], x, y);
        for (int64_t b = indptr[k] + 1; b < indptr[k + 1]; b++) {
            int64_t j = 3 * (int64_t)columns[b];
            multiply_add(values + 9 * b, d + j, y);
            multiply_add_transposed(values + 9 * b, x, q + j);
        }
        for (int c = 0; c < 3; c++)
            q[3 * (int64_t)rows[k] + c] += y[c];
    }
    double sum = 0;
    for (int64_t k = begin; k < end; k++)
        for (int c = 0; c < 3; c++)
            sum += d[3 * (int64_t)rows[k] + c] * q[3 * (int64_t)rows[k] + c];
    return sum;
}

CLONES void fb_csr(int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
                   const double *values, const double *d, double *restrict q)
{
    for (int64_t i = begin; i < end; i++) {
        double y = 0;
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++)
            y += values[k] * d[columns[k]];
        q[i] = y;
    }
}

CLONES void fb_dense(int64_t begin, int64_t end, int64_t n, const double *values, const double *d,
                     double *restrict q)
{
    for (int64_t i = begin; i < end; i++) {
        const double *a = values + n * i;
        v8 s = {0}, t = {0};
        int64_t j = 0;
        for (; j + 16 <= n; j += 16) {
            s += *(const v8 *)(a + j) * *(const v8 *)(d + j);
            t += *(const v8 *)(a + j + 8) * *(const v8 *)(d + j + 8);
        }
        double y = 0;
        for (; j < n; j++)
            y += a[j] * d[j];
        s += t;
        q[i] = y + ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}
