/* Single operations on plain types, to be timed: chains in which each operation waits for the one before.
 *
 * A call does 16 `turns` operations; the loop around sixteen of them costs nothing beside the chain. The
 * first values, x and y, come from outside, so that nothing is known when this is compiled. Signed integers are
 * added and multiplied as unsigned ones, which wrap. reference_operations.py says in Python what each does. */
#include <math.h>
#include <stdlib.h>

#include "kernels.h"

#define TWICE(s) s s
#define SIXTEEN(s) TWICE(TWICE(TWICE(TWICE(s))))
#define EIGHT(s) TWICE(TWICE(TWICE(s)))
#define TABLE 1024 /* entries; they stay in the first-level cache */

#define OPERATION(name, type, body, result)                                                                  \
    static double name(int64_t turns, double x0, double y0)                                                  \
    {                                                                                                        \
        type x = (type)x0, y = (type)y0;                                                                     \
        for (int64_t turn = 0; turn < turns; turn++) {                                                       \
            body                                                                                             \
        }                                                                                                    \
        return (double)(result);                                                                             \
    }
#define PAIRWISE(name, type, as, operator)                                                                   \
    OPERATION(name##_##type, as, EIGHT(x = x operator y; y = y operator x;), (type)x)
#define ASSIGN(type)                                                                                         \
    static double assign_##type(int64_t turns, double x0, double y0)                                         \
    {                                                                                                        \
        volatile type place = (type)y0;                                                                      \
        type x = (type)x0;                                                                                   \
        for (int64_t turn = 0; turn < turns; turn++) {                                                       \
            SIXTEEN(place = x;)                                                                              \
        }                                                                                                    \
        return (double)place;                                                                                \
    }
#define REMAINDER 40000 /* added to each remainder, so that no divisor is 0 */
#define TYPE(type, as, remainder)                                                                            \
    PAIRWISE(sum, type, as, +)                                                                               \
    PAIRWISE(sub, type, as, -)                                                                               \
    PAIRWISE(mpy, type, as, *)                                                                               \
    OPERATION(div_##type, type, SIXTEEN(x = y / x;), x)                                                      \
    OPERATION(mod_##type, type, SIXTEEN(x = remainder + REMAINDER;), x)                                      \
    ASSIGN(type)

typedef unsigned int natural;
typedef unsigned long natural_long;
TYPE(int, natural, y % x)
TYPE(long, natural_long, y % x)
TYPE(float, float, fmodf(y, x))
TYPE(double, double, fmod(y, x))

/* The compiler must not know what it has just written to v. */
#if defined(__x86_64__)
#define HIDE(v) __asm__ volatile("" : "+x"(v));
#elif defined(__aarch64__)
#define HIDE(v) __asm__ volatile("" : "+w"(v));
#else
#define HIDE(v) __asm__ volatile("" : "+m"(v));
#endif
#define HIDE_WHOLE(v) __asm__ volatile("" : "+r"(v));
OPERATION(cast, double, int whole; EIGHT(whole = (int)x; HIDE_WHOLE(whole) x = whole; HIDE(x)), x + 0 * y)
OPERATION(compare, int, SIXTEEN(x = x < y ? y : (int)x0; HIDE_WHOLE(x)), x)

static double access(int64_t turns, double x0, double y0)
{
    volatile long place = (long)x0;
    long found = (long)y0;
    for (int64_t turn = 0; turn < turns; turn++) {
        SIXTEEN(found = place;)
    }
    return (double)found;
}

static double array_access(int64_t turns, double x0, double y0)
{
    int next[TABLE], stride = (int)y0 | 1, at = (int)x0 % TABLE;
    for (int i = 0; i < TABLE; i++)
        next[i] = (i + stride) % TABLE;
    for (int64_t turn = 0; turn < turns; turn++) {
        SIXTEEN(at = next[at];)
    }
    return at;
}

static double loop_iteration(int64_t turns, double x0, double y0)
{
    int64_t i = 0;
    for (; i < 16 * turns; i++)
        __asm__ volatile("");
    return x0 + y0 + (double)i;
}

static double random_double(int64_t turns, double x0, double y0)
{
    unsigned short state[3] = {(unsigned short)x0, (unsigned short)y0, 1};
    double x = 0;
    for (int64_t turn = 0; turn < turns; turn++) {
        SIXTEEN(x = erand48(state);)
    }
    return x;
}

#define NAMES(type)                                                                                          \
    {"sum_" #type, sum_##type}, {"sub_" #type, sub_##type}, {"mpy_" #type, mpy_##type},                      \
        {"div_" #type, div_##type}, {"mod_" #type, mod_##type}, {"assign_" #type, assign_##type}
static const struct {
    const char *name;
    double (*run)(int64_t, double, double);
} operations[] = {
    NAMES(int), NAMES(long), NAMES(float), NAMES(double),
    {"access", access}, {"array_access", array_access}, {"cast", cast}, {"compare", compare},
    {"loop_iteration", loop_iteration}, {"random_double", random_double},
};

const char *fb_operation_name(int which)
{
    return which < (int)(sizeof operations / sizeof *operations) ? operations[which].name : NULL;
}

double fb_operation(int which, int64_t turns, double x, double y)
{
    return operations[which].run(turns, x, y);
}
