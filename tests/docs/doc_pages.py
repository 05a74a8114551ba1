"""Shell commands, files and outputs in README.md and docs/**/*.md.

In the pages, comments before a fenced block say what the test does with it:

    <!-- not run: REASON -->        a block that cannot be run here
    <!-- tested as: COMMAND -->     a cheaper command to run instead; several lines replace the block together
    <!-- file: NAME -->             the block is a file that later commands read
    <!-- shown: 1-4, 9-12 -->       the lines of the output that the page shows, one comment per command;
                                    "only 1-4, 9" has one ellipsis, at the end; "none" shows no output

Several comments may share a line. README.md has none: what they would say of its blocks is in readme.toml.

`python tests/docs/doc_pages.py FOLDER PAGE ...` runs the commands of console blocks in FOLDER and writes what
they print into the pages. Outputs are kept in FOLDER/printed; delete them to measure again.
"""

import hashlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from fembench.base.config import tomllib

ROOT = Path(__file__).parents[2]
OF_README = tomllib.loads(Path(__file__).with_name("readme.toml").read_text(encoding="utf-8"))
SHELL = ("console", "sh")
PASSING = re.compile(r" … \d+:\d\d(, .*)?$")  # what takes long: a terminal erases these lines
COMMENT = re.compile(r"<!-- ([a-z ]+?): (.*?) -->")


@dataclass
class Block:
    """A fenced block: `first` and `last` are the lines between its fences, counted from 0."""

    page: Path
    language: str
    first: int
    last: int
    lines: list[str]
    marks: list[tuple[str, str]] = field(default_factory=list)

    def marked(self, name):
        return [value for key, value in self.marks if key == name]

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.first}"

    @property
    def commands(self):
        """What is typed; a line that ends in a backslash goes on."""
        lines = self.lines
        if self.language == "console":
            lines = [
                line[2:]
                for k, line in enumerate(self.lines)
                if line.startswith("$ ") or (k and self.lines[k - 1].endswith("\\") and line.startswith("> "))
            ]
        joined = "\n".join(lines).replace("\\\n", " ")
        return [line for line in joined.split("\n") if line.strip() and not line.lstrip().startswith("#")]

    @property
    def name(self):
        """Its first command, without the comment behind it."""
        return re.sub(r" +# .*", "", next(iter(self.commands), ""))

    @property
    def run(self):
        """What a test runs."""
        return [] if self.marked("not run") else self.marked("tested as") or self.commands


def pages():
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(p for p in texts if "_build" not in p.parts and p.name != "CHANGELOG.md")


def blocks(page):
    """The fenced blocks of a page in a language, with the comments right before them."""
    found, marks, block = [], [], None
    for k, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        if block is not None:
            if line.rstrip() == "```":
                block.last, block = k, None
            else:
                block.lines.append(line)
        elif opened := re.fullmatch(r"```(\w*)", line):
            block = Block(page, opened[1], k + 1, k + 1, [], marks)
            found.append(block)
            marks = []
        elif comments := COMMENT.findall(line):
            marks += comments
        elif line.strip():
            marks = []
    for block in found if page == ROOT / "README.md" else ():
        said = OF_README.get(block.name, {})
        block.marks += [(key, value) for key, values in said.items() for value in values]
    return found


def verb_words(command):
    """The words behind `fembench` (or `./run_bench.sh`) in a command; none where it calls another program,
    or builds a bundle."""
    words = shlex.split(command, comments=True)
    for name in ("fembench", "./run_bench.sh"):
        if name in words:
            behind = words[words.index(name) + 1 :]
            stops = [
                k for k, w in enumerate(behind) if w in ("|", "&&", "||", ";", "--") or w.startswith(">")
            ]
            return behind[: min(stops, default=len(behind))] if behind[:1] != ["bundle"] else []
    return []


def chosen(lines, ranges):
    """The lines to show, with an ellipsis where some are left out."""
    if not ranges:
        return narrowed(lines)
    if ranges[0] == "none":
        return []
    shown, at = [], 0
    brief = ranges[0].startswith("only ")
    for part in ranges[0].removeprefix("only ").split(","):
        begin, _, end = part.strip().partition("-")
        first, last = int(begin) - 1, int(end or begin)
        if first > at and not brief:
            shown.append("…")
        shown += lines[first:last]
        at = last
    return narrowed([*shown, "…"] if at < len(lines) else shown)


def narrowed(lines):
    """Tables without the blanks that no shown line needs in their last column."""
    found = []
    for is_table, group in groupby(lines, lambda line: line.startswith(("| ", "…"))):
        rows = list(group)
        if is_table:
            cut = [row.removesuffix("|").rstrip(" ") for row in rows]
            width = max((len(row) for row in cut if not row.startswith("| --")), default=0)
            rows = [row if row == "…" else f"{row[:width]:{width}} |" for row in cut]
        found += rows
    return found


def printed(command, folder):
    """What a command prints in `folder`, without the paths of this machine; run once, then kept in a file."""
    kept = folder / "printed" / hashlib.sha256(command.encode()).hexdigest()[:12]
    if not kept.exists():
        print(f"$ {command}", file=sys.stderr)
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n")
    lines = [line for line in kept.read_text().splitlines() if not PASSING.search(line)]
    return "\n".join(lines).replace(f"{sys.prefix}/", ".venv/").replace(f"{folder}/", "")


def refresh(page, folder):
    """Run the console blocks of a page in `folder` and write what they print into the page."""
    text = page.read_text(encoding="utf-8").splitlines()
    found = blocks(page)
    for block in found:
        for name in block.marked("file"):
            (folder / name).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        if block.language != "console" or block.marked("not run"):
            continue
        lines, ranges = [], block.marked("shown")
        for k, command in enumerate(block.commands):
            output = printed(command, folder).splitlines()
            lines += [f"$ {command}", *chosen(output, ranges[k : k + 1])]
        block.lines = lines
    for block in reversed(found):
        text[block.first : block.last] = block.lines
    page.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        refresh(Path(name).resolve(), Path(sys.argv[1]).resolve())
