"""Results of runs in the store, and the forms in which a caller names finished runs and encoders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsl.encoder import SentenceEncoder
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.errors import ArtifactMissingError
from bsl.storage.filesystem.values import described, require_name
from bsl.tasks.embedding.python_encoders import name_of
from bsl.tasks.evaluation.taught_rows import notes_on
from bsl.tasks.figures import ResultFigures
from bsl.tasks.reporting.publish import page_of
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from pydantic import JsonValue

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.embedding.python_encoders import TextEncoder


@dataclass(frozen=True)
class Result:
    """Result of a run in the store.

    Attributes:
        store: Store that contains the result.
        ref: Reference of the artifact; `ref.path` is its name in commands, as in `bsl evaluate report/<key>`.
    """

    store: Store
    ref: ArtifactRef

    @property
    def page(self) -> Path:
        """Path of the HTML page; a local copy if the store is remote."""
        return page_of(self.store, self.ref)

    @property
    def figures(self) -> dict[str, JsonValue]:
        """Figures in the manifest, such as the verdict and the reason for it."""
        return dict(self.store.manifest(self.ref).figures)

    @property
    def finding(self) -> str:
        """The verdict, the uses that it holds for, and advice, as commands print them; empty without a comparison."""
        return " ".join(self.store.manifest(self.ref).figures_as(ResultFigures).findings)

    @property
    def scores(self) -> pl.DataFrame:
        """Scores, one per row: model, dataset, split, metric, protocol, value, interval and signature.

        Raises:
            ArtifactMissingError: It is the result of an adaptation, whose scores are in `figures["uses"]`.
        """
        if "uses" in self.store.manifest(self.ref).figures:
            raise ArtifactMissingError(
                f"{self.ref}: an adaptation has no table of scores. figures['uses'] has the score of each use, before "
                "and after; to score its encoder on sets, pass it to evaluate"
            )
        return self.store.scan(self.ref, "scores").collect()

    @property
    def encoder(self) -> SentenceEncoder:
        """The trained encoder.

        Raises:
            ArtifactMissingError: The run trained no encoder.
        """
        from bsl.tasks.embedding.encoders import encoder_folder, find_encoder

        context = RunContext(store=self.store.url)
        return SentenceEncoder.load(encoder_folder(self.store, find_encoder(context, self.ref.path, None)))


@dataclass(frozen=True)
class GivenEncoder:
    """An encoder of the caller.

    Attributes:
        name: Name in tables.
        encoder: The encoder itself.
        known_as: The name by which `context` finds it; None for an object.
        context: Its store.
    """

    name: str
    encoder: TextEncoder
    known_as: str | None
    context: RunContext

    @classmethod
    def of(cls, given: str | Path | Result | TextEncoder, context: RunContext, name: str | None = None) -> GivenEncoder:
        """Return an encoder that is given by name, as a result, or as an object.

        Args:
            given: The encoder.
            context: Store and device of encoders that are given by name.
            name: Name in tables; by default its own.
        """
        if isinstance(given, Result):
            path = given.ref.path
            return cls(name or path, given.encoder, path, RunContext(store=given.store.url))
        if isinstance(given, str | Path):
            encoder = SentenceEncoder.load(given, store=context.store, device=device_of(context))
            return cls(name or str(given), encoder, str(given), context)
        return cls(name or name_of(given), given, None, context)

    def notes(self, sets: Sequence[str]) -> list[str]:
        """Return a sentence for each set of labels whose rows trained the encoder."""
        return [] if self.known_as is None else notes_on(self.context, self.known_as, sets)


def encoders_of(given: object, context: RunContext) -> list[GivenEncoder]:
    """Return the encoders to compare.

    Args:
        given: Encoders, or a dictionary from names to encoders.
        context: Store and device of encoders that are given by name.

    Raises:
        ValueError: Two encoders have the same name.
    """
    if isinstance(given, Mapping):
        return [GivenEncoder.of(one, context, name) for name, one in given.items()]
    found = [GivenEncoder.of(one, context) for one in listed(given)]
    names = [one.name for one in found]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two encoders have the name {repeated!r}. Pass a dictionary from names to encoders")
    return found


def run_named(run: object) -> str:
    """Return the name of a finished run.

    Raises:
        TypeError: It is an encoder.
    """
    if isinstance(run, Result):
        return run.ref.key
    if not isinstance(run, str) or run.startswith(EMBEDDED):
        raise TypeError(f"{described(run)} is no finished run. To compare encoders, name sets too")
    return require_name(run, "a run")


def listed(given: object) -> list[Any]:
    """Return runs or encoders as a list: a single one is refused later, not read letter by letter."""
    if isinstance(given, str | Mapping) or hasattr(given, "encode") or not isinstance(given, Iterable):
        return [given]
    return [*given]
