"""Build the documentation site: `make docs`, or `python -m docs.build FOLDER`.

The site has the pages of this folder, the documents in the project root, and a page for each recipe and each kind of
artifact. The latter are generated from the code, so that they are always up to date.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from docs.chart import CHART, MEMORY
from docs.kinds import contents, kind_pages
from docs.recipes import recipe_pages

HERE: Final = Path(__file__).parent
PICTURES: Final = HERE / "pictures"
ROOT: Final = HERE.parent
START: Final = "README.md"
DOCUMENTS: Final = ("ARCHITECTURE.md", "FIDELITY.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md")
GUIDES: Final = (
    *("get-started", "own-text", "evaluate", "reproduce", "deploy", "air-gapped", "hub", "python", "troubleshooting"),
    *("decisions", "research-log"),
)


def assemble(folder: Path) -> None:
    """Write the source files for Sphinx.

    Args:
        folder: Existing folder for the files.
    """
    for name in DOCUMENTS:
        (folder / name).write_text(_as_page(name), encoding="utf-8")
    shutil.copyfile(ROOT / "NOTICE", folder / "NOTICE")
    shutil.copyfile(HERE / "conf.py", folder / "conf.py")
    for drawn in (CHART, MEMORY):
        shutil.copyfile(drawn, folder / drawn.name)
    shutil.copytree(PICTURES, folder / PICTURES.name)
    for guide in GUIDES:
        text = (HERE / f"{guide}.md").read_text(encoding="utf-8")
        (folder / f"{guide}.md").write_text(text.replace("](../", "]("), encoding="utf-8")
    for name, page in (recipe_pages() | kind_pages()).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    chapters = {
        "Guides": GUIDES,
        "Reference": ("recipes/index", "artifacts/index"),
        "Documents": [Path(name).stem for name in DOCUMENTS],
    }
    lists = "".join(contents(pages, caption) for caption, pages in chapters.items())
    (folder / "index.md").write_text(_as_page(START) + lists, encoding="utf-8")


def _as_page(name: str) -> str:
    """Return a document of the project root with its links adjusted to the site."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def main(folder: str = "site") -> int:
    """Build the site; any warning, such as a broken link, makes it fail.

    Args:
        folder: Output folder.

    Returns:
        The exit code.
    """
    # Imported here, because the pages are generated and tested without Sphinx.
    from sphinx.cmd.build import main as sphinx

    with tempfile.TemporaryDirectory() as sources:
        assemble(Path(sources))
        code: int = sphinx(["-b", "html", "-W", "--keep-going", "-q", sources, folder])
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
