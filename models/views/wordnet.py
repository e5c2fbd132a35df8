"""WordNet by nltk, from a folder of its database files wherever that lies."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from nltk.corpus.reader import WordNetCorpusReader

PARTS_OF_SPEECH: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""WordNet's letters for what words can be, and the suffixes of its files."""

FILES: Final = tuple(f"{kind}.{part}" for kind in ("index", "data") for part in PARTS_OF_SPEECH.values()) + tuple(
    f"{part}.exc" for part in PARTS_OF_SPEECH.values()
)
"""The files that synonyms are read from."""

# Groups that lexicographers worked in, lexnames(5WN). nltk wants the table; Debian's package leaves its file out.
_LEXNAMES: Final = (
    ("adj", 3, "all pert"),
    ("adv", 4, "all"),
    (
        "noun",
        1,
        "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
        "object person phenomenon plant possession process quantity relation shape state substance time",
    ),
    (
        "verb",
        2,
        "body change cognition communication competition consumption contact creation emotion motion perception "
        "possession social stative weather",
    ),
    ("adj", 3, "ppl"),
)


def open_wordnet(folder: Path) -> WordNetCorpusReader:
    """A reader of the database in `folder`, which is read into memory (28 MB; seconds).

    Args:
        folder: Holds at least `FILES`.
    """
    import nltk.data
    from nltk.corpus.reader import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc] # nltk has no types
        def open(self, file: str) -> Any:  # noqa: ANN401
            """The file in memory, a character a byte, so that the offsets in the database hold; nltk closes none."""
            return io.StringIO(_lexnames() if file == "lexnames" else (folder / file).read_text("latin-1"))

        def map_wn(self, version: str = "wordnet") -> None:
            """No map to the numbering of other languages' WordNets, which would need nltk's own copy of this one."""

    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))  # nltk refuses to read what does not lie under one of these
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The multilingual functions are not available")
        return Reader(str(folder), None)


def _lexnames() -> str:
    names = [(f"{part}.{group}", number) for part, number, groups in _LEXNAMES for group in groups.split()]
    return "".join(f"{index:02}\t{name}\t{number}\n" for index, (name, number) in enumerate(names))
