"""What `bsl field` asks of both held-out parts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.text.normalize import sentence_ids
from models.text.passages import PASSAGES, HoldOutConfig, hold_out
from storage.manifest import Provenance
from storage.refs import PassagesRef
from storage.store import Store
from tasks.field_text import own_probes

if TYPE_CHECKING:
    from pathlib import Path


def test_units_of_the_two_parts_are_not_drawn_as_one(tmp_path: Path) -> None:
    numbers = pl.int_range(2000, eager=True)
    rows = pl.DataFrame({"text": [f"Sentence {n} of a single long document." for n in numbers]}).select(
        pl.lit(0, pl.UInt32).alias("document"),
        numbers.cast(pl.UInt32).alias("position"),
        sentence_ids(pl.col("text")).alias("sentence_id"),
        "text",
        pl.lit(None, pl.String).alias("title"),
        pl.lit("s").alias("source"),
        pl.lit("en").alias("lang"),
    )
    parts = hold_out(rows.select(PASSAGES.names()), HoldOutConfig())
    store, ref = Store(str(tmp_path)), PassagesRef(key=f"{1:064x}")
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(parts)
    units = {part: parts.filter(part=part)["unit"].n_unique() for part in ("choose", "report")}
    asked = own_probes(store, ref, None, 1000)["crop"].unit
    assert len({*asked}) == sum(units.values())
