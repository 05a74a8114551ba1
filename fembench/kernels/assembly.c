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

#define VISITS 4096 /* of one node that are sorted at once; below 1 << 16 */

/* What the rows of a matrix of tetrahedra are made with. */
typedef struct {
    const v4 *x;              /* (n_nodes, 4): coordinates and a zero */
    const int32_t *ascending; /* this, start and at: of fb_incidence */
    const int64_t *start;
    const int32_t *at;
    int32_t *place; /* (n_nodes,): bytes before the slot of a column of the row at hand, 0 where it has none */
    slot *slots;    /* zeros between rows; slot 0 takes what is dropped */
} workshop;

/* Add `scale` times the G of the own-th node of a tetrahedron with the next `kept` of its nodes, in cyclic order, to their
 * slots, and that with itself to `with_itself` unless it is NULL. The gradients of two nodes change their signs together, so
 * the order of the nodes does not matter. */
INLINE void tet4_visit(const workshop *w, v4 here, const int32_t *nodes, int own, int kept, double scale, slot *with_itself)
{
    const int32_t other[3] = {nodes[(own + 1) & 3], nodes[(own + 2) & 3], nodes[(own + 3) & 3]};
    v4 a = w->x[other[0]] - here, b = w->x[other[1]] - here, c = w->x[other[2]] - here;
    v4 g[3], normal; /* gradients times det, which is 6 volumes; all four sum to zero, so the own one is minus `normal` */
    if (kept > 1) {
        g[0] = cross3(b, c), g[1] = cross3(c, a), g[2] = cross3(a, b);
        normal = g[0] + g[1] + g[2];
    } else {
        normal = cross3(b - a, c - a);
        g[0] = kept ? cross3(b, c) : normal;
    }
    v4 det = a * g[0];
    double weight = scale * (-1.0 / 6) / fabs((det[0] + det[1]) + det[2]);
    v4 mine = weight * normal;
    for (int k = 0; k < kept; k++) {
        v4 *to = (v4 *)((char *)w->slots + w->place[other[k]]);
        to[0] += mine[0] * g[k];
        to[1] += mine[1] * g[k];
        to[2] += mine[2] * g[k];
    }
    for (int r = 0; r < 3 && with_itself; r++)
        with_itself->row[r] -= mine[r] * normal;
}

INLINE void visit_all(const workshop *w, v4 here, const int32_t *at, int64_t n, int own, int kept, const double *scale,
                      int64_t step, slot *with_itself)
{
    for (int64_t k = 0; k < n; k++) {
        uint32_t place = (uint32_t)at[k];
        int as = own < 0 ? (int)(place & 3) : own;
        tet4_visit(w, here, w->ascending + (place & ~3u), as, kept, scale[place / 4 * step], with_itself);
    }
}

/* Visits that keep the nodes that follow, those as the same place of a cell in one loop: no branch depends on it. */
INLINE void visit_following(const workshop *w, v4 here, const int32_t *at, int64_t n, const double *scale, int64_t step,
                            slot *with_itself)
{
    int32_t visits[4][VISITS];
    uint64_t found = 0; /* four counts of 16 bits */
    for (int64_t k = 0; k < n; k++) {
        int own = at[k] & 3;
        visits[own][found >> 16 * own & 0xffff] = at[k];
        found += (uint64_t)1 << 16 * own;
    }
    visit_all(w, here, visits[0], found & 0xffff, 0, 3, scale, step, with_itself);
    visit_all(w, here, visits[1], found >> 16 & 0xffff, 1, 2, scale, step, with_itself);
    visit_all(w, here, visits[2], found >> 32 & 0xffff, 2, 1, scale, step, with_itself);
    visit_all(w, here, visits[3], found >> 48, 3, 0, scale, step, with_itself);
}

/* Sum G over the cells of node i, each times its number of `scale`, into the slots of its n columns: all nodes, or itself and
 * those that follow it. */
INLINE void sum_row(const workshop *w, int32_t i, int32_t n, int all, const double *scale, int64_t step)
{
    const int32_t *at = w->at + w->start[i], *end = w->at + w->start[i + 1];
    v4 here = w->x[i];
    slot own = {{{0}}};
    if (all) {
        w->slots[0] = own;
        visit_all(w, here, at, end - at, -1, 3, scale, step, NULL);
        for (int32_t e = 0; e <= n; e++) /* what all others lack of zero */
            for (int r = 0; r < 3; r++)
                own.row[r] -= w->slots[e].row[r];
    } else
        for (; at < end; at += VISITS)
            visit_following(w, here, at, end - at < VISITS ? end - at : VISITS, scale, step, &own);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < r; c++)
            own.row[r][c] = own.row[c][r] = (own.row[r][c] + own.row[c][r]) / 2;
    memcpy((char *)w->slots + w->place[i], &own, sizeof own);
}

/* K = lam G + mu G^T + mu tr(G) I, and one number behind it, which whatever comes there overwrites. */
INLINE void stiffness_of(const slot *from, double lam, double mu, double *K)
{
    const v4 *G = from->row;
    v4 low = PICK4(G[0], G[1], 0, 4, 2, 6), high = PICK4(G[0], G[1], 1, 5, 3, 7);
    v4 transposed[3] = {PICK4(low, G[2], 0, 1, 4, 4), PICK4(high, G[2], 0, 1, 5, 5), PICK4(low, G[2], 2, 3, 6, 6)};
    double trace = mu * ((G[0][0] + G[1][1]) + G[2][2]);
    const v4 diagonal[3] = {{trace, 0, 0, 0}, {0, trace, 0, 0}, {0, 0, trace, 0}};
    for (int r = 0; r < 3; r++) {
        v4 row = lam * G[r] + mu * transposed[r] + diagonal[r];
        memcpy(K + 3 * r, &row, sizeof row);
    }
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

INLINE int alike(fb_lame lame, const int32_t *at, const int32_t *end) /* whether these cells have the same parameters */
{
    for (const int32_t *first = at; lame.step && at < end; at++)
        if (LAM(lame, *at / 4) != LAM(lame, *first / 4) || MU(lame, *at / 4) != MU(lame, *first / 4))
            return 0;
    return 1;
}

/* The n blocks of a row among cells of different parameters: K = sum lam G + sum mu (G^T + tr(G) I), one sum after the
 * other. */
static void mixed_row(const workshop *w, int32_t i, int all, fb_lame lame, int32_t n, double *to)
{
    double K[10];
    for (int term = 0; term < 2; term++) {
        sum_row(w, i, n, all, term ? lame.mu : lame.lam, lame.step);
        for (int32_t e = 0; e < n; e++) {
            stiffness_of(w->slots + e + 1, !term, term, K);
            w->slots[e + 1] = (slot){{{0}}};
            for (int k = 0; k < 9; k++)
                to[9 * e + k] = term ? to[9 * e + k] + K[k] : K[k];
        }
    }
}

CLONES static void assemble_tet4(const workshop *w, fb_lame lame, const matrix *m)
{
    const double one = 1;
    for (int64_t k = 0; k < m->n_active; k++) {
        int32_t i = m->rows[k], n = (int32_t)(m->indptr[k + 1] - m->indptr[k]);
        const int32_t *columns = m->columns + m->indptr[k];
        const int32_t *first = w->at + w->start[i], *end = w->at + w->start[i + 1];
        double *to = m->values + 9 * m->indptr[k];
        int all = !m->upper || i >= m->n_interior;
        for (int32_t e = 0; e < n; e++)
            w->place[columns[e]] = (e + 1) * (int32_t)sizeof *w->slots;
        if (alike(lame, first, end)) {
            double lam = first < end ? LAM(lame, *first / 4) : 0, mu = first < end ? MU(lame, *first / 4) : 0;
            sum_row(w, i, n, all, &one, 0);
            slot *slots = w->slots + 1;
            for (int32_t e = 0; e < n; e++) {
                stiffness_of(slots + e, lam, mu, to + 9 * e);
                slots[e] = (slot){{{0}}};
            }
        } else
            mixed_row(w, i, all, lame, n, to);
        for (int32_t e = 0; e < n; e++)
            w->place[columns[e]] = 0;
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

INLINE void hex8_block(v4 g[8][8], const double weight[8], int a, int b, double lam, double mu, double K[10])
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
        double weight[8], K[10];
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
    size_t n_bytes = ((size_t)longest_row(m) + 1) * sizeof(slot);
    workshop w = {x, ascending, start, at, calloc((size_t)n_nodes + 1, sizeof *w.place), fb_allocate(n_bytes)};
    int status = w.place && w.slots ? 0 : -1;
    if (!status) {
        memset(w.slots, 0, n_bytes);
        assemble_tet4(&w, lame, m);
    }
    free(w.place);
    fb_release(w.slots, n_bytes);
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
