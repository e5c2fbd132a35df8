"""`bsl classify MODEL IN OUT`: classify the texts of a file with the classifier of `bsl adapt`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bsl.flows.cli.search import AskedEncoding
from bsl.flows.cli.terminal.checks import check_new_file, check_one_file
from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import NEW_PATH, NOT_GIVEN, AskedPrecision, Output, Place
from bsl.flows.cli.terminal.printing import print_json, print_table
from bsl.flows.cli.terminal.start import begin_here
from bsl.storage.sources.classifier_names import check_classifier
from bsl.storage.sources.reading_config import FORMATS


def classify(
    model: Annotated[
        str, Parameter(help="report/<key> of `bsl adapt --labels`, or the folder of its exported encoder")
    ],
    source: Annotated[str, Parameter(name="IN", help=f"file ({FORMATS})")],
    target: Annotated[
        Path, NEW_PATH, Parameter(name="OUT", help="new file (csv, tsv, jsonl, parquet): rows and columns of IN")
    ],
    /,
    *,
    text_column: Annotated[
        str | None, Parameter(help="column with the texts [default: that of the training texts, else guessed]")
    ] = None,
    encoding: AskedEncoding = None,
    precision: AskedPrecision = None,
    place: Place = NOT_GIVEN,
    output: Output = Output(),
) -> None:
    """Classify the texts of a file, after bsl adapt with labels of classes.

    Each row gets its class, the probability, and the next two classes.
    """
    from bsl.flows.run_context import run_context_of

    check_one_file(source)
    check_new_file(target, source)
    check_classifier(model, run_context_of(place).open_store())
    with begin_here(place, source) as site:
        from bsl.tasks.serving.classify import check_target, classified, find_classifier, read_input, write_table
        from bsl.tasks.stage.ui import progress_of

        check_target(target)
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
    if not counts.is_empty():
        rows = counts.iter_rows()
        print_table("Rows of each class", [{"class": label, "rows": f"{count:,}"} for label, count in rows])
    note = f"; {empty:,} without text have no class" if empty else ""
    print(printable(f"{table.height:,} rows{note}; added: {', '.join(added)}: {target}"))
