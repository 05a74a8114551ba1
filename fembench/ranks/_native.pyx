# cython: language_level=3, binding=False, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The MPI calls of an iteration, made from C by the addresses of MPI's functions.

mpi4py looks at every argument of every call and lets go of the interpreter's lock around it: half a
microsecond each, several times an iteration. What never changes is bound here once. Handles are passed by
value as 64-bit words: wider than they are in some MPIs (a C int), which every calling convention allows.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

ctypedef int (*all_f)(int, void *) noexcept
ctypedef int (*wait_f)(int, void *, void *) noexcept
ctypedef int (*send_f)(const void *, int, intptr_t, int, int, intptr_t) noexcept
ctypedef int (*receive_f)(void *, int, intptr_t, int, int, intptr_t, void *) noexcept
ctypedef int (*reduce_f)(const void *, void *, int, intptr_t, intptr_t, intptr_t) noexcept


cdef object failed(int code):
    from mpi4py import MPI

    return MPI.Exception(code)


cdef class Requests:
    """Persistent requests, started together and waited for together.

    startall, waitall: addresses of MPI_Startall and MPI_Waitall. handles: bytes of as many MPI_Request as
    `count`; status_bytes: of one MPI_Status. Raises MPI.Exception where MPI reports an error.
    """
    cdef all_f startall
    cdef wait_f waitall
    cdef int count
    cdef void *handles
    cdef void *statuses

    def __cinit__(self, size_t startall, size_t waitall, bytes handles, int count, size_t status_bytes):
        self.startall, self.waitall, self.count = <all_f>startall, <wait_f>waitall, count
        self.handles = PyMem_Malloc(len(handles) or 1)
        self.statuses = PyMem_Malloc(status_bytes * count or 1)
        if not self.handles or not self.statuses:
            raise MemoryError
        memcpy(self.handles, <const char *>handles, len(handles))

    def __dealloc__(self):
        PyMem_Free(self.handles)
        PyMem_Free(self.statuses)

    def start(self):
        cdef int code = self.startall(self.count, self.handles)
        if code:
            raise failed(code)

    def wait(self):
        cdef int code = self.waitall(self.count, self.handles, self.statuses)
        if code:
            raise failed(code)


cdef class Sum:
    """Replaces the doubles in a buffer by their sums over the ranks of a communicator.

    allreduce: address of MPI_Allreduce; type, op, comm: handles of doubles, of the sum and of the ranks.
    Raises MPI.Exception where MPI reports an error.
    """
    cdef reduce_f allreduce
    cdef intptr_t type, op, comm
    cdef double[::1] values
    cdef double *own

    def __cinit__(self, size_t allreduce, double[::1] values, intptr_t type, intptr_t op, intptr_t comm):
        self.allreduce, self.values = <reduce_f>allreduce, values
        self.type, self.op, self.comm = type, op, comm
        self.own = <double *>PyMem_Malloc(values.shape[0] * sizeof(double) or 1)
        if not self.own:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.own)

    def run(self):
        cdef int code
        memcpy(self.own, &self.values[0], self.values.shape[0] * sizeof(double))
        code = self.allreduce(
            self.own, &self.values[0], <int>self.values.shape[0], self.type, self.op, self.comm
        )
        if code:
            raise failed(code)


cdef class Message:
    """One blocking message of doubles to or from a rank.

    function: address of MPI_Send or of MPI_Recv, as the method that will be called needs. type, comm: handles
    of doubles and of the ranks; status_bytes: of one MPI_Status. Raises MPI.Exception where MPI reports an error.
    """
    cdef size_t function
    cdef intptr_t type, comm
    cdef double[::1] values
    cdef int rank, tag
    cdef void *status

    def __cinit__(
        self, size_t function, double[::1] values, int rank, int tag, intptr_t type, intptr_t comm,
        size_t status_bytes,
    ):
        self.function, self.values, self.rank, self.tag = function, values, rank, tag
        self.type, self.comm = type, comm
        self.status = PyMem_Malloc(status_bytes or 1)
        if not self.status:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.status)

    def send(self):
        cdef int code = (<send_f>self.function)(
            &self.values[0], <int>self.values.shape[0], self.type, self.rank, self.tag, self.comm
        )
        if code:
            raise failed(code)

    def receive(self):
        cdef int code = (<receive_f>self.function)(
            &self.values[0], <int>self.values.shape[0], self.type, self.rank, self.tag, self.comm, self.status
        )
        if code:
            raise failed(code)
