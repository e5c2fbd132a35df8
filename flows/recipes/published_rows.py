"""Published rows and the recipes that reproduce them, and how a configuration deviates from its row."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from bsl.flows.parameters import leaves
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.isbert import TASKS
from bsl.flows.recipes.untrained import GLOVE
from bsl.models.evaluation.published import rows_of
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.filesystem.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

    from bsl.flows.config import PipelineConfig

_REPRODUCING: Final = (
    *("nli", "nli-authors-views", "nli-roberta", "entail", "nli-entail", "synonym", "mlm", "books", "books-nli"),
    *("sbert", "bsl-sbert-nli", "sbert-released", "sroberta", "bsl-sroberta-nli", "multilingual", "multilingual-sup"),
    *("xlmr-sbert-bsl", "afs", "contrastive", "bert-mlm", "afs-mlm", "glove", "bert-second-to-last"),
    *("bert-second-to-last-cls", "bert-avg", "bert-cls", "roberta-avg", "roberta-cls"),
    *("flow", "flow-target", "flow-sbert", "whitening", "whitening-target", "simcse", "published-simcse"),
    *("published-simcse-roberta", "published-simcse-sup", "published-simcse-sup-roberta"),
    *("isbert", *(f"isbert-{task}" for task in TASKS), "isbert-afs", "sbert-nli", "published-sbert", "sroberta-nli"),
    *("published-sroberta", "sbert-stsb", "sbert-nli-stsb", "mbert-avg", "xlmr-avg", "mbert-nli-stsb"),
    *("xlmr-nli-stsb", "mbert-sbert", "xlmr-sbert", "published-xlmr-distilled", "published-labse"),
    *("published-mpnet-multilingual", "scl", "scl-released", "scl-transfer", "scl-3p3n", "scl-baseline"),
    *("scl-augment", "scl-augment-3p3n"),
)
"""Recipes that reproduce the first row of their `published`, and its row on AFS if the second is that."""


def _rows() -> dict[str, tuple[str, ...]]:
    rows: dict[str, tuple[str, ...]] = {}
    for name in _REPRODUCING:
        first, *others = recipe(name).published
        for row in (first, *(other for other in others[:1] if other == f"{first} on AFS")):
            rows[row] = (*rows.get(row, ()), name)
    return rows


ROWS: Final[Mapping[str, tuple[str, ...]]] = _rows()
"""Published row → the recipes that reproduce it. `bsl reproduce ROW` runs the first recipe; the others start the same
system from another encoder, or are its authors' checkpoint. A run is compared with the closest recipe; every difference
is a deviation."""
_BERT: Final = "bsl evaluate google-bert/bert-base-uncased"
COMMANDS: Final[Mapping[str, str]] = {
    "BERT-STSb": f"{_BERT} --max-length 128 --suite stsb-cross-encoder",
    "BERT-AFS": f"{_BERT} --suite afs-cross-encoder-10-fold afs-cross-encoder-cross-topic",
    "SBERT-AFS": f"{_BERT} --max-length 128 --suite afs-10-fold afs-cross-topic",
    "SRoBERTa-STSb": "bsl evaluate FacebookAI/roberta-base --max-length 128 --suite stsb-supervised",
    "IS-BERT-STSb (ft)": f"{_BERT} --cnn 1,3,5 --max-length 128 --suite stsb-supervised",
    "IS-BERT-STSb (ssl + ft)": "bsl evaluate report/<key of isbert-stsb> --suite stsb-supervised",
}
"""Published row of an encoder fine-tuned and scored by fold or seed → the command that measures it."""
_BOOKS: Final = (
    "trained on the Toronto book corpus, which its authors withdrew, and no checkpoint has a supported format; measure "
    "its vectors with bsl.evaluate(object, suite)"
)
_OWN_CODE: Final = "a network with custom code; measure it with bsl.evaluate(object, suite)"
_WORDS: Final = "quoted, fitted on another corpus; every report has a TF-IDF column, fitted on the run's own sentences"
REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Unigram-TFIDF", "Unigram-TFIDF on AFS"), _WORDS),
    **dict.fromkeys(("SDAE", "SkipThought", "FastSent", "ParagraphVec DBOW", "ParagraphVec DM"), _BOOKS),
    **dict.fromkeys(("InferSent", "InferSent on AFS", "USE", "mUSE"), _OWN_CODE),
    "first-last avg., BERT-base": (
        "measured with the embeddings as first layer, until SimCSE's code was corrected (206d7ae); recipe "
        "bert-first-last averages the first and the last transformer layer, with which SimCSE#285 reports 60.73"
    ),
    "GloVe avg. (SCL)": (
        "SCL names no file; measure your file, as recipe glove, with: "
        "bsl evaluate FILE --suite sts12 sts13 sts14 sts15 sts16"
    ),
}
"""Published row that no recipe or command reproduces → the reason, and how to measure its system."""
TRANSLATOR: Final = "Google Translate"  # translated the rows' sentences (footnote 1)
_PARALLEL: Final = ("mBERT ← SBERT-nli-stsb", "XLM-R ← SBERT-nli-stsb")  # trained on human translations
RECORDS: Final = {"snli": 550_152, "multi_nli": 392_702}
"""Source → number of records in its training split."""
_EXCLUDED: Final = ("seed", "collapse")  # training settings that no row states
# Settings of classifiers without effect on a row's accuracies: draws, figures to compute, and those of `fast`.
_OF_NO_ACCURACY: Final = ("seed", "protocols", "tolerance")


def row_of(name: str) -> tuple[str, str]:
    """Return the published row and the recipe to run, given the name of one of them.

    Raises:
        ValueError: No recipe reproduces the row, or the recipe reproduces no row.
    """
    if name in ROWS:
        return name, ROWS[name][0]
    if name in COMMANDS:
        raise ValueError(f"no recipe reproduces row {name!r}, which is fine-tuned. Measure it with: {COMMANDS[name]}")
    if name in REASONS:
        raise ValueError(f"no recipe or command reproduces row {name!r}: {REASONS[name]}")
    if name not in RECIPES:
        raise ValueError(
            f"unknown row or recipe {name!r}.{did_you_mean(name, (*ROWS, *RECIPES))} `bsl recipes --all` lists all "
            "recipes and rows"
        )
    published = recipe(name).published
    if published and published[0] in COMMANDS:
        raise ValueError(
            f"recipe {name!r} is a step of row {published[0]!r}, which is fine-tuned. Measure the row with: "
            f"{COMMANDS[published[0]]}"
        )
    if not published or published[0] not in ROWS:
        raise ValueError(
            f"recipe {name!r} reproduces no published row. `bsl recipes --all` lists the row of each recipe"
        )
    return published[0], name


def cells_of(row: str, name: str) -> tuple[str, ...]:
    """Return the sets of a recipe if the row's recipes have disjoint sets (one recipe for each task), else ()."""
    sets = [recipe(candidate).evaluation.sets for candidate in ROWS[row]]
    are_disjoint = len(sets) > 1 and sum(map(len, sets)) == len(set().union(*sets))
    return recipe(name).evaluation.sets if are_disjoint else ()


def deviations(config: PipelineConfig, row: str) -> tuple[str, ...]:
    """Return how a configuration deviates from a published row, before anything has run.

    The closest recipe represents the row: the recipe with the fewest differences, scored on the same sets if possible.
    The row's translator, Google Translate, is not available, so translation is always a deviation.
    """
    recipes = [recipe(name) for name in ROWS[row]]
    same_sets = [published for published in recipes if published.evaluation.sets == config.evaluation.sets]
    return min((_reasons(config, published, row) for published in same_sets or recipes), key=len)


def _reasons(config: PipelineConfig, published: PipelineConfig, row: str) -> tuple[str, ...]:
    reasons = []
    encoder = config.encoder
    if encoder.model.endswith(f"/{GLOVE}"):  # the user's copy, in any folder
        encoder = encoder.model_copy(update={"model": GLOVE})
    if (ours := encoder.model) != (theirs := published.encoder.model):
        reasons.append(f"another encoder: {ours}; the row's is {theirs}")
    elif changes := _difference_text(encoder, published.encoder):
        reasons.append(f"the encoder is loaded differently: {changes}")
    if changes := _difference_text(config.words, published.words):
        reasons.append(f"words are split differently: {changes}")
    if (ours := _sources(config)) != (theirs := _sources(published)):
        reasons.append(f"another corpus: {ours}; the row's is {theirs}")
    elif any(source.path for source in config.ingest.sources):
        reasons.append(f"another corpus: your own files replace a part of {theirs}")
    if config.ingest.corpus != published.ingest.corpus:
        reasons.append(f"only a part of the corpus: {_difference_text(config.ingest.corpus, published.ingest.corpus)}")
    if limits := ", ".join(sorted(_limits(config) - _limits(published))):
        reasons.append(f"only a part of the corpus: {limits}")
    if translators := {hop.model for view in config.augment.translations for hop in view.hops}:
        theirs = "parallel corpora, no translator" if row in _PARALLEL else TRANSLATOR
        reasons.append(f"another translator: {', '.join(sorted(translators))}; the row's is {theirs}")
    if config.transform_on != published.transform_on and config.transform:
        reasons.append(f"fitted on the {config.transform_on}; the row's on the {published.transform_on}")
    if changes := _difference_text(config.transform, published.transform, "seed"):
        reasons.append(f"another transform: {changes}")
    if config.phases or published.phases:
        reasons += _training_differences(config, published)
    if (ours := config.evaluation.precision) != (theirs := published.evaluation.precision):
        reasons.append(f"scored in another precision: {ours} for {theirs}")
    changes = _difference_text(config.evaluation.probe, published.evaluation.probe, *_OF_NO_ACCURACY)
    if changes and any(line.metric == "accuracy" for line in rows_of(row)):
        reasons.append(f"other classifiers: {changes}")
    return tuple(reasons)


def _training_differences(config: PipelineConfig, published: PipelineConfig) -> Iterator[str]:
    if config.augment.methods != published.augment.methods:
        own, row = (", ".join(settings.augment.methods) for settings in (config, published))
        yield f"other views: {own}; the row's are {row}"
    if changes := _difference_text(config.augment, published.augment, "translations"):
        yield f"other making of views: {changes}"
    phases = zip_longest(reversed(config.phases), reversed(published.phases))
    for before, (ours, theirs) in enumerate(phases):
        when = f" {before} before the last" if before else ""
        if ours is None or theirs is None:
            yield f"other training{when}: {'absent' if ours is None else 'not in the row'}"
            continue
        for what, changes in (
            ("training pairs", _difference_text(ours.pairs, theirs.pairs)),
            ("training", _difference_text(ours.training, theirs.training, *_EXCLUDED)),
            ("teacher", _difference_text(ours.teacher, theirs.teacher)),
            ("teacher", _difference_text(ours, theirs, "pairs", "training", "teacher")),
        ):
            if changes:
                yield f"other {what}{when}: {changes}"
    # An embedded copy of a set has the same pairs.
    own_dev, dev = ((settings.evaluation.dev or "no set").removeprefix(EMBEDDED) for settings in (config, published))
    if own_dev != dev:
        yield f"the step is selected by {own_dev}; the row's by {dev}"


def _limits(config: PipelineConfig) -> set[str]:
    sources = [source for source in config.ingest.sources if source.limit]
    return {f"{source.limit:,} sentences of {source.dataset or source.path}" for source in sources}


def _sources(config: PipelineConfig) -> str:
    names = (f"{source.dataset or source.path} {source.split or ''}".strip() for source in config.ingest.sources)
    return " and ".join(names)


def _difference_text(ours: BaseModel | None, theirs: BaseModel | None, *excluded: str) -> str:
    """Return the fields, also nested fields, in which two configurations differ, as `ours for theirs`."""
    dumps = (config.model_dump(exclude=set(excluded)) if config else {} for config in (ours, theirs))
    first, second = ({path: _shown(value) for path, value in leaves(dump)} for dump in dumps)
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return ", ".join(f"{name} {first.get(name, 'absent')} for {second.get(name, 'absent')}" for name in names)


def _shown(value: object) -> str:
    if not isinstance(value, tuple):
        return "none" if value is None else str(value)
    members = ("+".join(map(str, member.values())) if isinstance(member, dict) else str(member) for member in value)
    return f"({'; '.join(members)})"
