"""Rehearsals of tests have two repetitions, and a library is compiled once in a session."""

import pytest

from fembench_studies.binaries import executable, rehearsal

LIBRARIES = {}  # source -> content of its file


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    def compile_c(text, file):
        if text not in LIBRARIES:
            executable.compile_c(text, file)
            LIBRARIES[text] = file.read_bytes()
        file.write_bytes(LIBRARIES[text])

    monkeypatch.setattr(rehearsal, "ENOUGH", 0.0)
    monkeypatch.setattr(rehearsal, "compile_c", compile_c)
