/* What the passes over vectors share.
 *
 * Inner products: partial sums of CHUNK entries in eight lanes, added up with Neumaier's compensation,
 * so the error is that of one chunk whatever n is. Never one running accumulator: it loses digits. */
#ifndef FEMBENCH_PASSES_H
#define FEMBENCH_PASSES_H

#include "kernels.h"

#define CHUNK 192 /* entries per partial sum: 64 nodes */

typedef struct {
    double sum, carry;
} total;

INLINE void add(total *t, double value) /* two-sum (Knuth): sum + carry stays exact to second order */
{
    double s = t->sum + value, part = s - t->sum;
    t->carry += (t->sum - (s - part)) + (value - part);
    t->sum = s;
}

#define LANES(a) ((((a)[0] + (a)[4]) + ((a)[2] + (a)[6])) + (((a)[1] + (a)[5]) + ((a)[3] + (a)[7])))

#define LOAD(p) (*(const v8 *)(p))

/* inverse: per node the 6 entries xx yy zz xy yz zx of a symmetric 3x3 block */
INLINE void apply_block(const double *p, const double *e, double *z)
{
    z[0] = p[0] * e[0] + p[3] * e[1] + p[5] * e[2];
    z[1] = p[3] * e[0] + p[1] * e[1] + p[4] * e[2];
    z[2] = p[5] * e[0] + p[4] * e[1] + p[2] * e[2];
}

#endif
