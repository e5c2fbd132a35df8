"""A scored set by which training selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.corpus.evaluation_sets import ScoredSet, read_scored_set

if TYPE_CHECKING:
    from models.training.dev_evaluation import DevSet


def dev_set(scored: ScoredSet) -> DevSet:
    """The set's pairs and scores as the training loop takes them."""
    from models.training.dev_evaluation import DevSet  # imported here: it brings torch

    rows = read_scored_set(scored)
    return DevSet(scored.name, rows["sentence1"].to_list(), rows["sentence2"].to_list(), rows["score"].to_list())
