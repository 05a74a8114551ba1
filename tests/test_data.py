"""Every file of tests/data and of the studies' data is asked for by a test or a module of the same source."""

import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STUDIES = TESTS.parent / "studies"
MODULES = [p for root in (TESTS, STUDIES) for p in root.rglob("*.py") if p != Path(__file__)]
FILES = [*(TESTS / "data").iterdir(), *STUDIES.glob("fembench_studies/*/data/*")]


def names(path):
    """What may be asked for: 'seed001_table_4_16' as table_4_16, 4_16 or 4.16; schema-2 as schema-{…}."""
    stem = re.sub(r"^seed00\d_|-\d$", "", path.stem)
    number = stem.removeprefix("table_")
    return {
        path.name,
        path.stem,
        stem,
        number,
        number.replace("_", "."),
        re.sub(r"^(functions|farm)_", "", stem),
    }


@functools.cache
def texts(source):
    """The modules that name a source, or are in its folder; all for ""."""
    mark = re.compile(rf"(?:seed|thesis_){source}")
    found = ((p, p.read_text(encoding="utf-8")) for p in MODULES)
    return "\n".join(text for p, text in found if not source or mark.search(str(p)) or mark.search(text))


def asked_for(path):
    source = re.search(r"(?:seed|thesis_)(00\d)", str(path.relative_to(TESTS.parent)))
    quoted = (rf"[\"'/_]{re.escape(name)}(?:-\{{|[\"'.])" for name in names(path))
    return any(re.search(pattern, texts(source[1] if source else "")) for pattern in quoted)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.parent.name}/{p.name}")
def test_every_data_file_is_asked_for(path):
    assert asked_for(path)


def test_a_file_that_nothing_asks_for_is_found():
    assert not asked_for(TESTS / "data" / "seed001_table_4_1.csv")
