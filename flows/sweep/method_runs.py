"""Run a method with a seed: pairs, step time, training or fit, vectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from flows.recipes.shared import REHEARSAL
from flows.run_context import computed
from flows.sweep.method_settings import Budget, FieldSettings, augmentation, pairing
from flows.sweep.methods import LABELS, MAX_EPOCHS, SMALL, WORDS, Method, Start, methods_of
from models.encoder.config import EncoderConfig
from models.evaluation.config import BootstrapConfig
from models.objectives.config import DistilConfig, ISBERTConfig
from storage.artifacts.refs import CheckpointRef, CorpusRef
from storage.record import Record
from storage.sources.model_sources import ResolvedModel, settings_of
from tasks.corpus.evaluation_sets import ScoredSet, resolve_scored_set
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

TEACHER_TEST: Final = "embedded:stsb/dev"  # decides which of two encoders is the teacher
MINI_SENTENCE, MINI_BERT = "embedded:mini-sentence", "embedded:bert-mini"
_TRIAL: Final = 10  # steps of the configuration whose pace is measured
_KINDS: Final = {
    "small": "a small masked language model",
    "raw": "a masked language model",
    "trained": "a trained sentence encoder",
}


class StartEncoder(Record):
    """An encoder that methods start from."""

    name: str
    """Name that the user gave."""
    encoder: CheckpointRef | ResolvedModel
    """Files."""
    config: EncoderConfig
    """Settings."""
    start: Start
    """Kind of encoder, which decides the learning rates."""
    heads: tuple[str, ...] = ()
    """Modules after pooling; `truncate_dim` if the encoder returns only the first dimensions."""
    drops: bool = True
    """Whether the encoder supports dropout."""

    @property
    def title(self) -> str:
        """Name in tables."""
        return EncoderConfig(model=self.name).short_name

    @property
    def description(self) -> str:
        """Description of the kind of encoder, for notes."""
        return _KINDS[self.start]


def start_encoder_of(site: RunContext, name: str) -> StartEncoder:
    """Find an encoder, with the settings saved in its folder.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
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
                f"not tried: translators {settings.translators!r} have no round trip from {settings.lang!r}"
            )
        elif isinstance(method.objective, ISBERTConfig) and origin.heads:
            reasons[method.name] = (
                f"not tried: it compares token vectors with their mean, but {origin.title} has "
                f"{', '.join(origin.heads)} after pooling. Use an encoder without modules after pooling"
            )
        elif "dropout" in method.encoder and not origin.drops:
            reasons[method.name] = (
                f"not tried: it trains with dropout, but {origin.title} is a table of word vectors, which has no "
                "dropout. Use a transformer"
            )
    return reasons


class MethodInputs(Record):
    """Inputs that all methods share."""

    settings: FieldSettings
    """Methods, budget and bounds."""
    start: StartEncoder
    """The encoder to start from."""
    text: HeldOutSet
    """The held-out text, its questions, and labels."""
    corpus: CorpusRef
    """Training sentences."""
    checks: tuple[ScoredSet, ...]
    """Scored pairs on which a method should not get worse."""

    @property
    def sets(self) -> tuple[EvaluationSet, ...]:
        """All sets that methods are scored on."""
        return (self.text, *self.checks)


class MethodRun(Record):
    """A method with a seed."""

    inputs: MethodInputs
    """Inputs shared with the other methods."""
    method: str
    """Name of the method."""
    seed: int

    def run(self, site: RunContext) -> SweepSystem:
        """Train or fit the method and embed the sets; cached artifacts are reused.

        Raises:
            ModelError: The method cannot be trained from this encoder, or diverged.
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
    is_taught = isinstance(method.objective, DistilConfig)
    student, teacher, notes = _distilled(site, inputs) if is_taught else (inputs.start, None, ())
    encoder = student.config.model_copy(update=dict(method.encoder))
    pace = None
    if settings.budget.steps is None:
        trial = method.configured(student.start, _TRIAL, precision=settings.precision)
        pace = pace_training(site, pairs, student.encoder, encoder, trial, device_of(site), teacher)
    steps = _steps_for(site, settings.budget, pace)
    config = method.configured(student.start, steps, seed, settings.precision)
    checkpoint = train(site, pairs, student.encoder, None, encoder, config, teacher)
    done, early = _executed(site, checkpoint, method, steps)
    return SweepSystem(
        label=method.title,
        embeddings=(_vectors(site, inputs, checkpoint, encoder),),
        checkpoints=(checkpoint,),
        steps=done,
        pace=pace,
        translators=_memories(site, views) if views else (),
        notes=(*notes, *early),
    )


def _fitted(site: RunContext, inputs: MethodInputs, method: Method, seed: int) -> SweepSystem:
    start = inputs.start
    corpus = embed(site, start.encoder, inputs.corpus, start.config, computed(inputs.settings.precision, site))
    before = _vectors(site, inputs, start.encoder, start.config)
    width = site.open_store().manifest(corpus).figures["dimensions"]
    assert isinstance(width, int)
    pace = pace_fit(site, corpus, method.fitted(width, _TRIAL), device_of(site)) if method.steps else None
    steps = _steps_for(site, inputs.settings.budget, pace) if method.steps else 0
    config = method.fitted(width, steps, seed)
    fit = fit_transform(site, corpus, config)
    done, early = _executed(site, fit, method, steps) if method.steps else (0, ())
    return SweepSystem(
        label=method.title,
        embeddings=(transform(site, before, fit),),
        checkpoints=(fold_transform(site, start.encoder, start.config, fit),) if config.folds else (),
        steps=done,
        pace=pace,
        notes=early,
    )


def _steps_for(site: RunContext, budget: Budget, pace: PaceRef | None) -> int:
    """Return the steps of a budget, or the number of steps in its seconds at the measured pace."""
    if budget.seconds is None:
        return budget.steps or 0
    assert pace is not None  # measured for a budget of seconds
    return affordable(budget.seconds, seconds_a_step(site.open_store(), pace))


def _executed(
    site: RunContext, ref: CheckpointRef | TransformRef, method: Method, steps: int
) -> tuple[int, tuple[str, ...]]:
    """Return the number of executed steps, and a note if the limit of epochs ended training before the budget."""
    done = site.open_store().manifest(ref).figures["steps"]
    assert isinstance(done, int)
    note = f"{method.title}: ended after {done:,} of {steps:,} steps, the limit of {MAX_EPOCHS:,} epochs."
    return done, (note,) if done < steps else ()


def _pairs(site: RunContext, inputs: MethodInputs, method: Method, views: AugmentConfig | None) -> PairsRef:
    if views is None:
        assert inputs.text.labels is not None  # else the method is not tried
        general = resolve_scored_set(site, REHEARSAL)
        return pair_own_labels(site, inputs.text.passages, inputs.text.labels, "field", 0, general)
    assert method.views is not None  # it trains
    return pair(site, augment(site, inputs.corpus, views), pairing(method.views, inputs.settings))


def _distilled(site: RunContext, inputs: MethodInputs) -> tuple[StartEncoder, EmbeddingsRef | None, tuple[str, ...]]:
    """Return the student, the teacher's vectors, and a note that names both.

    By default, the original encoder teaches the smaller `embedded:mini-sentence` if it is better than that encoder;
    otherwise it learns from that encoder. If student and teacher are the same encoder, the student is
    `embedded:bert-mini`.
    """
    student, teacher = inputs.start, inputs.settings.teacher
    precision = computed(inputs.settings.precision, site)
    if teacher is None:
        mini = start_encoder_of(site, MINI_SENTENCE)
        if _spearman(site, student, precision) > _spearman(site, mini, precision):
            student, teacher = mini, student.name
        else:
            teacher = MINI_SENTENCE
    if student.name == teacher:
        student = start_encoder_of(site, MINI_BERT)
    found = find_teachers(site, [EncoderConfig(model=teacher)])
    vectors = teach(site, inputs.corpus, found, precision)
    return student, vectors, (f"Distillation: {EncoderConfig(model=teacher).short_name} teaches {student.title}.",)


def _spearman(site: RunContext, origin: StartEncoder, precision: Computed) -> float:
    """Return an encoder's Spearman correlation on `TEACHER_TEST`."""
    sets = available(site, (TEACHER_TEST,)).scored
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
