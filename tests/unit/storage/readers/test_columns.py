"""The text columns of a file, guessed where none are named."""

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.columns import Columns, known_shape
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import check_columns, is_nli, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.every import every

TEXTS = [f"This is the review of number {n}, long enough for prose." for n in range(8)]


def source(path):
    return resolve_source(SourceSpec(path=str(path)))


@every(
    [
        (("Text", "Stars"), Columns(("Text",))),
        (("SENTENCE",), Columns(("SENTENCE",))),
        (("Premise", "Hypothesis", "Label"), Columns(("Premise", "Hypothesis"), ("Label",))),
        (("sentence_a", "sentence_b"), Columns(("sentence_a", "sentence_b"))),
        (("Text", "text"), Columns(("text",))),
        (("Text", "sentence"), Columns(("sentence",))),  # as before names were compared without case
        (("TEXT", "Text"), Columns(("TEXT",))),
        (("Review", "Stars"), None),
    ]
)
def test_column_names_match_without_case_after_exact_matches(found, shape):
    assert known_shape(found) == shape


def test_only_prose_column_is_chosen_as_text(tmp_path):
    path = tmp_path / "rev.jsonl"
    pl.DataFrame({"Id": range(8), "Review": TEXTS, "Mood": ["good", "bad"] * 4}).write_ndjson(path)
    assert check_columns(source(path)) == ("Review",)
    assert pl.concat(read_source(source(path), ReadReport("rev"), 0.0)).to_series().to_list() == TEXTS
    assert not is_nli(source(path))


@pytest.mark.parametrize("columns", [{"review": TEXTS, "answer": TEXTS[::-1]}, {"id": range(8), "mood": ["good"] * 8}])
def test_zero_or_several_prose_columns_require_a_column_name(tmp_path, columns):
    pl.DataFrame(columns).write_csv(tmp_path / "rev.csv")
    with pytest.raises(SourceError, match=r"expected one of the known sets .* Name the text columns with `--columns`"):
        check_columns(source(tmp_path / "rev.csv"))


def test_columns_that_cannot_be_read_are_to_be_written_as_strings(write):
    """Regression: of texts inside objects, another column was to be named."""
    path = write("a.jsonl", '{"id": 7, "data": {"text": "Where is my parcel?"}}\n')
    with pytest.raises(SourceError, match=r"or write the values of 'data' \(lists, .*\) as strings\."):
        check_columns(source(path))


def test_many_bad_records_are_read_if_the_columns_are_named_and_the_share_allows_it(write):
    """Regression: they were refused, with the advice to raise the share."""
    named = {"path": write("a.jsonl", '{"review": "A good text."}\nbad\nbad\n'), "columns": ("review",)}
    found = resolve_source(SourceSpec(**named))
    assert check_columns(found) == ("review",)
    assert pl.concat(read_source(found, ReadReport("a"), 0.9)).to_series().to_list() == ["A good text."]
