"""Generate a page for each kind of artifact: content of a row, columns, and three lines of Polars to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bsl.storage.artifacts.schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER: Final = "artifacts"
_INDEX: Final = """\
# Artifacts

An artifact is a folder `<store>/<kind>/<key>/` of Parquet parts and other files; `manifest.json` names its inputs
and settings. The store is `.bsl/store` in the current folder, or the value of `BSL_STORE`.

```sh
bsl artifacts ls
bsl artifacts show views
bsl artifacts verify
```

| kind | content of a row |
|---|---|
"""
STORE: Final = ".bsl/store"


@dataclass(frozen=True)
class Kind:
    """A kind of artifact.

    Attributes:
        name: Folder in the store.
        content: Description of a row, or of the artifact.
        tables: Names in `TABLES`; empty if the artifact has only other files.
        use: Polars expression on `table`, a lazy frame of the first table of all artifacts of the kind.
        files: Description of the other files.
    """

    name: str
    content: str
    tables: tuple[str, ...]
    use: str
    files: str = ""

    @property
    def pattern(self) -> str:
        """Glob pattern for the first table of all artifacts of the kind."""
        depth = "*/*" if self.name == "translations" else "*"
        return f"{STORE}/{self.name}/{depth}/{self.tables[0]}-*.parquet"

    @property
    def snippet(self) -> str:
        """Python code that reads the table."""
        return f'import polars as pl\ntable = pl.scan_parquet("{self.pattern}")\nprint({self.use}.collect())'


KINDS: Final = (
    Kind(
        "corpus",
        "A unique normalised sentence. Rows are sorted by sentence id, the XXH64 of the UTF-8 text.",
        ("corpus",),
        'table.group_by("source", "lang").len()',
    ),
    Kind(
        "nli",
        "The ids of a labelled pair of sentences, and the label: 0 entailment, 1 neutral, 2 contradiction.",
        ("nli",),
        'table.group_by("label").len()',
    ),
    Kind(
        "translations",
        "A translated sentence of the translation memory: a folder for each translator, an artifact for each shard.",
        ("translations",),
        'table.group_by("translator", "lang").agg(pl.len(), pl.col("n_tokens").sum())',
    ),
    Kind(
        "views",
        "A view of a sentence by one method: the sentence itself, a round trip, replaced words, an entailed sentence.",
        ("views",),
        'table.group_by("method").agg(pl.len(), pl.col("text").first())',
    ),
    Kind(
        "pairs",
        "A training pair. Label, score and group are null if the pair has none.",
        ("pairs",),
        'table.group_by("source").agg(pl.len(), (pl.col("text_1") == pl.col("text_2")).mean().alias("equal"))',
    ),
    Kind(
        "checkpoint",
        "A logged training step of the encoder.",
        ("training_log",),
        'table.filter(pl.col("dev_spearman").is_not_null()).select("step", "loss", "dev_spearman", "effective_rank")',
        "`encoder/`, which opens with sentence-transformers; `state/` with target, predictor, optimizer, random states "
        "and the position in the data, as safetensors and JSON",
    ),
    Kind(
        "embeddings",
        "The vector of a sentence. TF-IDF vectors are in the table `sparse_embeddings` instead. `embeddings/shards` "
        "contains the shards of a large corpus.",
        ("embeddings",),
        'table.select("sentence_id", pl.col("embedding").arr.get(0))',
    ),
    Kind(
        "transform",
        "The parameters of whitening or a flow, fitted on the vectors of a corpus.",
        (),
        "",
        "`transform.safetensors` and its settings",
    ),
    Kind(
        "scores",
        "A score with its 95 % interval and signature, in [-1, 1] or [0, 1].",
        ("scores",),
        'table.select("model", "dataset", "split", "metric", "protocol", "value", "ci_low", "ci_high")',
    ),
    Kind(
        "comparison",
        "The difference of two systems on the same pairs, with interval and p-value.",
        ("comparison", "compared", "cosines"),
        'table.filter(pl.col("p_value") < 0.05).select("model", "reference", "dataset", "value")',
    ),
    Kind(
        "predictions",
        "The cosine of a test pair after fine-tuning. Each fold has an artifact.",
        ("predictions",),
        'table.group_by("topic").agg(pl.corr("gold", "cosine", method="spearman"))',
    ),
    Kind(
        "report",
        "A score of one of the systems of a run.",
        ("scores",),
        'table.filter(pl.col("dataset").str.starts_with("stsb")).select("model", "split", "value")',
        "`report.html`, the page; `report.md` with its charts, the model card",
    ),
    Kind(
        "evaluation",
        "A score, or a comparison, of the encoders of `bsl evaluate`.",
        ("scores", "comparison"),
        'table.select("model", "dataset", "value").sort("dataset", "value", descending=True)',
        "`evaluation.html`, the page; `evaluation.md`",
    ),
    Kind(
        "reproduction",
        "A published figure, and the figure measured by its recipe over seeds, × 100.",
        ("reproduction",),
        'table.select("row", "dataset", "published", "value", "sd", "verdict")',
        "`reproduction.html`, the page; `reproduction.md`",
    ),
    Kind(
        "sweep",
        "The figure of a point or run over seeds, its interval, and its difference from a reference.",
        ("sweep",),
        'table.select("label", "dataset", "mean", "difference", "verdict")',
        "`sweep.html`, the page; `sweep.md`",
    ),
    Kind(
        "passages",
        "A sentence of a document, with its position, its part (`train`, `report`) and its bootstrap unit.",
        ("passages",),
        'table.group_by("source", "part").agg(pl.col("document").n_unique(), pl.len())',
    ),
    Kind(
        "weighing",
        "The score of a share of the trained weights on a general dev set.",
        ("weighing",),
        'table.sort("share")',
    ),
    Kind(
        "proof",
        "A score before and after an adaptation, and the difference.",
        ("proof", "samples"),
        'table.select("evidence", "role", "before", "after", "ci_low", "ci_high")',
    ),
    Kind(
        "classifier",
        "The number of test rows of a class for which a classifier predicts a class.",
        ("classifier",),
        'table.filter(pl.col("label") != pl.col("predicted")).sort("rows", descending=True)',
        "`classifier.safetensors` with weights and biases; `classifier.json` with classes, regularisation, temperature",
    ),
)


def contents(pages: Iterable[str], caption: str = "") -> str:
    """Return a hidden toctree, which adds pages to the navigation.

    Args:
        pages: Paths without suffix, relative to the page with the toctree.
        caption: Heading in the navigation.
    """
    options = (":hidden:", *((f":caption: {caption}",) if caption else ()))
    return "\n".join(("", ":::{toctree}", *options, "", *pages, ":::", ""))


def kind_pages() -> dict[str, str]:
    """Return file → page; the list of all kinds comes first."""
    return {f"{FOLDER}/index.md": _index()} | {
        f"{FOLDER}/{kind.name}.md": "\n".join(_page(kind)) + "\n" for kind in KINDS
    }


def _index() -> str:
    rows = "\n".join(f"| [{kind.name}]({kind.name}.md) | {kind.content} |" for kind in KINDS)
    return _INDEX + rows + "\n" + contents(kind.name for kind in KINDS)


def _page(kind: Kind) -> Iterator[str]:
    yield from (f"# {kind.name}", "", kind.content, "")
    for table in kind.tables:
        yield from (f"Table `{table}`, in files `{table}-00000.parquet`, …", "", "| column | type |", "|---|---|")
        yield from (f"| `{name}` | {dtype} |" for name, dtype in TABLES[table].items())
        yield ""
    if kind.files:
        yield from (f"Other files: {kind.files}.", "")
    if kind.tables:
        yield from ("```python", kind.snippet, "```")
