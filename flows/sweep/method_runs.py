"""Run one method from an encoder: pairs, step time, training or fit, vectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.run_context import computed
from flows.sweep.method_settings import FieldSettings, augmentation, pairing
from flows.sweep.methods import FOREVER, LABELS, SMALL, START, WORDS, Method, Start
from models.encoder.config import EncoderConfig
from models.evaluation.config import BootstrapConfig
from storage.sources.model_sources import settings_of
from tasks.corpus.evaluation_sets import ScoredSet
from tasks.embedding.embed import embed, embed_tfidf
from tasks.embedding.encoders import can_drop, described_folder, is_bare, resolve_encoder, saved_settings
from tasks.embedding.transforms import fit_transform, fold_transform, transform
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text_sets import pair_own_labels
from tasks.evaluation.sts import score
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.device import device_of
from tasks.training.step_timing import affordable, pace_fit, pace_training, seconds_a_step
from tasks.training.teachers import find_teachers, teach
from tasks.training.train import train
from tasks.translation.translator import find_translator
from tasks.views.augment import augment
from tasks.views.pairs import pair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from models.runtime.precision import Computed
    from models.views.config import AugmentConfig
    from storage.artifacts.refs import (
        CheckpointRef,
        CorpusRef,
        EmbeddingsRef,
        PairsRef,
        TransformRef,
    )
    from storage.sources.model_sources import ResolvedModel
    from tasks.corpus.evaluation_sets import EvaluationSet
    from tasks.evaluation.own_text import HeldOutSet
    from tasks.stage.run_context import RunContext

JUDGE: Final = "embedded:stsb/dev"
MINI_SENTENCE, MINI_BERT = "embedded:mini-sentence", "embedded:bert-mini"
_TRIAL: Final = 10  # steps that a pace's configuration speaks of
_KINDS: Final = {
    "small": "a small masked language model",
    "raw": "a masked language model",
    "trained": "a trained sentence encoder",
}


@dataclass(frozen=True)
class StartEncoder:
    """An encoder that methods start from.

    Attributes:
        name: as a person names it.
        encoder: where its files are.
        config: how it is read.
        start: what kind it is, which decides the learning rates.
        heads: its modules after pooling; `truncate_dim` where it keeps the first dimensions alone.
        drops: whether it has dropout to be set.
    """

    name: str
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig
    start: Start
    heads: tuple[str, ...] = ()
    drops: bool = True

    @property
    def title(self) -> str:
        """What tables call it."""
        return EncoderConfig(model=self.name).short_name

    @property
    def said(self) -> str:
        """For notes."""
        return _KINDS[self.start]


def start_encoder_of(site: RunContext, name: str) -> StartEncoder:
    """Find an encoder, read as its folder says.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
    """
    encoder, named = resolve_encoder(site, EncoderConfig(model=name))
    folder = described_folder(site.open_store(), encoder)
    if not is_bare(site, encoder):
        from models.encoder.serialization.load import read_saved  # transformers

        saved = read_saved(folder)
        heads = tuple(head.kind for head in saved.sentence_heads) + ("truncate_dim",) * (saved.kept is not None)
        return StartEncoder(
            name, encoder, saved_settings(site, encoder, named), "trained", heads, can_drop(site, encoder)
        )
    width = json.loads((settings_of(folder) / "config.json").read_text(encoding="utf-8")).get("hidden_size", SMALL + 1)
    return StartEncoder(name, encoder, named, "small" if width <= SMALL else "raw")


def inapplicable(methods: Iterable[Method], origin: StartEncoder, settings: FieldSettings) -> dict[str, str]:
    """Why some methods cannot be tried on this text from this encoder, by their names."""
    reasons = {}
    for method in methods:
        if method.views == "round trips" and not settings.trips:
            reasons[method.name] = (
                f"not tried: no translator of {settings.translators!r} knows a way from {settings.lang!r} and back"
            )
        elif method.headless and origin.heads:
            reasons[method.name] = (
                f"not tried: it holds token vectors against their mean, and {origin.title} has "
                f"{', '.join(origin.heads)} after pooling; start from an encoder without"
            )
        elif "dropout" in method.encoder and not origin.drops:
            reasons[method.name] = (
                f"not tried: it reads under dropout, and {origin.title} is a table of words, which has none; start "
                "from a transformer"
            )
    return reasons


@dataclass(frozen=True)
class MethodInputs:
    """What all methods have in common.

    Attributes:
        site: where the run happens.
        settings: what is tried, for how long.
        text: the held-out text with its questions, and labels.
        corpus: what may be learnt.
        checks: scored pairs on which nothing should be lost.
    """

    site: RunContext
    settings: FieldSettings
    text: HeldOutSet
    corpus: CorpusRef
    checks: tuple[ScoredSet, ...]

    @property
    def sets(self) -> tuple[EvaluationSet, ...]:
        """All that methods are scored on."""
        return (self.text, *self.checks)

    @property
    def precision(self) -> Computed:
        """What encoders compute in here."""
        return computed(self.settings.precision, self.site)


def run_method(shared: MethodInputs, origin: StartEncoder, method: Method) -> SweepSystem:
    """Return a method with its artifacts: it is trained or fitted here, or found so.

    Raises:
        ModelError: it cannot be trained from this encoder, or diverged.
    """
    if method.name == WORDS:
        return SweepSystem(label=method.title, embeddings=(embed_tfidf(shared.site, shared.corpus, shared.sets),))
    if method.objective is not None:
        return _trained(shared, origin, method)
    if method.transform is not None:
        return _fitted(shared, origin, method)
    assert method.name == START  # all others train or fit
    return SweepSystem(label=method.title, embeddings=(_vectors(shared, origin.encoder, origin.config),))


def _trained(shared: MethodInputs, origin: StartEncoder, method: Method) -> SweepSystem:
    site, settings = shared.site, shared.settings
    views = augmentation(method.views, settings) if method.views and method.views != LABELS else None
    pairs = _pairs(shared, method, views)
    student, teacher, notes = _taught(shared, origin) if method.taught else (origin, None, ())
    encoder = student.config.model_copy(update=dict(method.encoder))
    steps, pace = settings.budget.steps, None
    if settings.budget.seconds is not None:
        trial = method.configured(student.start, _TRIAL, precision=settings.precision)
        pace = pace_training(site, pairs, student.encoder, encoder, trial, device_of(site), teacher)
        steps = affordable(settings.budget.seconds, seconds_a_step(site.open_store(), pace))
    assert steps is not None  # a budget is one or the other
    configs = [method.configured(student.start, steps, seed, settings.precision) for seed in range(settings.seeds)]
    checkpoints = tuple(train(site, pairs, student.encoder, None, encoder, config, teacher) for config in configs)
    vectors = tuple(_vectors(shared, checkpoint, encoder) for checkpoint in checkpoints)
    memories = _memories(site, views) if views else ()
    taken = _steps_of(site, checkpoints[0])
    return SweepSystem(
        label=method.title,
        embeddings=vectors,
        checkpoints=checkpoints,
        steps=taken,
        pace=pace,
        translators=memories,
        notes=(*notes, *_ended(method, taken, steps)),
    )


def _fitted(shared: MethodInputs, origin: StartEncoder, method: Method) -> SweepSystem:
    site, settings = shared.site, shared.settings
    store = site.open_store()
    own = embed(site, origin.encoder, shared.corpus, origin.config, shared.precision)
    before = _vectors(shared, origin.encoder, origin.config)
    width = store.manifest(own).figures["dimensions"]
    assert isinstance(width, int)
    steps, pace = 0, None
    if method.steps:
        pace = pace_fit(site, own, method.fitted(width, _TRIAL), device_of(site))
        a_step = seconds_a_step(store, pace)
        steps = settings.budget.steps or affordable(settings.budget.seconds or a_step, a_step)
    seeds = range(settings.seeds if method.steps else 1)
    fits = [fit_transform(site, own, method.fitted(width, steps, seed)) for seed in seeds]
    taken = _steps_of(site, fits[0]) if method.steps else 0
    after = tuple(transform(site, before, fit) for fit in fits)
    folds = method.transform is not None and method.transform.folds
    folded = tuple(fold_transform(site, origin.encoder, origin.config, fit) for fit in fits) if folds else ()
    return SweepSystem(
        label=method.title,
        embeddings=after,
        checkpoints=folded,
        steps=taken,
        pace=pace,
        notes=_ended(method, taken, steps),
    )


def _steps_of(site: RunContext, made: CheckpointRef | TransformRef) -> int:
    """Steps that were taken: over little text, passes end them before the budget does."""
    steps = site.open_store().manifest(made).figures["steps"]
    assert isinstance(steps, int)
    return steps


def _ended(method: Method, taken: int, steps: int) -> tuple[str, ...]:
    """A note where the budget buys more steps than were taken."""
    if taken >= steps:
        return ()
    return (f"{method.title}: {FOREVER:,} passes over so little end it after {taken:,} of {steps:,} steps.",)


def _pairs(shared: MethodInputs, method: Method, views: AugmentConfig | None) -> PairsRef:
    if views is None:
        assert shared.text.labels is not None  # or the method is not tried
        return pair_own_labels(shared.site, shared.text.passages, shared.text.labels, "field", 0)
    assert method.views is not None  # it trains
    return pair(shared.site, augment(shared.site, shared.corpus, views), pairing(method.views, shared.settings))


def _taught(shared: MethodInputs, origin: StartEncoder) -> tuple[StartEncoder, EmbeddingsRef | None, tuple[str, ...]]:
    """Who learns, the teacher's vectors, and a note of who taught whom.

    An encoder that is better than the embedded one teaches that, which is smaller; a worse one learns from it.
    """
    site = shared.site
    student, teacher = origin, shared.settings.teacher
    if teacher is None:
        mini = start_encoder_of(site, MINI_SENTENCE)
        if _judged(shared, origin) > _judged(shared, mini):
            student, teacher = mini, origin.name
        else:
            student, teacher = origin, MINI_SENTENCE
    if student.name == teacher:
        student = start_encoder_of(site, MINI_BERT)
    found = find_teachers(site, [EncoderConfig(model=teacher)])
    vectors = teach(site, shared.corpus, found, shared.precision)
    return student, vectors, (f"Distillation: {EncoderConfig(model=teacher).short_name} teaches {student.title}.",)


def _judged(shared: MethodInputs, origin: StartEncoder) -> float:
    """Spearman on the set by which it is decided who teaches."""
    site = shared.site
    sets = tuple(found for found in available(site, (JUDGE,)).sets.values() if isinstance(found, ScoredSet))
    vectors = embed(site, origin.encoder, sets, origin.config, shared.precision)
    scores = score(site, vectors, origin.title, "", sets, BootstrapConfig(resamples=100))
    table = site.open_store().scan(scores).filter(metric="spearman", protocol="all", subset="all").collect()
    return float(table["value"].item())


def _vectors(shared: MethodInputs, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EmbeddingsRef:
    return embed(shared.site, encoder, shared.sets, config, shared.precision)


def _memories(site: RunContext, views: AugmentConfig) -> tuple[str, ...]:
    return tuple(f"translations/{find_translator(site, hop).fingerprint}" for view in views.routes for hop in view.hops)
