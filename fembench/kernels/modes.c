/* Rigid-body modes of a part: the moments of a residual, and a rigid motion added to its nodes.
 *
 * Six numbers (t, w) move a node at x by t + w x (x - centre). Compiled without contraction of products
 * and sums, as all that must come out alike on every sharer of a node. */
#include "kernels.h"

#define CHUNK 64 /* nodes per partial sum */

/* out[0..2] = sum of w r, out[3..5] = sum of (x - centre) x w r; w (3 n_weighted,) of the last nodes, else 1. */
CLONES void fb_moments(int64_t n, int64_t n_weighted, const double *restrict x, const double *restrict centre,
                       const double *restrict r, const double *restrict w, double *restrict out)
{
    double sum[6] = {0};
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        int64_t end = begin + CHUNK < n ? begin + CHUNK : n;
        double part[6] = {0};
        for (int64_t i = begin; i < end; i++) {
            double weight = i < n - n_weighted ? 1 : w[3 * (i - (n - n_weighted))];
            double f[3], y[3];
            for (int c = 0; c < 3; c++) {
                f[c] = weight * r[3 * i + c];
                y[c] = x[3 * i + c] - centre[c];
                part[c] += f[c];
            }
            part[3] += y[1] * f[2] - y[2] * f[1];
            part[4] += y[2] * f[0] - y[0] * f[2];
            part[5] += y[0] * f[1] - y[1] * f[0];
        }
        for (int c = 0; c < 6; c++)
            sum[c] += part[c];
    }
    for (int c = 0; c < 6; c++)
        out[c] = sum[c];
}

/* out (m,) = A (m, n) times v (n,) */
CLONES void fb_small_product(int64_t m, int64_t n, const double *restrict A, const double *restrict v,
                             double *restrict out)
{
    for (int64_t i = 0; i < m; i++) {
        double sum[6] = {0};
        for (int64_t j = 0; j + 6 <= n; j += 6) /* n is six modes a part */
            for (int c = 0; c < 6; c++)
                sum[c] += A[n * i + j + c] * v[j + c];
        out[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + (sum[4] + sum[5]);
    }
}

/* z = inverse r + the rigid motion of each node: motion[0] of interior nodes, motion[kind[k]] of the k-th
 * interface node; motions are about origin. */
CLONES void fb_jacobi_and_motion(int64_t n, int64_t n_interior, const double *restrict x,
                                 const double *restrict origin, const int32_t *restrict kind,
                                 const double *restrict motion, const double *restrict inverse,
                                 const double *restrict r, double *restrict z)
{
    for (int64_t i = 0; i < n; i++) {
        const double *t = motion + 6 * (i < n_interior ? 0 : kind[i - n_interior]), *w = t + 3;
        double y[3], u[3];
        for (int c = 0; c < 3; c++)
            y[c] = x[3 * i + c] - origin[c];
        u[0] = t[0] + (w[1] * y[2] - w[2] * y[1]);
        u[1] = t[1] + (w[2] * y[0] - w[0] * y[2]);
        u[2] = t[2] + (w[0] * y[1] - w[1] * y[0]);
        for (int c = 0; c < 3; c++)
            z[3 * i + c] = inverse[3 * i + c] * r[3 * i + c] + u[c];
    }
}
