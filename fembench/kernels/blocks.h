/* What the block products share: a 3x3 block times a 3-vector in vector registers.
 *
 * Blocks are row-major; a row is loaded as four entries, the fourth (the next row's first) lands in a
 * dead lane. So values and d must be followed by 8 readable bytes: arrays of kernels.empty are. */
#ifndef FEMBENCH_BLOCKS_H
#define FEMBENCH_BLOCKS_H

#include "kernels.h"

#define WINDOW FB_SYM_WINDOW /* nodes whose part of d . q is one partial sum */

#define LOAD4(p) (*(const v4 *)(p))
#define LOAD4_ONCE(p) (*(const volatile v4 *)(p)) /* kept in a register: a second load costs more */

typedef float f4 __attribute__((vector_size(16), aligned(4)));

/* Two lines for every block of 72 bytes: one would leave every ninth line to be waited for. */
#define PREFETCH(...) PREFETCH_(__VA_ARGS__) /* AHEAD is two arguments */
#define PREFETCH_(a, ahead, level)                                 \
    do {                                                          \
        __builtin_prefetch((const char *)(a) + (ahead), 0, level); \
        __builtin_prefetch((const char *)(a) + (ahead) + 64, 0, level); \
    } while (0)

/* two = (sum of a, sum of b), one = sum of c; fourth lanes left out */
#define SUMS(two, one, a, b, c)                                              \
    do {                                                                     \
        v4 even_ = PICK4(a, b, 0, 4, 2, 6);                \
        two = PICK2(even_, even_, 0, 1) + PICK2(a, b, 1, 5) + \
              PICK2(even_, even_, 2, 3);                   \
        one = ((c)[0] + (c)[1]) + (c)[2];                                    \
    } while (0)

#define LANES4(a) (((a)[0] + (a)[2]) + ((a)[1] + (a)[3]))

#endif
