"""The tables of an encoder's exported forms: speed, the score of `bsl evaluate`, and losses on the user's labels."""

import time

import numpy as np
import polars as pl
import pytest

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.sts import sts_scores
from bsl.tasks.evaluation.kinds import UnknownSuiteError
from bsl.tasks.evaluation.python_api import embedded_by, evaluate
from bsl.tasks.serving import measures
from bsl.tasks.serving.form_scores import form_rows, form_sets, losses
from bsl.tasks.serving.measures import Variant, measured, timed_again, variant_rows, write_cards
from tests.classified import TOPICS, texts_of
from tests.layouts import NAMED, prompted, write


def test_variants_have_the_range_over_passes_and_the_interval_of_bsl_evaluate():
    random = np.random.default_rng(0)
    gold = random.integers(0, 26, 200) / 5
    cosines = gold / 5 + random.normal(0, 0.3, 200)
    whole = Variant("fp32", ".", 1.0, 8, (900.0, 1000.0, 950.0), cosines)
    rows = variant_rows([whole, Variant("other", "other", 1.0, 8, (500.0,), cosines)], gold)
    assert [row["sentences/s"] for row in rows] == ["1,000 [900 to 1,000]", "500"]
    assert [row["speedup"] for row in rows] == ["1.0", "0.5"]
    assert [row["difference"] for row in rows] == ["", "+0.00 [+0.00, +0.00]"]
    pairs = pl.DataFrame({"subset": "all", "cosine": cosines, "gold": gold})
    score = next(row for row in sts_scores(pairs, dataset="stsb", split="test") if row.metric == "spearman")
    shown = f"{100 * score.value:.2f} [{100 * score.ci_low:.1f}, {100 * score.ci_high:.1f}]"
    assert [row["STS-B test"] for row in rows] == [shown, shown]


class Named:
    """An encoder of the number of letters, whose first pass is slow."""

    width = 1

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def encode(self, texts):
        time.sleep(self.seconds)
        return np.array([[len(text), 1.0] for text in texts])


def test_forms_are_timed_in_turn_so_that_load_affects_all_alike(tmp_path, monkeypatch):
    loaded = []

    def load(path):
        loaded.append(path)
        return Named()

    first = [measured(name, name, tmp_path, Named()) for name in ("a", "b")]
    rows = timed_again(first, load)
    assert loaded == ["a", "b", "a", "b"]
    assert [len(row.passes) for row in rows] == [3, 3]
    monkeypatch.setattr(measures, "_ENOUGH_S", 0.1)  # a slow form is timed no more
    slow = measured("slow", "slow", tmp_path, Named(0.2))
    assert [len(row.passes) for row in timed_again([slow, first[0]], load)] == [1, 3]


@pytest.mark.parametrize(("name", "pools"), [(None, True), ("sts", True), ("sts", False)])
def test_card_of_a_graph_says_the_prompt_and_which_of_its_tokens_are_not_pooled(tmp_path, name, pools):
    encoder = SentenceEncoder.load(write(tmp_path / "in", prompted(name, include_prompt=pools)))
    rows = variant_rows([Variant("ONNX, fp32", "onnx/model.onnx", 1.0, 8, (9.0,), np.arange(3.0))], np.arange(3.0))
    write_cards(tmp_path, rows, "", encoder)
    card = (tmp_path / "README.md").read_text()
    assert (f"The prompt `{NAMED['sts']!r}` is not in the graph" in card) is (name is not None)
    tokens = len(encoder.tokenizer(NAMED["sts"])["input_ids"]) - 1  # without [SEP]
    assert (f"leaves out the first {tokens} tokens" in card) is not pools


def vectors_of(noise):
    """Return an encoder of the texts' topics, which noise hides."""

    def encode(texts):
        topics = [next(n for n, text in enumerate(TOPICS.values()) if text[:3] == given[:3]) for given in texts]
        return np.eye(3)[topics] + noise * np.random.default_rng(len(texts)).normal(size=(len(texts), 3))

    return encode


def test_form_that_loses_on_labels_is_said_and_scores_are_those_of_evaluate(site, tmp_path):
    texts_of(0, 120).write_csv(tmp_path / "tickets.csv")
    name = f"labels:{tmp_path}/tickets.csv#label=queue"
    found = form_sets(site, [name])
    noise = {"fp32": 0.0, "same": 0.0, "static table": 2.0}
    rows = form_rows({form: embedded_by(vectors_of(one), found.embedded(), form) for form, one in noise.items()}, found)
    assert {(row["form"], row["verdict"]) for row in rows} == {("same", "no difference"), ("static table", "loses")}
    scores = evaluate(vectors_of(2.0), [name], site).scores
    for row in rows[1::2]:
        (expected,) = scores.filter(metric=row["metric"])["value"]
        assert row["after"] == f"{100 * expected:.2f}"
        assert float(row["difference"].split()[0]) < -10
    assert losses(rows).startswith("These forms lose: static table on labels:")
    assert losses(rows[::2]) == ""
    with pytest.raises(UnknownSuiteError, match=r"--suite trec: .* bsl evaluate FOLDER --suite trec"):
        form_sets(site, ["trec"])
