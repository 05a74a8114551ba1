/* The symmetric product: every pair of nodes is stored once, and read once for both of its halves.
 *
 * Rows are stored interface first, see pattern.c. Row i adds its blocks times d to q_i and their
 * transposes times d_i to the q of its columns. A window of rows is final when its last row is done, for
 * every other contribution comes from rows before it: then its part of d . q is taken, while q is in
 * the first-level cache. A window of q is zeroed just ahead of its first use, for the same reason.
 *
 * Of several threads, each has rows and columns of its own. It adds to its columns alone: the blocks in them of rows
 * of others, which it reads as well, and its rows. So every sum has the order of one thread, whatever their number.
 *
 * Stored numbers take `size` bytes, 8 or 4: a constant in each compiled form. All is computed in double precision. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "sums.h"

/* Of a matrix that no near cache holds, values are called into the second-level cache (locality 2): the
 * first level has few places for misses under way, and d and q need them. */
#define AHEAD 12288, 2 /* bytes */

typedef struct {
    const char *a;         /* next block */
    const int32_t *column; /* its column */
} cursor;

INLINE v4 block_row(int size, const char *a, int r)
{
    a += 3 * r * size;
    return size == 8 ? LOAD4_ONCE(a) : __builtin_convertvector(*(const volatile f4 *)a, v4);
}

INLINE void add_transpose(v4 r0, v4 r1, v4 r2, double x0, double x1, double x2, double *q)
{
    v4 t = r0 * x0;
    t += r1 * x1;
    t += r2 * x2;
    *(v2 *)q += (v2){t[0], t[1]}; /* 2 + 1 entries: a store of 4 would block the next load */
    q[2] += t[2];
}

INLINE int within(int32_t column, int64_t low, int64_t high)
{
    return (uint32_t)column - (uint32_t)low < (uint32_t)(high - low);
}

/* Rows of the nodes [i, last); length: blocks of each row, its own node's first. At the border of a share, some
 * columns are not its own. */
INLINE cursor sym_rows(int far, int size, int border, const fb_share *s, cursor at, int64_t i, int64_t last,
                       const uint16_t *length, const double *d, double *q)
{
    const char *a = at.a;
    const int32_t *column = at.column;
    for (; i < last; i++, length++) {
        const double *x = d + 3 * i;
        double x0 = x[0], x1 = x[1], x2 = x[2];
        v4 xi = {x0, x1, x2, 0};
        v4 s0 = block_row(size, a, 0) * xi, s1 = block_row(size, a, 1) * xi, s2 = block_row(size, a, 2) * xi;
        const int32_t *row_end = column + *length;
        if (far)
            PREFETCH(a, AHEAD);
        for (a += 9 * size, column++; column < row_end; a += 9 * size, column++) {
            if (far)
                PREFETCH(a, AHEAD);
            size_t j = 3 * (size_t)(uint32_t)*column;
            v4 r0 = block_row(size, a, 0), r1 = block_row(size, a, 1), r2 = block_row(size, a, 2), xj = LOAD4(d + j);
            s0 += r0 * xj;
            s1 += r1 * xj;
            s2 += r2 * xj;
            if (!border || within(*column, s->first, s->last) || within(*column, s->low, s->high))
                add_transpose(r0, r1, r2, x0, x1, x2, q + j);
        }
        v2 y01;
        double y2;
        SUMS(y01, y2, s0, s1, s2);
        *(v2 *)(q + 3 * i) += y01;
        q[3 * i + 2] += y2;
    }
    return (cursor){a, column};
}

/* The transposes of blocks in rows of other threads. */
INLINE void foreign_blocks(int size, const fb_sym *m, const fb_blocks *b, const fb_blocks *end, const double *d,
                           double *q)
{
    for (; b < end; b++) {
        const char *a = (const char *)m->values + 9 * size * b->block;
        const int32_t *column = m->columns + b->block, *row_end = column + b->count;
        const double *x = d + 3 * (size_t)(uint32_t)b->node;
        for (; column < row_end; a += 9 * size, column++)
            add_transpose(block_row(size, a, 0), block_row(size, a, 1), block_row(size, a, 2), x[0], x[1], x[2],
                          q + 3 * (size_t)(uint32_t)*column);
    }
}

INLINE double window_dot(int64_t begin, int64_t end, const double *d, const double *q)
{
    v4 part = {0};
    double tail = 0;
    int64_t k = 3 * begin;
    for (; k + 4 <= 3 * end; k += 4)
        part += LOAD4(d + k) * LOAD4(q + k);
    for (; k < 3 * end; k++)
        tail += d[k] * q[k];
    return LANES4(part) + tail;
}

static void zero(double *q, int64_t begin, int64_t end)
{
    memset(q + 3 * begin, 0, (size_t)(end - begin) * 3 * sizeof *q);
}

/* Of the windows [from, to) by first use, those in the columns [low, high). */
static void zero_windows(const fb_sym *m, int64_t from, int64_t to, int64_t low, int64_t high, double *q)
{
    for (int64_t k = from; k < to; k++) {
        int64_t first = (int64_t)m->order[k] * WINDOW;
        if (low <= first && first < high)
            zero(q, first, first + WINDOW < m->n_interior ? first + WINDOW : m->n_interior);
    }
}

/* Before a stored row. */
INLINE cursor row_begin(int size, const fb_sym *m, int64_t row)
{
    return (cursor){(const char *)m->values + 9 * size * m->indptr[row], m->columns + m->indptr[row]};
}

INLINE double interface_rows(int far, int size, const fb_sym *m, const fb_share *s, const double *d, double *q,
                             double *parts)
{
    total t = {0, 0, parts};
    cursor at = row_begin(size, m, s->first - m->n_interior);
    zero(q, s->first, s->last);
    zero_windows(m, 0, m->n_touched, s->low, s->high, q);
    foreign_blocks(size, m, s->foreign, s->foreign + s->n_before, d, q);
    for (int64_t i = s->first; i < s->last; i += WINDOW) {
        int64_t last = i + WINDOW < s->last ? i + WINDOW : s->last;
        const uint16_t *length = m->length + (i - m->n_interior);
        at = last <= s->border ? sym_rows(far, size, 0, s, at, i, last, length, d, q)
                               : sym_rows(far, size, 1, s, at, i, last, length, d, q);
        add(&t, window_dot(i, last, d, q));
    }
    foreign_blocks(size, m, s->foreign + s->n_before, s->foreign + s->n_foreign, d, q);
    return result(&t);
}

INLINE double interior_rows(int far, int size, const fb_sym *m, const fb_share *s, const double *d, double *q,
                            double *parts)
{
    total t = {0, 0, parts};
    int64_t split = m->n - m->n_interior, w = s->first / WINDOW, ready = w ? m->ready[w - 1] : m->n_touched;
    const uint16_t *length = m->length + split;
    cursor at = row_begin(size, m, split + s->first);
    zero_windows(m, m->n_touched, ready, s->first, s->last, q);
    foreign_blocks(size, m, s->foreign, s->foreign + s->n_foreign, d, q);
    for (int64_t i = s->first; i < s->last; w++, i += WINDOW) {
        int64_t last = i + WINDOW < s->last ? i + WINDOW : s->last;
        zero_windows(m, ready, m->ready[w], s->first, s->last, q);
        ready = m->ready[w];
        at = last <= s->border ? sym_rows(far, size, 0, s, at, i, last, length + i, d, q)
                               : sym_rows(far, size, 1, s, at, i, last, length + i, d, q);
        add(&t, window_dot(i, last, d, q));
    }
    return result(&t);
}

CLONES double fb_sym_interface_share(const fb_sym *m, const fb_share *s, const double *d, double *q, double *parts)
{
    if (m->single)
        return m->far ? interface_rows(1, 4, m, s, d, q, parts) : interface_rows(0, 4, m, s, d, q, parts);
    return m->far ? interface_rows(1, 8, m, s, d, q, parts) : interface_rows(0, 8, m, s, d, q, parts);
}

CLONES double fb_sym_interior_share(const fb_sym *m, const fb_share *s, const double *d, double *q, double *parts)
{
    if (m->single)
        return m->far ? interior_rows(1, 4, m, s, d, q, parts) : interior_rows(0, 4, m, s, d, q, parts);
    return m->far ? interior_rows(1, 8, m, s, d, q, parts) : interior_rows(0, 8, m, s, d, q, parts);
}

typedef struct {
    const fb_sym *m;
    const double *d;
    double *q;
} product;

static void interface_piece(const void *whole, int64_t k, int64_t n)
{
    const product *p = whole;
    const fb_share *s = p->m->team->interface + k;
    (void)n;
    fb_sym_interface_share(p->m, s, p->d, p->q, p->m->team->parts + (s->first - p->m->n_interior) / WINDOW);
}

static void interior_piece(const void *whole, int64_t k, int64_t n)
{
    const product *p = whole;
    const fb_share *s = p->m->team->interior + k;
    (void)n;
    fb_sym_interior_share(p->m, s, p->d, p->q, p->m->team->parts + s->first / WINDOW);
}

static int64_t windows(int64_t n)
{
    return (n + WINDOW - 1) / WINDOW;
}

double fb_sym_interface(const fb_sym *m, const double *d, double *q)
{
    if (!m->team || m->n == m->n_interior) {
        fb_share all = {m->n_interior, m->n, m->n, 0, m->n_interior, 0, 0, NULL};
        return fb_sym_interface_share(m, &all, d, q, NULL);
    }
    product p = {m, d, q};
    fb_team(m->team->n_threads, interface_piece, &p);
    return sum_of(windows(m->n - m->n_interior), m->team->parts);
}

double fb_sym_interior(const fb_sym *m, const double *d, double *q)
{
    if (!m->team) {
        fb_share all = {0, m->n_interior, m->n_interior, 0, 0, 0, 0, NULL};
        return fb_sym_interior_share(m, &all, d, q, NULL);
    }
    product p = {m, d, q};
    fb_team(m->team->n_threads, interior_piece, &p);
    return sum_of(windows(m->n_interior), m->team->parts);
}

/* Note the windows of [begin, end) that nobody has used before; returns how many are noted now. */
static int64_t note(int64_t begin, int64_t end, int64_t n_interior, const int32_t *columns, uint8_t *used,
                    int32_t *order, int64_t noted)
{
    for (int64_t b = begin; b < end; b++)
        if (columns[b] < n_interior && !used[columns[b] / WINDOW]) {
            used[columns[b] / WINDOW] = 1;
            order[noted++] = columns[b] / WINDOW;
        }
    return noted;
}

/* Fill length (n,), order and ready (windows,); returns how many windows interface rows use, or -1. */
int64_t fb_sym_plan(int64_t n, int64_t n_interior, const int64_t *indptr, const int32_t *columns,
                    uint16_t *length, int32_t *order, int32_t *ready)
{
    int64_t n_windows = windows(n_interior), split = n - n_interior;
    uint8_t *used = calloc((size_t)n_windows + 1, 1);
    for (int64_t k = 0; k < n; k++) {
        length[k] = (uint16_t)(indptr[k + 1] - indptr[k]);
        if (indptr[k + 1] - indptr[k] > UINT16_MAX || !used) {
            free(used);
            return -1;
        }
    }
    int64_t n_touched = note(0, indptr[split], n_interior, columns, used, order, 0), noted = n_touched;
    for (int64_t w = 0; w < n_windows; w++) {
        int64_t last = (w + 1) * WINDOW < n_interior ? (w + 1) * WINDOW : n_interior;
        noted = note(indptr[split + w * WINDOW], indptr[split + last], n_interior, columns, used, order, noted);
        ready[w] = (int32_t)noted;
    }
    free(used);
    return n_touched;
}

/* Whether the columns of every row ascend, its own node's apart. */
static int ascend(const fb_sym *m)
{
    int fit = 1;
    for (int64_t row = 0; row < m->n; row++)
        for (int64_t b = m->indptr[row] + 2; b < m->indptr[row + 1]; b++)
            fit &= m->columns[b] > m->columns[b - 1];
    return fit;
}

/* A block of a row that is not the share's own, after those before; -1: no memory. */
static int take(fb_share *s, int64_t block, int64_t node)
{
    fb_blocks *end = s->foreign + s->n_foreign;
    if (s->n_foreign && end[-1].node == node && end[-1].block + end[-1].count == block) {
        end[-1].count++;
        return 0;
    }
    if (!(s->n_foreign & (s->n_foreign - 1))) { /* room for twice as many */
        fb_blocks *more = realloc(s->foreign, (size_t)(s->n_foreign ? 2 * s->n_foreign : 1) * sizeof *more);
        if (!more)
            return -1;
        s->foreign = more;
    }
    s->foreign[s->n_foreign++] = (fb_blocks){block, 1, (int32_t)node};
    if (node < s->first)
        s->n_before = s->n_foreign;
    return 0;
}

/* Give the blocks of a row of share k, its own node's apart, to the shares that have their columns. */
static int hand_out(const fb_sym *m, fb_share *shares, int64_t k, int64_t row, int64_t node)
{
    int64_t inner = 0, outer = k;
    int failed = 0;
    for (int64_t b = m->indptr[row] + 1; b < m->indptr[row + 1]; b++) {
        int64_t column = m->columns[b];
        if (column < m->n_interior && node >= m->n_interior) {
            while (column >= shares[inner].high)
                inner++;
            failed |= inner != k && take(shares + inner, b, node);
        } else {
            while (column >= shares[outer].last)
                outer++;
            failed |= outer != k && take(shares + outer, b, node);
        }
    }
    return failed;
}

/* Give the shares what they need of rows that are not their own; inside: they are those of the interior rows. */
static int divide_rows(const fb_sym *m, int inside, fb_share *shares, int n)
{
    int64_t before = inside ? m->n_interior - m->n : m->n_interior; /* node of a stored row, less the row */
    int failed = 0;
    for (int k = 0; k < n; k++) {
        fb_share *s = shares + k;
        s->border = inside ? s->last : s->first;
        for (int64_t i = s->first; i < s->last; i++) {
            int64_t row = i - before;
            if (inside && m->columns[m->indptr[row + 1] - 1] < s->last)
                continue; /* the last column is the highest: all are its own */
            s->border = i < s->border ? i : s->border;
            failed |= hand_out(m, shares, k, row, i);
        }
    }
    return !failed;
}

/* Interior columns by threads: as many blocks of interface rows in those of each. */
static int divide_columns(const fb_sym *m, fb_share *shares, int n)
{
    int64_t n_windows = windows(m->n_interior), *begins = calloc((size_t)n_windows + 1, sizeof *begins);
    if (!begins)
        return 0;
    for (int64_t b = 0; b < m->indptr[m->n - m->n_interior]; b++)
        if (m->columns[b] < m->n_interior)
            begins[m->columns[b] / WINDOW + 1]++;
    for (int64_t w = 0; w < n_windows; w++)
        begins[w + 1] += begins[w];
    for (int k = 0; k < n; k++) {
        int64_t high = fb_cut(begins, 0, n_windows, 1, k + 1, n) * WINDOW;
        shares[k].low = fb_cut(begins, 0, n_windows, 1, k, n) * WINDOW;
        shares[k].high = high < m->n_interior ? high : m->n_interior;
    }
    free(begins);
    return 1;
}

void fb_sym_free(fb_sym_team *team)
{
    if (!team)
        return;
    for (int k = 0; k < team->n_threads; k++) {
        if (team->interface)
            free(team->interface[k].foreign);
        if (team->interior)
            free(team->interior[k].foreign);
    }
    free(team->interface);
    free(team->interior);
    free(team->parts);
    free(team);
}

/* Rows and columns by threads, with as many blocks for each; -1: no memory; -2: columns that do not ascend. */
int fb_sym_divide(fb_sym *m, int n)
{
    int64_t split = m->n - m->n_interior;
    if (!ascend(m))
        return -2;
    fb_sym_team *team = calloc(1, sizeof *team);
    m->team = team;
    if (!team)
        return -1;
    team->n_threads = n;
    team->interface = calloc((size_t)n, sizeof *team->interface);
    team->interior = calloc((size_t)n, sizeof *team->interior);
    team->parts = malloc(((size_t)windows(m->n) + 1) * sizeof *team->parts);
    if (!team->interface || !team->interior || !team->parts)
        return -1;
    for (int k = 0; k < n; k++) {
        fb_share *outer = team->interface + k, *inner = team->interior + k;
        outer->first = m->n_interior + fb_cut(m->indptr, 0, split, WINDOW, k, n);
        outer->last = m->n_interior + fb_cut(m->indptr, 0, split, WINDOW, k + 1, n);
        inner->first = fb_cut(m->indptr, split, m->n, WINDOW, k, n) - split;
        inner->last = fb_cut(m->indptr, split, m->n, WINDOW, k + 1, n) - split;
    }
    int done = divide_columns(m, team->interface, n) && divide_rows(m, 0, team->interface, n);
    return done && divide_rows(m, 1, team->interior, n) ? 0 : -1;
}
