"""Options of `bsl sweep own` reach the study's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsl.flows.cli.sweep import own_request
from bsl.flows.cli.terminal.options import LabelColumns
from bsl.storage.sources.labels import label_source
from bsl.tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from pathlib import Path


def test_named_columns_of_labels_reach_the_study(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    rows = [f"Of parcel number {n} to me,My parcel number {n} is late.,{'ab'[n % 2]}" for n in range(12)]
    path.write_text("\n".join(["note,message,queue", *rows]))
    columns = LabelColumns(label_column="queue", text_column=("message",))
    request = own_request({"text": (str(path),), "labels": str(path)}, RunContext(), columns, "utf-8")
    assert request is not None
    labels = request.config({}, None).ingest.own_text.labels
    source = label_source(labels)
    assert (source.label, source.texts) == ("queue", ("message",))
