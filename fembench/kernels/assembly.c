/* Stiffness of linear isotropic elasticity, element by element and assembled into 3x3 blocks.
 *
 * With G_ab = integral of grad N_a (x) grad N_b the block of nodes a, b is
 *   K_ab = lam G_ab + mu G_ab^T + mu tr(G_ab) I          (K_ba = K_ab^T).
 *
 * Tetrahedra are assembled row by row: every cell of the row's node adds its blocks to a buffer in the
 * first-level cache, and the row is written once, in order. A cell is visited once a node; computing its
 * gradients again costs less than searching rows for columns and adding to blocks all over memory.
 * Hexahedra, whose integrals cost more than finding the place, are assembled cell by cell. */
#include <math.h>
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

INLINE void stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, fb_lame lame, double *ke)
{
    int m = 3 * npc;
    for (int64_t cell = 0; cell < n_cells; cell++, ke += m * m) {
        double at[8][3], G[36][9], lam = LAM(lame, cell), mu = MU(lame, cell);
        for (int a = 0; a < npc; a++)
            for (int c = 0; c < 3; c++)
                at[a][c] = x[3 * (int64_t)cells[npc * cell + a] + c];
        if (npc == 4)
            tet4_pairs(at, G);
        else
            hex8_pairs(at, G);
        for (int a = 0, k = 0; a < npc; a++)
            for (int b = a; b < npc; b++, k++) {
                double trace = mu * (G[k][0] + G[k][4] + G[k][8]);
                for (int r = 0; r < 3; r++)
                    for (int c = 0; c < 3; c++)
                        ke[(3 * a + r) * m + 3 * b + c] = ke[(3 * b + c) * m + 3 * a + r] =
                            lam * G[k][3 * r + c] + mu * G[k][3 * c + r] + (r == c ? trace : 0);
            }
    }
}

CLONES void fb_stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, fb_lame lame, double *ke)
{
    if (npc == 4)
        stiffness(4, n_cells, x, cells, lame, ke);
    else
        stiffness(8, n_cells, x, cells, lame, ke);
}

typedef struct {
    v4 row[3]; /* G of one block, a row a vector */
} slot;

/* Add `scale` times the G of the own-th node of one tetrahedron with the other three, in whatever order they are: the gradients
 * of two nodes change their signs together. x (n_nodes, 4): coordinates and a zero; place[node]: slot of a column, 0
 * where it has none. */
INLINE void tet4_visit(const v4 *x, const int32_t *nodes, int own, double scale, const int32_t *place, slot *buffer)
{
    const int32_t other[3] = {nodes[(own + 1) & 3], nodes[(own + 2) & 3], nodes[(own + 3) & 3]};
    v4 at = x[nodes[own]], a = x[other[0]] - at, b = x[other[1]] - at, c = x[other[2]] - at, g[3];
    v4 bc = b * YZX(c) - YZX(b) * c, ca = c * YZX(a) - YZX(c) * a, ab = a * YZX(b) - YZX(a) * b;
    g[0] = YZX(bc), g[1] = YZX(ca), g[2] = YZX(ab); /* gradients times det, which is 6 volumes */
    v4 det = a * g[0];
    double weight = -scale / (6 * fabs((det[0] + det[1]) + det[2]));
    v4 mine = weight * (g[0] + g[1] + g[2]);
    for (int k = 0; k < 3; k++) {
        v4 *to = buffer[place[other[k]]].row;
        to[0] += mine[0] * g[k];
        to[1] += mine[1] * g[k];
        to[2] += mine[2] * g[k];
    }
}

/* The gradients of a cell's nodes sum to zero: a node's G with itself, symmetric, is what all others lack. */
INLINE slot lacking(const slot *buffer, int32_t n)
{
    slot own = {{{0}}};
    for (int32_t e = 0; e < n; e++)
        for (int r = 0; r < 3; r++)
            own.row[r] -= buffer[e].row[r];
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < r; c++)
            own.row[r][c] = own.row[c][r] = (own.row[r][c] + own.row[c][r]) / 2;
    return own;
}

/* K = lam G + mu G^T + mu tr(G) I */
INLINE void stiffness_of(const slot *from, double lam, double mu, double *K)
{
    const v4 *G = from->row;
    double trace = mu * (G[0][0] + G[1][1] + G[2][2]);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            K[3 * r + c] = lam * G[r][c] + mu * G[c][r] + (r == c ? trace : 0);
}

typedef struct {
    int32_t n_interior, n_active;
    int upper;
    const uint8_t *fixed; /* (n_active,) bits of restrained components */
    const int64_t *indptr;
    const int32_t *rows, *columns;
    double *values;
} matrix;

/* Zero the rows and columns of restrained dofs; one on the diagonal of node i's own block. */
static void restrain(double *K, int row, int column, int own)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            if ((row >> r | column >> c) & 1)
                K[3 * r + c] = own && r == c ? 1 : 0;
}

static void restrain_row(const matrix *m, int64_t k)
{
    int own = m->fixed[m->rows[k]];
    for (int64_t e = m->indptr[k]; e < m->indptr[k + 1]; e++) {
        int32_t j = m->columns[e];
        if (own | m->fixed[j])
            restrain(m->values + 9 * e, own, m->fixed[j], j == m->rows[k]);
    }
}

INLINE int alike(fb_lame lame, const int32_t *at, int64_t n) /* whether these cells have the same parameters */
{
    int64_t first = n ? *at / 4 : 0;
    for (int64_t c = 0; c < n && lame.step; c++)
        if (LAM(lame, at[c] / 4) != LAM(lame, first) || MU(lame, at[c] / 4) != MU(lame, first))
            return 0;
    return 1;
}

/* The row of node i among cells of different parameters: K = sum lam G + sum mu (G^T + tr(G) I), one sum after the
 * other. */
INLINE void mixed_row(const v4 *x, const int32_t *ascending, fb_lame lame, const int32_t *at, int64_t n_cells,
                      int32_t i, int32_t n, const int32_t *place, slot *buffer, double *to)
{
    double K[9];
    for (int term = 0; term < 2; term++) {
        memset(buffer, 0, (size_t)(n + 1) * sizeof *buffer);
        for (int64_t c = 0; c < n_cells; c++)
            tet4_visit(x, ascending + (at[c] & ~3), at[c] & 3, term ? MU(lame, at[c] / 4) : LAM(lame, at[c] / 4),
                       place, buffer);
        slot own = lacking(buffer, n + 1);
        buffer[place[i]] = own;
        for (int32_t e = 0; e < n; e++) {
            stiffness_of(buffer + e + 1, !term, term, K);
            for (int k = 0; k < 9; k++)
                to[9 * e + k] = term ? to[9 * e + k] + K[k] : K[k];
        }
    }
}

/* ascending, start, at: of fb_incidence. place (n_nodes,) of zeros; buffer has one slot more than the longest row,
 * slot 0 takes what is dropped. */
CLONES static void assemble_tet4(const v4 *x, const int32_t *ascending, fb_lame lame, const int64_t *start,
                                 const int32_t *at, const matrix *m, int32_t *place, slot *buffer)
{
    for (int64_t k = 0; k < m->n_active; k++) {
        int32_t i = m->rows[k];
        const int32_t *columns = m->columns + m->indptr[k];
        int32_t n = (int32_t)(m->indptr[k + 1] - m->indptr[k]);
        const int32_t *cells = at + start[i];
        int64_t n_cells = start[i + 1] - start[i], first = n_cells ? *cells / 4 : 0;
        double *to = m->values + 9 * m->indptr[k];
        for (int32_t e = 0; e < n; e++)
            place[columns[e]] = e + 1;
        if (alike(lame, cells, n_cells)) {
            memset(buffer, 0, (size_t)(n + 1) * sizeof *buffer);
            for (int64_t c = 0; c < n_cells; c++)
                tet4_visit(x, ascending + (cells[c] & ~3), cells[c] & 3, 1, place, buffer);
            slot own = lacking(buffer, n + 1);
            buffer[place[i]] = own;
            for (int32_t e = 0; e < n; e++)
                stiffness_of(buffer + e + 1, LAM(lame, first), MU(lame, first), to + 9 * e);
        } else
            mixed_row(x, ascending, lame, cells, n_cells, i, n, place, buffer, to);
        for (int32_t e = 0; e < n; e++)
            place[columns[e]] = 0;
        restrain_row(m, k);
    }
}

/* Where block (i, j) is: halving without a branch; columns ascend behind the row's own. */
INLINE double *find(const matrix *m, const int64_t *first, const int32_t *length, int32_t i, int32_t j)
{
    const int32_t *at = m->columns + first[i] + m->upper, *row = m->columns + first[i];
    if (m->upper && i == j)
        return m->values + 9 * first[i];
    for (int32_t n = length[i] - m->upper; n > 1; n -= n / 2)
        at += at[n / 2 - 1] < j ? n / 2 : 0;
    return m->values + 9 * (first[i] + (at - row));
}

INLINE int64_t key(const matrix *m, int32_t i) /* rows of interface nodes come first */
{
    return i >= m->n_interior ? i - m->n_active : i;
}

INLINE void hex8_block(v4 g[8][8], const double weight[8], int a, int b, double lam, double mu, double K[9])
{
    slot sum = {{{0}}};
    for (int p = 0; p < 8; p++) {
        v4 own = weight[p] * g[p][a];
        for (int r = 0; r < 3; r++)
            sum.row[r] += own[r] * g[p][b];
    }
    stiffness_of(&sum, lam, mu, K);
}

INLINE void scatter(const matrix *m, const int64_t *first, const int32_t *length, int32_t i, int32_t j,
                    const double K[9])
{
    int rows_first = !m->upper || key(m, i) <= key(m, j);
    if (rows_first) {
        double *to = find(m, first, length, i, j);
        for (int e = 0; e < 9; e++)
            to[e] += K[e];
    }
    if (i != j && (!m->upper || !rows_first)) {
        double *to = find(m, first, length, j, i);
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                to[3 * r + c] += K[3 * c + r];
    }
}

CLONES static void assemble_hex8(int64_t n_cells, const v4 *x, const int32_t *cells, fb_lame lame,
                                 const matrix *m, const int64_t *first, const int32_t *length)
{
    double shape[8][8][3];
    shape_gradients(shape);
    memset(m->values, 0, (size_t)m->indptr[m->n_active] * 9 * sizeof *m->values);
    for (int64_t cell = 0; cell < n_cells; cell++) {
        const int32_t *nodes = cells + 8 * cell;
        v4 g[8][8];
        double weight[8], K[9];
        hex8_all_gradients(x, nodes, shape, g, weight);
        for (int a = 0; a < 8; a++)
            for (int b = a; b < 8; b++)
                if (nodes[a] < m->n_active && nodes[b] < m->n_active) {
                    hex8_block(g, weight, a, b, LAM(lame, cell), MU(lame, cell), K);
                    scatter(m, first, length, nodes[a], nodes[b], K);
                }
    }
    for (int64_t k = 0; k < m->n_active; k++)
        restrain_row(m, k);
}

static int32_t longest_row(const matrix *m)
{
    int64_t longest = 0;
    for (int64_t k = 0; k < m->n_active; k++)
        longest = m->indptr[k + 1] - m->indptr[k] > longest ? m->indptr[k + 1] - m->indptr[k] : longest;
    return (int32_t)longest;
}

static int by_rows(int64_t n_nodes, const v4 *x, const int32_t *ascending, fb_lame lame, const int64_t *start,
                   const int32_t *at, const matrix *m)
{
    int32_t *place = calloc((size_t)n_nodes + 1, sizeof *place);
    size_t buffer_bytes = ((size_t)longest_row(m) + 1) * sizeof(slot);
    slot *buffer = fb_allocate(buffer_bytes);
    int status = place && buffer ? 0 : -1;
    if (!status)
        assemble_tet4(x, ascending, lame, start, at, m, place, buffer);
    free(place);
    fb_release(buffer, buffer_bytes);
    return status;
}

static int by_cells(int64_t n_cells, const v4 *x, const int32_t *cells, fb_lame lame, const matrix *m)
{
    int64_t *first = malloc(((size_t)m->n_active + 1) * sizeof *first);
    int32_t *length = malloc(((size_t)m->n_active + 1) * sizeof *length);
    int status = first && length ? 0 : -1;
    if (!status) {
        for (int32_t k = 0; k < m->n_active; k++) {
            first[m->rows[k]] = m->indptr[k];
            length[m->rows[k]] = (int32_t)(m->indptr[k + 1] - m->indptr[k]);
        }
        assemble_hex8(n_cells, x, cells, lame, m, first, length);
    }
    free(first);
    free(length);
    return status;
}

int fb_assemble(int npc, int64_t n_cells, int64_t n_nodes, const double *x, const int32_t *cells, fb_lame lame,
                int32_t n_interior, int32_t n_active, int upper, const uint8_t *fixed,
                const int32_t *ascending, const int64_t *start, const int32_t *at, const int64_t *indptr,
                const int32_t *rows, const int32_t *columns, double *values)
{
    matrix m = {n_interior, n_active, upper, fixed, indptr, rows, columns, values};
    v4 *points = fb_padded(n_nodes, x);
    int status = -1;
    if (points)
        status = npc == 4 ? by_rows(n_nodes, points, ascending, lame, start, at, &m)
                          : by_cells(n_cells, points, cells, lame, &m);
    fb_release(points, (size_t)n_nodes * sizeof *points);
    return status;
}
