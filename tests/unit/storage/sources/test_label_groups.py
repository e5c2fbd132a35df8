"""Columns of labels that group rows: documents, writers, customers."""

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.label_names import label_file, set_with_label_columns, with_label_columns
from bsl.storage.sources.labels import label_source, read_labels, sources_and_labels
from bsl.storage.sources.reading_config import ReadingConfig

ROWS = 120
TEXTS = [f"The boat of captain number {number} came late again." for number in range(ROWS)]
LABELS = ["bad", "good"] * (ROWS // 2)
WRITERS = [f"w{number // 10}" for number in range(ROWS)]


def _file(folder, **columns):
    path = folder / "labels.csv"
    pl.DataFrame({"text": TEXTS, "label": LABELS, **columns}).write_csv(path)
    return str(path)


LIKELY = {
    "a usual name": ({"writer": WRITERS}, "writer"),
    "a usual name in capitals": ({"Customer_ID": [str(number // 2) for number in range(ROWS)]}, "Customer_ID"),
    "many values of several rows": ({"came by": WRITERS}, "came by"),
    "every row differs": ({"id": [f"id {number}" for number in range(ROWS)]}, None),
    "a usual name, every row differs": ({"user": [f"u{number}" for number in range(ROWS)]}, None),
    "few values": ({"priority": ["low", "high", "none"] * (ROWS // 3)}, None),
    "follows from the label": ({"code": [f"{label}-x" for label in LABELS]}, None),
    "decides the label": ({"fine": [f"{label} {number // 10}" for number, label in enumerate(LABELS)]}, None),
    "decimals": ({"price": [f"{number // 10}.50" for number in range(ROWS)]}, None),
    "a title": ({"subject": WRITERS}, None),
    "mostly blank": ({"thread": [name if number < 30 else None for number, name in enumerate(WRITERS)]}, None),
    "one value of most rows": ({"user": ["admin"] * 80 + WRITERS[80:]}, None),
}


@pytest.mark.parametrize(("columns", "expected"), LIKELY.values(), ids=LIKELY)
def test_column_that_looks_like_groups_is_named_with_the_option(tmp_path, columns, expected):
    source = label_source(_file(tmp_path, **columns))
    assert source.likely_document == expected
    assert source.document is None
    assert ("--document" in source.summary) == (expected is not None)
    if expected is not None:
        assert f"--document '{expected}'" in source.summary or f"--document {expected} " in source.summary


def test_named_column_groups_rows_and_blank_ones_go_by_their_text(tmp_path):
    path = _file(tmp_path, by=[None if number < 3 else name for number, name in enumerate(WRITERS)])
    source = label_source(with_label_columns(path, document="by"))
    assert (source.document, source.documents, source.likely_document) == ("by", 12, None)
    assert "rows with the same `by` stay together (12 values)" in source.summary
    groups = read_labels(source)["document"]
    assert groups.null_count() == 0
    assert groups.n_unique() == 12 + 3
    assert "document" not in read_labels(label_source(path)).columns
    assert label_source(_file(tmp_path, writer=WRITERS), "").likely_document is None  # the user says: no documents


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("wrtier", "column 'wrtier' is missing; .*did you mean 'writer'.*--document"),
        ("label", "'label' is the label and cannot group rows"),
        ("text", "'text' is the text and cannot group rows"),
        ("same", "'same' has 1 value, expected at least two groups"),
    ],
)
def test_unsuitable_column_of_groups_is_refused(tmp_path, document, message):
    path = _file(tmp_path, writer=WRITERS, same=["x"] * ROWS)
    with pytest.raises(SourceError, match=message):
        label_source(with_label_columns(path, document=document))


def test_document_may_be_a_column_of_text_or_of_labels(tmp_path):
    labels, text = _file(tmp_path, writer=WRITERS), tmp_path / "text.csv"
    pl.DataFrame({"text": TEXTS, "chain": WRITERS}).write_csv(text)
    for column, of_text, of_labels in (("writer", None, "writer"), ("chain", "chain", None)):
        (source,), found = sources_and_labels(ReadingConfig(document=column), [str(text)], labels)
        assert (source.document, found.document) == (of_text, of_labels)
    with pytest.raises(SourceError, match="column 'writers' is missing"):
        sources_and_labels(ReadingConfig(document="writers"), [str(text)], labels)


def test_name_of_a_set_contains_the_column():
    name = set_with_label_columns("labels:a b.csv", "queue", ["my text"], "writer & co")
    assert label_file(name.removeprefix("labels:"))._asdict() == {
        "path": "a b.csv", "label": "queue", "texts": ("my text",), "encoding": None, "document": "writer & co"
    }  # fmt: skip
    with pytest.raises(ValueError, match="at most one label, one document"):
        label_file("a.csv#document=one&document=two")
