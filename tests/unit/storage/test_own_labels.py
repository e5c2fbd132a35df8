"""Labels from files: columns by their names, classes numbered, scores checked."""

import polars as pl
import pytest

from storage.errors import SourceError
from storage.own_labels import find_labels


def test_texts_with_classes(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("Review,Label\nIt is good.,pos\nIt is bad.,neg\n,pos\n")
    found = find_labels(str(path))
    assert (found.name, found.kind, found.sides, found.label) == ("reviews", "classes", ("Review",), "Label")
    assert found.read().to_dicts()[:2] == [{"text": "It is good.", "class": 1}, {"text": "It is bad.", "class": 0}]
    assert found.told == "reviews: classes by 'Label' of 'Review'"


def test_pairs_with_scores(tmp_path):
    path = tmp_path / "pairs.parquet"
    pl.DataFrame({"sentence1": ["a"], "sentence2": ["b"], "score": [2.5]}).write_parquet(path)
    found = find_labels(str(path))
    assert found.kind == "scores"
    assert found.read().to_dicts() == [{"sentence1": "a", "sentence2": "b", "score": 2.5}]


def test_where_it_lies_is_not_in_keys_but_content_is(tmp_path):
    one, two, other = (tmp_path / name / "l.csv" for name in "abc")
    for path, word in ((one, "x"), (two, "x"), (other, "y")):
        path.parent.mkdir()
        path.write_text(f"text,label\n{word},0\n")
    digests = [find_labels(str(path)).digest for path in (one, two, other)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,number\na,1\n", "has the columns 'text', 'number'; expected text and label"),
        ("sentence1,sentence2,score\na,b,much\n", "column 'score' holds 'much', expected numbers"),
        ("text,label\na,\n", "no row has text and 'label'"),
    ],
)
def test_what_is_no_label_is_refused(tmp_path, content, message):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(SourceError, match=message):
        find_labels(str(path)).read()
