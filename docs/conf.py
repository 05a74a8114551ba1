"""How Sphinx builds this site: `docs/build.sh`. Warnings are errors."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "fembench"
author = "the fembench developers"
copyright = f"2026, {author}"
version = release = installed("fembench")

extensions = ["myst_parser", "generated"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True
smartquotes = False  # "--" is an option, not a dash

html_theme = "furo"
html_title = f"fembench {version}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
