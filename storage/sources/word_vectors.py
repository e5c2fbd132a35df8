"""Find and read files of word vectors, and find the WordNet database.

Word vectors are read line by line: the text format of GloVe, word2vec and fastText, plain, .gz or .zip.

    the 0.0466 0.2132 … -0.0074           a word, which may contain spaces (glove.840B: `. . .`), then its numbers

word2vec and fastText begin with a header line: the number of words, and of dimensions. GloVe has no header, so the
number of dimensions is the most frequent one among the first lines.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.digests import file_sha256, source_sha256
from bsl.storage.filesystem.spelling import perhaps_path
from bsl.storage.filesystem.urls import at_home
from bsl.storage.readers.blocks import open_bytes
from bsl.storage.record import NotInKey, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


SUFFIXES: Final = (".txt", ".vec", ".gz", ".zip")
SEEN: Final = 100  # first lines, which determine the number of dimensions
BLOCK: Final = 2_000  # lines parsed at once: 2.4 MB of 300 numbers each
_HEADER: Final = re.compile(rb"(\d+) (\d+)")
_CHECK: Final = "Check that the copy is complete."


class VectorsFile(Record):
    """A file of word vectors that was found."""

    path: Annotated[Path, NotInKey]
    digest: str


def is_vectors_file(name: str) -> bool:
    """Return whether a name is a file of word vectors, not a model's folder or Hub id (`owner/name`)."""
    return name.endswith(SUFFIXES) and (
        name.count("/") != 1 or name.startswith((".", "/", "~")) or Path(name).is_file()
    )


def find_vectors_file(name: str) -> VectorsFile:
    """Find a local file of word vectors and fingerprint it.

    Raises:
        SourceError: there is no such file.
    """
    path = check_vectors_name(name).resolve()
    return VectorsFile(path=path, digest=source_sha256(str(path)))


def check_vectors_name(name: str) -> Path:
    """Return the path of a local file of word vectors.

    Raises:
        SourceError: there is no such file; the message suggests the nearest.
    """
    path = Path(at_home(name))
    if path.is_dir():
        raise SourceError(f"{name}: is a folder, expected a file of word vectors. Name the file, or rename the folder.")
    if not path.is_file():
        raise SourceError(
            f"{name}: no such file{perhaps_path(name)}, expected word vectors, such as glove.840B.300d.txt. "
            "Correct the path."
        )
    return path


def read_vectors(path: Path) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Yield words and their vectors (n, D), block by block, in file order; a word may appear twice.

    Raises:
        SourceError: a line is damaged, the word count differs from the header's, or the file has no words.
    """
    with open_bytes(str(path)) as (file, _):
        first = list(islice(file, SEEN + 1))
        header = _HEADER.fullmatch(first[0].strip()) if first else None
        lines = first[1:] if header else first
        counts = Counter(len(_bare(line).split(b" ")) - 1 for line in lines)
        width = int(header[2]) if header else max(counts, key=counts.__getitem__, default=0)
        if not lines or width == 0:
            raise SourceError(f"{path} contains no words, expected a word and its numbers in each line. {_CHECK}")
        start, words = 2 if header else 1, 0
        while lines:
            names, table = _block(path, lines, start, width)
            yield names, table
            words, start = words + len(names), start + len(lines)
            lines = list(islice(file, BLOCK))
    if header and int(header[1]) != words:
        raise SourceError(f"{path}: found {words} words, the first line says {int(header[1])}. {_CHECK}")


def _bare(line: bytes) -> bytes:
    return line.rstrip(b"\r\n ")


def _block(path: Path, lines: list[bytes], start: int, width: int) -> tuple[list[str], NDArray[np.float32]]:
    names, vectors = [], []
    for number, line in enumerate(map(_bare, lines), start):
        name, *numbers = line.rsplit(b" ", width)
        try:
            vector = np.array(numbers, dtype=np.float32)
        except ValueError:
            vector = np.array([np.nan])
        # Python reads 1_0 as 10.
        if not name or len(vector) != width or not np.isfinite(vector).all() or b"_" in line[len(name) :]:
            raise SourceError(
                f"{path}, line {number}: {_shown(line)}, expected a word and {width} finite numbers. {_CHECK}"
            )
        try:
            names.append(name.decode())
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{path}, line {number}: the word {name!r} is not UTF-8, expected text. Save the file as UTF-8."
            ) from error
        vectors.append(vector)
    return names, np.stack(vectors)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:40]} … {text[-15:]}")


_SYSTEM: Final = (Path("/usr/share/wordnet"), Path("/usr/local/share/wordnet"))  # install paths of system packages
_MARK: Final = "data.noun"  # a file of every database


class ResolvedWordNet(Record):
    """A WordNet database that was found."""

    folder: Annotated[Path, NotInKey]
    """Local folder with its index, data and exception files."""
    identity: str
    """`sha256:…` over those files; part of artifact keys."""


def find_wordnet(files: tuple[str, ...]) -> ResolvedWordNet:
    """Find the WordNet database of nltk or of the system's package.

    Args:
        files: names of the required files, whose content is the identity.

    Raises:
        SourceError: the database or a file was not found; the message has the command that installs it.
    """
    import nltk.data

    folders = (*(Path(path) / "corpora" / "wordnet" for path in nltk.data.path), *_SYSTEM)
    folder = next((folder for folder in folders if (folder / _MARK).is_file()), None)
    remedy = "Install it with `apt-get install wordnet-base` or `python -m nltk.downloader wordnet` (then unzip it)."
    if folder is None:
        raise SourceError(f"no WordNet database ({_MARK}) in {', '.join(map(str, folders))}. {remedy}")
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise SourceError(f"{folder} contains a WordNet database without {', '.join(missing)}. {remedy}")
    digests = "".join(f"{name}\0{file_sha256(folder / name)}\0" for name in files)
    return ResolvedWordNet(folder=folder, identity=f"sha256:{hashlib.sha256(digests.encode()).hexdigest()}")
