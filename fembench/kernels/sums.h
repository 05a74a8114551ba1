/* Sums that stay accurate: partial sums of a chunk, added up with compensation (Neumaier 1974, Knuth's
 * two-sum), so the error is that of one chunk however many there are. Never one running accumulator.
 *
 * A thread that computes some of the chunks keeps their partial sums apart; added up in the order of the
 * chunks by one thread, they give the same bits for any number of threads. */
#ifndef FEMBENCH_SUMS_H
#define FEMBENCH_SUMS_H

#include "kernels.h"

typedef struct {
    double sum, carry;
    double *parts; /* NULL: added up at once; else where the partial sums are kept */
} total;

INLINE void add(total *t, double value) /* sum + carry is exact to second order */
{
    if (t->parts) {
        *t->parts++ = value;
        return;
    }
    double s = t->sum + value, part = s - t->sum;
    t->carry += (t->sum - (s - part)) + (value - part);
    t->sum = s;
}

INLINE double result(const total *t)
{
    return t->sum + t->carry;
}

INLINE double sum_of(int64_t n, const double *parts) /* what add() gives of them, one after another */
{
    total t = {0, 0, NULL};
    for (int64_t k = 0; k < n; k++)
        add(&t, parts[k]);
    return result(&t);
}

#endif
