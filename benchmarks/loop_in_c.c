/* The standard loop of fembench/solve/cg.py without Python: the same kernels and the same MPI calls in the
 * same order, so the same bits. All functions come as addresses; MPI's handles travel as 64-bit numbers,
 * which suits MPIs whose handles are pointers (Open MPI) and those whose are int (MPICH) on x86-64, aarch64. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t n_nodes, n_interior; /* rows of blocks; n = 3 n_nodes entries a vector */
    const int64_t *indptr;
    const int32_t *columns;
    const double *values, *weights;
    double *x, *r, *d, *q;

    double (*bsr)(int, int64_t, int64_t, const int64_t *, const int32_t *, const double *, const double *, double *,
                  double *);
    double (*step)(int64_t, int64_t, double, double *, double *, const double *, const double *, const double *,
                   double *);
    void (*direction)(int64_t, double, double *, const double *);
    void (*pack)(int64_t, const int32_t *, int, const double *, double *);
    void (*add)(int64_t, const int32_t *, int, const double *, double *);
    void (*axpy)(int64_t, double, const double *, double *);

    int64_t n_neighbours, n_below, n_shared; /* shared nodes of all neighbours together */
    const int64_t *first;                    /* (n_neighbours + 1,) node of each neighbour in index */
    const int32_t *index;                    /* (n_shared,) */
    double *out, *in, *own;

    int (*startall)(int, void *);
    int (*waitall)(int, void *, void *);
    int (*allreduce)(const void *, void *, int, int64_t, int64_t, int64_t);
    void *requests, *statuses;
    int64_t n_requests, alone, comm, type, sum;
} loop;

static double reduce(const loop *l, double value)
{
    double sum = value;
    if (!l->alone)
        l->allreduce(&value, &sum, 1, l->type, l->sum, l->comm);
    return sum;
}

static void finish(const loop *l)
{
    double *interface = l->q + 3 * l->n_interior;
    int64_t n = 3 * (l->n_nodes - l->n_interior);
    if (!l->n_requests)
        return;
    l->waitall((int)l->n_requests, l->requests, l->statuses);
    memcpy(l->own, interface, n * sizeof(double));
    memset(interface, 0, n * sizeof(double));
    for (int64_t k = 0; k < l->n_below; k++)
        l->add(l->first[k + 1] - l->first[k], l->index + l->first[k], 3, l->in + 3 * l->first[k], l->q);
    l->axpy(n, 1.0, l->own, interface);
    for (int64_t k = l->n_below; k < l->n_neighbours; k++)
        l->add(l->first[k + 1] - l->first[k], l->index + l->first[k], 3, l->in + 3 * l->first[k], l->q);
}

/* residuals (iterations,) receives |r_k|; gamma is <r, r> at the start. Returns the last <r, r>. */
double iterate(const loop *l, int64_t iterations, double gamma, double *residuals)
{
    int64_t n = 3 * l->n_nodes, n_weighted = n - 3 * l->n_interior;
    double beta = 0.0;
    for (int64_t k = 0; k < iterations; k++) {
        l->direction(n, beta, l->d, l->r);
        double dq = l->bsr(0, l->n_interior, l->n_nodes, l->indptr, l->columns, l->values, l->d, l->q, NULL);
        if (l->n_requests) {
            l->pack(l->n_shared, l->index, 3, l->q, l->out);
            l->startall((int)l->n_requests, l->requests);
        }
        dq += l->bsr(0, 0, l->n_interior, l->indptr, l->columns, l->values, l->d, l->q, NULL);
        finish(l);
        double tau = reduce(l, dq), old = gamma;
        gamma = reduce(l, l->step(n, n_weighted, old / tau, l->x, l->r, l->d, l->q, l->weights, NULL));
        beta = gamma / old;
        residuals[k] = sqrt(gamma);
    }
    return gamma;
}
