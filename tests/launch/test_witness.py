"""Who died first is known from the connections of the ranks."""

import contextlib
import os
import platform
import socket
import subprocess
import sys
import time

import msgspec
import pytest

from fembench.launch.witness import HEARD, Witness, own_addresses

RANK = """
import ctypes, resource, sys, time
import msgspec
from fembench.launch.witness import RankLine, WitnessAddress

if sys.argv[3] == "few files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
line = RankLine(msgspec.json.decode(sys.argv[1], type=WitnessAddress), int(sys.argv[2]))
if sys.argv[3].startswith("raised"):
    line.say(sys.argv[3])
if sys.argv[3] in ("leaves", "raised one"):
    line.say_goodbye()
print("ready", flush=True)
if sys.argv[3] == "computes":
    ctypes.PyDLL(None).sleep(60)  # as a kernel that keeps the interpreter to itself
time.sleep(60)
"""


@contextlib.contextmanager
def ranks(witness, *manners):
    """Processes that have called the witness; they are killed at the end."""
    at = msgspec.json.encode(witness.at).decode()
    found = []
    try:
        for rank, manner in enumerate(manners):
            line = [sys.executable, "-c", RANK, at, str(rank), manner]
            found.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
        for process in found:
            assert process.stdout.readline() == "ready\n"
        yield found
    finally:
        for process in found:
            process.kill()
            process.communicate()


def call(witness):
    return socket.create_connection(("127.0.0.1", witness.at.port), 5)


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("remote", [False, True])
def test_deaths_are_noted_in_their_order_and_ranks_that_said_goodbye_are_not_among_them(remote):
    with Witness(remote=remote) as witness, ranks(witness, "waits", "waits", "leaves", "waits") as processes:
        assert witness.deaths == []
        for rank in (1, 2, 3, 0):
            processes[rank].kill()
            processes[rank].wait()
    assert [(death.rank, death.host) for death in witness.deaths] == [(r, platform.node()) for r in (1, 3, 0)]


def test_a_rank_is_seen_to_die_that_computes_and_never_runs_python():
    with Witness(remote=False) as witness, ranks(witness, "computes", "waits") as processes:
        time.sleep(0.1)
        assert (witness.deaths, witness.heard) == ([], 2)
        processes[0].terminate()
        wait_for(lambda: witness.deaths)
        assert [death.rank for death in witness.deaths] == [0]


def test_a_rank_that_ends_its_job_says_why_in_one_line_whether_it_leaves_or_dies():
    with Witness(remote=False) as witness, ranks(witness, "raised one", "raised two\nmore", "waits"):
        wait_for(lambda: (witness.heard, witness.left) == (3, 1))
    assert witness.words[:1] == ["raised one"]
    assert sorted(witness.words) == ["raised one", "raised two"]
    assert sorted(death.rank for death in witness.deaths) == [1, 2]


def test_a_rank_keeps_its_connection_above_other_files_where_it_may_open_so_many():
    with Witness(remote=False) as witness, ranks(witness, "waits", "few files") as processes:
        numbers = [{int(n) for n in os.listdir(f"/proc/{process.pid}/fd")} for process in processes]
        assert [max(found) >= 1000 for found in numbers] == [True, False]
        assert os.readlink(f"/proc/{processes[0].pid}/fd/{max(numbers[0])}").startswith("socket:")
        assert witness.heard == 2


@pytest.mark.parametrize("said", [b"", b"secret 0 n1\n", b"\xff\xff \n", b"x" * 1000])
def test_a_stranger_is_not_taken_for_a_rank(said):
    with Witness(remote=False) as witness, call(witness) as stranger:
        stranger.sendall(said)
        with contextlib.suppress(OSError):  # it is closed already
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
    assert (witness.deaths, witness.heard) == ([], 0)


def test_a_rank_that_cannot_be_heard_in_time_is_not_taken_for_dead():
    """It gives up, and says so."""
    with Witness(remote=False) as witness, call(witness) as line:
        line.sendall(f"{witness.at.secret} 0 n1\ngoodbye\n".encode())
        assert line.recv(100) == HEARD
    assert (witness.deaths, witness.heard) == ([], 1)


def test_ranks_of_this_machine_alone_are_listened_to_from_this_machine_alone():
    with Witness(remote=False) as witness:
        assert witness.at.addresses == ()
        assert witness._server.getsockname()[0] == "127.0.0.1"
    addresses = own_addresses(os.uname().nodename)
    assert addresses[-1] == os.uname().nodename
    assert not any(address.startswith("127.") for address in addresses)
