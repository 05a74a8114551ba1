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

/* the blocks as they were assembled, one after the other, in nine planes */
KERNEL fb_planes(LONG n, IN blocks, OUT values)
{
    EACH(i, 9 * n)
        values[i % 9 * n + i / 9] = blocks[i];
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
