"""The pictures of the documentation, from real results: python docs/pictures.py FOLDER [NAME ...].

What is not in FOLDER yet is measured there, in some minutes; then docs/images is written. Terminals have 80
columns; pages are photographed by chromium.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

import fembench
from fembench.records.phases import CG_PARTS, NAMES
from fembench.records.times import times_of
from fembench.report.fields import fields_path, read_fields
from fembench.report.plots import canvas
from fembench_studies.thesis_004.body import deformed_picture

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
REFERENCE = ROOT / "results" / "reference"
COLUMNS, LONGEST = 80, 110  # of a terminal; of a line in a picture
STEP, LINE = 7.8, 18  # of a character and a line, in pixels
MARGIN, CAPITAL = 30, 10  # above and below the lines; height of a capital
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#76e3ea", "2": "#8b949e"}


# ---- terminals


def typed(command: str, folder: Path) -> list[str]:
    """What a command prints on a terminal; run once, then kept."""
    kept = folder / "typed" / re.sub(r"\W+", "-", command)
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        variables = plain | {"TERM": "xterm-256color", "PATH": path}
        print(f"$ {command}", file=sys.stderr)
        job = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=variables,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        text = b"".join(chunks(ours))
        job.wait()
        kept.write_bytes(text)
    lines = kept.read_bytes().decode().replace("\r\n", "\n").split("\n")
    shown = [re.sub(r"\x1b\[[0-9;?]*[A-HJKhl]", "", line.rpartition("\r")[2]).rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    return [without_paths(line, folder) for line in shown]


def without_paths(line: str, folder: Path) -> str:
    """A line without paths of this machine, as wide as before if it is the row of a table."""
    short = line.replace(f"{sys.prefix}/", ".venv/").replace(f"{folder}/", "").replace(str(folder), "~")
    in_table = short != line and line[-1] in "|│"
    return f"{short[:-1]}{' ' * (len(line) - len(short))}{line[-1]}" if in_table else short


def chunks(terminal: int):
    while True:
        try:
            found = os.read(terminal, 65536)
        except OSError:  # its other end is closed
            return
        if not found:
            return
        yield found


def terminal(command: str, folder: Path, most: int = 30) -> str:
    """A picture of a command and of the first lines that it prints."""
    found = typed(command, folder)
    lines = [f"$ {command}", *map(cut, found[:most]), *(["…"] if len(found) > most else [])]
    columns = max(COLUMNS, *(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in lines))
    wide, high = columns * STEP + 32, (len(lines) - 1) * LINE + CAPITAL + 2 * MARGIN
    body = "\n".join(text_line(line, MARGIN + CAPITAL + LINE * k) for k, line in enumerate(lines))
    font = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {wide:.0f} {high}" '
        f'font-family="{font}" font-size="13" fill="#e6edf3">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#161b22"/>\n{body}\n</svg>\n'
    )


def cut(line: str) -> str:
    return line if len(line) <= LONGEST or "\x1b" in line else f"{line[:LONGEST]}…"


def text_line(line: str, y: float) -> str:
    """One line, each of its colours apart; every part has its place and width, whatever the font."""
    found, x, style = [], 16.0, ""
    for part in re.split(r"(\x1b\[[\d;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            style = next((f' fill="{COLOURS[c]}"' for c in codes if c in COLOURS), "")
            style += ' font-weight="bold"' if "1" in codes else ""
        elif part:
            wide = len(part) * STEP
            if part.strip():
                found.append(
                    f'<text x="{x:.1f}" y="{y:.0f}" textLength="{wide:.1f}" xml:space="preserve"{style}>'
                    f"{escape(part, quote=False)}</text>"
                )
            x += wide
    return "".join(found)


# ---- plots


def plot(source: Path, name: str) -> str:
    return fembench.load(source).plot(name).svg


def before_after(folder: Path) -> str:
    """A recorded run, simulated on a fast and a half as fast rank: with equal shares, and 2/3 and 1/3.

    Two thirds of the cells are 4/3 of the work that was recorded: at speed 1, it is done at speed 3/4.
    """
    typed(f"fembench trace {RECORDED} -o recorded.json", folder)
    simulate = "fembench simulate recorded.json --link 1e-6,5e9"
    kinds = {"compute": canvas.BLUE, "overhead": canvas.ORANGE, "wait": canvas.PINK}
    with canvas.figure(2, columns=1, height=1.5) as (drawn, panels):
        for axes, (title, speeds) in zip(
            panels, {"equal shares": "1,0.5", "2/3 and 1/3": "0.75,0.75"}.items()
        ):
            typed(f"{simulate} --speeds {speeds} --chrome {speeds}.json", folder)
            told = msgspec.json.decode((folder / f"{speeds}.json").read_bytes())["traceEvents"]
            spans = [e for e in told if e["ph"] == "X"]
            start = min(e["ts"] for e in spans if e["name"].startswith("cg"))
            for e in (e for e in spans if start <= e["ts"] < start + SHOWN):
                axes.barh(e["tid"], e["dur"], left=e["ts"] - start, height=0.7, color=kinds[e["cat"]])
            axes.set(title=title, xlim=(0, SHOWN), ylim=(1.5, -0.5), yticks=[0, 1], ylabel="rank")
            axes.grid(visible=False, axis="y")
        panels[1].set_xlabel("µs")
        canvas.colour_legend(drawn, dict(zip(("computing", "messages", "waiting"), kinds.values())))
        return canvas.plot(drawn, "before_after", "Iterations with equal shares and with 2/3 and 1/3", "").svg


SHOWN = 250.0  # microseconds
RECORDED = "$(ls results/reference/runs/m3-sym-none-p2-*-r1.json)"


def compared(folder: Path) -> str:
    """Planted results: the product of CG is 5 % slower."""
    typed(f"python {ROOT}/benchmarks/compare.py --keep planted", folder)
    (ratios,) = fembench.compare(folder / "planted" / "old", folder / "planted" / "new").plots()
    return ratios.svg


def heat_map() -> str:
    """Time per iteration, by rank and phase, of a job of one GPU and fifteen cores."""
    (path,) = (REFERENCE / "gpu").glob("*-p16-*.json")
    (record,) = fembench.load(path)
    each = np.median(times_of(record).each_iteration, axis=0)
    phases = [k for k in CG_PARTS if each[:, k].max() > 0.01 * each[:, CG_PARTS].sum(axis=1).max()]
    with canvas.figure(1, width=8.0, height=3.0) as (drawn, (axes,)):
        image = axes.pcolormesh(1e3 * each[:, phases].T, cmap="cividis", edgecolors="w", linewidth=0.5)
        axes.set_yticks(np.arange(len(phases)) + 0.5, [NAMES[k] for k in phases])
        axes.set_xticks(np.arange(len(each)) + 0.5, ["GPU", *map(str, range(1, len(each)))])
        axes.set_xlabel("rank")
        axes.grid(visible=False)
        axes.invert_yaxis()
        drawn.colorbar(image, ax=axes, label="ms per iteration")
        return canvas.plot(drawn, "heat_map", "Time per iteration by rank and phase", "").svg


def body(folder: Path) -> str:
    """The deformed body."""
    typed("fembench run m2 --ranks 2 --fields --results body", folder)
    (record,) = fembench.load(folder / "body")
    return deformed_picture(read_fields(fields_path(folder / "body" / "runs", record.id)), "m2").svg


def rooms() -> str:
    """The rooms of the program, as on the page of the architecture."""
    there = {path.parent.name for path in (ROOT / "fembench").glob("*/__init__.py")}
    if there != set(" ".join(LAYERS.values()).split()):
        raise SystemExit(f"LAYERS: expected the rooms {sorted(there)}")
    parts = []
    for k, ((title, names), colour) in enumerate(zip(LAYERS.items(), FILL)):
        y = 12 + 78 * k
        parts.append(f'<text x="12" y="{y + 12}" font-size="12" fill="#555">{title}</text>')
        for j, name in enumerate(names.split()):
            x = 12 + 98 * j
            parts.append(f'<rect x="{x}" y="{y + 20}" width="90" height="34" rx="5" fill="{colour}"/>')
            parts.append(f'<text x="{x + 45}" y="{y + 42}" font-size="12" text-anchor="middle">{name}</text>')
    size = f"0 0 {16 + 98 * max(len(names.split()) for names in LAYERS.values())} {12 + 78 * len(LAYERS)}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif">'
    return f'{head}\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"


LAYERS = {
    "roof: what users type and call": "cli workflows",
    "office: reads records, reasons": "report model weights",
    "lab: measures, under MPI": "peers balance characterize bench launch solve synthetic host device ranks",
    "ground: pure functions, plain data": "fem partition mesh timing kernels records methods stats base",
}
FILL = ("#fde7c8", "#d8ecd8", "#d3e4f4", "#eeeeee")


# ---- pages


def page(path: Path, source: Path) -> None:
    """The first screen of a page, with few colours."""
    with tempfile.TemporaryDirectory() as profile:
        quiet = (
            "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
            "disable-component-update disable-sync hide-scrollbars"
        )
        options = [f"--{word}" for word in quiet.split()]
        options += [f"--user-data-dir={profile}", "--window-size=1200,1180", f"--screenshot={path}"]
        subprocess.run(["chromium", *options, source.as_uri()], check=True, capture_output=True, timeout=120)
    image = Image.open(path).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def study(folder: Path) -> Path:
    typed(STUDY, folder)
    return next((folder / "study").rglob("index.html"))


def report(folder: Path) -> Path:
    typed(REPORT, folder)
    return next((folder / "page").rglob("index.html"))


# ---- all of them

PICTURES = {
    "doctor.svg": lambda f: terminal("fembench doctor", f, most=34),
    "plan.svg": lambda f: terminal("fembench sweep --minutes 30 --dry-run", f, most=26),
    "headline.svg": lambda f: terminal(REPORT, f, most=31),
    "compare.svg": compared,
    "hand-over.svg": lambda f: terminal("fembench partition m3 --shares 2:1 --to dolfinx", f),
    "peers.svg": lambda f: terminal("fembench peers m3", f, most=33),
    "schedule.svg": lambda f: terminal(SCHEDULE, f, most=24),
    "binary.svg": lambda f: terminal(BINARY, f, most=24),
    "simulate.svg": lambda f: terminal(SIMULATE, f, most=24),
    "speedup.svg": lambda f: plot(REFERENCE, "speedup"),
    "weak.svg": lambda f: plot(REFERENCE, "weak"),
    "factors.svg": lambda f: plot(REFERENCE, "speedup_factors"),
    "roofline.svg": lambda f: plot(REFERENCE, "roofline"),
    "phases.svg": lambda f: plot(REFERENCE, "phases"),
    "residuals.svg": lambda f: plot(REFERENCE, "residuals"),
    "before-after.svg": before_after,
    "virtual.svg": lambda f: terminal("fembench balance --virtual slow-host --policies none,amortised", f),
    "heat-map.svg": lambda f: heat_map(),
    "body.svg": body,
    "rooms.svg": lambda f: rooms(),
    "page.png": lambda f: page(IMAGES / "page.png", report(f)),
    "predict.svg": lambda f: terminal(PREDICT, f, most=30),
    "study.png": lambda f: page(IMAGES / "study.png", study(f)),
}
PREDICT = "fembench predict m --machine machine.json --ranks 1,2"
STUDY = "fembench study thesis-000 --quick --results study"
REPORT = "fembench report results/reference --out page"
SCHEDULE = "fembench study schedule mine.json --hosts fast:1,slow:1:1:0.5"
COUNT = "fembench trace --binary ./newton --ranks 4 --args 4000 --count newton.json"
BINARY = "fembench trace --binary ./newton --ranks 4 --static --given newton.json --link 1e-6,5e9"
SIMULATE = "fembench simulate graph.json --link 5e-5,125e6"


def from_page(page: str, language: str, path: Path) -> None:
    """Write the first block of a language on the page of a guide."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    path.write_text(re.search(rf"```{language}\n(.*?)```", text, re.S)[1], encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    IMAGES.mkdir(exist_ok=True)
    if not folder.exists():
        shutil.copytree(REFERENCE, folder / "results" / "reference")
    for name in sys.argv[2:] or PICTURES:
        if name == "schedule.svg":
            from_page("farm", "json", folder / "mine.json")
        if name == "binary.svg":
            from_page("binary", "c", folder / "newton.c")
            typed(f"mpicc -O1 -o newton newton.c && {COUNT}", folder)
        if name == "predict.svg":
            typed("fembench characterize --quick --network -o machine.json", folder)
        if name == "simulate.svg":
            typed(f"fembench trace {RECORDED} -o graph.json", folder)
        drawn = PICTURES[name](folder)
        if drawn:
            (IMAGES / name).write_text(drawn, encoding="utf-8")
        print(f"docs/images/{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
