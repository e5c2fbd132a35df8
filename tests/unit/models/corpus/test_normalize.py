"""Text normalisation gives each sentence one spelling and a stable id."""

import polars as pl
import pytest
import xxhash
from pydantic import ValidationError

from bsl.models.corpus.normalize import NormalizeConfig, normalize, sentence_ids
from tests.every import every

TEXT = pl.col("text")


def normalized(*texts):
    return pl.DataFrame({"text": list(texts)}, schema={"text": pl.String}).select(normalize(TEXT)).to_series().to_list()


@every(
    [
        ("A man is dancing.", "A man is dancing."),
        ("  A  man\tis\r\n dancing. ", "A man is dancing."),
        ("a\x00b", "ab"),
        ("a \x00 b", "a b"),
        ("\x07\x1b[0mbell", "[0mbell"),
        ("a\x85b\xa0c\u2009d\u3000e\u2028f", "a b c d e f"),
        ("\ufeffmark", "mark"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\x01\u0301", "\u00e9"),  # the control character is between a letter and its accent
        ("\u212b", "\u00c5"),
        ("Größe, naïve", "Größe, naïve"),
        ("“Don’t”", "“Don’t”"),
        ("ﬁ", "ﬁ"),  # NFC, not NFKC: compatibility characters stay
        (" \t\x00 ", ""),
        ("co\u00adoper\u200bation\u2060", "cooperation"),
        ("\u200ea\u202eb\u2066c\u061c", "abc"),
        *((blank, "") for blank in ["\u200b", "\xad", "\u200d \u200c", "⠀", "ㅤ", "️", "\u2060 \ufeff"]),
        ("zero\u200dwidth, \u200cjoiners", "zerowidth, joiners"),
        ("e\u200d\u0301\u200d", "\u00e9"),
        ("\u304b\u200d\u3099\u200d", "\u304c"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian: another letter without the joiner
        ("ക്\u200d", "ക്\u200d"),  # Malayalam
        ("❤\ufe0f 👩\u200d🦰 1\ufe0f\u20e3", "❤\ufe0f 👩\u200d🦰 1\ufe0f\u20e3"),
        ("", ""),
        (None, None),
    ]
)
def test_normalize_cleans_whitespace_control_characters_and_unicode(raw, expected):
    assert normalized(raw) == [expected]


def test_streamed_sentence_ids_equal_reference_xxh64():
    """XXH64, seed 0, of the UTF-8 bytes: a change orphans all existing corpora, views and translations."""
    texts = ["", "你好，世界", *(f"sentence number {number} ü" * (number % 7 + 1) for number in range(5000))]
    found = pl.LazyFrame({"text": texts}).select(sentence_ids(TEXT).alias("id")).collect(engine="streaming")
    assert found.schema == {"id": pl.UInt64}
    assert found["id"].to_list() == [xxhash.xxh64_intdigest(text.encode(), seed=0) for text in texts]


def test_invalid_normalize_settings_are_rejected():
    with pytest.raises(ValidationError, match="expected at most max_chars"):
        NormalizeConfig(min_chars=10, max_chars=9)
