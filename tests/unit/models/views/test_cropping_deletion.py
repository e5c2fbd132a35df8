"""Word-deletion views: the number and choice of deleted words, and at least one word left."""

from itertools import chain

import pytest
from nltk.tokenize import NLTKWordTokenizer

from bsl.models.views.config import DeletedView
from bsl.models.views.cropping import delete_words
from tests.tiny_marian import SENTENCES

WORDS = NLTKWordTokenizer().tokenize


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_deletion_removes_the_given_share_and_preserves_word_order(share):
    damaged = delete_words(SENTENCES, range(len(SENTENCES)), DeletedView(share=share))
    left = len(list(chain.from_iterable(map(WORDS, damaged)))) / len(list(chain.from_iterable(map(WORDS, SENTENCES))))
    assert left == pytest.approx(1 - share, abs=0.03)
    for before, after in zip(SENTENCES, damaged, strict=True):
        whole = iter(WORDS(before))
        assert all(word in whole for word in WORDS(after))


def test_deletion_leaves_a_word_and_skips_wordless_texts():
    view = DeletedView(share=0.999)
    texts = ["Hello there, world!", "Stop", "", "…"]
    damaged = delete_words(texts, range(4), view)
    assert len(WORDS(damaged[0])) == 1
    assert damaged[1:] == texts[1:]


def test_deletion_treats_contractions_and_punctuation_as_words():
    text = "She isn't here (yet), is she?"
    (kept,) = delete_words([text], [0], DeletedView(share=1e-9))
    assert kept == text
    parts = {delete_words([text], [seed], DeletedView(share=0.6))[0] for seed in range(200)}
    assert any("is" in WORDS(part) and "n't" not in WORDS(part) for part in parts)
    assert any(WORDS(part)[-1] != "?" for part in parts)


def test_deletion_depends_only_on_text_and_seed():
    view = DeletedView()
    one, two = (delete_words(SENTENCES, range(start, start + 400), view) for start in (0, 1000))
    assert one == delete_words(SENTENCES, range(400), view) != two
    assert delete_words(SENTENCES[5:6], [5], view) == one[5:6]
