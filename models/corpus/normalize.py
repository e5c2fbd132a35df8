"""Normalise sentences, compute their ids, and split text into sentences.

Normalisation
- Visible text does not change: no lower-casing, no quote folding. Tokenizers do that if needed.
- Control characters are removed before NFC, since removing one may join a letter and its accent.
- Characters without a glyph are removed, so that they neither keep duplicates apart nor make a text: zero-width spaces,
  soft hyphens, marks of direction. Joiners and variation selectors, which change the letters of Arabic and Indic script
  and emoji, are removed only where they change nothing: joiners in texts of other scripts, both at the start of a text
  and after white space. Blank letters of Hangul and Braille are white space.
- Almost all text is normalised already, so only rows that match one regular expression are rewritten (7 times faster
  on clean English). Polars evaluates a `then` branch only on the selected rows.

Sentence splitting, by rules that need no download
- A sentence ends at an end mark before white space and a capital, a digit or a letter of a script without case.
- Quotes before a word open a sentence, quotes after an end mark close it, whatever their form: „…“, »…«, « … », ”…”.
- Chinese and Japanese end marks need no white space. Closing brackets and quotes after them belong to the sentence; a
  straight quote closes if the sentence has an odd number of them so far.
- A full stop after a known abbreviation or a single capital (an initial) does not end a sentence. Nor does one inside
  "z. B." or after it, or after a German ordinal: "am 3. Mai", "im 19. Jahrhundert", "der 2. Versuch". Abbreviations
  that are words of another language count if they begin with a capital ("Sen. Kerry", but "pas de sens. Il"), or before
  a number ("Oct. 7").
- End marks are those of Latin, Greek, Cyrillic, Arabic, Urdu, Indic, Armenian, Ethiopic, Khmer and Burmese script.
- A wrong split affects all encoders in the same way.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl
from polars_hash import NonCryptographicHashingNameSpace
from pydantic import Field, model_validator

from bsl.storage.record import Record

# U+00A1 to U+02FF has no white space, no control characters except the soft hyphen, and nothing that NFC would change
# or compose.
_NEEDS_WORK: Final = r"[^ -~\u00a1-\u00ac\u00ae-\u02ff]|  |^ | $"
# White space among the controls (tab, line feed, … U+0085) is collapsed, not removed. U+FEFF is a byte order mark.
_INVISIBLE: Final = (
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb]"
)
_BLANKS: Final = r"[\u115f\u1160\u2800\u3164\uffa0]"
_JOINERS: Final = r"[\u034f\u200c\u200d]+"
# Characters whose form no joiner changes; the others are letters of Arabic or Indic script, emoji and so on.
_NOT_JOINED: Final = (
    r"[\s\p{P}\p{Nd}\p{Sm}\p{Sc}\p{Sk}\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}"
    r"\p{Inherited}--\x{1f3fb}-\x{1f3ff}]"
)
_SELECTORS: Final = r"(^|\s)[\u034f\u200c\u200d\ufe00-\ufe0f\x{e0000}-\x{e007f}\x{e0100}-\x{e01ef}]+"
_SPACES: Final = r"\s*[^\S ]\s*| {2,}"


class NormalizeConfig(Record):
    """Bounds on the length of a sentence, after normalisation."""

    min_chars: int = Field(1, ge=1)
    """Shortest sentence in characters (Unicode code points)."""
    max_chars: int = Field(2000, ge=1)
    """Longest sentence in characters. BSL's released code reads 64 tokens; longer lines are rarely sentences."""

    @model_validator(mode="after")
    def _in_order(self) -> NormalizeConfig:
        if self.min_chars > self.max_chars:
            raise ValueError(f"min_chars is {self.min_chars}, expected at most max_chars ({self.max_chars})")
        return self


def normalize(text: pl.Expr) -> pl.Expr:
    """Normalise a string column: Unicode NFC, no invisible characters, single spaces, no spaces at the ends.

    Idempotent. Null stays null.
    """
    shown = text.str.replace_all(_INVISIBLE, "").str.replace_all(_BLANKS, " ")
    is_plain = shown.str.contains(rf"^{_NOT_JOINED}*$")
    unjoined = pl.when(is_plain).then(shown.str.replace_all(_JOINERS, "")).otherwise(shown)
    rewritten = (
        pl.when(shown.str.contains(_JOINERS))
        .then(unjoined)
        .otherwise(shown)
        .str.replace_all(_SELECTORS, "$1")
        .str.replace_all(_SPACES, " ")
        .str.strip_chars(" ")
        .str.normalize("NFC")
    )
    return pl.when(text.str.contains(_NEEDS_WORK)).then(rewritten).otherwise(text)


def has_text(text: pl.Expr) -> pl.Expr:
    """Return whether something of each string is left after normalisation; a null has no text."""
    return (normalize(text) != "").fill_null(value=False)


def sentence_ids(text: pl.Expr) -> pl.Expr:
    """Return the id of each normalised sentence: XXH64 with seed 0 of its UTF-8 bytes, as UInt64.

    Stored artifacts on all machines use the id, so this function must never change. The text must be normalised.
    """
    return NonCryptographicHashingNameSpace(text).xxhash64()


def copy_ids(text: pl.Expr) -> pl.Expr:
    """Return the id that each text shares with its copies, which differ only as `letters` allows, as UInt64."""
    return sentence_ids(letters(text))


def letters(text: pl.Expr) -> pl.Expr:
    """Return texts without differences of case, blanks, punctuation and quotes, such as those of a tokenisation.

    A text of nothing else, such as `???`, does not change.
    """
    normal = normalize(text)
    left = normal.str.to_lowercase().str.replace_all(r"[^\p{L}\p{M}\p{N}\p{Sm}\p{Sc}\p{So}]+", "")
    return pl.when(left == "").then(normal).otherwise(left)


_MARKS: Final = ".!?…؟۔।॥։።។။"
# A run of marks matches as a whole or not at all; otherwise matching a line of dots would take quadratic time.
_CLOSERS: Final = "[」』】》〉〕）〗］｝”’»)\\]]*"  # after a wide mark
_QUOTES: Final = "\"'“”„‘’‚«»‹›"  # the same quote opens in one language and closes in another
_FIRST: Final = rf"(?:[{_QUOTES}(\[¿¡]|«\s)*"  # before the first word of a sentence; French quotes have blanks inside
_LAST: Final = rf"(?:[{_QUOTES})\]]|\s»(?!\w))*"
_END: Final = re.compile(rf"(?:(?<![{_MARKS}])[{_MARKS}]++{_LAST}(?=\s+{_FIRST}\w)|[。！？｡]+{_CLOSERS})")
_WIDE_MARKS: Final = "。！？｡"
_STRAIGHT: Final = "\"'＂＇"
_CLOSING: Final = re.compile(_CLOSERS)
_LAST_WORDS: Final = re.compile(r"(?:(\S+)\s+)?(\S*)\Z")
_LONGEST: Final = 16  # maximal length of an abbreviation in letters
_NEXT: Final = re.compile(rf"\s*{_FIRST}(\w*)(\.?)")
_OPENING: Final = f"{_QUOTES}([¿¡"
_TITLES: Final = "mr mrs ms dr prof st rev hon capt col gen lt sgt jr sr m mme mlle sra"
_OTHERS: Final = "vol fig figs eq pp ed eds al cf ca vs approx dept est inc ltd co corp e.g i.e u.s u.k a.m p.m ee"
_GERMAN: Final = "bzw z.b d.h u.a nr usw evtl ggf sog vgl inkl hrsg"
_ABBREVIATIONS: Final = frozenset(f"{_TITLES} {_OTHERS} {_GERMAN}".split())
_BEFORE_NAMES: Final = "Mt Gov Sen Sens Rep Reps Maj Cmdr Brig Adm Sgt"  # "sens." is French
_CAPITALISED: Final = frozenset(_BEFORE_NAMES.split())
_SECTIONS: Final = "no nos p s art abs bd kap abb tab ziff chap sect núm pág págs"
_SHORT_MONTHS: Final = "jan feb mar apr aug sep sept oct nov dec"
_BEFORE_NUMBERS: Final = frozenset(f"{_SECTIONS} {_SHORT_MONTHS}".split())  # some are words too: "say no."
_ARTICLES: Final = "der die das des dem den am im vom zum zur beim"
_OWNERS: Final = ("mein", "dein", "sein", "ihr", "unser", "eur")
_OWNED: Final = [f"{owner}e{end}" for owner in _OWNERS for end in ("", "m", "n", "r", "s")]
_BEFORE_ORDINALS: Final = frozenset([*_ARTICLES.split(), *_OWNED])
_MONTHS: Final = "januar jänner februar märz april mai juni juli august september oktober november dezember"
_AFTER_ORDINALS: Final = frozenset(f"{_MONTHS} jahrhundert jahrhunderts jahrhunderte jh".split())
_DIGITS: Final = 3  # most digits of an ordinal; a year ends a sentence


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences, in order and stripped; inner white space does not change."""
    sentences, start = [], 0
    for mark in _END.finditer(text):
        if mark.start() < start or _goes_on(text, start, mark):
            continue
        end = _end_of(text, start, mark)
        sentences.append(text[start:end].strip())
        start = end
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _end_of(text: str, start: int, mark: re.Match[str]) -> int:
    """Return the end of a sentence: after the mark, and after straight quotes that close it."""
    end = mark.end()
    if mark[0][0] not in _WIDE_MARKS:
        return end
    while end < len(text) and text[end] in _STRAIGHT and text.count(text[end], start, end) % 2:
        end = _CLOSING.match(text, end + 1).end()  # type: ignore[union-attr]  # it matches the empty string
    return end


def _goes_on(text: str, start: int, mark: re.Match[str]) -> bool:
    """Return whether the sentence continues after a mark."""
    following = _NEXT.match(text, mark.end())
    after, point = (following[1], following[2]) if following else ("", "")
    if after[:1].islower():
        return True
    if not mark[0].startswith(".") or mark[0].startswith(".."):
        return False
    last = _LAST_WORDS.search(text[max(start, mark.start() - _LONGEST) : mark.start()])
    before, word = (part.lstrip(_OPENING) for part in (last[1] or "", last[2])) if last else ("", "")
    if word.isdecimal():
        is_beside = before.lower() in _BEFORE_ORDINALS or after.lower() in _AFTER_ORDINALS
        return len(word) <= _DIGITS and is_beside
    if len(word) == 1 and word.isalpha():  # an initial, or a part of "z. B.", "d. h." or "v. Chr."
        is_part = (len(after) == 1 and point != "") or re.fullmatch(r"\w\.", before) is not None or after == "Chr"
        if word.isupper() or is_part:
            return True
    lower = word.lower()
    return lower in _ABBREVIATIONS or word in _CAPITALISED or (lower in _BEFORE_NUMBERS and after[:1].isdecimal())
