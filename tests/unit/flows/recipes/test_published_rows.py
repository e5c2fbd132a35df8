"""Every recipe has a published row or says that it has none; a run that deviates from its row says why."""

import shlex

import pytest

from bsl.flows.cli.main import main, parsed
from bsl.flows.config import override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.isbert import ROW, TASKS
from bsl.flows.recipes.published_rows import COMMANDS, ROWS, cells_of, deviations, row_of
from bsl.models.evaluation.published import columns_of, rows_of
from bsl.tasks.evaluation.kinds import names_of, tuned_names
from tests.every import every

BEHIND = [(row, name) for row, names in ROWS.items() for name in names]


@every(BEHIND)
def test_recipe_lists_the_published_row_it_reproduces(row, name):
    assert row in recipe(name).published
    assert rows_of(row)


@every(BEHIND)
def test_recipe_deviates_only_in_translator_and_own_files(row, name):
    reasons = deviations(recipe(name), row)
    assert all(why.startswith(("another translator: ", "another corpus: your own files")) for why in reasons)


@every(BEHIND)
def test_recipe_is_scored_on_the_sets_of_its_row(row, name):
    scored = {part.partition("/")[0] for part in names_of(recipe(name).evaluation.sets)}
    printed = [set(columns_of(published.suite)) - {"avg", "stsb/dev"} for published in rows_of(row)]
    # If several tables print a row, the recipe is scored on all sets of at least one of them.
    assert any(columns <= scored for columns in printed) or name.startswith("isbert-")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"encoder": {"model": "/vectors/glove.840B.300d.txt"}}, ()),
        ({"words": {"case": "lower"}}, ("words are split differently: case lower for file",)),
    ],
    ids=str,
)
def test_word_vector_deviations_depend_on_file_name_and_tokenization(changes, why):
    assert deviations(override(recipe("glove"), changes), "GloVe avg.") == why


@pytest.mark.parametrize(
    ("name", "row"),
    [("published-sbert", "SBERT"), ("published-sroberta", "SRoBERTa"), ("bsl-sbert-nli", "BSL-SBERT")],
)
def test_published_checkpoint_is_not_an_encoder_deviation(name, row):
    assert not any("encoder" in why for why in deviations(recipe(name), row))
    (why,) = deviations(override(recipe(name), {"encoder": {"max_length": 9}}), row)
    assert why.startswith("the encoder is loaded differently: max_length 9 for ")


def test_changed_teacher_is_a_deviation():
    changed = override(recipe("mbert-sbert"), {"teacher": {"model": "other/teacher"}})
    assert any(
        why.startswith("other teacher: model other/teacher") for why in deviations(changed, changed.published[0])
    )
    more = override(recipe("mbert-sbert"), {"more_teachers": [{"model": "a/second"}]})
    assert any(why.startswith("other teacher: more_teachers (a/second") for why in deviations(more, more.published[0]))


def test_missing_and_extra_trainings_are_deviations():
    first_only = override(recipe("sbert-nli-stsb"), {"earlier": []})
    assert "other training 1 before the last: absent" in deviations(first_only, "SBERT-NLI-STSb")
    twice = override(recipe("entail"), {"earlier": [phase.model_dump() for phase in recipe("entail").phases]})
    assert deviations(twice, "BSL-BERT, NLI_entail") == ("other training 1 before the last: not in the row",)


@pytest.mark.parametrize("row", COMMANDS)
def test_reproduce_of_fine_tuning_row_suggests_the_evaluate_command(row, capsys):
    assert rows_of(row)
    words = shlex.split(COMMANDS[row])[1:]
    _, bound = parsed(words)
    assert set(bound.arguments["suite"]) <= set(tuned_names())
    assert main(["reproduce", row]) == 2
    assert COMMANDS[row] in capsys.readouterr().err


def test_entail_recipe_has_no_deviations():
    assert deviations(recipe("entail"), "BSL-BERT, NLI_entail") == ()


@every(
    [
        (
            {"encoder": {"model": "embedded:bert-mini", "revision": None}},
            "another encoder: embedded:bert-mini; the row's is google-bert/bert-base-uncased",
        ),
        ({"encoder": {"pooling": "cls"}}, "the encoder is loaded differently: pooling cls for mean"),
        ({"ingest": {"corpus": {"limit": 1000}}}, "only a part of the corpus: limit 1000 for none"),
        ({"training": {"lr": 0.001}}, "other training: lr 0.001 for 0.0005"),
        ({"training": {"objective": {"k": 4}}}, "other training: objective.k 4 for 8"),
        ({"evaluation": {"dev": None}}, "the step is selected by no set; the row's by stsb/dev"),
        (
            {
                "ingest": {
                    "sources": [
                        {"dataset": "snli", "split": "train", "limit": 9000},
                        {"dataset": "multi_nli", "split": "train"},
                    ]
                }
            },
            "only a part of the corpus: 9,000 sentences of snli",
        ),
        (
            {"ingest": {"sources": [{"dataset": "snli", "split": "train"}]}},
            "another corpus: snli train; the row's is snli train and multi_nli train",
        ),
    ]
)
def test_deviations_describe_each_changed_setting(changes, why):
    assert deviations(override(recipe("entail"), changes), "BSL-BERT, NLI_entail") == (why,)


def test_isbert_task_recipe_is_compared_with_its_own_task():
    reasons = {task: deviations(recipe(f"isbert-{task}"), ROW) for task in TASKS}
    assert reasons == dict.fromkeys(TASKS, ())
    (why,) = deviations(override(recipe("isbert-cr"), {"ingest": {"sources": [{"dataset": "mr"}]}}), ROW)
    assert why == "another corpus: mr; the row's is cr"


def test_changed_seed_is_not_a_deviation():
    assert deviations(override(recipe("entail"), {"training": {"seed": 7}}), "BSL-BERT, NLI_entail") == ()


def test_tiny_maps_to_bsl_bert_row_with_deviations():
    row, name = row_of("tiny")
    kinds = {why.partition(":")[0] for why in deviations(recipe(name), row)}
    assert (row, name) == ("BSL-BERT", "tiny")
    assert {"another encoder", "another corpus", "another translator", "other training"} <= kinds


def test_recipes_sharing_a_row_are_compared_by_task_cells():
    assert [cells_of(ROW, f"{system}-{task}") for system in ("isbert", "bsl") for task in TASKS] == [
        (task,) for _ in range(2) for task in TASKS
    ]
    whole = [cells_of(row, name) for row, name in BEHIND if row != ROW]
    assert set(whole) == {()}
    assert set(TASKS) <= set(columns_of("senteval"))


@every(sorted(RECIPES))
def test_row_of_returns_published_row_or_raises(name):
    published = recipe(name).published
    if published and published[0] in ROWS:
        assert row_of(name) == (published[0], name)
    else:
        with pytest.raises(
            ValueError, match=r"reproduces no published row|which is fine-tuned. Measure the row with: bsl"
        ):
            row_of(name)


def test_unknown_row_error_has_one_suggestion_and_the_command_that_lists_all():
    with pytest.raises(ValueError, match=r"recipe 'BSL-BRT'. Did you mean 'BSL-BERT'\? `bsl recipes` lists all recip"):
        row_of("BSL-BRT")
