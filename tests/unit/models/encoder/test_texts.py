"""Columns of texts are encoded like lists; everything else is refused with what to pass instead."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.texts import texts_of
from bsl.models.errors import NoEmbeddingError
from tests.tiny_encoder import ORIGINALS, tiny_encoder

COLUMNS = {
    "tuple": tuple,
    "NumPy": np.array,
    "NumPy objects": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "pandas index": pd.Index,
    "Polars": pl.Series,
    "Arrow": pa.array,
    "Arrow chunks": lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
    "datasets column": lambda texts: datasets.Dataset.from_dict({"text": texts})["text"],
}
REFUSED = {
    "string": ("a man", r"'a man' is a string, expected a list of strings: \[text\]"),
    "bytes": (b"a man", r"texts is a bytes .*text\.decode"),
    "none": (None, r"texts is a NoneType \(None\), expected a list of strings"),
    "number": (3, r"texts is a int \(3\), expected a list of strings"),
    "pandas table": (pd.DataFrame({"text": ["a"]}), r'texts is a DataFrame .*column: list\(table\["column"\]\)'),
    "empty pandas table": (pd.DataFrame({"text": []}), "texts is a DataFrame"),
    "Polars table": (pl.DataFrame({"text": ["a"]}), "texts is a DataFrame .*Pass one column"),
    "Arrow table": (pa.table({"text": ["a"]}), "texts is a Table .*Pass one column"),
    "dataset": (datasets.Dataset.from_dict({"text": ["a"]}), "texts is a Dataset .*Pass one column"),
    "dict": ({"text": "a"}, r"texts is a dict .*Pass list\(texts\.values\(\)\)"),
    "generator": ((text for text in ["a"]), r"texts is a generator .*Pass list\(texts\)"),
    "set": ({"a"}, r"texts is a set .*Pass list\(texts\)"),
    "matrix": (np.array([["a", "b"]]), r"array of one dimension\. Pass texts\.ravel\(\)\.tolist\(\)"),
    "pairs": ([("a", "b")], r"text 0 is a tuple \(\('a', 'b'\)\), expected a string"),
    "lists": (["a", ["b"]], r"text 1 is a list \(\['b'\]\), expected a string"),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_column_gives_the_vectors_of_a_list(name, tmp_path):
    encoder = SentenceEncoder(*tiny_encoder(tmp_path))
    column = COLUMNS[name](ORIGINALS)
    assert np.array_equal(encoder.encode(column), encoder.encode(ORIGINALS))


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_with_what_to_pass(name):
    texts, told = REFUSED[name]
    with pytest.raises(TypeError, match=told):
        texts_of(texts)


@pytest.mark.parametrize("bad", [None, float("nan"), 7, b"a"])
def test_element_that_is_no_text_is_refused_with_its_row(bad):
    with pytest.raises(NoEmbeddingError, match=r"text 1 is .*expected a string") as refusal:
        texts_of(["a", bad])
    assert refusal.value.number == 1


def test_no_texts_give_no_vectors(tmp_path):
    assert SentenceEncoder(*tiny_encoder(tmp_path)).encode([]).shape == (0, 32)
