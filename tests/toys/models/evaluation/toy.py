"""A question about own text: find the sentence from which the first word was removed."""

import polars as pl

from bsl.models.evaluation.questions import HeldOutText, QuestionSet


def toy_question(held: HeldOutText) -> QuestionSet:
    """Ask for the whole sentence."""
    unique = held.sentences.unique("sentence_id").sort("sentence_id")
    asks = pl.col("text").str.replace(r"^\S+ ", "")
    return QuestionSet(unique.with_columns(asks=asks, answer="text"), unique["text"])
