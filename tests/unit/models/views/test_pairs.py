"""Training pairs made from views, with frequent words subsampled on request."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import TrainingError
from bsl.models.runtime.partitions import in_range
from bsl.models.views import pairs as thinning
from bsl.models.views.pairs import PairConfig, ViewPair, WordCounts, build_pairs, count_pairs, require_pairs, thinned
from bsl.storage.artifacts.schemas import PAIRS

VIEWS = pl.LazyFrame(
    [
        (1, "original", "A man is playing a guitar."),
        (1, "bt-de", "A man plays guitar."),
        (1, "bt-fr", "A man plays the guitar."),
        (2, "original", "Two dogs run."),
        (2, "bt-de", "Two dogs are running."),
        (3, "original", "OK."),
        (3, "bt-de", "OK."),
        (3, "bt-fr", "OK."),
        (4, "bt-fr", "She sings."),
    ],
    schema={"sentence_id": pl.UInt64, "method": pl.String, "text": pl.String},
    orient="row",
)
BACK, GERMAN = ViewPair(view_1="bt-de", view_2="bt-fr"), ViewPair(view_1="original", view_2="bt-de")
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def whole(views, bits=0):
    return lambda number: in_range(views, number, bits)


def paired(views, bits=0, **settings):
    with TemporaryDirectory() as scratch:
        return pl.concat(build_pairs(whole(views, bits), PairConfig(**settings), bits, Path(scratch)))


def counted(views, bits=0, **settings):
    return count_pairs(whole(views, bits), PairConfig(**settings), bits)


def test_default_config_pairs_two_back_translations():
    pairs = paired(VIEWS, shuffle_seed=None)
    assert pairs.schema == PAIRS
    assert pairs.drop("pair_id", "label", "score", "group").rows() == [
        (1, "A man plays guitar.", "A man plays the guitar.", "en", "en", "bt-de|bt-fr"),
        (3, "OK.", "OK.", "en", "en", "bt-de|bt-fr"),
    ]
    assert pairs["pair_id"].to_list() == [17931770063574117977, 10985909307802278351]


def test_shuffle_order_depends_on_seed_not_on_input_rows():
    texts = {"sentence_id": pl.Series(range(200), dtype=pl.UInt64), "text": [f"Sentence {n}." for n in range(200)]}
    views = pl.concat([pl.LazyFrame(texts).with_columns(method=pl.lit(method)) for method in ("bt-de", "bt-fr")])
    ordered, shuffled = paired(views, shuffle_seed=None), paired(views, shuffle_seed=1)
    assert shuffled["sentence_id"].to_list() != ordered["sentence_id"].to_list()
    assert_frame_equal(shuffled.sort("sentence_id"), ordered)
    assert_frame_equal(paired(views.reverse(), shuffle_seed=1), shuffled)
    assert not paired(views, shuffle_seed=2).equals(shuffled)
    fewer = paired(views.filter(pl.col("sentence_id") != 77), shuffle_seed=1)
    assert_frame_equal(fewer, shuffled.filter(pl.col("sentence_id") != 77))


@pytest.mark.parametrize(("drop_identical", "pairs"), [(False, 2), (True, 1)])
def test_count_pairs_counts_missing_views_and_identical_pairs(drop_identical, pairs):
    counts = counted(VIEWS, drop_identical=drop_identical)
    expected = {"source": "bt-de|bt-fr", "sentences": 4, "only_view_1": 1, "only_view_2": 1, "identical": 1}
    assert counts.to_dicts() == [expected | {"pairs": pairs}]
    assert paired(VIEWS, drop_identical=drop_identical).height == pairs
    require_pairs(counts)


@pytest.mark.parametrize(
    ("views", "found"), [(("bt-de", "bt-xx"), "3 sentences have only the first view, 0"), (("xx", "yy"), "0 s")]
)
def test_pairing_without_pairs_is_refused(views, found):
    with pytest.raises(TrainingError, match=f"{views[0]}.{views[1]} gives no pairs: {found}.*`lang`"):
        require_pairs(counted(VIEWS, pairings=(BACK, ViewPair(view_1=views[0], view_2=views[1]))))


def test_drop_identical_refuses_a_pairing_of_identical_views():
    views = VIEWS.with_columns(text=pl.lit("OK.")).filter(pl.col("sentence_id") <= 2)
    with pytest.raises(TrainingError, match="both views of all 2 pairs are the same text"):
        require_pairs(counted(views, pairings=(GERMAN,), drop_identical=True))
    require_pairs(counted(views, pairings=(GERMAN,)))


def test_each_sentence_is_paired_with_all_translations_and_shuffled():
    langs = ("ar", "es", "tr", "de", "fr")
    rows = [(number, "original", f"Sentence {number}.") for number in range(40)]
    rows += [(n, f"mt-{lang}", f"{lang} {n}") for n in range(40) for lang in langs if (n, lang) != (7, "tr")]
    views = pl.LazyFrame([*rows, (3, "entail", "It follows.")], schema=VIEWS.collect_schema(), orient="row")
    translated = [ViewPair(view_1="original", view_2=f"mt-{lang}", lang_2=lang) for lang in langs]
    released = ViewPair(view_1="original", view_2="entail")  # the released code's English pairs
    pairs = paired(views, pairings=(*translated, released))
    assert set(pairs["lang_1"]) == {"en"}
    assert dict(pairs["lang_2"].value_counts().rows()) == dict.fromkeys(langs, 40) | {"tr": 39, "en": 1}
    assert dict(pairs["source"].value_counts().rows())["original|entail"] == 1
    assert pairs["pair_id"].n_unique() == pairs.height
    for number, one, two, lang in pairs.select("sentence_id", "text_1", "text_2", "lang_2").iter_rows():
        assert (one, two) == (f"Sentence {number}.", "It follows." if lang == "en" else f"{lang} {number}")
    firsts = pairs.head(20)
    assert firsts["lang_2"].n_unique() > 2  # shuffled over the languages
    assert firsts["sentence_id"].n_unique() > 10


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("threshold", [None, 0.01])
def test_number_of_ranges_does_not_change_pairs_and_counts(seed, threshold):
    texts = pl.LazyFrame({"text": [f"The man {n} walks the dog of the town {n % 7}." for n in range(300)]})
    sentences = texts.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")
    short = sentences.with_columns(pl.col("text").str.slice(3)).slice(40)
    named = {"bt-de": sentences, "bt-fr": short, "original": sentences}
    views = pl.concat(
        frame.select("sentence_id", pl.lit(name).alias("method"), "text") for name, frame in named.items()
    )
    settings = {"pairings": (GERMAN, BACK), "shuffle_seed": seed, "subsample_words": threshold}
    assert_frame_equal(paired(views, bits=3, **settings), paired(views, **settings))
    assert paired(views, **settings).height == 300 + 260
    assert_frame_equal(counted(views, 3, **settings), counted(views, **settings))


def frame(texts):
    return pl.DataFrame({"id": pl.Series(range(len(texts)), dtype=pl.UInt64), "text": texts})


def thin(texts, threshold=0.01, seed=3):
    counts = WordCounts()
    counts.add(texts["text"])
    return thinned(texts, counts.shares(), threshold, seed)


def test_frequent_words_survive_with_the_published_probability():
    texts = thin(frame([f"the the the the the the the rare{n} x{n} y{n}" for n in range(2000)]))
    kept = sum(text.split().count("the") for text in texts)
    assert abs(kept / 14000 - math.sqrt(0.01 / 0.7)) < 0.01  # "the" is 7 of 10 words
    assert all(f"rare{n}" in text for n, text in enumerate(texts))


def test_subsampling_depends_only_on_sentence_id_and_seed(monkeypatch):
    """Words are counted over all texts, and draws depend on the id."""
    texts = frame([f"A man {n} walks the dog, and the man's dog walks {'him ' * (n % 4)}" for n in range(100)])
    once = thin(texts).to_list()
    assert thin(texts.reverse()).reverse().to_list() == once
    assert thin(texts, seed=4).to_list() != once
    monkeypatch.setattr(thinning, "_ROWS", 7)
    assert thin(texts).to_list() == once
    assert thin(texts.clear()).to_list() == []


def test_subsampling_leaves_at_least_two_words_or_the_whole_text():
    texts = ["the the", "the", "", *(f"the cat and the dog {n}" for n in range(300))]
    pairs = list(zip(texts, thin(frame(texts), 1e-3), strict=True))
    assert all(after == before or len(after.split()) >= 2 for before, after in pairs)
    assert sum(after == before for before, after in pairs) < 300


@pytest.mark.skipif(not CLEAR.exists(), reason="only Linux tells a process's peak")
def test_smaller_slices_lower_peak_memory(monkeypatch):
    """The words of all texts at once would take 2 kB per sentence."""
    texts = frame([f"a man {n} is walking his dog in the park of town {n % 97}" for n in range(60_000)])

    def memory(field):
        return 1024 * int(next(line for line in STATUS.read_text().splitlines() if line.startswith(field)).split()[1])

    def peak(rows):
        monkeypatch.setattr(thinning, "_ROWS", rows)
        CLEAR.write_text("5")  # resets the peak to the current memory use
        before = memory("VmRSS")
        thin(texts)
        return memory("VmHWM") - before

    peak(1024)  # the allocator takes extra memory at the first call
    assert peak(1024) < peak(len(texts)) / 3
