/* Volumes and shapes of cells. */
#include <math.h>

#include "kernels.h"

static const int8_t HEX_CORNER[8][4] = {{0, 1, 3, 4}, {1, 2, 0, 5}, {2, 3, 1, 6}, {3, 0, 2, 7},
                                        {4, 7, 5, 0}, {5, 4, 6, 1}, {6, 5, 7, 2}, {7, 6, 4, 3}};

INLINE double squared(const double *a, const double *b)
{
    double d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

/* (a - o) . (b - o) x (c - o) */
INLINE double triple(const double *o, const double *a, const double *b, const double *c)
{
    double d[3] = {a[0] - o[0], a[1] - o[1], a[2] - o[2]}, e[3] = {b[0] - o[0], b[1] - o[1], b[2] - o[2]};
    double f[3] = {c[0] - o[0], c[1] - o[1], c[2] - o[2]};
    return d[0] * (e[1] * f[2] - e[2] * f[1]) + d[1] * (e[2] * f[0] - e[0] * f[2]) + d[2] * (e[0] * f[1] - e[1] * f[0]);
}

/* The cube of the mean ratio is 432 times the square of this. */
INLINE double tet4_shape(const double *a, const double *b, const double *c, const double *d)
{
    double edges = squared(a, b) + squared(a, c) + squared(a, d) + squared(b, c) + squared(b, d) + squared(c, d);
    double det = triple(a, b, c, d);
    return det > 0 ? det / (edges * sqrt(edges)) : 0;
}

/* 8 over the mean ratio */
static double hex8_shape(const double *x, const int32_t *nodes)
{
    double total = 0;
    for (int k = 0; k < 8; k++) {
        const double *p[4];
        for (int a = 0; a < 4; a++)
            p[a] = x + 3 * (int64_t)nodes[HEX_CORNER[k][a]];
        double det = triple(p[0], p[1], p[2], p[3]), root = cbrt(det);
        double norm = squared(p[0], p[1]) + squared(p[0], p[2]) + squared(p[0], p[3]);
        total += det > 0 ? norm / (3 * root * root) : INFINITY;
    }
    return total;
}

/* The mean ratio of the worst cell (fembench/mesh/elements.py), whose root alone is taken: from 0, flat or inverted, to 1;
 * infinite if there are no cells. */
double fb_lowest_quality(int64_t n_cells, int npc, const double *x, const int32_t *cells)
{
    double worst = npc == 4 ? INFINITY : 0;
    if (!n_cells)
        return INFINITY;
    if (npc == 8) {
        for (int64_t c = 0; c < n_cells; c++)
            worst = fmax(worst, hex8_shape(x, cells + 8 * c));
        return fmin(8 / worst, 1);
    }
    for (int64_t c = 0; c < n_cells; c++) {
        const int32_t *nodes = cells + 4 * c;
        const double *p[4];
        for (int a = 0; a < 4; a++)
            p[a] = x + 3 * (int64_t)nodes[a];
        double shape = tet4_shape(p[0], p[1], p[2], p[3]);
        worst = shape < worst ? shape : worst;
    }
    double root = cbrt(worst / 2);
    return fmin(12 * root * root, 1);
}

/* Add to f (n_nodes, 3) a constant force per volume in tetrahedra, a quarter to each node; returns how many of them are flat
 * or inverted. */
int64_t fb_add_weights(int64_t n_cells, const double *x, const int32_t *cells, const double *density, double *f)
{
    int64_t bad = 0;
    for (int64_t c = 0; c < n_cells; c++) {
        const int32_t *nodes = cells + 4 * c;
        const double *p[4];
        for (int a = 0; a < 4; a++)
            p[a] = x + 3 * (int64_t)nodes[a];
        double det = triple(p[0], p[1], p[2], p[3]), quarter = det / 24;
        bad += !(det > 0);
        for (int a = 0; a < 4; a++)
            for (int k = 0; k < 3; k++)
                f[3 * (int64_t)nodes[a] + k] += density[k] * quarter;
    }
    return bad;
}

INLINE int64_t cells_meeting(int npc, int64_t n_cells, const int32_t *cells, const uint8_t *marked, int least, int32_t *found)
{
    int64_t n = 0;
    for (int64_t c = 0; c < n_cells; c++) {
        int met = 0;
        for (int a = 0; a < npc; a++)
            met += marked[cells[npc * c + a]];
        if (met >= least) {
            if (found)
                found[n] = (int32_t)c;
            n++;
        }
    }
    return n;
}

/* Cells with at least `least` marked nodes (0 or 1 each), ascending, unless found is NULL; returns how many. */
int64_t fb_cells_meeting(int64_t n_cells, int npc, const int32_t *cells, const uint8_t *marked, int least, int32_t *found)
{
    return npc == 4 ? cells_meeting(4, n_cells, cells, marked, least, found)
                    : cells_meeting(8, n_cells, cells, marked, least, found);
}
