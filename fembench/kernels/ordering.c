/* Reverse Cuthill-McKee order of a range of nodes (Cuthill, McKee 1969; George, Liu 1979 for the root).
 *
 * The graph is a full pattern; only nodes in [low, high) count. Each connected piece is numbered in turn. */
#include <stdlib.h>

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

/* Order of cells by their lowest node, equal ones as they are: a counting sort. */
int fb_cell_order(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t *order)
{
    int32_t *lowest = malloc(((size_t)n_cells + 1) * sizeof *lowest);
    int32_t *next = calloc((size_t)n_nodes + 2, sizeof *next);
    int status = lowest && next ? 0 : -1;
    if (!status) {
        for (int64_t c = 0; c < n_cells; c++) {
            const int32_t *nodes = cells + npc * c;
            int32_t least = nodes[0];
            for (int a = 1; a < npc; a++)
                least = nodes[a] < least ? nodes[a] : least;
            lowest[c] = least;
            next[least + 1]++;
        }
        for (int32_t i = 0; i < n_nodes; i++)
            next[i + 1] += next[i];
        for (int64_t c = 0; c < n_cells; c++)
            order[next[lowest[c]]++] = (int32_t)c;
    }
    free(lowest);
    free(next);
    return status;
}
