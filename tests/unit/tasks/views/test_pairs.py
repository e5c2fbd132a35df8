"""The stage `pair` keeps only its first pairs in memory while it writes them all."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from models.views.pairs import PAIRS
from tasks.views.pairs import SAMPLE_ROWS, _remembered

LOTS, ROWS = 24, 100_000


def lots() -> Iterator[pl.DataFrame]:
    """Yield frames of some 20 MB."""
    for number in range(LOTS):
        ids = pl.Series("pair_id", range(number * ROWS, (number + 1) * ROWS), dtype=pl.UInt64)
        text = ids.cast(pl.String) + " is a sentence too long to lie in its column's views themselves, as most are."
        yield pl.DataFrame({"pair_id": ids, "text_1": text, "text_2": text}).select(
            pl.col(name) if name in ("pair_id", "text_1", "text_2") else pl.lit(None, dtype).alias(name)
            for name, dtype in PAIRS.items()
        )


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_the_first_pairs_are_kept_and_no_lot_of_theirs() -> None:
    first: list[dict[str, object]] = []
    early, size = 0, 0
    for number, rows in enumerate(_remembered(lots(), first)):
        size += int(rows.estimated_size())
        if number == 2:
            early = resident()
    assert len(first) == SAMPLE_ROWS
    assert str(first[0]["text_1"]).startswith("0 is a sentence")
    assert resident() - early < size / 3, "lots stay in memory"
