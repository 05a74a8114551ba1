/* Interface values: gather into a message, add a message. `width` 1: index is of dofs; 3: of nodes. */
#include "kernels.h"

void fb_pack(int64_t n, const int32_t *index, int width, const double *v, double *buffer)
{
    if (width == 3)
        for (int64_t k = 0; k < n; k++)
            for (int c = 0; c < 3; c++)
                buffer[3 * k + c] = v[3 * (int64_t)index[k] + c];
    else
        for (int64_t k = 0; k < n; k++)
            buffer[k] = v[index[k]];
}

void fb_add(int64_t n, const int32_t *index, int width, const double *buffer, double *v)
{
    if (width == 3)
        for (int64_t k = 0; k < n; k++)
            for (int c = 0; c < 3; c++)
                v[3 * (int64_t)index[k] + c] += buffer[3 * k + c];
    else
        for (int64_t k = 0; k < n; k++)
            v[index[k]] += buffer[k];
}
