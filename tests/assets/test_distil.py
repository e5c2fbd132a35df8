"""The embedded sentence encoder is distilled: a masked LM learns from an encoder of another width."""

import random
import shutil

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from assets.distil import teach_student
from assets.pretrain import MODEL, locate_collections
from assets.training.config import StudentRecipe
from assets.training.corpora import ENGLISH, EVALUATION
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import WIDTH, write_tiny

SUBJECTS, ACTIONS = ("A man", "Two dogs", "The children", "A woman"), ("is playing", "run across", "wait for", "plays")
PLACES = ("the snow.", "a long table.", "the bus.", "guitar.", "the guitar in a red coat.")
LEARNT = DistilConfig(loss="vectors", distance="cosine", projection_start="random", views="first")
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


def test_student_has_teacher_dimension_and_half_precision_weights(site, tmp_path):
    start = ArtifactRef(kind="asset", key=f"{1:064x}")
    with site.open_store().draft(start, Provenance(stage_version=1, config={})) as draft:
        shutil.copytree(write_tiny(tmp_path / "start"), draft.folder / MODEL)
    teacher = resolve_model("embedded:bert-mini")
    recipe = StudentRecipe(
        teacher=EncoderConfig(model=teacher.identity, max_length=24),
        sentences=40,
        max_length=24,
        training=StudentRecipe().training.model_copy(
            update={"objective": LEARNT, "lr": 1e-2, "batch_size": 8, "max_steps": 6, "precision": "fp32"}
        ),
    )
    sources = locate_collections(site, (*ENGLISH, *EVALUATION))
    arguments = {"sources": sources, "start": start, "teacher": teacher, "recipe": recipe}
    ref = teach_student(site, **arguments)
    store = site.open_store()
    folder = store.fetch(ref) / MODEL
    figures = store.manifest(ref).figures
    assert (figures["steps"], figures["sentences"]) == (6, 40)
    assert figures["last_loss"] < figures["first_loss"]
    weights = [load_file(path) for path in folder.rglob("model.safetensors")]
    assert {tensor.element_size() for file in weights for tensor in file.values()} == {2}
    assert {tuple(tensor.shape) for file in weights for tensor in file.values()} >= {(256, WIDTH)}
    vectors = SentenceTransformer(str(folder), device="cpu").encode(TEXTS[:3])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
