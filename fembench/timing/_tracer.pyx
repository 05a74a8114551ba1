# cython: language_level=3, binding=False, boundscheck=False, wraparound=False
"""The tracer in C: spans by phase number, stamped without a Python object being made."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t

import numpy as np

from fembench.records.phases import NAMES

cdef extern from "ticks.h" nogil:
    int FB_TSC, FB_MONOTONIC, FB_MONOTONIC_RAW, FB_REALTIME, FB_THREAD, FB_COUNTER
    int fb_has_tsc()
    int64_t fb_begin(int clock)
    int64_t fb_end(int clock)
    int64_t fb_tsc_begin()
    int64_t fb_pair(int tries, int64_t *ticks, int64_t *raw_ns)
    int64_t fb_gettimeofday()
    ctypedef double (*fb_seconds)()

cdef struct Event:
    int16_t phase
    int16_t message
    int32_t iteration
    int64_t begin
    int64_t end

EVENT_TICKS = np.dtype([("phase", "i2"), ("message", "i2"), ("iteration", "i4"), ("begin", "i8"), ("end", "i8")])
EVENT_SECONDS = np.dtype([("phase", "i4"), ("iteration", "i4"), ("begin", "f8"), ("end", "f8"), ("message", "i4")])
CODES = {
    "tsc": FB_TSC,
    "perf_counter_ns": FB_MONOTONIC,
    "monotonic_raw": FB_MONOTONIC_RAW,
    "time_ns": FB_REALTIME,
    "thread_time_ns": FB_THREAD,
    "counter": FB_COUNTER,
}
cdef enum:
    DEPTH = 16  # spans open at once
    MESSAGES = 32767  # different ones that spans can name
    LEVELS = 32  # sums by level, 0 for spans of none


def has_tsc() -> bool:
    """True where this processor has a counter that a program may read."""
    return bool(fb_has_tsc())


def read_tsc() -> int:
    """The counter, without waiting for earlier instructions."""
    return fb_tsc_begin()


def paired_reading(int tries=200) -> tuple[int, int, int]:
    """(ticks, CLOCK_MONOTONIC_RAW in ns, uncertainty in ns) at one moment."""
    cdef int64_t ticks = 0, raw = 0
    cdef int64_t window = fb_pair(tries, &ticks, &raw)
    return ticks, raw, window


def back_to_back(str clock_name, int n):
    """(n,) int64 ticks between neighbouring readings of one clock in a C loop."""
    cdef int code = CODES[clock_name]
    stamps = np.zeros(n + 1, dtype=np.int64)
    stamps.fill(0)
    cdef int64_t *t = <int64_t *><size_t>stamps.ctypes.data
    cdef int i
    for i in range(n + 1):
        t[i] = fb_begin(code)
    return np.diff(stamps)


def costs_in_c(str timer, int n, size_t address=0):
    """(n,) int64 ticks between two plain readings of the counter around each call of a timer, all in C.

    `timer` is a clock of CODES, "rdtsc" (nothing but the second reading), "gettimeofday", or
    "MPI_Wtime" with the address of that function.
    """
    if timer not in ("rdtsc", "gettimeofday", "MPI_Wtime") and timer not in CODES:
        raise ValueError(f"no timer {timer!r} in C")
    if timer == "MPI_Wtime" and not address:
        raise ValueError("MPI_Wtime needs the address of the function")
    cdef int code = CODES.get(timer, -1)
    cdef int kind = 0 if timer == "rdtsc" else 1 if timer == "gettimeofday" else 2 if timer == "MPI_Wtime" else 3
    cdef fb_seconds wtime = <fb_seconds>address
    cdef int64_t before
    cdef int i
    out = np.zeros(n, dtype=np.int64)
    out.fill(0)
    cdef int64_t *ticks = <int64_t *><size_t>out.ctypes.data
    for i in range(n):
        before = fb_tsc_begin()
        if kind == 1:
            fb_gettimeofday()
        elif kind == 2:
            wtime()
        elif kind == 3:
            fb_end(code)
        ticks[i] = fb_tsc_begin() - before
    return out


def costs_of_calls(object call, int n):
    """(n,) int64 ticks between two plain readings of the counter around each `call()`."""
    cdef int64_t before
    cdef int i
    out = np.zeros(n, dtype=np.int64)
    out.fill(0)
    cdef int64_t *ticks = <int64_t *><size_t>out.ctypes.data
    for i in range(n):
        before = fb_tsc_begin()
        call()
        ticks[i] = fb_tsc_begin() - before
    return out


@cython.final
cdef class Tracer:
    """Accumulates the time of each phase; stores single spans while `recording`.

    `begin(phase)` and `end(phase)` nest; a phase is not inside itself. A stored span carries the
    value of `iteration` at its end. A full buffer stores no more, counts what it `dropped`, and the
    sums by phase go on. Times leave in seconds; `events()` counts from `origin` (ticks).
    """

    cdef int clock, n_phases
    cdef uint64_t open_phases
    cdef int stack_phase[DEPTH]
    cdef int64_t stack_begin[DEPTH]
    cdef int64_t *sums
    cdef int64_t *spans
    cdef Event *buffer
    cdef int64_t *of_levels
    cdef object _sums, _spans, _buffer, _of_levels
    cdef readonly str clock_name
    cdef readonly int depth  # spans open now
    cdef readonly Py_ssize_t capacity, stored, dropped
    cdef public bint recording
    cdef public int iteration
    cdef public int message  # index into `messages` of what the span that ends next carries
    cdef readonly list messages  # (partners, bytes); the first is none
    cdef int _level
    cdef public tuple level_nodes  # mesh nodes of the levels 1, 2, … of the preconditioner
    cdef public int64_t origin
    cdef public double ticks_per_second

    def __init__(self, str clock_name="perf_counter_ns", Py_ssize_t capacity=0, double ticks_per_second=1e9):
        if clock_name not in CODES or (clock_name == "tsc" and not fb_has_tsc()):
            raise ValueError(f"no clock {clock_name!r} on this processor; known: {', '.join(CODES)}")
        self.clock_name = clock_name
        self.clock = CODES[clock_name]
        self.ticks_per_second = ticks_per_second
        self.n_phases = len(NAMES)
        self.messages = [((), ())]
        self.message = 0
        self._sums = np.zeros(self.n_phases, dtype=np.int64)
        self._spans = np.zeros(self.n_phases, dtype=np.int64)
        self.sums = <int64_t *><size_t>self._sums.ctypes.data
        self.spans = <int64_t *><size_t>self._spans.ctypes.data
        self._of_levels = np.zeros((LEVELS, self.n_phases), dtype=np.int64)
        self.of_levels = <int64_t *><size_t>self._of_levels.ctypes.data
        self._level, self.level_nodes = 0, ()
        self._buffer = np.empty(0, dtype=EVENT_TICKS)
        self.recording = False
        self.iteration = -1
        self.reset()
        self.make_room(0, max(capacity, 0))
        self.origin = self.now()

    def now(self):
        """Ticks of the tracer's clock."""
        return fb_end(self.clock)

    cpdef begin(self, int phase):
        """Open a span."""
        if phase < 0 or phase >= self.n_phases or self.depth == DEPTH or (self.open_phases >> phase) & 1:
            raise _misuse(self, "begin", phase)
        self.open_phases |= <uint64_t>1 << phase
        self.stack_phase[self.depth] = phase
        self.depth += 1
        self.stack_begin[self.depth - 1] = fb_begin(self.clock)

    cpdef end(self, int phase):
        """Close the span opened last, which must be of this phase."""
        cdef int64_t now = fb_end(self.clock)
        if self.depth == 0 or self.stack_phase[self.depth - 1] != phase:
            raise _misuse(self, "end", phase)
        self.depth -= 1
        self.open_phases &= ~(<uint64_t>1 << phase)
        self._keep(phase, self.stack_begin[self.depth], now)

    def enter(self, int level, int phase):
        """Close the span of this phase and open another: it and those after it belong to this level."""
        self.end(phase)
        self._level = min(max(level, 0), LEVELS - 1)
        self.begin(phase)

    def add(self, int phase, int64_t begin, int64_t end):
        """Count a span that was stamped with `now()` elsewhere."""
        if phase < 0 or phase >= self.n_phases:
            raise _misuse(self, "add", phase)
        self._keep(phase, begin, end)

    cdef inline void _keep(self, int phase, int64_t begin, int64_t end) noexcept:
        cdef Event *event
        self.sums[phase] += end - begin
        self.spans[phase] += 1
        self.of_levels[self._level * self.n_phases + phase] += end - begin
        if not self.recording:
            return
        if self.stored == self.capacity:
            self.dropped += 1
            return
        event = self.buffer + self.stored
        event.phase = phase
        event.message = self.message
        event.iteration = self.iteration
        event.begin = begin
        event.end = end
        self.stored += 1

    def reset(self, bint events=True):
        """Sums and counts to zero, open spans forgotten; stored events too unless `events` is false."""
        self._sums.fill(0)
        self._spans.fill(0)
        self._of_levels.fill(0)
        self._level = 0
        self.depth = 0
        self.open_phases = 0
        if events:
            self.stored = 0
            self.dropped = 0

    def carry(self, partners, n_bytes):
        """The number to set `message` to for spans that carry `n_bytes` to or from these ranks."""
        entry = (tuple(partners), tuple(n_bytes))
        if entry not in self.messages:
            if len(self.messages) == MESSAGES:
                return 0
            self.messages.append(entry)
        return self.messages.index(entry)

    def make_room(self, Py_ssize_t kept, Py_ssize_t more):
        """Forget all stored spans but the first `kept`, and those dropped; room for `more` besides."""
        kept = min(kept, self.stored)
        old = self._buffer[:kept]
        self.capacity = kept + more
        self._buffer = np.empty(self.capacity, dtype=EVENT_TICKS)
        self._buffer.fill(0)  # its pages exist before the first span
        self._buffer[:kept] = old
        self.buffer = <Event *><size_t>self._buffer.ctypes.data
        self.stored = kept
        self.dropped = 0

    def ticks(self):
        """(n_phases,) int64 sums of closed spans, a copy."""
        return self._sums.copy()

    def level_ticks(self):
        """(n_levels, n_phases) int64 sums of closed spans by level of the preconditioner."""
        return self._of_levels[1 : 1 + len(self.level_nodes)].copy()

    def seconds(self):
        """(n_phases,) float64 sums of closed spans."""
        return self._sums / self.ticks_per_second

    def counts(self):
        """(n_phases,) int64 numbers of closed spans, a copy."""
        return self._spans.copy()

    def events(self):
        """(stored,) structured array: phase, iteration, begin, end, message; in the order of their ends."""
        kept = self._buffer[: self.stored]
        out = np.empty(self.stored, dtype=EVENT_SECONDS)
        out["phase"] = kept["phase"]
        out["iteration"] = kept["iteration"]
        out["message"] = kept["message"]
        out["begin"] = (kept["begin"] - self.origin) / self.ticks_per_second
        out["end"] = (kept["end"] - self.origin) / self.ticks_per_second
        return out


cdef class Chain:
    """Calls in their order, the time of each step a span of its phase; see `chain` in tracer.py."""

    cdef Tracer tracer
    cdef int n
    cdef int *phases
    cdef int *messages
    cdef tuple calls

    def __cinit__(self, Tracer tracer, steps, messages):  # None: no stamps
        self.tracer, self.n = tracer, len(steps)
        self.calls = tuple(tuple(calls) for _, *calls in steps)
        self.phases = <int *>PyMem_Malloc((self.n or 1) * sizeof(int))
        self.messages = <int *>PyMem_Malloc((self.n or 1) * sizeof(int))
        if not self.phases or not self.messages:
            raise MemoryError
        for k, step in enumerate(steps):
            self.phases[k] = step[0]
            self.messages[k] = messages[k]

    def __dealloc__(self):
        PyMem_Free(self.phases)
        PyMem_Free(self.messages)

    def run(self):
        cdef int k
        cdef double total = 0
        cdef bint any_number = False
        for k in range(self.n):
            if self.tracer is not None:
                self.tracer.begin(self.phases[k])
            for call in <tuple>self.calls[k]:
                value = call()
                if value is not None:
                    total += <double>value
                    any_number = True
            if self.tracer is not None:
                self.tracer.message = self.messages[k]
                self.tracer.end(self.phases[k])
                self.tracer.message = 0
        return total if any_number else None


cdef object _misuse(Tracer tracer, str call, int phase):
    """What is wrong with a call of begin, end or add."""
    if phase < 0 or phase >= tracer.n_phases:
        return RuntimeError(f"tracer: {call}({phase}): phases are 0 … {tracer.n_phases - 1}")
    inside = [NAMES[tracer.stack_phase[i]] for i in range(tracer.depth)]
    return RuntimeError(f"tracer: {call}({NAMES[phase]}) does not nest; open spans: {inside or 'none'}")
