"""Every shell command in README.md and docs/ runs, or the page gives the reason why it cannot."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import doc_pages
import msgspec
import pytest
from planted_machine import planted_machine

from fembench.base.config import tomllib
from fembench.base.errors import InputError
from fembench.base.plugins import names
from fembench.cli.main import main
from fembench.cli.verbs import build_parser

ROOT = doc_pages.ROOT
ALL = {str(page.relative_to(ROOT)): doc_pages.blocks(page) for page in doc_pages.pages()}
SHELL = [b for found in ALL.values() for b in found if b.language in doc_pages.SHELL]
COMMANDS = {
    name: "\n".join(command for b in found if b.language in doc_pages.SHELL for command in b.run)
    for name, found in ALL.items()
}
# a page whose commands another one runs as they stand is not run again
RUN = [
    name
    for name, commands in COMMANDS.items()
    if commands and not any(commands in others for other, others in COMMANDS.items() if other != name)
]


def test_the_pages_have_commands():
    assert len(SHELL) > 20
    assert "README.md" in RUN


def test_readme_has_no_comments_and_each_of_its_notes_is_of_a_block():
    assert "<!--" not in (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(doc_pages.OF_README) <= {b.name for b in ALL["README.md"]}


OF_STUDIES = ("docs/howto/binary.md", "docs/howto/farm.md")  # pages about what that package brings


@pytest.mark.parametrize("block", SHELL, ids=lambda b: b.place)
def test_a_block_that_is_not_run_gives_a_reason(block):
    assert block.run or len(" ".join(block.marked("not run")).split()) > 1


@pytest.fixture(scope="module")
def parser():
    return build_parser()


@pytest.mark.parametrize("block", SHELL, ids=lambda b: b.place)
def test_every_fembench_command_of_a_page_is_one_that_exists(block, parser):
    if block.place.split(":")[0] in OF_STUDIES and not names("verbs"):
        pytest.skip("fembench-studies is not installed")
    for command in block.commands:
        words = doc_pages.verb_words(command)
        if words and not words[0].startswith("-") and "." not in words[0]:
            try:
                parser.parse_args(words)
            except InputError as error:
                pytest.fail(f"{command}: {error}")


@pytest.mark.parametrize("name", ALL)
def test_no_command_hides_in_a_block_without_a_language(name):
    hidden = [b.place for b in ALL[name] if b.language in ("", "text", "bash", "shell")]
    texts = ["\n".join(b.lines) for b in ALL[name] if b.place in hidden]
    assert not [text for text in texts if re.search(r"^\s*(\$ |fembench |\./run_bench)", text, re.M)]


@pytest.mark.parametrize("name", ALL)
def test_a_toml_block_of_a_page_is_toml(name):
    for block in (b for b in ALL[name] if b.language == "toml"):
        tomllib.loads("\n".join(block.lines))


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A folder with a machine profile, for pages that would otherwise measure one."""
    folder = tmp_path_factory.mktemp("samples")
    profile = msgspec.json.encode(planted_machine([1.0, 0.5], hosts=["fast", "slow"]))
    (folder / "machine.json").write_bytes(profile)
    return folder


WIDTH = 80  # of the reader's terminal


@pytest.fixture
def shell(samples, tmp_path, monkeypatch):
    """A reader's shell in a folder of its own, where ranks may share cores."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FEMBENCH_")]:
        monkeypatch.delenv(name)
    variables = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FEMBENCH_VENV": sys.prefix,
        "SAMPLES": str(samples),
        "COLUMNS": str(WIDTH),
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


PLAIN = re.compile(r"fembench [\w ./,:=+@-]+")  # which no shell changes


def typed(command, capfd):
    """(exit status, what is printed); a plain command runs in this process, which has its imports."""
    if not PLAIN.fullmatch(command):
        line = ["bash", "-o", "pipefail", "-c", command]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(line, **pipes, text=True, timeout=150)
        return done.returncode, done.stdout
    words = command.split()[1:]
    if words[0] == "run" and "--sets" not in words:  # one that is VALID takes more
        words += ["--sets", "2", "--warmups", "0"]
    capfd.readouterr()
    try:
        status = main(words)
    except SystemExit as end:  # of --help
        status = end.code or 0
    return status, "".join(capfd.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_the_commands_of_a_page_run_and_print_no_line_wider_than_a_terminal(
    name, shell, tmp_path, capfd, unrendered
):
    for shared in ("benchmarks", "meshes", "run_bench.sh"):
        (tmp_path / shared).symlink_to(ROOT / shared)
    shutil.copytree(ROOT / "results" / "reference", tmp_path / "results" / "reference")
    busy = False  # whether a run was INVALID, as on a machine too busy: what needs it is refused, and says so
    for block in ALL[name]:
        for file in block.marked("file"):
            (tmp_path / file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        for command in block.run if block.language in doc_pages.SHELL else ():
            status, printed = typed(command, capfd)
            invalid = "INVALID" in printed
            accepted = status == 0 or (invalid and (status == 1 or (busy and status == 2)))
            assert accepted, f"{block.place}: {command}\n{printed}"
            busy = busy or (invalid and status == 1)
            wide = [line for line in printed.splitlines() if len(line) > WIDTH and " " in line.strip()]
            assert not wide, f"{block.place}: {command}\n{wide[0]}"


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py")))
def test_every_benchmark_finds_what_it_imports(from_benchmarks, monkeypatch, name):
    monkeypatch.syspath_prepend(ROOT / "tests")
    from_benchmarks(name)
