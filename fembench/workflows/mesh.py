"""Meshes: made, converted, and cut by shares, with files that hand the parts to other programs."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fembench.base.arguments import typed
from fembench.base.errors import InputError, shown
from fembench.base.progress import telling
from fembench.base.tables import table
from fembench.base.terminal import as_on_terminal
from fembench.base.units import percent, plural
from fembench.mesh.box import LENGTHS, Box, box
from fembench.mesh.io import read, write
from fembench.mesh.mesh import Mesh, lines, summary
from fembench.mesh.presets import box_counts, box_named, resolve
from fembench.mesh.slicing import source_of_box, source_of_mesh, write_sliced
from fembench.partition.maps import MAPS, write_map
from fembench.partition.methods import partition
from fembench.partition.partition import Partition, node_parts
from fembench.partition.shares import parse_shares, shares_text
from fembench.records.weights import Weights, shares_of, weights_in
from fembench.workflows.cases import warn_of_doubts
from fembench.workflows.tune import Tuned, weights_of

__all__ = ["convert", "describe", "lines", "write_box"]


def write_box(
    size: str, output: str, *, element: str = "tet4", lengths: tuple[float, float, float] = LENGTHS
) -> str:
    """Write a structured box; a line on the file. Raises InputError.

    size: grid cells NXxNYxNZ, a number of equations, or a preset
    output: the suffix chooses the format; / at its end: a folder of slices
    lengths: metres along x, y and z
    """
    lengths = (lengths[0], lengths[1], lengths[2])
    plan = Box(box_counts(size, lengths, element), element, lengths)
    return _written(plan if output.endswith("/") else box(plan.cells, element, lengths), output)


def describe(mesh: str) -> dict[str, Any]:
    """Counts, hash, quality, volume and tags of a preset, box or file. Raises InputError."""
    return summary(resolve(mesh))


def convert(mesh: str, output: str) -> Iterator[str]:
    """Write a mesh in another format: a line on the file, one on what is not kept.

    Raises InputError, also for a file that cannot be read back.
    """
    if output.endswith("/"):
        yield _written(box_named(mesh) or resolve(mesh), output)
        return
    found = resolve(mesh)
    yield _written(found, output)
    try:
        lost = difference(found, read(output))
    except InputError as error:
        raise InputError(f"{output} is written but cannot be read back: {error}") from error
    if lost:
        yield f"this format does not keep everything: {lost}"


def _written(mesh: Mesh | Box, path: str) -> str:
    if path.endswith("/"):
        hash = write_sliced(source_of_box(mesh) if isinstance(mesh, Box) else source_of_mesh(mesh), path)
    else:
        assert isinstance(mesh, Mesh)
        write(mesh, path)
        hash = mesh.hash
    medit = f"; a Medit file: for a folder of slices, end its name with a slash ({path}/)"
    counts = f"{path}: {mesh.n_nodes} nodes, {mesh.n_cells} {mesh.element}, hash {hash[:12]}"
    return counts + medit * path.endswith(".mesh")


def difference(mesh: Mesh, written: Mesh) -> str:
    """Differences after writing and reading back; empty if there are none."""
    if written.hash == mesh.hash:
        return ""
    if mesh.x.shape != written.x.shape or not np.array_equal(mesh.cells, written.cells):
        return "nodes or cells are renumbered"
    moved = float(np.abs(mesh.x - written.x).max())
    before = {*mesh.node_tags, *mesh.facet_tags}
    after = {*written.node_tags, *written.facet_tags}
    found = [f"coordinates differ by up to {moved:.1e} m"] if moved > 0 else []
    found += [f"tags {', '.join(sorted(before - after))} are lost"] if before - after else []
    return "; ".join(found) or "tags are changed"


FEW = 8  # parts whose shares fit into a sentence
MANY = 16  # parts; of more with the same target, three have a row


@dataclass(frozen=True, eq=False, repr=False)
class CutMesh:
    """A mesh that is cut, and the files that were written."""

    mesh: Mesh
    partition: Partition  # part p is for rank p
    hosts: tuple[str, ...]  # [rank] its host; "" if shares were given
    files: tuple[Path, ...] = ()
    use: str = ""  # what to do with them
    removed: tuple[Path, ...] = ()  # files of an older map with the same name

    @property
    def sentence(self) -> str:
        """How the cells are divided."""
        cut = self.partition
        shares = ", ".join(percent(share) for share in cut.achieved)
        miss = percent(float(np.max(np.abs(cut.achieved / cut.targets - 1))))
        found = f"{plural(len(cut.part_of_cell), 'cell')} in {plural(cut.n_parts, 'part')}"
        return f"{found}{f' of {shares}' * (cut.n_parts <= FEW)}: within {miss} of the targets."

    def __repr__(self) -> str:
        return as_on_terminal(f"{self.sentence}\n\n{self.text}")

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p><pre>{escape(self.text)}</pre>"

    @property
    def text(self) -> str:
        """The parts as a table, then the files."""
        cut = self.partition
        node, part = node_parts(self.mesh.cells, cut.part_of_cell, self.mesh.n_nodes)
        nodes = np.bincount(part, minlength=cut.n_parts)
        sharers = np.bincount(node)
        columns = {
            "rank": range(cut.n_parts),
            "host": self.hosts,
            "target": [percent(share) for share in cut.targets],
            "share": [percent(share) for share in cut.achieved],
            "cells": cut.sizes.tolist(),
            "nodes": nodes.tolist(),
        }
        if not any(self.hosts):
            del columns["host"]
        rows = [*zip(*columns.values())]
        typical = self._typical
        lines = [table([*columns], [rows[rank] for rank in typical]), ""]
        if len(typical) < len(rows):
            lines.append("of equal targets: the ranks with the fewest, median and most cells")
        lines.append(f"{plural(int(np.count_nonzero(sharers > 1)), 'node')} shared by two parts or more")
        lines += map(str, self.files)
        if self.removed:
            lines.append(f"removed, of an older map: {', '.join(map(str, self.removed))}")
        return "\n".join([*lines, *([f"next: {self.use}"] if self.use else [])])

    @property
    def _typical(self) -> list[int]:
        """Ranks: all or, of many with one target, those with the fewest, median and most cells."""
        alike: dict[float, list[int]] = {}
        for rank in np.argsort(self.partition.sizes, kind="stable").tolist():
            alike.setdefault(self.partition.targets[rank], []).append(rank)
        if self.partition.n_parts <= MANY:
            return list(range(self.partition.n_parts))
        return sorted({ranks[k] for ranks in alike.values() for k in (0, len(ranks) // 2, -1)})


@typed
def parts(
    mesh: Path | str,
    *,
    shares: str | Sequence[float] = "",
    weights: Weights | Tuned | Path | str | None = None,
    to: str = "",
    output: Path | str = "parts",
    partitioner: str = "metis",
    tell: Callable[[str], None] | None = None,
) -> CutMesh:
    """Cut a mesh by shares, and write the parts for another program.

    mesh: preset, box or file, numbered as the other program reads it
    shares: as in "2:1", [2, 1] or "8*1" (eight equal ones)
    weights: instead of shares, what `shares` or `tune` found, or its file
    to: the program, as in `fembench partition --to`; "": nothing is written
    output: a folder for the files
    partitioner: metis or rcb

    Raises InputError.
    """
    text = shares_text(shares)
    weights = weights_of(weights)
    if bool(text) == bool(weights):
        raise InputError("parts of a mesh: expected either shares = 2:1 or weights = FILE")
    if to and to not in MAPS:
        raise InputError(f"unknown format '{to}'; expected one of {', '.join(MAPS)}")
    found = weights_in(weights) if weights else None
    targets = shares_of(found) if found else parse_shares(text)
    _check_several(targets, text)
    hosts = tuple(rank.host for rank in found.ranks) if found else ("",) * len(targets)
    with telling(tell):
        if found:
            warn_of_doubts(found)
    whole = resolve(str(mesh))
    cut = partition(whole, targets, partitioner)
    if not to:
        return CutMesh(whole, cut, hosts)
    files, removed = write_map(to, whole, cut, Path(output))
    return CutMesh(whole, cut, hosts, tuple(files), MAPS[to].use, tuple(removed))


def _check_several(targets: Sequence[float], shares: str) -> None:
    """Raises InputError if all cells are for one part: often the number of parts was meant."""
    if len(targets) > 1:
        return
    if not shares:
        raise InputError("weights of one rank cut nothing; expected those of two ranks or more")
    n = shares.strip() if re.fullmatch(r" *[1-9]\d{0,5} *", shares) and float(shares) > 1 else "2"
    count = "two" if n == "2" else n
    raise InputError(f"shares '{shown(shares)}' name one part; expected {n}*1 for {count} equal parts")
