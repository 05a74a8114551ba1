"""Pictures of the documentation: all there, small, and on every tutorial and guide."""

import re

import doc_pages
import pytest

IMAGES = doc_pages.ROOT / "docs" / "images"
PICTURE = re.compile(r"!\[([^]]*)\]\(([^)]*)\)|```\{image\} (\S+)\n:alt: (.*)")
SHOWN = {page: PICTURE.findall(page.read_text(encoding="utf-8")) for page in doc_pages.pages()}
GUIDES = [page for page in SHOWN if page.parent.name in ("tutorial", "howto")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_tutorial_and_guide_has_a_picture(page):
    assert SHOWN[page]


def test_every_picture_is_there_says_what_it_shows_and_is_used():
    used = set()
    for page, pictures in SHOWN.items():
        for text, path, other_path, other_text in pictures:
            used.add((page.parent / (path or other_path)).resolve())
            assert len((text or other_text).split()) > 2, f"{page}: {path or other_path}"
    assert used == set(IMAGES.iterdir())
    assert len(used) >= 12


@pytest.mark.parametrize("path", sorted(IMAGES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_and_needs_no_other_file(path):
    assert path.stat().st_size < 120_000
    text = path.read_bytes().decode("utf-8", "replace")
    assert path.suffix == ".png" or not re.search(r'href="(?!#|data:)|url\((?!#)|/home/|/work/|/tmp/', text)


def test_terminals_have_as_much_room_below_their_last_line_as_above_the_first():
    capital, seen = 10, 0  # height of one, in pixels: lines are placed by their feet
    for path in IMAGES.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        if text.count("<rect") == 1 and 'fill="#161b22"' in text:
            high = int(re.search(r'viewBox="0 0 \d+ (\d+)"', text)[1])
            lines = [int(y) for y in re.findall(r' y="(\d+)"', text)]
            assert min(lines) - capital == high - max(lines) >= 24, path.name
            seen += 1
    assert seen > 8
