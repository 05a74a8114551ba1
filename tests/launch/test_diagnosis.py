"""How the end of a job is understood, from what its ranks and its launcher printed."""

import printed
import pytest

from fembench.launch.diagnosis import diagnosis


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (printed.KILLED, "rank 1 on vm was ended by signal 9 (Killed)"),
        (printed.MPICH, "rank 2 on node7 was ended by signal 9 (Killed)"),
        (printed.MPICH_5, "the rank that was process 24435 on node7 was ended by signal 9 (Killed)"),
        (printed.DISCONNECTED, "a rank on n2 crashed or was ended: a rank on n1 lost its connection to it"),
    ],
)
def test_a_killed_rank_is_named(text, message):
    assert diagnosis(137, text) == ("killed", message)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (printed.SLOTS, "3 ranks, but the hosts have fewer slots: ask for fewer ranks, or for more slots"),
        (printed.NOT_ALLOCATED, "host n7 is not in this job's allocation: correct the host file"),
        (printed.FILLED, "no free slot on the hosts of this job's allocation"),
        (printed.OVERLOAD, "4 ranks on a host with fewer cores: ask for fewer ranks"),
        (printed.UNRESOLVED, "host n7 does not resolve: correct its name in the host file"),
        (printed.UNREACHED, "host 127.0.0.9 cannot be reached (Connection refused): `ssh 127.0.0.9` must"),
        (printed.DAEMON, "Open MPI could not start its daemon on host n7: `ssh n7` must need no password"),
        (printed.NO_PROGRAM, "/no/such/python does not exist on host vm"),
        (printed.MPICH_PROGRAM, "/no/such does not exist on host vm"),
        (printed.NO_SLOT, "the rankfile names slot 7, which its host does not have"),
        (printed.HOST_LINE, "/dev/fd/63: cannot read line 1; expected lines such as 'host1 slots=2'"),
        (printed.TWICE, "/tmp/h: host vm is listed more than once; expected one line per host"),
        (printed.MPICH_SLOTS, "MPICH does not know 'slots' in a host file; expected lines such as 'host1:2'"),
    ],
)
def test_what_a_launcher_refuses_is_the_users_to_mend_and_said_in_one_line(text, words):
    kind, message = diagnosis(213, text)
    assert kind == "input"
    assert message.startswith(words)
    assert message.isprintable()


def test_a_message_of_open_mpi_that_is_not_known_is_cut_to_its_first_sentence_and_what_it_names():
    said = "The mapping request contains an unrecognized qualifier: Request: rankfile:file=/tmp/a:b/rf"
    assert diagnosis(255, printed.UNKNOWN) == ("crashed", f"the job ended with exit status 255: {said}")


def test_a_rank_that_raised_is_named():
    text = "Traceback …\nfembench: rank 3 on n1 raised ValueError: no\nprterun has exited"
    assert diagnosis(3, text) == ("crashed", "rank 3 on n1 raised ValueError: no")


def test_an_input_error_of_one_rank_is_an_input_error():
    assert diagnosis(3, "fembench: rank 0 on n1 raised InputError: cannot write x") == (
        "input",
        "cannot write x",
    )


def test_anything_else_shows_the_last_line_that_says_something():
    assert diagnosis(1, "bash: oops\n------\n\n")[1] == "the job ended with exit status 1: bash: oops"
    assert "nothing" in diagnosis(1, "")[1]
