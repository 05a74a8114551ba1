/* Symbolic assembly in linear time: which 3x3 blocks exist.
 *
 * full : row i holds every node that shares a cell with i, ascending.
 * upper: every pair of nodes once. Rows are stored interface first ([n_interior, n_active)), then
 *        interior. A row holds its own node first, then ascending: of an interface row all interior
 *        neighbours and the interface neighbours above it; of an interior row the interior neighbours
 *        above it.
 * Nodes >= n_active are not there. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static int node_cells(int64_t n_cells, int npc, const int32_t *cells, int32_t n_active, int64_t **start,
                      int32_t **list)
{
    int64_t *first = calloc((size_t)n_active + 2, sizeof *first), size = n_cells * npc;
    int32_t *of = malloc(((size_t)size + 1) * sizeof *of);
    *start = first;
    *list = of;
    if (!first || !of)
        return -1;
    for (int64_t k = 0; k < size; k++)
        if (cells[k] < n_active)
            first[cells[k] + 2]++;
    for (int32_t i = 0; i < n_active; i++)
        first[i + 2] += first[i + 1];
    for (int64_t c = 0, k = 0; c < n_cells; c++)
        for (int a = 0; a < npc; a++, k++)
            if (cells[k] < n_active)
                of[first[cells[k] + 1]++] = (int32_t)c; /* afterwards first[i] is where i begins */
    return 0;
}

static void sort(int32_t *a, int n)
{
    for (int i = 1; i < n; i++) {
        int32_t key = a[i];
        int j = i;
        for (; j > 0 && a[j - 1] > key; j--)
            a[j] = a[j - 1];
        a[j] = key;
    }
}

/* Nodes of the cells [first, last) that belong to row i, ascending behind i itself where upper. */
INLINE int gather_row(int npc, const int32_t *cells, const int32_t *first, const int32_t *last, int32_t i,
                      int32_t low, int32_t high, int upper, int32_t *mark, int32_t *row)
{
    int n = 0;
    mark[i] = i + 1;
    row[n++] = i;
    for (; first < last; first++) {
        const int32_t *nodes = cells + (int64_t)npc * *first;
        for (int a = 0; a < npc; a++) {
            int32_t j = nodes[a];
            int wanted = j < high && mark[j] != i + 1 && (!upper || j >= low);
            if (wanted) {
                mark[j] = i + 1;
                row[n++] = j;
            }
        }
    }
    if (upper)
        sort(row + 1, n - 1);
    else
        sort(row, n);
    return n;
}

int fb_pattern(int64_t n_cells, int npc, const int32_t *cells, int32_t n_interior, int32_t n_active,
               int upper, int64_t *indptr, int32_t *rows, int32_t **columns)
{
    int64_t *start = NULL;
    int32_t *list = NULL, *mark = calloc((size_t)n_active + 1, sizeof *mark);
    int64_t room = 16 * (int64_t)n_active + 1024;
    int32_t *out = malloc((size_t)room * sizeof *out);
    int status = -1;
    if (!mark || !out || node_cells(n_cells, npc, cells, n_active, &start, &list))
        goto done;
    int32_t n_interface = n_active - n_interior;
    indptr[0] = 0;
    for (int32_t k = 0; k < n_active; k++) {
        int32_t i = !upper ? k : k < n_interface ? n_interior + k : k - n_interface;
        int64_t most = (start[i + 1] - start[i]) * (npc - 1) + 1;
        if (indptr[k] + most > room) {
            room = room + room / 2 + most;
            int32_t *more = realloc(out, (size_t)room * sizeof *out);
            if (!more)
                goto done;
            out = more;
        }
        /* an interface row takes every interior node: those are below n_interior, or above i */
        int32_t high = upper && i < n_interior ? n_interior : n_active;
        int32_t *row = out + indptr[k];
        int n;
        if (upper && i >= n_interior) {
            n = gather_row(npc, cells, list + start[i], list + start[i + 1], i, 0, high, 1, mark, row);
            int kept = 1;
            for (int e = 1; e < n; e++)
                if (row[e] < n_interior || row[e] > i)
                    row[kept++] = row[e];
            n = kept;
        } else
            n = gather_row(npc, cells, list + start[i], list + start[i + 1], i, i, high, upper, mark, row);
        rows[k] = i;
        indptr[k + 1] = indptr[k] + n;
    }
    *columns = fb_allocate((size_t)indptr[n_active] * sizeof **columns); /* on huge pages where large */
    if (!*columns)
        goto done;
    memcpy(*columns, out, (size_t)indptr[n_active] * sizeof **columns);
    status = 0;
done:
    free(out);
    free(mark);
    free(start);
    free(list);
    return status;
}
