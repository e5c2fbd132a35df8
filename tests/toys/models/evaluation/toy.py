"""A question about own text: find the sentence from which the first word was removed."""

import polars as pl


def toy_question(sentences: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Ask for the whole sentence."""
    unique = sentences.unique("sentence_id").sort("sentence_id")
    asks = pl.col("text").str.replace(r"^\S+ ", "")
    return unique.with_columns(asks=asks, answer="text"), unique["text"]
