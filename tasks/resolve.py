"""What a run takes from outside besides its corpus: found before the first stage, named in keys by its bytes."""

import logging
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.encoder.config import EncoderConfig
from storage.declarations import DATASETS
from storage.embedded import EMBEDDED
from storage.errors import SourceError
from storage.scored import read_declared_pairs
from storage.sources import ResolvedSource, SourceSpec, resolve_source
from storage.weights import ResolvedModel, find_model, resolve_model
from tasks.site import Site

logger = logging.getLogger(__name__)


class EvaluationSet(BaseModel):
    """One split of a data set that encoders are evaluated on, whatever the task."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    dataset: str
    """Declared name, without `embedded:`."""
    split: str
    source: ResolvedSource

    @property
    def name(self) -> str:
        """For messages and tables."""
        return f"{self.dataset} {self.split}"

    def sentences(self) -> pl.Series:
        """Every sentence that the task needs an embedding of, as often as it occurs."""
        raise NotImplementedError


class ScoredSet(EvaluationSet):
    """One split of a semantic textual similarity set."""

    def sentences(self) -> pl.Series:
        """Both sides of each pair."""
        pairs = read_scored_set(self)
        return pl.concat([pairs["sentence1"], pairs["sentence2"]])


def resolve_encoder(site: Site, config: EncoderConfig) -> tuple[ResolvedModel, EncoderConfig]:
    """Find the transformer that training starts from.

    Returns:
        The model, and the configuration with the model's identity in the place of its name: a folder's path or an
        unpinned revision must not decide a key.
    """
    found = resolve_named_model(site, config.model, config.revision)
    return found, config.model_copy(update={"model": found.identity, "revision": None})


def resolve_named_model(site: Site, model: str, revision: str | None) -> ResolvedModel:
    """Find a model by folder, `embedded:` name or Hub id; a mirror may stand in for the Hub."""
    return resolve_model(model, revision, site.mirror, Path(site.cache) if site.cache else None)


def look_up_model(site: Site, model: str, revision: str | None) -> str:
    """The identity of a model, without fetching what only the Hub has."""
    return find_model(model, revision, site.mirror)


def resolve_scored_set(site: Site, name: str) -> ScoredSet:
    """Find the set called `<name>/<split>`, such as `stsb/test` or `embedded:stsb/dev`.

    Raises:
        SourceError: the name has another form, is not declared, or nobody has the set.
    """
    dataset, _, split = name.rpartition("/")
    declared = dataset.removeprefix(EMBEDDED)
    check_name(name)
    source = resolve_source(SourceSpec(dataset=dataset, split=split), site.mirror)
    return ScoredSet(dataset=declared, split=split, source=source)


def check_name(name: str) -> None:
    """Refuse what names no scored set.

    Raises:
        SourceError: with the names that exist.
    """
    dataset = name.rpartition("/")[0].removeprefix(EMBEDDED)
    if dataset not in DATASETS or DATASETS[dataset].score_range is None:
        known = ", ".join(other for other, found in DATASETS.items() if found.score_range)
        raise SourceError(f"{name!r} names no scored set; expected <name>/<split> with a name out of {known}")


@lru_cache(maxsize=64)  # the whole suite: several stages read the same set, perhaps from the Hub
def read_scored_set(scored: ScoredSet) -> pl.DataFrame:
    """The pairs in their order, checked: `subset`, `sentence1`, `sentence2`, `score`."""
    return read_declared_pairs(scored.dataset, scored.split, scored.source)


def available(site: Site, names: Iterable[str]) -> tuple[tuple[ScoredSet, ...], dict[str, str]]:
    """The sets that can be had and read, and why each of the others cannot.

    Raises:
        SourceError: a name is not that of a set, or none of the sets can be had.
    """
    found: list[ScoredSet] = []
    missing: dict[str, str] = {}
    for name in names:
        check_name(name)
        try:
            scored = resolve_scored_set(site, name)
            read_scored_set(scored)
        except SourceError as error:
            logger.warning("%s is missing: %s", name, error)
            missing[name] = str(error)
        else:
            found.append(scored)
    if not found:
        raise SourceError("none of the sets can be had: " + "; ".join(missing.values()))
    return tuple(found), missing
