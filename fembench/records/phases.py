"""The list of phases, the only place that spells their names.

A phase is a named, timed region of a run; its number is the index into every array "by
phase". No moment of a run belongs to two phases, except for `CG`, which contains its
parts; the remainder is the cost of the loop.

New phases go to the end, so that the numbers in older records remain valid.
"""

NAMES = (
    "start-up",
    "read",
    "partition",
    "distribute",
    "interface",
    "assembly",
    "cg",
    "cg.spmv_interior",
    "cg.spmv_interface",
    "cg.send",
    "cg.wait",
    "cg.unpack",
    "cg.dot",
    "cg.allreduce",
    "cg.axpy",
    "cg.precond",
    "verify",
    "output",
    "sync",
    "between sets",
)
(
    START_UP,
    READ,
    PARTITION,
    DISTRIBUTE,
    INTERFACE,
    ASSEMBLY,
    CG,
    SPMV_INTERIOR,
    SPMV_INTERFACE,
    SEND,
    WAIT,
    UNPACK,
    DOT,
    ALLREDUCE,
    AXPY,
    PRECOND,
    VERIFY,
    OUTPUT,
    SYNC,
    BETWEEN,
) = range(len(NAMES))

LOOP = f"{NAMES[CG]}.loop"  # CG beside its parts, of which it is then the rest
IN_GRAPHS = (*NAMES[:CG], LOOP, *NAMES[CG + 1 :])  # the names where it stands so: in graphs

# Groups of phases to add up
CG_PARTS = tuple(k for k, name in enumerate(NAMES) if name.startswith("cg."))
TOP_LEVEL = tuple(k for k in range(len(NAMES)) if k not in CG_PARTS)  # they cover the program
PRODUCT_PARTS = (SPMV_INTERIOR, SPMV_INTERFACE)
VECTOR_PARTS = (DOT, AXPY, PRECOND)
CG_COMPUTING = (*PRODUCT_PARTS, *VECTOR_PARTS)
COMPUTING = (ASSEMBLY, *CG_COMPUTING)
OWN_MESSAGES = (SEND, UNPACK)  # a rank's own cost of its messages
WAITING = (WAIT, ALLREDUCE)  # for other ranks, within CG
EXCHANGE_PARTS = (SEND, WAIT, UNPACK)  # point-to-point messages
COMMUNICATION = (*EXCHANGE_PARTS, ALLREDUCE)  # within CG
BARRIERS = (SYNC, BETWEEN)
