"""Given settings of an encoder win over its folder, in every command; the folder provides the others."""

from functools import cache

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

import bsl
from bsl.flows.adaptation import run_adapt
from bsl.flows.config import difference, override
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig, EncoderOverrides
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.storage.errors import ArtifactMissingError
from bsl.tasks.diagnostics.doctor import look_at_encoder
from bsl.tasks.embedding.encoders import (
    check_learns,
    encoder_folder,
    find_encoder,
    is_bare,
    is_table,
    resolve,
    token_width_of,
)
from bsl.tasks.evaluation.systems import find_encoder_system
from bsl.tasks.stage.progress import listening
from bsl.tasks.training.teachers import find_teachers
from tests.corpora import publish
from tests.tiny_encoder import WIDTH as BERT_WIDTH
from tests.tiny_encoder import write_tiny
from tests.tiny_words import WIDTH, words

TEXTS = [
    "A man is playing a guitar.",
    "The children are eating lunch at a long table, and two dogs run across the snow.",
]
SAVED = {"pooling": "cls", "normalize": True, "max_length": 12, "prompt": None}
GIVEN = [
    {},
    *({"pooling": pooling} for pooling in ("cls", "mean", "max", "cls+mean")),  # mean is the default, but given
    *({"normalize": normalize} for normalize in (True, False)),
    *({"max_length": length} for length in (12, 8, 64)),
    *({"prompt": prompt} for prompt in ("", "query", "the red ")),
    {"lower_case": False},
    {"pooling": "mean", "normalize": False, "max_length": 20, "prompt": "the "},
]
COMMANDS = ("run", "pool", "adapt", "teacher", "evaluate")


def found_by(command, folder, given, site):
    """Find an encoder as a command does."""
    named = {"model": str(folder), **given}
    base = recipe("tiny")
    point = override(base, {"encoder": named})
    match command:
        case "run":
            return resolve(site, point.encoder)
        case "pool":  # a worker receives the changes of a sweep's point as JSON
            return resolve(site, override(base, difference(base, point)).encoder)
        case "adapt":
            encoder = override(AdaptConfig(), {"encoder": dict(given)}).encoder
            return resolve(site, encoder.model_copy(update={"model": str(folder)}))
        case "teacher":
            (found,) = find_teachers(site, override(recipe("tiny-distil"), {"teacher": named}).phases[-1].teachers)
            return found
    return find_encoder_system(site, str(folder), EncoderOverrides(**given))


def loaded(site, found):
    return SentenceEncoder.load(encoder_folder(site.open_store(), found.encoder), found.config)


def write(folder, **settings):
    """Save an encoder by sentence-transformers, with the settings `SAVED` or others."""
    settings = {**SAVED, **settings}
    transformer = Transformer(str(write_tiny(folder / "raw")), max_seq_length=settings["max_length"])
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode=tuple(settings["pooling"].split("+")))
    modules = [transformer, pooling, *([Normalize()] * settings["normalize"])]
    SentenceTransformer(modules=modules, prompts={"query": "a dog "}, device="cpu").save(str(folder / "saved"))
    return folder / "saved"


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_given_settings_win_and_the_folder_provides_the_others(site, tmp_path, given):
    folder = write(tmp_path)
    saved = write(tmp_path / "peer", **{name: value for name, value in given.items() if name in SAVED})
    peer, prompt = SentenceTransformer(str(saved), device="cpu"), given.get("prompt") or ""
    wanted = peer.encode(TEXTS, prompt=peer.prompts.get(prompt, prompt), convert_to_numpy=True)
    load = cache(SentenceEncoder.load)  # once for all commands that find the same encoder
    encoders = {"python": bsl.SentenceEncoder.load(folder, **given)}
    for command in COMMANDS:
        if command != "evaluate" or given.keys() <= EncoderOverrides.model_fields.keys():
            found = found_by(command, folder, given, site)
            encoders[command] = load(encoder_folder(site.open_store(), found.encoder), found.config)
    for command, encoder in encoders.items():
        vectors = encoder.encode(TEXTS)
        assert vectors.shape == wanted.shape, command
        assert np.abs(vectors - wanted).max() < 1e-5, command
    config = override(recipe("tiny"), {"encoder": {"model": str(folder), **given}}).encoder
    assert f"vectors of width {wanted.shape[1]}" in look_at_encoder(site, config)


@pytest.mark.parametrize("command", COMMANDS[:-1])  # `bsl evaluate` has no option for either
def test_lower_case_and_dropout_can_be_given(site, tmp_path, command):
    found = found_by(command, write(tmp_path), {"lower_case": True, "dropout": 0.3}, site)
    assert found.config.dropout == 0.3
    encoder = loaded(site, found)
    np.testing.assert_array_equal(encoder.encode(["A DOG"]), encoder.encode(["a dog"]))


@pytest.mark.parametrize("name", ["tiny-avg", "tiny-cls"])
def test_recipe_of_an_unchanged_encoder_scores_it_as_saved(site, tmp_path, name):
    """Regression: the recipes set normalize to its default, which removed the module Normalize of a folder."""
    config = override(recipe(name), {"encoder": {"model": str(write(tmp_path))}}).encoder
    assert resolve(site, config).config.normalize


@pytest.mark.parametrize(
    ("figures", "described"),
    [
        ({"verdict": "NOT PROVED", "adapted": False}, "NOT PROVED: the original encoder"),
        ({"verdict": "NOT PROVED", "adapted": True}, "NOT PROVED: the adapted encoder"),
        ({"verdict": "BETTER"}, "BETTER"),  # of a run, which always has the trained encoder
        ({}, "without verdict"),
    ],
)
def test_report_named_as_encoder_says_which_one_it_is(site, figures, described):
    trained, heard = CheckpointRef(key="c" * 64), []
    publish(site.open_store(), trained, page="a file")
    publish(site.open_store(), ReportRef(key="d" * 64), inputs={"trained": trained}, figures=figures, page="a page")
    with listening(lambda event, value: heard.append((event, value))):
        assert find_encoder(site, "report/latest", None) == trained
    assert heard == [("tells", f"encoder: report/{'d' * 12}, {described}")]
    site.open_store().remove(trained)
    with pytest.raises(
        ArtifactMissingError, match=f"report/{'d' * 12}: its encoder checkpoint/cccccccccccc is no longer"
    ):
        find_encoder(site, "report/latest", None)


@pytest.mark.parametrize(
    ("inputs", "transform", "told"),
    [
        ((), None, "this run trained none. Name embedded:bert-mini itself."),
        ((), {"name": "flow"}, "no encoder contains its transform flow. Name embedded:bert-mini itself."),
        (("checkpoints.0",), {"name": "flow"}, "without verdict, before its transform flow, which no encoder contains"),
        (("checkpoints.0", "folded.0"), {"name": "whitening"}, "without verdict"),
    ],
)
def test_encoder_of_a_report_lacks_what_no_encoder_contains(site, inputs, transform, told):
    store, entry = site.open_store(), InputEntry(kind="checkpoint", key="c" * 64, digest="d" * 64)
    publish(store, CheckpointRef(key=entry.key), page="a file")
    settings = {"encoder": {"model": "embedded:bert-mini"}, "transform": transform}
    made = Provenance(stage_version=1, config={"settings": settings}, inputs=dict.fromkeys(inputs, entry))
    with store.draft(ReportRef(key="e" * 64), made) as draft:
        (draft.folder / "page.md").write_text("a page")
    said = []
    with listening(lambda _, value: said.append(value)):
        try:
            find_encoder(site, "report/latest", None)
        except ArtifactMissingError as refused:
            said.append(str(refused))
    assert said[-1].endswith(told)


def test_graph_uses_start_and_pooling_of_its_folder_and_cannot_be_trained(site, tmp_path):
    saved = write(tmp_path)
    bare = resolve(site, EncoderConfig(model=str(tmp_path / "raw"), pooling="max"))
    assert bare.config == EncoderConfig(model=bare.checkpoint, pooling="max")
    check_learns(bare.encoder)
    for folder, is_raw in ((tmp_path / "raw", True), (saved, False)):
        (folder / "onnx").mkdir()
        for graph in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
            graph.touch()
            found = resolve(site, EncoderConfig(model=str(graph)))
            assert (is_bare(site, found.encoder), found.config.pooling) == (is_raw, "mean" if is_raw else "cls")
            with pytest.raises(EncoderError, match=r"no gradients \(expected weights to train"):
                check_learns(found.encoder)
    check_learns(find_encoder(site, str(saved), None))
    (saved / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="no gradients"):
        check_learns(find_encoder(site, str(saved), None))


def test_word_vector_encoder_rejects_dropout_views(site, tmp_path):
    write(tmp_path)
    SentenceTransformer(modules=[*words(), Pooling(WIDTH)], device="cpu").save(str(tmp_path / "words"))
    starts = [find_encoder(site, str(tmp_path / name), None) for name in ("raw", "saved", "words")]
    assert [is_table(site, start) for start in starts] == [False, False, True]
    assert [token_width_of(site, start) for start in starts] == [BERT_WIDTH, BERT_WIDTH, None]
    (tmp_path / "own.txt").write_text("It has rained for days.\n")
    with pytest.raises(EncoderError, match=r"words: --views dropout needs a transformer .found a table of word"):
        run_adapt([str(tmp_path / "own.txt")], str(tmp_path / "words"), None, AdaptConfig(views="dropout"), site)
