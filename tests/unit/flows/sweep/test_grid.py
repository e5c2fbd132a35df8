"""From axes to configurations: every combination, named, with the paper's figure at its own points."""

import json

import pytest

from bsl.flows.cli.sweep import axes_of
from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.sweep.grid import grid
from bsl.flows.sweep.points import Job
from bsl.flows.sweep.studies import STUDIES
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import CollapseConfig
from tests.every import every

PUBLISHED = {  # study → figures of its first points
    "momentum": [33.18, 69.58, 72.51, 73.74, 68.19],
    "batch": [69.21, 71.08, 72.02, 72.01, 68.18],
    "scl-lambda": [69.18, 70.44, 70.05, 69.69, 69.61, 69.38],
    "scl-temperature": [61.61, 66.12, 68.24, 69.39, 69.78, 70.05],
    "scl-lambda-senteval": [76.64, 76.16, 76.28, 75.6, 75.26, 74.97],
    "scl-temperature-senteval": [75.68, 75.87, 76.03, 75.2, 75.78, 76.28],
    "scl-numbers": [67.17, 69.76, 70.05, 66.57, 69.76, 69.38],
}


def labelled(asked):
    return dict(zip([point.label for point in asked.points], asked.configs, strict=True))


@every(PUBLISHED.items())
def test_points_of_a_study_have_their_published_figures(name, figures):
    assert [point.published for point in grid(name, {}, {}).points][: len(figures)] == figures


def test_points_of_a_study_are_named_and_configured_by_their_values():
    asked = labelled(grid("momentum", {}, {}))
    assert {label: config.training.objective.momentum for label, config in asked.items()} == {
        f"momentum {value}": value for value in (0.5, 0.9, 0.99, 0.999, 1)
    }
    batch = grid("batch", {}, {})
    assert batch.axis == "training.batch_size"
    assert {point.line for point in batch.points} == {"objective bsl", "objective contrastive"}
    fifth = batch.configs[4].training
    assert (fifth.objective, fifth.batch_size) == (ContrastiveConfig(), 16)
    shares, temperatures = grid("scl-lambda", {}, {}), grid("scl-temperature", {}, {})
    assert {config.training.objective.weight for config in temperatures.configs} == {0.5}
    years = tuple(f"sts{year}/test" for year in range(12, 17))
    assert {config.evaluation.sets for config in (*shares.configs, *temperatures.configs)} == {years}
    objectives = [config.training.objective for config in grid("scl-numbers", {}, {}).configs]
    assert [(each.weight, each.positives, each.negatives) for each in objectives] == [
        (0.5, 3, 3), (0.5, 3, None), (0.5, None, None), (1.0, 3, 3), (1.0, 3, None), (1.0, None, None),
    ]  # fmt: skip


@every(STUDIES)
def test_points_of_every_study_resolve_and_are_rebuilt_from_their_jobs(name):
    asked, study = grid(name, {}, {}), STUDIES[name]
    labels = {point.label for point in asked.points}
    assert len(asked.points) == len(asked.configs) > 1
    assert set(asked.references) <= labels
    if study.row:
        unprinted = {point.label for point in asked.points if point.published is None}
        assert all(label == "tsdae" or label.startswith("tiny") for label in unprinted)
        assert unprinted < labels
    models = {model for config in asked.configs for model, _ in config.models()}
    assert all(model.startswith("embedded:") for model in models) == study.recipe.startswith("tiny")
    phases = [phase for config in asked.configs for phase in config.phases]
    assert {phase.training.collapse for phase in phases} == {None}
    assert "best-or-start" not in {phase.training.select for phase in phases}
    changes = {"training": {"collapse": {"patience": 3}}, "evaluation": {"sets": ["embedded:stsb/test"]}}
    for base, config in zip(asked.recipes, grid(name, {}, changes).configs, strict=True):
        assert config.training is None or config.training.collapse == CollapseConfig(patience=3)
        again = config.runs(2)[-1]
        assert override(recipe(base), json.loads(json.dumps(Job(base, again).overrides))) == again


def test_all_pairs_score_precedes_scores_of_other_protocols():
    points = {point.label: point.published for point in grid("systems", {}, {}).points}
    assert [points[label] for label in ("whitening", "bert-cls", "nli")] == [66.28, 31.40, 72.03]


def test_published_figures_of_another_kind_than_the_measured_ones_are_named():
    named = {point.label: point.published_as for point in grid("systems", {}, {}).points}
    assert (named["nli"], named["flow"]) == ("", "mean of sts, wmean")
    (kind,) = {point.published_as for point in grid("scl-lambda-senteval", {}, {}).points}
    assert kind == "mean of senteval-8, senteval"


def test_training_override_leaves_untrained_points_untrained():
    configs = labelled(grid("tiny-systems", {}, {"training": {"max_steps": 7}}))
    untrained = {"tiny-avg", "tiny-cls", "tiny-flow", "tiny-whitening"}
    assert {label for label, config in configs.items() if config.training is None} == untrained
    assert {config.training.max_steps for config in configs.values() if config.training} == {7}


def test_seeds_are_repeated_only_for_random_configs():
    configs = labelled(grid("tiny-systems", {}, {}))
    runs = {label: len(config.runs(3)) for label, config in configs.items()}
    assert {label for label, count in runs.items() if count == 1} == {"tiny-avg", "tiny-cls", "tiny-whitening"}
    assert set(runs.values()) == {1, 3}
    assert [config.training.seed for config in configs["tiny-bsl-sbert"].runs(2)] == [0, 1]
    assert [config.earlier[0].training.seed for config in configs["tiny-bsl-sbert"].runs(2)] == [0, 1]


def test_job_overrides_contain_only_changed_fields():
    asked = grid("tiny-momentum", {}, {})
    assert Job(asked.recipes[0], asked.configs[0].seeded(1)).overrides == {
        "training": {"objective": {"momentum": 0.5}, "seed": 1}
    }
    (other,) = grid("tiny", {"training.objective": ["contrastive"]}, {}).configs
    assert Job("tiny", other).overrides == {
        "training": {"objective": ContrastiveConfig().model_dump(mode="json"), "select": "best", "collapse": None}
    }


def test_untrained_recipe_appears_once_on_a_training_axis():
    asked = grid("tiny", {"recipe": ["tiny-avg", "tiny"], "training.lr": [1e-3, 1e-4]}, {})
    assert [point.label for point in asked.points] == ["tiny-avg", "tiny, lr 0.001", "tiny, lr 0.0001"]
    assert [config.training and config.training.lr for config in asked.configs] == [None, 1e-3, 1e-4]
    assert asked.recipes == ("tiny-avg", "tiny", "tiny")
    assert [(point.line, point.place) for point in asked.points][:2] == [("tiny-avg", "untrained"), ("tiny", "0.001")]


def test_axes_and_changes_apply_to_every_point():
    over = {"training.objective.temperature": [0.1, 0.2], "training.objective": ["contrastive"]}
    asked = grid("tiny", over, {})  # the objective is set before its fields
    assert [config.training.objective.temperature for config in asked.configs] == [0.1, 0.2]
    assert {(config.training.collapse, config.training.select) for config in asked.configs} == {(None, "best")}
    asked = grid("tiny", {"recipe": ["tiny", "tiny-entail"]}, {"training": {"max_steps": 7}})
    assert [config.title.partition(":")[0] for config in asked.configs] == ["tiny", "tiny-entail"]
    assert [config.training.max_steps for config in asked.configs] == [7, 7]
    assert [point.published for point in asked.points] == [None, None]
    asked = grid("momentum", {"training.objective.momentum": [0.3]}, {})
    assert [(point.label, point.published) for point in asked.points] == [("momentum 0.3", None)]
    asked = grid("tiny", {"training.lr": [1e-3, 1e-4]}, {"training": {"max_steps": 3}, "transform": None})
    assert [(config.training.lr, config.training.max_steps) for config in asked.configs] == [(1e-3, 3), (1e-4, 3)]


def test_plus_study_ablates_bsl_plus_and_adds_other_methods():
    asked = grid("plus", {}, {"training": {"max_steps": 7}})
    points = labelled(asked)
    assert next(iter(points)) == "BSL+"
    whole = points["BSL+"].training.objective
    assert points["no in-batch negatives"].training.objective == whole.model_copy(update={"contrastive_weight": 0.0})
    pooled = ("BSL+", "last layer alone", "contrastive, first and last layer")
    assert [points[name].encoder.pooling for name in pooled] == ["first-last", "mean", "first-last"]
    assert points["SimCSE"].training.objective.name == "simcse"
    assert dict(zip(points, asked.recipes, strict=True))["contrastive"] == "tiny-contrastive"
    assert {(config.training.max_steps, config.training.collapse) for config in asked.configs} == {(7, None)}
    names = [config.model_dump_json(exclude={"title", "published"}) for config in asked.configs]
    assert len(set(names)) == len(names)


@every(
    [
        ("momentun", {}, {}, "unknown study or recipe 'momentun'.*Did you mean 'momentum'.*Studies: momentum, batch"),
        ("tinny", {"training.lr": [1]}, {}, "unknown study or recipe 'tinny'.*Did you mean 'tiny'.*`bsl recipes`"),
        ("tiny", {}, {}, "tiny is a recipe, not a study. .*--over"),
        (
            "tiny",
            {"training.lr": [1e-3, 1e-3]},
            {},
            "training.lr: expected one or more different values",
        ),
        ("tiny", {"training.lr": []}, {}, "training.lr: expected one or more"),
        ("tiny", {"training.lrr": [1]}, {}, "lrr"),
        ("tiny-avg", {"training.lr": [1]}, {}, "training.lr: recipe tiny-avg does not train"),
        ("tiny-avg", {"encoder.pooling": ["cls"]}, {"training": {}}, "training: recipe tiny-avg does not train"),
        ("plus", {"variant": ["no luck"]}, {}, r"'no luck' of study 'BSL.* Variants: BSL\+; no in-batch negatives; "),
        ("tiny", {"recipe": ["tiny", "tinny"]}, {}, "unknown recipe 'tinny'"),
        ("tiny", {"recipe": ["tiny", "momentum"]}, {}, "momentum is a study"),
        ("tiny", {"recipe": ["tiny-flow", "tiny-flow-target"]}, {}, "tiny-flow-target.*Set transform_on=corpus"),
        ("tiny", {"training.seed": [0, 1]}, {}, "--seeds sets the number"),
        ("tiny", {"training.lr": [1e-3]}, {"training": {"seed": 7}}, "--seeds sets the number"),
        ("tiny", {"training.lr": [1e-3]}, {"training": {"lr": 7}}, "training.lr: the sweep varies .* `overrides`"),
        ("tiny", {"training.objective": ["bsl"]}, {"training": {"objective": {"momentum": 0}}}, "the sweep varies"),
        ("momentum", {}, {"training": {"objective": {"momentum": 0.9}}}, "momentum: the sweep varies"),
        ("plus", {}, {"encoder": {"pooling": "mean"}}, r"BSL\+ and last layer alone: .* the same settings"),
        ("tiny", {"training.objective.k": [4, 4.0]}, {}, "k 4 and k 4.0: the points have the same settings"),
    ]
)
def test_grid_rejects_unknown_names_and_invalid_axes(name, over, changes, message):
    with pytest.raises(ValueError, match=message):
        grid(name, over, changes)


def test_grid_rejects_an_unknown_reference_point():
    with pytest.raises(ValueError, match=r"against momentun 0\.99: unknown point\. Did you mean 'momentum 0\.99'"):
        grid("momentum", {}, {}, ["momentun 0.99"])


def test_axes_are_parsed_as_json_and_several_recipes_are_an_axis():
    assert axes_of(["training.lr=1e-4,3e-4", "recipe=nli,entail"], ["nli"]) == {
        "training.lr": [1e-4, 3e-4],
        "recipe": ["nli", "entail"],
    }
    assert axes_of(['evaluation.sets=[["sts"],["senteval"]]'], ["nli"]) == {"evaluation.sets": [["sts"], ["senteval"]]}
    several = axes_of(["training.lr=1e-4"], ["nli", "entail"])
    assert list(several.items()) == [("recipe", ["nli", "entail"]), ("training.lr", [1e-4])]
    assert grid("nli", axes_of([], ["nli", "entail"]), {}).title == "Recipes side by side"
    for options in (["training.lr"], ["training.lr="], ["a=1", "a=2"]):
        with pytest.raises(ValueError, match="expected each field once as FIELD=VALUE,VALUE"):
            axes_of(options, ["tiny"])
