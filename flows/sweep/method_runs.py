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
from tasks.evaluation.sts import score
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.device import device_of
from tasks.training.step_timing import affordable, pace_fit, pace_training, seconds_a_step
from tasks.training.teachers import find_teachers, teach
from tasks.training.train import train
from tasks.translation.translator import find_translator
from tasks.views.augment import augment
from tasks.views.pairs import pair, pair_own_labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from models.runtime.precision import Computed
    from models.views.config import AugmentConfig
    from storage.artifacts.refs import EmbeddingsRef, PaceRef, PairsRef, TransformRef
    from tasks.corpus.evaluation_sets import EvaluationSet
    from tasks.stage.run_context import RunContext

JUDGE: Final = "embedded:stsb/dev"
MINI_SENTENCE, MINI_BERT = "embedded:mini-sentence", "embedded:bert-mini"
_TRIAL: Final = 10  # steps in the configuration to time
_KINDS: Final = {
    "small": "a small masked language model",
    "raw": "a masked language model",
    "trained": "a trained sentence encoder",
}


class StartEncoder(Record):
    """An encoder that methods start from."""

    name: str
    """The user's name for it."""
    encoder: CheckpointRef | ResolvedModel
    """Its files."""
    config: EncoderConfig
    """Its settings."""
    start: Start
    """Its kind, which decides the learning rates."""
    heads: tuple[str, ...] = ()
    """Its modules after pooling; `truncate_dim` if it keeps only the first dimensions."""
    drops: bool = True
    """Whether it has a dropout rate to set."""

    @property
    def title(self) -> str:
        """Name in tables."""
        return EncoderConfig(model=self.name).short_name

    @property
    def description(self) -> str:
        """Description of its kind, for notes."""
        return _KINDS[self.start]


def start_encoder_of(site: RunContext, name: str) -> StartEncoder:
    """Find an encoder, with the settings saved in its folder.

    Raises:
        SourceError, AssetError, ArtifactMissingError: the encoder was not found.
    """
    encoder, named = resolve_encoder(site, EncoderConfig(model=name))
    folder = described_folder(site.open_store(), encoder)
    if not is_bare(site, encoder):
        from models.encoder.serialization.load import read_saved  # transformers

        saved = read_saved(folder)
        heads = tuple(head.kind for head in saved.sentence_heads) + ("truncate_dim",) * (saved.truncate_dim is not None)
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
    """Return method → why it cannot be tried on this text from this encoder."""
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
    """Inputs that all methods share."""

    settings: FieldSettings
    """Methods, budget and bounds."""
    start: StartEncoder
    """The encoder to start from."""
    text: HeldOutSet
    """The held-out text with its questions, and labels."""
    corpus: CorpusRef
    """Training sentences."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which a method should not lose."""

    @property
    def sets(self) -> tuple[EvaluationSet, ...]:
        """All sets that methods are scored on."""
        return (self.text, *self.checks)


class MethodRun(Record):
    """A method with a seed."""

    inputs: MethodInputs
    """Inputs shared with the other methods."""
    method: str
    """Its name."""
    seed: int
    """Its random seed."""

    def run(self, site: RunContext) -> SweepSystem:
        """Train or fit the method and embed the sets; cached artifacts are reused.

        Raises:
            ModelError: the method cannot be trained from this encoder, or diverged.
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
    """Return the steps of a budget, or the number of steps in its seconds at the measured pace."""
    if budget.steps is not None:
        return budget.steps
    assert budget.seconds is not None  # a budget is one or the other
    assert pace is not None  # measured for it
    return affordable(budget.seconds, seconds_a_step(site.open_store(), pace))


def _steps_of(site: RunContext, made: CheckpointRef | TransformRef) -> int:
    """Return the number of steps taken; with little text, the limit of epochs ends training before the budget."""
    steps = site.open_store().manifest(made).figures["steps"]
    assert isinstance(steps, int)
    return steps


def _ended(method: Method, taken: int, steps: int) -> tuple[str, ...]:
    """Return a note if fewer steps were taken than the budget allows."""
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
    """Return the student, the teacher's vectors, and a note that names both.

    By default, the start teaches the smaller `embedded:mini-sentence` if it is better, and learns from it otherwise.
    If student and teacher are the same encoder, the student is `embedded:bert-mini`.
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
    """Return Spearman on STS-B's dev set, which decides the teacher."""
    sets = available(site, (JUDGE,)).scored
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
