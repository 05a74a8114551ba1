/* What the passes over vectors share. Inner products: partial sums of CHUNK entries in eight lanes (two
 * vectors of four: wider ones are slow where the processor lacks them), added up as sums.h says. */
#ifndef FEMBENCH_PASSES_H
#define FEMBENCH_PASSES_H

#include "sums.h"

#define CHUNK 192 /* entries per partial sum: 64 nodes */
#define LOAD(p) (*(const v4 *)(p))
#define LANES(a) (((a)[0] + (a)[2]) + ((a)[1] + (a)[3]))

/* z = p e; p: per node the 6 entries xx yy zz xy yz zx of a symmetric 3x3 block, as doubles or floats */
#define APPLY_BLOCK(p, e, z)                                    \
    do {                                                        \
        (z)[0] = p[0] * e[0] + p[3] * e[1] + p[5] * e[2];       \
        (z)[1] = p[3] * e[0] + p[1] * e[1] + p[4] * e[2];       \
        (z)[2] = p[5] * e[0] + p[4] * e[1] + p[2] * e[2];       \
    } while (0)

INLINE void apply_block(const double *p, const double *e, double *z) { APPLY_BLOCK(p, e, z); }

INLINE void apply_single(const float *p, const double *e, double *z) { APPLY_BLOCK(p, e, z); }

#endif
