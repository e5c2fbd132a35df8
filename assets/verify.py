"""Measure the embedded models for packing, and verify the recorded figures later.

Both use one protocol: the packed asset, on a CPU, on the embedded held-out text; translators by CTranslate2, beam 4, in
fp32, which every CPU reproduces. A figure that differs by more than `TOLERANCE` is therefore wrong.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, cast

import polars as pl

from assets.pins import record_pins
from assets.training.corpora import LANGUAGES
from bsl.models.translation.config import MINI
from bsl.storage.assets.catalog import embedded_manifest
from bsl.storage.assets.embedded import EMBEDDED, embedded_path
from bsl.storage.record import Record
from bsl.tasks.diagnostics.finding import Finding
from bsl.tasks.stage.device import cores
from bsl.tasks.stage.ui import progress_of
from bsl.tasks.translation.translator import PINNED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from bsl.models.translation.config import TranslatorConfig

HELD_OUT = "held-out"
FORWARD, BACK = "marian-mini-en-mul", "marian-mini-mul-en"
ENCODER, MULTILINGUAL_ENCODER = "bert-mini", "bert-mini-mul"
STUDENT, TABLE = "mini-sentence", "static-sentence"
MODELS = (FORWARD, BACK, ENCODER, MULTILINGUAL_ENCODER, STUDENT, TABLE)
TEXTS = ("nli-sample", "stsb", "stsb-mt", HELD_OUT)
SENTENCES = 200
"""Number of sentences in each measurement of `verify`."""
VERIFIED = "verified"
"""Name of the manifest's figures that `verify` recomputes."""
TOLERANCE: Mapping[str, float] = {
    "bleu": 0.6,
    "chrf": 0.4,
    "copies": 0.02,
    "loops": 1,
    "spearman": 0.3,
    "loss": 0.01,
    "accuracy": 0.003,
}
"""Maximum difference due to another CPU's rounding, by the last word of a figure's name."""


class Check(Record):
    """A figure of an asset, recorded and recomputed."""

    asset: str
    figure: str
    recorded: float | None
    """Figure in the manifest; None if missing."""
    found: float

    @property
    def holds(self) -> bool:
        """Whether the recomputed figure equals the recorded one within `TOLERANCE`."""
        kind = self.figure.rsplit(" ", 1)[-1]
        return self.recorded is not None and abs(self.recorded - self.found) <= TOLERANCE.get(kind, 0.01)

    @property
    def finding(self) -> Finding:
        """The check with its verdict."""
        recorded = "none" if self.recorded is None else f"{self.recorded:g}"
        subject = f"{self.asset}: {self.figure}"
        return Finding(subject, "ok" if self.holds else "NO", f"{self.found:g} (recorded: {recorded})")


def verify() -> list[Check]:
    """Recompute checksums and figures of every embedded asset.

    Raises:
        AssetError: An asset is missing or damaged.
    """
    for name in (*TEXTS, *MODELS):
        embedded_path(name)
    measured = {name: measure(name, SENTENCES) for name in MODELS}
    return [
        Check(asset=name, figure=figure, recorded=recorded.get(figure), found=value)
        for name, figures in measured.items()
        for recorded in [cast("dict[str, float]", embedded_manifest(name).figures.get(VERIFIED, {}))]
        for figure, value in figures.items()
    ]


def figures_of(name: str, sentences: int, root: Path) -> dict[str, JsonValue]:
    """Return the figures for a packed model's manifest, and for a translator its pinned translations."""
    figures: dict[str, JsonValue] = {VERIFIED: dict(measure(name, sentences, root))}
    pins = record_pins(name, directions(name), root)
    return {**figures, PINNED: pins} if pins else figures


def measure(name: str, sentences: int, root: Path | None = None) -> dict[str, float]:
    """Measure an embedded model by the protocol of this module.

    Args:
        name: One of `MODELS`; for `BACK` also the round trips through `FORWARD`.
        sentences: Held-out pairs per translation direction and sentences per round trip.
        root: Folder of the models; defaults to the package's. The texts are always the package's.
    """
    if name in (STUDENT, TABLE):
        folder = embedded_path(name, root)
        return {f"stsb {split} spearman": _sts_spearman(folder, "stsb", "mean", split) for split in ("dev", "test")}
    if name == ENCODER:
        texts = _held_out("sentences")["text"].head(5 * sentences)
        return _encoder_figures(ENCODER, texts, "stsb", root)
    if name == MULTILINGUAL_ENCODER:
        texts = pl.concat([_held_out(f"tatoeba-{code}")[code].head(sentences) for code in LANGUAGES])
        return _encoder_figures(MULTILINGUAL_ENCODER, texts, "stsb-mt", root)
    figures = _qualities(name, sentences, root)
    return figures | _round_trips(sentences, root) if name == BACK else figures


def directions(name: str) -> list[TranslatorConfig]:
    """Return the translator settings of an embedded model, one per direction; empty for other models."""
    return [config for config in MINI.values() if config.model == f"{EMBEDDED}{name}"]


def _round_trips(sentences: int, root: Path | None) -> dict[str, float]:
    from assets.training.translation import round_trip_quality

    figures: dict[str, float] = {}
    originals = _held_out("snli")["text"].head(sentences).to_list()
    for code in ("de", "fr"):
        abroad = _translated(MINI[f"en-{code}"], originals, root)
        returned = _translated(MINI[f"{code}-en"], abroad, root)
        for kind, value in round_trip_quality(originals, returned).items():
            figures[f"en-{code}-en snli {kind}"] = value
    return figures


def _encoder_figures(name: str, texts: pl.Series, pairs: str, root: Path | None) -> dict[str, float]:
    """Return masked-LM loss and accuracy on held-out sentences, and Spearman correlations of the raw encoder on STS."""
    from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

    from assets.training.masked_lm import EncoderShape, MaskedSentences, evaluate_masked_lm
    from assets.training.vocabulary import encode_wordpieces

    folder = embedded_path(name, root)
    tokenizer, config = PreTrainedTokenizerFast.from_pretrained(folder), EncoderShape()
    held_out = MaskedSentences(
        encode_wordpieces(tokenizer, texts.to_list(), config.max_tokens), tokenizer, config, seed=1
    )
    found = evaluate_masked_lm(AutoModelForMaskedLM.from_pretrained(folder), held_out, seed=1)
    pooled = {f"{pairs} dev {pooling} spearman": _sts_spearman(folder, pairs, pooling) for pooling in ("mean", "cls")}
    return {**{f"masked-LM {figure}": round(found[figure], 4) for figure in ("loss", "accuracy")}, **pooled}


def _sts_spearman(folder: Path, asset: str, pooling: Literal["mean", "cls"], split: str = "dev") -> float:
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.evaluation.correlation import cosine_scores, spearman

    pairs = pl.read_parquet(embedded_path(asset) / f"{split}.parquet")
    encoder = SentenceEncoder.load(folder, EncoderConfig(model=str(folder), pooling=pooling, max_length=128))
    cosines = cosine_scores(*(encoder.encode(pairs[side].to_list()) for side in ("sentence1", "sentence2")))
    return round(100 * spearman(pairs["score"].cast(pl.Float64).to_numpy(), cosines), 2)


def _qualities(name: str, sentences: int, root: Path | None) -> dict[str, float]:
    from assets.training.translation import translation_quality

    figures: dict[str, float] = {}
    for config in directions(name):
        source, target = config.source_lang, config.target_lang
        pairs = _held_out(f"tatoeba-{target if source == 'en' else source}").head(sentences)
        texts = _translated(config, pairs[source].to_list(), root)
        for kind, value in translation_quality(texts, pairs[target].to_list()).items():
            figures[f"{source}-{target} tatoeba {kind}"] = value
    return figures


def _translated(config: TranslatorConfig, texts: list[str], root: Path | None) -> list[str]:
    from bsl.models.translation.config import Resources
    from bsl.models.translation.loading import load_translator

    full = config.model_copy(update={"backend": "ctranslate2", "precision": "fp32"})
    folder = embedded_path(config.model.removeprefix(EMBEDDED), root)
    with TemporaryDirectory() as scratch:
        translator = load_translator(folder, full, Resources("cpu", cores()), Path(scratch) / "converted")
    advance = progress_of(f"{config.source_lang}→{config.target_lang}")
    return [translation.text for translation in translator.translate(texts, advance)]


def _held_out(table: str) -> pl.DataFrame:
    return pl.read_parquet(embedded_path(HELD_OUT) / f"{table}.parquet")
