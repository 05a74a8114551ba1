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

#define SHORT 16 /* columns of a row that are sorted in registers */

/* Lowest and highest of n numbers; 0 and -1 of none. */
CLONES void fb_span(int64_t n, const int32_t *a, int32_t *low, int32_t *high)
{
    int32_t least = n ? a[0] : 0, most = n ? a[0] : -1;
    for (int64_t k = 0; k < n; k++) {
        least = a[k] < least ? a[k] : least;
        most = a[k] > most ? a[k] : most;
    }
    *low = least;
    *high = most;
}

/* Cells of each node: start (n_active + 2,) with node i's at [start[i], start[i+1]), list (npc n_cells,). */
void fb_incidence(int64_t n_cells, int npc, const int32_t *cells, int32_t n_active, int64_t *start,
                  int32_t *list)
{
    int64_t size = n_cells * npc;
    memset(start, 0, ((size_t)n_active + 2) * sizeof *start);
    for (int64_t k = 0; k < size; k++)
        if (cells[k] < n_active)
            start[cells[k] + 2]++;
    for (int32_t i = 0; i < n_active; i++)
        start[i + 2] += start[i + 1];
    for (int64_t c = 0, k = 0; c < n_cells; c++)
        for (int a = 0; a < npc; a++, k++)
            if (cells[k] < n_active)
                list[start[cells[k] + 1]++] = (int32_t)c;
}

typedef int32_t lanes __attribute__((vector_size(4 * SHORT), aligned(4)));

/* Ascending, for up to SHORT different numbers with room for SHORT: each goes where as many are below it. No branch
 * depends on their order, which no processor could predict. */
INLINE void sort_short(int32_t *a, int64_t n)
{
    lanes v = *(const lanes *)a, below = {0};
    for (int64_t k = 0; k < n; k++)
        below -= v > a[k];
    for (int64_t k = 0; k < n; k++)
        a[below[k]] = v[k];
}

static void sort(int32_t *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        int32_t key = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > key; j--)
            a[j] = a[j - 1];
        a[j] = key;
    }
}

/* Row i: its own node, then the nodes of its cells in [low, high), ascending; returns how many. Written
 * without a branch on "seen before", which no processor could predict: row needs room for SHORT + 1 more. */
INLINE int64_t gather_row(int npc, const int32_t *cells, const int32_t *first, const int32_t *last, int32_t i,
                          int32_t low, int32_t high, int32_t *mark, int32_t *row)
{
    int64_t n = 1;
    mark[i] = i + 1;
    row[0] = i;
    for (; first < last; first++) {
        const int32_t *nodes = cells + (int64_t)npc * *first;
        for (int a = 0; a < npc; a++) {
            int32_t j = nodes[a];
            row[n] = j;
            n += (mark[j] != i + 1) & ((uint32_t)(j - low) < (uint32_t)(high - low));
            mark[j] = i + 1;
        }
    }
    if (n - 1 <= SHORT)
        sort_short(row + 1, n - 1);
    else
        sort(row + 1, n - 1);
    return n;
}

/* Of an interface row: all interior nodes, and the interface nodes above i. */
static int64_t drop_below(int32_t *row, int64_t n, int32_t n_interior)
{
    int64_t kept = 1;
    for (int64_t e = 1; e < n; e++)
        if (row[e] < n_interior || row[e] > row[0])
            row[kept++] = row[e];
    return kept;
}

typedef struct {
    int32_t *columns;
    int64_t room, used;
} growing;

static int reserve(growing *g, int64_t size)
{
    if (size > g->room) {
        int64_t room = g->room + g->room / 2 > size ? g->room + g->room / 2 : size;
        int32_t *more = fb_allocate((size_t)room * sizeof *more); /* on huge pages where large */
        if (!more)
            return -1;
        if (g->columns)
            memcpy(more, g->columns, (size_t)g->used * sizeof *more);
        fb_release(g->columns, (size_t)g->room * sizeof *more);
        g->columns = more;
        g->room = room;
    }
    return 0;
}

INLINE int upper_rows(int npc, const int32_t *cells, const int64_t *start, const int32_t *list,
                      int32_t n_interior, int32_t n_active, int32_t *mark, int64_t *indptr, int32_t *rows,
                      growing *out)
{
    int32_t n_interface = n_active - n_interior;
    indptr[0] = 0;
    for (int32_t k = 0; k < n_active; k++) {
        int at_interface = k < n_interface;
        int32_t i = at_interface ? n_interior + k : k - n_interface;
        int32_t low = at_interface ? 0 : i, high = at_interface ? n_active : n_interior;
        out->used = indptr[k];
        if (reserve(out, indptr[k] + (start[i + 1] - start[i]) * npc + 2 + SHORT))
            return -1;
        int32_t *row = out->columns + indptr[k];
        int64_t n = gather_row(npc, cells, list + start[i], list + start[i + 1], i, low, high, mark, row);
        rows[k] = i;
        indptr[k + 1] = indptr[k] + (at_interface ? drop_below(row, n, n_interior) : n);
    }
    return 0;
}

/* The full pattern from the upper one of the same numbering: row i's lower columns arrive ascending, each
 * from the row that holds it, before i's own are copied. indptr is rewritten. */
static int32_t *mirrored(int32_t n, int64_t *indptr, const int32_t *upper, int64_t *n_bytes)
{
    int64_t *next = calloc((size_t)n + 1, sizeof *next);
    *n_bytes = (2 * indptr[n] - n) * (int64_t)sizeof(int32_t);
    int32_t *full = fb_allocate((size_t)*n_bytes);
    if (next && full) {
        for (int64_t k = 0; k < indptr[n]; k++)
            next[upper[k]]++; /* row j's lower columns, itself counted */
        for (int64_t i = 0, size = 0; i < n; i++) {
            int64_t lower = next[i] - 1;
            next[i] = size;
            size += lower + indptr[i + 1] - indptr[i];
        }
        for (int32_t i = 0; i < n; i++) {
            for (int64_t k = indptr[i] + 1; k < indptr[i + 1]; k++)
                full[next[upper[k]]++] = i;
            memcpy(full + next[i], upper + indptr[i], (size_t)(indptr[i + 1] - indptr[i]) * sizeof *full);
        }
        for (int64_t i = 0, before = 0; i < n; i++) { /* next[i] is where i's own columns begin */
            int64_t own = indptr[i + 1] - before;
            before = indptr[i + 1];
            indptr[i + 1] = next[i] + own;
        }
    } else {
        fb_release(full, (size_t)*n_bytes);
        full = NULL;
    }
    free(next);
    return full;
}

/* highest: of the numbers in cells. *columns rests on *n_bytes of fb_allocate, perhaps more than are used. */
CLONES int fb_pattern(int npc, const int32_t *cells, int32_t highest, int32_t n_interior, int32_t n_active, int upper,
               const int64_t *start, const int32_t *list, int64_t *indptr, int32_t *rows, int32_t **columns,
               int64_t *n_bytes)
{
    /* nodes that are not there are marked too */
    int32_t *mark = calloc((size_t)(highest > n_active ? highest : n_active) + 1, sizeof *mark);
    growing out = {NULL, 0, 0};
    int status = -1, split = upper ? n_interior : n_active;
    if (mark && !reserve(&out, 8 * (int64_t)n_active + 64))
        status = npc == 4 ? upper_rows(4, cells, start, list, split, n_active, mark, indptr, rows, &out)
                          : upper_rows(8, cells, start, list, split, n_active, mark, indptr, rows, &out);
    free(mark);
    *columns = out.columns;
    *n_bytes = out.room * (int64_t)sizeof *out.columns;
    if (!status && upper)
        return 0;
    if (!status)
        *columns = mirrored(n_active, indptr, out.columns, n_bytes);
    fb_release(out.columns, (size_t)out.room * sizeof *out.columns);
    return status || !*columns ? -1 : 0;
}
