"""Encoders after a transform: fitted on the corpus, or on each evaluation set's own sentences."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from flows.precision import computed
from tasks.embedding.embed import embed
from tasks.embedding.transforms import fit_transform, fold_transform, transform
from tasks.evaluation.kinds import available, kind_of
from tasks.evaluation.systems import Candidate, System

if TYPE_CHECKING:
    from models.baselines.config import AnyTransform
    from storage.artifacts.refs import CorpusRef
    from tasks.evaluation.kinds import FoundSets
    from tasks.settings import RunSettings
    from tasks.stage.run_context import RunContext


def posthoc_systems(
    site: RunContext, candidate: Candidate, system: System, corpus: CorpusRef, found: FoundSets, config: RunSettings
) -> list[System]:
    """An encoder's vectors after the run's transform; none if it has no transform."""
    if config.transform is None:
        return []
    if config.transform_on == "corpus":
        return [_on_corpus(site, candidate, system, corpus, config.transform, config)]
    return _on_targets(site, candidate, found, config.transform, config)


def _on_corpus(
    site: RunContext,
    candidate: Candidate,
    system: System,
    corpus: CorpusRef,
    posthoc: AnyTransform,
    config: RunSettings,
) -> System:
    """One transform for all sets; where it is a matrix, there is an encoder that has taken it in."""
    own = embed(site, candidate.encoder, corpus, candidate.config, computed(config.evaluation.precision, site))
    fitted = fit_transform(site, own, posthoc)
    folded = fold_transform(site, candidate.encoder, candidate.config, fitted) if posthoc.folds else None
    return System(
        candidate.label + config.after_transform,
        folded.key if folded else system.checkpoint,
        transform(site, system.embeddings, fitted),
        folded=folded,
    )


def _on_targets(
    site: RunContext, candidate: Candidate, found: FoundSets, posthoc: AnyTransform, config: RunSettings
) -> list[System]:
    """A transform for each data set, fitted on all its sentences; a split that nobody has is left out, and logged."""
    systems = []
    frozen = [name for name in found.sets if not kind_of(name).fine_tunes]
    wholes = {name: kind_of(name).whole(name) for name in frozen}
    for _, names in groupby(sorted(frozen, key=wholes.__getitem__), key=wholes.__getitem__):
        asked = list(names)
        sets = tuple(available(site, wholes[asked[0]]).sets.values())
        vectors = embed(site, candidate.encoder, sets, candidate.config, computed(config.evaluation.precision, site))
        fitted = fit_transform(site, vectors, posthoc)
        systems.append(
            System(
                candidate.label + config.after_transform,
                candidate.checkpoint,
                transform(site, vectors, fitted),
                datasets=frozenset(wanted.dataset for wanted in sets),
            )
        )
    return systems
