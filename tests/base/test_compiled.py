"""Compiled modules: loaded, absent, or unusable on this host."""

import sys

import pytest

from fembench.base.compiled import compiled_module
from fembench.base.errors import InputError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package without modules."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "planted"
    for name in [name for name in sys.modules if name.startswith("planted")]:
        del sys.modules[name]


def test_a_module_that_was_not_compiled_is_absent(package):
    assert compiled_module("planted._fast") is None


def test_a_module_that_is_there_is_loaded(package):
    (package / "_fast.py").write_text("SPEED = 7\n")
    assert compiled_module("planted._fast").SPEED == 7


def test_a_module_that_cannot_be_loaded_is_an_error_that_names_the_host_and_the_reason(package):
    (package / "_fast.py").write_text("raise ImportError('libm.so.6: version `GLIBC_2.38` not found')")
    with pytest.raises(
        InputError, match=r"^host .* cannot load .* planted._fast \(libm.so.6: .*leave this host out"
    ):
        compiled_module("planted._fast")


def test_a_module_that_was_compiled_for_another_processor_is_not_absent(package):
    (package / "_fast.cpython-311-riscv64-linux-gnu.so").touch()
    with pytest.raises(
        InputError, match=r"\(it is _fast.cpython-311-riscv64-linux-gnu.so, for another Python or"
    ):
        compiled_module("planted._fast")


def test_a_library_that_a_compiled_module_needs_is_named_by_its_own_error(package):
    (package / "_fast.py").write_text("import no_such_library")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        compiled_module("planted._fast")
