"""Export small and fast forms of an encoder to one folder: ONNX, int8, fewer dimensions, a static table; measure each.

README.md                     model card: use, cost and loss of each form
<root>                        weights, tokenizer, heads: a sentence-transformers folder
onnx/model.onnx               the graph in fp32
onnx/model_qint8_<kind>.onnx  the graph with int8 products, for processors of that kind
dims-<K>/                     an encoder whose vectors have K dimensions and length 1
static/                       a StaticEmbedding
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.int8 import GRAPHS, SATURATES, saturates_here, target_here
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.os_errors import explain_full_disk
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_source
from bsl.storage.sources.sources import SourceSpec, resolve_sources
from bsl.tasks.embedding.encoders import encoder_folder, find_encoder
from bsl.tasks.evaluation.python_api import embedded_by
from bsl.tasks.evaluation.taught_rows import taught_notes
from bsl.tasks.reporting.export import copy_classifier
from bsl.tasks.serving.form_scores import form_rows, form_sets
from bsl.tasks.serving.measures import (
    Variant,
    card_of,
    dev_scorer,
    measured,
    stsb,
    timed_again,
    variant_rows,
    write_cards,
)
from bsl.tasks.stage.device import computing
from bsl.tasks.stage.progress import announce

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.evaluation.kinds import FoundSets
    from bsl.tasks.serving.config import CompressionConfig
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

_MAX_BAD_SHARE: Final = 0.01
_EXAMPLES: Final = 512  # sentences for SmoothQuant's calibration
_BATCH: Final = 32
_SOURCES: Final = (
    SourceSpec(dataset="embedded:nli-sample", columns=("premise", "hypothesis")),
    SourceSpec(dataset="embedded:stsb", split="train", columns=("sentence1", "sentence2")),
)


@dataclass(frozen=True)
class ExportedForms:
    """Rows of the table of forms, and of their scores on the user's sets; the latter are empty without such sets."""

    forms: list[dict[str, str]]
    scores: list[dict[str, str]]


def export_variants(
    site: RunContext, name: str, revision: str | None, target: Path, config: CompressionConfig
) -> ExportedForms:
    """Write the forms of an encoder, named as for `find_encoder`, to a new folder; return the rows of its tables.

    Raises:
        EncoderError: A form cannot be made, or int8 loses too much; then nothing is written.
        UnknownSuiteError: A set is unknown, or forms cannot be compared on it.
        SourceError, AssetError, ArtifactMissingError: The encoder or the text does not exist.
    """
    from bsl.models.encoder.sentence_encoder import SentenceEncoder

    found = find_encoder(site, name, revision)
    folder = encoder_folder(site.open_store(), found)
    encoder = SentenceEncoder.load(folder, EncoderConfig(model=name))
    _check(encoder, config)
    sets = form_sets(site, config.suite) if config.suite else None
    with computing(site), explain_full_disk(target), atomic_write(target) as output:
        output.mkdir()
        makers = _Makers(output, encoder, config, site, sets)
        forms = makers.make()
        if isinstance(found, CheckpointRef):
            copy_classifier(site.open_store(), found, output)
        rows = variant_rows(forms, stsb("test")["score"].to_numpy())
        scores = form_rows(makers.vectors, sets) if sets else []
        notes = taught_notes(site.open_store(), name, found, sets.sets.values()) if sets else []
        for note in notes:
            announce(note)
        write_cards(output, rows, card_of(site, name, found, folder), encoder, scores, notes)
    return ExportedForms(rows, scores)


@dataclass(frozen=True)
class _Makers:
    """Writes the forms, and measures each from its files."""

    folder: Path
    encoder: SentenceEncoder
    config: CompressionConfig
    site: RunContext
    sets: FoundSets | None
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """Form → vectors of the user's sets."""

    def make(self) -> list[Variant]:
        """Write all requested forms; return their measurements, the full encoder first."""
        from bsl.models.serving.onnx_export import export_onnx
        from bsl.storage.filesystem.model_folder import DEFAULT_GRAPH, GRAPH_FOLDER

        self.encoder.save(self.folder)
        forms = [self._measured("fp32", "")]
        config = self.config
        if config.onnx or config.int8:
            (self.folder / GRAPH_FOLDER).mkdir()
            graph_fp32 = self.folder / GRAPH_FOLDER / DEFAULT_GRAPH
            export_onnx(self.encoder.network, graph_fp32)
            int8 = GRAPHS[config.target or target_here()]
            if config.int8:
                self._quantise(graph_fp32, self.folder / GRAPH_FOLDER / int8)
            if config.onnx:
                forms.append(self._measured("ONNX, fp32", f"{GRAPH_FOLDER}/{DEFAULT_GRAPH}"))
            else:
                graph_fp32.unlink()
            if config.int8:
                forms.append(self._measured("ONNX, int8", f"{GRAPH_FOLDER}/{int8}"))
        if config.dims or config.static:
            forms += self._from_text()
        return timed_again(forms, lambda path: self._load(self.folder / path))

    def _quantise(self, graph_fp32: Path, graph: Path) -> None:
        """Write the int8 graph and compare it with fp32.

        Raises:
            EncoderError: The int8 graph loses too much.
        """
        from bsl.models.evaluation.correlation import cosine_scores
        from bsl.models.serving.onnx_export import quantise_onnx

        target = self.config.target or target_here()
        quantise_onnx(graph_fp32, graph, self._batches(), target)
        texts, score = dev_scorer()
        near, exact = (encoder.encode(texts) for encoder in (self._load(graph), self.encoder))
        loss, cosine = 100 * (score(exact) - score(near)), float(cosine_scores(near, exact).mean())
        logger.info("int8 for %s: %.2f points lost on STS-B dev, mean cosine with fp32 %.4f", target, loss, cosine)
        if loss > self.config.max_loss or cosine < self.config.min_cosine:
            raise EncoderError(
                f"int8 loses {loss:.2f} points of Spearman on STS-B dev (expected at most {self.config.max_loss}), and "
                f"the mean cosine of its vectors with fp32 is {cosine:.4f} (expected at least {self.config.min_cosine})"
                f"{SATURATES if saturates_here(target) else ''}. Remove --int8, or allow more with --max-loss and "
                "--min-cosine."
            )

    @cached_property
    def _some_text(self) -> list[str]:
        return _texts(self.site, self.config)

    def _batches(self) -> list[dict[str, NDArray[np.int64]]]:
        """Return batches of tokenized text as inputs of a graph."""
        import numpy as np

        tokens = self.encoder.tokenize(self._some_text[:_EXAMPLES])
        rows = np.array_split(np.arange(len(tokens)), -(-len(tokens) // _BATCH))
        padded = (tokens.padded(part) for part in rows)
        return [{"input_ids": ids_BT.numpy(), "attention_mask": mask_BT.numpy()} for ids_BT, mask_BT in padded]

    def _from_text(self) -> list[Variant]:
        import numpy as np

        from bsl.models.serving.reduction import principal_axes, shortened, tabulate

        vectors = self.encoder.encode(self._some_text)
        forms, (texts, score) = [], dev_scorer()
        dev_ND = self.encoder.encode(texts)
        axes = {"first": np.eye(self.encoder.width), "rotated": principal_axes(vectors)}
        for width in sorted(set(self.config.dims), reverse=True):
            scores = {name: score(dev_ND @ axes_DD[:, :width]) for name, axes_DD in axes.items()}
            name = max(scores, key=scores.__getitem__)  # the first of equals
            short = shortened(self.encoder.network, axes[name], width)
            self.encoder.with_network(short).save(self.folder / f"dims-{width}")
            forms.append(self._measured(f"{width} dimensions, {name}", f"dims-{width}"))
        if self.config.static:
            table = tabulate(self.encoder, self._some_text, vectors, self.config.static_dims)
            table.save(self.folder / "static")
            forms.append(self._measured("static table", "static"))
        return forms

    def _load(self, path: Path) -> SentenceEncoder:
        from bsl.models.encoder.sentence_encoder import SentenceEncoder

        return SentenceEncoder.load(path, EncoderConfig(model=self.encoder.config.model))

    def _measured(self, name: str, place: str) -> Variant:
        """Load a form from its files and measure it."""
        encoder = self._load(self.folder / place)
        if self.sets is not None:
            self.vectors[name] = embedded_by(encoder, self.sets.embedded(), name)
        return measured(name, place or ".", self.folder / place, encoder)


def _check(encoder: SentenceEncoder, config: CompressionConfig) -> None:
    """Check that all forms can be made, before any is.

    Raises:
        EncoderError: Too many dimensions, or a form that needs a transformer for an encoder without one.
    """
    from bsl.models.encoder.static import StaticTable
    from bsl.models.serving.reduction import check_fewer, check_transformer

    for width in config.dims:
        check_fewer(encoder.network, width)
    if config.onnx or config.int8:
        if isinstance(encoder.network.backbone, StaticTable):
            raise EncoderError(
                f"{encoder.config.model}: a static table cannot be exported as a graph (expected a transformer). "
                "Remove --onnx and --int8."
            )
        if encoder.network.pooling.reads_all_layers:
            raise EncoderError(
                f"{encoder.config.model}: pooling {encoder.config.pooling} reads several layers, but a graph outputs "
                "only the last one's token vectors (expected a pooling of the last layer, such as mean). Remove --onnx "
                "and --int8."
            )
    if config.static:
        check_transformer(encoder)


def _texts(site: RunContext, config: CompressionConfig) -> list[str]:
    """Return unique sentences in random order, drawn with a fixed seed."""
    specs = [SourceSpec(path=path) for path in config.text] or _SOURCES
    columns = []
    for source in (found for spec in specs for found in resolve_sources(spec, site.mirror)):
        for frame in read_source(source, ReadReport(source.name), _MAX_BAD_SHARE):
            columns += frame.get_columns()
    texts = pl.concat([column.cast(pl.String).alias("text") for column in columns]).drop_nulls().str.strip_chars()
    unique = texts.filter(texts.str.len_chars() > 0).unique(maintain_order=True)
    return unique.sample(min(config.sentences, len(unique)), shuffle=True, seed=0).to_list()
