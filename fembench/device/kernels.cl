/* Kernels of a device rank, in a subset of C that CUDA and OpenCL compile alike. The macros are what differs.
 *
 * Every kernel strides over its work with whatever number of groups it is started with. Sums are made in two
 * stages without atomics: each group writes one partial sum, and the host adds them up in their order, so a
 * result depends on the number of groups alone. Contraction to fused multiply-add is off, so that shared dofs
 * have the same bits on every rank that shares them, on whatever device. Names are those of kernels.h. */
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL __kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY __local
#define THREAD ((int)get_local_id(0))
#define GROUP ((int)get_group_id(0))
#define GROUPS ((int)get_num_groups(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define INLINE static inline
#define LONG long
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY __shared__
#define THREAD ((int)threadIdx.x)
#define GROUP ((int)blockIdx.x)
#define GROUPS ((int)gridDim.x)
#define BARRIER __syncthreads()
#define INLINE static __device__ __forceinline__
#define LONG long long
#define restrict __restrict__
#endif

#define IN const GLOBAL double *restrict
#define OUT GLOBAL double *restrict
/* A processor runs the threads of a group one after the other: TILE makes it do so for every THREADS entries. */
#ifdef PROCESSOR
#define TILE BARRIER
#else
#define TILE (void)0
#endif
#define EACH(i, n)                                                                                          \
    for (LONG tile = (LONG)GROUP * THREADS; tile < (n); TILE, tile += (LONG)GROUPS * THREADS)               \
        for (LONG i = tile + THREAD, once = 1; once && i < (n); once = 0)

/* The sum of one value per thread, as partial[GROUP]; `room` has THREADS entries. */
INLINE void reduce(double value, LOCAL double *room, OUT partial)
{
    BARRIER;
    room[THREAD] = value;
    for (int left = THREADS / 2; left > 0; left /= 2) {
        BARRIER;
        if (THREAD < left)
            room[THREAD] += room[THREAD + left];
    }
    if (THREAD == 0)
        partial[GROUP] = room[0];
}

/* ---- product: rows [first, last) of full 3x3 blocks, LANES threads a row; entry e of block k is values[e n + k] */

#define ROWS (THREADS / LANES) /* of a group at a time */

KERNEL fb_product(int first, int last, LONG n, const GLOBAL LONG *restrict indptr, const GLOBAL int *restrict columns,
               IN values, IN d, OUT q, OUT partial)
{
    LOCAL_ARRAY double room[3 * THREADS];
    int lane = THREAD % LANES, slot = THREAD / LANES;
    double dot = 0;
    for (int begin = first + GROUP * ROWS; begin < last; begin += GROUPS * ROWS) {
        int row = begin + slot;
        double a = 0, b = 0, c = 0;
        if (row < last) {
            LONG end = indptr[row + 1];
            for (LONG k = indptr[row] + lane; k < end; k += LANES) {
                const GLOBAL double *v = values + k, *e = d + 3 * (LONG)columns[k];
                double x = e[0], y = e[1], z = e[2];
                a += v[0] * x + v[n] * y + v[2 * n] * z;
                b += v[3 * n] * x + v[4 * n] * y + v[5 * n] * z;
                c += v[6 * n] * x + v[7 * n] * y + v[8 * n] * z;
            }
        }
        room[THREAD] = a, room[THREADS + THREAD] = b, room[2 * THREADS + THREAD] = c;
        BARRIER;
        if (lane < 3 && row < last) {
            double sum = 0;
            for (int l = 0; l < LANES; l++)
                sum += room[lane * THREADS + slot * LANES + l];
            LONG i = 3 * (LONG)row + lane;
            q[i] = sum;
            dot += sum * d[i];
        }
        BARRIER;
    }
    reduce(dot, room, partial);
}

/* `count` numbers, from number `first` on, of n blocks as they were assembled, one after the other, in nine planes */
KERNEL fb_planes(LONG count, LONG n, LONG first, IN blocks, OUT values)
{
    EACH(i, count) {
        LONG at = first + i;
        values[at % 9 * n + at / 9] = blocks[i];
    }
}

/* ---- element by element: the forces of every cell, then the sum over the cells of every node
 *
 * Force c of node a of cell k of n is f[(3 a + c) n + k]. Nodes from n_active on have no displacement. As ebe.c. */

INLINE void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* S = weight (lam tr(H) I + mu (H + H^T)) */
INLINE void stress(double H[3][3], double weight, double lam, double mu, double S[3][3])
{
    double pressure = weight * lam * (H[0][0] + H[1][1] + H[2][2]);
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++)
            S[r][c] = weight * mu * (H[r][c] + H[c][r]);
        S[r][r] += pressure;
    }
}

KERNEL fb_ebe4(LONG first, LONG last, LONG n, LONG n_active, LONG step, IN x, const GLOBAL int *restrict cells, IN lam,
            IN mu, IN d, OUT f)
{
    EACH(i, last - first) {
        LONG k = first + i;
        const GLOBAL int *nodes = cells + 4 * k;
        double e[3][3], g[4][3], H[3][3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, S[3][3];
        for (int a = 0; a < 3; a++)
            for (int c = 0; c < 3; c++)
                e[a][c] = x[3 * (LONG)nodes[a + 1] + c] - x[3 * (LONG)nodes[0] + c];
        cross(e[1], e[2], g[1]), cross(e[2], e[0], g[2]), cross(e[0], e[1], g[3]);
        for (int c = 0; c < 3; c++)
            g[0][c] = -(g[1][c] + g[2][c] + g[3][c]);
        for (int a = 0; a < 4; a++)
            if (nodes[a] < n_active)
                for (int r = 0; r < 3; r++)
                    for (int c = 0; c < 3; c++)
                        H[r][c] += d[3 * (LONG)nodes[a] + r] * g[a][c];
        double weight = 1 / (6 * (e[0][0] * g[1][0] + e[0][1] * g[1][1] + e[0][2] * g[1][2]));
        stress(H, weight, lam[k * step], mu[k * step], S);
        for (int a = 0; a < 4; a++)
            for (int r = 0; r < 3; r++)
                f[(3 * a + r) * n + k] = S[r][0] * g[a][0] + S[r][1] * g[a][1] + S[r][2] * g[a][2];
    }
}

/* shape (8 points, 8 nodes, 3): dN_a / dxi_e */
KERNEL fb_ebe8(LONG first, LONG last, LONG n, LONG n_active, LONG step, IN x, const GLOBAL int *restrict cells, IN lam,
            IN mu, IN d, IN shape, OUT f)
{
    EACH(i, last - first) {
        LONG k = first + i;
        const GLOBAL int *nodes = cells + 8 * k;
        double force[8][3];
        for (int a = 0; a < 8; a++)
            for (int r = 0; r < 3; r++)
                force[a][r] = 0;
        for (int p = 0; p < 8; p++) {
            const GLOBAL double *N = shape + 24 * p;
            double J[3][3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, K[3][3], g[8][3], S[3][3];
            double H[3][3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
            for (int a = 0; a < 8; a++)
                for (int e = 0; e < 3; e++)
                    for (int c = 0; c < 3; c++)
                        J[e][c] += N[3 * a + e] * x[3 * (LONG)nodes[a] + c]; /* dx_c / dxi_e */
            cross(J[1], J[2], K[0]), cross(J[2], J[0], K[1]), cross(J[0], J[1], K[2]);
            double det = J[0][0] * K[0][0] + J[0][1] * K[0][1] + J[0][2] * K[0][2], scale = 1 / det;
            for (int a = 0; a < 8; a++) {
                for (int c = 0; c < 3; c++)
                    g[a][c] = scale * (N[3 * a] * K[0][c] + N[3 * a + 1] * K[1][c] + N[3 * a + 2] * K[2][c]);
                if (nodes[a] < n_active)
                    for (int r = 0; r < 3; r++)
                        for (int c = 0; c < 3; c++)
                            H[r][c] += d[3 * (LONG)nodes[a] + r] * g[a][c];
            }
            stress(H, det, lam[k * step], mu[k * step], S);
            for (int a = 0; a < 8; a++)
                for (int r = 0; r < 3; r++)
                    force[a][r] += S[r][0] * g[a][0] + S[r][1] * g[a][1] + S[r][2] * g[a][2];
        }
        for (int a = 0; a < 8; a++)
            for (int r = 0; r < 3; r++)
                f[(3 * a + r) * n + k] = force[a][r];
    }
}

/* Rows [first, last): node i is the sum of the forces `sources` [start[i], start[i + 1]), each npc k + a, in this order; d where
 * a dof is fixed. */
KERNEL fb_ebe_sum(LONG first, LONG last, LONG n, int npc, const GLOBAL int *restrict start,
               const GLOBAL int *restrict sources, const GLOBAL char *restrict fixed, IN f, IN d, OUT q, OUT partial)
{
    LOCAL_ARRAY double room[THREADS];
    double dot = 0;
    EACH(k, 3 * (last - first)) {
        LONG i = 3 * first + k, node = i / 3, c = i % 3;
        double sum = 0;
        for (int s = start[node]; s < start[node + 1]; s++)
            sum += f[(3 * (sources[s] % npc) + c) * n + sources[s] / npc];
        q[i] = sum = fixed[i] ? d[i] : sum;
        dot += sum * d[i];
    }
    reduce(dot, room, partial);
}

/* ---- vectors of n entries, the last of them, from `shared` on, weighted by w in inner products */

#define WEIGHT(i) ((i) < shared ? 1.0 : w[(i) - shared])

KERNEL fb_dot(LONG n, LONG shared, IN a, IN b, IN w, OUT partial)
{
    LOCAL_ARRAY double room[THREADS];
    double sum = 0;
    EACH(i, n)
        sum += a[i] * b[i] * WEIGHT(i);
    reduce(sum, room, partial);
}

/* x += alpha d; r -= alpha q; r . r */
KERNEL fb_step(LONG n, LONG shared, OUT x, OUT r, IN d, IN q, IN w, OUT partial, double alpha)
{
    LOCAL_ARRAY double room[THREADS];
    double rr = 0;
    EACH(i, n) {
        x[i] += alpha * d[i];
        double e = r[i] - alpha * q[i];
        r[i] = e;
        rr += e * e * WEIGHT(i);
    }
    reduce(rr, room, partial);
}

/* the same, with r . z, z = M r; the sums of r . z follow those of r . r */
KERNEL fb_step_jacobi(LONG n, LONG shared, OUT x, OUT r, IN d, IN q, IN w, IN inverse, OUT partial, double alpha)
{
    LOCAL_ARRAY double room[THREADS];
    double rr = 0, rz = 0;
    EACH(i, n) {
        x[i] += alpha * d[i];
        double e = r[i] - alpha * q[i];
        r[i] = e;
        double s = e * e * WEIGHT(i);
        rr += s;
        rz += s * inverse[i];
    }
    reduce(rr, room, partial);
    reduce(rz, room, partial + GROUPS);
}

/* z = p e; p: the entries xx yy zz xy yz zx of a symmetric block */
#define APPLY_BLOCK(p, e, z)                            \
    z[0] = p[0] * e[0] + p[3] * e[1] + p[5] * e[2];     \
    z[1] = p[3] * e[0] + p[1] * e[1] + p[4] * e[2];     \
    z[2] = p[5] * e[0] + p[4] * e[1] + p[2] * e[2]

KERNEL fb_step_block(LONG n, LONG shared, OUT x, OUT r, IN d, IN q, IN w, IN inverse, OUT partial, double alpha)
{
    LOCAL_ARRAY double room[THREADS];
    double rr = 0, rz = 0;
    EACH(node, n / 3) {
        const GLOBAL double *p = inverse + 6 * node;
        double e[3], z[3];
        for (int c = 0; c < 3; c++) {
            LONG i = 3 * node + c;
            x[i] += alpha * d[i];
            r[i] = e[c] = r[i] - alpha * q[i];
        }
        APPLY_BLOCK(p, e, z);
        for (int c = 0; c < 3; c++) {
            double s = e[c] * WEIGHT(3 * node + c);
            rr += s * e[c];
            rz += s * z[c];
        }
    }
    reduce(rr, room, partial);
    reduce(rz, room, partial + GROUPS);
}

/* d = z + beta d */
KERNEL fb_direction(LONG n, OUT d, IN z, double beta)
{
    EACH(i, n)
        d[i] = z[i] + beta * d[i];
}

KERNEL fb_direction_jacobi(LONG n, OUT d, IN r, IN inverse, double beta)
{
    EACH(i, n)
        d[i] = inverse[i] * r[i] + beta * d[i];
}

KERNEL fb_direction_block(LONG n, OUT d, IN r, IN inverse, double beta)
{
    EACH(node, n / 3) {
        const GLOBAL double *p = inverse + 6 * node;
        double e[3], z[3];
        for (int c = 0; c < 3; c++)
            e[c] = r[3 * node + c];
        APPLY_BLOCK(p, e, z);
        for (int c = 0; c < 3; c++)
            d[3 * node + c] = z[c] + beta * d[3 * node + c];
    }
}

/* d = z = gain D^-1 r; then, step by step, r -= q, d = keep d + gain D^-1 r, z += d */
KERNEL fb_chebyshev_start(LONG n, OUT z, IN r, OUT d, IN inverse, double gain)
{
    EACH(i, n)
        d[i] = z[i] = gain * (inverse[i] * r[i]);
}

KERNEL fb_chebyshev(LONG n, OUT z, OUT r, OUT d, IN q, IN inverse, double keep, double gain)
{
    EACH(i, n) {
        r[i] -= q[i];
        d[i] = keep * d[i] + gain * inverse[i] * r[i];
        z[i] += d[i];
    }
}

KERNEL fb_fill(LONG n, OUT v, double value)
{
    EACH(i, n)
        v[i] = value;
}

KERNEL fb_copy(LONG n, IN from, OUT to)
{
    EACH(i, n)
        to[i] = from[i];
}

/* a = b + s c, as STREAM counts it; and the sum of an array */
KERNEL fb_triad(LONG n, OUT a, IN b, IN c, double s)
{
    EACH(i, n)
        a[i] = b[i] + s * c[i];
}

KERNEL fb_read(LONG n, IN a, OUT partial)
{
    LOCAL_ARRAY double room[THREADS];
    double sum = 0;
    EACH(i, n)
        sum += a[i];
    reduce(sum, room, partial);
}

/* ---- interface: n nodes */

KERNEL fb_pack(LONG n, const GLOBAL int *restrict index, IN v, OUT message)
{
    EACH(i, 3 * n)
        message[i] = v[3 * (LONG)index[i / 3] + i % 3];
}

/* Node i of the interface, which begins at node `first`, is the sum of `sources` [start[i], start[i + 1]), in this
 * order: nodes of the message, or -1 for its own value. */
KERNEL fb_neighbour_sum(LONG n, LONG first, const GLOBAL int *restrict start, const GLOBAL int *restrict sources,
                     IN message, OUT v)
{
    EACH(i, 3 * n) {
        LONG node = i / 3, c = i % 3;
        double own = v[3 * first + i], sum = 0;
        for (int k = start[node]; k < start[node + 1]; k++)
            sum += sources[k] < 0 ? own : message[3 * (LONG)sources[k] + c];
        v[3 * first + i] = sum;
    }
}
