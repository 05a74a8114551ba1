"""A mistyped command is refused in one line, exit status 2, with the nearest word that exists."""

import pytest

from fembench.cli.main import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("repot results", "unknown verb 'repot'; did you mean 'report'?; see fembench --help"),
        ("qqq", "unknown verb 'qqq'; see fembench --help"),
        ("--verson", "unknown option '--verson'; did you mean '--version'?; see fembench --help"),
        ("", "expected a verb, such as 'fembench doctor'; see fembench --help"),
        (
            "run m1 --tolerence 1",
            "unknown option '--tolerence'; did you mean '--tolerance'?; see fembench run --help",
        ),
        ("run m1 --zzz=1", "unknown option '--zzz'; see fembench run --help"),
        ("run m1 m2", "unknown argument 'm2'; see fembench run --help"),
        ("run", "missing MESH; see fembench run --help"),
        ("run m1 --ranks", "--ranks: expected one argument; see fembench run --help"),
        ("run m1 --ranks two", "--ranks two: expected a whole number of at least 1"),
        ("run m1 --seconds inf", "--seconds inf: expected a finite number of at least 0"),
        ("run m1 --tolerance nan", "--tolerance nan: expected a finite number of at least 0"),
        ("run m1 --tolerance 1e999", "--tolerance 1e999: expected a finite number of at least 0"),
        ("run m1 --tolerance -1", "--tolerance -1: expected a number of at least 0"),
        ("run m1 --tolerance small", "--tolerance small: expected a number of at least 0"),
        ("run m1 --solver pets", "--solver pets: expected own or petsc; did you mean 'petsc'?"),
        ("mesh bx", "ACTION bx: expected box, info or convert; did you mean 'box'?"),
        (
            "mesh info m1 --jason",
            "unknown option '--jason'; did you mean '--json'?; see fembench mesh --help",
        ),
        ("run m1 --ranks 99999999999999", "--ranks 99999999999999: expected a whole number up to 2147483647"),
        ("run m1 --np 4", "unknown option '--np'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 -np=4", "unknown option '-np'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 --ntasks 4", "unknown option '--ntasks'; did you mean '--ranks'?; see fembench run --help"),
        ("run m1 --nodes 2", "unknown option '--nodes'; did you mean '--hosts'?; see fembench run --help"),
        (
            "run m1 --ppn 2",
            "unknown option '--ppn'; did you mean '--per-node'?; see fembench run --help",
        ),
        (
            "sweep -machinefile h",
            "unknown option '-machinefile'; did you mean '--hostfile'?; see fembench sweep --help",
        ),
        ("--completion bsh", "--completion bsh: expected bash, zsh, fish or tcsh; did you mean 'bash'?"),
    ],
)
def test_a_slip_is_answered_with_the_nearest_word(capsys, words, said):
    assert main(words.split()) == 2
    assert capsys.readouterr() == ("", f"fembench: {said}\n")
