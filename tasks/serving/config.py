"""Settings of exported forms, separate from their code so that the command can read them without Prefect."""

from __future__ import annotations

from pydantic import Field

from bsl.models.encoder.int8 import Target
from bsl.storage.record import Record


class CompressionConfig(Record):
    """Settings of the exported forms of an encoder."""

    onnx: bool = False
    """Write an ONNX graph in fp32: onnx/model.onnx."""
    int8: bool = False
    """Write an ONNX graph with int8 products: onnx/model_qint8_….onnx."""
    target: Target | None = None
    """Processor of the int8 graph: with VNNI (or ARM), or any x86; by default like this machine. Weights for `vnni`
    (AVX-512 VNNI, AVX-VNNI or ARM) have 8 bits, those for `avx2` 7 bits, since sums saturate without VNNI."""
    dims: tuple[int, ...] = ()
    """Write encoders with fewer dimensions, for example 256,128,64: dims-K/."""
    static: bool = False
    """Write a table of token vectors, without a transformer: static/."""
    static_dims: int = Field(default=256, ge=8, le=4096)
    """Width of the table, at most the encoder's."""
    max_loss: float = Field(default=0.3, ge=0)
    """Maximum loss of int8 on STS-B dev, in points of Spearman."""
    min_cosine: float = Field(default=0.98, ge=-1, le=1)
    """Minimum mean cosine of int8 and fp32 vectors of the same sentences."""
    text: tuple[str, ...] = ()
    """Files of sentences to fit --int8, --dims and --static on; by default NLI and STS-B training sentences."""
    sentences: int = Field(default=20_000, ge=100, le=1_000_000)
    """Maximum number of sentences to fit on, drawn at random."""
    suite: tuple[str, ...] = ()
    """Score all forms on these sets too: labels:FILE, own:FILE, sts …."""
