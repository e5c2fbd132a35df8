"""Training pairs made from views."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import TrainingError
from bsl.models.runtime.partitions import in_range
from bsl.models.views.pairs import PairConfig, ViewPair, build_pairs, count_pairs, require_pairs

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
BACK = ViewPair(view_1="bt-de", view_2="bt-fr")


def whole(views, bits=0):
    return lambda number: in_range(views, number, bits)


def paired(views, config, bits=0):
    with TemporaryDirectory() as scratch:
        return pl.concat(build_pairs(whole(views, bits), config, bits, Path(scratch)))


def test_default_config_pairs_two_back_translations():
    pairs = paired(VIEWS, PairConfig(shuffle_seed=None))
    assert pairs.drop("pair_id", "label", "score", "group").rows() == [
        (1, "A man plays guitar.", "A man plays the guitar.", "en", "en", "bt-de|bt-fr"),
        (3, "OK.", "OK.", "en", "en", "bt-de|bt-fr"),
    ]


def test_pairs_have_the_columns_of_the_pairs_artifact():
    expected = {"pair_id": pl.UInt64, "sentence_id": pl.UInt64} | dict.fromkeys(
        ("text_1", "text_2", "lang_1", "lang_2", "source"), pl.String
    )
    expected |= {"label": pl.Int8, "score": pl.Float32, "group": pl.UInt64}
    assert dict(paired(VIEWS, PairConfig()).schema) == expected


def test_several_pairings_become_one_training_set():
    german = ViewPair(view_1="original", view_2="bt-de")
    pairs = paired(VIEWS, PairConfig(pairings=(BACK, german)))
    assert dict(pairs["source"].value_counts().rows()) == {"bt-de|bt-fr": 2, "original|bt-de": 3}
    assert pairs["pair_id"].n_unique() == 5


def test_pair_languages_come_from_the_pairing():
    pairing = ViewPair(view_1="original", view_2="mt-ar", lang_2="ar")
    views = pl.concat([VIEWS, pl.LazyFrame({"sentence_id": [1], "method": ["mt-ar"], "text": ["رجل يعزف على الجيتار."]},
                                           schema=VIEWS.collect_schema())])  # fmt: skip
    pairs = paired(views, PairConfig(pairings=(pairing,)))
    assert pairs.select("text_2", "lang_1", "lang_2").rows() == [("رجل يعزف على الجيتار.", "en", "ar")]


def test_pair_ids_match_pinned_values():
    pairs = paired(VIEWS, PairConfig(shuffle_seed=None))
    assert pairs["pair_id"].to_list() == [17931770063574117977, 10985909307802278351]


def test_shuffle_order_depends_on_seed_not_on_input_rows():
    views = pl.LazyFrame(
        {"sentence_id": range(200), "text": [f"Sentence number {n}." for n in range(200)]},
        schema_overrides={"sentence_id": pl.UInt64},
    )
    views = pl.concat([views.with_columns(method=pl.lit(method)) for method in ("bt-de", "bt-fr")])
    ordered = paired(views, PairConfig(shuffle_seed=None))
    shuffled = paired(views, PairConfig(shuffle_seed=1))
    assert shuffled["sentence_id"].to_list() != ordered["sentence_id"].to_list()
    assert_frame_equal(shuffled.sort("sentence_id"), ordered)
    assert_frame_equal(paired(views.reverse(), PairConfig(shuffle_seed=1)), shuffled)
    assert not paired(views, PairConfig(shuffle_seed=2)).equals(shuffled)
    fewer = paired(views.filter(pl.col("sentence_id") != 77), PairConfig(shuffle_seed=1))
    assert_frame_equal(fewer, shuffled.filter(pl.col("sentence_id") != 77))


@pytest.mark.parametrize(("drop_identical", "pairs"), [(False, 2), (True, 1)])
def test_count_pairs_counts_missing_views_and_identical_pairs(drop_identical, pairs):
    config = PairConfig(drop_identical=drop_identical)
    [row] = count_pairs(whole(VIEWS), config, 0).to_dicts()
    assert row == {
        "source": "bt-de|bt-fr",
        "sentences": 4,
        "only_view_1": 1,
        "only_view_2": 1,
        "identical": 1,
        "pairs": pairs,
    }
    assert paired(VIEWS, config).height == pairs


@pytest.mark.parametrize(
    ("views", "found"), [(("bt-de", "bt-xx"), "3 sentences have only the first view, 0"), (("xx", "yy"), "0 s")]
)
def test_pairing_without_pairs_is_refused(views, found):
    config = PairConfig(pairings=(BACK, ViewPair(view_1=views[0], view_2=views[1])))
    with pytest.raises(TrainingError, match=f"{views[0]}.{views[1]} gives no pairs: {found}"):
        require_pairs(count_pairs(whole(VIEWS), config, 0))


def test_require_pairs_accepts_a_pairing_with_pairs():
    require_pairs(count_pairs(whole(VIEWS), PairConfig(), 0))


def test_each_sentence_is_paired_with_all_translations_and_shuffled():
    langs = ("ar", "es", "tr", "de", "fr")
    english = [(number, "original", f"Sentence {number}.") for number in range(40)]
    translated = [
        (number, f"mt-{lang}", f"{lang} {number}")
        for number in range(40)
        for lang in langs
        if (number, lang) != (7, "tr")
    ]
    entailed = [(3, "entail", "It follows.")]
    views = pl.LazyFrame([*english, *translated, *entailed], schema=VIEWS.collect_schema(), orient="row")
    pairings = (
        *(ViewPair(view_1="original", view_2=f"mt-{lang}", lang_2=lang) for lang in langs),
        ViewPair(view_1="original", view_2="entail"),  # the released code's English pairs
    )
    pairs = paired(views, PairConfig(pairings=pairings))
    assert set(pairs["lang_1"]) == {"en"}
    assert dict(pairs["lang_2"].value_counts().rows()) == dict.fromkeys(langs, 40) | {"tr": 39, "en": 1}
    assert pairs["pair_id"].n_unique() == pairs.height
    for row in pairs.filter(pl.col("lang_2") != "en").iter_rows(named=True):
        assert (row["text_1"], row["text_2"]) == (
            f"Sentence {row['sentence_id']}.",
            f"{row['lang_2']} {row['sentence_id']}",
        )
    firsts = pairs.head(20)
    assert firsts["lang_2"].n_unique() > 2  # shuffled over the languages
    assert firsts["sentence_id"].n_unique() > 10


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("threshold", [None, 0.01])
def test_number_of_ranges_does_not_change_pairs_and_counts(seed, threshold):
    texts = pl.LazyFrame({"text": [f"The man {n} walks the dog of the town {n % 7}." for n in range(300)]})
    sentences = texts.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")
    views = pl.concat(
        [
            sentences.with_columns(pl.lit("bt-de").alias("method")),
            sentences.with_columns(pl.lit("bt-fr").alias("method"), pl.col("text").str.slice(3)).slice(40),
            sentences.with_columns(pl.lit("original").alias("method")),
        ]
    ).select("sentence_id", "method", "text")
    pairings = (ViewPair(view_1="original", view_2="bt-de"), BACK)
    config = PairConfig(pairings=pairings, shuffle_seed=seed, subsample_words=threshold)
    assert_frame_equal(paired(views, config, bits=3), paired(views, config))
    assert paired(views, config).height == 300 + 260
    assert_frame_equal(count_pairs(whole(views, 3), config, 3), count_pairs(whole(views), config, 0))


def test_drop_identical_refuses_a_pairing_of_identical_views():
    views = VIEWS.with_columns(text=pl.lit("OK.")).filter(pl.col("sentence_id") <= 2)
    config = PairConfig(pairings=(ViewPair(view_1="original", view_2="bt-de"),), drop_identical=True)
    with pytest.raises(TrainingError, match="both views of all 2 pairs are the same text"):
        require_pairs(count_pairs(whole(views), config, 0))
    require_pairs(count_pairs(whole(views), config.model_copy(update={"drop_identical": False}), 0))
