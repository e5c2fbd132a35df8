"""What a person wants to know of a recipe before it runs: which printed row it is, what it needs, how long it takes.

GPU hours are arithmetic on others' published rates, before anything has run: CTranslate2's 9,297 tokens/s of OPUS-MT in
fp16 on an A10G (its README) and SimCSE's million sentences an hour, each read twice, on an RTX 3090 (its issue 135).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.recipes import RECIPES, recipe
from flows.recipes.published_rows import RECORDS, ROWS
from flows.recipes.shared import ENTAIL
from models.evaluation.published import rows_of
from storage.assets.embedded import EMBEDDED
from storage.datasets.registry import DATASETS, suites_of
from storage.sources.word_vectors import is_vectors_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.config import PipelineConfig
    from storage.datasets.declaration import Dataset
    from storage.sources.sources import SourceSpec
    from tasks.settings import Phase

TOKENS_PER_S: Final = 9_297
PAIRS_PER_S: Final = 1_000_000 / 3600
OPUS: Final = "opus-mt"
TOKENS: Final = 16  # of a sentence of NLI, the mean
COLUMN: Final = 27  # of the list in a terminal, behind the names
_SENTENCES: Final = {"afs": 12_000} | {name: records * 4 // 3 for name, records in RECORDS.items()}
"""Source → sentences at most, where its declaration does not say; each premise of SNLI and MultiNLI stands in three
pairs."""


@dataclass(frozen=True)
class Listing:
    """A recipe at a glance.

    Attributes:
        name: the recipe's.
        purpose: the first line of its description.
        row: the published row that the report shows beside it first; empty for none.
        is_row: whether a run of it is held against that row.
        printed: tables in which that row is printed.
        needs: sources, models, and what training is chosen by, that are not in the package.
        scored_on: sets and suites; what of them cannot be had is named by the run and left out.
        gpu_hours: expected on one GPU of the size of an A10G; None where it depends on your own files, 0 where a
            laptop does in minutes.
    """

    name: str
    purpose: str
    row: str
    is_row: bool
    printed: tuple[str, ...]
    needs: tuple[str, ...]
    scored_on: tuple[str, ...]
    gpu_hours: float | None

    @property
    def lines(self) -> list[str]:
        """As the terminal shows it."""
        translators = sum(OPUS in name for name in self.needs)
        others = [name for name in self.needs if OPUS not in name]
        needs = [*others, f"{translators} OPUS-MT models"] if translators else others
        facts = (
            f"{'' if self.is_row else 'beside '}{self.row} ({', '.join(self.printed)})"
            if self.row
            else "no printed row",
            f"needs {', '.join(needs)}" if needs else "needs nothing",
            f"scored on {', '.join(self.scored_on)}",
            self.duration,
        )
        width = COLUMN - 1
        return [f"{self.name:<{width}} {self.purpose}", f"{'':<{width}} {' · '.join(facts)}"]

    @property
    def duration(self) -> str:
        """What it takes, in words."""
        if self.gpu_hours is None:
            return "as long as your files want"
        if not self.needs:
            return "minutes on two CPU cores"
        return f"{self.gpu_hours:.1f} GPU hours" if self.gpu_hours >= 0.1 else "minutes on a GPU"


def listings() -> list[Listing]:
    """All recipes, in their order."""
    return [_listing(name) for name in RECIPES]


def _listing(name: str) -> Listing:
    config = recipe(name)
    row = config.published[0] if config.published else ""
    return Listing(
        name=name,
        purpose=(RECIPES[name].__doc__ or "").strip().splitlines()[0],
        row=row,
        is_row=name in ROWS.get(row, ()),
        printed=printed_in(row) if row else (),
        needs=_needs(config),
        scored_on=tuple(map(_marked, config.evaluation.sets)),
        gpu_hours=gpu_hours(config),
    )


def printed_in(row: str) -> tuple[str, ...]:
    """The tables that print a row, a text for each paper."""
    tables: dict[str, list[str]] = {}
    for published in rows_of(row):
        tables.setdefault(published.paper, []).append(published.table)
    return tuple(" ".join([paper, *_numbered(numbers)]) for paper, numbers in tables.items())


def _numbered(tables: Sequence[str]) -> tuple[str, ...]:
    numbers = [number for number in dict.fromkeys(tables) if number]
    return (f"Table {' + '.join(numbers)}",) if numbers else ()


def _needs(config: PipelineConfig) -> tuple[str, ...]:
    sources = [str(source.dataset) for source in config.ingest.sources if source.path is None]
    dev = [config.evaluation.dev] if config.phases and config.evaluation.dev else []
    models = [model for model, _ in config.models()]
    names = dict.fromkeys([*sources, *config.scored, *dev, *own_files(config), *models])
    return tuple(_marked(name) for name in names if not name.startswith(EMBEDDED))


def _marked(name: str) -> str:
    """A set or suite, with what of it is nowhere to be fetched from; any other name as it is."""
    dataset = name.partition("/")[0]
    if dataset in DATASETS:
        return name if _is_public(DATASETS[dataset]) else f"{name} (your files)"
    own = [each.name for each in suites_of(DATASETS.values()).get(name, ()) if not _is_public(each)]
    return f"{name} ({', '.join(own)}: your files)" if own else name


def _is_public(dataset: Dataset) -> bool:
    """Whether the Hub has it."""
    return dataset.hub_id is not None or dataset.archive is not None


def gpu_hours(config: PipelineConfig) -> float | None:
    """Hours on one GPU; 0 for what is embedded, None where a source's size is not known before it is read."""
    if not config.phases or all((source.dataset or "").startswith(EMBEDDED) for source in config.ingest.sources):
        return 0.0
    sizes = [_sentences(source) for source in config.ingest.sources]
    if None in sizes:
        return None
    sentences = min(sum(size or 0 for size in sizes), config.ingest.corpus.limit or 10**12)
    hops = sum(len(view.hops) for view in config.augment.translations)
    translating = sentences * hops * TOKENS / TOKENS_PER_S
    return (translating + sum(_pairs(phase, config, sentences) for phase in config.phases) / PAIRS_PER_S) / 3600


def _sentences(source: SourceSpec) -> int | None:
    known = _SENTENCES.get(source.dataset or "") or _declared(source)
    return source.limit if known is None else min(known, source.limit or known)


def _declared(source: SourceSpec) -> int | None:
    declared = DATASETS.get(source.dataset or "")
    rows = declared.rows if declared else {}
    split = source.split or ("train" if "train" in rows else "all")
    # A set whose columns are of a known shape is one of pairs.
    return rows[split] * (len(declared.texts) or 2) if declared and split in rows else None


def _pairs(phase: Phase, config: PipelineConfig, sentences: int) -> int:
    """Pairs that a phase learns from, every one as often as it is read."""
    labelled = sum(RECORDS.get(source.dataset or "", 0) for source in config.ingest.sources)
    views = [pairing.view_2 for pairing in phase.pairs.pairings]
    entailed = any(view.startswith(ENTAIL.methods[0]) for view in views)
    made = sum(not view.startswith(ENTAIL.methods[0]) for view in views)
    # A third of the labelled pairs is entailed, however many views hold them.
    pairs = labelled if phase.pairs.labelled else sentences * made + entailed * labelled // 3
    if phase.pairs.scored is not None:
        dataset, _, split = phase.pairs.scored.removeprefix(EMBEDDED).rpartition("/")
        pairs = DATASETS[dataset].rows[split]
    training = phase.training
    return min(pairs * training.epochs, (training.max_steps or 10**12) * training.batch_size)


def own_files(config: PipelineConfig) -> tuple[str, ...]:
    """Files of sentences, lexicons, word vectors and folders of models, none of which a mirror brings, each once."""
    paths = [f"folder {source.path!r}" for source in config.ingest.sources if source.path is not None]
    lexicons = [view.lexicon[1] for view in config.augment.rewritings if view.lexicon]
    models = [name for name, _ in config.models() if name.startswith((".", "/", "~")) or is_vectors_file(name)]
    return tuple(dict.fromkeys([*paths, *lexicons, *models]))
