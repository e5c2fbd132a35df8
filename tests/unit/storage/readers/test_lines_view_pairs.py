"""The authors' file of view pairs: two tab-separated columns without a header, compressed as distributed."""

import zipfile

import polars as pl
import pytest

from storage.errors import SourceError
from storage.readers.read_report import ReadReport
from storage.sources.read import read_beside, read_source
from storage.sources.sources import SourceSpec, resolve_source

LINES = ["A dog runs.\tA dog is running.", 'He said "no"\tHe said no.\textra', "alone", "A cat.\tThe cat.\r"]


def mirror_of(tmp_path, packed):
    folder = tmp_path / "back_translated_nli"
    folder.mkdir()
    if packed:
        with zipfile.ZipFile(folder / "back_translated_nli.txt.zip", "w") as archive:
            archive.writestr("back_translated_nli.txt", "\n".join(LINES))
            archive.writestr("__MACOSX/._back_translated_nli.txt", "x")
    else:
        (folder / "back_translated_nli.txt").write_text("\n".join(LINES))
    return resolve_source(SourceSpec(dataset="back_translated_nli"), str(tmp_path))


@pytest.mark.parametrize("packed", [True, False])
def test_the_file_is_read_as_the_authors_give_it(tmp_path, packed):
    source, report = mirror_of(tmp_path, packed), ReadReport("views")
    frame = pl.concat(read_beside(source, "view", report, max_bad_share=0.5))
    assert frame.to_dict(as_series=False) == {
        "text": ["A dog runs.", 'He said "no"', "A cat."],
        "view": ["A dog is running.", "He said no.", "The cat."],
    }
    assert [(bad.line, bad.reason) for bad in report.bad] == [(3, "1 field, expected 2 or more between tabs")]
    texts = pl.concat(read_source(source, ReadReport("texts"), max_bad_share=0.5))
    assert texts.columns == ["text"], "views are no sentences of the corpus"


def test_views_may_stand_in_any_column_beside_one_of_sentences(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("sentence,paraphrase\nA dog runs.,A dog is running.\n")
    source = resolve_source(SourceSpec(path=str(path)))
    (frame,) = read_beside(source, "paraphrase", ReadReport("own"), 0.0)
    assert frame.rows() == [("A dog runs.", "A dog is running.")]
    (tmp_path / "two.csv").write_text("sentence1,sentence2,view\na,b,c\n")
    with pytest.raises(SourceError, match="has sentences in 'sentence1', 'sentence2', expected one column of them"):
        list(read_beside(resolve_source(SourceSpec(path=str(tmp_path / "two.csv"))), "view", ReadReport("two"), 0.0))


@pytest.mark.parametrize(
    ("members", "why"), [(["a.txt", "b.txt"], "holds 2 files, expected one"), ([], "holds 0 files")]
)
def test_a_zip_of_several_files_is_refused(tmp_path, members, why):
    with zipfile.ZipFile(tmp_path / "a.txt.zip", "w") as archive:
        for member in members:
            archive.writestr(member, "A dog runs.\n")
    source = resolve_source(SourceSpec(path=str(tmp_path / "a.txt.zip")))
    with pytest.raises(SourceError, match=why):
        list(read_source(source, ReadReport("zip"), 0.0))


def test_a_damaged_zip_is_named(tmp_path):
    (tmp_path / "a.txt.zip").write_bytes(b"PK\x03\x04 and no more")
    source = resolve_source(SourceSpec(path=str(tmp_path / "a.txt.zip")))
    with pytest.raises(SourceError, match=r"a\.txt\.zip: the zip archive cannot be read"):
        list(read_source(source, ReadReport("zip"), 0.0))


def test_who_has_no_file_is_told_where_it_is(tmp_path):
    with pytest.raises(SourceError, match=r"download the authors' back-translated corpus, .*/ConGen"):
        resolve_source(SourceSpec(dataset="back_translated_nli"), str(tmp_path))
