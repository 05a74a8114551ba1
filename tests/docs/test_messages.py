"""Messages on the page of troubleshooting are those of the program."""

import re

import doc_pages

from fembench.base.plugins import STUDIES
from fembench.records.verdict import NAMES, STATES, named

PAGE = (doc_pages.ROOT / "docs" / "howto" / "troubleshooting.md").read_text(encoding="utf-8")
REASONS = {f"{named(rule)} {state}" for rule in NAMES for state in STATES.values()}


def messages():
    """The texts in the first column of the tables of messages and reasons."""
    tables = re.findall(r"^\| (?:message|reason) \|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.M)
    firsts = [line.split(" | ")[0] for table in tables for line in table.splitlines()]
    return [text for first in firsts for text in re.findall("`(.*?)`", first)]


def test_every_message_is_one_that_the_program_prints():
    files = sorted((doc_pages.ROOT / "fembench").rglob("*.py"))
    texts = [re.sub(r'"\n\s*r?f?"', "", path.read_text(encoding="utf-8")) for path in files]
    program = " ".join(" ".join(texts).split()).replace("{STUDIES}", STUDIES)
    assert len(messages()) > 25
    for message in messages():
        parts = [part.strip() for part in message.split("…") if len(part.strip()) > 2]
        assert message in REASONS or all(part in program for part in parts), message
