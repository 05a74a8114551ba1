/* Prototypes of the compiled kernels, the vector types they use, and the clone attribute.
 *
 * Names: n_* are counts; "row" is a block row (one node), "block" a 3x3 block, row-major. Local
 * numbers are int32, offsets into block arrays int64. reference.py says in numpy what each does. */
#ifndef FEMBENCH_KERNELS_H
#define FEMBENCH_KERNELS_H

#include <stdint.h>
#include <stddef.h>

/* One build runs at full speed on every x86-64 host: the loader picks the clone (ELF ifunc, glibc). */
#if defined(CLONES) /* by whoever compiles: -DCLONES= makes none */
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

typedef double v2 __attribute__((vector_size(16), aligned(8)));  /* loads and stores at any address */
typedef double v4 __attribute__((vector_size(32), aligned(8)));

/* Vectors of chosen lanes of a (0-3) and b (4-7). */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PICK4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define PICK2(a, b, i, j) __builtin_shufflevector(a, b, i, j)
#endif
#endif
#ifndef PICK4 /* gcc before 12 */
#define LANE(a, b, i) ((i) < 4 ? (a)[(i) % 4] : (b)[(i) % 4])
#define PICK4(a, b, i, j, k, l) ((v4){LANE(a, b, i), LANE(a, b, j), LANE(a, b, k), LANE(a, b, l)})
#define PICK2(a, b, i, j) ((v2){LANE(a, b, i), LANE(a, b, j)})
#endif

/* memory.c */
void *fb_allocate(size_t n_bytes);
void fb_release(void *block, size_t n_bytes); /* as many as were allocated */
v4 *fb_padded(int64_t n_nodes, const double *x); /* (n_nodes, 4): coordinates and a zero */
const char *fb_isa(void);

/* operations.c: names until NULL; 16 `turns` operations from the values x and y, to their last value */
const char *fb_operation_name(int which);
double fb_operation(int which, int64_t turns, double x, double y);

/* threads.c: run(whole, k, n) for the pieces k = 0 … n - 1 of something, each by one thread of a team */
#define FB_MOST_THREADS 1024
typedef void fb_piece(const void *whole, int64_t k, int64_t n);
int fb_has_threads(void); /* whether it was compiled for more than one */
void fb_use_threads(int n); /* of this process from now on, for what is bound afterwards */
int fb_threads(void);
double fb_busy(int thread); /* seconds in pieces since fb_use_threads */
void fb_team(int n, fb_piece *run, const void *whole);
int64_t fb_cut(const int64_t *indptr, int64_t begin, int64_t end, int64_t step, int64_t k, int64_t n);

/* A pass over vectors, letters as in vectors.c; those with sums come first. */
enum {
    FB_DOT, FB_DOT_RZ, FB_STEP, FB_STEP_JACOBI, FB_STEP_BLOCK, FB_DIRECTION, FB_DIRECTION_JACOBI, FB_DIRECTION_BLOCK,
    FB_SCALE, FB_SCALE_BLOCK, FB_CHEBYSHEV_START, FB_CHEBYSHEV_BLOCK_START, FB_CHEBYSHEV, FB_CHEBYSHEV_BLOCK,
    FB_READ, FB_TRIAD
};
typedef struct {
    int kind, n_threads;
    int64_t n, n_weighted, inverse_bytes; /* of inverse per entry */
    double alpha, beta;                   /* gain and keep of a Chebyshev step */
    double *x, *r, *d, *q, *z;
    const double *w;
    const void *inverse;
    double *parts[2]; /* partial sums of the chunks; NULL: one thread */
    double *sums;     /* (2,) */
} fb_pass;
int64_t fb_pass_chunks(const fb_pass *p);
void fb_run(const fb_pass *p);

/* vectors.c: n entries, the last n_weighted of them weighted by w in inner products. `parts`: NULL, or where the
 * partial sums of the chunks are kept apart */
double fb_dot(int64_t n, int64_t n_weighted, const double *a, const double *b, const double *w, double *parts);
double fb_step(int64_t n, int64_t n_weighted, double alpha, double *x, double *r, const double *d,
               const double *q, const double *w, double *parts);
void fb_step_jacobi(int64_t n, int64_t n_weighted, double alpha, double *x, double *r, const double *d,
                    const double *q, const double *w, const double *inverse, double *rr_rz, double *rr_parts,
                    double *rz_parts);
void fb_step_block(int64_t n, int64_t n_weighted, double alpha, double *x, double *r, const double *d,
                   const double *q, const double *w, const double *inverse, double *rr_rz, double *rr_parts,
                   double *rz_parts);
void fb_direction(int64_t n, double beta, double *d, const double *z);
void fb_direction_jacobi(int64_t n, double beta, double *d, const double *r, const double *inverse);
void fb_direction_block(int64_t n, double beta, double *d, const double *r, const double *inverse);
void fb_axpy(int64_t n, double alpha, const double *x, double *y);
void fb_scale(int64_t n, const double *inverse, const double *r, double *z);
void fb_scale_block(int64_t n, const double *inverse, const double *r, double *z);
void fb_chebyshev_start(int64_t n, double gain, double *z, const double *r, double *d, const double *inverse);
void fb_chebyshev_block_start(int64_t n, double gain, double *z, const double *r, double *d, const float *inverse);
void fb_chebyshev_block(int64_t n, double keep, double gain, double *z, double *r, double *d, const double *q,
                        const float *inverse);
void fb_chebyshev(int64_t n, double keep, double gain, double *z, double *r, double *d, const double *q,
                  const double *inverse);
double fb_read(int64_t n, const double *a);
void fb_triad(int64_t n, double s, double *a, const double *b, const double *c);

/* variants.c: M is the identity (u is r, m is w), folded in (inverse), or applied by the caller */
enum { FB_IDENTITY, FB_DIAGONAL, FB_BLOCKS, FB_EXTERNAL };
typedef struct {
    int64_t n, n_weighted;
    int kind;
    double *x, *r, *u, *w, *p, *s;
    double *z, *q, *m, *n_; /* pipelined only */
    const double *inverse, *weights;
} fb_recurrences;
void fb_single_reduction(const fb_recurrences *v, double alpha, double beta, double *sums);
void fb_pipelined(const fb_recurrences *v, double alpha, double beta, double *sums);
void fb_pipelined_sums(const fb_recurrences *v, double *sums);

/* modes.c */
void fb_moments(int64_t n, int64_t n_weighted, const double *x, const double *centre, const double *r,
                const double *w, double *out);
void fb_small_product(int64_t m, int64_t n, const double *A, const double *v, double *out);
void fb_jacobi_and_motion(int64_t n, int64_t n_interior, const double *x, const double *origin,
                          const int32_t *kind, const double *motion, const double *inverse, const double *r,
                          double *z);

/* multigrid.c: transfers and the Galerkin product; nodes have 8 parents each, those of weight 0 last */
typedef struct fb_coarse fb_coarse;
void fb_restrict(int64_t n, int64_t n_interior, const int32_t *parent, const float *weight, const double *share,
                 const double *r, int64_t n_coarse, double *coarse);
void fb_prolong(int64_t n, const int32_t *parent, const float *weight, const double *coarse, double *fine);
void fb_pieces(int64_t n, const int64_t *indptr, const int32_t *rows, const int32_t *columns, const uint8_t *kind,
               const int64_t *name, const int64_t *corner, const float *weight, int32_t *root, int64_t *least);
fb_coarse *fb_galerkin(int64_t n, int64_t longest, const int64_t *indptr, const int32_t *rows, const int32_t *columns,
                       const double *values, const uint8_t *fixed, const int32_t *parent, const float *weight,
                       int64_t n_coarse, int64_t n_coarse_interior, int64_t *n_blocks);
void fb_coarse_take(const fb_coarse *m, int64_t *indptr, int32_t *rows, int32_t *columns, double *values,
                    int64_t *next);
void fb_coarse_free(fb_coarse *m);

/* interface.c */
void fb_pack(int64_t n, const int32_t *index, int width, const double *v, double *buffer);
void fb_add(int64_t n, const int32_t *index, int width, const double *buffer, double *v);
void fb_gather(int64_t n, double *const *at, double *buffer);
void fb_sum_groups(int64_t n, const int64_t *ends, double *const *at);

/* pattern.c: where each node stands in the cells, and which blocks there are */
void fb_incidence(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t *ascending,
                  int64_t *start, int32_t *at);
void fb_span(int64_t n, const int32_t *a, int32_t *low, int32_t *high);
int fb_rows_fit(int64_t n_rows, int64_t shortest, int64_t n_entries, const int64_t *begins);
int fb_pattern(int npc, const int32_t *ascending, int32_t n_nodes, int32_t n_interior, int32_t n_active, int upper,
               const int64_t *start, const int32_t *at, int64_t *indptr, int32_t *rows, int32_t **columns,
               int64_t *n_bytes);
int64_t fb_count_pairs(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t n_active);

/* ordering.c: position of nodes [low, high) within that range */
int fb_rcm(int32_t n_nodes, const int64_t *indptr, const int32_t *columns, int32_t low, int32_t high,
           int32_t *position);
void fb_hold(int64_t n, const int32_t *nodes, int32_t low, uint8_t *held);
void fb_renumber(int64_t n, int32_t *nodes, int32_t low, const int32_t *position);
int fb_sort_cells(int64_t n_cells, int npc, int32_t *cells, int wide, void *numbers, int32_t n_nodes);

/* cells.c */
int64_t fb_add_weights(int64_t n_cells, const double *x, const int32_t *cells, const double *density, double *f);
double fb_lowest_quality(int64_t n_cells, int npc, const double *x, const int32_t *cells);
int64_t fb_cells_meeting(int64_t n_cells, int npc, const int32_t *cells, const uint8_t *marked, int least, int32_t *found);

/* The Lamé parameters of cell c: lam[c * step], mu[c * step]; step 0 if all cells have the same, else 1. */
typedef struct {
    const double *lam, *mu;
    int64_t step;
} fb_lame;

/* assembly.c */
void fb_stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, fb_lame lame, double *ke);
int fb_assemble(int npc, int64_t n_cells, int64_t n_nodes, const double *x, const int32_t *cells, fb_lame lame,
                int32_t n_interior, int32_t n_active, int upper, const uint8_t *fixed,
                const int32_t *ascending, const int64_t *start, const int32_t *at, const int64_t *indptr,
                const int32_t *rows, const int32_t *columns, double *values);

/* products.c: rows [begin, end) of a full pattern; all rows are independent */
#define FB_NEAR 100000 /* blocks that some near cache holds, 8 MB: prefetching (far) would cost, not gain */
double fb_bsr(int far, int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
              const double *values, const double *d, double *q, double *parts);
void fb_csr(int64_t begin, int64_t end, const int64_t *indptr, const int32_t *columns,
            const double *values, const double *d, double *q);
void fb_dense(int64_t begin, int64_t end, int64_t n, const double *values, const double *d, double *q);
enum { FB_BSR, FB_CSR, FB_ALL };
typedef struct {
    int kind, far;
    int64_t begin, end, n; /* n: entries of a row of FB_ALL */
    const int64_t *indptr; /* NULL: FB_ALL */
    const int32_t *columns;
    const double *values, *d;
    double *q, *parts; /* parts of FB_BSR: d . q of each window */
} fb_rows;
double fb_rows_in_pieces(int n_threads, const fb_rows *p); /* d . q of FB_BSR, else 0 */

/* symmetric.c: interface rows first, then interior rows; both return their part of d . q */
#define FB_SYM_WINDOW 32 /* nodes */
typedef struct {
    int64_t block; /* the first of some stored blocks that follow each other */
    int32_t count, node; /* node: of their row */
} fb_blocks;
typedef struct { /* what one thread does of the interface rows, or of the interior rows */
    int64_t first, last;  /* its own nodes, whole windows: rows and columns */
    int64_t border;       /* rows before this node have no columns but its own */
    int64_t low, high;    /* of interface rows: interior columns that are its own, whole windows */
    int64_t n_before, n_foreign;
    fb_blocks *foreign;   /* blocks in its columns of rows that are not its own; n_before: of rows before those */
} fb_share;
typedef struct {
    int n_threads;
    fb_share *interface, *interior; /* (n_threads,) */
    double *parts;                  /* d . q of each window of the range */
} fb_sym_team;
typedef struct {
    int64_t n, n_interior; /* nodes */
    int64_t n_touched;     /* interior windows that interface rows use */
    int far;               /* nothing near holds all that is multiplied between two uses of this matrix */
    int single;            /* values are floats, else doubles */
    const int64_t *indptr;            /* (n+1,) by stored row */
    const int32_t *columns;
    const void *values;
    const uint16_t *length; /* (n,) blocks of each stored row */
    const int32_t *order;   /* (windows,) interior windows by first use */
    const int32_t *ready;   /* (windows,) how many of them are in use when window w is done */
    fb_sym_team *team;      /* NULL: one thread */
} fb_sym;
int64_t fb_sym_plan(int64_t n, int64_t n_interior, const int64_t *indptr, const int32_t *columns,
                    uint16_t *length, int32_t *order, int32_t *ready);
int fb_sym_divide(fb_sym *m, int n_threads); /* makes its team; -1, -2: see there */
void fb_sym_free(fb_sym_team *team);
double fb_sym_interface(const fb_sym *m, const double *d, double *q);
double fb_sym_interior(const fb_sym *m, const double *d, double *q);
double fb_sym_interface_share(const fb_sym *m, const fb_share *s, const double *d, double *q, double *parts);
double fb_sym_interior_share(const fb_sym *m, const fb_share *s, const double *d, double *q, double *parts);

/* ebe.c: cells [begin, end), of which those before `plain` have no node >= n_active; adds to q; x as of
 * fb_padded */
void fb_ebe(int npc, int64_t begin, int64_t plain, int64_t end, const v4 *x, const int32_t *cells, fb_lame lame,
            int32_t n_active, const double *d, double *q);

#endif
