"""The embedded sentence encoders are distilled: a masked LM and a table learn from an encoder of another width."""

import random
import shutil

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from assets.distil import select_sentences, teach_student, teach_table
from assets.pretrain import MODEL, locate_collections
from assets.training.config import LessonsRecipe, StudentRecipe, TableRecipe
from assets.training.corpora import ENGLISH, EVALUATION
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.correlation import spearman
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.runtime.rows import unit_vectors
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.embedding.embed import embed
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import WIDTH, write_tiny

SUBJECTS, ACTIONS = ("A man", "Two dogs", "The children", "A woman"), ("is playing", "run across", "wait for", "plays")
PLACES = ("the snow.", "a long table.", "the bus.", "guitar.", "the guitar in a red coat.")
TEACHER = resolve_model("embedded:bert-mini")
TAUGHT_BY = EncoderConfig(model=TEACHER.identity, max_length=24)
LEARNT = DistilConfig(loss="vectors", distance="cosine", projection_start="random", views="first")
TRAINING = StudentRecipe().training.model_copy(
    update={"objective": LEARNT, "lr": 1e-2, "batch_size": 8, "max_steps": 6, "precision": "fp32"}
)
TEXTS = [f"{subject} {action} {place}" for subject in SUBJECTS for action in ACTIONS for place in PLACES]


@pytest.fixture
def site(tmp_path):
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    plain = {"ni_text/all": shuffled, "novels/docs": [" ".join(shuffled)], "wikitext2_validtest/all": shuffled}
    for name in (*ENGLISH, *EVALUATION):
        if name in plain:
            frame = pl.DataFrame({"text": plain[name]})
        elif name in EVALUATION:
            frame = pl.DataFrame({"sentence1": shuffled[:3], "sentence2": shuffled[3:6]})
        else:
            sides = ("en", name[-6:-4]) if name.startswith("tatoeba") else ("premise", "hypothesis")
            frame = pl.DataFrame(dict.fromkeys(sides, shuffled))
        path = tmp_path / "mirror" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
    return RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path / "mirror"), device="cpu", threads=1)


@pytest.fixture
def lessons(site):
    sources = locate_collections(site, (*ENGLISH, *EVALUATION))
    sentences = select_sentences(site, sources, LessonsRecipe(sentences=40))
    return {"sentences": sentences, "vectors": embed(site, TEACHER, sentences, TAUGHT_BY, "fp32")}


def model_of(site, ref):
    """Return the folder and weights of a taught model, whose loss fell."""
    store = site.open_store()
    figures = store.manifest(ref).figures
    assert (figures["steps"], figures["sentences"]) == (6, 40)
    assert figures["last_loss"] < figures["first_loss"]
    folder = store.fetch(ref) / MODEL
    weights = [load_file(path) for path in folder.rglob("model.safetensors")]
    assert {tensor.element_size() for file in weights for tensor in file.values()} == {2}
    return folder, [tuple(tensor.shape) for file in weights for tensor in file.values()]


def test_student_has_teacher_dimension_and_half_precision_weights(site, lessons, tmp_path):
    start = ArtifactRef(kind="asset", key=f"{1:064x}")
    with site.open_store().draft(start, Provenance(stage_version=1, config={})) as draft:
        shutil.copytree(write_tiny(tmp_path / "start"), draft.folder / MODEL)
    ref = teach_student(site, **lessons, start=start, recipe=StudentRecipe(max_length=24, training=TRAINING))
    folder, shapes = model_of(site, ref)
    assert (256, WIDTH) in shapes
    vectors = SentenceTransformer(str(folder), device="cpu").encode(TEXTS[:3])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32


def test_table_has_chosen_vocabulary_and_dimensions_and_is_similar_to_its_teacher(site, lessons):
    recipe = TableRecipe(vocabulary=80, dimensions=16, training=TRAINING)
    folder, shapes = model_of(site, teach_table(site, **lessons, teacher=TEACHER, recipe=recipe))
    opened = SentenceTransformer(str(folder), device="cpu")
    assert shapes == [(len(opened.tokenizer.get_vocab()), 16)]
    assert len(opened.tokenizer.get_vocab()) <= 80
    teacher = SentenceEncoder.load(embedded_path("bert-mini"), TAUGHT_BY)
    found, wanted = (
        unit_vectors(vectors) @ unit_vectors(vectors).T for vectors in (opened.encode(TEXTS), teacher.encode(TEXTS))
    )
    apart = ~np.eye(len(TEXTS), dtype=bool)
    assert spearman(found[apart], wanted[apart]) > 0.6
