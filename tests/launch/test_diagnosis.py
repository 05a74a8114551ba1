"""How the end of a job is understood, from what its ranks and its launcher printed."""

import pytest
from printed import RULE, printed

from fembench.base.errors import UnsharedError
from fembench.launch.end import diagnosis
from fembench.launch.job import APART, REFUSED, UNSHARED, StartedRank
from fembench.launch.run_job import JobEnd
from fembench.launch.witness import Death

THREE_HOSTS = [StartedRank(f"n{1 + rank // 2}", 4706 + rank) for rank in range(6)]
TWO_HOSTS = [StartedRank("n1", 1), StartedRank("n2.cluster.org", 1)]
FIRST, DEATHS = [Death(1, "n1")], [Death(3, "n2", 0.09), Death(4, "n3", 0.2)]
BEREFT = StartedRank("n1", 21856)
AT_ONCE = [Death(0, "n1"), Death(1, "n1", 0.003), Death(3, "n2", 0.003), Death(2, "n2", 0.26)]
KILLED, GONE = "was ended by signal 9 (Killed)", "crashed or was ended"
ONE_HOST = printed.MPICH_5_STATUSES.replace("139\n[n2] 0,9", "9,0").replace(
    "Segmentation fault (signal 11", "Killed (signal 9"
)
MEMORY = ": the job's memory limit was reached"


@pytest.mark.parametrize(
    ("text", "started", "deaths", "message"),
    [
        (printed.KILLED, (), (), f"rank 1 on vm {KILLED}"),
        (printed.MPICH, (), (), f"rank 2 on node7 {KILLED}"),
        (printed.MPICH_5, (), (), f"the rank that was process 24435 on node7 {KILLED}"),
        (printed.DISCONNECTED, (), (), f"a rank on n2 {GONE}: a rank on n1 lost its connection to it"),
        (printed.DISCONNECTED, TWO_HOSTS, (), f"rank 1 on n2 {GONE}"),  # its only rank
        (printed.MPICH_5_CODE, THREE_HOSTS, (), f"rank 5 on n3 {KILLED}"),
        (printed.SRUN_KILLED, THREE_HOSTS, (), f"rank 5 on n3 {KILLED}"),
        (printed.SRUN_MEMORY, THREE_HOSTS, (), f"rank 5 on n3 {KILLED}{MEMORY}"),
        (printed.DISCONNECTED, THREE_HOSTS, DEATHS, f"rank 3 on n2 {GONE}"),
        (printed.DISCONNECTED.partition("\0")[2], THREE_HOSTS, DEATHS, f"rank 3 on n2 {GONE}"),
        (printed.BEREAVED, THREE_HOSTS, [*FIRST, *DEATHS], f"rank 3 on n2 {GONE}"),
        (printed.BEREAVED, THREE_HOSTS, FIRST, f"rank 1 on n1 {GONE}"),
        (printed.BEREAVED, THREE_HOSTS, AT_ONCE, f"rank 0 on n1 {GONE}"),
        (printed.ABORTED, THREE_HOSTS, AT_ONCE, f"rank 1 on n1 or rank 3 on n2 {GONE}"),
        (
            printed.DISCONNECTED + printed.ABORTED,
            [*THREE_HOSTS[:1], BEREFT, *THREE_HOSTS[2:]],
            AT_ONCE,
            f"rank 3 on n2 {GONE}",
        ),
        (printed.INTEL, THREE_HOSTS, DEATHS, f"rank 3 on n2 {GONE}"),
        (printed.INTEL, THREE_HOSTS, FIRST, f"rank 1 on n1 {KILLED}"),
        (printed.MPICH_5_CODE, THREE_HOSTS, [Death(5, "n3")], f"rank 5 on n3 {KILLED}"),
        (printed.MPICH_5_CODE, THREE_HOSTS, DEATHS, f"rank 3 on n2 {GONE}"),
        (printed.INTEL, THREE_HOSTS, (), f"a rank on n1 or n3 {KILLED}"),
        (
            printed.MPICH_5_STATUSES,
            THREE_HOSTS,
            FIRST,
            "rank 1 on n1 was ended by signal 11 (Segmentation fault)",
        ),
        (printed.MPICH_5_STATUSES, THREE_HOSTS, DEATHS, f"rank 3 on n2 {KILLED}"),
        (
            printed.MPICH_5_STATUSES,
            (),
            DEATHS,
            f"rank 3 on n2 {GONE}",
        ),  # whose place in the list is not known
        (printed.MPICH_5_STATUSES, THREE_HOSTS, (), f"a rank on n1 or n2 {GONE}"),
        (ONE_HOST, (), FIRST, f"rank 1 on n1 {KILLED}"),
        (ONE_HOST, (), (), f"a rank on n1 {KILLED}"),
    ],
)
def test_a_killed_rank_is_named_by_the_text_its_place_and_its_connection(text, started, deaths, message):
    assert diagnosis(9, text, started, deaths) == ("killed", message)


def test_a_rank_that_only_its_connection_showed_to_die_is_named_with_what_was_printed():
    said = "[n1:7] *** An error occurred in MPI_Send"
    text = f"{said}\n[n1:7] *** on communicator MPI_COMM_WORLD\n"
    assert diagnosis(1, text, deaths=DEATHS) == ("crashed", f"rank 3 on n2 {GONE}: {said}")
    assert diagnosis(1, "", deaths=DEATHS)[1].endswith(": it printed nothing")


def test_a_rank_that_raised_is_named_and_not_one_that_was_ended_with_it():
    text = "fembench: rank 1 on n1 raised ValueError: no\n"
    assert diagnosis(3, text, deaths=DEATHS) == ("crashed", "rank 1 on n1 raised ValueError: no")


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("[mpiexec@vm] match_arg (lib/utils/args.c:166): unrecognized argument foo\nUsage: mpiexec", "foo"),
        ("srun: unrecognized option '--foo'\nTry \"srun --help\" for more information", "--foo"),
        ("srun: invalid option -- 'Z'\n", "Z"),
        ("mpiexec: Error: unknown option \"--foo\"\nType 'mpiexec --help' for usage.", "--foo"),
        ("usage: flux run [OPTIONS]\nflux-run: error: unrecognized arguments: --foo", "--foo"),
        ("srun: option '--mem' requires an argument\n", "--mem"),
        (printed.UNKNOWN, "rankfile:file=/tmp/a:b/rf"),
        (printed.NO_PROGRAM.replace("/no/such/python", "--foo"), "--foo"),
        (printed.MPICH_PROGRAM.replace("/no/such", "foo"), "foo"),
    ],
)
def test_an_option_that_a_launcher_does_not_take_is_named_as_it_names_it(text, option):
    message = f"srun does not take {option}: correct its options (--launcher-options)"
    assert diagnosis(1, text, launcher="srun") == ("input", message)
    assert diagnosis(1, text, THREE_HOSTS, launcher="srun")[1] != message  # ranks ran: the words are theirs


@pytest.mark.parametrize(
    "text", [printed.PMIX + printed.SRUN_KILLED, printed.OPEN_MPI_4_SRUN, printed.NO_PLUGIN]
)
def test_ranks_that_cannot_find_each_other_are_told_from_other_failures(text):
    kind, message = diagnosis(1, text)
    assert (kind, message.isprintable()) == (APART, True)


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
        (
            printed.TMPDIR,
            "Open MPI cannot make the folder /tmp/file/ompi.1371 (Not a directory): let TMPDIR name",
        ),
        (printed.LEFT, "Open MPI cannot start beside what a killed job left: remove ompi.*"),
        (
            printed.NO_INTERFACE,
            "Open MPI finds no network interface on this host: set up at least the loopback",
        ),
        (printed.TWICE, "/tmp/h: host vm is listed more than once; expected one line per host"),
        (printed.INTEL_PROXY, "Intel MPI could not start its proxy on host n7: `ssh n7` must"),
        (printed.SRUN_PROCESSORS, "the hosts of Slurm job 7 have fewer processors than ranks"),
        (printed.SRUN_NODES, "srun could not start the ranks in job 7 (Requested node"),
        (printed.NO_FOLDER, "host n2 does not have the folder /tmp/here"),
        (printed.MPICH_FOLDER, "host n2 does not have the folder /tmp/here"),
        (printed.MPICH_SLOTS, "MPICH does not know 'slots' in a host file; expected lines such as 'host1:2'"),
    ],
)
def test_what_a_launcher_refuses_is_the_users_to_mend_and_said_in_one_line(text, words):
    kind, message = diagnosis(213, text)
    assert kind in REFUSED
    assert message.startswith(words)
    assert message.isprintable()


def test_a_message_of_open_mpi_that_is_not_known_is_cut_to_its_first_sentence_and_what_it_names():
    text = printed.UNKNOWN.replace("unrecognized qualifier", "unheard-of word")
    said = "The mapping request contains an unheard-of word: Request: rankfile:file=/tmp/a:b/rf"
    assert diagnosis(255, text) == ("crashed", f"the launcher ended with exit status 255: {said}")


def test_what_a_launcher_prints_behind_an_error_is_not_part_of_it():
    text = f"fembench: rank 0 on n1 raised InputError: no such folder{RULE}\nprterun has exited"
    assert diagnosis(3, text) == ("input", "no such folder")


def test_a_host_without_the_folder_is_an_error_of_its_own_kind_however_it_is_worded():
    text = "fembench: rank 1 on n2 raised UnsharedError: host n2 cannot read /r (No such file or directory)"
    assert diagnosis(3, text) == (UNSHARED, "host n2 cannot read /r (No such file or directory)")
    assert diagnosis(1, printed.NO_FOLDER)[0] == diagnosis(1, printed.MPICH_FOLDER)[0] == UNSHARED
    with pytest.raises(UnsharedError, match="no folder"):
        JobEnd(None, UNSHARED, "no folder", 2, "").content()


def test_anything_else_shows_the_last_line_that_says_something():
    assert diagnosis(1, "bash: oops\n------\n\n")[1] == "the launcher ended with exit status 1: bash: oops"
    assert "nothing" in diagnosis(1, "")[1]
    assert diagnosis(1, "oops\n[mpiexec@n1] Exit codes: [n1] 256,0\n[n2] 0\n")[1].endswith(": oops")
