"""Know which rank of a job died first.

When a rank is killed, launchers name no rank, or one that they ended themselves
afterwards. Therefore every rank holds a connection to the process that started the job,
and says goodbye before it leaves. It connects before it initialises MPI (`rank_start`),
as the rank that its launcher calls it. The kernel closes the connections of a process
that dies, whatever it dies of; the witness notes them in their order. Nothing runs in
the ranks meanwhile. Linux closes the file with the highest number first, so a rank
keeps this connection above those of MPI: otherwise ranks that lose it may end, and be
noted, before it. A rank that ends its job also says here why, because MPICH loses what
it has printed last.

A rank is not seen if it cannot connect (a firewall between its host and this one), or
if the ranks before it use half of the files that this process may open.
"""

import contextlib
import fcntl
import platform
import resource
import secrets
import selectors
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench.launch.job import WITNESS

PATIENCE = 3.0  # seconds that a rank tries an address, in the background
BRIEF = 0.5  # seconds of that for which its program waits
HEARD, GOODBYE = b"heard\n", b"goodbye\n"
LONGEST = 1000  # bytes that a rank says
LONGEST_WORDS = 500  # bytes of that are its last words
NUMBER = 1000  # of the file that is the connection, or a higher one; many hosts allow 1024
SIOCGIFADDR = 0x8915  # linux/sockios.h


class WitnessAddress(msgspec.Struct, frozen=True):
    """Where the witness of a job listens."""

    host: str
    addresses: tuple[str, ...]  # of this host, as others may reach it
    port: int
    secret: str  # that ranks of this job know


@dataclass(frozen=True)
class Death:
    """A rank that ended without a goodbye."""

    rank: int
    host: str  # as it calls itself
    at: float = 0.0  # by time.monotonic()


@dataclass
class _Caller:
    """What a connection has said."""

    text: bytes = b""
    rank: int = -1  # not known yet
    host: str = ""


class Witness:
    """Listens to the ranks of a job until it is closed; a context manager."""

    def __init__(self, *, remote: bool) -> None:
        """`remote`: ranks run on other hosts, too."""
        self.deaths: list[Death] = []  # in their order
        self.heard = 0  # ranks
        self.left = 0  # ranks that have said goodbye
        self.words: list[str] = []  # the last ones of ranks that ended their job
        self.at: WitnessAddress | None = None  # None: it cannot listen here
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._room = most // 2 if most > 0 else sys.maxsize  # negative: no limit
        self._selector = selectors.DefaultSelector()
        self._wake, self._waked = socket.socketpair()
        self._selector.register(self._waked, selectors.EVENT_READ)
        with contextlib.suppress(OSError):
            self._server = _server(remote)
            self._selector.register(self._server, selectors.EVENT_READ)
            name = platform.node()
            port = self._server.getsockname()[1]
            addresses = own_addresses(name) if remote else ()
            self.at = WitnessAddress(name, addresses, port, secrets.token_hex(16))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Witness":
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.send(b".")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        self._wake.close()
        self._waked.close()

    def _listen(self) -> None:
        """Take events in their order, to the last one before the end."""
        over = False
        while True:
            events = self._selector.select(0 if over else None)
            if over and not events:
                return
            for key, _ in events:
                if key.fileobj is self._waked:
                    self._selector.unregister(self._waked)
                    over = True
                elif key.data is None:
                    self._accept()
                else:
                    self._listen_to(key.fileobj, key.data)  # type: ignore[arg-type]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._server.accept()
                if len(self._selector.get_map()) >= self._room:
                    line.close()
                    continue
                line.setblocking(False)
                self._selector.register(line, selectors.EVENT_READ, _Caller())

    def _listen_to(self, line: socket.socket, caller: _Caller) -> None:
        """Read what a rank says, or that it is gone."""
        try:
            while said := line.recv(LONGEST):
                caller.text += said
                if not self._understood(line, caller):
                    return self._forget(line, caller)
        except BlockingIOError:  # nothing more for now
            return None
        except OSError:  # the connection was reset
            pass
        if caller.rank >= 0:
            self.deaths.append(Death(caller.rank, caller.host, time.monotonic()))
        return self._forget(line, caller)

    def _understood(self, line: socket.socket, caller: _Caller) -> bool:
        """Whether the caller is a rank of this job that stays."""
        hello, end, rest = caller.text.partition(b"\n")
        if caller.rank >= 0 or not end:
            return len(caller.text) < LONGEST and not self._leaves(rest)
        secret, rank, host = (hello.split(b" ") + [b"", b""])[:3]
        if not (self.at and secrets.compare_digest(secret, self.at.secret.encode()) and rank.isdigit()):
            return False
        caller.rank = int(rank)
        caller.host = host.decode(errors="replace")
        self.heard += 1
        line.send(HEARD)
        return not self._leaves(rest)

    def _leaves(self, said: bytes) -> bool:
        """Whether a rank has said goodbye; then it is counted."""
        leaves = said == GOODBYE or said.endswith(b"\n" + GOODBYE)
        self.left += leaves
        return leaves

    def _forget(self, line: socket.socket, caller: _Caller) -> None:
        words = caller.text.partition(b"\n")[2].removesuffix(GOODBYE).decode(errors="replace")
        if caller.rank >= 0 and words:
            self.words.append(words.removesuffix("\n"))
        self._selector.unregister(line)
        line.close()


def _server(remote: bool) -> socket.socket:
    """A socket that listens on this host, or on all its addresses."""
    server = socket.create_server(("" if remote else "127.0.0.1", 0), backlog=4096)
    server.setblocking(False)
    return server


def own_addresses(name: str) -> tuple[str, ...]:
    """The addresses of this host, without those that reach itself only; its name last."""
    found = []
    with contextlib.suppress(OSError, UnicodeError):  # no address, or no valid name
        found += socket.gethostbyname_ex(name)[2]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, interface in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                answer = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", interface.encode()))
                found.append(socket.inet_ntoa(answer[20:24]))
    return (*dict.fromkeys(one for one in found if not one.startswith("127.")), name)


class RankLine:
    """The connection of a rank to the witness of its job."""

    def __init__(self, at: WitnessAddress | None, rank: int | None) -> None:
        """Connect in the background, and wait briefly; not at all if one is not known."""
        self.rank = rank if at else None  # that the witness is told
        self._line: socket.socket | None = None
        self._left = False
        self._lock = threading.Lock()
        if at and rank is not None:
            thread = threading.Thread(target=self._connect, args=(at, rank), daemon=True)
            thread.start()
            thread.join(BRIEF)

    def _connect(self, at: WitnessAddress, rank: int) -> None:
        here = ("127.0.0.1",) if platform.node() == at.host else ()
        for address in (*here, *at.addresses):
            line = _connection(address, at, rank)
            if line is None:
                continue
            with self._lock:
                self._line = line
            if self._left:
                self.say_goodbye()
            return

    def say(self, words: str) -> None:
        """The last words of this rank, in one line."""
        said = words.splitlines()[0].encode()[:LONGEST_WORDS] + b"\n"
        with self._lock, contextlib.suppress(OSError):
            if self._line:
                self._line.sendall(said)

    def say_goodbye(self) -> None:
        """From now on, this rank may end."""
        with self._lock:
            self._left = True
            if self._line:
                _hang_up(self._line)
                self._line = None


NO_LINE = RankLine(None, None)


def witness_in(folder: Path) -> WitnessAddress | None:
    """Where the witness of the job in a folder listens; None if that cannot be known."""
    try:
        return msgspec.json.decode((folder / WITNESS).read_bytes(), type=WitnessAddress | None)
    except (OSError, msgspec.DecodeError):
        return None


def _connection(address: str, at: WitnessAddress, rank: int) -> socket.socket | None:
    """A connection that the witness has confirmed; None if this is not its address."""
    try:
        line = socket.create_connection((address, at.port), PATIENCE)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        line.sendall(f"{at.secret} {rank} {platform.node()}\n".encode())
        if line.recv(len(HEARD)) == HEARD:
            return _closed_first(line)
    _hang_up(line)  # or a late witness takes this end for a death
    return None


def _closed_first(line: socket.socket) -> socket.socket:
    """The connection under a high number, or as it was if that is not possible."""
    try:
        number = fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, NUMBER)
    except OSError:
        return line
    with line:
        moved = socket.socket(fileno=number)
        moved.settimeout(line.gettimeout())
    return moved


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.sendall(GOODBYE)
    line.close()
