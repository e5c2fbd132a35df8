"""A stage that needs more memory than its limit: `python -m tests.starved STORE` fails halfway."""

import resource
import sys
from pathlib import Path

import polars as pl

from bsl.storage.artifacts.refs import ViewsRef
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.run_context import RunContext

NEEDED, LEFT = 256 << 20, 64 << 20  # bytes


@stage(ref=ViewsRef, version=1)
def hungry_views(context: StageContext, rows: int) -> None:
    """Write views whose second part needs much memory."""
    frame = pl.DataFrame({"sentence_id": range(rows), "method": "toy", "text": "A cat sits."})
    first = frame.cast({"sentence_id": pl.UInt64})
    context.draft.write(first)
    held = pl.Series([1], dtype=pl.UInt8).new_from_index(0, NEEDED)
    context.draft.write(first.with_columns(sentence_id=pl.col("sentence_id") + len(held)))


if __name__ == "__main__":
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + LEFT, size + LEFT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hungry_views(RunContext(store=sys.argv[1]), 1000)
