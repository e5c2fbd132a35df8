"""Own text is an evaluation set of the kinds' table: questions, scores, differences and bootstrap draws."""

import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.models.evaluation.uses import RECIPROCAL_RANK
from bsl.tasks.evaluation.kinds import available, kind_of, names_of
from bsl.tasks.evaluation.own_text import questions_of
from bsl.tasks.evaluation.python_api import embedded_by, evaluate
from bsl.tasks.stage.run_context import RunContext

THINGS = ("river", "engine", "garden", "market", "window", "teacher", "winter", "bottle", "camera", "letter")
DRAWN = BootstrapConfig(resamples=200)


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    """Write fifty documents of three sentences, each about the two things in its title."""
    pairs = [(one, two) for number, one in enumerate(THINGS) for two in THINGS[number + 1 :]]
    rows = [
        {
            "title": f"{one} and {two} {number}",
            "body": f"Here is the {one} with a {two} of year {number}. The {two} was older than the {one} in "
            f"{number}. Nobody sold the {one} or the {two} before {number}.",
        }
        for number, (one, two) in enumerate(pairs, start=1000)
    ]
    path = tmp_path_factory.mktemp("text") / "things.csv"
    pl.DataFrame(rows).write_csv(path)
    return f"own:{path}"


@pytest.fixture(scope="module")
def wanted(name):
    return available(RunContext(), [name]).sets[name]


def words_of(wanted, features):
    """Bag-of-words counts: a real, if poor, encoder."""
    counts = CountVectorizer(max_features=features).fit(wanted.sentences().to_list())
    return lambda texts: counts.transform(texts).toarray() + 1e-3


def test_own_text_has_a_score_and_interval_per_question(name, wanted):
    assert names_of([name, "stsb/dev"]) == (name, "stsb/dev")
    assert kind_of(name).is_drawn
    scores = evaluate(words_of(wanted, None), [name], RunContext(), ScoringConfig(bootstrap=DRAWN)).scores
    assert set(scores["split"]) == questions_of(wanted).keys() == {"neighbour", "title", "crop"}
    assert set(scores["metric"]) == {RECIPROCAL_RANK}
    assert (scores["ci_low"] <= scores["value"]).all()
    assert (scores["value"] <= scores["ci_high"]).all()
    assert scores.filter(split="title")["value"].item() > 0.9, "each year is in one title"
    assert scores["signature"][0].startswith(
        f"set:{name}/neighbour|metric:{RECIPROCAL_RANK}|protocol:all|by:cosine|data:"
    )


def test_own_text_systems_share_bootstrap_draws_and_group(name, wanted):
    good, poor = (embedded_by(words_of(wanted, features), (wanted,), {}) for features in (None, 3))
    found = kind_of(name).draws(wanted, [[good, good], [poor]], DRAWN)
    assert [own.name for own in found] == [f"{name} {question}" for question in questions_of(wanted)]
    assert {own.group for own in found} == {name}
    for own in found:
        first, _ = own.systems
        assert first.draws.shape == (200, 2)
        assert (first.draws[:, 0] == first.draws[:, 1]).all()
    titles = next(own for own in found if own.name.endswith("title")).systems
    assert titles[0].figures.mean() > titles[1].figures.mean()


def test_unreadable_records_of_own_text_are_counted_and_the_first_is_named(name, tmp_path, caplog):
    path = tmp_path / "things.csv"
    lines = pl.read_csv(name.removeprefix("own:")).write_csv() * 3
    path.write_text(lines.replace("title,body\n", "").join(["title,body\n", "one,two,three\n"]), encoding="utf-8")
    available(RunContext(), [f"own:{path}"])
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [f"own:{path}: 1 unreadable, the first things.csv, line 137: 3 fields, expected 2"]
