/* Reverse Cuthill-McKee order of a range of nodes (Cuthill, McKee 1969; George, Liu 1979 for the root).
 *
 * The graph is a full pattern; only nodes in [low, high) count. Each connected piece is numbered in turn. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

typedef struct {
    const int64_t *indptr;
    const int32_t *columns;
    int32_t low, high;
    int32_t *level; /* by node: -1 unseen, -2 numbered */
    int32_t *queue;
} graph;

static int inside(const graph *g, int32_t j)
{
    return j >= g->low && j < g->high;
}

static int64_t degree(const graph *g, int32_t i)
{
    return g->indptr[i + 1] - g->indptr[i];
}

/* Breadth first from root; returns how many nodes, sets the last level's number. Levels stay in g->level. */
static int64_t levels(graph *g, int32_t root, int32_t *last)
{
    int64_t n = 0;
    g->queue[n++] = root;
    g->level[root] = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t i = g->queue[k];
        for (int64_t e = g->indptr[i]; e < g->indptr[i + 1]; e++) {
            int32_t j = g->columns[e];
            if (inside(g, j) && g->level[j] == -1) {
                g->level[j] = g->level[i] + 1;
                g->queue[n++] = j;
            }
        }
    }
    *last = g->level[g->queue[n - 1]];
    return n;
}

/* A node far from all others of its piece: repeat from the least connected node of the last level. */
static int32_t far_node(graph *g, int32_t root)
{
    int32_t depth = -1;
    for (int round = 0; round < 5; round++) {
        int32_t last, best = root;
        int64_t n = levels(g, root, &last), least = INT64_MAX;
        for (int64_t k = n - 1; k >= 0 && g->level[g->queue[k]] == last; k--)
            if (degree(g, g->queue[k]) <= least) {
                best = g->queue[k];
                least = degree(g, best);
            }
        for (int64_t k = 0; k < n; k++)
            g->level[g->queue[k]] = -1;
        if (last <= depth)
            break;
        depth = last;
        root = best;
    }
    return root;
}

static void sort_by_degree(const graph *g, int32_t *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        int32_t node = a[i];
        int64_t d = degree(g, node), j = i;
        for (; j > 0 && degree(g, a[j - 1]) > d; j--)
            a[j] = a[j - 1];
        a[j] = node;
    }
}

static int64_t number(graph *g, int32_t root, int32_t *order)
{
    int64_t n = 0;
    order[n++] = root;
    g->level[root] = -2;
    for (int64_t k = 0; k < n; k++) {
        int64_t first = n;
        int32_t i = order[k];
        for (int64_t e = g->indptr[i]; e < g->indptr[i + 1]; e++) {
            int32_t j = g->columns[e];
            if (inside(g, j) && g->level[j] == -1) {
                g->level[j] = -2;
                order[n++] = j;
            }
        }
        sort_by_degree(g, order + first, n - first);
    }
    return n;
}

/* position[i] of each node of [low, high), within [low, high) */
int fb_rcm(int32_t n_nodes, const int64_t *indptr, const int32_t *columns, int32_t low, int32_t high,
           int32_t *position)
{
    int32_t n = high - low;
    int32_t *level = malloc(((size_t)n_nodes + 1) * sizeof *level);
    int32_t *queue = malloc(((size_t)n + 1) * sizeof *queue), *order = malloc(((size_t)n + 1) * sizeof *order);
    graph g = {indptr, columns, low, high, level, queue};
    int status = level && queue && order ? 0 : -1;
    if (!status) {
        int64_t done = 0;
        for (int32_t i = 0; i < n_nodes; i++)
            level[i] = -1;
        for (int32_t i = low; i < high; i++)
            if (level[i] == -1)
                done += number(&g, far_node(&g, i), order + done);
        for (int64_t k = 0; k < done; k++)
            position[order[k]] = (int32_t)(high - 1 - k);
    }
    free(level);
    free(queue);
    free(order);
    return status;
}

/* held[node - low] becomes 1 for each of n nodes. */
void fb_hold(int64_t n, const int32_t *nodes, int32_t low, uint8_t *held)
{
    for (int64_t k = 0; k < n; k++)
        held[nodes[k] - low] = 1;
}

/* Each of n nodes becomes position[node - low]. */
void fb_renumber(int64_t n, int32_t *nodes, int32_t low, const int32_t *position)
{
    for (int64_t k = 0; k < n; k++)
        nodes[k] = position[nodes[k] - low];
}

#define BUCKET 11 /* cells are sorted together whose lowest nodes agree but for so many bits */
#define WIDTH (1 << BUCKET)

typedef struct {
    int npc, wide;
    int32_t *cells;
    void *numbers; /* int64_t if wide, else int32_t */
} cell_list;

INLINE int32_t lowest_node(const cell_list *l, int64_t c)
{
    const int32_t *nodes = l->cells + l->npc * c;
    int32_t least = nodes[0];
    for (int a = 1; a < l->npc; a++)
        least = nodes[a] < least ? nodes[a] : least;
    return least;
}

INLINE int64_t number_of(const cell_list *l, int64_t c)
{
    return l->wide ? ((int64_t *)l->numbers)[c] : ((int32_t *)l->numbers)[c];
}

INLINE void set_number(const cell_list *l, int64_t c, int64_t number)
{
    if (l->wide)
        ((int64_t *)l->numbers)[c] = number;
    else
        ((int32_t *)l->numbers)[c] = (int32_t)number;
}

INLINE void swap_cells(const cell_list *l, int64_t c, int64_t d)
{
    int64_t number = number_of(l, c);
    set_number(l, c, number_of(l, d));
    set_number(l, d, number);
    for (int a = 0; a < l->npc; a++) {
        int32_t node = l->cells[l->npc * c + a];
        l->cells[l->npc * c + a] = l->cells[l->npc * d + a];
        l->cells[l->npc * d + a] = node;
    }
}

/* Shell sort: a node has few cells, but in some mesh it may have them all. */
INLINE void sort_by_number(const cell_list *l, int64_t n, int32_t *at)
{
    int64_t gap = 1;
    while (gap < n / 3)
        gap = 3 * gap + 1;
    for (; gap; gap /= 3)
        for (int64_t k = gap; k < n; k++) {
            int32_t c = at[k];
            int64_t number = number_of(l, c), j = k;
            for (; j >= gap && number_of(l, at[j - gap]) > number; j -= gap)
                at[j] = at[j - gap];
            at[j] = c;
        }
}

/* In place: each cell is swapped into its bucket. ends (n_buckets + 1,), zero before: where they end, from 1 on. */
INLINE void into_buckets(const cell_list *l, int64_t n_cells, int64_t n_buckets, int64_t *next, int64_t *ends)
{
    for (int64_t c = 0; c < n_cells; c++)
        ends[(lowest_node(l, c) >> BUCKET) + 1]++;
    for (int64_t b = 0; b < n_buckets; b++)
        ends[b + 1] += ends[b];
    memcpy(next, ends, (size_t)n_buckets * sizeof *next);
    for (int64_t b = 0; b < n_buckets; b++)
        while (next[b] < ends[b + 1]) {
            int64_t to = lowest_node(l, next[b]) >> BUCKET;
            if (to == b)
                next[b]++;
            else
                swap_cells(l, next[b], next[to]++);
        }
}

/* n cells from `first` on, whose lowest nodes are `base` … base + WIDTH - 1. Room for a copy of them. */
INLINE void sort_bucket(const cell_list *l, int64_t first, int64_t n, int32_t base, int32_t *at, int32_t *cells, int64_t *numbers)
{
    int32_t next[WIDTH + 1] = {0};
    size_t size = (size_t)l->npc * sizeof *cells;
    for (int64_t c = first; c < first + n; c++)
        next[lowest_node(l, c) - base + 1]++;
    for (int i = 0; i < WIDTH; i++)
        next[i + 1] += next[i];
    for (int64_t c = first; c < first + n; c++)
        at[next[lowest_node(l, c) - base]++] = (int32_t)c;
    for (int32_t i = 0, begin = 0; i < WIDTH; begin = next[i++])
        sort_by_number(l, next[i] - begin, at + begin);
    for (int64_t k = 0; k < n; k++) {
        memcpy(cells + l->npc * k, l->cells + l->npc * (int64_t)at[k], size);
        numbers[k] = number_of(l, at[k]);
    }
    memcpy(l->cells + l->npc * first, cells, (size_t)n * size);
    for (int64_t k = 0; k < n; k++)
        set_number(l, first + k, numbers[k]);
}

INLINE int sort_cells(cell_list l, int64_t n_cells, int32_t n_nodes)
{
    int64_t n_buckets = (n_nodes >> BUCKET) + 1, most = 0;
    int64_t *next = malloc((size_t)n_buckets * sizeof *next), *ends = calloc((size_t)n_buckets + 1, sizeof *ends);
    int64_t *numbers = NULL;
    int32_t *at = NULL, *cells = NULL;
    if (next && ends) {
        into_buckets(&l, n_cells, n_buckets, next, ends);
        for (int64_t b = 0; b < n_buckets; b++)
            most = ends[b + 1] - ends[b] > most ? ends[b + 1] - ends[b] : most;
        numbers = malloc(((size_t)most + 1) * sizeof *numbers);
        at = malloc(((size_t)most + 1) * sizeof *at), cells = malloc(((size_t)l.npc * most + 1) * sizeof *cells);
    }
    int status = numbers && at && cells ? 0 : -1;
    for (int64_t b = 0; !status && b < n_buckets; b++)
        sort_bucket(&l, ends[b], ends[b + 1] - ends[b], (int32_t)(b << BUCKET), at, cells, numbers);
    free(next), free(ends), free(numbers), free(at), free(cells);
    return status;
}

/* Cells by their lowest node, equal ones by number, in place but for a bucket of them, as a second list of cells would be
 * the largest array of the set-up. All nodes are below n_nodes. -1: no memory. */
int fb_sort_cells(int64_t n_cells, int npc, int32_t *cells, int wide, void *numbers, int32_t n_nodes)
{
    return npc == 4 ? sort_cells((cell_list){4, wide, cells, numbers}, n_cells, n_nodes)
                    : sort_cells((cell_list){8, wide, cells, numbers}, n_cells, n_nodes);
}
