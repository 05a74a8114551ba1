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

typedef struct {
    int npc, wide;
    int32_t *cells;
    void *numbers; /* int64_t if wide, else int32_t */
} cell_list;

static int32_t lowest_node(const cell_list *l, int64_t c)
{
    const int32_t *nodes = l->cells + l->npc * c;
    int32_t least = nodes[0];
    for (int a = 1; a < l->npc; a++)
        least = nodes[a] < least ? nodes[a] : least;
    return least;
}

static int64_t number_of(const cell_list *l, int64_t c)
{
    return l->wide ? ((int64_t *)l->numbers)[c] : ((int32_t *)l->numbers)[c];
}

static void set_number(const cell_list *l, int64_t c, int64_t number)
{
    if (l->wide)
        ((int64_t *)l->numbers)[c] = number;
    else
        ((int32_t *)l->numbers)[c] = (int32_t)number;
}

static void swap_cells(const cell_list *l, int64_t c, int64_t d)
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

/* Shell sort of [begin, end): a node has few cells, but in some mesh it may have them all. */
static void sort_by_number(const cell_list *l, int64_t begin, int64_t end)
{
    int64_t gap = 1;
    while (gap < (end - begin) / 3)
        gap = 3 * gap + 1;
    for (; gap; gap /= 3)
        for (int64_t k = begin + gap; k < end; k++)
            for (int64_t j = k; j >= begin + gap && number_of(l, j - gap) > number_of(l, j); j -= gap)
                swap_cells(l, j - gap, j);
}

/* Cells by their lowest node, equal ones by number, in place: a counting sort that swaps, as a second list of cells
 * would be the largest array of the set-up. room (2, n_nodes + 1). */
void fb_sort_cells(int64_t n_cells, int npc, int32_t *cells, int wide, void *numbers, int32_t n_nodes, int32_t *room)
{
    cell_list l = {npc, wide, cells, numbers};
    int32_t *begin = room, *next = room + n_nodes + 1;
    memset(begin, 0, ((size_t)n_nodes + 1) * sizeof *begin);
    for (int64_t c = 0; c < n_cells; c++)
        begin[lowest_node(&l, c) + 1]++;
    for (int32_t i = 0; i < n_nodes; i++)
        begin[i + 1] += begin[i];
    memcpy(next, begin, ((size_t)n_nodes + 1) * sizeof *next);
    for (int32_t i = 0; i < n_nodes; i++) {
        while (next[i] < begin[i + 1]) { /* once round the node's cells, so that their places are fetched together */
            for (int32_t c = next[i]; c < begin[i + 1]; c++) {
                int64_t place = next[lowest_node(&l, c)];
                __builtin_prefetch(cells + npc * place, 1);
                __builtin_prefetch((char *)numbers + (wide ? 8 : 4) * place, 1);
            }
            for (int32_t c = next[i]; c < begin[i + 1]; c++)
                swap_cells(&l, c, next[lowest_node(&l, c)]++);
        }
        sort_by_number(&l, begin[i], begin[i + 1]);
    }
}
