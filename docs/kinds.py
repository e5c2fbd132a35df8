"""Generate a page for each kind of artifact: content of a row, columns, and three lines of Polars to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from docs.contents import contents
from storage.artifacts.schemas import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = "artifacts"
_INDEX: Final = """\
# Artifacts

An artifact is a folder `<store>/<kind>/<key>/` of Parquet parts and other files; `manifest.json` says what it was made
of. The store is `.bsl/store` in the folder where `bsl` runs, unless `BSL_STORE` names another.

```sh
bsl artifacts ls
bsl artifacts show views
bsl artifacts verify
```

| kind | a row |
|---|---|
"""
STORE: Final = ".bsl/store"


@dataclass(frozen=True)
class Kind:
    """A kind of artifact.

    Attributes:
        name: Folder in the store.
        what: Description of a row, or of the artifact.
        tables: Names in `TABLES`; empty if the artifact has only other files.
        use: Polars expression on `table`, a lazy frame of the first table of all artifacts of the kind.
        beside: Description of the other files.
    """

    name: str
    what: str
    tables: tuple[str, ...]
    use: str
    beside: str = ""

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
        "A unique normalised sentence, sorted by its id: XXH64 of its UTF-8.",
        ("corpus",),
        'table.group_by("source", "lang").len()',
    ),
    Kind(
        "nli",
        "A labelled pair, by the ids of its sentences: 0 entailment, 1 neutral, 2 contradiction.",
        ("nli",),
        'table.group_by("label").len()',
    ),
    Kind(
        "translations",
        "A translated sentence. One folder a translator, one artifact a shard: the translation memory.",
        ("translations",),
        'table.group_by("translator", "lang").agg(pl.len(), pl.col("n_tokens").sum())',
    ),
    Kind(
        "views",
        "A sentence under one method: itself, a round trip, replaced words, an entailed sentence.",
        ("views",),
        'table.group_by("method").agg(pl.len(), pl.col("text").first())',
    ),
    Kind(
        "pairs",
        "A training pair. Label, score and group are null where nothing says them.",
        ("pairs",),
        'table.group_by("source").agg(pl.len(), (pl.col("text_1") == pl.col("text_2")).mean().alias("equal"))',
    ),
    Kind(
        "checkpoint",
        "A trained encoder, and a row for each logged step.",
        ("training_log",),
        'table.filter(pl.col("dev_spearman").is_not_null()).select("step", "loss", "dev_spearman", "effective_rank")',
        "`encoder/` loads with sentence-transformers; `state/` holds target, predictor, optimizer, random streams and "
        "the place in the data, as safetensors and JSON",
    ),
    Kind(
        "embeddings",
        "A sentence's vector. Table `sparse_embeddings` takes its place where vectors are words. `embeddings/shards` "
        "are pieces of a large corpus.",
        ("embeddings",),
        'table.select("sentence_id", pl.col("embedding").arr.get(0))',
    ),
    Kind(
        "transform",
        "What whitening or a flow learnt of a corpus's vectors.",
        (),
        "",
        "`transform.safetensors` and its settings",
    ),
    Kind(
        "scores",
        "One figure with its 95 % interval and signature, in [-1, 1] or [0, 1].",
        ("scores",),
        'table.select("model", "dataset", "split", "metric", "protocol", "value", "ci_low", "ci_high")',
    ),
    Kind(
        "comparison",
        "A difference of two systems on the same pairs, with interval and p.",
        ("comparison",),
        'table.filter(pl.col("p_value") < 0.05).select("model", "reference", "dataset", "value")',
    ),
    Kind(
        "predictions",
        "A test pair's cosine after fine-tuning, one artifact a fold.",
        ("predictions",),
        'table.group_by("topic").agg(pl.corr("gold", "cosine", method="spearman"))',
    ),
    Kind(
        "report",
        "What a run ends with: the figures of all its systems.",
        ("scores",),
        'table.filter(pl.col("dataset").str.starts_with("stsb")).select("model", "split", "value")',
        "`report.html`, the page; `report.md` with its charts, the model card",
    ),
    Kind(
        "evaluation",
        "What `bsl evaluate` ends with: figures and comparisons of all encoders.",
        ("scores", "comparison"),
        'table.select("model", "dataset", "value").sort("dataset", "value", descending=True)',
        "`evaluation.html`, the page; `evaluation.md`",
    ),
    Kind(
        "reproduction",
        "A figure of a published row beside what its recipe measured over seeds, × 100.",
        ("reproduction",),
        'table.select("row", "dataset", "published", "value", "sd", "verdict")',
        "`reproduction.html`, the page; `reproduction.md`",
    ),
    Kind(
        "sweep",
        "A figure over seeds of a point, a method or a run, its interval and its difference to a reference.",
        ("sweep", "costs"),
        'table.select("label", "dataset", "mean", "difference", "verdict")',
        "`sweep.html`, the page; `sweep.md`",
    ),
    Kind(
        "passages",
        "A sentence of a document, in its order, its part (`train`, `report`), what it is drawn with.",
        ("passages",),
        'table.group_by("source", "part").agg(pl.col("document").n_unique(), pl.len())',
    ),
    Kind(
        "weighing",
        "A share's score on a general dev set: how much of an adaptation is taken.",
        ("weighing",),
        'table.sort("share")',
    ),
    Kind(
        "proof",
        "A piece of evidence for or against an adapted encoder, before and after.",
        ("proof",),
        'table.select("evidence", "role", "before", "after", "ci_low", "ci_high")',
    ),
)


def kind_pages() -> dict[str, str]:
    """Return file → page; the list of all kinds comes first."""
    return {f"{FOLDER}/index.md": _index()} | {
        f"{FOLDER}/{kind.name}.md": "\n".join(_page(kind)) + "\n" for kind in KINDS
    }


def _index() -> str:
    rows = "\n".join(f"| [{kind.name}]({kind.name}.md) | {kind.what} |" for kind in KINDS)
    return _INDEX + rows + "\n" + contents(kind.name for kind in KINDS)


def _page(kind: Kind) -> Iterator[str]:
    yield from (f"# {kind.name}", "", kind.what, "")
    for table in kind.tables:
        yield from (f"Table `{table}`, in files `{table}-00000.parquet`, …", "", "| column | type |", "|---|---|")
        yield from (f"| `{name}` | {dtype} |" for name, dtype in TABLES[table].items())
        yield ""
    if kind.beside:
        yield from (f"Beside it: {kind.beside}.", "")
    if kind.tables:
        yield from ("```python", kind.snippet, "```")
