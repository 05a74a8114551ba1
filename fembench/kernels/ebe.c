/* Element by element: the product without a matrix, from coordinates alone.
 * H = sum_a u_a (x) grad N_a, stress S = lam tr(H) I + mu (H + H^T), force f_a = weight * S grad N_a. */
#include "elements.h"

INLINE void strain_to_force(int npc, double lam, double mu, double weight, double g[][3], double u[][3],
                            double f[][3])
{
    double H[3][3] = {{0}}, S[3][3];
    for (int a = 0; a < npc; a++)
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                H[r][c] += u[a][r] * g[a][c];
    double pressure = weight * lam * (H[0][0] + H[1][1] + H[2][2]);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            S[r][c] = weight * mu * (H[r][c] + H[c][r]) + (r == c ? pressure : 0);
    for (int a = 0; a < npc; a++)
        for (int r = 0; r < 3; r++)
            f[a][r] += S[r][0] * g[a][0] + S[r][1] * g[a][1] + S[r][2] * g[a][2];
}

INLINE void product(int npc, int64_t begin, int64_t end, const double *x, const int32_t *cells, double lam,
                    double mu, int32_t n_active, const double *d, double *q)
{
    for (int64_t cell = begin; cell < end; cell++) {
        const int32_t *nodes = cells + npc * cell;
        double at[8][3], u[8][3] = {{0}}, f[8][3] = {{0}}, g[8][3];
        for (int a = 0; a < npc; a++)
            for (int c = 0; c < 3; c++) {
                at[a][c] = x[3 * (int64_t)nodes[a] + c];
                if (nodes[a] < n_active)
                    u[a][c] = d[3 * (int64_t)nodes[a] + c];
            }
        if (npc == 4) {
            double volume = tet4_gradients(at, g);
            strain_to_force(npc, lam, mu, volume, g, u, f);
        } else
            for (int p = 0; p < 8; p++) {
                double weight = hex8_gradients(at, p, g);
                strain_to_force(npc, lam, mu, weight, g, u, f);
            }
        for (int a = 0; a < npc; a++)
            if (nodes[a] < n_active)
                for (int c = 0; c < 3; c++)
                    q[3 * (int64_t)nodes[a] + c] += f[a][c];
    }
}

CLONES static void tet4(int64_t begin, int64_t end, const double *x, const int32_t *cells, double lam,
                        double mu, int32_t n_active, const double *d, double *q)
{
    product(4, begin, end, x, cells, lam, mu, n_active, d, q);
}

CLONES static void hex8(int64_t begin, int64_t end, const double *x, const int32_t *cells, double lam,
                        double mu, int32_t n_active, const double *d, double *q)
{
    product(8, begin, end, x, cells, lam, mu, n_active, d, q);
}

void fb_ebe(int npc, int64_t begin, int64_t end, const double *x, const int32_t *cells, double lam,
            double mu, int32_t n_active, const double *d, double *q)
{
    (npc == 4 ? tet4 : hex8)(begin, end, x, cells, lam, mu, n_active, d, q);
}
