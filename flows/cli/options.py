"""What several verbs share: where a run happens, and how a table is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    import argparse


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Where a run happens; the environment decides what is not given."""
    parser.add_argument("--store", help="URL of the artifact store (BSL_STORE; .bsl/store)")
    parser.add_argument("--mirror", help="folder of data sets that stands in for the Hub (BSL_DATA_MIRROR)")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (BSL_DEVICE; a GPU if there is one)")


def _column(name: str) -> Column:
    return Column(Text(name))


def print_table(title: str, rows: list[dict[str, str]]) -> None:
    """A table of equal-keyed rows, wide enough for its figures where the terminal's width is not known."""
    # As text: a name in brackets would be taken for markup.
    table = Table(*map(_column, rows[0]), title=Text(title, style="table.title"))
    for row in rows:
        table.add_row(*map(Text, row.values()))
    Console(width=max(120, Console().width)).print(table)
