"""What recipes share: corpora, sets, views, and how views are paired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.evaluation.config import EvaluationConfig
from models.translation.filters import UNFILTERED
from models.views.config import ORIGINAL, AugmentConfig, EntailView, TranslatedView, round_trip
from models.views.pairs import PairConfig, ViewPair
from storage.sources.sources import SourceSpec
from tasks.corpus.config import IngestConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.translation.config import TranslatorConfig

ENTAIL: Final = EntailView(hypotheses=4)  # of 22,471 premises of SNLI, 1 has more
LANGUAGES: Final = ("ar", "es", "tr", "de", "fr")
ACROSS: Final = tuple(ViewPair(view_1=ORIGINAL, view_2=f"mt-{lang}", lang_2=lang) for lang in LANGUAGES)
"""English beside each of its translations."""

PIVOTS: Final = ("de", "fr", "en")
"""Languages through which a round trip may go."""

NLI: Final = IngestConfig(
    sources=(SourceSpec(dataset="snli", split="train"), SourceSpec(dataset="multi_nli", split="train"))
)
SAMPLE: Final = IngestConfig(sources=(SourceSpec(dataset="embedded:nli-sample"),))
EMBEDDED_STSB: Final = EvaluationConfig(sets=("embedded:stsb/dev", "embedded:stsb/test"), dev="embedded:stsb/dev")
NO_VIEWS: Final = AugmentConfig(filters=UNFILTERED)
"""The sentence is its only view."""

ANCHOR: Final = 3.0
"""How firmly a bare transformer is held to what it says of its views: without, `bert-mini` loses 0.6 to 2.8 of STS-B.
An encoder of sentences is not held: from all-MiniLM-L6-v2 an anchor takes away four fifths of what there is to gain."""

CROPS: Final = ViewPair(view_1="crop", view_2="crop-2")
"""Two stretches of words of each sentence."""

ALONE: Final = PairConfig(pairings=(ViewPair(view_1=ORIGINAL, view_2=ORIGINAL),))
"""Each sentence beside itself, for objectives that read one view."""


def as_printed(*sets: str) -> EvaluationConfig:
    """The sets that a printed row is scored on, in fp32 as its code scores: one figure on every machine."""
    return EvaluationConfig(sets=sets, precision="fp32")


def round_trips(translators: Mapping[str, TranslatorConfig]) -> tuple[TranslatedView, ...]:
    """Back-translations through German and French."""
    return tuple(round_trip(translators[f"en-{pivot}"], translators[f"{pivot}-en"]) for pivot in ("de", "fr"))


def trips_of(
    lang: str, translators: Mapping[str, TranslatorConfig], pivots: Sequence[str] = PIVOTS
) -> tuple[TranslatedView, ...]:
    """Back-translations of a language through each of the pivots that the translators know both ways."""
    ways = ((f"{lang}-{pivot}", f"{pivot}-{lang}") for pivot in pivots)
    return tuple(
        round_trip(translators[there], translators[back])
        for there, back in ways
        if there in translators and back in translators
    )


def beside_original(*methods: str) -> PairConfig:
    """The sentence and one view of it, for each of the views (section 4.4: one augmented view does best)."""
    return PairConfig(pairings=tuple(ViewPair(view_1=ORIGINAL, view_2=method) for method in methods))
