"""Views to training pairs."""

from typing import TYPE_CHECKING

from models.pairs import PairConfig, build_pairs, count_pairs, require_pairs
from storage.refs import PairsRef, ViewsRef
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table

if TYPE_CHECKING:
    from pydantic import JsonValue

SAMPLE_ROWS = 20


@stage(ref=PairsRef, version=2)
def pair(work: Work, views: ViewsRef, config: PairConfig) -> None:
    """Put two views of each sentence side by side, in the order in which training reads them."""
    frame = work.store.scan(views)
    counts = count_pairs(frame, config)
    require_pairs(counts)
    pairs = build_pairs(frame, config).collect()
    work.draft.write(pairs)
    pairings: list[JsonValue] = [dict(row) for row in counts.iter_rows(named=True)]
    work.draft.note({"pairings": pairings})
    show_table("pair-counts", counts.to_dicts(), "Pairs by pairing, and sentences that lack a view")
    first = pairs.head(SAMPLE_ROWS).drop("pair_id", "sentence_id")
    show_table("pair-samples", first.to_dicts(), "The first pairs in training order")
