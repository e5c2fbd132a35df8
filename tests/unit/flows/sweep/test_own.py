"""The study `own`: points are recipes on the user's text, for equal steps, at rates that fit the original encoder."""

import pytest

from bsl.flows.cli.sweep import own_request
from bsl.flows.cli.terminal.options import LabelColumns
from bsl.flows.own_options import OwnRequest
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.flows.sweep.grid import grid
from bsl.flows.sweep.own import KINDS, START, TABLE, TRAINED, Start, declared, own_config
from bsl.models.views.pairs import OWN_LABELS
from bsl.storage.sources.labels import label_source
from bsl.tasks.stage.run_context import RunContext

ALL = [START, "crops", "round trips", "BSL", "SimCSE", "TSDAE", "your labels"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\nIt has rained for days.,bad\n")
    return str(path)


def study_of(text, changes=None, start=Start(), **options):  # noqa: B008 - frozen
    own = OwnRequest(text=(text,), **options)
    return declared(own_config(own, changes or {}, None), own, start)


def points(text, changes=None, start=Start(), over=None, **options):  # noqa: B008
    study, _ = study_of(text, changes, start, **options)
    made = grid("own", over or {}, changes or {}, (), study)
    return dict(zip([point.label for point in made.points], made.configs, strict=True))


def test_every_point_has_the_same_text_steps_and_evaluation(text):
    changes = {"training": {"max_steps": 7}, "ingest": {"own_text": {"hold_out": {"limit": 300}}}}
    configs = points(text, changes, labels=text)
    assert list(configs) == ALL
    first, *trained = configs.values()
    assert first.training is None
    for config in trained:
        assert (config.ingest, config.evaluation) == (first.ingest, first.evaluation)
        assert config.encoder.model == first.encoder.model == "embedded:mini-sentence"
        training = config.training
        assert (training.max_steps, training.epochs, training.select, training.collapse) == (7, 1000, "last", None)
    assert (first.evaluation.sets, first.evaluation.dev) == (("embedded:stsb/test",), None)
    (source,) = first.ingest.sources
    assert (source.path, first.ingest.own_text.labels, first.ingest.own_text.hold_out.limit) == (text, text, 300)
    assert configs["your labels"].pairs.scored == OWN_LABELS
    assert first.ingest.own_text.hold_out.model_copy(update={"limit": None}) == AdaptConfig().hold_out.model_copy(
        update={"limit": None}
    )


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_learning_rates_fit_the_kind_of_encoder(text, kind):
    configs = points(text, start=Start(kind=kind), labels=text)
    assert ("SimCSE" in configs) == (kind != TABLE)
    rates = [config.training.lr for config in configs.values() if config.training]
    assert max(rates) == [1e-3, 2e-4, 2e-5, 3e-3][kind]
    anchored = configs["crops"].training.objective.anchor_weight
    assert anchored == (0 if kind >= TRAINED else AdaptConfig().raw_anchor)


@pytest.mark.parametrize(
    ("lang", "start", "missing", "reason"),
    [
        ("fi", Start(), {"round trips", "BSL"}, "no round trip from 'fi'"),
        ("en", Start(kind=TABLE), {"SimCSE", "TSDAE"}, "a static table, without dropout"),
        ("en", Start(questions=("crop",)), {"crops"}, "the only questions about this text are about crops"),
    ],
)
def test_point_that_cannot_be_tried_is_left_out_with_a_reason(text, lang, start, missing, reason):
    study, (told,) = study_of(text, {"ingest": {"own_text": {"lang": lang}}}, start)
    assert set(study.variants) == {*ALL[:-1]} - missing
    assert reason in told


def test_pairs_have_the_language_of_the_text(text):
    for config in points(text, {"ingest": {"own_text": {"lang": "de"}}}).values():
        langs = {lang for pair in config.pairs.pairings for lang in (pair.lang_1, pair.lang_2)}
        assert config.training is None or langs == {"de"}
    methods = {view.method for view in points(text, translators="opus-mt")["BSL"].augment.translations}
    assert methods == {"bt-de", "bt-fr"}


def test_chosen_points_always_include_the_original_encoder(text):
    assert list(points(text, over={"variant": ["BSL", "crops"]})) == [START, "BSL", "crops"]
    with pytest.raises(ValueError, match=r"unknown variant 'your labels'"):  # without labels
        points(text, over={"variant": ["your labels"]})
    with pytest.raises(ValueError, match=r"pairs.scored=own/labels needs labels. Set ingest.own_text.labels"):
        points(text, {"pairs": {"scored": OWN_LABELS}})


def test_named_columns_of_labels_reach_the_study(tmp_path):
    path = tmp_path / "tickets.csv"
    rows = [f"Of parcel number {n} to me,My parcel number {n} is late.,{'ab'[n % 2]}" for n in range(12)]
    path.write_text("\n".join(["note,message,queue", *rows]))
    columns = LabelColumns(label_column="queue", text_column=("message",))
    request = own_request({"text": (str(path),), "labels": str(path)}, RunContext(), columns, "utf-8")
    source = label_source(own_config(request, {}, None).ingest.own_text.labels)
    assert (source.label, source.texts) == ("queue", ("message",))
