"""Compiled modules: loaded, absent, or unusable on this host."""

import sys

import pytest

from fembench.base.errors import InputError
from fembench.base.plugins import compiled_module


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package without modules."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "planted"
    for name in [name for name in sys.modules if name.startswith("planted")]:
        del sys.modules[name]


def test_a_module_that_is_there_is_loaded_and_one_that_was_not_compiled_is_absent(package):
    assert compiled_module("planted._fast") is None
    (package / "_fast.py").write_text("SPEED = 7\n")
    assert compiled_module("planted._fast").SPEED == 7


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        (
            "_fast.py",
            "raise ImportError('libm.so.6: version `GLIBC_2.38` not found')",
            InputError,
            r"^host .* cannot load .* planted._fast \(libm.so.6: .*leave this host out",
        ),
        (
            "_fast.cpython-311-riscv64-linux-gnu.so",
            "",
            InputError,
            r"\(it is _fast.cpython-311-riscv64-linux-gnu.so, for another Python or",
        ),
        ("_fast.py", "import no_such_library", ModuleNotFoundError, "no_such_library"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_an_error_that_names_the_reason(package, name, text, error, said):
    (package / name).write_text(text)
    with pytest.raises(error, match=said):
        compiled_module("planted._fast")
