"""The training text of the multilingual masked LM and of the translators: languages, no held-out sentence, nearness."""

import numpy as np
import polars as pl
import pytest

from assets.training.corpora import (
    EVALUATION,
    LANGUAGES,
    MULTILINGUAL,
    closeness,
    multilingual_sentences,
    nearest,
    round_trip_sentences,
)
from assets.training.vocabulary import train_wordpiece

WORDS = {"de": "Haus", "fr": "maison", "es": "casa", "ar": "بيت", "tr": "ev"}


@pytest.fixture
def frames() -> dict[str, pl.DataFrame]:
    english = [f"This is the house number {n}." for n in range(8)]
    found = {
        f"tatoeba_en_{code}/all": pl.DataFrame({"en": english, code: [f"{word} {n} {word}" for n in range(8)]})
        for code, word in WORDS.items()
    }
    found["ni_text/all"] = pl.DataFrame({"text": ["Fact: Water is wet at any time."]})
    found |= {name: pl.DataFrame({"sentence1": english[:1], "sentence2": english[1:2]}) for name in EVALUATION}
    found |= {
        name: pl.DataFrame({"premise": ["A man sleeps."], "hypothesis": ["A man rests."]})
        for name in MULTILINGUAL
        if name not in found
    }
    return found


def test_multilingual_sentences_cover_languages_without_held_out_text(frames):
    texts = multilingual_sentences(frames, ["HAUS 3 Haus!"], seed=1)
    assert {word for word in WORDS.values() if any(word in text for text in texts)} == set(WORDS.values())
    assert set(LANGUAGES) == set(WORDS)
    assert "Haus 3 Haus" not in texts
    assert not {"This is the house number 0.", "This is the house number 1."} & set(texts)
    assert {"Water is wet at any time.", "A man sleeps.", "This is the house number 2."} <= set(texts)
    assert len(texts) == len(set(texts)) == 5 * 8 - 1 + 6 + 1 + 2


def test_round_trip_sentences_exclude_held_out_text(frames):
    frames["snli_train_part/pairs"] = pl.DataFrame(
        {"premise": ["A man sleeps at home."], "hypothesis": ["Nobody is asleep here."]}
    )
    texts = round_trip_sentences(frames, ["nobody is asleep, here", "This is the house number 5"], 9, 9)
    kept = {f"This is the house number {n}." for n in (2, 3, 4, 6, 7)}
    assert sorted(texts) == sorted({"A man sleeps at home.", *kept})
    assert len(round_trip_sentences(frames, [], 1, 2)) == 3


def test_sentence_order_depends_on_the_seed(frames):
    assert multilingual_sentences(frames, [], seed=1) == multilingual_sentences(frames, [], seed=1)
    assert multilingual_sentences(frames, [], seed=1) != multilingual_sentences(frames, [], seed=2)


def test_wordpiece_preserves_accents_only_on_request():
    texts = ["Es ist schon schön hier.", "Das Haus ist schön.", "Er ist schon da."] * 3
    kept, stripped = (train_wordpiece(texts, 80, accents=accents) for accents in (True, False))
    assert kept("schön")["input_ids"] != kept("schon")["input_ids"]
    assert stripped("schön")["input_ids"] == stripped("schon")["input_ids"]
    assert kept("Schön")["input_ids"] == kept("schön")["input_ids"]


CAPTIONS = ["A man plays a guitar.", "Two dogs run on the beach.", "A woman plays with a dog."]
TALK = ["I think that you should know.", "You know what I think.", "Tom should think that."]


def test_closeness_ranks_domain_sentences_highest():
    texts = ["A dog plays on the beach.", "I know what you think.", "Zebra."]
    scores = closeness(texts, CAPTIONS, TALK)
    assert scores[0] > scores[2] > scores[1]


def test_nearest_selects_the_share_with_top_scores():
    assert nearest(np.array([0.1, 0.9, 0.5, 0.7, 0.2]), 0.4).tolist() == [False, True, False, True, False]
