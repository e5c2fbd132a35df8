"""Labels that a person gives, and what of the text they keep from being learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from models.errors import EvaluationError
from models.evaluation.proof import ProofConfig
from models.own_labels import unlearnt
from models.text.errors import EmptyCorpusError
from models.text.passages import HoldOutConfig, passages
from storage.labels import LabelSource, label_source
from storage.manifest import Provenance
from storage.refs import PassagesRef
from storage.schemas import PASSAGES
from tasks.labels import labelled_halves, without_judging
from tasks.prove import check_asked
from tasks.site import Site

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [f"The boat of captain number {n} came late again." for n in range(400)]


def _file(tmp_path: Path, texts: list[str]) -> LabelSource:
    rows = pl.DataFrame({"text": texts, "label": [("bad", "good")[n % 2] for n in range(len(texts))]})
    rows.write_csv(tmp_path / "labels.csv")
    return label_source(str(tmp_path / "labels.csv"))


def _parts(texts: list[str], held: int) -> pl.DataFrame:
    """Documents of one sentence, the first of which are held out."""
    table = passages(pl.DataFrame({"text": texts}).with_row_index("document").with_columns(
        title=pl.lit(None, pl.String), continues=pl.lit(value=False), source=pl.lit("own"), lang=pl.lit("en")
    ), HoldOutConfig())  # fmt: skip
    number = pl.int_range(pl.len(), dtype=pl.UInt32)
    part = pl.when(number >= held).then(pl.lit("train")).when(number < held // 2).then(pl.lit("choose"))
    return table.with_columns(unit=number, part=part.otherwise(pl.lit("report")))


def test_every_sentence_of_few_labelled_texts_is_kept_from_being_learnt(tmp_path: Path) -> None:
    apart = ["The room was cold and small.", "Nobody came when we rang the bell!", "We would gladly come here again."]
    parts = _parts([*TEXTS, *apart], held=10)
    left = without_judging(parts, _file(tmp_path, [f"{apart[0]} {apart[1]}", apart[2]]), seed=0)
    assert parts.filter(~pl.col("text").is_in(apart)).equals(left)


def test_where_the_text_is_labelled_itself_most_of_it_is_learnt_and_the_rest_judges(tmp_path: Path) -> None:
    source = _file(tmp_path, TEXTS)
    left = without_judging(_parts(TEXTS, held=120), source, seed=0)
    learnt = left.filter(part="train")
    assert 0.6 < learnt.height / 280 < 0.8
    halves = labelled_halves(source, learnt["sentence_id"], seed=0)
    judging = {*halves["choose"].first, *halves["report"].first}
    assert judging == {*TEXTS} - {*learnt["text"]}


def test_labels_that_leave_nothing_to_learn_are_refused(tmp_path: Path) -> None:
    parts = _parts(TEXTS[:20], held=10)
    texts = [" ".join(TEXTS[:20]), "Another text that stands nowhere else."]
    seed = next(seed for seed in range(50) if _is_all_drawn(texts, parts, seed))
    with pytest.raises(EmptyCorpusError, match=r"all 10 sentences that could be learnt .* give text beside the labels"):
        without_judging(parts, _file(tmp_path, texts), seed)


def _is_all_drawn(texts: list[str], parts: pl.DataFrame, seed: int) -> bool:
    learnt = parts.filter(part="train")["sentence_id"]
    return bool(learnt.is_in(unlearnt(pl.DataFrame({"text": texts}), ["text"], learnt, seed=seed).implode()).all())


def test_what_cannot_be_asked_is_said_before_anything_is_translated(tmp_path: Path) -> None:
    site = Site(store=str(tmp_path / "store"), device="cpu", threads=1)

    def published(number: int, held: int) -> PassagesRef:
        ref = PassagesRef(key=f"{number:064x}")
        with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
            draft.write(_parts(TEXTS, held).select(PASSAGES.names()).cast(PASSAGES))
        return ref

    few, enough = published(1, 40), published(2, 120)
    check_asked(site, enough, None, ProofConfig())
    with pytest.raises(EvaluationError, match=r"too few documents .* found 20 sentences of 20 .* part 'choose'; give"):
        check_asked(site, few, None, ProofConfig())
    with pytest.raises(EvaluationError, match=r"24 labelled rows of text that is not learnt leave \d for the half"):
        check_asked(site, enough, _file(tmp_path, TEXTS[:24]), ProofConfig())
