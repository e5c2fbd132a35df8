import pytest

from assets.training.translation import round_trip_quality, translation_quality
from assets.verify import Check


@pytest.mark.parametrize(
    ("figure", "recorded", "found", "holds"),
    [
        ("en-de tatoeba bleu", 33.0, 33.5, True),
        ("en-de tatoeba bleu", 33.0, 35.0, False),
        ("en-de tatoeba bleu", None, 33.0, False),
        ("masked-LM loss", 3.97, 3.99, False),
        ("en-de-en snli copies", 0.10, 0.11, True),
    ],
)
def test_check_passes_within_the_tolerance_of_its_metric(figure, recorded, found, holds):
    assert Check(asset="x", figure=figure, recorded=recorded, found=found).holds is holds


def test_identical_texts_have_perfect_bleu_and_chrf():
    texts = ["The dog runs through the snow.", "She bought bread and milk."]
    assert translation_quality(texts, texts) == {"bleu": 100.0, "chrf": 100.0}
    assert translation_quality(["Something else entirely here."] * 2, texts)["bleu"] < 10


def test_round_trip_quality_counts_copies_and_loops():
    originals = ["A man plays a guitar.", "Two dogs run.", "A child sleeps."]
    returned = ["a man plays a guitar", "Two dogs are running.", "child child child child child child"]
    quality = round_trip_quality(originals, returned)
    assert quality["copies"] == pytest.approx(1 / 3, abs=1e-4)
    assert quality["loops"] == 1
    assert 0 < quality["chrf"] < 100
