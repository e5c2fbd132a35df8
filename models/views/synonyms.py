"""Replace words by synonyms from WordNet, with the replaced word's case and, optionally, its inflection.

Design choices
- A word is a run of letters and digits, joined by single points, hyphens and apostrophes: "well-known", "b.c." and
  "7th" are one word each. The clitic of a tokenised "you 're" is not a word. Shares of words count these words.
- A word can be replaced if it has at least two characters, all of them letters, hyphens or apostrophes: WordNet has the
  "b" of "b.c." as an element.
- There is no part-of-speech tagger, so a word gets the synonyms of every part of speech that its form can be. The
  paper's own examples show such noise ("love" became "have sex").
- The text between words is unchanged, because it is not tokenised and joined again.
- Function words are never replaced: WordNet has "a" as a vitamin and "in" as a metal.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from bsl.storage.process_setting import ProcessSetting

if TYPE_CHECKING:
    from pathlib import Path

    from nltk.corpus.reader import WordNetCorpusReader

    from bsl.models.views.config import SynonymView


PARTS_OF_SPEECH: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""WordNet's letter for each part of speech → suffix of its files."""

FILES: Final = tuple(f"{kind}.{part}" for kind in ("index", "data") for part in PARTS_OF_SPEECH.values()) + tuple(
    f"{part}.exc" for part in PARTS_OF_SPEECH.values()
)
"""The files that synonyms are read from."""

# Lexicographer files, lexnames(5WN). nltk needs this table; Debian's package does not have the file.
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
    """Open the WordNet database in `folder` (at least `FILES`), and read it into memory (28 MB; seconds)."""
    from nltk.corpus.reader import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc] # nltk has no types
        def open(self, file: str) -> Any:  # noqa: ANN401
            """Return a file in memory, one character per byte as the database's offsets need; nltk closes no file."""
            return io.StringIO(_lexnames() if file == "lexnames" else (folder / file).read_text("latin-1"))

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the mapping to other languages' WordNets, which would need nltk's own copy of WordNet."""

    # nltk reads files under these folders only.
    with _FOLDERS.set_to([*_nltk_folders(), str(folder)]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The multilingual functions are not available")
        return Reader(str(folder), None)


def _nltk_folders() -> list[str]:
    import nltk.data

    return list(nltk.data.path)


def _set_nltk_folders(folders: list[str]) -> None:
    import nltk.data

    nltk.data.path[:] = folders


_FOLDERS: Final = ProcessSetting(_nltk_folders, _set_nltk_folders)


def _lexnames() -> str:
    names = [(f"{part}.{group}", number) for part, number, groups in _LEXNAMES for group in groups.split()]
    return "".join(f"{index:02}\t{name}\t{number}\n" for index, (name, number) in enumerate(names))


Synonyms = Callable[[str], tuple[str, ...]]
"""Function from a word to the forms that may replace it, both in lower case."""

_FUNCTION_WORDS: Final = """
    a an the this that these those some any each every no none all both either neither such what which who whom whose
    i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
    ourselves they them their theirs themselves one ones someone anyone everyone nobody something anything nothing
    be am is are was were been being have has had having do does did doing done will would shall should can could may
    might must ought
    and or but nor so yet if than then because as while when where why how whether though although unless until since
    about above across after against along among around at before behind below beneath beside between beyond by down
    during except for from in inside into like near of off on onto out outside over past per through to toward towards
    under up upon via with within without
    not there here too very just only also again
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
_WORD: Final = re.compile(r"((?<![\w'’])[^\W_]+(?:[.'’-][^\W_]+)*)")  # not the "re" of a tokenised "you 're"
_REPLACEABLE: Final = re.compile(r"(?=..)[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TAGS: Final = {
    "n": ("NN", "NNS"),
    "v": ("VB", "VBZ", "VBG", "VBD", "VBN"),
    "a": ("JJ",),  # no comparatives: it is unclear which adjectives have a form in "-er"
    "r": ("RB",),
}
"""Forms that a synonym can take, as Penn Treebank tags, the lemma's first."""


@dataclass(frozen=True)
class _Sentence:
    """A sentence split into words (odd indices of `parts`) and the text between them (even indices)."""

    parts: list[str]
    synonyms: Mapping[int, tuple[str, ...]]  # index of each replaceable word → forms that may replace it
    wanted: int  # words to replace by the share, even if fewer are replaceable

    @property
    def words(self) -> int:
        return len(self.parts) // 2


def replace_synonyms(texts: Sequence[str], seeds: Sequence[int], synonyms: Synonyms, view: SynonymView) -> list[str]:
    """Replace a share of each text's words; a text without replaceable words is unchanged (BSL, section 4.4).

    Args:
        texts: Sentences.
        seeds: Seed of each sentence, which alone decides its replacements.
        synonyms: Forms that may replace a word.
        view: Settings with the share of words.
    """
    return [
        _replaced(_split(text, synonyms, view.share), Random(seed)) for text, seed in zip(texts, seeds, strict=True)
    ]


def count_replacements(texts: Iterable[str], synonyms: Synonyms, view: SynonymView) -> dict[str, int]:
    """Count the words that `replace_synonyms` replaces with any seeds.

    Returns:
        `words`; `replaced`, by a synonym; `shortfall`, those that the share requires, but that have no synonym.
    """
    words = replaced = wanted = 0
    for text in texts:
        sentence = _split(text, synonyms, view.share)
        words += sentence.words
        replaced += min(sentence.wanted, len(sentence.synonyms))
        wanted += sentence.wanted
    return {"words": words, "replaced": replaced, "shortfall": wanted - replaced}


def _split(text: str, synonyms: Synonyms, share: float) -> _Sentence:
    parts = _WORD.split(text)
    shouts = text.isupper()
    replaceable = {
        index: forms
        for index in range(1, len(parts), 2)
        if _REPLACEABLE.fullmatch(parts[index])
        and (index == 1 or shouts or not parts[index][0].isupper())  # a capital inside a sentence begins a name
        and (forms := synonyms(parts[index].lower()))
    }
    words = len(parts) // 2
    return _Sentence(parts, replaceable, max(round(share * words), min(words, 1)))


def _replaced(sentence: _Sentence, random: Random) -> str:
    parts = list(sentence.parts)
    # Python guarantees the same numbers in every version for Random.random() only.
    drawn = sorted((random.random(), index) for index in sentence.synonyms)
    for _, index in drawn[: sentence.wanted]:
        forms = sentence.synonyms[index]
        parts[index] = _cased_like(parts[index], forms[int(random.random() * len(forms))])
    return "".join(parts)


def _cased_like(word: str, form: str) -> str:
    if word.isupper() and len(word) > 1:
        return form.upper()
    return form[0].upper() + form[1:] if word[0].isupper() else form


def wordnet_synonyms(folder: Path, senses: int | None = None, *, inflect: bool = True) -> Synonyms:
    """Return a synonym function on a WordNet database, which looks up each word once.

    Args:
        folder: The database.
        senses: Number of a word's most frequent senses to use, for each part of speech; None uses all.
        inflect: Whether a synonym takes the inflection of the word; otherwise it is a lemma.
    """
    reader = open_wordnet(folder)
    known: dict[str, tuple[str, ...]] = dict.fromkeys(FUNCTION_WORDS, ())

    def look_up(word: str) -> tuple[str, ...]:
        forms = known.get(word)
        if forms is None:
            all_forms = {form for part in _TAGS for form in _forms(reader, word, part, senses, inflect=inflect)}
            forms = known[word] = tuple(sorted(all_forms - {word}))
        return forms

    return look_up


def _forms(reader: WordNetCorpusReader, word: str, part: str, senses: int | None, *, inflect: bool) -> Iterator[str]:
    """Yield the lemmas that share a sense with the word as this part of speech, inflected like the word if asked."""
    lemma = reader.morphy(word, part)
    if lemma is None:
        return
    tag = _tag(word, lemma, part) if inflect else _TAGS[part][0]
    if tag is None:
        return
    for synset in reader.synsets(lemma, part)[:senses]:
        for name in synset.lemma_names():
            # Names (with capitals) and digits ("2") are not synonyms of words.
            if name != lemma and name.islower():
                yield from _inflected(name.replace("_", " "), part, tag)


def _tag(word: str, lemma: str, part: str) -> str | None:
    """Return the word's form of the lemma as a Penn Treebank tag; None if it is unknown."""
    base, *others = _TAGS[part]
    if word == lemma:
        return base
    return next((tag for tag in others if word in _known_forms(lemma, tag)), None)


def _inflected(lemma: str, part: str, tag: str) -> Iterator[str]:
    """Yield the lemma in a form; of a lemma of several words, inflect a verb's first word, otherwise the last."""
    if tag == _TAGS[part][0]:
        yield lemma
        return
    before, head, after = ("", *lemma.partition(" ")[::2]) if part == "v" else (*lemma.rpartition(" ")[::2], "")
    for form in _known_forms(head, tag)[:1]:
        yield f"{before} {form} {after}".strip()


def _known_forms(lemma: str, tag: str) -> tuple[str, ...]:
    """Return forms from the NIH's lexicon; none for other words, whose forms a neural network would guess."""
    from lemminflect import getInflection

    forms: tuple[str, ...] = getInflection(lemma, tag, inflect_oov=False)
    return forms
