"""Files of word vectors, intact and damaged."""

import gzip

import numpy as np
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.word_vectors import BLOCK, find_vectors_file, is_vectors_file, read_vectors

# Like glove.840B: a word with spaces, a word like a number, a no-break space in a word, equal words.
LINES = ["the 0.1 0.2 -0.3", ". . . 1 2 3", "0.5 4 5 6", "at a@b.c 7 8 9", "x\u00a0y 1e-3 0 0", "the 9 9 9"]
WORDS = ["the", ". . .", "0.5", "at a@b.c", "x\u00a0y", "the"]
TABLE = np.array([[0.1, 0.2, -0.3], [1, 2, 3], [4, 5, 6], [7, 8, 9], [1e-3, 0, 0], [9, 9, 9]], dtype=np.float32)


def written(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(path):
    blocks = list(read_vectors(path))
    return [word for words, _ in blocks for word in words], np.concatenate([table for _, table in blocks])


TEXT = "".join(f"{line}\n" for line in LINES).encode()
GOOD = {
    "glove.txt": TEXT,
    "glove.txt.gz": gzip.compress(TEXT),
    "wiki.vec": b"6 3 \n" + TEXT.replace(b"\n", b" \n"),  # word2vec's header line
    "windows.vec": b"6 3\r\n" + TEXT.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("name", GOOD)
def test_words_with_spaces_or_digits_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(GOOD[name])
    words, table = read(tmp_path / name)
    assert words == WORDS
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, TABLE)


def test_word_vectors_are_read_in_several_blocks(tmp_path):
    lines = [f"w{number} {number} 0.5" for number in range(2 * BLOCK)]
    blocks = list(read_vectors(written(tmp_path / "v.txt", lines)))
    assert len(blocks) == 3
    assert np.concatenate([table for _, table in blocks])[:, 0].tolist() == list(range(2 * BLOCK))


BAD = {
    "v.txt": (b"the 1 2\nca\xe9 1 2\n", r"line 2: the word b'ca\\xe9' is not UTF-8"),
    "cut.vec": (b"7 3\n" + TEXT, "6 words, the first line says 7"),
    "empty.txt": (b"", "contains no words"),
    **{
        f"line {number}.txt": (
            "".join(f"{line if row == number else 'word 1 2 3'}\n" for row in range(1, 300)).encode(),
            f"line {number}: '{line}', expected a word and 3 finite numbers",
        )
        for number, line in ((2, "cut 0.1"), (3, "the 0.1 x 0.3"), (4, "the 0.1 1_0 0.3"), (1, "the 0.1 nan 0.3"))
    },
    "line 150.txt": (b"w 1 2 3\n" * 149 + b"\nw 1 2 3\n", "line 150: '', expected a word and 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_word_vectors_file_raises_source_error(tmp_path, name):
    content, why = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=why):
        read(tmp_path / name)


def test_vectors_file_is_distinguished_from_a_hub_id(tmp_path):
    one, two = written(tmp_path / "a.txt", LINES), written(tmp_path / "b.txt", LINES)
    assert is_vectors_file(str(one))
    assert not is_vectors_file("owner/name.txt")  # no such file: a Hub id
    assert is_vectors_file("glove.840B.300d.txt")  # a missing file
    assert not is_vectors_file(str(tmp_path))
    assert find_vectors_file(str(one)).digest == find_vectors_file(str(two)).digest
    with pytest.raises(SourceError, match="no such file, expected word vectors"):
        find_vectors_file(str(tmp_path / "none.txt"))
