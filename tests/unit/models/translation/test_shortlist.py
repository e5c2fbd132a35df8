"""Fewer output pieces: counted on a sample, cut out of the model, the same for every batch."""

from functools import cache
from pathlib import Path

import pytest

from models.translation.batched import BatchedTranslator
from models.translation.config import TranslatorConfig
from models.translation.errors import TranslatorLoadError
from models.translation.loading import load_translator
from models.translation.shortlist import most_frequent
from tests.tiny_marian import SENTENCES, build_tiny_marian

CONFIG = TranslatorConfig(model="tiny", source_lang="en", target_lang="de", precision="fp32")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@cache
def loaded(
    folder: Path, pieces: tuple[str, ...] | None = None, budget: int | None = None, beam: int = 1
) -> BatchedTranslator:
    converted = folder.parent / f"converted-{hash(pieces)}"
    config = CONFIG.model_copy(update={"beam": beam})
    return load_translator(folder, config, "cpu", converted, 1, budget, pieces=pieces)


def all_pieces(folder: Path) -> tuple[str, ...]:
    vocabulary = loaded(folder).vocabulary
    return tuple(vocabulary.names([number for number in range(vocabulary.pad) if number != vocabulary.eos]))


def written(translator: BatchedTranslator, texts: list[str]) -> list[set[str]]:
    """The very pieces, which may be others than those that spell the text."""
    vocabulary = translator.vocabulary
    sources = vocabulary.encode(texts)
    return [
        set(vocabulary.names(row))
        for source in sources
        for row in translator.engine.submit([source], [translator.cap(len(source))])().pieces
    ]


def test_pieces_are_counted_and_the_most_frequent_kept(tiny: Path) -> None:
    vocabulary = loaded(tiny).vocabulary
    texts = ["Anna sings.", "Anna sings. Anna sings.", "Ω"]
    [once], known = vocabulary.target_pieces(["Anna sings."]), set(all_pieces(tiny))
    counted, found = most_frequent(vocabulary, [texts[:1], texts[1:]], 1000)
    counts = dict(counted)
    assert "".join(once).replace("▁", " ").strip() == "Anna sings."
    assert all(counts[piece] >= 3 * once.count(piece) for piece in once)
    assert "Ω" not in counts
    assert counts.keys() <= known
    assert found == len(counted)
    assert [count for _, count in counted] == sorted(counts.values(), reverse=True)
    assert most_frequent(vocabulary, [texts], 3) == (counted[:3], found)


@pytest.mark.parametrize("beam", [1, 3])
def test_with_all_pieces_it_is_the_whole_model(tiny: Path, beam: int) -> None:
    texts = SENTENCES[::5]
    whole = loaded(tiny, beam=beam).translate(texts)
    assert loaded(tiny, all_pieces(tiny), beam=beam).translate(texts) == whole
    assert len({each.text for each in whole}) > 40


def test_what_needs_no_other_piece_is_translated_alike(tiny: Path) -> None:
    """Greedy: at each step the most probable piece of all is there, or another is written in its place."""
    texts = SENTENCES[::5]
    rows = written(loaded(tiny), texts)
    kept = set().union(*rows[:8])
    short = loaded(tiny, tuple(sorted(kept)))
    found, whole = short.translate(texts), loaded(tiny).translate(texts)
    needs_no_other = [row <= kept for row in rows]
    assert 8 <= sum(needs_no_other) < len(texts)
    assert [a == b for a, b in zip(found, whole, strict=True)] == needs_no_other
    assert set().union(*written(short, texts)) <= kept | {"<unk>"}


def test_neighbours_do_not_change_a_translation(tiny: Path) -> None:
    kept = tuple(sorted(set().union(*written(loaded(tiny), SENTENCES[:4]))))
    texts = SENTENCES[::5]
    alone = loaded(tiny, kept, 1).translate(texts[::-1])[::-1]
    assert [each.text for each in loaded(tiny, kept).translate(texts)] == [each.text for each in alone]


def test_a_shortlist_of_another_model_is_refused(tiny: Path) -> None:
    with pytest.raises(TranslatorLoadError, match=r"1 pieces of the shortlist are not .* such as 'ΩΩ'"):
        loaded(tiny, ("ΩΩ",))


def test_transformers_cannot_be_held_to_pieces(tiny: Path, tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"backend": "transformers"})
    with pytest.raises(TranslatorLoadError, match="shortlist of output pieces needs ctranslate2, and tiny runs on tr"):
        load_translator(tiny, config, "cpu", tmp_path, 1, pieces=("a",))
