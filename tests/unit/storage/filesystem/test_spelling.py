"""The nearest existing path, suggested for a wrong one."""

import pytest

from bsl.storage.filesystem.spelling import perhaps_path


@pytest.fixture
def letters(tmp_path, monkeypatch):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "reviews.csv").write_text("text\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("letters/review.csv", "letters/reviews.csv"),
        ("leters/reviews.csv", "letters/reviews.csv"),
        ("leters", "letters"),
        ("letters/REVIEWS.CSV", "letters/reviews.csv"),
        ("LETTERS/Reviews.csv", ""),  # the folder is similar, but has no such file
        ("leters/review.csv", ""),  # the folder is similar, but has no such file
        ("other/words.txt", ""),
        ("letters/words.csv", ""),
        ("letters/reviews.csv", ""),
        ("s3://bucket/reviews.csv", ""),
        ("letters/reviews.csv/more", ""),
        ("bad\0name", ""),
    ],
)
def test_wrong_path_suggests_the_nearest_existing_path(letters, path, meant):
    assert perhaps_path(path) == (f" (did you mean {meant!r}?)" if meant else "")


def test_absolute_path_gets_an_absolute_suggestion(letters):
    assert perhaps_path(str(letters / "leters")) == f" (did you mean {str(letters / 'letters')!r}?)"
