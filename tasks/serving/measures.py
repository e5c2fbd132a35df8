"""Measure the forms of an encoder: size, speed, and score on the embedded STS-B; write their table and model cards.

Shapes: N scored pairs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.encoder.int8 import GRAPHS
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.signature import with_sign
from bsl.models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.rendering.blocks import Page
from bsl.tasks.rendering.markdown import markdown_table
from bsl.tasks.reporting.card import card, hub_id, model_material, model_name
from bsl.tasks.reporting.export import newest_card
from bsl.tasks.serving.form_scores import TITLE as SCORES
from bsl.tasks.serving.form_scores import losses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bsl.models.encoder.int8 import Target
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.storage.sources.model_sources import ResolvedModel
    from bsl.tasks.stage.run_context import RunContext

_PASSES: Final = 3
_ENOUGH_S: Final = 20.0  # no further pass after so many seconds


@dataclass(frozen=True)
class Variant:
    """A measured form of an encoder, with its path in the exported folder.

    `megabytes` is the size of its weights in 10⁶ bytes, `width` the dimensions of its vectors; `passes` are sentences
    per second of each timed pass, from text to vector, tokenizer included; `cosines` are those of the scored pairs,
    (N,).
    """

    name: str
    path: str
    megabytes: float
    width: int
    passes: tuple[float, ...]
    cosines: NDArray[np.float64]

    @property
    def sentences_per_s(self) -> float:
        """Rate of the fastest pass, which is least affected by other load on the machine."""
        return max(self.passes)


def measured(name: str, relative: str, path: Path, encoder: SentenceEncoder) -> Variant:
    """Measure a form, a folder or graph: time a pass and compute its cosines on the test sentences of STS-B."""
    rate, vectors = _timed(encoder)
    count = len(stsb("test"))
    cosines = cosine_scores(vectors[:count], vectors[count:])
    return Variant(name, relative, _megabytes(path), encoder.width, (rate,), cosines)


def timed_again(variants: Sequence[Variant], load: Callable[[str], SentenceEncoder]) -> list[Variant]:
    """Time further passes of all forms in turn, so that other load on the machine affects all of them alike.

    Args:
        variants: The forms.
        load: Loads the form of a path.
    """
    texts = len(test_texts())
    for _ in range(_PASSES - 1):
        variants = [
            replace(form, passes=(*form.passes, _timed(load(form.path))[0]))
            if sum(texts / rate for rate in form.passes) <= _ENOUGH_S
            else form
            for form in variants
        ]
    return list(variants)


def _timed(encoder: SentenceEncoder) -> tuple[float, NDArray[np.float32]]:
    """Encode the test sentences of STS-B; return the rate in sentences per second, and their vectors."""
    texts = test_texts()
    encoder.encode(texts[:64])  # warm-up
    began = time.perf_counter()
    vectors = encoder.encode(texts)
    return len(texts) / (time.perf_counter() - began), vectors


def dev_scorer() -> tuple[list[str], Callable[[NDArray[np.floating]], float]]:
    """Return STS-B's dev sentences, and a function from their vectors to Spearman's ρ."""
    rows = stsb("dev")
    gold, count = rows["score"].to_numpy(), len(rows)
    texts = [*rows["sentence1"], *rows["sentence2"]]
    return texts, lambda vectors: spearman(cosine_scores(vectors[:count], vectors[count:]), gold)


def test_texts() -> list[str]:
    """Return the sentences for timing and scoring: STS-B's test set, all first sentences, then all second ones."""
    rows = stsb("test")
    return [*rows["sentence1"], *rows["sentence2"]]


def stsb(split: str) -> pl.DataFrame:
    """Read a split of the embedded STS-B: scored pairs."""
    return pl.read_parquet(embedded_path("stsb") / f"{split}.parquet")


def _megabytes(path: Path) -> float:
    """Return the size of the weights in 10⁶ bytes: a graph, or all tensors of a folder and its heads."""
    if path.is_file():
        return path.stat().st_size / 1e6
    heads = [file for file in path.glob("*/*.safetensors") if file.parent.name[0].isdigit()]
    return sum(file.stat().st_size for file in (*path.glob("*.safetensors"), *heads)) / 1e6


def variant_rows(variants: Sequence[Variant], gold: NDArray[np.float64]) -> list[dict[str, str]]:
    """Return a row per form: score with interval, and the difference from the first form on the same draws of pairs."""
    first = variants[0]
    return [
        {
            "form": form.name,
            "path": form.path,
            "MB": f"{form.megabytes:.1f}",
            "width": str(form.width),
            "sentences/s": _spread(form),
            "speedup": f"{form.sentences_per_s / first.sentences_per_s:.1f}",
            "STS-B test": _score(form.cosines, gold),
            "difference": "" if form is first else _difference(first.cosines, form.cosines, gold),
        }
        for form in variants
    ]


def _spread(form: Variant) -> str:
    """Format the rate of the fastest pass, with the range from the slowest to the fastest if there are several."""
    spread = f" [{min(form.passes):,.0f} to {form.sentences_per_s:,.0f}]" if len(form.passes) > 1 else ""
    return f"{form.sentences_per_s:,.0f}{spread}"


def _score(cosines: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    low, high = percentile_interval(spearman_resamples(cosines, gold))
    return f"{100 * spearman(cosines, gold):.2f} [{100 * low:.1f}, {100 * high:.1f}]"


def _difference(first: NDArray[np.float64], second: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    found = difference_of(*(draws_of(gold, cosines[None]) for cosines in (first, second)))
    return with_sign(found.value, found.ci_low, found.ci_high)


README: Final = "README.md"
TITLE: Final = "Forms of the encoder, measured on this machine"
_EXPLAINED: Final = """\
`MB`: weights in 10⁶ bytes. `sentences/s`: sentences of STS-B's test set, from text to vector, in the fastest of up to
three passes, taken in turn by all forms, with the range from the slowest to the fastest. `STS-B test`: Spearman × 100
of cosines with 95 % interval.
`difference`: from the first form, on the same draws of pairs.

```python
from sentence_transformers import SentenceTransformer

SentenceTransformer("this-folder")  # or "this-folder/dims-128", "this-folder/static"
# Requires optimum, in an environment of its own: pip install "sentence-transformers[onnx]"
SentenceTransformer("this-folder", backend="onnx", model_kwargs={"file_name": "onnx/GRAPH"})
```

`bsl evaluate` and `encoder.model` accept the same folders, and the path of a graph. The inputs of a graph are
`input_ids` and `attention_mask`; its output `sentence_embedding` is pooled, `last_hidden_state` is not. `first`: the
first dimensions of the encoder; `rotated`: the first dimensions after a rotation that changes no cosine. An int8
vector depends slightly on the other texts of its batch."""
_TARGETS: Final[Mapping[Target, str]] = {
    "vnni": "The int8 graph is for ARM and processors with VNNI: on others its sums saturate and its vectors change.",
    "avx2": "The int8 graph runs on all processors: its weights have 7 bits, so no sum saturates without VNNI.",
}
_STATIC: Final = (
    "A table of token vectors, without a transformer: the vector of a sentence is the mean of its token vectors. Word "
    "order has no effect."
)
_FULL_ONLY: Final = {"model_name", "eval_results"}  # header fields of the full encoder only
_SHORTER: Final = "The same transformer, with fewer dimensions; its vectors have length 1."


def card_of(site: RunContext, name: str, found: CheckpointRef | ResolvedModel, folder: Path) -> str:
    """Return the card of the full encoder: from its report, from its folder, or one with name and licence."""
    card_file = newest_card(site.open_store(), found) if isinstance(found, CheckpointRef) else folder / README
    if card_file is not None and card_file.is_file():
        return card_file.read_text(encoding="utf-8")
    return card(Page(model_name(name), "", "", [], []), [model_material("encoder", name)], hub_id(name))


def write_cards(
    folder: Path,
    rows: Sequence[dict[str, str]],
    card: str,
    encoder: SentenceEncoder,
    scores: Sequence[dict[str, str]] = (),
    notes: Sequence[str] = (),
) -> None:
    """Write a card of all forms, below that of the full encoder, and one in the folder of each form that has one."""
    text = f"{card}\n## {TITLE}\n\n{_explained(rows, encoder)}\n\n{markdown_table(rows)}\n"
    if scores:
        text += f"\n## {SCORES}\n\n{' '.join([losses(scores), *notes])}\n\n{markdown_table(scores)}\n"
    (folder / README).write_text(text, encoding="utf-8")
    for row in rows:
        if row["path"] != "." and (folder / row["path"]).is_dir():
            (folder / row["path"] / README).write_text(form_card(card, row), encoding="utf-8")


def _explained(rows: Sequence[dict[str, str]], encoder: SentenceEncoder) -> str:
    """Return the explanation of the table and the use of each form, with the graph's name, prompt and processors."""
    paths = {row["path"] for row in rows}
    target = next((target for target, name in GRAPHS.items() if f"onnx/{name}" in paths), None)
    sentences = [_EXPLAINED.replace("GRAPH", GRAPHS[target] if target else "model.onnx")]
    if target:
        sentences.append(_TARGETS[target])
    if any(path.startswith("onnx/") for path in paths):
        sentences += _prompt_of_graph(encoder)
    return " ".join(sentences)


def _prompt_of_graph(encoder: SentenceEncoder) -> list[str]:
    """Return what a program that runs a graph itself must know of the encoder's prompt; nothing without one."""
    if not encoder.prompt:
        return []
    said = [f"The prompt `{encoder.prompt!r}` is not in the graph: put it before each text."]
    if skipped := encoder.network.prompt_tokens_skipped:
        said.append(
            f"`sentence_embedding` leaves out the first {skipped} tokens, the prompt's; with another prompt or none, "
            "pool `last_hidden_state`."
        )
    return said


def form_card(full: str, row: Mapping[str, str]) -> str:
    """Return the card of a form in a folder; the header is that of the full encoder's card, without the scores."""
    from huggingface_hub import CardData, ModelCard  # slow import, needed only here

    known: dict[str, Any] = ModelCard(full, ignore_metadata_errors=True).data.__dict__
    static = row["path"] == "static"
    header = {name: value for name, value in known.items() if name not in _FULL_ONLY}
    header["tags"] = [*(header.get("tags") or []), *(["static-embeddings"] if static else [])]
    difference = f", {row['difference']} compared with the full encoder" if row["difference"] else ""
    return f"""---
{CardData(**header).to_yaml()}
---

# {row["form"]} of the encoder in the parent folder

{_STATIC if static else _SHORTER} {row["width"]} dimensions, {row["MB"]} MB of weights.

Spearman × 100 on STS-B test with 95 % interval: {row["STS-B test"]}{difference}.

```python
from sentence_transformers import SentenceTransformer

SentenceTransformer("path/to/this/folder")
```

Training data, figures, limits and licences of the full encoder: `README.md` of the parent folder. The same terms apply
here.
"""
