"""List the recipes: the published row, the required data and models, and the expected GPU hours of each recipe.

GPU hours are estimates from published rates: 9,297 tokens/s of OPUS-MT in fp16 on an A10G (CTranslate2, README), and a
million sentences an hour, each encoded twice, on an RTX 3090 (SimCSE, issue 135).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.published_rows import RECORDS, ROWS
from bsl.flows.recipes.shared import ENTAIL
from bsl.models.evaluation.published import rows_of
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS, suites_of
from bsl.storage.sources.word_vectors import is_vectors_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.flows.config import PipelineConfig
    from bsl.storage.datasets.declaration import Dataset
    from bsl.storage.sources.sources import SourceSpec
    from bsl.tasks.settings import Phase

TOKENS_PER_S: Final = 9_297
PAIRS_PER_S: Final = 1_000_000 / 3600
OPUS: Final = "opus-mt"
TOKENS: Final = 16  # mean length of an NLI sentence
COLUMN: Final = 27  # start of the text after the names in the terminal
_SENTENCES: Final = {"afs": 12_000} | {name: records * 4 // 3 for name, records in RECORDS.items()}
"""Source → upper bound of its number of sentences, if its declaration has none. Each premise of SNLI and MultiNLI is in
three pairs."""


@dataclass(frozen=True)
class Listing:
    """Summary of a recipe.

    The row is the first published row that its report shows. It needs sources, models and a dev set that are not in the
    package; a run skips unavailable sets of `scored_on`. GPU hours are for one GPU like an A10G: None if they depend on
    the user's files, 0 for minutes on a laptop.
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
        """Lines of the list in a terminal."""
        translators = sum(OPUS in name for name in self.needs)
        others = [name for name in self.needs if OPUS not in name]
        needs = [*others, f"{translators} OPUS-MT models"] if translators else others
        facts = (
            f"{'' if self.is_row else 'shown with '}{self.row} ({', '.join(self.printed)})"
            if self.row
            else "no published row",
            f"needs {', '.join(needs)}" if needs else "needs nothing",
            f"scored on {', '.join(self.scored_on)}",
            self.duration,
        )
        width = COLUMN - 1
        return [f"{self.name:<{width}} {self.purpose}", f"{'':<{width}} {' · '.join(facts)}"]

    @property
    def duration(self) -> str:
        """Expected duration in words."""
        if self.gpu_hours is None:
            return "hours depend on your files"
        if not self.needs:
            return "minutes on two CPU cores"
        return f"{self.gpu_hours:.1f} GPU hours" if self.gpu_hours >= 0.1 else "minutes on a GPU"


def listings() -> list[Listing]:
    """Return the summaries of all recipes, in their order."""
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
    """Return the tables that print a row, one string for each paper."""
    tables: dict[str, list[str]] = {}
    for published in rows_of(row):
        tables.setdefault(published.paper, []).append(published.table)
    return tuple(" ".join([paper, *_numbered(numbers)]) for paper, numbers in tables.items())


def _numbered(tables: Sequence[str]) -> tuple[str, ...]:
    numbers = [number for number in dict.fromkeys(tables) if number]
    return (f"Table {' + '.join(numbers)}",) if numbers else ()


def _needs(config: PipelineConfig) -> tuple[str, ...]:
    sources = [source.dataset for source in config.ingest.sources if source.dataset]
    dev = [config.evaluation.dev] if config.phases and config.evaluation.dev else []
    models = [model for model, _ in config.models()]
    names = dict.fromkeys([*sources, *config.scored, *dev, *own_files(config), *models])
    return tuple(_marked(name) for name in names if not name.startswith(EMBEDDED))


def _marked(name: str) -> str:
    """Mark a set or suite whose files the user must provide; any other name is returned unchanged."""
    declared = DATASETS.get(name.partition("/")[0])
    if declared is not None:
        return name if _is_public(declared) else f"{name} (your files)"
    not_public = [dataset.name for dataset in suites_of(DATASETS.values()).get(name, ()) if not _is_public(dataset)]
    return f"{name} ({', '.join(not_public)}: your files)" if not_public else name


def _is_public(dataset: Dataset) -> bool:
    """Return whether the Hub has the dataset."""
    return dataset.hub_id is not None or dataset.archive is not None


def gpu_hours(config: PipelineConfig) -> float | None:
    """Estimate hours on one GPU; 0 for embedded sources or no training, None if a source's size is unknown."""
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
    # A dataset that declares no text columns has a known layout of pairs: two texts per row.
    return rows[split] * (len(declared.texts) or 2) if declared and split in rows else None


def _pairs(phase: Phase, config: PipelineConfig, sentences: int) -> int:
    """Estimate the number of pairs that a training phase reads, over all epochs."""
    labelled = sum(RECORDS.get(source.dataset or "", 0) for source in config.ingest.sources)
    views = [pairing.view_2 for pairing in phase.pairs.pairings]
    entailed = any(view.startswith(ENTAIL.methods[0]) for view in views)
    others = sum(not view.startswith(ENTAIL.methods[0]) for view in views)
    # A third of the labelled pairs is entailed, regardless of the number of views.
    pairs = labelled if phase.pairs.labelled else sentences * others + entailed * labelled // 3
    if phase.pairs.scored is not None:
        dataset, _, split = phase.pairs.scored.removeprefix(EMBEDDED).rpartition("/")
        pairs = DATASETS[dataset].rows[split]
    training = phase.training
    return min(pairs * training.epochs, (training.max_steps or 10**12) * training.batch_size)


def own_files(config: PipelineConfig) -> tuple[str, ...]:
    """Return the files that the user must provide: sentences, lexicons, word vectors and model folders."""
    paths = [f"folder {source.path!r}" for source in config.ingest.sources if source.path is not None]
    lexicons = [view.lexicon[1] for view in config.augment.rewritings if view.lexicon]
    models = [name for name, _ in config.models() if name.startswith((".", "/", "~")) or is_vectors_file(name)]
    return tuple(dict.fromkeys([*paths, *lexicons, *models]))
