"""Man pages, tab completion and recipes. tests/packages.sh builds and installs the packages."""

import re
import sys

import pytest
from planted_clone import ROOT, start

from fembench.base.config import read_toml
from fembench.cli.parser import option_strings
from fembench.cli.verbs import own_verbs, verb_parser

sys.path.insert(0, str(ROOT / "packaging"))

import share

PROJECT = read_toml(ROOT / "pyproject.toml", dict)


def minimums(requirements):
    """{package: its lowest version, or ""}."""
    return dict(re.match(r"([\w-]+)(?:>=([\d.]+))?", text).groups("") for text in requirements)


BUILD = minimums(PROJECT["build-system"]["requires"])
RUN = minimums([*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["report"]])


@pytest.fixture(scope="module")
def shared():
    pytest.importorskip("shtab")
    return share.files()


def test_there_is_a_man_page_of_every_verb_and_it_names_every_option(shared):
    pages = {name for name in shared if name.endswith(".1")}
    assert pages == {f"man/man1/{name}.1" for name in ("fembench", *(f"fembench-{v}" for v in own_verbs()))}
    for verb in own_verbs():
        assert rf"\fBfembench {verb}\fR" in shared["man/man1/fembench.1"]
        for option in option_strings(verb_parser(verb)):
            assert option.replace("-", r"\-") in shared[f"man/man1/fembench-{verb}.1"]


def test_a_line_of_a_man_page_is_a_request_only_where_the_generator_makes_one(shared):
    known = {".TH", ".SH", ".TP", ".PP", ".nf", ".fi"}
    for name in (name for name in shared if name.endswith(".1")):
        requests = {line.split()[0] for line in shared[name].splitlines() if line.startswith((".", "'"))}
        assert requests <= known, name
        assert not re.search(r"\\(?![fe&-])", shared[name]), name
    assert share.escaped(".nf \\x -a") == r"\&.nf \ex \-a"


def test_each_shell_finds_its_completion_where_it_looks(shared):
    assert "complete " in shared["bash-completion/completions/fembench"]
    assert shared["zsh/site-functions/_fembench"].startswith("#compdef fembench\n")
    assert "complete -c fembench" in shared["fish/vendor_completions.d/fembench.fish"]


def test_the_conda_recipe_needs_what_the_package_needs_and_has_its_version():
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    host, run = re.search(r"\n  host:\n(.*?)\n  run:\n(.*?)\n\n", text, re.S).groups()
    lists = [re.findall(r"^    - (\S+(?: >=\S+)?)", part, re.M) for part in (host, run)]
    host, run = (minimums(entry.replace(" ", "") for entry in entries) for entries in lists)
    run["matplotlib"] = run.pop("matplotlib-base")  # that without a toolkit for windows
    assert host == BUILD | {"python": "", "pip": ""}
    assert run == RUN | {"python": PROJECT["project"]["requires-python"].removeprefix(">=")}
    assert f'version: "{PROJECT["project"]["version"]}"' in text


def test_the_spack_recipe_needs_what_the_package_needs():
    text = next((ROOT / "packaging" / "spack").rglob("py_fembench/package.py")).read_text(encoding="utf-8")
    needed = dict(re.findall(r'depends_on\("py-([\w-]+)@?([\d.]*):?"', text))
    assert needed == BUILD | RUN


def test_the_bundle_is_asked_of_run_bench_and_installs_nothing_here(tmp_path):
    answer = start(ROOT / "run_bench.sh", "bundle", "--help", FEMBENCH_VENV=str(tmp_path / "none"))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("usage: ./run_bench.sh bundle [DIR]")
    assert not (tmp_path / "none").exists()


def test_install_sh_names_the_python_that_it_needs(tmp_path):
    text = (ROOT / "packaging" / "install.sh").read_text(encoding="utf-8").replace("@PYTHON@", "2.7")
    (tmp_path / "install.sh").write_text(text, encoding="utf-8")
    answer = start("/bin/sh", str(tmp_path / "install.sh"), cwd=tmp_path, FEMBENCH_PYTHON=sys.executable)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr.startswith("install.sh: these packages need Python 2.7 with venv;")
    assert not (tmp_path / "fembench").exists()
