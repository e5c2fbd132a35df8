"""`bsl classify MODEL IN OUT`: classify the texts of a file with the classifier of `bsl adapt`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import AskedEncoding, AskedPrecision, Output, Place, check_files
from bsl.flows.cli.terminal.printing import print_json, print_table


def classify(
    model: Annotated[
        str, Parameter(help="report/<key> of `bsl adapt --labels`, or the folder of its exported encoder")
    ],
    source: Annotated[str, Parameter(name="IN", help="file of text, CSV, JSONL or Parquet")],
    target: Annotated[Path, Parameter(name="OUT", help="new file (csv, tsv, jsonl, parquet): rows and columns of IN")],
    /,
    *,
    text_column: Annotated[
        str | None, Parameter(help="column with the texts [default: that of the training texts, else guessed]")
    ] = None,
    encoding: AskedEncoding = None,
    precision: AskedPrecision = None,
    place: Place = Place(),
    output: Output = Output(),
) -> None:
    """Add to each row its class, the probability, and the next two classes."""
    check_files(source)
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # else each load draws a progress bar
    from bsl.flows.prefect_server.server import use_server
    from bsl.flows.run_context import run_context_of

    use_server()
    site = run_context_of(place.given).model_copy(update={"cluster": None})  # no flow runs
    from bsl.flows.cli.terminal.progress import watching
    from bsl.models.runtime.progress import Progress
    from bsl.tasks.serving.classify import check_target, classified, find_classifier, read_input, write_table
    from bsl.tasks.stage.ui import progress_of

    check_target(target)
    with watching(site.open_store(), None, Console(stderr=True)) as terminal:
        terminal.show("", Progress(f"reading {source}", 0, 0))
        classifier = find_classifier(site, model, precision or "auto")
        given = read_input(source, text_column, classifier.linear.settings.text_column, encoding)
        print(printable(f"{source}: {given.summary}"), file=sys.stderr)
        table = classified(classifier, given, progress_of("classifying, texts"))
        write_table(table, target)
    added = [name for name in table.columns if name not in given.table.columns]
    counts = table[added[0]].drop_nulls().value_counts(sort=True).rename({added[0]: "class"})
    empty = table[added[0]].null_count()
    if output.json:
        print_json({"file": target, "rows": table.height, "empty": empty, "added": added, "classes": counts.to_dicts()})
        return
    rows = counts.iter_rows()
    print_table("Rows of each class", [{"class": label, "rows": f"{count:,}"} for label, count in rows])
    note = f"; {empty:,} without text have no class" if empty else ""
    print(printable(f"{table.height:,} rows{note}; added: {', '.join(added)}: {target}"))
