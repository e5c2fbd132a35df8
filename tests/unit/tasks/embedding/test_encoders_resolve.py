"""Given settings of an encoder win over its folder, through every door; the folder provides the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

import bsl
from bsl.flows.config import difference, override
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.tasks.diagnostics.doctor import look_at_encoder
from bsl.tasks.embedding.encoders import ResolvedEncoder, encoder_folder, resolve
from bsl.tasks.evaluation.config import EncoderOverrides
from bsl.tasks.evaluation.systems import find_encoder_system
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.training.teachers import find_teachers
from tests.tiny_encoder import write_tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

TEXTS: Final = [
    "A man is playing a guitar.",
    "The children are eating lunch at a long table, and two dogs run across the snow.",
]
SAVED: Final[Mapping[str, Any]] = {"pooling": "cls", "normalize": True, "max_length": 12, "prompt": None}
GIVEN: Final[list[dict[str, Any]]] = [
    {},
    {"pooling": "cls"},
    {"pooling": "mean"},  # the default, but given
    {"pooling": "max"},
    {"pooling": "cls+mean"},
    {"normalize": True},
    {"normalize": False},
    {"max_length": 12},
    {"max_length": 8},
    {"max_length": 64},
    {"prompt": ""},
    {"prompt": "query"},
    {"prompt": "the red "},
    {"lower_case": False},
    {"pooling": "mean", "normalize": False, "max_length": 20, "prompt": "the "},
]
IDS: Final = [
    ",".join(map("=".join, ((name, str(value)) for name, value in given.items()))) or "none" for given in GIVEN
]


def run(folder: str, given: Mapping[str, Any], site: RunContext) -> ResolvedEncoder:
    return resolve(site, override(recipe("tiny"), {"encoder": {"model": folder, **given}}).encoder)


def pool(folder: str, given: Mapping[str, Any], site: RunContext) -> ResolvedEncoder:
    """Resolve as a worker of a pool does, which receives the changes of a sweep's point as JSON."""
    point = override(recipe("tiny"), {"encoder": {"model": folder, **given}})
    return resolve(site, override(recipe("tiny"), difference(recipe("tiny"), point)).encoder)


def adapt(folder: str, given: Mapping[str, Any], site: RunContext) -> ResolvedEncoder:
    encoder = override(AdaptConfig(), {"encoder": dict(given)}).encoder
    return resolve(site, encoder.model_copy(update={"model": folder}))


def teacher(folder: str, given: Mapping[str, Any], site: RunContext) -> ResolvedEncoder:
    config = override(recipe("tiny-distil"), {"teacher": {"model": folder, **given}})
    (found,) = find_teachers(site, config.phases[-1].teachers)
    assert isinstance(found, ResolvedEncoder)
    return found


def evaluate(folder: str, given: Mapping[str, Any], site: RunContext) -> ResolvedEncoder:
    return find_encoder_system(site, folder, EncoderOverrides(**given))


DOORS: Final[Mapping[str, Callable[[str, Mapping[str, Any], RunContext], ResolvedEncoder]]] = {
    door.__name__: door for door in (run, pool, adapt, teacher, evaluate)
}


def write(folder: Path, **settings: Any) -> None:
    """Save an encoder by sentence-transformers, with the settings `SAVED` or others."""
    settings = {**SAVED, **settings}
    transformer = Transformer(str(write_tiny(folder / "raw")), max_seq_length=settings["max_length"])
    width = transformer.get_embedding_dimension()
    modules = [transformer, Pooling(width, pooling_mode=tuple(settings["pooling"].split("+")))]
    encoder = SentenceTransformer(
        modules=modules + [Normalize()] * settings["normalize"], prompts={"query": "a dog "}, device="cpu"
    )
    encoder.save(str(folder / "saved"))


def expected(folder: Path, given: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the vectors of sentence-transformers for a folder that was saved with the given settings."""
    write(folder, **{name: value for name, value in given.items() if name in SAVED})
    prompt = given.get("prompt") or ""
    peer = SentenceTransformer(str(folder / "saved"), device="cpu")
    return peer.encode(TEXTS, prompt=peer.prompts.get(prompt, prompt), convert_to_numpy=True)


@pytest.mark.parametrize("given", GIVEN, ids=IDS)
def test_given_settings_win_and_the_folder_provides_the_others(tmp_path: Path, given: dict[str, Any]) -> None:
    write(tmp_path)
    folder, site = tmp_path / "saved", RunContext(store=str(tmp_path / "store"))
    wanted = expected(tmp_path / "peer", given)
    loaded = {"python": bsl.SentenceEncoder.load(folder, **given)}
    for name, door in DOORS.items():
        if name == "evaluate" and not given.keys() <= EncoderOverrides.model_fields.keys():
            continue  # `bsl evaluate` has no such option
        found = door(str(folder), given, site)
        loaded[name] = SentenceEncoder.load(encoder_folder(site.open_store(), found.encoder), found.config)
    for name, encoder in loaded.items():
        vectors = encoder.encode(TEXTS)
        assert vectors.shape == wanted.shape, name
        assert np.abs(vectors - wanted).max() < 1e-5, name
    config = override(recipe("tiny"), {"encoder": {"model": str(folder), **given}}).encoder
    assert f"vectors of width {wanted.shape[1]}" in look_at_encoder(site, config)


@pytest.mark.parametrize("name", [name for name in DOORS if name != "evaluate"])  # it has no option for either
def test_lower_case_and_dropout_can_be_given(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    site = RunContext(store=str(tmp_path / "store"))
    found = DOORS[name](str(tmp_path / "saved"), {"lower_case": True, "dropout": 0.3}, site)
    loaded = SentenceEncoder.load(encoder_folder(site.open_store(), found.encoder), found.config)
    assert found.config.dropout == 0.3
    np.testing.assert_array_equal(loaded.encode(["A DOG"]), loaded.encode(["a dog"]))


@pytest.mark.parametrize("name", ["tiny-avg", "tiny-cls"])
def test_recipe_of_an_unchanged_encoder_scores_it_as_saved(tmp_path: Path, name: str) -> None:
    """Regression: the recipes set normalize to its default, which removed the module Normalize of a folder."""
    write(tmp_path)
    config = override(recipe(name), {"encoder": {"model": str(tmp_path / "saved")}}).encoder
    assert resolve(RunContext(store=str(tmp_path / "store")), config).config.normalize
