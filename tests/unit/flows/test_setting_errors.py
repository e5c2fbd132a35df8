"""Messages of wrong settings: paths that `--set` takes, the fields that may be meant, and one line for each fault."""

import pytest

from bsl.flows.cli.terminal.overrides import changes_of, configured
from bsl.flows.config import override
from bsl.models.translation.filters import CopyFilter
from bsl.tasks.evaluation.config import EvaluationSettings
from tests.every import every

MESSAGES = {
    # an unknown field: of its section, of another one, of the top, and of an unknown section
    "training.lrr=1": "training.lrr: unknown field. Did you mean 'training.lr'? Fields of training: objective, ",
    "training.steps=9": "Did you mean 'training.max_steps'?",
    "lr=1": "lr: unknown field. Did you mean 'training.lr'? Fields: pairs, training, ",
    "seed=1": "'training.seed' or 'evaluation.bootstrap.seed' or 'evaluation.probe.seed'?",
    "batchsize=1": "Did you mean 'training.batch_size' or 'evaluation.probe.batch_size'?",
    "training.title=x": "Did you mean 'title'?",
    "trainng.lr=1": "trainng.lr: unknown field. Did you mean 'training.lr'?",
    "evaluation.bootstrp.seed=1": "Did you mean 'evaluation.bootstrap.seed'?",
    "ingest.lr=1": "ingest.lr: unknown field. Did you mean 'training.lr'?",
    "augmnt.no.such=1": "augmnt.no.such: unknown field. Did you mean 'augment.no.such'?",
    "foo=1": "foo: unknown field. Fields: pairs, ",
    "encoder.name=x": "encoder.name: unknown field.",
    "encoder.cnn.width=1": "unknown field. Fields of encoder.cnn: kernels, channels, relu",
    # items of lists, by number
    "ingest.sources.0.limt=3": "Did you mean 'ingest.sources.0.limit'?",
    "ingest.sources.0.limit=0": "ingest.sources.0.limit: Input should be greater than or equal to 1 (found 0)",
    "ingest.sources.1.limit=3": "sources.1: expected the number of an item, below 1, or a complete list",
    'ingest.sources=["a.txt"]': "ingest.sources.0: expected an object with the fields dataset, path, ",
    "ingest.sources=[]": "ingest.sources: expected a list that is not empty (found [])",
    "ingest.sources=a.txt": "ingest.sources: expected a list, for example [\"a.txt\"] (found 'a.txt')",
    # names of objectives, filters and so on
    "training.objective=simces": "training.objective.name: unknown name 'simces'. Did you mean 'simcse'? Expected",
    "training.objective=[1]": "training.objective: expected a name, or an object with one (found [1])",
    # what a training needs and no stage will make
    "pairs.pairings.0.view_1=bt-dd": "pairs.pairings.0.view_1: no view 'bt-dd'. Did you mean 'bt-de'? The settings",
    'pairs.pairings=[{"view_1": "original", "view_2": "bt-de", "lang_2": "de"}]': (
        "pairs.pairings.0.lang_2 is de, but the translators of view bt-de end in en. Set lang_2 to en"
    ),
    "augment.translations=[]": "pairs.pairings.0.view_1: no view 'bt-de'. The settings `augment` make original",
    "training.objective=softmax": "training.objective=softmax needs labelled pairs. Set pairs.labelled=true",
    "training.order=groups": "training.order=groups needs labelled pairs. Set pairs.labelled=true",
    "training.objective=regression": "training.objective=regression needs scored pairs. Set pairs.scored",
    "training.objective=distil": "training.objective=distil needs a teacher. Set teacher.model",
    'augment.filters=["lengt"]': "augment.filters.0.name: unknown name 'lengt'. Did you mean 'length'?",
    "augment.filters=[{}]": "augment.filters.0: has no name. Add one of capitals, loop, length, copy, language, ",
}


@every(MESSAGES.items())
def test_wrong_setting_is_explained_in_one_line(setting, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        configured("tiny", [setting])
    assert message in str(refused.value)


def test_field_of_a_replaced_objective_is_not_suggested_instead_of_itself():
    told = r"^training\.objective\.k: unknown field\. Fields of training\.objective: name, dims, temperature, head$"
    with pytest.raises(ValueError, match=told):
        configured("tiny", ["training.objective=simcse", "training.objective.k=8"])
    with pytest.raises(ValueError, match=r"^training\.momentum: unknown field\. Fields of training: "):
        configured("tiny", ["training.objective=simcse", "training.momentum=.9"])


@every(
    [
        ("stsb.objective=softmax", "^stsb: objective softmax does not learn from scores.* Choose regression or cross-"),
        ("afs.objective=masked-lm", "^afs: objective masked-lm does not learn from scores"),
        ("stsb_cross.order=groups", "^stsb_cross: order groups needs groups of pairs"),
    ]
)
def test_supervised_evaluation_learns_from_scores_alone(setting, told):
    with pytest.raises(ValueError, match=told):
        override(EvaluationSettings(), changes_of([setting]))


def test_items_of_lists_are_changed_by_number():
    base, changed = configured("tiny", []), configured("tiny", ["ingest.sources.0.limit=30"])
    (source,) = base.ingest.sources
    assert changed.ingest.sources == (source.model_copy(update={"limit": 30}),)
    first, last = (configured("tiny-bsl-sbert", settings) for settings in ([], ["earlier.0.training.lr=0.5"]))
    assert (first.earlier[0].training.lr, last.earlier[0].training.lr) == (1e-4, 0.5)
    assert last.training == first.training
    # An item that becomes another kind loses the fields of the former; its name alone is enough.
    for setting in ("augment.filters.0.name=copy", "augment.filters.0=copy"):
        assert configured("tiny", [setting]).augment.filters[0] == CopyFilter()


@pytest.mark.parametrize("setting", ['augment.given=[{"method": "mine"}]', "pairs.labelled=true"])
def test_own_text_has_no_columns_beside_its_sentences(setting):
    with pytest.raises(ValueError, match=r"which ingest\.own_text does not read\. Set ingest\.own_text to null"):
        configured("tiny", ["ingest.own_text={}", setting])
