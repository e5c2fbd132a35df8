"""The study `own`: training methods on the user's text, each for the same number of steps, scored on held-out text.

A point is a recipe with the user's text and encoder in place of its own. A narrow bare transformer is trained at the
learning rates of the `tiny-*` recipes, a wider one at those of the papers. A sentence encoder is trained at a low rate,
because the papers' rates make it worse (docs/research-log.md).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import DROPOUT, STSB
from bsl.flows.recipes.shared import ALONE, ANCHOR, CROPS, LABEL_REGRESSION, NO_VIEWS, trips_of, with_fields
from bsl.flows.recipes.tiny import whole_sample
from bsl.flows.sweep.studies import OWN, VARIANT, Study
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.translation.config import CATALOGS
from bsl.models.views.config import ORIGINAL, AugmentConfig, CropView
from bsl.models.views.pairs import OWN_LABELS, PairConfig, ViewPair
from bsl.storage.filesystem.urls import absolute
from bsl.storage.sources.own_text import source_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.flows.config import PipelineConfig
    from bsl.flows.own_options import OwnRequest

START: Final = "original encoder"
LABELS: Final = "your labels"
"""Point that trains on labels, and figure of the test labels."""
CROP: Final = "crop"
"""Question that is answered by training on crops."""
SMALL: Final = 384
"""Width up to which a bare transformer is trained as the embedded one."""
KINDS: Final = (
    "a small masked language model",
    "a masked language model",
    "a trained sentence encoder",
    "a static table",
)
"""Kinds of original encoders, which decide the learning rates."""
TRAINED: Final = 2
"""Position of a sentence encoder in `KINDS`."""
TABLE: Final = 3
"""Position of a static table in `KINDS`."""
_RATES: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "crops": (2e-4, 2e-4, 2e-5, 3e-3),
    "round trips": (1e-3, 1e-4, 2e-5, 3e-3),
    "BSL": (1e-3, 1e-4, 2e-5, 3e-3),
    "SimCSE": (3e-4, 3e-5, 2e-5, 3e-3),
    "TSDAE": (3e-4, 3e-5, 2e-5, 3e-3),
    LABELS: (3e-4, 2e-5, 2e-5, 3e-3),
}
"""Point → peak learning rate for each of `KINDS`."""
_TRAINING: Final[Mapping[str, Any]] = {
    "max_steps": 100,
    "epochs": 1000,  # unless the text is very small, the number of steps ends training
    "eval_every": 100,
    "select": "last",  # a dev set would be other text, and favour the methods that depend most on selection
    "collapse": None,
}
_LIMIT: Final = 5000  # training sentences; a hundred steps read 6,400 pairs, and translation takes most of the time


def own_config(request: OwnRequest, changes: Mapping[str, Any], mirror: str | None) -> PipelineConfig:
    """Return the configuration of the original encoder, without training: changes of it do not apply.

    Raises:
        SourceError, AssetError: A text does not exist.
        ValueError: A field or value is invalid.
    """
    own = {"labels": absolute(request.labels) if request.labels else None, "hold_out": {"limit": _LIMIT}}
    sources = [source_named(name, mirror) for name in request.text]
    shared = {
        "ingest": {"sources": sources, "own_text": own},
        "encoder": {"model": request.encoder},
        "evaluation": {"sets": [STSB], "dev": None},
        "published": (),
    }
    return override(recipe("tiny-avg"), shared, {name: new for name, new in changes.items() if name != "training"})


@dataclass(frozen=True)
class Start:
    """What decides the settings of the points.

    `kind` is a position in `KINDS`. There are no questions if the text is not yet read.
    """

    kind: int = TRAINED
    questions: tuple[str, ...] = ()

    @property
    def drops(self) -> bool:
        """Whether the encoder supports dropout."""
        return self.kind != TABLE


def declared(base: PipelineConfig, request: OwnRequest, start: Start) -> tuple[Study, list[str]]:
    """Return the study, and a sentence for each point that cannot be tried."""
    own = base.ingest.own_text
    assert own is not None
    trips = trips_of(own.lang, CATALOGS[request.translators])
    points = _points(own.lang, start, AugmentConfig(translations=trips))
    reasons = []
    if not trips:
        del points["round trips"], points["BSL"]
        reasons.append(
            f"round trips, BSL: not tried, because translators {request.translators!r} have no round trip from "
            f"{own.lang!r}."
        )
    if not start.drops:
        del points["SimCSE"], points["TSDAE"]
        reasons.append(
            f"SimCSE, TSDAE: not tried, because {base.encoder.short_name} is a static table, without dropout and "
            "layers that a decoder shares."
        )
    if own.labels is None:
        del points[LABELS]
        if start.questions == (CROP,):
            del points["crops"]
            reasons.append(
                "crops: not tried, because the only questions about this text are about crops. Give labels, or "
                "documents of several sentences or with titles."
            )
    names = ", ".join(spec.address.rpartition("/")[2] for spec in base.ingest.sources)
    for name, point in points.items():
        point["title"] = f"{name} on {names}"
    shared = {
        "ingest": base.ingest,
        "encoder": {"model": request.encoder},
        "evaluation": base.evaluation,
        "published": (),
        "training": _TRAINING,
    }
    title = f"Which method helps on {names}, from {base.encoder.short_name}"
    return Study(title, "tiny-avg", {VARIANT: tuple(points)}, shared, variants=points), reasons


def check_own(name: str, own: OwnRequest | None) -> None:
    """Check that the study `own` has a text, and that no other study has one.

    Raises:
        ValueError: A text is missing, or has no effect.
    """
    if name == OWN and own is None:
        raise ValueError(f"study {OWN} compares methods on your text. Name it: bsl sweep {OWN} --text FILE")
    if name != OWN and own is not None:
        raise ValueError(
            f"{name}: only study {OWN} takes a text (found {', '.join(own.text)}). Remove --text, or use {OWN}"
        )


def own_axes(over: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the axis of chosen points, the original encoder first; empty for all points.

    Raises:
        ValueError: Another field is varied.
    """
    if others := [field for field in over if field != VARIANT]:
        raise ValueError(
            f"{others[0]}: study {OWN} varies only its points. Choose some with --over {VARIANT}=crops,BSL, or set the "
            f"field for all points with --set {others[0]}=VALUE"
        )
    return {field: list(dict.fromkeys([START, *names])) for field, names in over.items()}


def _points(lang: str, start: Start, round_trips: AugmentConfig) -> dict[str, dict[str, Any]]:
    """Return point → changes of its recipe."""
    methods = [view.method for view in round_trips.translations]
    sides = [*itertools.combinations(methods, 2), *((ORIGINAL, method) for method in methods)]
    tripped = {
        "augment": round_trips,
        "pairs": with_fields(
            whole_sample().pairs, pairings=tuple(ViewPair(view_1=one, view_2=two) for one, two in sides)
        ),
    }
    crops = ContrastiveConfig(anchor_weight=0.0 if start.kind >= TRAINED else ANCHOR)
    points: dict[str, dict[str, Any]] = {
        START: {"recipe": "tiny-avg"},
        "crops": {
            "recipe": "tiny-contrastive",
            "augment": AugmentConfig(rewritings=(CropView(),)),
            "pairs": PairConfig(pairings=(CROPS,), drop_identical=True),
            "training": {"objective": crops},
        },
        "round trips": {"recipe": "tiny-contrastive", **tripped},
        "BSL": {"recipe": "tiny-bsl-normed", **tripped},
        "SimCSE": {"recipe": "tiny-simcse"},
        "TSDAE": {"recipe": "tiny-tsdae"},
        LABELS: {
            "recipe": "tiny-contrastive",
            "augment": NO_VIEWS,
            "pairs": with_fields(ALONE, scored=OWN_LABELS),
            # A third of a batch is general sentences, which keep their vectors.
            "training": {"objective": LABEL_REGRESSION, "batch_size": 48},
        },
    }
    for name, rates in _RATES.items():
        point = points[name]
        pairs = point.get("pairs", recipe(point["recipe"]).pairs)
        point["pairs"] = with_fields(
            pairs, pairings=tuple(with_fields(one, lang_1=lang, lang_2=lang) for one in pairs.pairings)
        )
        point["training"] = {**point.get("training", {}), "lr": rates[start.kind]}
        point["encoder"] = {"dropout": DROPOUT if start.drops and name in ("round trips", "BSL", "SimCSE") else None}
    return points
