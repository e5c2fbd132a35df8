"""Score a Python object that embeds text on the papers' sets, without a flow, a store or a model folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.models.evaluation.sweep import enough_draws, with_holm
from bsl.storage.errors import SourceError
from bsl.tasks.embedding.python_encoders import TextEncoder, embed_texts, name_of
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kind import TunedKind
from bsl.tasks.evaluation.kinds import UnknownSuiteError, available, draws_of_sets, kind_of, names_of
from bsl.tasks.stage.device import device_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bsl.models.evaluation.significance.hierarchical import BootstrapDraws
    from bsl.models.evaluation.significance.paired import Difference
    from bsl.models.evaluation.sweep import SetDraws
    from bsl.tasks.corpus.evaluation_sets import EvaluationSet
    from bsl.tasks.evaluation.kinds import FoundSets
    from bsl.tasks.stage.run_context import RunContext

_NOT_TUNED = "a Python object cannot be fine-tuned. Name a model: bsl evaluate MODEL --suite …"


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation.

    Attributes:
        scores: One row per score: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high, signature.
        missing: Unavailable set → the reason and the remedy.
    """

    scores: pl.DataFrame
    missing: dict[str, str]


def evaluate(
    encoder: TextEncoder,
    suite: Iterable[str],
    site: RunContext,
    config: ScoringConfig | None = None,
    name: str | None = None,
) -> Evaluation:
    """Score any object with `encode(list[str]) -> array`, or any such callable, on suites or sets; see `bsl.evaluate`.

    It receives each unique sentence of a kind of set once. Its name in signatures is by default that of its class, or
    of the function.

    Raises:
        UnknownSuiteError: A suite does not exist, or none is named.
        SourceError: None of the sets is available, or all fine-tune the encoder.
        EvaluationError: The object's vectors cannot be scored; the message names dataset, row and sentence.
    """
    from bsl.models.runtime.torch_settings import ieee_products  # imports torch

    names = names_of(suite)
    if not names:
        raise UnknownSuiteError("the suite is empty, expected at least one set, such as stsb/test")
    tuned = [name for name in names if isinstance(kind_of(name), TunedKind)]
    if len(tuned) == len(names):
        raise SourceError(f"all requested sets fine-tune the encoder; {_NOT_TUNED}")
    found = available(site, [name for name in names if name not in tuned])
    tables = []
    for kind, sets in found.frozen():
        vectors = embedded_by(encoder, sets, name or name_of(encoder))  # by the user's program, with its arithmetic
        with ieee_products():
            tables.append(kind.figures(sets, vectors, config or ScoringConfig(), device_of(site)))
    missing = {**found.missing, **dict.fromkeys(tuned, _NOT_TUNED)}
    return Evaluation(pl.concat(tables, how="diagonal_relaxed"), missing)


def compare(encoders: Mapping[str, TextEncoder], suite: Iterable[str], site: RunContext) -> pl.DataFrame:
    """Compare encoders with the first, on the same bootstrap draws of the rows of each set.

    Returns:
        One row for each set and each encoder after the first: model, reference, dataset, split, metric, protocol, n,
        value (the difference), ci_low, ci_high, p_value (with Holm's correction for several encoders).

    Raises:
        UnknownSuiteError: A suite does not exist, or systems are not compared on one of its sets.
        SourceError: None of the sets is available.
        EvaluationError: There is one encoder, or an encoder's vectors cannot be scored.
    """
    if len(encoders) < 2:
        raise EvaluationError(f"{' '.join(encoders) or 'no encoder'}: expected two or more encoders to compare.")
    names = names_of(suite)
    if other := [name for name in names if not kind_of(name).is_drawn]:
        raise UnknownSuiteError(f"{other[0]}: encoders are not compared on this set. Use `evaluate`, or another set")
    found = available(site, names)
    vectors = {name: embedded_by(one, found.embedded(), name) for name, one in encoders.items()}
    first = next(iter(encoders))
    rows = [
        {
            "model": name,
            "reference": first,
            **{field: getattr(drawn, field) for field in ("dataset", "split", "metric", "protocol", "n")},
            **asdict(difference),
        }
        for drawn, name, _, difference in differences(vectors, found)
    ]
    return with_holm(pl.DataFrame(rows))


def differences(
    vectors: Mapping[str, Vectors], found: FoundSets
) -> Iterator[tuple[SetDraws, str, BootstrapDraws, Difference]]:
    """Yield the draws of each set, and each system after the first: its name, draws, and difference from the first."""
    from bsl.models.evaluation.significance.hierarchical import difference_of

    sets = [(name, one, 0) for name, one in found.drawn.items()]
    config = BootstrapConfig(resamples=enough_draws(BootstrapConfig().resamples, len(vectors) - 1))
    for drawn in draws_of_sets(sets, [[one] for one in vectors.values()], config):
        first, *others = drawn.systems
        for name, system in zip([*vectors][1:], others, strict=True):
            yield drawn, name, system, difference_of(first, system)


def embedded_by(encoder: TextEncoder, sets: Sequence[EvaluationSet], name: str) -> Vectors:
    """Return an object's vectors of the sentences of sets, each embedded once.

    Raises:
        EvaluationError: The object's vectors cannot be scored.
    """
    places: dict[str, str] = {}
    for evaluation_set in sets:
        for number, text in enumerate(evaluation_set.sentences()):
            if text not in places:
                places[text] = evaluation_set.place(number)
    ids = pl.DataFrame({"text": list(places)}).select(sentence_ids(pl.col("text"))).to_series().to_list()
    rows = dict(zip(ids, range(len(ids)), strict=True))
    vectors = embed_texts(encoder, list(places), list(places.values()))
    return Vectors("the object's vectors", rows, {"vectors": f"object {name}"}, vectors)
