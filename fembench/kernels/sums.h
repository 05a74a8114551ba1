/* Sums that stay accurate: partial sums of a chunk, added up with compensation (Neumaier 1974, Knuth's
 * two-sum), so the error is that of one chunk however many there are. Never one running accumulator. */
#ifndef FEMBENCH_SUMS_H
#define FEMBENCH_SUMS_H

#include "kernels.h"

typedef struct {
    double sum, carry;
} total;

INLINE void add(total *t, double value) /* sum + carry is exact to second order */
{
    double s = t->sum + value, part = s - t->sum;
    t->carry += (t->sum - (s - part)) + (value - part);
    t->sum = s;
}

INLINE double result(const total *t)
{
    return t->sum + t->carry;
}

#endif
