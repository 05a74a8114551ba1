/* Interface values: gather into a message, add a message. `width` 1: index is of dofs; 3: of nodes.
 * Of several vectors: values of three entries by their addresses. */
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

void fb_gather(int64_t n, double *const *at, double *buffer)
{
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < 3; c++)
            buffer[3 * k + c] = at[k][c];
}

/* The values [ends[g], ends[g + 1]) become their sum, in this order. */
void fb_sum_groups(int64_t n, const int64_t *ends, double *const *at)
{
    for (int64_t g = 0; g < n; g++) {
        double s[3] = {0};
        for (int64_t k = ends[g]; k < ends[g + 1]; k++)
            for (int c = 0; c < 3; c++)
                s[c] += at[k][c];
        for (int64_t k = ends[g]; k < ends[g + 1]; k++)
            for (int c = 0; c < 3; c++)
                at[k][c] = s[c];
    }
}
