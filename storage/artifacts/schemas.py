"""The columns of every table, declared once and checked on write and on read."""

from __future__ import annotations

import polars as pl

from storage.errors import SchemaError

CORPUS = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "source": pl.String, "lang": pl.String})
PASSAGES = pl.Schema(
    {
        # A sentence of a document; neighbours have positions that follow each other.
        "document": pl.UInt32,
        "position": pl.UInt32,
        "sentence_id": pl.UInt64,
        "text": pl.String,
        "title": pl.String,
        "source": pl.String,
        "lang": pl.String,
        # What is drawn together: a document of its part, or a run of one.
        "unit": pl.UInt32,
        "part": pl.String,
    }
)
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
        # Null where nobody says so: the pair's class, how alike its views are (0 to 1), whose negatives it is not.
        "label": pl.Int8,
        "score": pl.Float32,
        "group": pl.UInt64,
    }
)
TRAINING_LOG = pl.Schema(
    {
        "step": pl.UInt32,
        "loss": pl.Float64,
        "lr": pl.Float64,
        "momentum": pl.Float64,
        "grad_norm": pl.Float64,
        "alignment": pl.Float64,
        "uniformity": pl.Float64,
        "std": pl.Float64,
        "effective_rank": pl.Float64,
        "dev_spearman": pl.Float64,
    }
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
WEIGHING = pl.Schema({"share": pl.Float64, "probe": pl.String, "value": pl.Float64, "counts": pl.Boolean})
PROOF = pl.Schema(
    {
        "evidence": pl.String,
        "metric": pl.String,
        # `counts` decides the verdict, `guard` may forbid it, `shown` is of a trained view or has no interval.
        "role": pl.String,
        # Null of a mean of general sets, as are interval and p where a set has none.
        "before": pl.Float64,
        "after": pl.Float64,
        "difference": pl.Float64,
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "p_value": pl.Float64,
        "n": pl.UInt32,
        "among": pl.UInt32,
    }
)
REPRODUCTION = pl.Schema(
    {
        "row": pl.String,
        "dataset": pl.String,
        "metric": pl.String,
        "protocol": pl.String,
        "published": pl.Float64,
        # × 100, as the row is printed; null where the set was not scored, and of one seed no deviation.
        "value": pl.Float64,
        "sd": pl.Float64,
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "seeds": pl.UInt32,
        # Of the verdict: what equivalent figures may differ by, and the 90 % interval over seeds, null of one seed.
        "margin": pl.Float64,
        "seeds_low": pl.Float64,
        "seeds_high": pl.Float64,
        "verdict": pl.String,
        "seeds_needed": pl.UInt32,  # to end an INCONCLUSIVE comparison; null where none are, or more than can be run
        "signature": pl.String,
    }
)
STUDY = pl.Schema(
    {
        "label": pl.String,
        "dataset": pl.String,
        "metric": pl.String,
        "protocol": pl.String,
        "mean": pl.Float64,
        # Over seeds, null of one seed; intervals are of scored pairs alone.
        "sd": pl.Float64,
        "ci_low": pl.Float64,
        "ci_high": pl.Float64,
        "seeds": pl.UInt32,
        # What it is compared with on the same draws of pairs, a row each; null where nothing is drawn.
        "reference": pl.String,
        # Null in the reference's own rows.
        "difference": pl.Float64,
        "difference_low": pl.Float64,
        "difference_high": pl.Float64,
        "p_value": pl.Float64,
    }
)
FIELD = pl.Schema(
    {
        **STUDY,
        # `above`, `below` or `no` beside the first label; null in its own rows.
        "verdict": pl.String(),
        # Whether the proof has a say in which method is best.
        "decides": pl.Boolean(),
    }
)
FIELD_METHODS = pl.Schema(
    {
        "label": pl.String,
        "method": pl.String,
        # Null where it was scored; else why it was not.
        "fault": pl.String,
        "steps": pl.UInt32,
        "seconds": pl.Float64,
        # Of all its views, whether they were translated for it or for another method before.
        "translation_seconds": pl.Float64,
        # How far it is behind the best; null for the best itself and for those without figures.
        "behind": pl.Float64,
        "behind_low": pl.Float64,
        "behind_high": pl.Float64,
        "behind_p": pl.Float64,
        "checkpoint": pl.String,
    }
)

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
    "reproduction": REPRODUCTION,
    "study": STUDY,
    "passages": PASSAGES,
    "field": FIELD,
    "field_methods": FIELD_METHODS,
    "weighing": WEIGHING,
    "proof": PROOF,
}


def tables_of(kind: str) -> tuple[str, ...]:
    """The tables of which an artifact of a kind has one; none where it need not have any."""
    name = kind.partition("/")[0]
    return {"embeddings": ("embeddings", "sparse_embeddings")}.get(name, (name,) if name in TABLES else ())


def check_schema(table: str, found: pl.Schema, where: str) -> None:
    """Refuse a table whose columns, order or types are not the declared ones.

    Args:
        table: name in `TABLES`.
        found: the columns at hand. An `Array` may have any width: the encoder decides it.
        where: what the message names, such as a path.

    Raises:
        SchemaError: with the columns that are missing, unexpected or of another type.
    """
    if table not in TABLES:
        raise SchemaError(f"{where}: no table is called {table!r}; declared are {', '.join(TABLES)}")
    expected = TABLES[table]
    if [_shape(item) for item in found.items()] == [_shape(item) for item in expected.items()]:
        return
    raise SchemaError(
        f"{where}: table {table!r} has columns {_spell(found)}, declared are {_spell(expected)}; "
        "delete the artifact and run its stage again, or correct the stage that wrote it"
    )


def _shape(column: tuple[str, pl.DataType]) -> tuple[str, object]:
    name, dtype = column
    return (name, ("Array", dtype.inner)) if isinstance(dtype, pl.Array) else (name, dtype)


def _spell(schema: pl.Schema) -> str:
    return ", ".join(f"{name} {dtype}" for name, dtype in schema.items())
