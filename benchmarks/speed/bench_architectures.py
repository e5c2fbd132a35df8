"""Encoding speed of the most used sentence encoders, by architecture, relative to sentence-transformers.

    python -m benchmarks.speed.bench_architectures
    python -m benchmarks.speed.bench_architectures --only MPNet T5 --short 64 --passages 8

Each model has its real shape and random weights; all share the tokenizer of the embedded encoder. Texts are sentences
of STS-B's test set (about 12 tokens), and passages of a dozen of them (about 150). Both programs encode the same texts
on the same threads in turn; `auto` is bf16 where the processor is faster in it, and the peer runs in its default, fp32.
The ratio is the peer's CPU seconds by ours, the median of the rounds. The share is our rate of useful products, those
of the linear layers, relative to one product of the model's width. The exit code is 1 if fp32 vectors of both differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from torch.nn import functional
from transformers import CONFIG_MAPPING, AutoModel, AutoTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from bsl.models.encoder.sentence_encoder import SentenceEncoder

ROUNDS, SENTENCES_OF_PASSAGE, LENGTH = 3, 12, 256
TOLERANCE = 1e-4  # of the vectors' largest value


@dataclass(frozen=True)
class Shape:
    """A model's architecture and size, and published encoders that have it."""

    architecture: str
    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    encoders: str
    more: dict[str, Any] = field(default_factory=dict)
    pad_id: int = 0

    def settings(self) -> Any:
        """Return the configuration for transformers."""
        names = _NAMES.get(self.architecture, _USUAL)
        sizes = dict(zip(names, (self.layers, self.width, self.heads, self.inner), strict=True))
        usual = {"vocab_size": self.vocabulary, "pad_token_id": self.pad_id}
        return CONFIG_MAPPING[self.architecture](**usual, **sizes, **self.more)


_USUAL = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
_NAMES = {
    "distilbert": ("n_layers", "dim", "n_heads", "hidden_dim"),
    "t5": ("num_layers", "d_model", "num_heads", "d_ff"),
}
_FEW_KEYS = {"num_key_value_heads": 8, "head_dim": 128}
_GEMMA = {"num_key_value_heads": 1, "head_dim": 256, "use_bidirectional_attention": True, "sliding_window": 512}
SHAPES = {
    "BERT-6-384": Shape("bert", 6, 384, 12, 1536, 30522, "all-MiniLM-L6-v2"),
    "BERT-12-384": Shape("bert", 12, 384, 12, 1536, 30522, "all-MiniLM-L12-v2, bge-small, e5-small, gte-small"),
    "BERT-12-384-mul": Shape("bert", 12, 384, 12, 1536, 250037, "paraphrase-multilingual-MiniLM-L12-v2, e5-small"),
    "BERT-base": Shape("bert", 12, 768, 12, 3072, 30522, "bge-base, e5-base, gte-base, arctic-embed-m, SimCSE"),
    "LaBSE": Shape("bert", 12, 768, 12, 3072, 501153, "LaBSE"),
    "BERT-large": Shape("bert", 24, 1024, 16, 4096, 30522, "bge-large, mxbai-embed-large, e5-large, UAE-Large"),
    "MPNet": Shape("mpnet", 12, 768, 12, 3072, 30527, "all-mpnet-base-v2, multi-qa-mpnet-base", pad_id=1),
    "DistilRoBERTa": Shape("roberta", 6, 768, 12, 3072, 50265, "all-distilroberta-v1"),
    "DistilBERT": Shape("distilbert", 6, 768, 12, 3072, 30522, "msmarco-distilbert, distiluse"),
    "XLM-R-base": Shape(
        "xlm-roberta", 12, 768, 12, 3072, 250002, "multilingual-e5-base, paraphrase-multilingual-mpnet"
    ),
    "XLM-R-large": Shape("xlm-roberta", 24, 1024, 16, 4096, 250002, "bge-m3, multilingual-e5-large, arctic-embed-l-v2"),
    "NomicBERT": Shape("nomic_bert", 12, 768, 12, 3072, 30528, "nomic-embed-text-v1.5"),
    "ModernBERT": Shape("modernbert", 22, 768, 12, 1152, 50368, "gte-modernbert-base, modernbert-embed-base"),
    "ModernBERT-small": Shape("modernbert", 12, 384, 12, 1536, 50368, "granite-embedding-small-english-r2"),
    "GTE": Shape("gte", 12, 768, 12, 3072, 250048, "gte-multilingual-base"),
    "T5": Shape("t5", 12, 768, 12, 3072, 32128, "sentence-t5-base, gtr-t5-base", {"d_kv": 64}),
    "ALBERT": Shape("albert", 6, 768, 12, 3072, 30000, "paraphrase-albert-small-v2", {"embedding_size": 128}),
    "Gemma3": Shape("gemma3_text", 24, 768, 3, 1152, 262144, "embeddinggemma-300m", _GEMMA),
    "Qwen3": Shape("qwen3", 28, 1024, 16, 3072, 151669, "Qwen3-Embedding-0.6B", _FEW_KEYS),
}
HEAD = "| architecture | encoders | texts | packed | fp32 | auto | rate, share (fp32) |\n|---|---|---|---|--:|--:|--:|"


def main() -> int:
    """Print a row for each architecture and length of text; return 1 if vectors differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--short", type=int, default=256, help="sentences")
    parser.add_argument("--passages", type=int, default=24)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    from bsl.tasks.serving.measures import test_texts

    sentences = test_texts()
    starts = range(0, SENTENCES_OF_PASSAGE * arguments.passages, SENTENCES_OF_PASSAGE)
    passages = [" ".join(sentences[start : start + SENTENCES_OF_PASSAGE]) for start in starts]
    print(HEAD, flush=True)
    agree = True
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            for row, same in measured(
                name, Path(folder), {"short": sentences[: arguments.short], "passages": passages}
            ):
                print(row, flush=True)
                agree &= same
    return int(not agree)


def measured(name: str, folder: Path, texts: dict[str, list[str]]) -> Iterator[tuple[str, bool]]:
    """Yield a row of the table for each kind of text, and whether fp32 vectors of both programs agree."""
    from sentence_transformers import SentenceTransformer

    from bsl.models.runtime.precision import why_fp32

    shape = SHAPES[name]
    ours = made(shape, folder)
    peer = SentenceTransformer(str(folder), device="cpu")
    peer.max_seq_length = LENGTH
    fastest = product_rate(shape.width, shape.inner)
    linear = sum(module.weight.numel() for module in ours.network.modules() if isinstance(module, torch.nn.Linear))
    work = 2 * linear * (shape.layers if shape.architecture == "albert" else 1)  # ALBERT's layers share their weights
    bf16 = not why_fp32("cpu")
    for kind, chosen in texts.items():
        took: dict[str, list[float]] = {"peer": [], "fp32": [], "auto": []}
        for _ in range(ROUNDS):
            theirs = timed(took["peer"], partial(peer.encode, chosen, show_progress_bar=False))
            mine = timed(took["fp32"], partial(ours.encode, chosen))
            if bf16:
                timed(took["auto"], partial(ours.encode, chosen, bf16=True))
        tokens = int(ours.tokenize(chosen).lengths.sum())
        best = min(took["fp32"])
        share = work * tokens / best / fastest
        auto = f"{ratio(took['peer'], took['auto']):.2f}" if bf16 else "fp32"
        packs = ours.network._tried
        packed = "yes" if packs and packs[0] and packs[0].fits(int(ours.tokenize(chosen).lengths.max())) else "no"
        rate = f"{tokens / best:,.0f} tokens/s, {share:.0%}"
        cells = (name, shape.encoders, kind, packed, f"{ratio(took['peer'], took['fp32']):.2f}", auto, rate)
        yield f"| {' | '.join(cells)} |", bool(np.abs(theirs - mine).max() <= TOLERANCE * np.abs(mine).max())


def made(shape: Shape, folder: Path) -> SentenceEncoder:
    """Return a model with random weights and the embedded encoder's tokenizer, and write both to a folder."""
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.encoder.transformer import ENCODER_HALVES
    from bsl.storage.assets.embedded import embedded_path

    tokenizer = AutoTokenizer.from_pretrained(embedded_path("bert-mini"))
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(shape.pad_id)  # MPNet's is fixed
    torch.manual_seed(0)
    half = ENCODER_HALVES.get(shape.architecture)
    backbone = (getattr(transformers, half) if half else AutoModel.from_config)(shape.settings()).eval()
    for saved in (backbone, tokenizer):
        saved.save_pretrained(folder)
    network = Encoder(backbone, EncoderConfig(model=shape.architecture, max_length=LENGTH))
    return SentenceEncoder(network, tokenizer)


def product_rate(width: int, out: int) -> float:
    """Return FLOP per CPU second of one product of 1,024 rows in fp32, by the library that forward passes use."""
    from bsl.models.runtime.device import arithmetic

    x, weight, took = torch.randn(1024, width), torch.randn(out, width), []
    with torch.inference_mode(), arithmetic(torch.device("cpu"), bf16=False):
        for _ in range(20):
            began = time.process_time()
            functional.linear(x, weight)
            took.append(time.process_time() - began)
    return 2 * 1024 * width * out / statistics.median(took)


def timed(seconds: list[float], work: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Do some work, and append its CPU seconds."""
    began = time.process_time()
    vectors = work()
    seconds.append(time.process_time() - began)
    return vectors


def ratio(peer: list[float], ours: list[float]) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(theirs / mine for theirs, mine in zip(peer, ours, strict=True))


if __name__ == "__main__":
    sys.exit(main())
