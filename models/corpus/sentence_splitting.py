"""Running text to sentences, by rules that need no download.

A sentence ends at a mark that ends one, before white space and something that can begin the next: a capital, a digit or
a letter of a script without cases. Marks of Chinese and Japanese end one wherever they stand. A full stop behind a
known abbreviation or a single capital (an initial) ends nothing. Marks are those of Latin, Greek, Cyrillic, Arabic,
Urdu, Indic, Armenian, Ethiopic, Khmer and Burmese script. A wrong cut is the same one for every encoder.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS: Final = ".!?…؟۔।॥։።។။"
# A run of marks is taken whole or not at all, or a line of dots would be tried from each of them.
_END: Final = re.compile(rf"(?:(?<![{_MARKS}])[{_MARKS}]++[\"'”’»)\]]*(?=\s+[\"'“‘«(\[¿¡]*\w)|[。！？]+[」』”]*)")
_LAST_WORD: Final = re.compile(r"\S*\Z")
_LONGEST: Final = 16  # letters behind which no abbreviation ends
_NEXT: Final = re.compile(r"\s*[\"'“‘«(\[¿¡]*(\w?)")
_OPENING: Final = "\"'“‘«([¿¡"
_TITLES: Final = "mr mrs ms dr prof st rev hon capt col gen lt sgt jr sr m mme mlle sra"
_OTHERS: Final = "no vol fig figs eq pp ed eds al cf ca vs approx dept est inc ltd co corp e.g i.e u.s u.k a.m p.m"
_GERMAN: Final = "bzw z.b d.h nr usw evtl"
_ABBREVIATIONS: Final = frozenset(f"{_TITLES} {_OTHERS} {_GERMAN}".split())


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order, trimmed; white space within stays as it is."""
    sentences, start = [], 0
    for mark in _END.finditer(text):
        if _goes_on(text, start, mark):
            continue
        sentences.append(text[start : mark.end()].strip())
        start = mark.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _goes_on(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether the sentence goes on behind a mark."""
    following = _NEXT.match(text, mark.end())
    if following is not None and following[1].islower():
        return True
    if not mark[0].startswith(".") or mark[0].startswith(".."):
        return False
    last = _LAST_WORD.search(text[max(start, mark.start() - _LONGEST) : mark.start()])
    word = last[0].lstrip(_OPENING) if last else ""
    return word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper())
