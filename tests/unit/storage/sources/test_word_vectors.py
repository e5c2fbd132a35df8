"""Files of word vectors, intact and damaged."""

import gzip
import zipfile

import numpy as np
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.word_vectors import BLOCK, find_vectors_file, is_vectors_file, read_vectors

# Like glove.840B: a word with spaces, a word like a number, a no-break space in a word, equal words.
LINES = ["the 0.1 0.2 -0.3", ". . . 1 2 3", "0.5 4 5 6", "at a@b.c 7 8 9", "x\u00a0y 1e-3 0 0", "the 9 9 9"]
WORDS = ["the", ". . .", "0.5", "at a@b.c", "x\u00a0y", "the"]
TABLE = np.array([[0.1, 0.2, -0.3], [1, 2, 3], [4, 5, 6], [7, 8, 9], [1e-3, 0, 0], [9, 9, 9]], dtype=np.float32)


def written(path, lines, end="\n"):
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def read(path):
    blocks = list(read_vectors(path))
    return [word for words, _ in blocks for word in words], np.concatenate([table for _, table in blocks])


def test_words_with_spaces_or_digits_are_parsed(tmp_path):
    words, table = read(written(tmp_path / "glove.txt", LINES))
    assert words == WORDS
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, TABLE)


@pytest.mark.parametrize("end", [" \n", "\r\n"])
def test_word2vec_header_line_is_skipped(tmp_path, end):
    words, table = read(written(tmp_path / "wiki.vec", ["6 3", *LINES], end))
    assert words == WORDS
    np.testing.assert_array_equal(table, TABLE)


def test_compressed_word_vectors_are_read_without_unpacking(tmp_path):
    text = "".join(f"{line}\n" for line in LINES).encode()
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.writestr("glove.txt", text)
    (tmp_path / "glove.txt.gz").write_bytes(gzip.compress(text))
    for name in ("glove.zip", "glove.txt.gz"):
        words, table = read(tmp_path / name)
        assert words == WORDS
        np.testing.assert_array_equal(table, TABLE)


def test_word_vectors_are_read_in_several_blocks(tmp_path):
    lines = [f"w{number} {number} 0.5" for number in range(2 * BLOCK)]
    blocks = list(read_vectors(written(tmp_path / "v.txt", lines)))
    assert len(blocks) == 3
    assert np.concatenate([table for _, table in blocks])[:, 0].tolist() == list(range(2 * BLOCK))


@pytest.mark.parametrize(
    ("number", "line", "words"),
    [
        (2, "cut 0.1", "line 2: 'cut 0.1', expected a word and 3 finite numbers"),
        (3, "the 0.1 x 0.3", "line 3: 'the 0.1 x 0.3', expected a word and 3 finite numbers"),
        (4, "the 0.1 1_0 0.3", "line 4: 'the 0.1 1_0 0.3', expected a word and 3 finite numbers"),
        (1, "the 0.1 nan 0.3", "line 1: 'the 0.1 nan 0.3', expected a word and 3 finite numbers"),
        (200, "the 0.1 0.2 0.", None),
        (200, "the 0.1 0.2", "line 200: 'the 0.1 0.2', expected a word and 3 finite numbers"),
        (150, "", "line 150: '', expected a word and 3 finite numbers"),
    ],
)
def test_malformed_vector_line_error_names_the_line(tmp_path, number, line, words):
    lines = [f"w{row} 1 2 3" for row in range(1, 300)]
    lines[number - 1] = line
    path = written(tmp_path / "v.txt", lines)
    if words is None:  # truncated inside a number, which cannot be detected
        assert len(read(path)[0]) == 299
        return
    with pytest.raises(SourceError, match=words):
        read(path)


def test_non_utf8_word_error_names_the_line(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"the 1 2\nca\xe9 1 2\n")
    with pytest.raises(SourceError, match=r"line 2: the word b'ca\\xe9' is not UTF-8"):
        read(tmp_path / "v.txt")


def test_incomplete_word_vectors_file_raises_source_error(tmp_path):
    with pytest.raises(SourceError, match="6 words, the first line says 7"):
        read(written(tmp_path / "cut.vec", ["7 3", *LINES]))
    with pytest.raises(SourceError, match="contains no words"):
        read(written(tmp_path / "empty.txt", []))
    with pytest.raises(SourceError, match="the zip archive cannot be read"):
        read(written(tmp_path / "cut.zip", LINES))
    with zipfile.ZipFile(tmp_path / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", "the 1")
        archive.writestr("glove.6B.300d.txt", "the 1")
    with pytest.raises(SourceError, match=r"contains 2 files, expected one\. Unpack it"):
        read(tmp_path / "glove.6B.zip")


def test_vectors_file_is_distinguished_from_a_hub_id(tmp_path):
    one, two = written(tmp_path / "a.txt", LINES), written(tmp_path / "b.txt", LINES)
    assert is_vectors_file(str(one))
    assert not is_vectors_file("owner/name.txt")  # no such file: a Hub id
    assert is_vectors_file("glove.840B.300d.txt")  # a missing file
    assert not is_vectors_file(str(tmp_path))
    assert find_vectors_file(str(one)).digest == find_vectors_file(str(two)).digest
    with pytest.raises(SourceError, match="no such file, expected word vectors"):
        find_vectors_file(str(tmp_path / "none.txt"))
