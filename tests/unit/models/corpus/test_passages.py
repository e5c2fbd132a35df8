"""Sentence splitting, documents and held-out parts of running text."""

import polars as pl
import pytest

from bsl.models.corpus.normalize import split_sentences
from bsl.models.corpus.passages import HoldOutConfig, LeftOut, documents, hold_out, passages, without_copies
from bsl.models.errors import EmptyCorpusError
from tests.every import every

SHORT = HoldOutConfig(min_chars=1)


@every([
    ("Mr. Smith left. He was 3.5 m tall!", ["Mr. Smith left.", "He was 3.5 m tall!"]),
    ("J. R. Brown and e.g. this. So?", ["J. R. Brown and e.g. this.", "So?"]),
    ('"Stop!" he said. "Why?" (Nobody.) Then rain.', ['"Stop!" he said.', '"Why?"', "(Nobody.)", "Then rain."]),
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
    ("She said no. We left. See No. 5 on p. 7.", ["She said no.", "We left.", "See No. 5 on p. 7."]),
    ("Er mag z. B. Äpfel, d. h. Obst. Im 3. Jh. v. Chr. war Art. 3 alt.",
     ["Er mag z. B. Äpfel, d. h. Obst.", "Im 3. Jh. v. Chr. war Art. 3 alt."]),
    ("Am 3. Mai 2020 kam der 2. Zug. Tom ist 20. Das war 1999. Ich ging.",
     ["Am 3. Mai 2020 kam der 2. Zug.", "Tom ist 20.", "Das war 1999.", "Ich ging."]),
    ("Gov. Mead and Sen. Kerry climbed Mt. Fuji on Oct. 7. Nos. 3 and 4 follow. It makes sens. He left in dec. He ate.",
     ["Gov. Mead and Sen. Kerry climbed Mt. Fuji on Oct. 7.", "Nos. 3 and 4 follow.", "It makes sens.",
      "He left in dec.", "He ate."]),
    ("Zu seinem 13. Geburtstag kam die 3. Auflage, vgl. Abb. 3. Véase núm. 5 y pág. 7. Bien.",
     ["Zu seinem 13. Geburtstag kam die 3. Auflage, vgl. Abb. 3.", "Véase núm. 5 y pág. 7.", "Bien."]),
    ("Er ging. „Hallo“, sagte er. „Komm!“ Sie kam. »Na?« ‚Ja.‘ Gut.",
     ["Er ging.", "„Hallo“, sagte er.", "„Komm!“", "Sie kam.", "»Na?«", "‚Ja.‘", "Gut."]),
    ("Il dit : « Oui. » Puis il part. « Où ? » demanda-t-elle. ”Hej.” Hon gick.",
     ["Il dit : « Oui. »", "Puis il part.", "« Où ? » demanda-t-elle.", "”Hej.”", "Hon gick."]),
    ("Vive en los EE. UU. desde mayo. Bien.", ["Vive en los EE. UU. desde mayo.", "Bien."]),
    ("  ", []),
    # Regression: the splitter tried the rest of the text from each dot, a minute for this input.
    ("a" + "." * 200_000 + "b", ["a" + "." * 200_000 + "b"]),
])  # fmt: skip
def test_text_splits_at_sentence_marks_but_not_abbreviations(text, sentences):
    assert split_sentences(text) == sentences


def records(texts, document=None, *, lines=False, first=0):
    """Return the documents of records, with their source and language."""
    columns = {"text": texts, "title": [None] * len(texts), "document": document or [None] * len(texts)}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    made = documents(frame.with_columns(record=pl.int_range(pl.len(), dtype=pl.UInt32)), lines=lines, first=first)
    return made.with_columns(source=pl.lit("own"), lang=pl.lit("en"))


def test_documents_follow_headings_names_or_lines():
    wiki = records(["= One =", "A b.", "= = Part = =", "C d.", "= Two =", "E f."], first=3)
    expected = [(4, "One", "A b.", True), (4, "One", "C d.", True), (5, "Two", "E f.", True)]
    assert wiki.drop("source", "lang").rows() == expected
    assert records(["a", "b", "c"], document=["y", "x", "y"])["document"].to_list() == [0, 1, 1]
    assert records(["a", "b"], lines=True, first=7)["document"].to_list() == [7, 7]
    assert records(["a", "b"], first=7)["document"].to_list() == [7, 8]
    assert records(["B b", "a", "b B!"])["document"].to_list() == [0, 0, 1], "copies are one"
    some = records(list("abcde"), document=["x", None, " ", "x", ""])
    assert some.group_by("document").agg("text").sort("document")["text"].to_list() == [["a", "d"], ["b"], ["c"], ["e"]]
    assert some.filter("continues")["text"].to_list() == ["a", "d"]


def test_records_that_share_a_text_are_one_document():
    """Regression: of 600 questions, four for each answer, 508 were test labels: some question was mostly held out."""

    def of_pairs(pairs):
        rows = [(text, number) for number, pair in enumerate(pairs) for text in pair]
        frame = pl.DataFrame(rows, {"text": pl.String, "record": pl.UInt32}, orient="row")
        named = frame.with_columns(title=pl.lit(None, pl.String), document=pl.lit(None, pl.String))
        return documents(named, lines=False, first=0)

    made = of_pairs([(f"Question {number}?", f"Answer {number // 4}.", "") for number in range(40)])
    answers = made.filter(pl.col("text").str.starts_with("Answer"))
    assert answers["document"].n_unique() == made["document"].n_unique() == 10
    assert made.group_by("document").len()["len"].to_list() == [12] * 10
    assert answers.group_by("document").agg(pl.col("text").n_unique())["text"].to_list() == [1] * 10
    assert of_pairs([("a", "x"), ("b", "x"), ("c", "y")])["document"].n_unique() == 3, "most would be one"


def test_documents_of_an_earlier_file_are_left_out():
    """Regression: of five files of the same 586 sentences, training had 97, since some copy of most was held out."""

    def file_of(texts, document, first):
        return passages(records(texts, document, first=first), SHORT)

    list_1 = file_of(["One.", "Two. Three.", "Two. Four.", "One!"], None, 0)
    list_2 = file_of(["Three. Two.", "Five.", "ONE", "Two."], None, 10)
    named = file_of(["Six.", "Five.", "Seven.", "Six."], ["a", "b", "a", "c"], 20)
    left_out = LeftOut()
    found = without_copies([list_1, list_2, named, named.head(0)], left_out)
    kept = {"One.", "Two.", "Three.", "Four.", "One!", "Five.", "Six.", "Seven."}
    assert sorted(found["text"]) == sorted([*kept, "Two.", "Two.", "Six."])
    assert left_out.copied == 4
    assert left_out.summary(SHORT) == "4 sentences of documents that an earlier file has too were excluded"
    assert found.columns == list_1.columns
    retitled = list_1.with_columns(document=pl.col("document") + 30, title=pl.lit("Another title"))
    assert without_copies([list_1, retitled], left_out).height == 2 * list_1.height
    copies = [many(300, 2).with_columns(pl.col("document") + 300 * number) for number in range(5)]
    assert hold_out(without_copies(copies, left_out), SHORT).equals(hold_out(copies[0], SHORT))


def test_held_out_split_ignores_the_order_of_a_list():
    lines = [f"Line {number} of a list." for number in range(400)]
    copies = [line.upper() for line in lines[:9]]
    one, other = (hold_out(passages(records(texts), SHORT), SHORT) for texts in (lines + copies, copies + lines[::-1]))
    assert one.equals(other)
    assert one["document"].n_unique() == len(lines)


def test_positions_skip_where_a_record_does_not_continue():
    rows = [
        (0, "T ", "One. Two.", False, "s", "en"),
        (0, None, "Three.", False, "s", "en"),
        (1, None, "Four.", True, "s", "en"),
    ]
    names = ["document", "title", "text", "continues", "source", "lang"]
    found = passages(pl.DataFrame(rows, names, orient="row", schema_overrides={"document": pl.UInt32}), SHORT)
    assert found["text"].to_list() == ["One.", "Two.", "Three.", "Four."]
    assert found["position"].to_list() == [0, 1, 3, 0]
    assert found["title"].to_list() == ["T", "T", None, None]


def many(documents, each):
    rows = [(d, n, f"Sentence {n} of document {d}.") for d in range(documents) for n in range(each)]
    frame = pl.DataFrame(rows, schema={"document": pl.UInt32, "position": pl.UInt32, "text": pl.String}, orient="row")
    ids = pl.col("text").hash(seed=0).alias("sentence_id")
    none = pl.lit(None, pl.String).alias("title")
    return frame.select("document", "position", ids, "text", none, source=pl.lit("s"), lang=pl.lit("en"))


def test_documents_are_held_out_whole_within_the_limits():
    parts = hold_out(many(40, 100), HoldOutConfig(share=0.4, limit=500, report=100))
    assert parts.group_by("document").agg(pl.col("part").n_unique())["part"].max() == 1
    sizes = dict(parts["part"].value_counts().iter_rows())
    assert 500 <= sizes["train"] < 564
    assert 100 <= sizes["report"] < 164


def test_single_document_is_held_out_by_runs():
    parts = hold_out(many(1, 1000), HoldOutConfig(share=0.4))
    assert {*parts["part"]} == {"train", "report"}
    assert parts.height == 1000
    units = parts.group_by("part", "unit").agg(pl.len(), run=(pl.col("position") // 16).n_unique())
    assert units["len"].max() == 16
    assert units["run"].max() == 1
    assert sorted(parts.filter(part="report")["unit"].unique()) == list(range(units.filter(part="report").height))


def test_bootstrap_units_are_runs_for_few_documents():
    few, most = (hold_out(many(count, 100), HoldOutConfig()).filter(part="report") for count in (30, 200))
    assert few["document"].n_unique() < 10 <= few["unit"].n_unique()
    assert few.group_by("document").len()["len"].unique().to_list() == [100]
    assert most["document"].n_unique() == most["unit"].n_unique() == most.select("document", "unit").n_unique()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("short", "each", "long"), [(25, 20, 5000), (2000, 1, 6000)])
def test_long_document_among_short_ones_is_cut_into_runs(short, each, long, seed):
    book = many(1, long).with_columns(document=pl.lit(short, pl.UInt32), sentence_id=pl.col("sentence_id") + 1)
    parts = hold_out(pl.concat([many(short, each), book]), HoldOutConfig(seed=seed))
    learnt, held = parts.filter(part="train")["document"], parts.filter(part="report")
    assert short in learnt
    assert learnt.n_unique() > 10
    assert held["unit"].n_unique() >= 10
    assert short in held["document"]
    whole = parts.filter(pl.col("document") != short).group_by("document").agg(pl.col("part").n_unique())
    assert whole["part"].max() == 1


@pytest.mark.parametrize("copy", ["In two documents.", "IN TWO documents !"])
def test_held_out_sentence_is_absent_from_training(copy):
    parts = hold_out(many(30, 10), SHORT).unique("document", maintain_order=True).select("document", "part")
    held, learnt = (parts.filter(pl.col("part") != "train")["document"][0], parts.filter(part="train")["document"][0])
    texts = (
        pl.when(position=1).then(pl.lit("In all documents."))
        .when(position=0, document=held).then(pl.lit("In two documents."))
        .when(position=0, document=learnt).then(pl.lit(copy))
        .otherwise("text").alias("text")
    )  # fmt: skip
    found = hold_out(many(30, 10).with_columns(texts).with_columns(sentence_id=pl.col("text").hash(seed=0)), SHORT)
    held_out, trained = ({*found.filter(part=part)["text"]} for part in ("report", "train"))
    assert held_out.isdisjoint(trained)
    assert {"In two documents.", "In all documents."} < held_out
    assert copy not in trained
    assert "In all documents." not in trained


@pytest.mark.parametrize(
    ("text", "most"),
    [("这是一个普通的句子。", 20), ("यह एक साधारण वाक्य है जो पर्याप्त लंबा है। ", 60), ("هل هذه جملة عادية بما يكفي؟ ", 60)],
)
def test_chinese_hindi_and_arabic_sentences_pass_length_limits(text, most):
    left_out = LeftOut()
    found = passages(records([text * most]), HoldOutConfig(), left_out)
    assert found["text"].to_list() == [text.strip()] * most
    assert (left_out.short, left_out.long) == (0, 0)


@every(
    [("w" * 20, True), ("w" * 19, False), ("好" * 7, True), ("好" * 6, False), ("w" * 1000, True), ("w" * 1001, False)]
)
def test_sentences_at_the_length_limits_pass(text, kept):
    """A character of Chinese counts as three letters."""
    assert passages(records([text]), HoldOutConfig())["text"].to_list() == [text] * kept


def test_too_little_text_error_counts_short_and_long_sentences_and_states_the_required_amount():
    left_out = LeftOut()
    found = passages(records(["Yes.", "A sentence of middling length.", "No.", "w" * 1001]), HoldOutConfig(), left_out)
    assert (found.height, left_out.short, left_out.long) == (1, 2, 1)
    excluded = "2 sentences shorter than 20 and 1 longer than 1,000 characters were excluded"
    with pytest.raises(EmptyCorpusError, match=excluded):
        hold_out(found, HoldOutConfig(), left_out)
    with pytest.raises(EmptyCorpusError, match=r"For short texts, .* --set hold_out.min_chars=10. .*Give more"):
        hold_out(found, HoldOutConfig(), left_out)
    needed = r"training\. Give more text: 20 documents of equal length, or 427 different sentences"
    with pytest.raises(EmptyCorpusError, match=needed):
        hold_out(many(1, 20), HoldOutConfig())
