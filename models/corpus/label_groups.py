"""Divide labelled rows that have groups, such as writers or customers, so that no group is in both parts."""

from __future__ import annotations

import numpy as np
import polars as pl

from bsl.models.runtime.partitions import scattered


def judged_groups(texts: pl.DataFrame, groups: pl.Series, of_training: float, of_others: float, seed: int) -> pl.Series:
    """Return whether each row is for evaluation; null for a row whose texts would be in both parts.

    Rows that share a text or a group get the same part, directly or through others. If that connects more than half of
    the rows, only groups decide, and training rows that share a text with an evaluation row are null. Groups with a
    held-out text are for evaluation; of the others, groups are drawn until they have the share of the rows, because
    few groups drawn independently would often be almost all in one part.

    Args:
        texts: `row`, `text` (its id, UInt64), `held_out`, `training`: one row per text, as of `parts_of`.
        groups: Group of each row.
        of_training: Share of evaluation among rows on training text.
        of_others: The same among rows on other text.
        seed: Seed of the draw.
    """
    height = len(groups)
    connected = connected_rows(height, pl.concat([texts["text"].cast(pl.String), "group " + groups.cast(pl.String)]))
    is_large = int(connected.value_counts()["count"].max()) > height / 2  # type: ignore[arg-type]  # a count
    unit = groups.rank("dense").alias("unit") if is_large else connected.alias("unit")
    rows = texts.group_by("row").agg(pl.col("held_out", "training").any(), pl.col("text").min()).sort("row")
    units = rows.with_columns(unit).group_by("unit").agg(
        pl.col("held_out", "training").any(), pl.col("text").min(), size=pl.len()
    )  # fmt: skip
    # Groups that share their first text need a second key, or `group_by` decides, whose order differs in each call.
    keys = (scattered(pl.col(name).cast(pl.UInt64), seed) for name in ("text", "unit"))
    free = units.filter(~pl.col("held_out")).sort(*keys)
    share = pl.when("training").then(of_training).otherwise(of_others)
    middle = pl.col("size").cum_sum().over("training") - pl.col("size") / 2
    drawn = free.filter(middle < share * pl.col("size").sum().over("training"))
    judged = pl.concat([units.filter("held_out")["unit"], drawn["unit"]])
    judging = unit.is_in(judged.implode())
    if not is_large:
        return judging
    known = texts.with_columns(judging=judging.gather(texts["row"]))
    test_texts = known.filter("judging")["text"].unique()
    shared = known.filter(pl.col("text").is_in(test_texts.implode()))["row"].unique()
    is_shared = pl.Series(np.isin(np.arange(height), shared.to_numpy()))
    return pl.select(pl.when(~(~judging & is_shared)).then(judging)).to_series()


def connected_rows(rows: int, nodes: pl.Series) -> pl.Series:
    """Return the group number of each row; rows that share a node, directly or through others, form a group.

    Args:
        rows: number of rows.
        nodes: ids of texts, or of other things that rows share: those of all rows in order, perhaps several times.
    """
    from scipy.sparse import coo_array  # slow imports, not needed to find cached results
    from scipy.sparse.csgraph import connected_components

    numbers = nodes.rank("dense").to_numpy().astype(np.int64) - 1
    row_numbers = np.tile(np.arange(rows), len(nodes) // max(1, rows))
    size = rows + int(numbers.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(row_numbers), dtype=np.int8), (row_numbers, rows + numbers)), shape=(size, size))
    _, groups = connected_components(graph, directed=False)
    return pl.Series("group", groups[:rows])
