/* Stiffness of linear isotropic elasticity and its scatter into 3x3 blocks.
 *
 * With G_ab = integral of grad N_a (x) grad N_b the block of nodes a, b is
 *   K_ab = lam G_ab + mu G_ab^T + mu tr(G_ab) I          (K_ba = K_ab^T). */
#include <stdlib.h>
#include <string.h>

#include "elements.h"

INLINE void tet4_pairs(const double x[4][3], double G[][9])
{
    double g[4][3], volume = tet4_gradients(x, g);
    for (int a = 0, k = 0; a < 4; a++)
        for (int b = a; b < 4; b++, k++)
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++)
                    G[k][3 * r + c] = volume * g[a][r] * g[b][c];
}

INLINE void hex8_pairs(const double x[8][3], double G[][9])
{
    memset(G, 0, 36 * sizeof *G);
    for (int p = 0; p < 8; p++) {
        double g[8][3], weight = hex8_gradients(x, p, g);
        for (int a = 0, k = 0; a < 8; a++)
            for (int b = a; b < 8; b++, k++)
                for (int r = 0; r < 3; r++)
                    for (int c = 0; c < 3; c++)
                        G[k][3 * r + c] += weight * g[a][r] * g[b][c];
    }
}

INLINE void block(double lam, double mu, const double G[9], double K[9])
{
    double trace = mu * (G[0] + G[4] + G[8]);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            K[3 * r + c] = lam * G[3 * r + c] + mu * G[3 * c + r] + (r == c ? trace : 0);
}

INLINE void cell_pairs(int npc, const double *x, const int32_t *nodes, double G[][9])
{
    double at[8][3];
    for (int a = 0; a < npc; a++)
        for (int c = 0; c < 3; c++)
            at[a][c] = x[3 * (int64_t)nodes[a] + c];
    if (npc == 4)
        tet4_pairs(at, G);
    else
        hex8_pairs(at, G);
}

INLINE void stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, double lam, double mu,
                      double *ke)
{
    int m = 3 * npc;
    for (int64_t cell = 0; cell < n_cells; cell++, ke += m * m) {
        double G[36][9], K[9];
        cell_pairs(npc, x, cells + npc * cell, G);
        for (int a = 0, k = 0; a < npc; a++)
            for (int b = a; b < npc; b++, k++) {
                block(lam, mu, G[k], K);
                for (int r = 0; r < 3; r++)
                    for (int c = 0; c < 3; c++)
                        ke[(3 * a + r) * m + 3 * b + c] = ke[(3 * b + c) * m + 3 * a + r] = K[3 * r + c];
            }
    }
}

CLONES static void stiffness_tet4(int64_t n, const double *x, const int32_t *cells, double lam, double mu, double *ke)
{
    stiffness(4, n, x, cells, lam, mu, ke);
}

CLONES static void stiffness_hex8(int64_t n, const double *x, const int32_t *cells, double lam, double mu, double *ke)
{
    stiffness(8, n, x, cells, lam, mu, ke);
}

void fb_stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, double lam, double mu,
                  double *ke)
{
    (npc == 4 ? stiffness_tet4 : stiffness_hex8)(n_cells, x, cells, lam, mu, ke);
}

/* Zero the rows and columns of restrained dofs (bits of `row`, `column`). */
INLINE void restrain(double K[9], int row, int column)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            if ((row >> r | column >> c) & 1)
                K[3 * r + c] = 0;
}

typedef struct {
    int32_t n_interior, n_active;
    int upper;
    const uint8_t *fixed;   /* (n_active,) bits of restrained components */
    const int64_t *first;   /* (n_active,) by node: its row's first block */
    const int32_t *columns;
    double *values;
} matrix;

INLINE double *find(const matrix *m, int32_t i, int32_t j)
{
    int64_t k = m->first[i];
    while (m->columns[k] != j)
        k++;
    return m->values + 9 * k;
}

INLINE int64_t key(const matrix *m, int32_t i) /* rows of interface nodes come first */
{
    return i >= m->n_interior ? i - m->n_active : i;
}

INLINE void scatter(const matrix *m, int32_t i, int32_t j, const double K[9])
{
    int rows_first = !m->upper || key(m, i) <= key(m, j);
    if (rows_first) {
        double *to = find(m, i, j);
        for (int e = 0; e < 9; e++)
            to[e] += K[e];
    }
    if (i != j && (!m->upper || !rows_first)) {
        double *to = find(m, j, i);
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                to[3 * r + c] += K[3 * c + r];
    }
}

INLINE void assemble(int npc, int64_t n_cells, const double *x, const int32_t *cells, double lam, double mu,
                     const matrix *m)
{
    for (int64_t cell = 0; cell < n_cells; cell++) {
        const int32_t *nodes = cells + npc * cell;
        double G[36][9], K[9];
        cell_pairs(npc, x, nodes, G);
        for (int a = 0, k = 0; a < npc; a++) {
            for (int b = a; b < npc; b++, k++) {
                if (nodes[a] >= m->n_active || nodes[b] >= m->n_active)
                    continue;
                block(lam, mu, G[k], K);
                if (m->fixed[nodes[a]] | m->fixed[nodes[b]])
                    restrain(K, m->fixed[nodes[a]], m->fixed[nodes[b]]);
                scatter(m, nodes[a], nodes[b], K);
            }
        }
    }
}

CLONES static void assemble_tet4(int64_t n, const double *x, const int32_t *cells, double lam, double mu, const matrix *m)
{
    assemble(4, n, x, cells, lam, mu, m);
}

CLONES static void assemble_hex8(int64_t n, const double *x, const int32_t *cells, double lam, double mu, const matrix *m)
{
    assemble(8, n, x, cells, lam, mu, m);
}

int fb_assemble(int npc, int64_t n_cells, const double *x, const int32_t *cells, double lam, double mu,
                int32_t n_interior, int32_t n_active, int upper, const uint8_t *fixed,
                const int64_t *indptr, const int32_t *rows, const int32_t *columns, double *values)
{
    int64_t *first = malloc(((size_t)n_active + 1) * sizeof *first);
    if (!first)
        return -1;
    for (int32_t k = 0; k < n_active; k++)
        first[rows[k]] = indptr[k];
    matrix m = {n_interior, n_active, upper, fixed, first, columns, values};
    memset(values, 0, (size_t)indptr[n_active] * 9 * sizeof *values);
    (npc == 4 ? assemble_tet4 : assemble_hex8)(n_cells, x, cells, lam, mu, &m);
    for (int32_t i = 0; i < n_active; i++)
        for (int c = 0; c < 3; c++)
            if (fixed[i] >> c & 1)
                find(&m, i, i)[4 * c] = 1;
    free(first);
    return 0;
}
