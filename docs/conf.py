"""Settings of Sphinx; `python -m docs.build` writes the source files and runs Sphinx."""

from __future__ import annotations

project = "bsl-pipeline"
author = "the bsl-pipeline authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "bsl-pipeline"
html_copy_source = False
html_show_copyright = False
