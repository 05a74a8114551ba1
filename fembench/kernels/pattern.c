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

/* Whether the n_rows + 1 numbers ascend from 0 to n_entries, each by `shortest` at least. */
int fb_rows_fit(int64_t n_rows, int64_t shortest, int64_t n_entries, const int64_t *begins)
{
    int fit = begins[0] == 0 && begins[n_rows] == n_entries;
    for (int64_t k = 0; k < n_rows; k++)
        fit &= begins[k + 1] >= begins[k] + shortest;
    return fit;
}

INLINE void order(int32_t *a, int32_t *b)
{
    int32_t less = *a < *b ? *a : *b;
    *b = *a < *b ? *b : *a;
    *a = less;
}

/* By a fixed network of comparisons: no branch depends on the order of the nodes. */
INLINE void sort_cell(int npc, const int32_t *nodes, int32_t *ascending)
{
    int32_t node[8];
    for (int a = 0; a < npc; a++)
        node[a] = nodes[a];
    if (npc == 4) {
        order(node, node + 1), order(node + 2, node + 3);
        order(node, node + 2), order(node + 1, node + 3);
        order(node + 1, node + 2);
    } else
        for (int last = npc - 1; last > 0; last--)
            for (int a = 0; a < last; a++)
                order(node + a, node + a + 1);
    for (int a = 0; a < npc; a++)
        ascending[a] = node[a];
}

INLINE void incidence(int npc, int64_t n_cells, const int32_t *cells, int32_t n_nodes, int32_t *ascending,
                      int64_t *start, int32_t *at)
{
    memset(start, 0, ((size_t)n_nodes + 2) * sizeof *start);
    for (int64_t c = 0; c < n_cells; c++) {
        int32_t *nodes = ascending + npc * c;
        sort_cell(npc, cells + npc * c, nodes);
        for (int a = 0; a < npc; a++)
            start[nodes[a] + 2]++;
    }
    for (int64_t i = 2, sum = 0; i < (int64_t)n_nodes + 2; i++)
        start[i] = sum += start[i];
    for (int64_t c = 0; c < n_cells; c++)
        for (int a = 0; a < npc; a++) {
            int64_t k = npc * c + a;
            at[start[ascending[k] + 1]++] = (int32_t)k;
        }
}

/* ascending (n_cells, npc): the nodes of each cell, sorted. start (n_nodes + 2,), at (n_cells npc,): node i stands at the
 * places at[start[i]] … at[start[i + 1] - 1] of it, counted flat and ascending. All nodes are below n_nodes. */
CLONES void fb_incidence(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t *ascending,
                         int64_t *start, int32_t *at)
{
    if (npc == 4)
        incidence(4, n_cells, cells, n_nodes, ascending, start, at);
    else
        incidence(8, n_cells, cells, n_nodes, ascending, start, at);
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

/* Behind the first n of row: the nodes that follow node i in its cells, or all nodes of its cells; returns how
 * many are in the row now. Copies whole cells, so that no branch depends on how many are of use. */
INLINE int64_t gather(int npc, const int32_t *ascending, const int32_t *at, const int32_t *end, int all,
                      int32_t *row, int64_t n)
{
    for (; at < end; at++) {
        int64_t place = *at, before = place & (npc - 1);
        memcpy(row + n, ascending + (all ? place - before : place + 1), (size_t)npc * sizeof *row);
        n += all ? npc : npc - 1 - before;
    }
    return n;
}

/* Of the n - 1 candidates behind it, row i keeps those below high, once and ascending. Marks below tag are old ones. */
INLINE int64_t keep_once(int32_t i, int32_t high, int64_t n, uint32_t tag, uint32_t *mark, int32_t *row)
{
    int64_t kept = 1;
    mark[i] = tag;
    row[0] = i;
    for (int64_t k = n; k < n + 3; k++)
        row[k] = i; /* dropped; four are looked at in each turn */
    for (int64_t k = 1; k < n; k += 4)
        for (int a = 0; a < 4; a++) { /* without a branch on "seen before", which no processor could predict */
            int32_t j = row[k + a];
            row[kept] = j;
            kept += mark[j] < tag;
            mark[j] = tag;
        }
    if (kept - 1 <= SHORT)
        sort_short(row + 1, kept - 1);
    else
        sort(row + 1, kept - 1);
    while (row[kept - 1] >= high)
        kept--;
    return kept;
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

INLINE int upper_rows(int npc, const int32_t *ascending, const int64_t *start, const int32_t *at,
                      int32_t n_interior, int32_t n_active, uint32_t *mark, int64_t *indptr, int32_t *rows,
                      growing *out)
{
    int32_t n_interface = n_active - n_interior;
    indptr[0] = 0;
    for (int32_t k = 0; k < n_active; k++) {
        int at_interface = k < n_interface;
        int32_t i = rows[k] = at_interface ? n_interior + k : k - n_interface;
        const int32_t *first = at + start[i], *end = at + start[i + 1];
        out->used = indptr[k];
        if (reserve(out, indptr[k] + (end - first) * npc + npc + SHORT))
            return -1;
        int32_t *row = out->columns + indptr[k];
        int64_t n;
        if (at_interface) {
            n = keep_once(i, n_active, gather(npc, ascending, first, end, 1, row, 1), (uint32_t)k + 1, mark, row);
            n = drop_below(row, n, n_interior);
        } else
            n = keep_once(i, n_interior, gather(npc, ascending, first, end, 0, row, 1), (uint32_t)k + 1, mark, row);
        indptr[k + 1] = indptr[k] + n;
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

/* ascending, start, at: of fb_incidence; up to npc numbers behind ascending are read. *columns rests on *n_bytes of
 * fb_allocate, perhaps more than are used. */
CLONES int fb_pattern(int npc, const int32_t *ascending, int32_t n_nodes, int32_t n_interior, int32_t n_active,
                      int upper, const int64_t *start, const int32_t *at, int64_t *indptr, int32_t *rows,
                      int32_t **columns, int64_t *n_bytes)
{
    uint32_t *mark = calloc((size_t)n_nodes + 1, sizeof *mark); /* nodes that are not there are marked too */
    growing out = {NULL, 0, 0};
    int status = -1, split = upper ? n_interior : n_active;
    if (mark && !reserve(&out, 8 * (int64_t)n_active + 64))
        status = npc == 4 ? upper_rows(4, ascending, start, at, split, n_active, mark, indptr, rows, &out)
                          : upper_rows(8, ascending, start, at, split, n_active, mark, indptr, rows, &out);
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

#define ROWS 8192 /* nodes whose cells are gathered at once: all of them would take twice the memory of the cells */
#define CHUNK 4096 /* cells */

/* Nodes that follow those of [low, high) in their cells: how many, for `next`, or themselves into `after`. */
INLINE int64_t following(int npc, int64_t n_cells, const int32_t *cells, const int32_t *spans, int32_t low,
                         int32_t high, int32_t *next, int32_t *after)
{
    int64_t found = 0;
    for (int64_t k = 0; k * CHUNK < n_cells; k++) {
        if (spans[2 * k] >= high || spans[2 * k + 1] < low)
            continue;
        int64_t end = (k + 1) * CHUNK < n_cells ? (k + 1) * CHUNK : n_cells;
        for (int64_t c = k * CHUNK; c < end; c++) {
            int32_t node[8];
            sort_cell(npc, cells + npc * c, node);
            for (int a = 0; a < npc - 1; a++) {
                if (node[a] < low || node[a] >= high)
                    continue;
                if (after)
                    for (int b = a + 1; b < npc; b++)
                        after[next[node[a] - low]++] = node[b];
                else
                    next[node[a] - low + 1] += npc - 1 - a;
                found += npc - 1 - a;
            }
        }
    }
    return found;
}

INLINE int64_t count_pairs(int npc, int64_t n_cells, const int32_t *cells, int32_t n_active, const int32_t *spans,
                           uint32_t *mark, int32_t *next)
{
    int64_t pairs = 0, room = 0;
    int32_t *after = NULL;
    for (int32_t low = 0; low < n_active; low += ROWS) {
        int32_t high = low + ROWS < n_active ? low + ROWS : n_active;
        memset(next, 0, (ROWS + 1) * sizeof *next);
        int64_t n = following(npc, n_cells, cells, spans, low, high, next, NULL);
        if (n > room) {
            free(after);
            after = malloc((size_t)(room = n) * sizeof *after);
            if (!after)
                return -1;
        }
        for (int32_t r = 0; r < ROWS; r++)
            next[r + 1] += next[r];
        following(npc, n_cells, cells, spans, low, high, next, after);
        for (int32_t i = low, e = 0; i < high; i++)
            for (; e < next[i - low]; e++) { /* without a branch, as no processor could predict what was seen before */
                pairs += (after[e] < n_active) & (mark[after[e]] != (uint32_t)i + 1);
                mark[after[e]] = (uint32_t)i + 1;
            }
    }
    free(after);
    return pairs;
}

/* How many pairs of nodes below n_active share a cell; -1: no memory. */
int64_t fb_count_pairs(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t n_active)
{
    int64_t n_chunks = (n_cells + CHUNK - 1) / CHUNK, pairs = -1;
    int32_t *spans = malloc((2 * (size_t)n_chunks + 1) * sizeof *spans), *next = malloc((ROWS + 1) * sizeof *next);
    uint32_t *mark = calloc((size_t)n_nodes + 1, sizeof *mark);
    if (spans && next && mark) {
        for (int64_t k = 0; k < n_chunks; k++) {
            int64_t n = (k + 1) * CHUNK < n_cells ? CHUNK : n_cells - k * CHUNK;
            fb_span(npc * n, cells + npc * k * CHUNK, spans + 2 * k, spans + 2 * k + 1);
        }
        pairs = npc == 4 ? count_pairs(4, n_cells, cells, n_active, spans, mark, next)
                         : count_pairs(8, n_cells, cells, n_active, spans, mark, next);
    }
    free(spans);
    free(next);
    free(mark);
    return pairs;
}
