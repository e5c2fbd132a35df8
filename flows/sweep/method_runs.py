"""One method of a field on its way through the house: pairs, pace, training or fit, vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.run_context import computed
from flows.sweep.method_settings import FieldSettings, augmentation, pairing
from flows.sweep.methods import FOREVER, LABELS, START, WORDS, Method
from flows.sweep.start_encoder import Contender, contender_of
from models.encoder.config import EncoderConfig
from models.evaluation.config import BootstrapConfig
from tasks.corpus.evaluation_sets import ScoredSet
from tasks.embedding.embed import embed, embed_tfidf
from tasks.embedding.transforms import fit_transform, fold_transform, transform
from tasks.evaluation.kinds import available
from tasks.evaluation.own_text_sets import pair_own_labels
from tasks.evaluation.sts import score
from tasks.stage.device import device_of
from tasks.training.step_timing import affordable, pace_fit, pace_training, seconds_a_step
from tasks.training.teachers import find_teachers, teach
from tasks.training.train import train
from tasks.translation.translator import find_translator
from tasks.views.augment import augment
from tasks.views.pairs import pair

if TYPE_CHECKING:
    from models.runtime.precision import Computed
    from models.views.config import AugmentConfig
    from storage.artifacts.refs import (
        CheckpointRef,
        CorpusRef,
        EmbeddingsRef,
        PaceRef,
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


@dataclass(frozen=True)
class Ground:
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


@dataclass(frozen=True)
class Entry:
    """What a method left.

    Attributes:
        embeddings: vectors of all sets, a seed each.
        checkpoints: its encoders; none where it leaves vectors alone.
        steps: that it took; 0 where it takes none.
        pace: what a step takes, where that was measured.
        translators: memories of the translators that its views came through.
        notes: what the page should say of it.
    """

    embeddings: tuple[EmbeddingsRef, ...]
    checkpoints: tuple[CheckpointRef, ...] = ()
    steps: int = 0
    pace: PaceRef | None = None
    translators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def entry_of(ground: Ground, contender: Contender, method: Method) -> Entry:
    """What a method leaves: it is trained or fitted here, or found so.

    Raises:
        ModelError: it cannot be trained from this encoder, or diverged.
    """
    if method.name == WORDS:
        return Entry((embed_tfidf(ground.site, ground.corpus, ground.sets),))
    if method.objective is not None:
        return _trained(ground, contender, method)
    if method.transform is not None:
        return _fitted(ground, contender, method)
    assert method.name == START  # all others train or fit
    return Entry((_vectors(ground, contender.encoder, contender.config),))


def _trained(ground: Ground, contender: Contender, method: Method) -> Entry:
    site, settings = ground.site, ground.settings
    views = augmentation(method.views, settings) if method.views and method.views != LABELS else None
    pairs = _pairs(ground, method, views)
    student, teacher, notes = _taught(ground, contender) if method.taught else (contender, None, ())
    encoder = student.config.model_copy(update=dict(method.encoder))
    steps, pace = settings.budget.steps, None
    if settings.budget.seconds is not None:
        trial = method.configured(student.start, _TRIAL, precision=settings.precision)
        pace = pace_training(site, pairs, student.encoder, encoder, trial, device_of(site), teacher)
        steps = affordable(settings.budget.seconds, seconds_a_step(site.open_store(), pace))
    assert steps is not None  # a budget is one or the other
    configs = [method.configured(student.start, steps, seed, settings.precision) for seed in range(settings.seeds)]
    checkpoints = tuple(train(site, pairs, student.encoder, None, encoder, config, teacher) for config in configs)
    vectors = tuple(_vectors(ground, checkpoint, encoder) for checkpoint in checkpoints)
    memories = _memories(site, views) if views else ()
    taken = _steps_of(site, checkpoints[0])
    return Entry(vectors, checkpoints, taken, pace, memories, (*notes, *_ended(method, taken, steps)))


def _fitted(ground: Ground, contender: Contender, method: Method) -> Entry:
    site, settings = ground.site, ground.settings
    store = site.open_store()
    own = embed(site, contender.encoder, ground.corpus, contender.config, ground.precision)
    before = _vectors(ground, contender.encoder, contender.config)
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
    folded = tuple(fold_transform(site, contender.encoder, contender.config, fit) for fit in fits) if folds else ()
    return Entry(after, folded, taken, pace, notes=_ended(method, taken, steps))


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


def _pairs(ground: Ground, method: Method, views: AugmentConfig | None) -> PairsRef:
    if views is None:
        assert ground.text.labels is not None  # or the method is not tried
        return pair_own_labels(ground.site, ground.text.passages, ground.text.labels)
    assert method.views is not None  # it trains
    return pair(ground.site, augment(ground.site, ground.corpus, views), pairing(method.views, ground.settings))


def _taught(ground: Ground, contender: Contender) -> tuple[Contender, EmbeddingsRef | None, tuple[str, ...]]:
    """Who learns, the teacher's vectors, and a note of who taught whom.

    An encoder that is better than the embedded one teaches that, which is smaller; a worse one learns from it.
    """
    site = ground.site
    student, teacher = contender, ground.settings.teacher
    if teacher is None:
        mini = contender_of(site, MINI_SENTENCE)
        if _judged(ground, contender) > _judged(ground, mini):
            student, teacher = mini, contender.name
        else:
            student, teacher = contender, MINI_SENTENCE
    if student.name == teacher:
        student = contender_of(site, MINI_BERT)
    found = find_teachers(site, [EncoderConfig(model=teacher)])
    vectors = teach(site, ground.corpus, found, ground.precision)
    return student, vectors, (f"Distillation: {EncoderConfig(model=teacher).short_name} teaches {student.title}.",)


def _judged(ground: Ground, contender: Contender) -> float:
    """Spearman on the set by which it is decided who teaches."""
    site = ground.site
    sets = tuple(found for found in available(site, (JUDGE,)).sets.values() if isinstance(found, ScoredSet))
    vectors = embed(site, contender.encoder, sets, contender.config, ground.precision)
    scores = score(site, vectors, contender.title, "", sets, BootstrapConfig(resamples=100))
    table = site.open_store().scan(scores).filter(metric="spearman", protocol="all", subset="all").collect()
    return float(table["value"].item())


def _vectors(ground: Ground, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EmbeddingsRef:
    return embed(ground.site, encoder, ground.sets, config, ground.precision)


def _memories(site: RunContext, views: AugmentConfig) -> tuple[str, ...]:
    return tuple(f"translations/{find_translator(site, hop).fingerprint}" for view in views.routes for hop in view.hops)
