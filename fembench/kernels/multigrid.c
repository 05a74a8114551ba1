/* Between the levels of a multigrid: transfers by up to 8 weights per node, and the Galerkin product P^T A P of a
 * symmetric matrix that stores every pair of nodes once (pattern.c). Node i has the parents parent[8 i + k] with
 * the weights weight[8 i + k], each for all three components; a weight of zero means no parent. Weights are in single
 * precision: the transfers are the same all the same, for the Galerkin product has them too. */
#include <stdlib.h>
#include <string.h>

#include "passes.h"

#define PARENTS 8

/* coarse = P^T (share r); share (3 (n - n_interior),): of the sharers of a value, what this one contributes. */
CLONES void fb_restrict(int64_t n, int64_t n_interior, const int32_t *parent, const float *weight,
                        const double *share, const double *r, int64_t n_coarse, double *restrict coarse)
{
    memset(coarse, 0, (size_t)n_coarse * 3 * sizeof *coarse);
    for (int64_t i = 0; i < n; i++, parent += PARENTS, weight += PARENTS) {
        double e[3] = {r[3 * i], r[3 * i + 1], r[3 * i + 2]};
        if (i >= n_interior)
            for (int c = 0; c < 3; c++)
                e[c] *= share[3 * (i - n_interior) + c];
        for (int k = 0; k < PARENTS && weight[k] != 0; k++)
            for (int c = 0; c < 3; c++)
                coarse[3 * (int64_t)parent[k] + c] += weight[k] * e[c];
    }
}

/* fine = P coarse */
CLONES void fb_prolong(int64_t n, const int32_t *parent, const float *weight, const double *coarse,
                       double *restrict fine)
{
    for (int64_t i = 0; i < n; i++, parent += PARENTS, weight += PARENTS) {
        double e[3] = {0, 0, 0};
        for (int k = 0; k < PARENTS && weight[k] != 0; k++)
            for (int c = 0; c < 3; c++)
                e[c] += weight[k] * coarse[3 * (int64_t)parent[k] + c];
        for (int c = 0; c < 3; c++)
            fine[3 * i + c] = e[c];
    }
}

/* ---- connected pieces ------------------------------------------------------------------------------------------
 * A slot 8 i + k is node i as a child of its k-th parent. */

INLINE int32_t top(int32_t *root, int32_t slot)
{
    while (root[slot] != slot)
        slot = root[slot] = root[root[slot]];
    return slot;
}

/* root (8 n,): of slots whose nodes, all of one kind, are connected by entries of the matrix between children of the
 * same parent, the first. least (8 n,): at a root, the least `name` of those nodes. corner: numbers of the parents. */
CLONES void fb_pieces(int64_t n, const int64_t *indptr, const int32_t *rows, const int32_t *columns,
                      const uint8_t *kind, const int64_t *name, const int64_t *corner, const float *weight,
                      int32_t *root, int64_t *least)
{
    for (int64_t slot = 0; slot < PARENTS * n; slot++)
        root[slot] = (int32_t)slot;
    for (int64_t k = 0; k < n; k++)
        for (int64_t e = indptr[k]; e < indptr[k + 1]; e++) {
            int64_t i = PARENTS * (int64_t)rows[k], j = PARENTS * (int64_t)columns[e];
            if (kind[rows[k]] != kind[columns[e]] || i == j)
                continue;
            for (int a = 0; a < PARENTS && weight[i + a] != 0; a++)
                for (int b = 0; b < PARENTS && weight[j + b] != 0; b++)
                    if (corner[i + a] == corner[j + b]) {
                        int32_t s = top(root, (int32_t)(i + a)), t = top(root, (int32_t)(j + b));
                        root[s > t ? s : t] = s > t ? t : s;
                    }
        }
    for (int64_t slot = 0; slot < PARENTS * n; slot++) {
        int32_t s = root[slot] = top(root, (int32_t)slot);
        if (s == slot || name[slot / PARENTS] < least[s]) /* a root is the first of its slots */
            least[s] = name[slot / PARENTS];
    }
}

/* ---- the Galerkin product --------------------------------------------------------------------------------------
 * Blocks are found by (stored row, column) in a table with open addressing; each row has an equal span of its places,
 * so that what one fine row needs lies near each other, and blocks of longer rows lie in the next spans. */

typedef struct {
    int64_t key;   /* stored row * n_coarse + column, or -1 */
    int64_t block; /* number of the block */
} place;

struct fb_coarse {
    int64_t n, n_interior; /* coarse nodes */
    int64_t size, used;    /* places, a power of two; blocks */
    int64_t span;          /* places of a row */
    int64_t room;          /* for blocks */
    place *places;
    double *blocks;    /* (room, 9) in the order in which they were found */
    int64_t *keys;     /* (room,) */
};

INLINE int64_t stored_row(const fb_coarse *m, int64_t node)
{
    return node >= m->n_interior ? node - m->n_interior : node + m->n - m->n_interior;
}

INLINE int64_t node_of(const fb_coarse *m, int64_t row)
{
    int64_t split = m->n - m->n_interior;
    return row < split ? m->n_interior + row : row - split;
}

/* Whether the block of a pair is kept in row a: every row keeps half of its blocks, however the nodes are numbered. */
INLINE int keeps(int64_t a, int64_t b) { return a == b || (a < b) == !((a ^ b) & 1); }

INLINE place *find(const fb_coarse *m, int64_t row, int64_t column)
{
    int64_t key = row * m->n + column, mask = m->size - 1;
    uint64_t scattered = (uint64_t)column * 0x9E3779B97F4A7C15u >> 32; /* evenly below 2^32 */
    int64_t at = row * m->span + (int64_t)(scattered * (uint64_t)m->span >> 32);
    while (m->places[at].key >= 0 && m->places[at].key != key)
        at = (at + 1) & mask;
    return m->places + at;
}

static int grow_places(fb_coarse *m, int64_t size)
{
    place *old = m->places;
    int64_t old_size = m->size;
    place *fresh = malloc((size_t)size * sizeof *fresh);
    if (!fresh)
        return -1;
    for (int64_t k = 0; k < size; k++)
        fresh[k].key = -1;
    m->places = fresh;
    m->size = size;
    m->span = m->n ? size / m->n : size;
    for (int64_t k = 0; k < old_size; k++)
        if (old[k].key >= 0)
            *find(m, old[k].key / m->n, old[k].key % m->n) = old[k];
    free(old);
    return 0;
}

static int grow_blocks(fb_coarse *m)
{
    int64_t room = 2 * m->room;
    double *blocks = realloc(m->blocks, (size_t)room * 9 * sizeof *blocks);
    if (blocks)
        m->blocks = blocks;
    int64_t *keys = realloc(m->keys, (size_t)room * sizeof *keys);
    if (keys)
        m->keys = keys;
    if (!blocks || !keys)
        return -1;
    m->room = room;
    return 0;
}

/* The block of a pair, new and zero if nobody has asked for it before; NULL without memory. */
INLINE double *block_of(fb_coarse *m, int64_t row, int64_t column)
{
    place *p = find(m, row, column);
    if (p->key < 0) {
        if (10 * m->used >= 6 * m->size) {
            if (grow_places(m, 2 * m->size))
                return NULL;
            p = find(m, row, column);
        }
        if (m->used == m->room && grow_blocks(m))
            return NULL;
        p->key = m->keys[m->used] = row * m->n + column;
        p->block = m->used++;
        memset(m->blocks + 9 * p->block, 0, 9 * sizeof(double));
    }
    return m->blocks + 9 * p->block;
}

/* A_c gets w X in row I and column J, and its transpose in row J and column I; of both, one is kept. */
INLINE int add_pair(fb_coarse *m, int64_t I, int64_t J, double w, const double *X)
{
    int64_t a = stored_row(m, I), b = stored_row(m, J);
    int here = keeps(a, b);
    double *out = here ? block_of(m, a, J) : block_of(m, b, I);
    if (!out)
        return -1;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            out[3 * r + c] += w * (a == b ? X[3 * r + c] + X[3 * c + r] : here ? X[3 * r + c] : X[3 * c + r]);
    return 0;
}

/* t: sum over the row's columns j of weight * a_ij by parent J of j, its own block halved and without the
 * diagonal of restrained dofs; returns how many J there are, in `found`. */
INLINE int64_t collect(int64_t i, int64_t length, const int32_t *columns, const double *values, const uint8_t *fixed,
                       const int32_t *parent, const float *weight, int64_t tag, int64_t *seen, int32_t *slot,
                       int32_t *found, double *t)
{
    int64_t n = 0;
    for (int64_t e = 0; e < length; e++) {
        int64_t j = columns[e];
        double a[9];
        memcpy(a, values + 9 * e, sizeof a);
        if (j == i)
            for (int c = 0; c < 3; c++) {
                for (int r = 0; r < 3; r++)
                    a[3 * r + c] *= 0.5;
                if (fixed && fixed[3 * i + c])
                    a[4 * c] = 0;
            }
        for (int k = 0; k < PARENTS && weight[PARENTS * j + k] != 0; k++) {
            int32_t J = parent[PARENTS * j + k];
            double w = weight[PARENTS * j + k];
            if (seen[J] != tag) {
                seen[J] = tag;
                slot[J] = (int32_t)n;
                found[n] = J;
                memset(t + 9 * n, 0, 9 * sizeof *t);
                n++;
            }
            double *out = t + 9 * slot[J];
            for (int c = 0; c < 9; c++)
                out[c] += w * a[c];
        }
    }
    return n;
}

INLINE int product(fb_coarse *m, int64_t n, int64_t longest, const int64_t *indptr, const int32_t *rows,
                   const int32_t *columns, const double *values, const uint8_t *fixed, const int32_t *parent,
                   const float *weight)
{
    int64_t most = PARENTS * longest < m->n ? PARENTS * longest : m->n;
    int64_t *seen = calloc((size_t)m->n + 1, sizeof *seen);
    int32_t *slot = malloc(((size_t)m->n + 1) * sizeof *slot), *found = malloc(((size_t)most + 1) * sizeof *found);
    double *t = malloc(((size_t)most + 1) * 9 * sizeof *t);
    int status = seen && slot && found && t ? 0 : -1;
    for (int64_t k = 0; k < n && !status; k++) {
        int64_t i = rows[k], b = indptr[k];
        int64_t n_found = collect(i, indptr[k + 1] - b, columns + b, values + 9 * b, fixed, parent, weight, k + 1,
                                  seen, slot, found, t);
        for (int p = 0; p < PARENTS && weight[PARENTS * i + p] != 0; p++)
            for (int64_t f = 0; f < n_found; f++)
                status |= add_pair(m, parent[PARENTS * i + p], found[f], weight[PARENTS * i + p], t + 9 * f);
    }
    free(seen), free(slot), free(found), free(t);
    return status;
}

void fb_coarse_free(fb_coarse *m)
{
    if (m)
        free(m->places), free(m->blocks), free(m->keys);
    free(m);
}

/* P^T A P, for fb_coarse_take; NULL without memory. longest: blocks of the longest row. *n_blocks: of the result,
 * in which every coarse node has a block of its own. */
CLONES fb_coarse *fb_galerkin(int64_t n, int64_t longest, const int64_t *indptr, const int32_t *rows,
                              const int32_t *columns, const double *values, const uint8_t *fixed,
                              const int32_t *parent, const float *weight, int64_t n_coarse,
                              int64_t n_coarse_interior, int64_t *n_blocks)
{
    fb_coarse *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->n = n_coarse;
    m->n_interior = n_coarse_interior;
    m->room = 16 * n_coarse + 16;
    m->blocks = malloc((size_t)m->room * 9 * sizeof *m->blocks);
    m->keys = malloc((size_t)m->room * sizeof *m->keys);
    int64_t size = 64;
    while (size < 32 * n_coarse)
        size *= 2;
    int status = !m->blocks || !m->keys || grow_places(m, size);
    for (int64_t I = 0; I < n_coarse && !status; I++)
        status = !block_of(m, stored_row(m, I), I);
    if (status || product(m, n, longest, indptr, rows, columns, values, fixed, parent, weight)) {
        fb_coarse_free(m);
        return NULL;
    }
    *n_blocks = m->used;
    return m;
}

/* The result as pattern.c stores it, every pair in its first row: own node first, then ascending. next (n_coarse,) is
 * scratch. */
void fb_coarse_take(const fb_coarse *m, int64_t *indptr, int32_t *rows, int32_t *columns, double *values,
                    int64_t *next)
{
    int64_t n = m->n;
    memset(indptr, 0, ((size_t)n + 1) * sizeof *indptr);
    for (int64_t b = 0; b < m->used; b++) {
        int64_t row = m->keys[b] / n, other = stored_row(m, m->keys[b] % n);
        indptr[(row < other ? row : other) + 1]++;
    }
    for (int64_t k = 0; k < n; k++) {
        rows[k] = (int32_t)node_of(m, k);
        indptr[k + 1] += indptr[k];
        next[k] = indptr[k];
    }
    for (int64_t b = 0; b < m->used; b++) { /* insertion: a row has a few dozen columns */
        int64_t kept = m->keys[b] / n, other = stored_row(m, m->keys[b] % n);
        int64_t row = kept < other ? kept : other, at = next[row]++;
        int32_t column = rows[kept < other ? other : kept];
        const double *block = m->blocks + 9 * b;
        for (; at > indptr[row] && rows[row] != columns[at - 1] && (columns[at - 1] > column || column == rows[row]); at--) {
            columns[at] = columns[at - 1];
            memcpy(values + 9 * at, values + 9 * (at - 1), 9 * sizeof *values);
        }
        columns[at] = column;
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                values[9 * at + 3 * r + c] = kept <= other ? block[3 * r + c] : block[3 * c + r];
    }
}
