"""Words replaced by WordNet synonyms: a tiny database in the real format, and the installed one if any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsl.models.views.config import SynonymView
from bsl.models.views.synonyms import FILES, count_replacements, replace_synonyms, wordnet_synonyms
from bsl.storage.errors import SourceError
from bsl.storage.sources import word_vectors
from bsl.storage.sources.word_vectors import find_wordnet
from tests.tiny_wordnet import write_tiny_wordnet

ALL, THIRD = SynonymView(share=1.0), SynonymView(share=0.3)
ONE_EACH = {
    "cat": "feline", "cats": "felines", "sofa": "couch", "big": "large", "quickly": "rapidly", "ran": "sprinted",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_wordnet(tmp_path_factory.mktemp("wordnet"))


@pytest.fixture(scope="module")
def synonyms(folder):
    return wordnet_synonyms(folder)


def replaced(text, synonyms, view=ALL, seed=0):
    return replace_synonyms([text], [seed], synonyms, view)[0]


@pytest.mark.parametrize(
    ("word", "forms", "lemmas"),
    [
        ("cat", ("feline",), ("feline",)),
        ("cats", ("felines",), ("feline",)),
        ("children", ("kids", "youngsters"), ("kid", "youngster")),
        ("running", ("sprinting",), ("sprint",)),
        ("runs", ("sprints",), ("sprint",)),
        ("ran", ("sprinted",), ("sprint",)),
        ("ate", ("devoured",), ("devour",)),
        ("watched", ("looked at",), ("look at",)),  # of several words, the first is the verb
        ("quit", ("give up",), ("give up",)),
        ("table", (), ()),
        ("a", (), ()),  # a function word, although WordNet has it as a vitamin
    ],
)
def test_synonym_has_the_inflection_of_its_word_or_is_a_lemma(folder, synonyms, word, forms, lemmas):
    assert synonyms(word) == forms
    assert wordnet_synonyms(folder, inflect=False)(word) == lemmas


def test_abbreviations_and_single_letters_are_not_replaced(synonyms):
    assert synonyms("b") == ("atomic number 5",)
    for text in ("Found in the seventh millennium b.c.", "plan b or c", "(b) a 3-c."):
        assert replaced(text, synonyms) == text
    assert count_replacements(["b.c. 7th 3-c."], synonyms, ALL)["words"] == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats, on the  sofa!\t(big)", "Felines, on the  couch!\t(large)"),
        ("CATS RAN", "FELINES SPRINTED"),
        ("The cat of Big Sur", "The feline of Big Sur"),  # a name inside a sentence
        ("", ""),
        ("...", "..."),
        ("The table is here.", "The table is here."),
    ],
)
def test_replacement_preserves_case_spacing_punctuation_and_names(synonyms, text, expected):
    assert replaced(text, synonyms) == expected


@given(st.lists(st.sampled_from([*ONE_EACH, "table", "the", "house"]), max_size=30), st.integers(0, 2**64 - 1))
def test_replaced_words_equal_the_share_capped_by_replaceable_words(synonyms, words, seed):
    text = " ".join(words)
    wanted = max(round(0.3 * len(words)), min(len(words), 1))
    possible = min(wanted, sum(word in ONE_EACH for word in words))
    after = replaced(text, synonyms, THIRD, seed).split()
    changed = [(old, new) for old, new in zip(words, after, strict=True) if old != new]
    assert len(changed) == possible
    assert all(ONE_EACH[old] == new for old, new in changed)
    counts = count_replacements([text], synonyms, THIRD)
    assert tuple(counts.values()) == (len(words), possible, wanted - possible)


def test_replacement_depends_only_on_sentence_and_seed(synonyms):
    texts = [f"the child ran to a big cat on sofa {number} quickly" for number in range(50)]
    seeds, view = list(range(50)), SynonymView()
    whole = replace_synonyms(texts, seeds, synonyms, view)
    assert replace_synonyms(texts[::-1], seeds[::-1], synonyms, view)[::-1] == whole
    assert [replaced(text, synonyms, view, seed) for text, seed in zip(texts, seeds, strict=True)] == whole
    assert replace_synonyms(texts, [seed + 50 for seed in seeds], synonyms, view) != whole


def test_fewer_senses_give_fewer_synonyms(tmp_path):
    folder = write_tiny_wordnet(tmp_path)
    data = (folder / "data.noun").read_text()
    more = f"{len(data):08} 00 n 02 cat 0 tomcat 0 000 | a gloss  \n"
    (folder / "data.noun").write_text(data + more)
    index = (folder / "index.noun").read_text()
    old = next(line for line in index.splitlines() if line.startswith("cat "))
    new = old.replace("cat n 1 0 1 0", "cat n 2 0 2 0").rstrip() + f" {len(data):08}  "
    (folder / "index.noun").write_text(index.replace(old, new))
    assert wordnet_synonyms(folder)("cat") == ("feline", "tomcat")
    assert wordnet_synonyms(folder, senses=1)("cat") == ("feline",)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return the folder in which nltk alone finds a WordNet."""
    monkeypatch.setattr(word_vectors, "_SYSTEM", ())
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    return tmp_path / "corpora" / "wordnet"


def test_wordnet_identity_depends_on_content_not_folder(installed, tmp_path, monkeypatch):
    write_tiny_wordnet(installed)
    first = find_wordnet(FILES)
    other = write_tiny_wordnet(tmp_path / "other")
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setattr(word_vectors, "_SYSTEM", (other,))
    assert find_wordnet(FILES).folder == other
    assert find_wordnet(FILES).identity == first.identity
    (other / "noun.exc").write_text("mice mouse\n")
    assert find_wordnet(FILES).identity != first.identity


def test_missing_wordnet_error_gives_the_install_command(installed):
    with pytest.raises(SourceError, match=r"no WordNet database .*apt-get install wordnet-base"):
        find_wordnet(FILES)
    (write_tiny_wordnet(installed) / "verb.exc").unlink()
    with pytest.raises(SourceError, match=r"without verb\.exc\. Install"):
        find_wordnet(FILES)
