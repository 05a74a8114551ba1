/* Geometry of one cell, for assembly and for the matrix-free product.
 * Gradients g[a][c] = dN_a/dx_c; weight = volume (tet4) or det J * Gauss weight (hex8). */
#ifndef FEMBENCH_ELEMENTS_H
#define FEMBENCH_ELEMENTS_H

#include "kernels.h"

#define LAM(lame, cell) ((lame).lam[(cell) * (lame).step])
#define MU(lame, cell) ((lame).mu[(cell) * (lame).step])

/* tet4: constant gradients (x holds 4 x 3 coordinates); returns the volume */
INLINE double tet4_gradients(const double x[4][3], double g[4][3])
{
    double a[3], b[3], c[3];
    for (int k = 0; k < 3; k++)
        a[k] = x[1][k] - x[0][k], b[k] = x[2][k] - x[0][k], c[k] = x[3][k] - x[0][k];
    double bc[3] = {b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]};
    double ca[3] = {c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0]};
    double ab[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    double det = a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2], s = 1 / det;
    for (int k = 0; k < 3; k++) {
        g[1][k] = s * bc[k], g[2][k] = s * ca[k], g[3][k] = s * ab[k];
        g[0][k] = -(g[1][k] + g[2][k] + g[3][k]);
    }
    return det / 6;
}

/* hex8, VTK order: signs of the corners on [-1, 1]^3 */
static const double HEX_SIGN[8][3] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                                      {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};
#define GAUSS 0.57735026918962576451 /* 1/sqrt(3) */

/* hex8: gradients at Gauss point p of the 2x2x2 rule; returns det J (the rule's weights are 1) */
INLINE double hex8_gradients(const double x[8][3], int p, double g[8][3])
{
    double dn[8][3], J[3][3] = {{0}};
    for (int a = 0; a < 8; a++) {
        const double *s = HEX_SIGN[a], *t = HEX_SIGN[p];
        double f[3];
        for (int c = 0; c < 3; c++)
            f[c] = 1 + GAUSS * t[c] * s[c];
        dn[a][0] = 0.125 * s[0] * f[1] * f[2];
        dn[a][1] = 0.125 * s[1] * f[0] * f[2];
        dn[a][2] = 0.125 * s[2] * f[0] * f[1];
        for (int e = 0; e < 3; e++)
            for (int c = 0; c < 3; c++)
                J[e][c] += dn[a][e] * x[a][c]; /* dx_c / dxi_e */
    }
    double K[3][3]; /* dxi_e / dx_c, times det */
    K[0][0] = J[1][1] * J[2][2] - J[1][2] * J[2][1];
    K[0][1] = J[2][1] * J[0][2] - J[0][1] * J[2][2];
    K[0][2] = J[0][1] * J[1][2] - J[1][1] * J[0][2];
    K[1][0] = J[1][2] * J[2][0] - J[1][0] * J[2][2];
    K[1][1] = J[0][0] * J[2][2] - J[2][0] * J[0][2];
    K[1][2] = J[1][0] * J[0][2] - J[0][0] * J[1][2];
    K[2][0] = J[1][0] * J[2][1] - J[1][1] * J[2][0];
    K[2][1] = J[2][0] * J[0][1] - J[0][0] * J[2][1];
    K[2][2] = J[0][0] * J[1][1] - J[0][1] * J[1][0];
    double det = J[0][0] * K[0][0] + J[0][1] * K[1][0] + J[0][2] * K[2][0], s = 1 / det;
    for (int a = 0; a < 8; a++)
        for (int c = 0; c < 3; c++)
            g[a][c] = s * (K[c][0] * dn[a][0] + K[c][1] * dn[a][1] + K[c][2] * dn[a][2]);
    return det;
}

#define YZX(v) PICK4(v, v, 1, 2, 0, 3)

INLINE v4 cross3(v4 a, v4 b) /* of the first three */
{
    v4 turned = a * YZX(b) - YZX(a) * b;
    return YZX(turned);
}

/* shape (8 points, 8 nodes, 3): dN_a / dxi_e */
static inline void shape_gradients(double shape[8][8][3])
{
    for (int p = 0; p < 8; p++)
        for (int a = 0; a < 8; a++)
            for (int e = 0; e < 3; e++) {
                const double *s = HEX_SIGN[a], *t = HEX_SIGN[p];
                int f = (e + 1) % 3, h = (e + 2) % 3;
                shape[p][a][e] = 0.125 * s[e] * (1 + GAUSS * t[f] * s[f]) * (1 + GAUSS * t[h] * s[h]);
            }
}

/* hex8: gradients at the eight points and the points' weights; x (n_nodes, 4): coordinates and a zero. */
INLINE void hex8_all_gradients(const v4 *x, const int32_t *nodes, const double shape[8][8][3], v4 g[8][8],
                               double weight[8])
{
    for (int p = 0; p < 8; p++) {
        v4 u = {0}, v = {0}, w = {0}; /* dx / dxi_e */
        for (int a = 0; a < 8; a++) {
            u += shape[p][a][0] * x[nodes[a]];
            v += shape[p][a][1] * x[nodes[a]];
            w += shape[p][a][2] * x[nodes[a]];
        }
        v4 vw = cross3(v, w), wu = cross3(w, u), uv = cross3(u, v);
        v4 det = u * vw;
        weight[p] = (det[0] + det[1]) + det[2];
        double scale = 1 / weight[p];
        for (int a = 0; a < 8; a++)
            g[p][a] = (shape[p][a][0] * scale) * vw + (shape[p][a][1] * scale) * wu + (shape[p][a][2] * scale) * uv;
    }
}

#endif
