"""Score the embedded models on all held-out text; `python -m assets verify` uses 200 sentences per score.

python -m benchmarks.quality.bench_assets                     translators by beam and precision, round trips, masked LMs
BSL_DATA_MIRROR=... python -m benchmarks.quality.bench_assets   Multi30k test2016 too
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from assets.training.translation import round_trip_quality, translation_quality
from assets.verify import ENCODER, MULTILINGUAL_ENCODER, measure
from bsl.models.translation.config import MINI, Resources
from bsl.models.translation.loading import load_translator
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.stage.device import cores

SEARCHES = (("int8", 4), ("fp32", 4), ("int8", 1), ("fp32", 1))
PIVOTS = ("de", "fr")
GOALS = {"en-de": 33, "en-fr": 33, "de-en": 40, "fr-en": 40}


class Translators:
    """The embedded translators with given search settings; each model is converted once."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def translate(self, direction: str, texts: Sequence[str], precision: str = "int8", beam: int = 4) -> list[str]:
        config = MINI[direction].model_copy(update={"precision": precision, "beam": beam, "backend": "ctranslate2"})
        folder = embedded_path(config.model.removeprefix("embedded:"))
        translator = load_translator(folder, config, Resources("cpu", cores()), self._scratch / folder.name)
        return [each.text for each in translator.translate(texts)]


def parallel(direction: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the held-out pairs of each set: sources and references."""
    source, target = direction.split("-")
    files = {"Tatoeba": embedded_path("held-out") / f"tatoeba-{target if source == 'en' else source}.parquet"}
    mirror = os.environ.get("BSL_DATA_MIRROR")
    if mirror and {source, target} <= {"en", *PIVOTS}:
        files["Multi30k test2016"] = Path(mirror) / "multi30k" / "test2016.parquet"
    frames = {name: pl.read_parquet(file) for name, file in files.items()}
    return {name: (frame[source].to_list(), frame[target].to_list()) for name, frame in frames.items()}


def directions(translators: Translators) -> bool:
    """Print BLEU / chrF of every direction and search; return whether int8 with beam 4 meets the goals."""
    met = True
    print("| direction | set | pairs | " + " | ".join(f"{p}, beam {b}" for p, b in SEARCHES) + " |")
    print("|---|---|--:|" + "--:|" * len(SEARCHES))
    for direction in MINI:
        for name, (sources, references) in parallel(direction).items():
            found = [
                translation_quality(translators.translate(direction, sources, *search), references)
                for search in SEARCHES
            ]
            cells = " | ".join(f"{each['bleu']:.1f} / {each['chrf']:.1f}" for each in found)
            print(f"| {direction} | {name} | {len(sources):,} | {cells} |", flush=True)
            if name == "Tatoeba":
                met &= found[0]["bleu"] >= GOALS.get(direction, 0)
    return met


def round_trips(translators: Translators) -> bool:
    """Print chrF, exact copies and loops of EN→pivot→EN; return whether Tatoeba sentences meet the goals."""
    held = embedded_path("held-out")
    texts = {
        "Tatoeba": pl.read_parquet(held / "tatoeba-de.parquet")["en"].to_list(),
        "SNLI": pl.read_parquet(held / "snli.parquet")["text"].to_list(),
    }
    met = True
    print("\n| round trip | sentences | chrF | copies | loops |\n|---|--:|--:|--:|--:|")
    for name, originals in texts.items():
        for pivot in PIVOTS:
            abroad = translators.translate(f"en-{pivot}", originals)
            found = round_trip_quality(originals, translators.translate(f"{pivot}-en", abroad))
            figures = f"{found['chrf']:.1f} | {found['copies']:.1%} | {found['loops']:.0f}"
            print(f"| {name}, {pivot} | {len(originals):,} | {figures} |", flush=True)
            if name == "Tatoeba":
                met &= found["chrf"] >= 65 and found["copies"] <= 0.35 and found["loops"] == 0
    return met


def main() -> int:
    """Print the tables; return 1 if a goal is missed."""
    with tempfile.TemporaryDirectory() as scratch:
        translators = Translators(Path(scratch))
        met = directions(translators)
        met &= round_trips(translators)
    print("\n| encoder | figure | |\n|---|---|--:|")
    for encoder in (ENCODER, MULTILINGUAL_ENCODER):
        for figure, value in measure(encoder, 600).items():
            print(f"| {encoder} | {figure} | {value:g} |")
    print("goals:", "met" if met else "MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
