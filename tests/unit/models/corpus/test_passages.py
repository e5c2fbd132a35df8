"""Sentence splitting, documents and held-out parts of running text."""

import polars as pl
import pytest

from bsl.models.corpus.normalize import split_sentences
from bsl.models.corpus.passages import HoldOutConfig, LeftOut, documents, hold_out, passages
from bsl.models.errors import EmptyCorpusError
from tests.every import every

SHORT = HoldOutConfig(min_chars=1)


@every(
    [
        ("Mr. Smith left. He was 3.5 m tall!", ["Mr. Smith left.", "He was 3.5 m tall!"]),
        ("J. R. Brown and e.g. this. So?", ["J. R. Brown and e.g. this.", "So?"]),
        (
            '"Stop!" he said. "Why?" (No answer.) Then rain.',
            ['"Stop!" he said.', '"Why?"', "(No answer.)", "Then rain."],
        ),
        ("Wait … and see . Tokenised text .", ["Wait … and see .", "Tokenised text ."]),
        ("これは文です。次の文。", ["これは文です。", "次の文。"]),
        ("（他走了。）然后呢？", ["（他走了。）", "然后呢？"]),
        ("“好。”他说。‘走！’她说。", ["“好。”", "他说。", "‘走！’", "她说。"]),
        ("【注意。】《书！》〈了？〉完。", ["【注意。】", "《书！》", "〈了？〉", "完。"]),
        ('他说:"好。"她说:"走！"', ['他说:"好。"', '她说:"走！"']),
        ('好。"走！"她说。', ["好。", '"走！"', "她说。"]),
        ("（他说:'好。'）走。", ["（他说:'好。'）", "走。"]),
        ("Sent by\nMr. Smith to\nProf. Jones. Bye.", ["Sent by\nMr. Smith to\nProf. Jones.", "Bye."]),
        ("هل أنت هنا؟ نعم، أنا هنا.", ["هل أنت هنا؟", "نعم، أنا هنا."]),
        ("یہ ایک ہے۔ یہ دو ہے۔", ["یہ ایک ہے۔", "یہ دو ہے۔"]),
        ("यह एक है। यह दो है॥ तीन", ["यह एक है।", "यह दो है॥", "तीन"]),
        ("no mark at all", ["no mark at all"]),
        ("  ", []),
    ]
)
def test_text_splits_at_sentence_marks_but_not_abbreviations(text, sentences):
    assert split_sentences(text) == sentences


def _records(texts, title=None, document=None):
    return pl.DataFrame(
        {"text": texts, "title": [title] * len(texts), "document": document or [None] * len(texts)},
        schema={"text": pl.String, "title": pl.String, "document": pl.String},
    ).with_columns(record=pl.int_range(pl.len(), dtype=pl.UInt32))


def test_documents_follow_headings_names_or_lines():
    wiki = documents(_records(["= One =", "A b.", "= = Part = =", "C d.", "= Two =", "E f."]), lines=False, first=3)
    assert wiki.rows() == [(4, "One", "A b.", True), (4, "One", "C d.", True), (5, "Two", "E f.", True)]
    named = documents(_records(["a", "b", "c"], document=["y", "x", "y"]), lines=False, first=0)
    assert named["document"].to_list() == [0, 1, 1]
    assert documents(_records(["a", "b"]), lines=True, first=7)["document"].to_list() == [7, 7]
    assert documents(_records(["a", "b"]), lines=False, first=7)["document"].to_list() == [7, 8]


def test_held_out_split_ignores_the_order_of_a_list():
    lines = [f"Line {number} of a list." for number in range(400)]
    config = HoldOutConfig(min_chars=1)
    made = [
        hold_out(
            passages(
                documents(_records(texts), lines=False, first=0).with_columns(source=pl.lit("s"), lang=pl.lit("en")),
                config,
            ),
            config,
        )
        for texts in (lines, lines[::-1])
    ]
    assert made[0].equals(made[1])
    assert made[0]["document"].n_unique() == len(lines)


def test_record_without_document_name_is_a_separate_document():
    some = documents(_records(list("abcde"), document=["x", None, " ", "x", ""]), lines=False, first=0)
    assert some.group_by("document").agg("text").sort("document")["text"].to_list() == [["a", "d"], ["b"], ["c"], ["e"]]
    assert some.filter("continues")["text"].to_list() == ["a", "d"]


def test_positions_skip_where_a_record_does_not_continue():
    records = pl.DataFrame(
        {
            "document": [0, 0, 1],
            "title": ["T ", None, None],
            "text": ["One. Two.", "Three.", "Four."],
            "continues": [False, False, True],
            "source": ["s"] * 3,
            "lang": ["en"] * 3,
        },
        schema_overrides={"document": pl.UInt32, "title": pl.String},
    )
    found = passages(records, SHORT)
    assert found["text"].to_list() == ["One.", "Two.", "Three.", "Four."]
    assert found["position"].to_list() == [0, 1, 3, 0]
    assert found["title"].to_list() == ["T", "T", None, None]


def _many(documents, each):
    rows = [(d, n, f"Sentence {n} of document {d}.") for d in range(documents) for n in range(each)]
    frame = pl.DataFrame(rows, schema={"document": pl.UInt32, "position": pl.UInt32, "text": pl.String}, orient="row")
    ids = pl.col("text").hash(seed=0).alias("sentence_id")
    none = pl.lit(None, pl.String).alias("title")
    return frame.select("document", "position", ids, "text", none, source=pl.lit("s"), lang=pl.lit("en"))


def test_documents_are_held_out_whole_within_the_limits():
    parts = hold_out(_many(40, 100), HoldOutConfig(share=0.4, limit=500, report=100))
    by = parts.group_by("part").agg(pl.len(), pl.col("document").unique())
    assert all(
        set(one).isdisjoint(other)
        for one, other in zip(by["document"].to_list(), by["document"].to_list()[1:], strict=False)
    )
    sizes = dict(by.select("part", "len").iter_rows())
    assert 500 <= sizes["train"] < 564
    assert 100 <= sizes["report"] < 164


def test_single_document_is_held_out_by_runs():
    parts = hold_out(_many(1, 1000), HoldOutConfig(share=0.4))
    assert {*parts["part"]} == {"train", "report"}
    assert parts.height == 1000
    units = parts.group_by("part", "unit").agg(pl.len(), run=(pl.col("position") // 16).n_unique())
    assert units["len"].max() == 16
    assert units["run"].max() == 1
    assert sorted(parts.filter(part="report")["unit"].unique()) == list(range(units.filter(part="report").height))


def test_bootstrap_units_are_runs_for_few_documents():
    few, many = (hold_out(_many(count, 100), HoldOutConfig()).filter(part="report") for count in (30, 200))
    assert few["document"].n_unique() < 10 <= few["unit"].n_unique()
    assert few.group_by("document").len()["len"].unique().to_list() == [100]
    assert many["document"].n_unique() == many["unit"].n_unique() == many.select("document", "unit").n_unique()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("short", "each", "long"), [(25, 20, 5000), (2000, 1, 6000)])
def test_long_document_among_short_ones_is_cut_into_runs(short, each, long, seed):
    book = _many(1, long).with_columns(document=pl.lit(short, pl.UInt32), sentence_id=pl.col("sentence_id") + 1)
    parts = hold_out(pl.concat([_many(short, each), book]), HoldOutConfig(seed=seed))
    learnt = parts.filter(part="train")["document"]
    assert short in learnt
    assert learnt.n_unique() > 10
    held = parts.filter(part="report")
    assert held["unit"].n_unique() >= 10
    assert short in held["document"]
    whole = parts.filter(pl.col("document") != short).group_by("document").agg(pl.col("part").n_unique())
    assert whole["part"].max() == 1


def test_held_out_sentence_is_absent_from_training():
    frame = _many(30, 10).with_columns(
        text=pl.when(pl.col("position") == 0).then(pl.lit("The same everywhere.")).otherwise(pl.col("text"))
    )
    frame = frame.with_columns(sentence_id=pl.col("text").hash(seed=0))
    parts = hold_out(frame, HoldOutConfig())
    learnt, held = parts.filter(part="train"), parts.filter(pl.col("part") != "train")
    assert {*learnt["sentence_id"]}.isdisjoint(held["sentence_id"])
    assert "The same everywhere." in held["text"].to_list()


def test_too_little_text_error_states_the_required_amount():
    with pytest.raises(
        EmptyCorpusError, match="Give more text: 20 documents of equal length, or 427 different sentences"
    ):
        hold_out(_many(1, 20), HoldOutConfig())


def test_long_line_of_dots_is_split_quickly():
    """Regression: the splitter tried the rest of the text from each dot, a minute for this input."""
    assert split_sentences("a" + "." * 200_000 + "b") == ["a" + "." * 200_000 + "b"]


@pytest.mark.parametrize(
    ("text", "most"),
    [("这是一个普通的句子。", 20), ("यह एक साधारण वाक्य है जो पर्याप्त लंबा है। ", 60), ("هل هذه جملة عادية بما يكفي؟ ", 60)],
)
def test_chinese_hindi_and_arabic_sentences_pass_length_limits(text, most):
    records = documents(_records([text * most]), lines=False, first=0)
    left_out = LeftOut()
    found = passages(records.with_columns(source=pl.lit("own"), lang=pl.lit("xx")), HoldOutConfig(), left_out)
    assert found["text"].to_list() == [text.strip()] * most
    assert (left_out.short, left_out.long) == (0, 0)


def test_empty_corpus_error_counts_short_and_long_sentences():
    texts = ["Yes.", "A sentence of middling length.", "No.", "w" * 1001]
    records = documents(_records(texts), lines=False, first=0)
    left_out = LeftOut()
    found = passages(records.with_columns(source=pl.lit("own"), lang=pl.lit("en")), HoldOutConfig(), left_out)
    assert (found.height, left_out.short, left_out.long) == (1, 2, 1)
    with pytest.raises(
        EmptyCorpusError, match="2 sentences shorter than 20 and 1 longer than 1,000 characters were excluded"
    ):
        hold_out(found, HoldOutConfig(), left_out)
