# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Binding of the C kernels. What runs once per iteration is a bound kernel: an object made from its
arrays, which keeps them and their addresses; a call then passes scalars only and costs ~50 ns."""

import sys

import numpy as np

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec

cdef extern from "kernels.h" nogil:
    void *fb_allocate(size_t n_bytes)
    void fb_release(void *block, size_t n_bytes)
    const char *fb_isa()
    const char *fb_operation_name(int which)
    double fb_operation(int which, int64_t turns, double x, double y)
    int FB_MOST_THREADS
    int FB_DOT, FB_DOT_RZ, FB_STEP, FB_STEP_JACOBI, FB_STEP_BLOCK, FB_DIRECTION, FB_DIRECTION_JACOBI
    int FB_DIRECTION_BLOCK, FB_SCALE, FB_SCALE_BLOCK, FB_CHEBYSHEV_START, FB_CHEBYSHEV_BLOCK_START, FB_CHEBYSHEV
    int FB_CHEBYSHEV_BLOCK, FB_READ, FB_TRIAD
    ctypedef struct fb_pass:
        int kind, n_threads
        int64_t n, n_weighted, inverse_bytes
        double alpha, beta
        double *x
        double *r
        double *d
        double *q
        double *z
        const double *w
        const void *inverse
        double *parts[2]
        double *sums
    int fb_has_threads()
    void fb_use_threads(int n)
    int fb_threads()
    double fb_busy(int thread)
    int64_t fb_pass_chunks(const fb_pass *p)
    void fb_run(const fb_pass *p)
    double fb_dot(int64_t n, int64_t n_weighted, const double *a, const double *b, const double *w, double *parts)
    void fb_axpy(int64_t n, double alpha, const double *x, double *y)
    void fb_moments(int64_t n, int64_t n_weighted, const double *x, const double *centre, const double *r,
                    const double *w, double *out)
    void fb_small_product(int64_t m, int64_t n, const double *A, const double *v, double *out)
    void fb_jacobi_and_motion(int64_t n, int64_t n_interior, const double *x, const double *origin,
                              const int32_t *kind, const double *motion, const double *inverse,
                              const double *r, double *z)
    ctypedef struct fb_coarse:
        pass
    void fb_restrict(int64_t n, int64_t n_interior, const int32_t *parent, const float *weight,
                     const double *share, const double *r, int64_t n_coarse, double *coarse)
    void fb_prolong(int64_t n, const int32_t *parent, const float *weight, const double *coarse, double *fine)
    void fb_pieces(int64_t n, const int64_t *indptr, const int32_t *rows, const int32_t *columns, const uint8_t *kind,
                   const int64_t *name, const int64_t *corner, const float *weight, int32_t *root, int64_t *least)
    fb_coarse *fb_galerkin(int64_t n, int64_t longest, const int64_t *indptr, const int32_t *rows,
                           const int32_t *columns, const double *values, const uint8_t *fixed,
                           const int32_t *parent, const float *weight, int64_t n_coarse,
                           int64_t n_coarse_interior, int64_t *n_blocks)
    void fb_coarse_take(const fb_coarse *m, int64_t *indptr, int32_t *rows, int32_t *columns, double *values,
                        int64_t *next)
    void fb_coarse_free(fb_coarse *m)
    void fb_pack(int64_t n, const int32_t *index, int width, const double *v, double *buffer)
    void fb_add(int64_t n, const int32_t *index, int width, const double *buffer, double *v)
    void fb_gather(int64_t n, double *const *at, double *buffer)
    void fb_sum_groups(int64_t n, const int64_t *ends, double *const *at)
    void fb_incidence(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t *ascending,
                      int64_t *start, int32_t *at)
    void fb_span(int64_t n, const int32_t *a, int32_t *low, int32_t *high)
    int fb_rows_fit(int64_t n_rows, int64_t shortest, int64_t n_entries, const int64_t *begins)
    int fb_pattern(int npc, const int32_t *ascending, int32_t n_nodes, int32_t n_interior, int32_t n_active, int upper,
                   const int64_t *start, const int32_t *at, int64_t *indptr, int32_t *rows, int32_t **columns,
                   int64_t *n_bytes)
    int64_t fb_count_pairs(int64_t n_cells, int npc, const int32_t *cells, int32_t n_nodes, int32_t n_active)
    int fb_rcm(int32_t n_nodes, const int64_t *indptr, const int32_t *columns, int32_t low, int32_t high,
               int32_t *position)
    void fb_hold(int64_t n, const int32_t *nodes, int32_t low, uint8_t *held)
    void fb_renumber(int64_t n, int32_t *nodes, int32_t low, const int32_t *position)
    int fb_sort_cells(int64_t n_cells, int npc, int32_t *cells, int wide, void *numbers, int32_t n_nodes)
    int64_t fb_add_weights(int64_t n_cells, const double *x, const int32_t *cells, const double *density, double *f)
    double fb_lowest_quality(int64_t n_cells, int npc, const double *x, const int32_t *cells)
    int64_t fb_cells_meeting(int64_t n_cells, int npc, const int32_t *cells, const uint8_t *marked, int least,
                             int32_t *found)
    ctypedef struct fb_lame:
        const double *lam
        const double *mu
        int64_t step
    void fb_stiffness(int npc, int64_t n_cells, const double *x, const int32_t *cells, fb_lame lame, double *ke)
    int fb_assemble(int npc, int64_t n_cells, int64_t n_nodes, const double *x, const int32_t *cells, fb_lame lame,
                    int32_t n_interior, int32_t n_active, int upper, const uint8_t *fixed,
                    const int32_t *ascending, const int64_t *start, const int32_t *at, const int64_t *indptr,
                    const int32_t *rows, const int32_t *columns, double *values)
    int FB_NEAR
    int FB_BSR, FB_CSR, FB_ALL
    ctypedef struct fb_rows:
        int kind, far
        int64_t begin, end, n
        const int64_t *indptr
        const int32_t *columns
        const double *values
        const double *d
        double *q
        double *parts
    double fb_rows_in_pieces(int n_threads, const fb_rows *p)
    int FB_SYM_WINDOW
    ctypedef struct fb_sym_team:
        pass
    ctypedef struct fb_sym:
        int64_t n, n_interior, n_touched
        int far, single
        const int64_t *indptr
        const int32_t *columns
        const void *values
        const uint16_t *length
        const int32_t *order
        const int32_t *ready
        fb_sym_team *team
    int64_t fb_sym_plan(int64_t n, int64_t n_interior, const int64_t *indptr, const int32_t *columns,
                        uint16_t *length, int32_t *order, int32_t *ready)
    int fb_sym_divide(fb_sym *m, int n_threads)
    void fb_sym_free(fb_sym_team *team)
    double fb_sym_interface(const fb_sym *m, const double *d, double *q)
    double fb_sym_interior(const fb_sym *m, const double *d, double *q)
    void fb_ebe(int npc, int64_t begin, int64_t plain, int64_t end, const void *x, const int32_t *cells, fb_lame lame,
                int32_t n_active, const double *d, double *q)

NAME = "compiled"
ISA = fb_isa().decode()
cdef str NATIVE = "@=<" if sys.byteorder == "little" else "@=>!"  # byte orders that a buffer may state


# ---- arrays to addresses --------------------------------------------------------------------------

cdef void *address(object array, str name, str kinds, Py_ssize_t itemsize, Py_ssize_t size, bint writable) except? NULL:
    """Where a C-contiguous array of `size` items (-1: any) begins; the caller keeps the array."""
    cdef Py_buffer view
    cdef void *p
    try:
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (PyBUF_WRITABLE if writable else 0))
    except (BufferError, ValueError) as error:
        raise ValueError(f"{name}: expected a C-contiguous{' writable' if writable else ''} array: {error}") from None
    cdef Py_ssize_t got = view.len // itemsize
    cdef Py_ssize_t found = view.itemsize
    cdef str kind = (<bytes>view.format).decode()
    p = view.buf
    PyBuffer_Release(&view)
    if found != itemsize or len(kind) > 2 or kind.lstrip(NATIVE) not in tuple(kinds):
        raise TypeError(
            f"{name}: expected items of kind {kinds[0]} with {itemsize} bytes, got kind {kind} with {found}"
        )
    if size >= 0 and got != size:
        raise ValueError(f"{name}: expected {size} items, got {got}")
    return p


cdef double *doubles(object array, str name, Py_ssize_t size=-1) except? NULL:
    return <double *>address(array, name, "d", 8, size, True)


cdef const double *doubles_read(object array, str name, Py_ssize_t size=-1) except? NULL:
    return <const double *>address(array, name, "d", 8, size, False)


cdef const float *floats_read(object array, str name, Py_ssize_t size=-1) except? NULL:
    return <const float *>address(array, name, "f", 4, size, False)


cdef lame_of(lam, mu, Py_ssize_t n_cells, fb_lame *out):
    """Lamé parameters, one or (n_cells,) of each, as an array that the caller keeps."""
    both = np.array(np.broadcast_arrays(lam, mu), np.float64)
    if both.ndim > 1 and both.shape != (2, n_cells):
        raise ValueError(f"lam, mu: expected numbers or arrays ({n_cells},), got {both.shape[1:]}")
    cdef Py_ssize_t n = both.size // 2
    out.step = both.ndim - 1
    out.lam = doubles_read(both, "lam")
    out.mu = out.lam + n
    return both


cdef padded(object array, str name, Py_ssize_t size):
    """For kernels that read one vector past the end. Raises ValueError for an array not made by `empty`."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if size and not isinstance(owner, _Memory) and not isinstance(getattr(owner, "obj", None), _Memory):
        raise ValueError(f"{name}: expected an array of kernels.empty: it is read a little past its end")


cdef const double *doubles_padded(object array, str name, Py_ssize_t size) except? NULL:
    padded(array, name, size)
    return doubles_read(array, name, size)


cdef const int32_t *ints(object array, str name, Py_ssize_t size=-1) except? NULL:
    return <const int32_t *>address(array, name, "il", 4, size, False)


cdef const int32_t *ints_padded(object array, str name, Py_ssize_t size) except? NULL:
    padded(array, name, size)
    return ints(array, name, size)


cdef const int64_t *longs(object array, str name, Py_ssize_t size=-1) except? NULL:
    return <const int64_t *>address(array, name, "lq", 8, size, False)


cdef class _Memory:
    """Memory that an array made by `empty` (or a kernel) rests on."""
    cdef void *p
    cdef Py_ssize_t n

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.p, self.n, 0, flags)

    def __dealloc__(self):
        fb_release(self.p, self.n)


def empty(shape, dtype="float64"):
    """An uninitialised array, aligned to 64 bytes, on huge pages from 2 MB on where the system gives them."""
    kind = np.dtype(dtype)
    cdef Py_ssize_t n = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if n == 0:
        return np.empty(shape, kind)
    cdef _Memory memory = _Memory.__new__(_Memory)
    memory.p = fb_allocate(n)
    if memory.p is NULL:
        raise MemoryError(f"cannot allocate {n} bytes")
    memory.n = n
    return np.frombuffer(memory, kind).reshape(shape)


def zeros(shape, dtype="float64"):
    """`empty`, filled with zeros (and so touched by this thread)."""
    array = empty(shape, dtype)
    array.fill(0)
    return array


# ---- threads --------------------------------------------------------------------------------------

HAS_THREADS = bool(fb_has_threads())  # whether it was compiled for more than one


def use_threads(Py_ssize_t n):
    """What is bound from now on computes with n threads; results do not depend on n.

    Raises ValueError for more than one where the kernels were compiled without OpenMP."""
    if not 1 <= n <= FB_MOST_THREADS:
        raise ValueError(f"threads = {n}: expected 1 to {FB_MOST_THREADS}")
    if n > 1 and not HAS_THREADS:
        raise ValueError(f"threads = {n}: the kernels were compiled without OpenMP, for 1 thread")
    fb_use_threads(n)


def thread_seconds():
    """(n,) seconds that each thread has computed since `use_threads`; one thread alone is not measured."""
    return np.array([fb_busy(k) for k in range(fb_threads())])


# ---- vectors --------------------------------------------------------------------------------------

cdef Py_ssize_t SHORT = 8192  # entries of a vector that one thread passes sooner than several begin


cdef class _Pass:
    """Passes over vectors."""
    cdef object keep, parts
    cdef fb_pass p
    cdef double sums[2]

    cdef divide(self, bint alone=False):
        """Bound: by how many threads."""
        cdef Py_ssize_t n_chunks = fb_pass_chunks(&self.p)
        self.p.sums = &self.sums[0]
        self.p.n_threads = 1 if alone or self.p.n < SHORT else fb_threads()
        if self.p.n_threads > 1:
            self.parts = np.zeros(2 * n_chunks)
            self.p.parts[0] = doubles(self.parts, "parts")
            self.p.parts[1] = self.p.parts[0] + n_chunks

    cdef double pass_of(self, int kind):
        self.p.kind = kind
        fb_run(&self.p)
        return self.sums[0]


cdef class Dot(_Pass):
    """a . b over n entries, the last `weights.size` of them weighted."""

    def __init__(self, a, b, weights):
        self.keep = (a, b, weights)
        self.p.n, self.p.n_weighted = a.size, weights.size
        self.p.d, self.p.q = <double *>doubles_read(a, "a"), <double *>doubles_read(b, "b", self.p.n)
        self.p.w = doubles_read(weights, "weights")
        if self.p.n_weighted > self.p.n:
            raise ValueError("weights: more than entries")
        self.divide()

    def run(self):
        return self.pass_of(FB_DOT)


cdef class CGVectors(_Pass):
    """The vector work of one conjugate-gradient iteration; `inverse` (n,) or (n/3, 6) is a folded-in Jacobi."""
    cdef int kind

    def __init__(self, x, r, d, q, z, weights, inverse=None):
        self.keep = (x, r, d, q, z, weights, inverse)
        self.p.n, self.p.n_weighted = x.size, weights.size
        if self.p.n % 3 or self.p.n_weighted % 3 or self.p.n_weighted > self.p.n:
            raise ValueError("x, weights: expected three entries a node, weights of the last ones")
        self.p.x, self.p.r = doubles(x, "x"), doubles(r, "r", self.p.n)
        self.p.d, self.p.q = doubles(d, "d", self.p.n), doubles(q, "q", self.p.n)
        self.p.z = doubles(z, "z", self.p.n)
        self.p.w = doubles_read(weights, "weights")
        self.kind = 0
        if inverse is not None:
            self.kind = 1 if inverse.ndim == 1 else 2
            self.p.inverse = doubles_read(inverse, "inverse", self.kind * self.p.n)
            self.p.inverse_bytes = 8 * self.kind
        self.divide()

    cpdef dot_dq(self):
        return self.pass_of(FB_DOT)

    def dot_rz(self):
        return self.pass_of(FB_DOT_RZ)

    cpdef step(self, double alpha):
        self.p.alpha = alpha
        return self.pass_of(FB_STEP)

    cpdef step_jacobi(self, double alpha):
        if self.kind == 0:
            raise ValueError("step_jacobi: made without an inverse diagonal")
        self.p.alpha = alpha
        self.pass_of(FB_STEP_JACOBI if self.kind == 1 else FB_STEP_BLOCK)
        return self.sums[0], self.sums[1]

    cpdef direction(self, double beta):
        self.p.beta = beta
        self.pass_of(FB_DIRECTION + self.kind)


cdef class Scale(_Pass):
    """z = D^-1 r; inverse (n,) reciprocals or (n/3, 6) inverse blocks, as in CGVectors."""
    cdef bint blocks

    def __init__(self, inverse, r, z):
        self.keep = (inverse, r, z)
        self.p.n, self.blocks = r.size, inverse.ndim == 2
        self.p.inverse_bytes = 16 if self.blocks else 8
        self.p.inverse = doubles_read(inverse, "inverse", (2 if self.blocks else 1) * self.p.n)
        self.p.r, self.p.z = <double *>doubles_read(r, "r"), doubles(z, "z", self.p.n)
        self.divide()

    def run(self):
        self.pass_of(FB_SCALE_BLOCK if self.blocks else FB_SCALE)


cdef class Chebyshev(_Pass):
    """Steps of a polynomial in D^-1 A; inverse (n,) reciprocals or (n/3, 6) inverse blocks, as floats.

    start(gain): d = z = gain D^-1 r. run(keep, gain): r -= q; d = keep d + gain D^-1 r; z += d."""
    cdef bint blocks

    def __init__(self, z, r, d, q, inverse):
        self.keep = (z, r, d, q, inverse)
        self.p.n, self.blocks = z.size, inverse.ndim == 2
        self.p.z, self.p.r, self.p.d = doubles(z, "z"), doubles(r, "r", self.p.n), doubles(d, "d", self.p.n)
        self.p.q = <double *>doubles_read(q, "q", self.p.n)
        self.p.inverse_bytes = 8  # six floats for three entries, or a double for each
        if self.blocks:
            self.p.inverse = floats_read(inverse, "inverse", 2 * self.p.n)
        else:
            self.p.inverse = doubles_read(inverse, "inverse", self.p.n)
        self.divide()

    def start(self, double gain):
        self.p.alpha = gain
        self.pass_of(FB_CHEBYSHEV_BLOCK_START if self.blocks else FB_CHEBYSHEV_START)

    def run(self, double keep, double gain):
        self.p.alpha, self.p.beta = gain, keep
        self.pass_of(FB_CHEBYSHEV_BLOCK if self.blocks else FB_CHEBYSHEV)


cdef class Transfer:
    """Between a fine and a coarse grid: node i has the parents parent (n, 8) with weight (n, 8), zeros last.

    restrict(): coarse = P^T (share r), share (3 n_interface,) of the last nodes. prolong(): fine = P coarse."""
    cdef object keep
    cdef Py_ssize_t n, n_interior, n_coarse
    cdef const int32_t *parent
    cdef const float *weight
    cdef const double *share
    cdef const double *r
    cdef double *coarse
    cdef double *fine

    def __init__(self, parent, weight, share, r, coarse, fine):
        self.n, self.n_coarse = r.size // 3, coarse.size // 3
        self.n_interior = self.n - share.size // 3
        self.keep = (parent, weight, share, r, coarse, fine)
        if self.n_interior < 0:
            raise ValueError("share: more values than nodes")
        self.parent, self.weight = ints(parent, "parent", 8 * self.n), floats_read(weight, "weight", 8 * self.n)
        within(parent.reshape(-1), "parent", self.n_coarse)
        self.share, self.r = doubles_read(share, "share"), doubles_read(r, "r", 3 * self.n)
        self.coarse, self.fine = doubles(coarse, "coarse"), doubles(fine, "fine", 3 * self.n)

    def restrict(self):
        fb_restrict(self.n, self.n_interior, self.parent, self.weight, self.share, self.r, self.n_coarse,
                    self.coarse)

    def prolong(self):
        fb_prolong(self.n, self.parent, self.weight, self.coarse, self.fine)


cdef class RigidModes:
    """The coarse part of a two-level preconditioner on one rank, bound to its vectors.

    restrict(): moments (6,) of the weighted r about `centre`. correct(): from the moments of all parts,
    `gathered` (6 n_parts,), motion = coarse (6 n_kinds, 6 n_parts) gathered, then z = inverse r + the motion
    of each node about `origin`: kind 0 inside, `kind` (n_interface,) on the interface."""
    cdef object keep
    cdef Py_ssize_t n, n_interior, m, n_all
    cdef const double *x
    cdef const double *centre
    cdef const double *origin
    cdef const double *weights
    cdef const int32_t *kind
    cdef const double *coarse
    cdef const double *gathered
    cdef double *moments
    cdef double *motion
    cdef const double *inverse
    cdef const double *r
    cdef double *z

    def __init__(self, x, centre, origin, weights, kind, coarse, moments, gathered, inverse, r, z):
        self.n, self.n_interior = r.size // 3, r.size // 3 - kind.size
        self.m, self.n_all = coarse.shape
        motion = np.empty(self.m)
        self.keep = (x, centre, origin, weights, kind, coarse, moments, gathered, motion, inverse, r, z)
        if self.n_interior < 0 or self.n_all % 6 or 3 * self.n > x.size:
            raise ValueError("r, kind, coarse, x: sizes do not fit")
        if kind.size and not 0 <= kind.min() <= kind.max() < self.m // 6:
            raise ValueError("kind: outside the motions")
        self.x, self.weights = doubles_read(x, "x"), doubles_read(weights, "weights", 3 * kind.size)
        self.centre, self.origin = doubles_read(centre, "centre", 3), doubles_read(origin, "origin", 3)
        self.kind, self.coarse = ints(kind, "kind"), doubles_read(coarse, "coarse")
        self.moments, self.gathered = doubles(moments, "moments", 6), doubles_read(gathered, "gathered", self.n_all)
        self.motion, self.inverse = doubles(motion, "motion"), doubles_read(inverse, "inverse", 3 * self.n)
        self.r, self.z = doubles_read(r, "r", 3 * self.n), doubles(z, "z", 3 * self.n)

    def restrict(self):
        fb_moments(self.n, self.n - self.n_interior, self.x, self.centre, self.r, self.weights, self.moments)

    def correct(self):
        fb_small_product(self.m, self.n_all, self.coarse, self.gathered, self.motion)
        fb_jacobi_and_motion(self.n, self.n_interior, self.x, self.origin, self.kind, self.motion, self.inverse,
                             self.r, self.z)


cdef class Stream(_Pass):
    """The roof: `read()` one array of n doubles. Only that array is allocated."""

    def __init__(self, Py_ssize_t n):
        self.keep = zeros(n)
        self.p.n, self.p.x = n, doubles(self.keep, "b")
        self.divide()

    def read(self):
        return self.pass_of(FB_READ)


cdef class Triad(_Pass):
    """The roof: `run(s)` a = b + s c over three arrays of n doubles; alone: by one thread."""

    def __init__(self, Py_ssize_t n, bint alone=False):
        a, b, c = zeros(n), zeros(n), zeros(n)
        self.keep = (a, b, c)
        self.p.n, self.p.x, self.p.d, self.p.q = n, doubles(a, "a"), doubles(b, "b"), doubles(c, "c")
        self.divide(alone)

    def run(self, double s):
        self.p.alpha = s
        self.pass_of(FB_TRIAD)


# ---- single operations -----------------------------------------------------------------------------

def _operation_names():
    found, which = [], 0
    while fb_operation_name(which) != NULL:
        found.append(fb_operation_name(which).decode())
        which += 1
    return tuple(found)


OPERATIONS = _operation_names()
_NUMBER = {name: which for which, name in enumerate(OPERATIONS)}


def operation(str name, int64_t turns, double x, double y):
    """The last value of 16 `turns` operations from x and y, each waiting for the one before."""
    return fb_operation(_NUMBER[name], turns, x, y)


# ---- interface ------------------------------------------------------------------------------------

cdef int width(object index, object buffer, str name) except -1:
    """1 where the index is of dofs, 3 where it is of nodes."""
    if buffer.size == index.size:
        return 1
    if buffer.size == 3 * index.size:
        return 3
    raise ValueError(f"{name}: {index.size} indices do not fit {buffer.size} values")


cdef const int32_t *index_of(object index, object v, str name, int width) except? NULL:
    if index.size and (index.min() < 0 or (index.max() + 1) * width > v.size):
        raise ValueError(f"{name}: an index outside the vector of {v.size}")
    return ints(index, name)


cdef class Pack:
    """buffer = v at index (dofs, or nodes where the buffer is three times as long)."""
    cdef object keep
    cdef Py_ssize_t n
    cdef int width
    cdef const double *v
    cdef const int32_t *index
    cdef double *buffer

    def __init__(self, v, index, buffer):
        self.keep = (v, index, buffer)
        self.n = index.size
        self.width = width(index, buffer, "index")
        self.v, self.buffer = doubles_read(v, "v"), doubles(buffer, "buffer")
        self.index = index_of(index, v, "index", self.width)

    def run(self):
        fb_pack(self.n, self.index, self.width, self.v, self.buffer)


cdef class NeighbourSum:
    """Interface part of v = sum over all sharers in ascending order of rank, this rank's own at its place.

    indices (as in Pack), buffers: of every neighbour by ascending rank; the first n_below are below this rank."""
    cdef object keep, parts
    cdef Py_ssize_t n, n_below, n_parts
    cdef double *v
    cdef double *interface
    cdef double *own

    def __init__(self, v, Py_ssize_t first_dof, Py_ssize_t n_below, indices, buffers):
        if not 0 <= first_dof <= v.size or not 0 <= n_below <= len(indices) == len(buffers):
            raise ValueError("first_dof, n_below: outside the vector or the list of neighbours")
        own = empty(v.size - first_dof)
        self.n, self.n_below, self.n_parts = v.size - first_dof, n_below, len(indices)
        self.keep = (v, own)
        self.v, self.own = doubles(v, "v"), doubles(own, "own")
        self.interface = self.v + first_dof
        self.parts = tuple(Pack(v, index, buffer) for index, buffer in zip(indices, buffers))

    cdef void add(self, Py_ssize_t k):
        cdef Pack p = <Pack>self.parts[k]
        fb_add(p.n, p.index, p.width, p.buffer, self.v)

    def run(self):
        cdef Py_ssize_t k
        memcpy(self.own, self.interface, self.n * sizeof(double))
        memset(self.interface, 0, self.n * sizeof(double))
        for k in range(self.n_below):
            self.add(k)
        fb_axpy(self.n, 1.0, self.own, self.interface)
        for k in range(self.n_below, self.n_parts):
            self.add(k)


cdef class _Values:
    """Values of three entries, wherever they lie: value k is that of node node[k] in vectors[vector[k]]."""
    cdef object keep
    cdef Py_ssize_t n
    cdef double **at

    def __cinit__(self):
        self.at = NULL

    def __dealloc__(self):
        free(self.at)

    cdef _bind(self, vectors, vector, node):
        cdef Py_ssize_t k
        cdef const int32_t *v = ints(vector, "vector", node.size)
        cdef const int32_t *i = ints(node, "node")
        sizes = np.array([x.size // 3 for x in vectors], np.int64)
        if node.size and not 0 <= vector.min() <= vector.max() < sizes.size:
            raise ValueError("vector: outside the list of vectors")
        if node.size and not (0 <= node.min() and (node < sizes[vector]).all()):
            raise ValueError("node: outside its vector")
        begins = np.array([<size_t>doubles(x, "vectors") for x in vectors], np.uint64)
        self.n, self.keep = node.size, vectors
        self.at = <double **>malloc((self.n + 1) * sizeof(double *))
        if self.at is NULL:
            raise MemoryError("values: no memory")
        cdef const uint64_t *begin = <const uint64_t *>address(begins, "begins", "LQ", 8, -1, False)
        for k in range(self.n):
            self.at[k] = <double *><size_t>begin[v[k]] + 3 * <Py_ssize_t>i[k]


cdef class Gather(_Values):
    """buffer (3 n,) = the n values."""
    cdef double *buffer

    def __init__(self, vectors, vector, node, buffer):
        self._bind(vectors, vector, node)
        self.keep = (vectors, buffer)
        self.buffer = doubles(buffer, "buffer", 3 * self.n)

    def run(self):
        fb_gather(self.n, self.at, self.buffer)


cdef class SharedSum(_Values):
    """The values [ends[g], ends[g + 1]) all become their sum, added up in this order; ends (groups + 1,) int64."""
    cdef const int64_t *ends
    cdef Py_ssize_t n_groups

    def __init__(self, vectors, vector, node, ends):
        self._bind(vectors, vector, node)
        self.keep = (vectors, ends)
        if not ends.size or ends[0] != 0 or ends[ends.size - 1] != self.n or (np.diff(ends) < 0).any():
            raise ValueError("ends: expected an ascending list from 0 to the number of values")
        self.ends, self.n_groups = longs(ends, "ends"), ends.size - 1

    def run(self):
        fb_sum_groups(self.n_groups, self.ends, self.at)


# ---- assembly -------------------------------------------------------------------------------------

cdef const int32_t *cells_of(object cells, Py_ssize_t n_nodes, int32_t *highest=NULL) except? NULL:
    """Checked; n_nodes < 0: any node will do."""
    cdef int32_t low, high
    if cells.ndim != 2 or cells.shape[1] not in (4, 8):
        raise ValueError(f"cells: expected (n_cells, 4 or 8), got {cells.shape}")
    cdef const int32_t *c = ints(cells, "cells")
    fb_span(cells.size, c, &low, &high)
    if low < 0 or (0 <= n_nodes <= high):
        raise ValueError(f"cells: a node outside 0..{n_nodes - 1}")
    if highest is not NULL:
        highest[0] = high
    return c


cdef within(object index, str name, Py_ssize_t n):
    """Raises ValueError unless all are of 0..n - 1."""
    cdef int32_t low, high
    fb_span(index.size, ints(index, name), &low, &high)
    if low < 0 or high >= n:
        raise ValueError(f"{name}: an index outside 0..{n - 1}")


cdef rows_of(object begins, str name, Py_ssize_t n_rows, Py_ssize_t shortest, Py_ssize_t n_entries):
    """Raises ValueError unless begins (n_rows + 1,) ascends from 0 to n_entries, by `shortest` at least."""
    if not fb_rows_fit(n_rows, shortest, n_entries, longs(begins, name, n_rows + 1)):
        raise ValueError(f"{name}: expected rows of at least {shortest} that fill 0..{n_entries}")


cdef class Incidence:
    """Where each node stands: start (n_nodes+2,) int64, at (n_cells*npc,) int32, ascending (n_cells, npc) int32.

    ascending: the nodes of each cell, sorted. at[start[i]:start[i+1]]: node i's places in it, counted flat. All are read-only:
    kernels rely on them without another look.
    """
    cdef readonly object start, at, ascending
    cdef Py_ssize_t n_nodes

    def __init__(self, cells, Py_ssize_t n_nodes):
        self.find(cells, cells_of(cells, n_nodes), n_nodes)

    cdef find(self, cells, const int32_t *c, Py_ssize_t n_nodes):
        if cells.size > 2**31 - 1:
            raise ValueError(f"cells: {cells.size} places, expected at most {2**31 - 1} on a rank")
        self.n_nodes = n_nodes
        self.start = np.empty(n_nodes + 2, np.int64)
        self.at, self.ascending = empty(cells.size, np.int32), empty(cells.shape, np.int32)
        fb_incidence(cells.shape[0], cells.shape[1], c, n_nodes, <int32_t *>ints(self.ascending, "ascending"),
                     <int64_t *>longs(self.start, "start"), <int32_t *>ints(self.at, "at"))
        for array in (self.start, self.at, self.ascending):
            array.flags.writeable = False

    cdef check(self, cells, Py_ssize_t n_nodes):
        """Raises ValueError unless it is that of as many cells, and of n_nodes nodes at least."""
        if cells.shape != self.ascending.shape:
            raise ValueError(f"where: expected that of cells {cells.shape}, got {self.ascending.shape}")
        if self.n_nodes < n_nodes:
            raise ValueError(f"where: expected that of {n_nodes} nodes, got {self.n_nodes}")


def pattern(cells, Py_ssize_t n_interior, Py_ssize_t n_active, bint upper, Incidence where=None):
    """(indptr (n_active+1,) int64, rows (n_active,) int32, columns (n_blocks,) int32): see pattern.c.

    where: that of these cells, looked for where it is not given.
    """
    cdef int32_t *columns = NULL
    cdef int32_t highest = -1
    cdef int64_t n_bytes = 0
    if not 0 <= n_interior <= n_active:
        raise ValueError("n_interior: expected 0 <= n_interior <= n_active")
    cdef const int32_t *c
    if where is None:
        c = cells_of(cells, -1, &highest)
        where = Incidence.__new__(Incidence)
        where.find(cells, c, max(n_active, highest + 1))
    where.check(cells, n_active)
    indptr, rows = np.empty(n_active + 1, np.int64), np.empty(n_active, np.int32)
    if fb_pattern(cells.shape[1], ints_padded(where.ascending, "ascending", cells.size), where.n_nodes, n_interior, n_active, upper,
                  longs(where.start, "start"), ints(where.at, "at"), <int64_t *>longs(indptr, "indptr"),
                  <int32_t *>ints(rows, "rows"), &columns, &n_bytes):
        raise MemoryError("pattern: no memory")
    cdef _Memory memory = _Memory.__new__(_Memory)
    memory.p, memory.n = columns, n_bytes
    return indptr, rows, np.frombuffer(memory, np.int32, int(indptr[n_active]))


def count_blocks(cells, Py_ssize_t n_active):
    """Number of 3x3 blocks of the full pattern."""
    cdef int32_t highest = -1
    cdef const int32_t *c = cells_of(cells, -1, &highest)
    cdef int64_t pairs = fb_count_pairs(cells.shape[0], cells.shape[1], c, highest + 1, n_active)
    if pairs < 0:
        raise MemoryError("count_blocks: no memory")
    return n_active + 2 * pairs


def reorder(cells, Py_ssize_t n_interior, Py_ssize_t n_active):
    """New position (n_active,) of each node: reverse Cuthill-McKee within the interior and within the interface."""
    indptr, _, columns = pattern(cells, n_active, n_active, False)
    position = np.empty(n_active, np.int32)
    cdef const int64_t *p = longs(indptr, "indptr")
    cdef const int32_t *c = ints(columns, "columns")
    cdef int32_t *to = <int32_t *>ints(position, "position")
    if fb_rcm(n_active, p, c, 0, n_interior, to) or fb_rcm(n_active, p, c, n_interior, n_active, to):
        raise MemoryError("reorder: no memory")
    return position


cdef between(const int32_t *nodes, Py_ssize_t n, Py_ssize_t low, Py_ssize_t high):
    """Raises ValueError unless n nodes are of low..high - 1."""
    cdef int32_t least, most
    fb_span(n, nodes, &least, &most)
    if n and not low <= least <= most < high:
        raise ValueError(f"cells: a node outside {low}..{high - 1}")


def held_nodes(cells, int32_t low, int32_t high):
    """(high - low,) bool: which of the nodes from low on the cells have."""
    cdef const int32_t *c = ints(cells, "cells")
    between(c, cells.size, low, high)
    held = np.zeros(high - low, bool)
    fb_hold(cells.size, c, low, <uint8_t *>address(held, "held", "?", 1, -1, True))
    return held


def renumber(cells, position, int32_t low=0):
    """Each node of the cells becomes position[node - low], in place; position (n,) int32."""
    cdef int32_t *c = <int32_t *>address(cells, "cells", "il", 4, -1, True)
    between(c, cells.size, low, low + <Py_ssize_t>position.size)
    fb_renumber(cells.size, c, low, ints(position, "position"))


def sort_cells(cells, numbers):
    """Sort cells and their numbers (n_cells,), int32 or int64, in place: by lowest node, equal ones by number.

    Assembly then goes through memory in order."""
    cdef int32_t highest = -1
    cells_of(cells, -1, &highest)
    cdef int wide = numbers.itemsize == 8
    cdef void *named = address(numbers, "numbers", "lq" if wide else "il", 8 if wide else 4, cells.shape[0], True)
    if fb_sort_cells(cells.shape[0], cells.shape[1], <int32_t *>address(cells, "cells", "il", 4, -1, True), wide, named,
                     highest + 1):
        raise MemoryError("sort_cells: no memory")


def add_weights(x, cells, density, f):
    """Add to f (n_nodes, 3) a constant force per volume, density (3,), in tetrahedra; how many are flat or inverted."""
    if cells.shape[1] != 4:
        raise ValueError("cells: expected tetrahedra")
    return fb_add_weights(cells.shape[0], doubles_read(x, "x"), cells_of(cells, x.shape[0]),
                          doubles_read(density, "density", 3), doubles(f, "f", x.size))


def lowest_quality(x, cells):
    """The mean ratio of the worst cell: 1 if all are regular, 0 if one is flat or inverted, inf if there are none."""
    return fb_lowest_quality(cells.shape[0], cells.shape[1], doubles_read(x, "x"), cells_of(cells, x.shape[0]))


def cells_meeting(cells, marked, int least):
    """(n,) int32: the cells of which at least `least` nodes are marked, ascending; marked (n_nodes,) bool."""
    cdef const int32_t *c = cells_of(cells, marked.size)
    cdef const uint8_t *m = <const uint8_t *>address(marked, "marked", "?", 1, -1, False)
    found = np.empty(fb_cells_meeting(cells.shape[0], cells.shape[1], c, m, least, NULL), np.int32)
    fb_cells_meeting(cells.shape[0], cells.shape[1], c, m, least, <int32_t *>ints(found, "found"))
    return found


def stiffness(x, cells, lam, mu):
    """ke (n_cells, 3 npc, 3 npc) of every cell; lam, mu: numbers, or (n_cells,)."""
    cdef fb_lame lame
    m, kept = 3 * cells.shape[1], lame_of(lam, mu, cells.shape[0], &lame)
    ke = empty((cells.shape[0], m, m))
    fb_stiffness(cells.shape[1], cells.shape[0], doubles_read(x, "x"), cells_of(cells, x.shape[0]), lame,
                 doubles(ke, "ke"))
    return ke


def assemble(x, cells, lam, mu, Py_ssize_t n_interior, bint upper, fixed, indptr, rows, columns,
             Incidence where=None):
    """values (n_blocks, 3, 3) on a pattern; fixed (3 n_active,) bool: rows and columns zero, diagonal one.

    where: that of these cells, looked for where it is not given.
    """
    cdef Py_ssize_t n_active = rows.size
    cdef fb_lame lame
    kept = lame_of(lam, mu, cells.shape[0], &lame)
    bits = np.ascontiguousarray(fixed.reshape(n_active, 3) @ np.array([1, 2, 4], np.uint8), np.uint8)
    where = where or Incidence(cells, x.shape[0])
    where.check(cells, x.shape[0])
    rows_of(indptr, "indptr", n_active, 1, columns.size)
    within(rows, "rows", n_active)
    within(columns, "columns", n_active)
    if (np.bincount(rows, minlength=n_active) != 1).any():
        raise ValueError("rows: expected every node once")
    if not 0 <= n_interior <= n_active <= x.shape[0]:
        raise ValueError("n_interior: expected 0 <= n_interior <= n_active <= nodes")
    values = empty((columns.size + 1, 3, 3))[:-1]  # a row that lacks a column of its cells writes behind itself
    cdef const int32_t *c = NULL if cells.shape[1] == 4 else cells_of(cells, x.shape[0])
    if fb_assemble(cells.shape[1], cells.shape[0], x.shape[0], doubles_read(x, "x"), c, lame, n_interior, n_active, upper,
                   <const uint8_t *>address(bits, "fixed", "B", 1, n_active, False),
                   ints(where.ascending, "ascending"), longs(where.start, "start"), ints(where.at, "at"),
                   longs(indptr, "indptr", n_active + 1), ints(rows, "rows"), ints(columns, "columns"),
                   doubles(values, "values")):
        raise MemoryError("assemble: no memory")
    return values


def pieces(indptr, rows, columns, kind, name, corner, weight):
    """Which children of the same parents are connected by the pattern of a symmetric matrix: (root, least).

    kind (n,) uint8: only nodes of one kind are. corner, weight (n, 8): numbers of parents, and weights, zeros last.
    root (n, 8) int32: the first slot 8 i + k connected to each. least (n, 8): at roots, the least name (n,) of a piece.
    """
    cdef Py_ssize_t n = rows.size
    if 8 * n > 2**31 - 1:
        raise ValueError(f"pieces: expected at most {2**28 - 1} nodes on a rank, got {n}")
    rows_of(indptr, "indptr", n, 1, columns.size)
    within(rows, "rows", n)
    within(columns, "columns", n)
    root, least = np.empty((n, 8), np.int32), np.empty((n, 8), np.int64)
    fb_pieces(n, longs(indptr, "indptr", n + 1), ints(rows, "rows"), ints(columns, "columns"),
              <const uint8_t *>address(kind, "kind", "B", 1, n, False), longs(name, "name", n),
              longs(corner, "corner", 8 * n), floats_read(weight, "weight", 8 * n),
              <int32_t *>ints(root, "root"), <int64_t *>longs(least, "least"))
    return root, least


def galerkin(indptr, rows, columns, values, fixed, parent, weight, Py_ssize_t n_coarse, Py_ssize_t n_coarse_interior):
    """P^T A P of a symmetric matrix, stored alike: (indptr, rows, columns, values (n_blocks, 3, 3)).

    fixed (3 n,) bool: dofs whose diagonal of one in A is left out. parent, weight (n, 8): as of Transfer."""
    cdef int64_t n_blocks = 0
    cdef Py_ssize_t n = rows.size
    rows_of(indptr, "indptr", n, 1, columns.size)
    within(rows, "rows", n)
    within(columns, "columns", n)
    within(parent.reshape(-1), "parent", n_coarse)
    if not 0 <= n_coarse_interior <= n_coarse:
        raise ValueError("n_coarse_interior: expected 0 <= n_coarse_interior <= n_coarse")
    cdef fb_coarse *found = fb_galerkin(
        n, int(np.diff(indptr).max(initial=0)), longs(indptr, "indptr", n + 1), ints(rows, "rows"),
        ints(columns, "columns"), doubles_read(values, "values", 9 * columns.size),
        <const uint8_t *>address(fixed, "fixed", "?", 1, 3 * n, False), ints(parent, "parent", 8 * n),
        floats_read(weight, "weight", 8 * n), n_coarse, n_coarse_interior, &n_blocks)
    if found is NULL:
        raise MemoryError("galerkin: no memory")
    try:
        out = (np.empty(n_coarse + 1, np.int64), np.empty(n_coarse, np.int32), np.empty(n_blocks, np.int32),
               empty((n_blocks, 3, 3)))
        scratch = np.empty(n_coarse, np.int64)
        fb_coarse_take(found, <int64_t *>longs(out[0], "indptr"), <int32_t *>ints(out[1], "rows"),
                       <int32_t *>ints(out[2], "columns"), doubles(out[3], "values"),
                       <int64_t *>longs(scratch, "scratch"))
    finally:
        fb_coarse_free(found)
    return out


# ---- products -------------------------------------------------------------------------------------

cdef class _Product:
    """q = A d in two ranges: interface() first, interior() second."""
    cdef object keep
    cdef Py_ssize_t n, n_interior  # nodes
    cdef Py_ssize_t n_stored  # blocks that are called ahead where they lie far; 0 where nothing is
    cdef const double *d
    cdef double *q

    cdef set_total(self, Py_ssize_t n_stored):
        """How many blocks are multiplied between two uses of this matrix."""

    cdef _bind(self, d, q, Py_ssize_t n, Py_ssize_t n_interior):
        if not 0 <= n_interior <= n:
            raise ValueError("n_interior: expected 0 <= n_interior <= n_active")
        self.n, self.n_interior = n, n_interior
        self.d, self.q = doubles_padded(d, "d", 3 * n), doubles(q, "q", 3 * n)
        if n and self.d == self.q:
            raise ValueError("q: expected another vector than d")

    cpdef interface(self):
        """Make q of the interface final; its part of d . q where fused, else None."""

    cpdef interior(self):
        """Make q of the interior final; its part of d . q where fused, else None."""


cdef class SymProduct(_Product):
    cdef fb_sym m

    def __init__(self, indptr, rows, columns, values, Py_ssize_t n_interior, d, q):
        self._bind(d, q, rows.size, n_interior)
        rows_of(indptr, "indptr", self.n, 1, columns.size)
        within(columns, "columns", self.n)
        n_windows = -(-n_interior // FB_SYM_WINDOW)
        length, order = np.empty(self.n, np.uint16), np.empty(n_windows, np.int32)
        ready = np.empty(n_windows, np.int32)
        self.keep = (indptr, columns, values, length, order, ready, d, q)
        self.m.n, self.m.n_interior = self.n, n_interior
        self.m.indptr, self.m.columns = longs(indptr, "indptr", self.n + 1), ints(columns, "columns")
        padded(values, "values", 9 * columns.size)
        self.m.single = values.dtype == np.float32
        self.m.values = address(values, "values", "f" if self.m.single else "d", 4 if self.m.single else 8,
                                9 * columns.size, False)
        self.m.length = <const uint16_t *>address(length, "length", "H", 2, self.n, False)
        self.m.order, self.m.ready = ints(order, "order"), ints(ready, "ready")
        self.n_stored = columns.size
        self.set_total(self.n_stored)
        self.m.n_touched = fb_sym_plan(self.n, n_interior, self.m.indptr, self.m.columns, <uint16_t *>self.m.length,
                                       <int32_t *>self.m.order, <int32_t *>self.m.ready)
        if self.m.n_touched < 0:
            raise ValueError("indptr: a row of more than 65535 blocks, or no memory")
        if fb_threads() > 1:
            self.divide()

    cdef divide(self):
        fb_sym_free(self.m.team)
        cdef int failed = fb_sym_divide(&self.m, fb_threads())
        if failed == -2:
            raise ValueError("columns: expected them to ascend in every row, its own node's apart")
        if failed:
            raise MemoryError("threads: no memory")

    def __dealloc__(self):
        fb_sym_free(self.m.team)

    cdef set_total(self, Py_ssize_t n_stored):
        self.m.far = n_stored > FB_NEAR

    cpdef interface(self):
        return fb_sym_interface(&self.m, self.d, self.q)

    cpdef interior(self):
        return fb_sym_interior(&self.m, self.d, self.q)


cdef class _Rows(_Product):
    """Products whose rows are independent."""
    cdef fb_rows m
    cdef object parts
    cdef int n_threads

    cdef _bind_rows(self, int kind, values, Py_ssize_t n_values):
        self.m.kind, self.n_threads = kind, fb_threads()
        self.m.d, self.m.q = self.d, self.q
        self.m.values = doubles_read(values, "values", n_values)
        if kind == FB_BSR and self.n_threads > 1:
            self.parts = np.zeros(self.n // FB_SYM_WINDOW + 1)
            self.m.parts = doubles(self.parts, "parts")

    cdef double run(self, Py_ssize_t begin, Py_ssize_t end):
        self.m.begin, self.m.end = begin, end
        return fb_rows_in_pieces(self.n_threads, &self.m)

    cpdef interface(self):
        self.run(3 * self.n_interior, 3 * self.n)

    cpdef interior(self):
        self.run(0, 3 * self.n_interior)


cdef class BsrProduct(_Rows):

    def __init__(self, indptr, columns, values, Py_ssize_t n_interior, d, q):
        self.keep = (indptr, columns, values, d, q)
        self._bind(d, q, indptr.size - 1, n_interior)
        rows_of(indptr, "indptr", self.n, 0, columns.size)
        within(columns, "columns", self.n)
        self.m.indptr, self.m.columns = longs(indptr, "indptr"), ints(columns, "columns")
        padded(values, "values", 9 * columns.size)
        self._bind_rows(FB_BSR, values, 9 * columns.size)
        self.n_stored = columns.size
        self.set_total(self.n_stored)

    cdef set_total(self, Py_ssize_t n_stored):
        self.m.far = n_stored > FB_NEAR

    cpdef interface(self):
        return self.run(self.n_interior, self.n)

    cpdef interior(self):
        return self.run(0, self.n_interior)


cdef class CsrProduct(_Rows):

    def __init__(self, indptr, columns, values, Py_ssize_t n_interior, d, q):
        self.keep = (indptr, columns, values, d, q)
        self._bind(d, q, d.size // 3, n_interior)
        rows_of(indptr, "indptr", 3 * self.n, 0, columns.size)
        within(columns, "columns", 3 * self.n)
        self.m.indptr, self.m.columns = longs(indptr, "indptr", 3 * self.n + 1), ints(columns, "columns")
        self._bind_rows(FB_CSR, values, columns.size)


cdef class DenseProduct(_Rows):

    def __init__(self, values, Py_ssize_t n_interior, d, q):
        self.keep = (values, d, q)
        self._bind(d, q, d.size // 3, n_interior)
        self.m.n = 3 * self.n
        self._bind_rows(FB_ALL, values, d.size * d.size)


cdef class EbeProduct(_Product):
    """cells: the first n_first touch the interface; fixed (k,) int32: restrained dofs, where q = d.

    Fastest where, of both kinds of cells, those with a node that is not there come last."""
    cdef int npc
    cdef Py_ssize_t n_first, n_cells, n_fixed, plain_first, plain
    cdef fb_lame lame
    cdef const double *x
    cdef const int32_t *cells
    cdef const int32_t *fixed

    def __init__(self, x, cells, Py_ssize_t n_first, lam, mu, fixed, Py_ssize_t n_interior, d, q):
        if not 0 <= n_first <= cells.shape[0]:
            raise ValueError(f"n_first: expected 0..{cells.shape[0]}, got {n_first}")
        at = zeros((x.shape[0], 4))
        at[:, :3] = x
        self.keep = (at, cells, fixed, d, q, lame_of(lam, mu, cells.shape[0], &self.lame))
        self._bind(d, q, d.size // 3, n_interior)
        self.npc, self.n_cells, self.n_first, self.n_fixed = cells.shape[1], cells.shape[0], n_first, fixed.size
        self.x, self.cells = doubles_read(at, "x"), cells_of(cells, x.shape[0])
        self.fixed = index_of(fixed, q, "fixed", 1)
        missing = np.flatnonzero((cells >= self.n).any(axis=1)) if cells.size else np.empty(0, np.int64)
        behind = missing[np.searchsorted(missing, n_first):]
        self.plain_first = min(missing[0], n_first) if missing.size else n_first
        self.plain = behind[0] if behind.size else self.n_cells

    cdef double finish(self, Py_ssize_t begin, Py_ssize_t end):
        cdef Py_ssize_t k
        for k in range(self.n_fixed):
            if begin <= self.fixed[k] < end:
                self.q[self.fixed[k]] = self.d[self.fixed[k]]
        return fb_dot(end - begin, 0, self.d + begin, self.q + begin, NULL, NULL)

    cpdef interface(self):
        memset(self.q, 0, 3 * self.n * sizeof(double))
        fb_ebe(self.npc, 0, self.plain_first, self.n_first, self.x, self.cells, self.lame, self.n, self.d, self.q)
        return self.finish(3 * self.n_interior, 3 * self.n)

    cpdef interior(self):
        fb_ebe(self.npc, self.n_first, self.plain, self.n_cells, self.x, self.cells, self.lame, self.n,
               self.d, self.q)
        return self.finish(0, 3 * self.n_interior)


# ---- several blocks on one rank ----------------------------------------------------------------------

cdef class Blocks:
    """The blocks of one rank: a line of the iteration for one block after another, in one call.

    Block k of the lists has the place places[k] in tau (V,), for its part of d . q, and in rho: (V,) for that of
    r . r, or (2 V,) with that of r . M r behind. All other places are zeroed with it. spent (V,), where it is
    given, gathers the seconds of processor time of each block's products."""
    cdef object keep
    cdef list products, vectors
    cdef Py_ssize_t n, n_all, n_rho
    cdef const int64_t *places
    cdef double *tau
    cdef double *rho
    cdef double *spent

    def __init__(self, places, products, vectors, tau, rho, spent=None):
        self.keep = (places, tau, rho, spent)
        self.n, self.n_all, self.n_rho = places.size, len(tau), len(rho)
        if places.size and not 0 <= places.min() <= places.max() < self.n_all:
            raise ValueError("places: outside tau")
        if self.n_rho != self.n_all and self.n_rho != 2 * self.n_all:
            raise ValueError("rho: expected one number a block, or two")
        self.products, self.vectors = list(products), list(vectors)
        if not self.n == len(self.products) == len(self.vectors):
            raise ValueError("places, products, vectors: expected one of each a block")
        if not all(isinstance(p, _Product) for p in products) or not all(isinstance(v, CGVectors) for v in vectors):
            raise TypeError("products, vectors: expected compiled kernels")
        cdef Py_ssize_t n_stored = 0, k
        for k in range(self.n):  # all of them pass through the caches between two uses of one
            n_stored += (<_Product>self.products[k]).n_stored
        for k in range(self.n):
            (<_Product>self.products[k]).set_total(n_stored)
        self.places = longs(places, "places")
        self.tau, self.rho = doubles(tau, "tau"), doubles(rho, "rho")
        self.spent = NULL if spent is None else doubles(spent, "spent", self.n_all)

    def interface(self):
        memset(self.tau, 0, self.n_all * sizeof(double))
        self._multiply(True)

    def interior(self):
        self._multiply(False)

    cdef _multiply(self, bint outer):
        cdef Py_ssize_t k
        cdef _Product product
        cdef double before = 0, now
        if self.spent is not NULL:
            before = processor_time()
        for k in range(self.n):
            product = <_Product>self.products[k]
            part = product.interface() if outer else product.interior()
            if part is not None:
                self.tau[self.places[k]] += part
            if self.spent is not NULL:
                now = processor_time()
                self.spent[self.places[k]] += now - before
                before = now

    def dot(self):
        """d . q, for products that do not return it."""
        cdef Py_ssize_t k
        for k in range(self.n):
            self.tau[self.places[k]] = (<CGVectors>self.vectors[k]).dot_dq()

    def direction(self, double beta):
        cdef Py_ssize_t k
        for k in range(self.n):
            (<CGVectors>self.vectors[k]).direction(beta)

    def step(self, double alpha):
        cdef Py_ssize_t k
        cdef CGVectors vectors
        memset(self.rho, 0, self.n_rho * sizeof(double))
        for k in range(self.n):
            vectors = <CGVectors>self.vectors[k]
            if self.n_rho == self.n_all:
                self.rho[self.places[k]] = vectors.step(alpha)
            else:
                self.rho[self.places[k]], self.rho[self.n_all + self.places[k]] = vectors.step_jacobi(alpha)


cdef double processor_time():
    """Seconds that this thread has computed."""
    cdef timespec t
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)
    return t.tv_sec + 1e-9 * t.tv_nsec


# ---- variants of conjugate gradients ----------------------------------------------------------------

cdef extern from "kernels.h" nogil:
    int FB_IDENTITY, FB_DIAGONAL, FB_BLOCKS, FB_EXTERNAL
    ctypedef struct fb_recurrences:
        int64_t n, n_weighted
        int kind
        double *x
        double *r
        double *u
        double *w
        double *p
        double *s
        double *z
        double *q
        double *m
        double *n_
        const double *inverse
        const double *weights
    void fb_single_reduction(const fb_recurrences *v, double alpha, double beta, double *sums)
    void fb_pipelined(const fb_recurrences *v, double alpha, double beta, double *sums)
    void fb_pipelined_sums(const fb_recurrences *v, double *sums)


cdef class _Recurrences:
    """Vectors of one of the variants; `sums` (3,) receives the rank's r.r, r.u and w.u, in this order."""
    cdef object keep
    cdef fb_recurrences v
    cdef double *sums

    cdef _bind(self, x, r, u, w, p, s, weights, inverse, sums):
        self.keep = (x, r, u, w, p, s, weights, inverse, sums)
        self.v.n, self.v.n_weighted = x.size, weights.size
        if self.v.n % 3 or self.v.n_weighted % 3 or self.v.n_weighted > self.v.n:
            raise ValueError("x, weights: expected three entries a node, weights of the last ones")
        self.v.x, self.v.r, self.v.u = doubles(x, "x"), doubles(r, "r", self.v.n), doubles(u, "u", self.v.n)
        self.v.w, self.v.p, self.v.s = doubles(w, "w", self.v.n), doubles(p, "p", self.v.n), doubles(s, "s", self.v.n)
        self.v.weights, self.sums = doubles_read(weights, "weights"), doubles(sums, "sums", 3)
        self.v.inverse = NULL
        self.v.kind = FB_IDENTITY if self.v.u == self.v.r else FB_EXTERNAL
        if inverse is not None:
            self.v.kind = FB_DIAGONAL if inverse.ndim == 1 else FB_BLOCKS
            self.v.inverse = doubles_read(inverse, "inverse", inverse.ndim * self.v.n)

    def dot_ru(self):
        """r . u into its place, for an M that is not folded in."""
        self.sums[1] = fb_dot(self.v.n, self.v.n_weighted, self.v.r, self.v.u, self.v.weights, NULL)

    def dot_wu(self):
        """w . u into its place, for a product that does not return it."""
        self.sums[2] = fb_dot(self.v.n, self.v.n_weighted, self.v.w, self.v.u, self.v.weights, NULL)


cdef class SingleReduction(_Recurrences):
    """One iteration of Chronopoulos and Gear; u is r where M is the identity, `inverse` as in CGVectors."""

    def __init__(self, x, r, u, w, p, s, weights, inverse, sums):
        self._bind(x, r, u, w, p, s, weights, inverse, sums)

    def step(self, double alpha, double beta):
        """p s by beta, x r by alpha, u = M^-1 r if folded in; r.r and r.u."""
        fb_single_reduction(&self.v, alpha, beta, self.sums)


cdef class Pipelined(_Recurrences):
    """One iteration of Ghysels and Vanroose; u is r and m is w where M is the identity.

    With a folded-in M, u and q do not exist as vectors: pass m in their place.
    """
    cdef object keep_more

    def __init__(self, x, r, u, w, p, s, z, q, m, n, weights, inverse, sums):
        self._bind(x, r, u, w, p, s, weights, inverse, sums)
        self.keep_more = (z, q, m, n)
        self.v.z, self.v.q = doubles(z, "z", self.v.n), doubles(q, "q", self.v.n)
        self.v.m, self.v.n_ = doubles(m, "m", self.v.n), doubles(n, "n", self.v.n)

    def step(self, double alpha, double beta):
        """p s z q by beta, x r u w by alpha, m = M^-1 w if folded in; r.r, r.u and w.u."""
        fb_pipelined(&self.v, alpha, beta, self.sums)

    def refresh(self):
        """m = M^-1 w if folded in, and the three sums, of vectors that were set anew."""
        fb_pipelined_sums(&self.v, self.sums)
