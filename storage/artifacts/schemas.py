"""The columns of every table, declared once and checked on write and on read."""

from __future__ import annotations

import polars as pl

from bsl.storage.errors import SchemaError

CORPUS = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "source": pl.String, "lang": pl.String})
DOCUMENT_SENTENCES = pl.Schema(
    {
        # Neighbours have consecutive positions.
        "document": pl.UInt32,
        "position": pl.UInt32,
        "sentence_id": pl.UInt64,
        "text": pl.String,
        "title": pl.String,
        "source": pl.String,
        "lang": pl.String,
    }
)
# Unit of resampling: a document, or a block of consecutive sentences.
PASSAGES = pl.Schema([*DOCUMENT_SENTENCES.items(), ("unit", pl.UInt32()), ("part", pl.String())])
NLI = pl.Schema({"premise_id": pl.UInt64, "hypothesis_id": pl.UInt64, "label": pl.Int8})
TRANSLATIONS = pl.Schema(
    {
        "sentence_id": pl.UInt64,
        "text": pl.String,
        "lang": pl.String,
        "translator": pl.String,
        "n_tokens": pl.UInt32,
        "score": pl.Float32,
    }
)
VIEWS = pl.Schema({"sentence_id": pl.UInt64, "method": pl.String, "text": pl.String})
PAIRS = pl.Schema(
    {
        "pair_id": pl.UInt64,
        "sentence_id": pl.UInt64,
        "text_1": pl.String,
        "text_2": pl.String,
        "lang_1": pl.String,
        "lang_2": pl.String,
        "source": pl.String,
        # Null where unknown: class, similarity (0 to 1), and group; pairs of a group are not each other's negatives.
        "label": pl.Int8,
        "score": pl.Float32,
        "group": pl.UInt64,
    }
)
TRAINING_LOG = pl.Schema(
    {"step": pl.UInt32()}
    | dict.fromkeys(
        ("loss", "lr", "momentum", "grad_norm", "alignment", "uniformity", "std", "effective_rank", "dev_spearman"),
        pl.Float64(),
    )
)
EMBEDDINGS = pl.Schema([("sentence_id", pl.UInt64()), ("embedding", pl.Array(pl.Float32, 0))])
SPARSE_EMBEDDINGS = pl.Schema(
    [("sentence_id", pl.UInt64()), ("columns", pl.List(pl.UInt32)), ("values", pl.List(pl.Float64))]
)
PREDICTIONS = pl.Schema({"row": pl.UInt32, "topic": pl.String, "gold": pl.Float64, "cosine": pl.Float64})
_FIGURE = {
    "dataset": pl.String(),
    "subset": pl.String(),
    "split": pl.String(),
    "metric": pl.String(),
    "protocol": pl.String(),
    "value": pl.Float64(),
    "n": pl.UInt32(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
}
SCORES = pl.Schema(
    {"model": pl.String(), **_FIGURE, "seed": pl.Int64(), "checkpoint": pl.String(), "signature": pl.String()}
)
COMPARISON = pl.Schema(
    {"model": pl.String(), "reference": pl.String(), **_FIGURE, "p_value": pl.Float64(), "seed": pl.Int64()}
)
# Figures of the two systems of a comparison, with intervals from the draws of the comparison.
COMPARED = pl.Schema({"model": pl.String(), **_FIGURE})
# Their cosines of the scored pairs of each set, in the order of the set.
COSINES = pl.Schema(
    {"model": pl.String, "dataset": pl.String, "split": pl.String, "row": pl.UInt32, "cosine": pl.Float64}
)
WEIGHING = pl.Schema({"share": pl.Float64, "value": pl.Float64})
PROOF = pl.Schema(
    {
        "evidence": pl.String,
        "metric": pl.String,
        # The use that the figure answers for; null for its parts and for general sets.
        "use": pl.String,
        # decides, vetoes or reported.
        "role": pl.String,
        "before": pl.Float64,
        "after": pl.Float64,
        "difference": pl.Float64,
        # Null for a set without an interval.
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "p_value": pl.Float64,
        "n": pl.UInt32,
    }
)
# Rows of test labels, by class and by the class that a classifier of the training labels predicts; pairs that occur.
CLASSIFIER = pl.Schema({"label": pl.String, "predicted": pl.String, "rows": pl.UInt32})
SAMPLES = pl.Schema(
    {
        # `neighbour`: the nearest text of an encoder, `class`: the class that a classifier of its vectors finds.
        "kind": pl.String,
        "text": pl.String,
        # The true class, or the answer of a question; null for neighbours among labelled texts.
        "label": pl.String,
        "before": pl.String,
        "after": pl.String,
    }
)
REPRODUCTION = pl.Schema(
    {
        "row": pl.String,
        "dataset": pl.String,
        "metric": pl.String,
        "protocol": pl.String,
        "published": pl.Float64,
        # × 100, as in the published row; null if the set was not scored. The deviation is null for a single seed.
        "value": pl.Float64,
        "sd": pl.Float64,
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "seeds": pl.UInt32,
        # For the verdict: the equivalence margin, and the 90 % interval over seeds (null for a single seed).
        "margin": pl.Float64,
        "seeds_low": pl.Float64,
        "seeds_high": pl.Float64,
        "verdict": pl.String,
        "seeds_needed": pl.UInt32,  # to resolve an INCONCLUSIVE comparison; null if none, or too many to run
        "signature": pl.String,
    }
)
SWEEP = pl.Schema(
    {
        "label": pl.String,
        "dataset": pl.String,
        "metric": pl.String,
        "protocol": pl.String,
        "mean": pl.Float64,
        # Over seeds, null for a single seed; only scored pairs have intervals.
        "sd": pl.Float64,
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "seeds": pl.UInt32,
        # Reference system, compared on the same bootstrap draws; one row per reference. Null without draws.
        "reference": pl.String,
        # Null in the reference's own rows.
        "difference": pl.Float64,
        "difference_low": pl.Float64,
        "difference_high": pl.Float64,
        "p_value": pl.Float64,
        # `above`, `below` or `no` against the reference; null in the reference's own rows and without draws.
        "verdict": pl.String,
        # Whether the set counts in the choice of the best system; null without draws.
        "decides": pl.Boolean,
    }
)

_CORRECT = "Correct the stage that writes it."

TABLES: dict[str, pl.Schema] = {
    "corpus": CORPUS,
    "nli": NLI,
    "translations": TRANSLATIONS,
    "views": VIEWS,
    "pairs": PAIRS,
    "training_log": TRAINING_LOG,
    "embeddings": EMBEDDINGS,
    "sparse_embeddings": SPARSE_EMBEDDINGS,
    "predictions": PREDICTIONS,
    "scores": SCORES,
    "comparison": COMPARISON,
    "compared": COMPARED,
    "cosines": COSINES,
    "reproduction": REPRODUCTION,
    "sweep": SWEEP,
    "passages": PASSAGES,
    "weighing": WEIGHING,
    "proof": PROOF,
    "classifier": CLASSIFIER,
    "samples": SAMPLES,
}


def tables_of(kind: str) -> tuple[str, ...]:
    """Return the tables of a kind, of which an artifact has exactly one; empty if it needs no table."""
    name = kind.partition("/")[0]
    return {"embeddings": ("embeddings", "sparse_embeddings")}.get(name, (name,) if name in TABLES else ())


def check_schema(table: str, found: pl.Schema, where: str, remedy: str = _CORRECT) -> None:
    """Refuse a table at `where` whose columns, order or types differ from the declared ones.

    An `Array` may have any width: the encoder decides it.

    Raises:
        SchemaError: lists the columns found and the columns declared.
    """
    if table not in TABLES:
        raise SchemaError(f"{where}: unknown table {table!r}, expected one of {', '.join(TABLES)}")
    expected = TABLES[table]
    if [_shape(item) for item in found.items()] == [_shape(item) for item in expected.items()]:
        return
    raise SchemaError(f"{where}: table {table!r} has columns {_spell(found)}, expected {_spell(expected)}. {remedy}")


def _shape(column: tuple[str, pl.DataType]) -> tuple[str, object]:
    name, dtype = column
    return (name, ("Array", dtype.inner)) if isinstance(dtype, pl.Array) else (name, dtype)


def _spell(schema: pl.Schema) -> str:
    return ", ".join(f"{name} {dtype}" for name, dtype in schema.items())
