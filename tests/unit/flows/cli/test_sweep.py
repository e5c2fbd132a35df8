"""Options of `bsl sweep own` reach the study's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsl.flows.cli.sweep import Own
from bsl.flows.cli.terminal.options import LabelColumns, Site
from bsl.storage.sources.labels import label_source

if TYPE_CHECKING:
    from pathlib import Path


def test_named_columns_of_labels_reach_the_study(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    rows = [f"Of parcel number {n} to me,My parcel number {n} is late.,{'ab'[n % 2]}" for n in range(12)]
    path.write_text("\n".join(["note,message,queue", *rows]))
    own = Own(text=(str(path),), labels=str(path))
    request = own.request(Site(), LabelColumns(label_column="queue", text_column=("message",)), "utf-8")
    assert request is not None
    labels = request.config({}, None).ingest.own_text.labels
    source = label_source(labels)
    assert (source.label, source.texts) == ("queue", ("message",))
