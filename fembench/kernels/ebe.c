/* Element by element: the product without a matrix, from coordinates alone.
 *
 * H = sum_a u_a (x) grad N_a, stress S = lam tr(H) I + mu (H + H^T), force f_a = weight * S grad N_a.
 * Tetrahedra go four at a time, a vector holding one number of each; hexahedra one at a time, a vector
 * holding x, y and z. */
#include "elements.h"

#define LOAD4(p) (*(const v4 *)(p))

typedef struct {
    v4 c[3]; /* x, y, z of one point of four cells */
} point;

/* Rows (x y z -) of four cells to vectors of x, of y, of z. */
INLINE point columns(v4 a, v4 b, v4 c, v4 d)
{
    v4 ab = PICK4(a, b, 0, 4, 2, 6), cd = PICK4(c, d, 0, 4, 2, 6);
    v4 ab1 = PICK4(a, b, 1, 5, 3, 7), cd1 = PICK4(c, d, 1, 5, 3, 7);
    point p = {{PICK4(ab, cd, 0, 1, 4, 5), PICK4(ab1, cd1, 0, 1, 4, 5), PICK4(ab, cd, 2, 3, 6, 7)}};
    return p;
}

INLINE point cross(point a, point b)
{
    point out;
    for (int k = 0; k < 3; k++)
        out.c[k] = a.c[(k + 1) % 3] * b.c[(k + 2) % 3] - a.c[(k + 2) % 3] * b.c[(k + 1) % 3];
    return out;
}

INLINE point minus(point a, point b)
{
    point out = {{a.c[0] - b.c[0], a.c[1] - b.c[1], a.c[2] - b.c[2]}};
    return out;
}

INLINE void add_to(double *q, v4 f)
{
    *(v2 *)q += (v2){f[0], f[1]};
    q[2] += f[2];
}

/* Forces of one node of four cells (x, y, z vectors) to the q of those nodes. */
INLINE void scatter(point f, const int32_t *nodes, double *q)
{
    v4 none = {0, 0, 0, 0};
    v4 xy = PICK4(f.c[0], f.c[1], 0, 4, 2, 6), xy1 = PICK4(f.c[0], f.c[1], 1, 5, 3, 7);
    v4 z = PICK4(f.c[2], none, 0, 4, 2, 6), z1 = PICK4(f.c[2], none, 1, 5, 3, 7);
    add_to(q + 3 * (int64_t)nodes[0], PICK4(xy, z, 0, 1, 4, 5));
    add_to(q + 3 * (int64_t)nodes[4], PICK4(xy1, z1, 0, 1, 4, 5));
    add_to(q + 3 * (int64_t)nodes[8], PICK4(xy, z, 2, 3, 6, 7));
    add_to(q + 3 * (int64_t)nodes[12], PICK4(xy1, z1, 2, 3, 6, 7));
}

/* Four tetrahedra, 16 nodes, all of them active. */
INLINE void four_tets(const v4 *x, const int32_t *nodes, v4 lam, v4 mu, const double *d, double *q)
{
    point at[4], u[4], g[4], f;
    v4 H[3][3], S[3][3];
    for (int a = 0; a < 4; a++) {
        const int32_t *n = nodes + a;
        at[a] = columns(x[n[0]], x[n[4]], x[n[8]], x[n[12]]);
        u[a] = columns(LOAD4(d + 3 * (int64_t)n[0]), LOAD4(d + 3 * (int64_t)n[4]), LOAD4(d + 3 * (int64_t)n[8]),
                       LOAD4(d + 3 * (int64_t)n[12]));
    }
    point e1 = minus(at[1], at[0]), e2 = minus(at[2], at[0]), e3 = minus(at[3], at[0]);
    g[1] = cross(e2, e3), g[2] = cross(e3, e1), g[3] = cross(e1, e2); /* gradients times det = 6 volumes */
    v4 weight = 1 / (6 * (e1.c[0] * g[1].c[0] + e1.c[1] * g[1].c[1] + e1.c[2] * g[1].c[2]));
    for (int a = 1; a < 4; a++)
        u[a] = minus(u[a], u[0]); /* then grad N_0 is not needed */
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            H[r][c] = u[1].c[r] * g[1].c[c] + u[2].c[r] * g[2].c[c] + u[3].c[r] * g[3].c[c];
    v4 pressure = weight * lam * (H[0][0] + H[1][1] + H[2][2]), shear = weight * mu;
    for (int r = 0; r < 3; r++) {
        S[r][r] = 2 * shear * H[r][r] + pressure;
        for (int c = 0; c < r; c++)
            S[r][c] = S[c][r] = shear * (H[r][c] + H[c][r]);
    }
    point rest = {{{0}}};
    for (int a = 1; a < 4; a++) {
        for (int r = 0; r < 3; r++)
            f.c[r] = S[r][0] * g[a].c[0] + S[r][1] * g[a].c[1] + S[r][2] * g[a].c[2];
        rest = minus(rest, f); /* the forces of a cell sum to zero */
        scatter(f, nodes + a, q);
    }
    scatter(rest, nodes, q);
}

/* One cell of any kind; nodes >= n_active have no displacement and take no force. */
INLINE void one_tet(const v4 *x, const int32_t *nodes, double lam, double mu, int32_t n_active, const double *d,
                    double *q)
{
    v4 a = x[nodes[1]] - x[nodes[0]], b = x[nodes[2]] - x[nodes[0]], c = x[nodes[3]] - x[nodes[0]], g[4];
    g[1] = cross3(b, c), g[2] = cross3(c, a), g[3] = cross3(a, b);
    g[0] = -(g[1] + g[2] + g[3]);
    v4 det = a * g[1], H[3] = {{0}}, S[3];
    double weight = 1 / (6 * ((det[0] + det[1]) + det[2]));
    for (int k = 0; k < 4; k++)
        if (nodes[k] < n_active)
            for (int r = 0; r < 3; r++)
                H[r] += d[3 * (int64_t)nodes[k] + r] * g[k];
    double pressure = weight * lam * (H[0][0] + H[1][1] + H[2][2]);
    for (int r = 0; r < 3; r++) {
        v4 column = {H[0][r], H[1][r], H[2][r], 0};
        S[r] = weight * mu * (H[r] + column);
        S[r][r] += pressure;
    }
    for (int k = 0; k < 4; k++)
        if (nodes[k] < n_active)
            add_to(q + 3 * (int64_t)nodes[k], S[0] * g[k][0] + S[1] * g[k][1] + S[2] * g[k][2]);
}

INLINE void one_hex(const double shape[8][8][3], const v4 *x, const int32_t *nodes, double lam, double mu,
                    int32_t n_active, const double *d, double *q)
{
    v4 g[8][8], u[8] = {{0}}, f[8] = {{0}};
    double weight[8];
    hex8_all_gradients(x, nodes, shape, g, weight);
    for (int a = 0; a < 8; a++)
        if (nodes[a] < n_active)
            for (int c = 0; c < 3; c++)
                u[a][c] = d[3 * (int64_t)nodes[a] + c];
    for (int p = 0; p < 8; p++) {
        v4 H[3] = {{0}}, S[3]; /* H[c] = sum_a u_a dN_a/dx_c, a column */
        for (int a = 0; a < 8; a++)
            for (int c = 0; c < 3; c++)
                H[c] += g[p][a][c] * u[a];
        double pressure = weight[p] * lam * (H[0][0] + H[1][1] + H[2][2]);
        for (int c = 0; c < 3; c++) {
            v4 row = {H[0][c], H[1][c], H[2][c], 0};
            S[c] = weight[p] * mu * (H[c] + row);
            S[c][c] += pressure;
        }
        for (int a = 0; a < 8; a++)
            f[a] += S[0] * g[p][a][0] + S[1] * g[p][a][1] + S[2] * g[p][a][2];
    }
    for (int a = 0; a < 8; a++)
        if (nodes[a] < n_active)
            add_to(q + 3 * (int64_t)nodes[a], f[a]);
}

/* of cells c … c + 3 */
INLINE v4 four(const double *values, int64_t c, int64_t step)
{
    values += c * step;
    return (v4){values[0], values[step], values[2 * step], values[3 * step]};
}

CLONES static void tets(int64_t begin, int64_t plain, int64_t end, const v4 *x, const int32_t *cells, fb_lame lame,
                        int32_t n_active, const double *d, double *q)
{
    for (; begin + 4 <= plain; begin += 4)
        four_tets(x, cells + 4 * begin, four(lame.lam, begin, lame.step), four(lame.mu, begin, lame.step), d, q);
    for (; begin < end; begin++)
        one_tet(x, cells + 4 * begin, LAM(lame, begin), MU(lame, begin), n_active, d, q);
}

CLONES static void hexes(int64_t begin, int64_t end, const v4 *x, const int32_t *cells, fb_lame lame,
                         int32_t n_active, const double *d, double *q)
{
    double shape[8][8][3];
    shape_gradients(shape);
    for (; begin < end; begin++)
        one_hex(shape, x, cells + 8 * begin, LAM(lame, begin), MU(lame, begin), n_active, d, q);
}

void fb_ebe(int npc, int64_t begin, int64_t plain, int64_t end, const v4 *x, const int32_t *cells, fb_lame lame,
            int32_t n_active, const double *d, double *q)
{
    if (npc == 4)
        tets(begin, plain, end, x, cells, lame, n_active, d, q);
    else
        hexes(begin, end, x, cells, lame, n_active, d, q);
}
