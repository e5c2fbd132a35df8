"""A method with a seed as a run of a sweep: pairs, step time, training or fit, vectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from flows.run_context import computed
from flows.sweep.method_settings import Budget, FieldSettings, augmentation, pairing
from flows.sweep.methods import FOREVER, LABELS, SMALL, WORDS, Method, Start, methods_of
from models.encoder.config import EncoderConfig
from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import CheckpointRef, CorpusRef
from storage.record import Record
from storage.sources.model_sources import ResolvedModel, settings_of
from tasks.corpus.evaluation_sets import ScoredSet
from tasks.embedding.embed import embed, embed_tfidf
from tasks.embedding.encoders import can_drop, described_folder, is_bare, resolve_encoder, saved_settings
from tasks.embedding.transforms import fit_transform, fold_transform, transform
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text import HeldOutSet
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
    from storage.artifacts.refs import EmbeddingsRef, PaceRef, PairsRef, TransformRef
    from tasks.corpus.evaluation_sets import EvaluationSet
    from tasks.stage.run_context import RunContext

JUDGE: Final = "embedded:stsb/dev"
MINI_SENTENCE, MINI_BERT = "embedded:mini-sentence", "embedded:bert-mini"
_TRIAL: Final = 10  # steps that a pace's configuration speaks of
_KINDS: Final = {
    "small": "a small masked language model",
    "raw": "a masked language model",
    "trained": "a trained sentence encoder",
}


class StartEncoder(Record):
    """An encoder that methods start from."""

    name: str
    """As a person names it."""
    encoder: CheckpointRef | ResolvedModel
    """Where its files are."""
    config: EncoderConfig
    """How it is read."""
    start: Start
    """What kind it is, which decides the learning rates."""
    heads: tuple[str, ...] = ()
    """Its modules after pooling; `truncate_dim` where it keeps the first dimensions alone."""
    drops: bool = True
    """Whether it has dropout to be set."""

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
            name=name,
            encoder=encoder,
            config=saved_settings(site, encoder, named),
            start="trained",
            heads=heads,
            drops=can_drop(site, encoder),
        )
    width = json.loads((settings_of(folder) / "config.json").read_text(encoding="utf-8")).get("hidden_size", SMALL + 1)
    return StartEncoder(name=name, encoder=encoder, config=named, start="small" if width <= SMALL else "raw")


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


class MethodInputs(Record):
    """What all methods have in common."""

    settings: FieldSettings
    """What is tried, for how long."""
    start: StartEncoder
    """What they start from."""
    text: HeldOutSet
    """The held-out text with its questions, and labels."""
    corpus: CorpusRef
    """What may be learnt."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which nothing should be lost."""

    @property
    def sets(self) -> tuple[EvaluationSet, ...]:
        """All that methods are scored on."""
        return (self.text, *self.checks)


class MethodRun(Record):
    """A method with a seed."""

    inputs: MethodInputs
    """What it has in common with the others."""
    method: str
    """Its name."""
    seed: int
    """Of what it draws."""

    def run(self, site: RunContext) -> SweepSystem:
        """Train or fit the method, or find that done.

        Raises:
            ModelError: it cannot be trained from this encoder, or diverged.
        """
        inputs, start, method = self.inputs, self.inputs.start, methods_of([self.method])[-1]
        if method.objective is not None:
            return _trained(site, inputs, method, self.seed)
        if method.transform is not None:
            return _fitted(site, inputs, method, self.seed)
        if method.name == WORDS:
            vectors = embed_tfidf(site, inputs.corpus, inputs.sets)
        else:
            vectors = _vectors(site, inputs, start.encoder, start.config)
        return SweepSystem(label=method.title, embeddings=(vectors,))


def _trained(site: RunContext, inputs: MethodInputs, method: Method, seed: int) -> SweepSystem:
    settings = inputs.settings
    views = augmentation(method.views, settings) if method.views and method.views != LABELS else None
    pairs = _pairs(site, inputs, method, views)
    student, teacher, notes = _taught(site, inputs) if method.taught else (inputs.start, None, ())
    encoder = student.config.model_copy(update=dict(method.encoder))
    pace = None
    if settings.budget.steps is None:
        trial = method.configured(student.start, _TRIAL, precision=settings.precision)
        pace = pace_training(site, pairs, student.encoder, encoder, trial, device_of(site), teacher)
    steps = _steps_for(site, settings.budget, pace)
    config = method.configured(student.start, steps, seed, settings.precision)
    checkpoint = train(site, pairs, student.encoder, None, encoder, config, teacher)
    taken = _steps_of(site, checkpoint)
    return SweepSystem(
        label=method.title,
        embeddings=(_vectors(site, inputs, checkpoint, encoder),),
        checkpoints=(checkpoint,),
        steps=taken,
        pace=pace,
        translators=_memories(site, views) if views else (),
        notes=(*notes, *_ended(method, taken, steps)),
    )


def _fitted(site: RunContext, inputs: MethodInputs, method: Method, seed: int) -> SweepSystem:
    start = inputs.start
    own = embed(site, start.encoder, inputs.corpus, start.config, computed(inputs.settings.precision, site))
    before = _vectors(site, inputs, start.encoder, start.config)
    width = site.open_store().manifest(own).figures["dimensions"]
    assert isinstance(width, int)
    pace = pace_fit(site, own, method.fitted(width, _TRIAL), device_of(site)) if method.steps else None
    steps = _steps_for(site, inputs.settings.budget, pace) if method.steps else 0
    config = method.fitted(width, steps, seed)
    fit = fit_transform(site, own, config)
    taken = _steps_of(site, fit) if method.steps else 0
    return SweepSystem(
        label=method.title,
        embeddings=(transform(site, before, fit),),
        checkpoints=(fold_transform(site, start.encoder, start.config, fit),) if config.folds else (),
        steps=taken,
        pace=pace,
        notes=_ended(method, taken, steps),
    )


def _steps_for(site: RunContext, budget: Budget, pace: PaceRef | None) -> int:
    """The steps of a budget, or those that its seconds buy at a measured pace."""
    if budget.steps is not None:
        return budget.steps
    assert budget.seconds is not None  # a budget is one or the other
    assert pace is not None  # measured for it
    return affordable(budget.seconds, seconds_a_step(site.open_store(), pace))


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


def _pairs(site: RunContext, inputs: MethodInputs, method: Method, views: AugmentConfig | None) -> PairsRef:
    if views is None:
        assert inputs.text.labels is not None  # or the method is not tried
        return pair_own_labels(site, inputs.text.passages, inputs.text.labels, "field", 0)
    assert method.views is not None  # it trains
    return pair(site, augment(site, inputs.corpus, views), pairing(method.views, inputs.settings))


def _taught(site: RunContext, inputs: MethodInputs) -> tuple[StartEncoder, EmbeddingsRef | None, tuple[str, ...]]:
    """Who learns, the teacher's vectors, and a note of who taught whom.

    An encoder that is better than the embedded one teaches that, which is smaller; a worse one learns from it.
    """
    student, teacher = inputs.start, inputs.settings.teacher
    precision = computed(inputs.settings.precision, site)
    if teacher is None:
        mini = start_encoder_of(site, MINI_SENTENCE)
        if _judged(site, student, precision) > _judged(site, mini, precision):
            student, teacher = mini, student.name
        else:
            teacher = MINI_SENTENCE
    if student.name == teacher:
        student = start_encoder_of(site, MINI_BERT)
    found = find_teachers(site, [EncoderConfig(model=teacher)])
    vectors = teach(site, inputs.corpus, found, precision)
    return student, vectors, (f"Distillation: {EncoderConfig(model=teacher).short_name} teaches {student.title}.",)


def _judged(site: RunContext, origin: StartEncoder, precision: Computed) -> float:
    """Spearman on the set by which it is decided who teaches."""
    sets = tuple(found for found in available(site, (JUDGE,)).sets.values() if isinstance(found, ScoredSet))
    vectors = embed(site, origin.encoder, sets, origin.config, precision)
    scores = score(site, vectors, origin.title, "", sets, BootstrapConfig(resamples=100))
    table = site.open_store().scan(scores).filter(metric="spearman", protocol="all", subset="all").collect()
    return float(table["value"].item())


def _vectors(
    site: RunContext, inputs: MethodInputs, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig
) -> EmbeddingsRef:
    return embed(site, encoder, inputs.sets, config, computed(inputs.settings.precision, site))


def _memories(site: RunContext, views: AugmentConfig) -> tuple[str, ...]:
    return tuple(f"translations/{find_translator(site, hop).fingerprint}" for view in views.routes for hop in view.hops)
